package serverlog

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
)

// field is the value of key in Python's key=value or 'key': value, without quotes; nil if it is missing. Strings with
// escaped quotes end early, which no value that is taken has.
func field(m []byte, key string) []byte {
	rest := value(m, key)
	if len(rest) == 0 {
		return nil
	}
	switch q := rest[0]; q {
	case '\'', '"':
		if end := bytes.IndexByte(rest[1:], q); end >= 0 {
			return rest[1 : 1+end]
		}
		return nil
	case '<':
		return until(rest, ">")
	}
	return until(rest, ",)} ")
}

// until is b up to the first of the characters.
func until(b []byte, chars string) []byte {
	if i := bytes.IndexAny(b, chars); i >= 0 {
		return b[:i]
	}
	return b
}

func text(b []byte) string { return string(b[:min(len(b), 1025)]) }

// whole is a number that is all of b, or 0.
func whole(b []byte) int64 {
	v, rest, ok := digits(b)
	if !ok || len(rest) > 0 {
		return 0
	}
	return v
}

// wholeOf is the whole number behind key, or 0.
func wholeOf(m []byte, key string) int64 {
	v, _ := wholeAfter(m, key)
	return v
}

// numberOf is the number behind the first of some keys that has one, or NaN.
func numberOf(m []byte, keys ...string) float64 {
	for _, key := range keys {
		if v, ok := numberAfter(m, key); ok {
			return v
		}
	}
	return math.NaN()
}

// setFirst keeps the first value that is stated.
func setFirst[T comparable](p *T, v T) {
	*p = cmp.Or(*p, v)
}

// setLeast keeps the smallest: each engine or rank states its own number, and the smallest counts.
func setLeast(p *int64, v int64) {
	if v > 0 && (*p == 0 || v < *p) {
		*p = v
	}
}

func setYes(p *string, v []byte) {
	*p = cmp.Or(map[string]string{"True": "yes", "False": "no"}[string(v)], *p)
}

// most, least and add keep the largest, the smallest and the sum of the numbers that the ranks state; NaN is none.
func most(p *float64, v float64)  { combine(p, v, math.Max) }
func least(p *float64, v float64) { combine(p, v, math.Min) }
func add(p *float64, v float64)   { combine(p, v, func(a, b float64) float64 { return a + b }) }

func combine(p *float64, v float64, how func(a, b float64) float64) {
	switch {
	case math.IsNaN(v):
	case math.IsNaN(*p):
		*p = v
	default:
		*p = how(*p, v)
	}
}

// digits reads a whole number that may have commas between its digits, and returns the text after it; ok is false if
// there is none or if it does not fit.
func digits(b []byte) (v int64, rest []byte, ok bool) {
	i := 0
	for ; i < len(b); i++ {
		c := b[i]
		if c == ',' && ok && i+3 < len(b) && isDigit(b[i+1]) && isDigit(b[i+2]) && isDigit(b[i+3]) &&
			(i+4 >= len(b) || !isDigit(b[i+4])) {
			continue
		}
		if !isDigit(c) {
			break
		}
		if v > (math.MaxInt64-9)/10 {
			return 0, b, false
		}
		v, ok = v*10+int64(c-'0'), true
	}
	return v, b[i:], ok
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// decimal reads a number with a point, as Python prints floats, and returns the text after it. No form that is read
// uses signs or exponents.
func decimal(b []byte) (v float64, rest []byte, ok bool) {
	n := 0
	for n < len(b) && n < 40 && (isDigit(b[n]) || b[n] == '.') {
		n++
	}
	for n > 0 && b[n-1] == '.' { // the end of a sentence
		n--
	}
	v, err := strconv.ParseFloat(string(b[:n]), 64)
	return v, b[n:], err == nil
}

// after is the text after the first key in b, and whether key was found.
func after(b []byte, key string) ([]byte, bool) {
	_, rest, ok := bytes.Cut(b, []byte(key))
	return rest, ok
}

// between is the text after the first key in b, up to the first of some characters; nil without the key.
func between(b []byte, key, end string) []byte {
	rest, _ := after(b, key)
	return until(rest, end)
}

// numberAfter is the decimal number that follows key in b.
func numberAfter(b []byte, key string) (float64, bool) {
	rest, _ := after(b, key)
	v, _, ok := decimal(bytes.TrimLeft(rest, " "))
	return v, ok
}

// wholeAfter is the whole number that follows key in b.
func wholeAfter(b []byte, key string) (int64, bool) {
	rest, _ := after(b, key)
	v, _, ok := digits(bytes.TrimLeft(rest, " "))
	return v, ok
}

func cutPrefix(b []byte, prefix string) ([]byte, bool) {
	if len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix {
		return b[len(prefix):], true
	}
	return b, false
}

func hasPrefix(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}

// percent is a share, 0..1, that was printed in percent: the nearest float to it, which a division by 100 would miss.
func percent(v float64) float64 { return math.Round(v*1e6) / 1e8 }

// gib is a size that was printed in GiB, in bytes.
func gib(v float64) float64 { return v * (1 << 30) }

// keep appends to a list of bounded length; false if it is full.
func keep[T any](list *[]T, v T, most int) bool {
	if len(*list) >= most {
		return false
	}
	*list = append(*list, v)
	return true
}

// value is the text after "key=", "key = ", "key: " or "'key': "; nil if the key is not there as a whole word.
func value(m []byte, key string) []byte {
	for before := byte(' '); ; {
		i := bytes.Index(m, []byte(key))
		if i < 0 {
			return nil
		}
		if i > 0 {
			before = m[i-1]
		}
		m = m[i+len(key):]
		if rest := skipSpace(bytes.TrimLeft(m, `'"`)); (!isWord(before) || before == '\'' || before == '"') &&
			len(rest) > 0 && (rest[0] == '=' || rest[0] == ':') {
			return skipSpace(rest[1:])
		}
		before = key[len(key)-1]
	}
}
