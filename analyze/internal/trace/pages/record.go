package pages

import (
	"encoding/binary"
	"math"
	"strconv"
	"unsafe"
)

// plan records where the wanted columns of a record are, for all records with the same header.
type plan struct {
	header string // size varint and serial types
	total  int    // bytes of header and body
	row    []Cell // values that the header alone determines are already set
	fields []field
	reach  int // bytes of the record that are needed: up to the end of the last wanted value
}

// field is a wanted column whose value differs between records with the same header.
type field struct {
	how   how
	shift uint8 // of an integer fetched as eight bytes
	at    int32 // from the start of the record
	size  int32 // of a text or blob
	to    *Cell // in the plan's row
}

type how uint8

const (
	isInteger how = iota
	isRowID
	isIntegerAsFloat
	isFloat
	isBytes
)

// sizes of the serial types below 12 (section 2.1); types 10 and 11 are reserved.
var sizes = [12]int{0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0}

// maxRecord is the longest record that SQLite allows, in bytes (SQLITE_MAX_LENGTH).
const maxRecord = 1_000_000_000

// newPlan makes a plan from a complete header. It refuses a header that does not end where it says.
func newPlan(header []byte, columns []Column, wanted []int) (*plan, string) {
	size, n := varint(header)
	if n == 0 || size != uint64(len(header)) {
		return nil, "has a record whose header does not end where it says"
	}
	if n == len(header) {
		return nil, "has a record without a value"
	}
	p := &plan{header: string(header), row: make([]Cell, len(wanted))}
	for i, c := range wanted {
		if c == rowidColumn {
			p.row[i] = IntCell(0)
			p.fields = append(p.fields, field{how: isRowID, to: &p.row[i]})
		}
	}
	at, column := uint64(len(header)), 0
	for rest := header[n:]; len(rest) > 0; column++ {
		kind, n := varint(rest)
		if n == 0 {
			return nil, "has a record whose header does not end where it says"
		}
		rest = rest[n:]
		cell, f, bytes, ok := fieldOf(kind, column < len(columns) && columns[column].Real)
		if !ok {
			return nil, "has a value of a type that does not exist"
		}
		if column < len(columns) {
			if columns[column].RowID && kind != 0 {
				return nil, "has a record that holds its rowid twice"
			}
			if c := columns[column]; c.Text && kind > 0 && kind < 10 || c.Needs && kind == 0 && !c.RowID {
				return nil, "has a record of another table"
			}
			f.at = int32(at)
			for i, c := range wanted {
				if c != column {
					continue
				}
				p.row[i] = cell
				if f.to = &p.row[i]; bytes > 0 {
					p.fields = append(p.fields, f)
					p.reach = max(p.reach, int(at+bytes))
				}
			}
		}
		if at += bytes; at > maxRecord {
			return nil, "has a record that is too long"
		}
	}
	for ; column < len(columns); column++ {
		if c := columns[column]; c.Needs && !c.RowID {
			return nil, "has a record of another table"
		}
	}
	p.total = int(at)
	p.reach = max(p.reach, len(header))
	return p, ""
}

// fieldOf decodes a serial type (section 2.1), in a column of REAL affinity or another: the value, if the type
// determines it, and how to read it if it takes bytes of the record.
func fieldOf(kind uint64, inReal bool) (c Cell, f field, bytes uint64, ok bool) {
	switch {
	case kind == 0:
		return Cell{}, f, 0, true
	case kind <= 6:
		bytes = uint64(sizes[kind])
		f = field{how: isInteger, shift: uint8(64 - 8*bytes)}
		if inReal {
			f.how = isIntegerAsFloat
		}
		return IntCell(0), f, bytes, true
	case kind == 7:
		return Cell{}, field{how: isFloat}, 8, true
	case kind <= 9 && inReal:
		return FloatCell(float64(kind - 8)), f, 0, true
	case kind <= 9:
		return IntCell(int64(kind - 8)), f, 0, true
	case kind < 12 || kind > 2*maxRecord+13:
		return Cell{}, f, 0, false
	}
	bytes = (kind - 12) / 2
	c.Kind = Blob
	if kind%2 == 1 {
		c.Kind = Text
	}
	return c, field{how: isBytes, size: int32(bytes)}, bytes, true
}

// run returns the row of the record that begins b. b must hold p.reach bytes and slack more. Texts are views of b. The
// row is valid until the plan runs again.
func (p *plan) run(b []byte, rowid int64) []Cell {
	for i := range p.fields {
		f := &p.fields[i]
		switch c := f.to; f.how {
		case isInteger:
			c.Bits = int64(binary.BigEndian.Uint64(b[f.at:])) >> f.shift
		case isRowID:
			c.Bits = rowid
		case isBytes:
			v := b[f.at : f.at+f.size]
			c.S = unsafe.String(unsafe.SliceData(v), len(v))
		case isIntegerAsFloat:
			*c = FloatCell(float64(int64(binary.BigEndian.Uint64(b[f.at:])) >> f.shift))
		case isFloat:
			*c = Cell{}
			if v := math.Float64frombits(binary.BigEndian.Uint64(b[f.at:])); v == v { // SQLite reads NaN as NULL
				*c = FloatCell(v)
			}
		}
	}
	return p.row
}

// plans finds the plan of a record by its header. Only one goroutine may use it.
type plans struct {
	columns []Column
	wanted  []int
	recent  [1 << planBits]*plan // by a hash of the header
}

const planBits = 12

// find returns the plan for the record that begins b, of total bytes, whose header must be complete in b.
func (ps *plans) find(b []byte, header, total int) (*plan, string) {
	h := b[:header]
	slot := &ps.recent[Hash(h)>>(64-planBits)]
	if p := *slot; p != nil && p.header == string(h) {
		if p.total != total {
			return nil, "has a record that is longer or shorter than its header says"
		}
		return p, ""
	}
	p, wrong := newPlan(h, ps.columns, ps.wanted)
	if p == nil {
		return nil, wrong
	}
	if p.total != total {
		return nil, "has a record that is longer or shorter than its header says"
	}
	*slot = p
	return p, ""
}

// Hash mixes bytes, eight at a time; its upper bits are good.
func Hash(b []byte) uint64 {
	const odd = 0x9e3779b97f4a7c15
	h := uint64(len(b))
	if len(b) < 8 {
		for _, c := range b {
			h = h<<8 | uint64(c)
		}
		return h * odd
	}
	for i := 0; i+8 < len(b); i += 8 {
		h = (h ^ binary.LittleEndian.Uint64(b[i:])) * odd
		h ^= h >> 29
	}
	return (h ^ binary.LittleEndian.Uint64(b[len(b)-8:])) * odd
}

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

// IntCell returns an integer cell.
func IntCell(v int64) Cell { return Cell{Kind: Int, Bits: v} }

// FloatCell returns a floating-point cell.
func FloatCell(v float64) Cell { return Cell{Kind: Float, Bits: int64(math.Float64bits(v))} }

// TextCell returns a text cell.
func TextCell(s string) Cell { return Cell{Kind: Text, S: s} }

// Float returns the value of a cell of kind Float.
func (c *Cell) Float() float64 { return math.Float64frombits(uint64(c.Bits)) }

// Whole returns a cell as an integer. Floats without a fraction and numbers as text count too, because tools that
// rewrote an export may have changed the types of its columns.
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
