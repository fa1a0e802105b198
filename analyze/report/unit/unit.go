// Package unit turns base-unit values into text for people, and what people type into base-unit values.
//
// A report holds nanoseconds, bytes and ratios ([report.Nanoseconds] and its neighbours). This package is the only
// place that scales them. Three rules hold everywhere:
//
//   - Sizes are decimal, as nsys prints them: 1 kB = 1000 bytes, 1 GB = 10^9 bytes. The binary units KiB, MiB, GiB …
//     are read by [Parse], and never written.
//   - A single value has up to four significant digits ([Format]); the values of a column share one unit and one number
//     of decimals ([Common]), so that they can be compared by eye.
//   - Rounding never turns something into nothing or a part into the whole: a share of 0.00001 is "<0.01 %", one of
//     0.99999 is ">99.99 %".
//
// The text is ASCII but for the µ of microseconds, with a dot as decimal point and a comma between thousands.
package unit

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
)

// step is one unit of a kind: 1 symbol = 10^exp base units.
type step struct {
	exp    int
	symbol string
}

// ladders are the units in which values of a base unit are written, smallest first.
var ladders = map[string][]step{
	report.Nanoseconds: {{0, "ns"}, {3, "µs"}, {6, "ms"}, {9, "s"}},
	report.Bytes:       {{0, "B"}, {3, "kB"}, {6, "MB"}, {9, "GB"}, {12, "TB"}, {15, "PB"}},
	report.BytesPerSec: {{0, "B/s"}, {3, "kB/s"}, {6, "MB/s"}, {9, "GB/s"}, {12, "TB/s"}, {15, "PB/s"}},
	report.Flop: {{0, "FLOP"}, {3, "kFLOP"}, {6, "MFLOP"}, {9, "GFLOP"}, {12, "TFLOP"}, {15, "PFLOP"},
		{18, "EFLOP"}},
	report.FlopPerSec: {{0, "FLOP/s"}, {3, "kFLOP/s"}, {6, "MFLOP/s"}, {9, "GFLOP/s"}, {12, "TFLOP/s"}, {15, "PFLOP/s"},
		{18, "EFLOP/s"}},
	report.PerSecond: {{0, "/s"}, {9, "G/s"}, {12, "T/s"}, {15, "P/s"}}, // counts below, FLOP above
	report.Watts:     {{-3, "mW"}, {0, "W"}, {3, "kW"}},
	report.Joules:    {{-3, "mJ"}, {0, "J"}, {3, "kJ"}, {6, "MJ"}},
	report.Ratio:     {{-2, "%"}},
	report.Count:     {{0, ""}},
	report.Money:     {{0, ""}},
}

// steps returns the units of a base unit; one that is not known is written as it is.
func steps(u string) []step {
	if list := ladders[u]; list != nil {
		return list
	}
	return []step{{0, u}}
}

// Join puts a number and a unit symbol together: "12 ms", "12 %", but "12" and "12/s".
func Join(number, symbol string) string {
	if symbol == "" || symbol[0] == '/' {
		return number + symbol
	}
	return number + " " + symbol
}

const significant = 4

// unknown stands for what is not finite.
const unknown = "unknown"

// Format writes v, a value in base unit u, in the unit that suits its size, with up to four significant digits and no
// trailing zeros: "1.234 ms", "2.1 µs", "27.7 GB/s", "12,345/s". Integers and rates keep all digits before the point.
// Ratios become percent, see [Percent].
func Format(v float64, u string) string {
	if u == report.Ratio {
		return Percent(v)
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return unknown
	}
	list := steps(u)
	if v == 0 {
		return Join("0", list[0].symbol)
	}
	digits, exp := decimal(math.Abs(v), significant)
	if exp < -6 || exp > 24 {
		return Join(strconv.FormatFloat(v, 'g', significant, 64), list[0].symbol)
	}
	s := list[0]
	for _, next := range list[1:] {
		if exp >= next.exp {
			s = next
		}
	}
	if whole := exp - s.exp + 1; whole > significant { // beyond the largest unit: keep the digits before the point
		digits, exp = decimal(math.Abs(v), whole)
	}
	number := thousands(Shift(digits, exp-s.exp-len(digits)+1))
	if v < 0 {
		number = "-" + number
	}
	return Join(number, s.symbol)
}

