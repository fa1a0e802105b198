package unit

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
)

// Quantity is a value in a base unit.
type Quantity struct {
	Value float64
	Unit  string // a base unit of package report
}

// symbol is what can stand behind a number: 1 symbol = factor × 10^exp of the base unit.
type symbol struct {
	base   string
	exp    int
	factor float64
}

// symbols maps every accepted symbol to its meaning. Symbols are case-sensitive (MB is not Mb), with both spellings of
// the kilobyte and all three of the microsecond.
var symbols = func() map[string]symbol {
	m := map[string]symbol{
		"":    {report.Count, 0, 1},
		"%":   {report.Ratio, -2, 1},
		"pp":  {report.Ratio, -2, 1},
		"us":  {report.Nanoseconds, 3, 1},
		"μs":  {report.Nanoseconds, 3, 1}, // GREEK SMALL LETTER MU; the µ of Format is MICRO SIGN
		"min": {report.Nanoseconds, 9, 60},
		"h":   {report.Nanoseconds, 9, 3600},
		"KB":  {report.Bytes, 3, 1},
	}
	for _, u := range []string{report.Nanoseconds, report.Bytes, report.BytesPerSec, report.Flop, report.PerSecond,
		report.Watts, report.Joules} {
		for _, s := range steps(u) {
			m[s.symbol] = symbol{u, s.exp, 1}
		}
	}
	for i, p := range []string{"Ki", "Mi", "Gi", "Ti", "Pi"} {
		m[p+"B"] = symbol{report.Bytes, 0, math.Pow(1024, float64(i+1))}
		m[p+"B/s"] = symbol{report.BytesPerSec, 0, math.Pow(1024, float64(i+1))}
	}
	return m
}()

const maxQuantity = 64 // bytes of text that can be a quantity

var decimalNumber = regexp.MustCompile(`^[+-]?(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)(?:\.[0-9]+)?$`)

// Parse reads a number with a unit: "200us", "2 ms", "1.5s", "3%", "512MiB", "27.7 GB/s", "1,234". The number is
// decimal, with an optional sign and optional commas between thousands; there may be spaces before the unit. A number
// without a unit is a count. The value is the nearest float64 to what was written.
func Parse(s string) (Quantity, error) {
	text := strings.Trim(s, " \t")
	if len(text) > maxQuantity {
		return Quantity{}, fmt.Errorf("%d characters are too long for a quantity such as 200us or 3%%", len(text))
	}
	name := strings.TrimLeft(text, "+-0123456789.,")
	number := text[:len(text)-len(name)]
	if !decimalNumber.MatchString(number) {
		return Quantity{}, fmt.Errorf("%q does not begin with a decimal number (commas stand between groups of three digits), "+
			"expected a quantity such as 200us, 1.5 s, 3%% or 512MiB", text)
	}
	name = strings.TrimLeft(name, " ")
	sym, ok := symbols[name]
	if !ok {
		return Quantity{},
			fmt.Errorf("%q: unknown unit %q, expected one of ns, us, ms, s, min, h, B, kB, MB, GB, KiB, MiB, GiB, %%, /s, GB/s", text, name)
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(number, ",", "")+"e"+strconv.Itoa(sym.exp), 64)
	if err != nil || math.IsInf(v*sym.factor, 0) {
		return Quantity{}, fmt.Errorf("%q is out of range", text)
	}
	return Quantity{Value: v * sym.factor, Unit: sym.base}, nil
}
