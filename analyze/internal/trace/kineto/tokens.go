package kineto

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// tokens reads JSON as profilers write it, from front to back, in constant memory. It accepts the errors of real files:
// NaN and Infinity are values, a comma may precede a closing bracket, a key may occur twice (the last one counts). At
// anything else it stops with errCut.
type tokens struct {
	rd   io.Reader
	buf  []byte // bytes that were read and are not consumed: buf[at:end]
	at   int
	end  int
	text []byte // of the last string or scalar
	// half is the last rune that an escape stood for, and where it ends in text: it may be the first of a surrogate pair.
	half    rune
	halfEnd int
	err     error // of rd, once it has one
	// loose counts places that are read although they are not JSON.
	loose int64
}

// errCut is the end of the readable part: the file is truncated or not JSON from there on.
var errCut = errors.New("no JSON from here on")

const (
	bufferSize = 1 << 18
	maxText    = 16 << 10 // of a string in bytes that is kept; the rest is skipped
)

// newTokens reads from behind the byte order mark, if there is one.
func newTokens(rd io.Reader) *tokens {
	head := make([]byte, len("\ufeff"))
	n, _ := io.ReadFull(rd, head) // what cannot be read, reading tells again
	if string(head[:n]) != "\ufeff" {
		rd = io.MultiReader(bytes.NewReader(head[:n]), rd)
	}
	return &tokens{rd: rd, buf: make([]byte, bufferSize)}
}

// more reads on; false at the end of the file.
func (t *tokens) more() bool {
	if t.at < t.end {
		return true
	}
	for t.err == nil {
		var n int
		n, t.err = t.rd.Read(t.buf)
		if t.at, t.end = 0, n; n > 0 {
			return true
		}
	}
	return false
}

// peek is the next byte that is not white space; 0 at the end.
func (t *tokens) peek() byte {
	for t.more() {
		for ; t.at < t.end; t.at++ {
			switch c := t.buf[t.at]; c {
			case ' ', '\t', '\n', '\r':
			default:
				return c
			}
		}
	}
	return 0
}

// take consumes the next byte if it is c.
func (t *tokens) take(c byte) bool {
	if t.peek() != c {
		return false
	}
	t.at++
	return true
}

// string reads a string into text, without its escapes.
func (t *tokens) string() error {
	if !t.take('"') {
		return errCut
	}
	t.text, t.half = t.text[:0], 0
	for t.more() {
		rest := t.buf[t.at:t.end]
		n := bytes.IndexAny(rest, "\"\\")
		if n < 0 {
			n = len(rest)
		}
		t.keep(rest[:n])
		if t.at += n; n == len(rest) {
			continue
		}
		c := t.buf[t.at]
		if t.at++; c == '"' {
			return nil
		}
		if err := t.escape(); err != nil {
			return err
		}
	}
	return errCut
}

func (t *tokens) keep(b []byte) {
	if room := maxText - len(t.text); room > 0 {
		t.text = append(t.text, b[:min(room, len(b))]...)
	}
}

func (t *tokens) escape() error {
	if !t.more() {
		return errCut
	}
	c := t.buf[t.at]
	t.at++
	switch c {
	case 'n':
		c = '\n'
	case 't':
		c = '\t'
	case 'r', 'b', 'f':
		c = ' '
	case 'u':
		var hex [4]byte
		for i := range hex {
			if !t.more() {
				return errCut
			}
			hex[i] = t.buf[t.at]
			t.at++
		}
		v, err := strconv.ParseUint(string(hex[:]), 16, 32)
		if err != nil {
			return errCut
		}
		r := rune(v)
		if whole := utf16.DecodeRune(t.half, r); whole != utf8.RuneError && t.halfEnd == len(t.text) && t.halfEnd < maxText {
			r, t.text = whole, t.text[:t.halfEnd-utf8.RuneLen(utf8.RuneError)]
		}
		var b [utf8.UTFMax]byte
		t.keep(b[:utf8.EncodeRune(b[:], r)]) // half a surrogate pair is U+FFFD
		t.half, t.halfEnd = r, len(t.text)
		return nil
	}
	t.keep([]byte{c})
	return nil
}

// scalar reads a number or a word into text.
func (t *tokens) scalar() error {
	t.text = t.text[:0]
	t.peek()
	for t.more() {
		switch c := t.buf[t.at]; c {
		case ',', ']', '}', ' ', '\t', '\n', '\r':
			if len(t.text) == 0 {
				return errCut
			}
			if c := t.text[len(t.text)-1]; c == 'N' || c == 'y' { // NaN, Infinity
				t.loose++
			}
			return nil
		case '"', '{', '[', ':':
			return errCut
		default:
			t.keep(t.buf[t.at : t.at+1])
			t.at++
		}
	}
	return errCut
}

// skip skips a value of any kind and depth.
func (t *tokens) skip() error {
	depth := 0
	for {
		var err error
		switch t.peek() {
		case 0:
			return errCut
		case '"':
			err = t.string()
		case '{', '[':
			depth++
			t.at++
			continue
		case '}', ']':
			if depth--; depth < 0 {
				return errCut
			}
			t.at++
		case ',', ':':
			if depth == 0 {
				return errCut
			}
			t.at++
			continue
		default:
			err = t.scalar()
		}
		if err != nil {
			return err
		}
		if depth == 0 {
			return nil
		}
	}
}

// members calls each for what is between two brackets, separated by commas. A value of another kind is skipped.
func (t *tokens) members(begin, end byte, each func() error) error {
	if !t.take(begin) {
		return t.skip()
	}
	for comma := false; ; comma = true {
		if t.take(end) {
			if comma {
				t.loose++
			}
			return nil
		}
		if err := each(); err != nil {
			return err
		}
		if !t.take(',') {
			if !t.take(end) {
				return errCut
			}
			return nil
		}
	}
}

// object calls each for every key of an object, which has to read or skip the value.
func (t *tokens) object(each func(key []byte) error) error {
	return t.members('{', '}', func() error {
		if err := t.string(); err != nil {
			return err
		}
		key := t.text
		if !t.take(':') {
			return errCut
		}
		return each(key)
	})
}

// array calls each for every element of an array, which has to read or skip it.
func (t *tokens) array(each func() error) error { return t.members('[', ']', each) }

// value reads a string or a scalar into text; anything else is skipped and false.
func (t *tokens) value() (ok bool, err error) {
	switch t.peek() {
	case '"':
		return true, t.string()
	case '{', '[':
		return false, t.skip()
	}
	return true, t.scalar()
}
