package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unsafe"
)

// Table is rows under typed columns. A cut table ends in an "others" row, so that columns which are sums still sum.
type Table struct {
	ID        string   `json:"id"`
	Title     string   `json:"title"`
	File      string   `json:"file"` // name of its CSV under tables/, or empty if it has none
	Columns   []Column `json:"columns"`
	Rows      [][]Cell `json:"rows"`
	TotalRows int64    `json:"total_rows"` // rows before the table was cut, the others row not counted
	Others    bool     `json:"others"`     // the last row sums what was cut
	// Merge is Leave where a merged run has no such table, OfStep where it has that of its slowest capture, and empty
	// if the rules of the columns say how rows are merged.
	Merge Merge `json:"-"`
}

// Len is the number of rows, the one that sums up others among them. A table that is nil has none.
func (t *Table) Len() int {
	if t == nil {
		return 0
	}
	return len(t.Rows)
}

// Entries is the number of rows without the one that sums up others.
func (t *Table) Entries() int {
	if n := t.Len(); n > 0 && t.Others {
		return n - 1
	}
	return t.Len()
}

// Column is the place of a column by its id, or -1.
func (t *Table) Column(id string) int {
	if t == nil {
		return -1
	}
	return slices.IndexFunc(t.Columns, func(c Column) bool { return c.ID == id })
}

// Cell is null if the table has no such row or column.
func (t *Table) Cell(row int, column string) Cell {
	at := t.Column(column)
	if at < 0 || row >= len(t.Rows) || at >= len(t.Rows[row]) {
		return Null
	}
	return t.Rows[row][at]
}

// Str is the text of a cell, empty if there is none.
func (t *Table) Str(row int, column string) string {
	s, _ := t.Cell(row, column).Str()
	return s
}

// Num is the number in a cell, and Int the integer.
func (t *Table) Num(row int, column string) (float64, bool) { return t.Cell(row, column).Num() }
func (t *Table) Int(row int, column string) (int64, bool)   { return t.Cell(row, column).Int() }

// Whole is an integer cell, -1 if it is not known.
func (t *Table) Whole(row int, column string) int64 {
	if v, ok := t.Int(row, column); ok {
		return v
	}
	return -1
}

// Column is one typed column.
type Column struct {
	ID    string   `json:"id"`
	Title string   `json:"title"`
	Kind  Kind     `json:"kind"`
	Unit  string   `json:"unit"`          // of the cells, in base units; empty for text
	CSV   []CSVCol `json:"csv,omitempty"` // how CSV files write it; one column named ID in base units if empty
	Wide  bool     `json:"wide"`          // detail that narrow formats (terminal, comment) leave out
	Merge Merge    `json:"-"`             // what becomes of its cells when the captures of a run are merged
}

// CSVCol writes a column's base value times 10^Exp10 under another name: total_time_ms is {Name, -6}.
type CSVCol struct {
	Name  string `json:"name"`
	Exp10 int    `json:"exp10"`
}

// Kind of a column's cells.
type Kind string

// Kinds of column. Name cells come from the capture and are hostile text; Text cells are explain's own words.
const (
	Name   Kind = "name"
	Text   Kind = "text"
	Int    Kind = "int"
	Float  Kind = "float"
	Bool   Kind = "bool"
	Moment Kind = "time" // a point in time, ns since the capture's own zero
)

// Cell is a null, an integer, a float, a string or a boolean. The zero value is null. Use [Cell.Equal] to compare
// cells.
//
// Why not any: a cell that is one of five things is checked when it is read, keeps int64 exact through JSON, and sorts
// without reflection. Why a pointer: tables with a row per kernel name are most of a report's memory, and a cell takes
// two words.
type Cell struct {
	_ [0]func()      // not comparable by ==, which would compare where texts lie
	p unsafe.Pointer // nil for null, a mark for the other kinds, or the first byte of a text
	n uint64         // the integer, the float's bits, 1 for true, or the length of the text
}

// marks are what p points to if the cell holds no text, or an empty one.
var marks [4]byte

var (
	isInt   = unsafe.Pointer(&marks[0])
	isFloat = unsafe.Pointer(&marks[1])
	isBool  = unsafe.Pointer(&marks[2])
	isEmpty = unsafe.Pointer(&marks[3])
)

