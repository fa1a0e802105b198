package trace

import (
	"sort"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/trace/span"
)

// Columns are as wide as their data as a rule needs, which is what makes them fit into memory: times as [Span] says, a
// number 32 bits, an index into a dictionary as many as the dictionary needs. What does not fit is kept aside, by row.

// Span holds start and end of each event.
type Span = span.Span

// farAway stands in a column for a value that is kept aside, by row. (A lookup in a map is what lets the methods below
// be inlined; there are few such values.)
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
