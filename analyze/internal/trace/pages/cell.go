package pages

import (
	"math"
	"strconv"
)

// Kind is the storage class of a value.
type Kind uint8

// Storage classes.
const (
	Null Kind = iota
	Int
	Float
	Text
	Blob
)

// Cell is one value of one row.
type Cell struct {
	Kind Kind
	Bits int64  // an integer, or the bits of a float
	S    string // text, or the bytes of a blob
}

// IntCell is an integer.
func IntCell(v int64) Cell { return Cell{Kind: Int, Bits: v} }

// FloatCell is a floating-point number.
func FloatCell(v float64) Cell { return Cell{Kind: Float, Bits: int64(math.Float64bits(v))} }

// TextCell is a text.
func TextCell(s string) Cell { return Cell{Kind: Text, S: s} }

// Float is the value of a Float.
func (c *Cell) Float() float64 { return math.Float64frombits(uint64(c.Bits)) }

// Whole returns a cell as an integer. A float without a fraction and a number as text count, as tools that rewrote an
// export may have changed the types of its columns.
func (c *Cell) Whole() (int64, bool) {
	if c.Kind == Int {
		return c.Bits, true
	}
	return c.converted()
}

func (c *Cell) converted() (int64, bool) {
	switch c.Kind {
	case Float:
		if v := int64(c.Float()); float64(v) == c.Float() {
			return v, true
		}
	case Text:
		if v, err := strconv.ParseInt(c.S, 10, 64); err == nil {
			return v, true
		}
	}
	return 0, false
}
