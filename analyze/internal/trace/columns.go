package trace

import (
	"sort"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/trace/span"
)

// Columns are usually as wide as their data needs, so that they fit into memory: times as [Span] says, a number 32
// bits, an index into a dictionary as many as the dictionary needs. Values that do not fit are stored apart, by row.

// Span holds start and end of each event.
type Span = span.Span

// farAway in a column marks a value that is stored apart, by row. (A lookup in a map lets the methods below be inlined;
// there are few such values.)
const farAway = 1<<32 - 1

// numbers is a column of whole numbers from -1 up.
type numbers struct {
	v   []uint32      // the number plus 1
	far map[int]int64 // those kept aside
}

func (n *numbers) at(i int) int64 {
	if v := n.v[i]; v != farAway {
		return int64(v) - 1
	}
	return n.far[i]
}

// take keeps the rows of order, in that order.
func (n *numbers) take(a *spill.Arena, order []int32) {
	w := numbers{v: spill.Make[uint32](a, len(order)), far: map[int]int64{}}
	for to, from := range order {
		if w.v[to] = n.v[from]; w.v[to] == farAway {
			w.far[to] = n.far[int(from)]
		}
	}
	spill.Free(a, n.v)
	*n = w
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
	aside [][]far // by sink
}

// number adds a column of numbers to the table.
func (t *eventTable) number(out *numbers) *numberColumn {
	c := &numberColumn{numbers: out}
	t.extra, t.columns = append(t.extra, &c.slots), append(t.columns, c)
	return c
}

func (c *numberColumn) join() { c.aside = append(c.aside, nil) }

// put writes the number of the row that s is at.
func (c *numberColumn) put(s *sink, v int64) {
	if u := uint64(v) + 1; u < farAway {
		c.slots[s.at] = uint32(u)
		return
	}
	c.slots[s.at] = farAway
	c.aside[s.index] = append(c.aside[s.index], far{int32(s.at), v})
}

func (c *numberColumn) settle(t *eventTable) {
	n := t.eachPiece(func(p *piece, to int) { copy(c.slots[to:], c.slots[p.slot:p.slot+p.n]) })
	*c.numbers = numbers{v: spill.Cut(t.arena, c.slots, n), far: byIndex(t.byRow(c.aside...))}
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
