package tracetest

import "maps"

// Value is what one cell of a table holds. The zero Value is NULL.
type Value struct {
	kind valueKind
	i    int64
	f    float64
	s    string
}

type valueKind uint8

const (
	kindNull valueKind = iota
	kindInt
	kindReal
	kindText
	kindID
	kindBlob
)

// Null is an SQL NULL. In a column that real exports declare NOT NULL it drops that constraint from the table.
func Null() Value { return Value{} }

// Int is an integer.
func Int(i int64) Value { return Value{kind: kindInt, i: i} }

// Real is a floating point number.
func Real(f float64) Value { return Value{kind: kindReal, f: f} }

// Text is a text written where it stands.
func Text(s string) Value { return Value{kind: kindText, s: s} }

// ID is the StringIds id of a text, which is added to StringIds on first use. Under [InlineNames] it is the text
// itself.
func ID(s string) Value { return Value{kind: kindID, s: s} }

// Blob is bytes.
func Blob(b []byte) Value { return Value{kind: kindBlob, s: string(b)} }

// IsNull says whether the value is NULL.
func (v Value) IsNull() bool { return v.kind == kindNull }

// AsInt returns the integer, and whether the value is one.
func (v Value) AsInt() (int64, bool) { return v.i, v.kind == kindInt }

// AsText returns the text, and whether the value is one.
func (v Value) AsText() (string, bool) { return v.s, v.kind == kindText }

// Row is one row of a table by column name. Columns it does not name are NULL.
type Row map[string]Value

// with returns the row with the columns of over replacing its own.
func (r Row) with(over Row) Row {
	maps.Copy(r, over)
	return r
}

// optInt is v, or NULL where v is 0.
func optInt(v int64) Value {
	if v == 0 {
		return Null()
	}
	return Int(v)
}

// or is v, or def where v is 0.
func or(v, def int64) int64 {
	if v == 0 {
		return def
	}
	return v
}
