package pages

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// plan says where the wanted columns of a record are, for all records with one header.
type plan struct {
	header string // size varint and serial types
	total  int    // bytes of header and body
	fields []field
	reach  int // bytes that must be at hand: the end of the last wanted value
}

// field is one wanted column of a record.
type field struct {
	how   how
	shift uint8 // of an integer fetched as eight bytes
	at    int32 // from the start of the record
	size  int32 // of a text or blob
	fixed *Cell // the value, where the record does not hold it
}

type how uint8

const (
	isFixed how = iota
	isRowID
	isInteger
	isIntegerAsFloat
	isFloat
	isText
	isBlob
)

// sizes of the serial types below 12 (section 2.1); types 10 and 11 are reserved.
var sizes = [12]int{0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0}

var (
	nullCell       = Cell{}
	zero, one      = IntCell(0), IntCell(1)
	zeroFl, oneFl  = FloatCell(0), FloatCell(1)
	emptyT, emptyB = TextCell(""), Cell{Kind: Blob}
)

// maxRecord is how long a record may be: SQLite's limit on a row (SQLITE_MAX_LENGTH).
const maxRecord = 1_000_000_000

// newPlan works out a plan from a whole header. It refuses a header that does not end where it says.
func newPlan(header []byte, columns []Column, wanted []int) (*plan, string) {
	size, n := varint(header)
	if n == 0 || size != uint64(len(header)) {
		return nil, "has a record whose header does not end where it says"
	}
	if n == len(header) {
		return nil, "has a record without a value"
	}
	p := &plan{header: string(header), fields: make([]field, len(wanted))}
	for i, c := range wanted {
		switch c {
		case rowidColumn:
			p.fields[i] = field{how: isRowID}
		case nullColumn:
			p.fields[i] = field{how: isFixed, fixed: &nullCell}
		default:
			p.fields[i] = field{how: isFixed, fixed: columns[c].Default}
		}
	}
	at := uint64(len(header))
	for column, rest := 0, header[n:]; len(rest) > 0; column++ {
		kind, n := varint(rest)
		if n == 0 {
			return nil, "has a record whose header does not end where it says"
		}
		rest = rest[n:]
		f, bytes, ok := fieldOf(kind)
		if !ok {
			return nil, "has a value of a type that does not exist"
		}
		if column < len(columns) {
			if columns[column].Real {
				f = f.asFloat()
			}
			if columns[column].RowID && kind != 0 {
				return nil, "has a record that holds its rowid twice"
			}
			f.at = int32(at)
			for i, c := range wanted {
				if c == column {
					p.fields[i] = f
					p.reach = max(p.reach, int(at+bytes))
				}
			}
		}
		if at += bytes; at > maxRecord {
			return nil, "has a record that is too long"
		}
	}
	for _, f := range p.fields {
		if f.how == isFixed && f.fixed == nil {
			return nil, "has a record without a column whose default is not plain"
		}
	}
	p.total = int(at)
	p.reach = max(p.reach, len(header))
	return p, ""
}

// fieldOf is what a serial type means (section 2.1).
func fieldOf(kind uint64) (f field, bytes uint64, ok bool) {
	switch {
	case kind == 0:
		return field{how: isFixed, fixed: &nullCell}, 0, true
	case kind <= 6:
		size := sizes[kind]
		return field{how: isInteger, shift: uint8(64 - 8*size)}, uint64(size), true
	case kind == 7:
		return field{how: isFloat}, 8, true
	case kind == 8:
		return field{how: isFixed, fixed: &zero}, 0, true
	case kind == 9:
		return field{how: isFixed, fixed: &one}, 0, true
	case kind < 12 || kind > 2*maxRecord+13:
		return field{}, 0, false
	}
	size := (kind - 12) / 2
	f = field{how: isBlob, size: int32(size)}
	if kind%2 == 1 {
		f.how = isText
	}
	if size == 0 {
		f = field{how: isFixed, fixed: &emptyB}
		if kind%2 == 1 {
			f.fixed = &emptyT
		}
	}
	return f, size, true
}

// asFloat is how a column of REAL affinity reads.
func (f field) asFloat() field {
	switch {
	case f.how == isInteger:
		f.how = isIntegerAsFloat
	case f.fixed == &zero:
		f.fixed = &zeroFl
	case f.fixed == &one:
		f.fixed = &oneFl
	}
	return f
}

// run decodes the record that begins b into row. b must hold p.reach bytes and slack more. Texts are views of b.
func (p *plan) run(b []byte, rowid int64, row []Cell) {
	row = row[:len(p.fields)]
	for i := range p.fields {
		f, c := &p.fields[i], &row[i]
		switch f.how {
		case isInteger:
			c.Kind, c.S = Int, ""
			c.Bits = int64(binary.BigEndian.Uint64(b[f.at:])) >> f.shift
		case isFixed:
			*c = *f.fixed
		case isText, isBlob:
			v := b[f.at : f.at+f.size]
			*c = TextCell(unsafe.String(unsafe.SliceData(v), len(v)))
			if f.how == isBlob {
				c.Kind = Blob
			}
		case isRowID:
			*c = IntCell(rowid)
		case isIntegerAsFloat:
			*c = FloatCell(float64(int64(binary.BigEndian.Uint64(b[f.at:])) >> f.shift))
		case isFloat:
			*c = Cell{}
			if v := math.Float64frombits(binary.BigEndian.Uint64(b[f.at:])); v == v { // SQLite reads NaN as NULL
				*c = FloatCell(v)
			}
		}
	}
}

// plans finds the plan of a record by its header. It is for one goroutine.
type plans struct {
	columns []Column
	wanted  []int
	recent  [1 << planBits]*plan // by a hash of the header
}

const planBits = 11

// find returns the plan for the record that begins b, of total bytes, whose header must be whole in b.
func (ps *plans) find(b []byte, header, total int) (*plan, string) {
	h := b[:header]
	slot := &ps.recent[hash(h)>>(64-planBits)]
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

// hash mixes a header's bytes, eight at a time.
func hash(b []byte) uint64 {
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
