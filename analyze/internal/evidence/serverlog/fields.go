package serverlog

import (
	"bytes"
	"math"
)

// field is the value of key in Python's key=value or 'key': value, without quotes; nil where it is not there. Strings
// with escaped quotes end early, which no value that is taken has.
func field(m []byte, key string) []byte {
	for at := 0; at < len(m); {
		i := bytes.Index(m[at:], []byte(key))
		if i < 0 {
			return nil
		}
		i += at
		at = i + len(key)
		if i > 0 && isWord(m[i-1]) && m[i-1] != '\'' && m[i-1] != '"' {
			continue
		}
		rest := m[at:]
		switch {
		case hasPrefix(rest, "="):
			rest = rest[1:]
		case hasPrefix(rest, "': "), hasPrefix(rest, "\": "):
			rest = rest[3:]
		default:
			continue
		}
		if len(rest) == 0 {
			return nil
		}
		if q := rest[0]; q == '\'' || q == '"' {
			if end := bytes.IndexByte(rest[1:], q); end >= 0 {
				return rest[1 : 1+end]
			}
			return nil
		}
		if rest[0] == '<' {
			return until(rest, ">")
		}
		return until(rest, ",)} ")
	}
	return nil
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

// numberOf is the number behind key, or NaN.
func numberOf(m []byte, key string) float64 {
	if v, ok := numberAfter(m, key); ok {
		return v
	}
	return math.NaN()
}

func setFirst(p *int64, v int64) {
	if *p == 0 && v > 0 {
		*p = v
	}
}

// setLeast keeps the smallest: each engine or rank states its own, and the smallest is what counts.
func setLeast(p *int64, v int64) {
	if v > 0 && (*p == 0 || v < *p) {
		*p = v
	}
}

func setText(p *string, v string) {
	if *p == "" {
		*p = v
	}
}

func setYes(p *string, v []byte) {
	switch string(v) {
	case "True":
		*p = "yes"
	case "False":
		*p = "no"
	}
}

// most and least keep the largest and the smallest of what the ranks state; NaN is nothing.
func most(p *float64, v float64) {
	if v > *p || math.IsNaN(*p) {
		*p = v
	}
}

func least(p *float64, v float64) {
	if v < *p || math.IsNaN(*p) {
		*p = v
	}
}

func add(p *float64, v float64) {
	switch {
	case math.IsNaN(v):
	case math.IsNaN(*p):
		*p = v
	default:
		*p += v
	}
}
