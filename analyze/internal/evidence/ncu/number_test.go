package ncu

import (
	"math"
	"testing"
)

// Only cells that can be read one way tell how a file writes numbers.
func TestDecimalSign(t *testing.T) {
	for cell, want := range map[string]style{
		"6.75": point, "0.123": point, "9.621632": point, "1234.567": point, "1,234,567": point, "9,495.42": point, "1,234,567.8": point, ".5": point, "-3.1": point,
		"6,75": comma, "0,123": comma, "9,621632": comma, "2.508.800": comma, "9.495,42": comma, "12690040,5": comma,
	} {
		if got, ok := decimalSign(cell); !ok || got != want {
			t.Errorf("%q says %q (%v), want %q", cell, got, ok, want)
		}
	}
	for _, cell := range []string{"", "288", "13,485", "2.816", "n/a", "no data", "1.2.3", "127.0.0.1", "(32, 4, 1)", "CachePreferNone", "1,23,456", "1,234.5,6"} {
		if got, ok := decimalSign(cell); ok {
			t.Errorf("%q says %q, and can be read either way or not at all", cell, got)
		}
	}
}

// A whole quantity has no decimals: 2.816 bytes are 2,816.
func TestWholeQuantitiesTell(t *testing.T) {
	var v votes
	v.add("2.816", true)
	if s, _ := v.style(); s != comma {
		t.Errorf("2.816 bytes are read with %q for the decimal sign", s)
	}
	v = votes{}
	v.add("1 234,567", false)
	if s, _ := v.style(); s != comma {
		t.Errorf("spaces between thousands: %q for the decimal sign", s)
	}
	v = votes{}
	v.add("2,816", true)
	v.add("2.816", false)
	if s, against := v.style(); s != point || against != 0 {
		t.Errorf("style %q, %d against", s, against)
	}
}

func TestNumbers(t *testing.T) {
	mega, percent := scale{dim: byteCount, exp: 6}, scale{dim: ratio, exp: -2}
	for _, c := range []struct {
		style        style
		cell         string
		to           scale
		value, digit float64
	}{
		{point, "6.75", scale{duration, 3, 0}, 6750, 10},
		{point, "2.33", mega, 2330000, 10000},
		{point, "9.621632", scale{duration, 6, 0}, 9621632, 1},
		{point, "19.66", percent, 0.1966, 0.0001},
		{point, "13,485", scale{}, 13485, 1},
		{point, "1.8e-05", scale{duration, 9, 0}, 18000, 1000},
		{point, "5 (0x1: 2; 0x2: 3)", scale{}, 5, 1},
		{point, "100%", percent, 1, 0.01},
		{comma, "9.495,42", scale{}, 9495.42, 0.01},
		{comma, "2.508.800", scale{}, 2508800, 1},
		{comma, "6,75", scale{duration, 3, 0}, 6750, 10},
		{comma, "1 234,56", scale{}, 1234.56, 0.01},
		{comma, "12\u202f690\u202f040,5", scale{}, 12690040.5, 0.1},
		{point, "1'234.56", scale{}, 1234.56, 0.01},
		{point, "9\u2019495", scale{}, 9495, 1},
		{point, "2", scale{byteCount, 0, 1024}, 2048, 1024},
	} {
		n, ok := c.style.parse(c.cell, c.to)
		if !ok || n.value != c.value || math.Abs(n.digit-c.digit) > 1e-9*c.digit {
			t.Errorf("%q is %v ± %v (%v), want %v ± %v", c.cell, n.value, n.digit, ok, c.value, c.digit)
		}
	}
	for _, cell := range []string{
		"", "n/a", "no data", "nan", "-nan", "inf", "1e999", "(!) nan", "6,75", "1.2.3", "0x1f", "12 34", "1 2345",
		"1 234 5", "1 234 x", "1, 234", "--1", "1,2345", ".", "e5", "1e",
	} {
		if n, ok := point.parse(cell, scale{}); ok {
			t.Errorf("%q is read as %v", cell, n.value)
		}
	}
}

// The same unit in the words of several versions.
func TestUnits(t *testing.T) {
	for _, c := range []struct {
		texts []string
		want  scale
	}{
		{[]string{"nsecond", "ns"}, scale{duration, 0, 0}},
		{[]string{"usecond", "us", "µs", "USECOND"}, scale{duration, 3, 0}},
		{[]string{"msecond", "ms"}, scale{duration, 6, 0}},
		{[]string{"second", "s"}, scale{duration, 9, 0}},
		{[]string{"byte", "bytes", "B", "byte/block"}, scale{byteCount, 0, 0}},
		{[]string{"Kbyte", "KB", "Kbyte/block"}, scale{byteCount, 3, 0}},
		{[]string{"Mbyte"}, scale{byteCount, 6, 0}},
		{[]string{"KiB"}, scale{byteCount, 0, 1024}},
		{[]string{"byte/second", "byte/s", "B/s"}, scale{byteRate, 0, 0}},
		{[]string{"Gbyte/second", "Gbyte/s", "byte/ns", "byte/nsecond"}, scale{byteRate, 9, 0}},
		{[]string{"Tbyte/s"}, scale{byteRate, 12, 0}},
		{[]string{"Ghz", "cycle/nsecond", "GHz"}, scale{frequency, 9, 0}},
		{[]string{"hz", "cycle/second"}, scale{frequency, 0, 0}},
		{[]string{"inst", "register/thread", "block", "warp", "SM"}, scale{thing, 0, 0}},
		{[]string{"Kinst"}, scale{thing, 3, 0}},
		{[]string{"inst/cycle"}, scale{perCycle, 0, 0}},
		{[]string{"byte/cycle"}, scale{byteCycle, 0, 0}},
		{[]string{"inst/ns"}, scale{perSecond, 9, 0}},
		{[]string{"%", " % "}, scale{ratio, -2, 0}},
		{[]string{""}, scale{}},
		{[]string{"furlong", "xbyte", "byte/parsec", "/", "Kib"}, scale{dim: unreadable}},
	} {
		for _, text := range c.texts {
			if got := parseUnit(text); got != c.want && !(text == "Kib" && got.dim == byteCount) {
				t.Errorf("%q is %+v, want %+v", text, got, c.want)
			}
		}
	}
}
