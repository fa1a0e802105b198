package unit_test

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"pgregory.net/rapid"
)

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		v    float64
		u    string
		want string
	}{
		{0, report.Nanoseconds, "0 ns"},
		{512, report.Nanoseconds, "512 ns"},
		{512.34, report.Nanoseconds, "512.3 ns"},
		{2100, report.Nanoseconds, "2.1 µs"},
		{999960, report.Nanoseconds, "1 ms"}, // rounding moves it into the next unit
		{999949, report.Nanoseconds, "999.9 µs"},
		{1234000, report.Nanoseconds, "1.234 ms"},
		{17530000, report.Nanoseconds, "17.53 ms"},
		{-17530000, report.Nanoseconds, "-17.53 ms"},
		{535200650, report.Nanoseconds, "535.2 ms"},
		{12345678901234, report.Nanoseconds, "12,346 s"},
		{0.25, report.Nanoseconds, "0.25 ns"},
		{1e-9, report.Nanoseconds, "1e-09 ns"},
		{1e300, report.Nanoseconds, "1e+300 ns"},
		{1023, report.Bytes, "1.023 kB"},
		{50950507584, report.Bytes, "50.95 GB"},
		{27.7e9, report.BytesPerSec, "27.7 GB/s"},
		{989e12, report.Flop, "989 TFLOP"},
		{0, report.Count, "0"},
		{1234567, report.Count, "1,234,567"},
		{119.5, report.Count, "119.5"},
		{13359.4, report.PerSecond, "13,359/s"},
		{3.5, report.PerSecond, "3.5/s"},
		{412.5, report.Watts, "412.5 W"},
		{5600, report.Watts, "5.6 kW"},
		{0.05, report.Joules, "50 mJ"},
		{9.5, report.Joules, "9.5 J"},
		{4.1234, report.Money, "4.123"},
		{123456789, report.PerSecond, "123,456,789/s"},
		{245.3e12, report.PerSecond, "245.3 T/s"},
		{0.138, report.Ratio, "13.8 %"},
		{42, "bananas", "42 bananas"},
		{math.NaN(), report.Nanoseconds, "unknown"},
	} {
		if got := unit.Format(c.v, c.u); got != c.want {
			t.Errorf("Format(%v, %s) = %q, want %q", c.v, c.u, got, c.want)
		}
	}
}

func TestPercentNeverRoundsToNothingOrToAll(t *testing.T) {
	for _, c := range []struct {
		v    float64
		want string
	}{
		{0, "0 %"}, {1, "100 %"}, {0.5, "50.0 %"}, {0.13795, "13.8 %"}, {0.0068, "0.68 %"}, {0.0099, "0.99 %"},
		{0.00996, "1.0 %"}, {0.00001, "<0.01 %"}, {-0.00001, "0 %"}, {0.99, "99.0 %"}, {0.9923, "99.23 %"}, {0.9997, "99.97 %"},
		{0.999999, ">99.99 %"}, {1.0004, "100 %"}, {1.005, "100.5 %"}, {12.5, "1,250.0 %"}, {-0.25, "-25.0 %"}, {math.Inf(1), "unknown"},
		{1e308, "unknown"},
	} {
		if got := unit.Percent(c.v); got != c.want {
			t.Errorf("Percent(%v) = %q, want %q", c.v, got, c.want)
		}
	}
}