// decimal rounds v > 0 to n significant digits and returns them with the decimal exponent of the first one.
func decimal(v float64, n int) (digits string, exp int) {
	s := strconv.FormatFloat(v, 'e', n-1, 64)
	mantissa, e, _ := strings.Cut(s, "e")
	exp, _ = strconv.Atoi(e) // FormatFloat wrote it
	return strings.Replace(mantissa, ".", "", 1), exp
}

// Int writes an integer exactly, with a comma between thousands.
func Int[T int | int64](n T) string { return thousands(strconv.FormatInt(int64(n), 10)) }

// thousands puts commas into the digits before the decimal point.
func thousands(number string) string {
	for at := strings.IndexByte(number+".", '.') - 3; at > 0 && number[at-1] != '-'; at -= 3 {
		number = number[:at] + "," + number[at:]
	}
	return number
}

// Percent writes a ratio as percent with one decimal, two where it is within a percent of 0 or of 100: "13.8 %",
// "0.68 %", "99.97 %", "<0.01 %". Exactly 0 is "0 %", as is a negative ratio that rounds to it; 1, and more that rounds
// to it, is "100 %".
func Percent(ratio float64) string {
	if math.IsNaN(ratio) || math.IsInf(ratio*100, 0) {
		return unknown
	}
	sign, above, a := "", ">", math.Abs(ratio)
	if ratio < 0 {
		sign, above = "-", "<-"
	}
	p := a * 100
	switch {
	case a == 0, p < 0.005 && ratio < 0:
		return "0 %"
	case p < 0.005:
		return "<0.01 %"
	case a >= 1 && a < 1.0005:
		return sign + "100 %"
	case a < 1 && p >= 99.995:
		return above + "99.99 %"
	case p < 0.995 || a < 1 && p >= 99.05:
		return sign + strconv.FormatFloat(p, 'f', 2, 64) + " %"
	case p > 1e15:
		return sign + strconv.FormatFloat(p, 'g', significant, 64) + " %"
	}
	return sign + thousands(strconv.FormatFloat(p, 'f', 1, 64)) + " %"
}

// Delta writes a difference of two values in base unit u with its sign: "+1.2 ms", "-512 B". A difference of two ratios
// is in percentage points, "+2.1 pp". No difference is "0" without a sign.
func Delta(v float64, u string) string {
	s := Format(v, u)
	if u == report.Ratio {
		s = strings.TrimSuffix(s, "%") + "pp"
	}
	return signed(s, v)
}

// Change writes a relative change, head ÷ base − 1, in percent with its sign: "+3.4 %". One that rounds to nothing is
// "±<0.01 %".
func Change(relative float64) string {
	if relative != 0 && math.Abs(relative) < 0.00005 {
		return "±<0.01 %"
	}
	if relative > 0.99 && relative < 0.9995 { // a change has nothing that it could round to
		return "+" + strconv.FormatFloat(relative*100, 'f', 1, 64) + " %"
	}
	return signed(Percent(relative), relative)
}

func signed(s string, v float64) string {
	switch {
	case v <= 0 || s == unknown:
		return s
	case s[0] == '<' || s[0] == '>':
		return s[:1] + "+" + s[1:]
	}
	return "+" + s
}

// Shift multiplies a decimal number, written without exponent, by 10^exp10 by moving its point: exact for any number of
// digits. Trailing zeros behind the point go.
func Shift(number string, exp10 int) string {
	digits, negative := strings.CutPrefix(number, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	point := len(whole) + exp10
	digits = strings.Repeat("0", max(-point, 0)) + whole + fraction + strings.Repeat("0", max(exp10-len(fraction), 0))
	point = max(point, 0)
	whole, fraction = cmp.Or(strings.TrimLeft(digits[:point], "0"), "0"), strings.TrimRight(digits[point:], "0")
	if fraction != "" {
		whole += "." + fraction
	}
	if negative && whole != "0" { // never -0
		return "-" + whole
	}
	return whole
}
