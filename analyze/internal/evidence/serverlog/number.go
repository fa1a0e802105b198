package serverlog

import (
	"bytes"
	"math"
	"strconv"
)

// digits reads a whole number that may have commas between its digits, and returns what follows it; ok is false where
// none stands there or it does not fit.
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

// decimal reads a number with a point, as Python prints floats, and returns what follows it. Signs and exponents are no
// part of any form that is read.
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

// after is what follows the first key in b, and whether it is there.
func after(b []byte, key string) ([]byte, bool) {
	i := bytes.Index(b, []byte(key))
	if i < 0 {
		return nil, false
	}
	return b[i+len(key):], true
}

// numberAfter is the decimal number that follows key in b.
func numberAfter(b []byte, key string) (float64, bool) {
	rest, ok := after(b, key)
	if !ok {
		return 0, false
	}
	v, _, ok := decimal(bytes.TrimLeft(rest, " "))
	return v, ok
}

// wholeAfter is the whole number that follows key in b.
func wholeAfter(b []byte, key string) (int64, bool) {
	rest, ok := after(b, key)
	if !ok {
		return 0, false
	}
	v, _, ok := digits(bytes.TrimLeft(rest, " "))
	return v, ok
}

// cutPrefix is b without the prefix.
func cutPrefix(b []byte, prefix string) ([]byte, bool) {
	if len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix {
		return b[len(prefix):], true
	}
	return b, false
}

func hasPrefix(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}

// percent is the share that was printed in percent: the nearest float to it, which a division by 100 would miss.
func percent(v float64) float64 { return math.Round(v*1e6) / 1e8 }

// gib is a size that was printed in GiB, in bytes.
func gib(v float64) float64 { return v * (1 << 30) }