func TestDeltasCarryTheirSign(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{unit.Delta(1200000, report.Nanoseconds), "+1.2 ms"},
		{unit.Delta(-512, report.Bytes), "-512 B"},
		{unit.Delta(0, report.Nanoseconds), "0 ns"},
		{unit.Delta(0.021, report.Ratio), "+2.1 pp"},
		{unit.Change(0.00001), "±<0.01 %"}, {unit.Change(-0.00001), "±<0.01 %"}, {unit.Delta(0.00001, report.Ratio), "<+0.01 pp"},
		{unit.Delta(3, report.Count), "+3"},
		{unit.Change(0.034), "+3.4 %"},
		{unit.Change(-0.5), "-50.0 %"}, {unit.Change(0.9994), "+99.9 %"}, {unit.Change(0.9996), "+99.96 %"}, {unit.Change(1.0001), "+100 %"},
		{unit.Change(math.Inf(1)), "unknown"}, {unit.Change(1e308), "unknown"}, {unit.Delta(math.NaN(), report.Bytes), "unknown"},
		{unit.Change(0), "0 %"},
		{unit.Common(report.Nanoseconds, 1e6, 2e6).Delta(1.5e6), "+1.50"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestCommonScaleOfAColumn(t *testing.T) {
	for _, c := range []struct {
		why    string
		u      string
		values []float64
		header string
		want   string
	}{
		{"empty column", report.Nanoseconds, nil, "T (ns)", ""},
		{"totals that span six orders stay in the unit of the largest", report.Nanoseconds, []float64{272317378, 38226009, 2016}, "T (ms)", "272.317 38.226 0.002"},
		{"means that span three orders use the smaller unit", report.Nanoseconds, []float64{4004667, 162664, 3120}, "T (µs)", "4,004.67 162.66 3.12"},
		{"calls from 0.3 µs to 12 ms", report.Nanoseconds, []float64{12643000, 340}, "T (µs)", "12,643.000 0.340"},
		{"two digits are enough where the largest would get long", report.Nanoseconds, []float64{96714752, 50000}, "T (ms)", "96.715 0.050"},
		{"sizes that no unit can show together", report.Bytes, []float64{8046134272, 272}, "T (GB)", "8.046 <0.001"},
		{"rates that one unit can just show", report.BytesPerSec, []float64{1420216e6, 10.2e6}, "T (GB/s)", "1,420.216 0.010"},
		{"rounding to zero shows", report.Nanoseconds, []float64{272317378, 12, 0}, "T (ms)", "272.317 <0.001 0.000"},
		{"whole ns need no decimals", report.Nanoseconds, []float64{832, 12}, "T (ns)", "832 12"},
		{"counts", report.Count, []float64{1234567, 3}, "T", "1,234,567 3"},
		{"mean counts", report.Count, []float64{119.5, 3}, "T", "119.50 3.00"},
		{"shares", report.Ratio, []float64{0.509, 0.0001, 0, 1, 0.99999}, "T (%)", "50.9 <0.1 0.0 100.0 >99.9"},
		{"tiny shares", report.Ratio, []float64{0.0051}, "T (%)", "0.51"},
		{"sizes", report.Bytes, []float64{50950507584, 59368472576}, "T (GB)", "51.0 59.4"},
		{"negative", report.Nanoseconds, []float64{-1500, 2500}, "T (µs)", "-1.50 2.50"},
	} {
		s := unit.Common(c.u, c.values...)
		var got []string
		for _, v := range c.values {
			got = append(got, s.Format(v))
		}
		if s.Header("T") != c.header || strings.Join(got, " ") != c.want {
			t.Errorf("%s: %s: %s, want %s: %s", c.why, s.Header("T"), strings.Join(got, " "), c.header, c.want)
		}
	}
}

func TestMomentsMatchTheTimeline(t *testing.T) {
	if got := unit.Moments().Format(12345678901); got != "12.345679" {
		t.Error(got)
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		s    string
		v    float64
		want string
	}{
		{"200us", 200e3, report.Nanoseconds}, {"200 µs", 200e3, report.Nanoseconds}, {"200μs", 200e3, report.Nanoseconds},
		{"2 ms", 2e6, report.Nanoseconds}, {"1.5s", 1.5e9, report.Nanoseconds}, {"2min", 120e9, report.Nanoseconds},
		{"0.1s", 1e8, report.Nanoseconds}, {"+3ns", 3, report.Nanoseconds}, {"-3ns", -3, report.Nanoseconds},
		{"3%", 0.03, report.Ratio}, {"13.8 %", 0.138, report.Ratio}, {"2.1pp", 0.021, report.Ratio},
		{"512MiB", 512 << 20, report.Bytes}, {"1GB", 1e9, report.Bytes}, {"64KB", 64000, report.Bytes},
		{"27.7 GB/s", 27.7e9, report.BytesPerSec}, {"50,000/s", 50000, report.PerSecond},
		{"1,234,567", 1234567, report.Count}, {"7", 7, report.Count}, {"989 TFLOP", 989e12, report.Flop},
	} {
		q, err := unit.Parse(c.s)
		if err != nil || q.Value != c.v || q.Unit != c.want {
			t.Errorf("Parse(%q) = %v %s, %v, want %v %s", c.s, q.Value, q.Unit, err, c.v, c.want)
		}
	}
	for _, s := range []string{
		"", " ", "ms", "1.ms", ".5s", "1,2ms", "1,2345", "12,34,567", "1e3us", "0x10", "NaN", "inf", "1_000", "5m", "5Mb", "5 MS",
		"--5ms", "5..5s", "5 ms 3", "١ms", "5ms\n", strings.Repeat("9", 80) + "s",
	} {
		if q, err := unit.Parse(s); err == nil {
			t.Errorf("Parse(%q) = %v %s, want an error", s, q.Value, q.Unit)
		}
	}
}

var units = []string{report.Nanoseconds, report.Bytes, report.BytesPerSec, report.Flop, report.PerSecond, report.Count, report.Ratio, report.Watts, report.Joules}

func TestFormatRoundTripsWithinItsDigits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.SampledFrom(units).Draw(t, "unit")
		v := float64(rapid.Int64Range(-1<<53, 1<<53).Draw(t, "n"))
		tolerance := math.Abs(v) * 5.0001e-4
		if u == report.Ratio {
			v /= 1 << 40
			tolerance = 0.00050001
		}
		text := unit.Format(v, u)
		if strings.ContainsAny(text, "<>") {
			return
		}
		q, err := unit.Parse(text)
		if err != nil {
			t.Fatalf("%v %s is written as %q: %v", v, u, text, err)
		}
		if q.Unit != u && v != 0 || math.Abs(q.Value-v) > tolerance {
			t.Fatalf("%v %s is written as %q and read as %v %s", v, u, text, q.Value, q.Unit)
		}
		if again := unit.Format(q.Value, u); again != text {
			t.Fatalf("%q is written again as %q", text, again)
		}
	})
}

func TestScaleRoundTripsWithinHalfAStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.SampledFrom(units).Draw(t, "unit")
		values := rapid.SliceOfN(rapid.Float64Range(-1e14, 1e14), 1, 8).Draw(t, "values")
		s := unit.Common(u, values...)
		if s.Decimals < 0 || s.Decimals > 3 {
			t.Fatalf("%+v", s)
		}
		for _, v := range values {
			text := s.Format(v)
			if strings.ContainsAny(text, "<>") {
				continue
			}
			q, err := unit.Parse(text + s.Symbol)
			if err != nil {
				t.Fatal(err)
			}
			half := math.Pow10(s.Exp10-s.Decimals) * 0.5000001
			if math.Abs(q.Value-v) > half+math.Abs(v)*1e-15 {
				t.Fatalf("%v is %q in %+v: read as %v", v, text, s, q.Value)
			}
		}
	})
}

func TestShiftIsExact(t *testing.T) {
	if got := unit.Shift("124533600", -6); got != "124.5336" {
		t.Error(got)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strconv.FormatInt(rapid.Int64().Draw(t, "n"), 10)
		if rapid.Bool().Draw(t, "fraction") {
			text = strconv.FormatFloat(rapid.Float64Range(-1e20, 1e20).Draw(t, "f"), 'f', -1, 64)
		}
		k := rapid.IntRange(-30, 30).Draw(t, "exp10")
		got, ok := new(big.Rat).SetString(unit.Shift(text, k))
		want, _ := new(big.Rat).SetString(text)
		ten := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(k, -k))), nil))
		if k < 0 {
			ten.Inv(ten)
		}
		if !ok || got.Cmp(want.Mul(want, ten)) != 0 {
			t.Fatalf("Shift(%q, %d) = %q", text, k, unit.Shift(text, k))
		}
		back, _ := new(big.Rat).SetString(unit.Shift(unit.Shift(text, k), -k))
		if orig, _ := new(big.Rat).SetString(text); back.Cmp(orig) != 0 {
			t.Fatalf("Shift(%q, %d) and back is %v", text, k, back)
		}
	})
}

func TestIntIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64().Draw(t, "n")
		if got := strings.ReplaceAll(unit.Int(n), ",", ""); got != strconv.FormatInt(n, 10) {
			t.Fatalf("%d is written as %s", n, unit.Int(n))
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"200us", "3%", "512MiB", "1.5s", "2 ms", "1,234/s", "-0", "µs", "9e9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q, err := unit.Parse(s)
		if err != nil {
			if len(err.Error()) > 1024 {
				t.Fatalf("error of %d bytes", len(err.Error()))
			}
			return
		}
		if math.IsNaN(q.Value) || math.IsInf(q.Value, 0) {
			t.Fatalf("Parse(%q) = %v", s, q.Value)
		}
		text := unit.Format(q.Value, q.Unit)
		if strings.ContainsAny(text, "<>e") { // bounds and huge values are for people only
			return
		}
		if _, err := unit.Parse(text); err != nil {
			t.Fatalf("Parse(%q) gives %q, which does not parse: %v", s, text, err)
		}
	})
}
