package kineto

import (
	"encoding/binary"
	"slices"
	"sort"

	"github.com/nsys-llm/explain/analyze/internal/spill"
)

// table holds rows as times, correlation id and a shape: repeated cells are kept once. A table without times consists
// of its shapes.
type table struct {
	columns []string
	shapes  [][]cell
	index   map[string]int32 // of shapes
	key     []byte
	rows    int
	packs   []pack
	last    row
	late    map[int]int64                // correlation ids that came after their rows
	owner   func(correlation int64) cell // of GPU work
}

type row struct {
	start, length, correlation int64
	shape                      int32
}

// pack is rows that follow each other, as differences to the row before: some ten bytes each.
type pack struct {
	bytes  []byte
	first  int // row
	before row // the one before the first
}

// A pack has this many bytes, and a row at most maxRow.
const (
	packBytes = 256 << 10
	maxRow    = 4 * binary.MaxVarintLen64
)

func (t *table) timed() bool { return t.columns[0] == "start" }

// add appends a row.
func (t *table) add(memory *spill.Arena, start, length, correlation int64, shape []cell) {
	t.key = t.key[:0]
	for i := range shape {
		t.key = append(t.key, byte(shape[i].Kind))
		t.key = binary.AppendVarint(t.key, shape[i].Bits)
		t.key = append(append(t.key, shape[i].S...), 0)
	}
	at, ok := t.index[string(t.key)]
	if !ok {
		at = int32(len(t.shapes))
		t.index[string(t.key)] = at
		t.shapes = append(t.shapes, slices.Clone(shape))
	}
	p := len(t.packs) - 1
	if p < 0 || len(t.packs[p].bytes)+maxRow > packBytes {
		t.packs = append(t.packs, pack{spill.Make[byte](memory, packBytes)[:0], t.rows, t.last})
		p++
	}
	b := binary.AppendVarint(t.packs[p].bytes, start-t.last.start)
	b = binary.AppendUvarint(b, uint64(length))
	b = binary.AppendVarint(b, correlation-t.last.correlation)
	t.packs[p].bytes = binary.AppendUvarint(b, uint64(at))
	t.last = row{start, length, correlation, at}
	t.rows++
}

// release frees the rows; those of tables without times stay.
func (t *table) release(memory *spill.Arena) {
	for _, p := range t.packs {
		spill.Free(memory, p.bytes)
	}
	t.packs, t.rows = nil, 0
}

// cursor goes through the rows of a table.
type cursor struct {
	t    *table
	pack int
	rest []byte
	at   int // the row that comes next
	row  row
}

// seek makes a row, which must be there, the next one.
func (c *cursor) seek(to int) {
	if !c.t.timed() {
		c.at = to
		return
	}
	packs := c.t.packs
	if c.rest == nil || to < c.at || c.pack+1 < len(packs) && to >= packs[c.pack+1].first {
		c.pack = sort.Search(len(packs), func(i int) bool { return packs[i].first > to }) - 1
		c.open()
	}
	for c.at < to {
		c.next()
	}
}

func (c *cursor) open() {
	p := &c.t.packs[c.pack]
	c.rest, c.at, c.row = p.bytes, p.first, p.before
}

// next reads a row, or returns false after the last.
func (c *cursor) next() bool {
	switch {
	case c.at == c.t.rows:
		return false
	case !c.t.timed():
		c.row.shape = int32(c.at)
		c.at++
		return true
	case c.rest == nil:
		c.open()
	case len(c.rest) == 0:
		c.pack++
		c.open()
	}
	start, n := binary.Varint(c.rest)
	length, k := binary.Uvarint(c.rest[n:])
	n += k
	correlation, k := binary.Varint(c.rest[n:])
	n += k
	shape, k := binary.Uvarint(c.rest[n:])
	c.rest = c.rest[n+k:]
	c.row = row{c.row.start + start, int64(length), c.row.correlation + correlation, int32(shape)}
	c.at++
	return true
}

// correlation id of the row that was read.
func (c *cursor) correlation() int64 {
	if late, ok := c.t.late[c.at-1]; ok {
		return late
	}
	return c.row.correlation
}

// Places of cells beyond the columns of a shape.
const (
	absent = -iota - 1
	rowID
	startTime
	endTime
	correlationID
	process
)

// place is the place of a column's value: in the shape, or one of those above.
func (t *table) place(column string) int {
	switch {
	case column == "rowid":
		return rowID
	case column == "":
		return absent
	case t.timed():
		if at := slices.Index(t.columns[:fixedColumns], column); at >= 0 {
			return startTime - at
		}
	}
	at := slices.Index(t.columns, column)
	if t.timed() && at >= 0 {
		at -= fixedColumns
	}
	return at
}

// cell is the value at a place of the row that was read.
func (c *cursor) cell(place int) cell {
	switch place {
	case absent:
		return cell{}
	case rowID:
		return integer(int64(c.at))
	case startTime:
		return integer(c.row.start)
	case endTime:
		return integer(c.row.start + c.row.length)
	case correlationID:
		return known(c.correlation())
	case process:
		return c.t.owner(c.correlation())
	}
	if shape := c.t.shapes[c.row.shape]; place < len(shape) {
		return shape[place]
	}
	return cell{}
}
