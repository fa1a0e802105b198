package trace

import (
	"sort"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/trace/span"
)

// Columns are usually as wide as their data needs, so that they fit into memory: times as [Span] says, a number 32
// bits or 64, an index into a dictionary as many as the dictionary needs.

// Span holds start and end of each event.
type Span = span.Span

// farAway in a column of times marks a value that is stored apart, by row, while the table is read.
const farAway = 1<<32 - 1

// numbers is a column of whole numbers, each plus 1.
type numbers struct {
	low  []uint32
	high []uint32 // the upper 32 bits; nil if all are 0
}

func (n *numbers) at(i int) int64 {
	if n.high == nil {
		return int64(n.low[i]) - 1
	}
	return int64(uint64(n.high[i])<<32|uint64(n.low[i])) - 1
}

// take keeps the rows of order, in that order.
func (n *numbers) take(a *spill.Arena, order []int32) {
	n.low, n.high = taken(a, n.low, order), taken(a, n.high, order)
}

// codes is a column of indexes into a dictionary.
type codes struct {
	w8  []uint8
	w16 []uint16
	w32 []uint32
}

func (c *codes) at(i int) int32 {
	if c.w8 != nil {
		return int32(c.w8[i])
	}
	if c.w16 != nil {
		return int32(c.w16[i])
	}
	return int32(c.w32[i])
}

func (c *codes) take(a *spill.Arena, order []int32) {
	c.w8 = taken(a, c.w8, order)
	c.w16 = taken(a, c.w16, order)
	c.w32 = taken(a, c.w32, order)
}

func (c *codes) free(a *spill.Arena) {
	spill.Free(a, c.w8)
	spill.Free(a, c.w16)
	spill.Free(a, c.w32)
	*c = codes{}
}

func taken[T any](a *spill.Arena, column []T, order []int32) []T {
	if column == nil {
		return nil
	}
	moved := spill.Make[T](a, len(order))
	for to, from := range order {
		moved[to] = column[from]
	}
	spill.Free(a, column)
	return moved
}

// steps is a column of numbers that mostly grow by one from row to row: rowids. It keeps the rows where they do not.
type steps struct {
	at []int32
	v  []int64
}

func (s *steps) get(i int) int64 {
	k := sort.Search(len(s.at), func(k int) bool { return s.at[k] > int32(i) }) - 1
	return s.v[k] + int64(int32(i)-s.at[k])
}

func (s *steps) add(i int32, v int64) {
	if k := len(s.at) - 1; k < 0 || s.v[k]+int64(i-s.at[k]) != v {
		s.at, s.v = append(s.at, i), append(s.v, v)
	}
}

func (s *steps) take(order []int32) {
	var w steps
	for to, from := range order {
		w.add(int32(to), s.get(int(from)))
	}
	*s = w
}

// column is a column of an event table, beside its times, while the table is read.
type column interface {
	join()                              // another sink takes part
	settle(t *eventTable)               // makes the final column from the rows of the sinks
	take(a *spill.Arena, order []int32) // keeps the rows of order, in that order
}

// numberColumn becomes a column of numbers.
type numberColumn struct {
	*numbers
	slots []uint32
	aside [][]far // the upper 32 bits that are not 0, by sink
}

// number adds a column of numbers to the table.
func (t *eventTable) number(out *numbers) *numberColumn {
	c := &numberColumn{numbers: out}
	t.wide, t.columns = append(t.wide, &c.slots), append(t.columns, c)
	return c
}

func (c *numberColumn) join() { c.aside = append(c.aside, nil) }

// put writes the number of the row that s is at.
func (c *numberColumn) put(s *sink, v int64) {
	u := uint64(v) + 1
	c.slots[s.at] = uint32(u)
	if high := u >> 32; high > 0 {
		c.aside[s.index] = append(c.aside[s.index], far{int32(s.at), int64(high)})
	}
}

func (c *numberColumn) settle(t *eventTable) {
	n := t.eachPiece(func(p *piece, to int) { copy(c.slots[to:], c.slots[p.slot:p.slot+p.n]) })
	*c.numbers = numbers{low: spill.Cut(t.arena, c.slots, n)}
	if list := t.byRow(c.aside...); len(list) > 0 {
		c.high = spill.Make[uint32](t.arena, n)
		for _, f := range list {
			c.high[f.at] = uint32(f.v)
		}
	}
}

// codeColumn becomes a column of codes and the values they stand for.
type codeColumn[K comparable] struct {
	*codes
	slots []uint16
	dicts []*dict[K] // by sink
	keys  *[]K
	group func(K) K       // equal for values that count as one; nil: none do
	owner func(*K) *owner // of the process or thread of a value; nil: it has none
}

// coded adds a column of codes to the table.
func coded[K comparable](t *eventTable, out *codes, keys *[]K) *codeColumn[K] {
	c := &codeColumn[K]{codes: out, keys: keys}
	t.store.coded, t.columns = append(t.store.coded, &c.slots), append(t.columns, c)
	return c
}

func (c *codeColumn[K]) join() { c.dicts = append(c.dicts, &dict[K]{}) }

// put writes the value of the row that s is at, which holds no text of the row. hint is any hash of it.
func (c *codeColumn[K]) put(s *sink, hint uint64, key K) {
	d := c.dicts[s.index]
	d.put(c.slots, s.at, d.code(hint, key))
}

func (c *codeColumn[K]) settle(t *eventTable) {
	*c.codes, *c.keys = settleCodes(&t.store, c.slots, c.dicts, c.group)
	if c.owner == nil {
		return
	}
	for i := range *c.keys {
		if o := c.owner(&(*c.keys)[i]); o.known {
			t.ids = append(t.ids, o.id)
		}
	}
	t.adopt = func(ids *idents) {
		for i := range *c.keys {
			o := c.owner(&(*c.keys)[i])
			o.index = ids.number(o, t.tids)
		}
	}
}

// rowColumn becomes the rowids, which are kept where one does not follow that of the slot before.
type rowColumn struct {
	*steps
	ids [][]far // by sink
}

func (c *rowColumn) join() { c.ids = append(c.ids, nil) }

func (c *rowColumn) settle(t *eventTable) {
	for _, f := range t.byRow(c.ids...) {
		c.add(f.at, f.v)
	}
}

func (c *rowColumn) take(_ *spill.Arena, order []int32) { c.steps.take(order) }
