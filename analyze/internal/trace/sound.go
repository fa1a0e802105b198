package trace

import (
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"slices"
	"strings"
)

// What no capture holds, however long it ran. A row beyond these limits is damaged and counts as skipped: kept, it would
// stretch the window over years, or make sums overflow.
const (
	maxMoment = 1 << 62  // of a time in either direction: exports in UTC are at 1.7e18, and a difference must fit 64 bits
	maxAway   = 1 << 50  // of a time from the middle of the capture: 13 days
	maxTotal  = 1 << 56  // of the durations of one table together: two years
	maxBytes  = 1 << 42  // of one copy or memset: 4 TiB, more than a GPU has
	maxName   = 16 << 10 // of a name in bytes: the longest of real kernels have 10 KB
)

const clippedName = 1 << 10

// clip shortens a name that no program has, so that a report of many such names stays small. A checksum keeps names apart
// that begin alike.
func clip(name string) string {
	if len(name) <= maxName {
		return name
	}
	sum := fnv.New64a()
	io.WriteString(sum, name)
	return fmt.Sprintf("%s… #%016x", strings.ToValidUTF8(name[:clippedName], ""), sum.Sum64())
}

// eventTable is a table of events while it is being loaded.
type eventTable struct {
	TableStat
	total   int64 // of the durations so far
	span    *Span
	reorder func(order []int32) // applies an order to all columns but the span; rows it leaves out are dropped
}

// times returns start and end of a row and whether they make a sound event; unsound ones are counted.
func (t *eventTable) times(start, end *cell) (s, e int64, ok bool) {
	s, ok1 := start.int()
	e, ok2 := end.int()
	if !ok1 || !ok2 || !t.sound(s, e) {
		t.Skipped++
		return 0, 0, false
	}
	t.total += e - s
	return s, e, true
}

func (t *eventTable) sound(start, end int64) bool {
	return -maxMoment < start && start <= end && end < maxMoment && end-start <= maxTotal-t.total
}

// loaded puts the rows into order of start, keeping the order of equal starts. Real exports are sorted already, which
// costs one pass to see.
func (t *eventTable) loaded(s *Span, reorder func(order []int32)) {
	t.span, t.reorder = s, reorder
	if slices.IsSorted(s.start) {
		return
	}
	order := make([]int32, len(s.start))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		switch {
		case s.start[a] < s.start[b]:
			return -1
		case s.start[a] > s.start[b]:
			return 1
		}
		return 0
	})
	t.take(order)
}

// take keeps the rows of order, in that order.
func (t *eventTable) take(order []int32) {
	permute(&t.span.start, order)
	permute(&t.span.end, order)
	t.reorder(order)
}

func permute[T any](column *[]T, order []int32) {
	if len(*column) == 0 {
		return
	}
	moved := make([]T, len(order))
	for to, from := range order {
		moved[to] = (*column)[from]
	}
	*column = moved
}

// dropStray leaves out rows that lie days away from all others: the middle row of the longest table says where the
// capture is.
func dropStray(tables []*eventTable) {
	var longest *Span
	for _, t := range tables {
		if t != nil && t.span != nil && (longest == nil || t.span.Len() > longest.Len()) {
			longest = t.span
		}
	}
	if longest == nil || longest.Len() == 0 {
		return
	}
	middle := longest.start[longest.Len()/2]
	for _, t := range tables {
		if t != nil && t.span != nil {
			t.dropAway(middle)
		}
	}
}

func (t *eventTable) dropAway(middle int64) {
	s := t.span
	away := func(i int) bool {
		return s.start[i] < middle-maxAway || s.start[i] > middle+maxAway || s.end[i] > middle+maxAway && s.end[i] != openEnd
	}
	var order []int32
	n := s.Len()
	for i := range n {
		if !away(i) {
			if order != nil {
				order = append(order, int32(i))
			}
			continue
		}
		if order == nil { // the first one: all before it stay
			order = make([]int32, i, n)
			for j := range order {
				order[j] = int32(j)
			}
		}
	}
	if order != nil {
		t.Skipped += int64(n - len(order))
		t.take(order)
	}
}

func orNone(c *cell) int64 {
	if v, ok := c.int(); ok {
		return v
	}
	return int64(None)
}

// ident is a device, stream or context number; what is no such number is None.
func ident(c *cell) int32 {
	v, ok := c.int()
	if !ok || v < 0 || v > math.MaxInt32 {
		return None
	}
	return int32(v)
}

// extent is a size of a launch, never negative.
func extent(c *cell) int32 {
	v, _ := c.int()
	return int32(min(max(v, 0), math.MaxInt32))
}

// byteCount is the size of a copy or memset; what can be none counts as 0.
func byteCount(c *cell) int64 {
	v, _ := c.int()
	if v < 0 || v > maxBytes {
		return 0
	}
	return v
}

// small is a number from an enumeration.
func small(c *cell) int16 {
	v, ok := c.int()
	if !ok || v < 0 || v > 1<<14 {
		return -1
	}
	return int16(v)
}
