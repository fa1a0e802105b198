package unit

import (
	"math"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
)

// Scale is one unit and one number of decimals for many values of the same base unit.
type Scale struct {
	Base     string // base unit of the values
	Symbol   string // what to write beside the numbers or in the header: ms, GB, %, or empty
	Exp10    int    // 1 Symbol = 10^Exp10 base units
	Decimals int    // digits behind the point, 0..3
}

// Common chooses the scale of a column.
//
// The unit is that of the largest value, or a smaller one where the smallest value other than zero would show fewer
// than three digits (be less than 0.1) and the largest still has no more than four before the point, or five where the
// smallest would show only one. A column that spans more than any unit can show is written in the unit of its largest
// value. There are as many decimals as give the smallest value three digits, from one to three, and none if all
// values are whole. Percent have one decimal, two if all of them are below 1 %.
func Common(u string, values ...float64) Scale {
	least, most, whole := spread(values)
	list := steps(u)
	s := Scale{Base: u, Symbol: list[0].symbol, Exp10: list[0].exp}
	if most == 0 {
		return s
	}
	if u == report.Ratio {
		s.Decimals = 1
		if most < 0.01 {
			s.Decimals = 2
		}
		return s
	}
	top := 0
	for i, step := range list {
		if most >= math.Pow10(step.exp) {
			top = i
		}
	}
	at := top
	for ; at > 0; at-- {
		here, lower := math.Pow10(list[at].exp), math.Pow10(list[at-1].exp)
		if least >= 0.1*here || most >= 1e5*lower || least >= 0.01*here && most >= 1e4*lower {
			break
		}
	}
	if least < 0.001*math.Pow10(list[at].exp) {
		at = top
	}
	s.Symbol, s.Exp10 = list[at].symbol, list[at].exp
	if whole && s.Exp10 == 0 {
		return s
	}
	first := int(math.Floor(math.Log10(least / math.Pow10(s.Exp10)))) // 0 for 1..9.99, 1 for 10..99.9
	s.Decimals = min(max(2-first, 1), 3)
	if s.Exp10 == 0 {
		s.Decimals = min(s.Decimals, 2)
	}
	return s
}

// spread returns the smallest and the largest absolute value other than zero, and whether all values are integers.
func spread(values []float64) (least, most float64, whole bool) {
	whole = true
	for _, v := range values {
		a := math.Abs(v)
		if a == 0 || math.IsNaN(a) || math.IsInf(a, 0) {
			continue
		}
		if least == 0 || a < least {
			least = a
		}
		most = max(most, a)
		whole = whole && a == math.Trunc(a)
	}
	return least, most, whole
}

// Format writes the number without its unit: "1,234.50". A value that rounds to zero without being zero is "<0.01"
// (with the scale's decimals), and a share that rounds to 100 without being 1 is ">99.9".
func (s Scale) Format(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return unknown
	}
	a := math.Abs(v) / math.Pow10(s.Exp10)
	if s.Base == report.Ratio {
		a = math.Abs(v) * 100
	}
	if a > 1e18 {
		return strconv.FormatFloat(v/math.Pow10(s.Exp10), 'g', significant, 64)
	}
	text := strconv.FormatFloat(a, 'f', s.Decimals, 64)
	step := strconv.FormatFloat(math.Pow10(-s.Decimals), 'f', s.Decimals, 64)
	back, _ := strconv.ParseFloat(text, 64) // FormatFloat wrote it
	switch {
	case v == 0:
		return text
	case back == 0 && v > 0:
		return "<" + step
	case back == 0:
		return ">-" + step
	case s.Base == report.Ratio && v > 0 && v < 1 && back == 100:
		return ">" + strconv.FormatFloat(100-math.Pow10(-s.Decimals), 'f', s.Decimals, 64)
	case v < 0:
		return "-" + thousands(text)
	}
	return thousands(text)
}

// Delta writes the number with its sign, without its unit.
func (s Scale) Delta(v float64) string { return signed(s.Format(v), v) }

// Header adds the unit to a column title: "Total (ms)". A title that says "per second" needs none.
func (s Scale) Header(title string) string {
	if s.Symbol == "" || s.Base == report.PerSecond && strings.Contains(strings.ToLower(title), "per second") {
		return title
	}
	return title + " (" + s.Symbol + ")"
}

// Moments chooses the scale of a column of points in time: seconds with six decimals, as the Nsight Systems timeline
// shows them.
func Moments() Scale {
	return Scale{Base: report.Nanoseconds, Symbol: "s", Exp10: 9, Decimals: 6}
}
