package ncu

import (
	"math"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// ncu prints numbers by its locale: 1,234.5 or 1.234,5. Which of the two a file has is decided once, from the cells
// that can be read in only one way.

// style is how a file writes numbers: its decimal sign. The other sign groups thousands.
type style byte

const (
	point style = '.'
	comma style = ','
)

// votes counts the cells of a file that can be read in only one way, by style.
type votes [256]int64

// add looks at one cell. A whole quantity has no decimals, which decides cells that are ambiguous alone.
func (v *votes) add(cell string, whole bool) {
	cell = ungrouped(cell)
	s, ok := decimalSign(cell)
	if !ok && whole {
		if i := strings.IndexAny(cell, ".,"); i >= 0 && grouped(cell, cell[i]) {
			s, ok = other(style(cell[i])), true
		}
	}
	if ok {
		v[s]++
	}
}

// style is the notation of most cells, and how many cells differ. Without any such cell the file is read as English.
func (v *votes) style() (s style, against int64) {
	if v[comma] > v[point] {
		return comma, v[point]
	}
	return point, v[comma]
}

// other is the sign that groups thousands.
func other(s style) style { return point + comma - s }

// decimalSign is the decimal sign of a cell that can be read in only one way.
func decimalSign(cell string) (style, bool) {
	cell = strings.TrimLeft(strings.TrimSpace(cell), "+-")
	if cell == "" || strings.Trim(cell, "0123456789.,") != "" {
		return 0, false
	}
	for _, sign := range []style{point, comma} {
		group, at := byte(other(sign)), strings.IndexByte(cell, byte(sign))
		signs, groups := strings.Count(cell, string(rune(sign))), strings.Count(cell, string(rune(group)))
		switch {
		case signs == 1 && groups == 0 && (len(cell)-at-1 != 3 || at > 3 || at == 0 || cell[0] == '0'):
			return sign, true
		case signs > 1 && groups == 0 && grouped(cell, byte(sign)):
			return other(sign), true
		case signs == 1 && groups > 0 && grouped(cell[:at], group) && strings.LastIndexByte(cell, group) < at:
			return sign, true
		}
	}
	return 0, false
}

// grouped reports whether s is digits in groups of three with sign between them.
func grouped(s string, sign byte) bool {
	for i, part := range strings.Split(s, string(sign)) {
		if len(part) != 3 && (i > 0 || len(part) == 0 || len(part) > 3) || strings.Trim(part, "0123456789") != "" {
			return false
		}
	}
	return true
}

// ungrouped is a cell without the spaces or apostrophes by which French and Swiss locales group thousands.
func ungrouped(cell string) string {
	if !strings.ContainsAny(cell, groupSigns) || !spaced().MatchString(cell) {
		return cell
	}
	return strings.Join(strings.FieldsFunc(cell, func(r rune) bool { return strings.ContainsRune(groupSigns, r) }), "")
}

const groupSigns = " '\u2019\u00a0\u202f"

var spaced = pattern.New(`^[+-]?[0-9]{1,3}(?:[` + groupSigns + `][0-9]{3})+(?:[.,][0-9.,]*)?$`)

// number is a value, and one unit of its last printed digit, to which the page rounds.
type number struct{ value, digit float64 }

// parse reads a cell and scales it; n/a, no data, text and infinities are not numbers. Values of single instances that
// follow in parentheses are ignored.
func (s style) parse(cell string, to scale) (number, bool) {
	if i := strings.Index(cell, " ("); i > 0 {
		cell = cell[:i]
	}
	cell = ungrouped(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(cell), "%")))
	exp := 0
	if i := strings.IndexAny(cell, "eE"); i > 0 {
		var err error
		if exp, err = strconv.Atoi(cell[i+1:]); err != nil || exp < -400 || exp > 400 {
			return number{}, false
		}
		cell = cell[:i]
	}
	group := byte(other(s))
	head, decimals, _ := strings.Cut(cell, string(rune(s)))
	digits := strings.TrimLeft(head, "+-")
	switch {
	case len(cell) > maxDigits || len(head)-len(digits) > 1 || digits == "" && decimals == "",
		strings.IndexByte(digits, group) >= 0 && !grouped(digits, group),
		strings.Trim(digits, "0123456789.,") != "" || strings.Trim(decimals, "0123456789") != "":
		return number{}, false
	}
	exp += to.exp
	text := strings.ReplaceAll(head, string(rune(group)), "") + "." + decimals + "e" + strconv.Itoa(exp)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return number{}, false
	}
	n := number{v, math.Pow10(exp - len(decimals))}
	if to.binary != 0 {
		n.value, n.digit = n.value*to.binary, n.digit*to.binary
	}
	return n, true
}

// maxDigits is longer than any number that ncu prints.
const maxDigits = 48