// Null is the unknown cell.
var Null = Cell{}

// I makes an integer cell.
func I(v int64) Cell { return Cell{p: isInt, n: uint64(v)} }

// F makes a float cell.
func F(v float64) Cell { return Cell{p: isFloat, n: math.Float64bits(v)} }

// S makes a text cell.
func S(v string) Cell {
	if v == "" {
		return Cell{p: isEmpty}
	}
	return Cell{p: unsafe.Pointer(unsafe.StringData(v)), n: uint64(len(v))}
}

// B makes a boolean cell.
func B(v bool) Cell {
	if v {
		return Cell{p: isBool, n: 1}
	}
	return Cell{p: isBool}
}

// kind is 0 for null, 'i', 'f', 'b' or 's'.
func (c Cell) kind() byte {
	switch c.p {
	case nil:
		return 0
	case isInt:
		return 'i'
	case isFloat:
		return 'f'
	case isBool:
		return 'b'
	}
	return 's'
}

// Equal reports whether the cells are of one kind and hold the same.
func (c Cell) Equal(d Cell) bool {
	if c.kind() != 's' || d.kind() != 's' {
		return c.p == d.p && c.n == d.n
	}
	a, _ := c.Str()
	b, _ := d.Str()
	return a == b
}

// OrNull is the cell of a text; null if it is empty.
func OrNull(text string) Cell {
	if text == "" {
		return Null
	}
	return S(text)
}

// Plus is the sum of two numbers, an integer if both are; a cell without a number adds nothing.
func (c Cell) Plus(d Cell) Cell {
	x, whole := c.Int()
	y, too := d.Int()
	a, known := c.Num()
	b, other := d.Num()
	switch {
	case !known:
		return d
	case !other:
		return c
	case whole && too:
		return I(x + y)
	}
	return F(a + b)
}

// IsNull reports whether the value is unknown.
func (c Cell) IsNull() bool { return c.p == nil }

// Int returns the integer and whether the cell holds one.
func (c Cell) Int() (int64, bool) {
	if c.p != isInt {
		return 0, false
	}
	return int64(c.n), true
}

// Num returns the cell as a float, and whether it is a number.
func (c Cell) Num() (float64, bool) {
	switch c.p {
	case isInt:
		return float64(int64(c.n)), true
	case isFloat:
		return math.Float64frombits(c.n), true
	}
	return 0, false
}

// Str returns the text and whether the cell holds one.
func (c Cell) Str() (string, bool) {
	switch {
	case c.kind() != 's':
		return "", false
	case c.p == isEmpty:
		return "", true
	}
	return unsafe.String((*byte)(c.p), int(c.n)), true
}

// Bool returns the boolean and whether the cell holds one.
func (c Cell) Bool() (value, ok bool) { return c.p == isBool && c.n == 1, c.p == isBool }

// MarshalJSON writes the cell as a bare JSON value.
func (c Cell) MarshalJSON() ([]byte, error) {
	switch c.p {
	case isInt:
		return strconv.AppendInt(nil, int64(c.n), 10), nil
	case isFloat:
		return json.Marshal(math.Float64frombits(c.n))
	case isBool:
		return strconv.AppendBool(nil, c.n != 0), nil
	}
	held, ok := c.Str()
	if !ok {
		return []byte("null"), nil
	}
	text, err := JSON(held, "")
	return bytes.TrimSpace(text), err
}

// UnmarshalJSON reads a bare JSON value; a number without fraction or exponent becomes an integer.
func (c *Cell) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	*c = Cell{}
	switch b[0] {
	case 'n':
		return nil
	case 't', 'f':
		return read(c, b, B)
	case '"':
		return read(c, b, S)
	case '[', '{':
		return fmt.Errorf("report: a cell is a single value, not %q", b[0])
	}
	if v, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		*c = I(v)
		return nil
	}
	return read(c, b, F)
}

// read makes a cell of a JSON value.
func read[T any](c *Cell, b []byte, of func(T) Cell) error {
	var v T
	err := json.Unmarshal(b, &v)
	*c = of(v)
	return err
}
