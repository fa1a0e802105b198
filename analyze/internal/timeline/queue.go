package timeline

import (
	"cmp"
	"math"
)

// Queue holds devices that have something left as a heap: in front is the one that is next, of equal ones the first.
type Queue struct {
	devices []int
	at      []int64 // when something is next, by device
}

// NewQueue makes a queue of the first n devices; next tells when something is next on one, if anything is.
func NewQueue(n int, next func(d int) (at int64, ok bool)) *Queue {
	q := &Queue{at: make([]int64, n)}
	for d := range n {
		var ok bool
		if q.at[d], ok = next(d); ok {
			q.devices = append(q.devices, d)
		}
	}
	for i := len(q.devices)/2 - 1; i >= 0; i-- {
		q.sink(i)
	}
	return q
}

// First is the device in front, or -1 if nothing is left on any.
func (q *Queue) First() int {
	if len(q.devices) == 0 {
		return -1
	}
	return q.devices[0]
}

// At is when something is next on the device in front, math.MaxInt64 if nothing is left on any.
func (q *Queue) At() int64 {
	if len(q.devices) == 0 {
		return math.MaxInt64
	}
	return q.at[q.devices[0]]
}

// second is when something is next on any device but the one in front.
func (q *Queue) second() int64 {
	at := int64(math.MaxInt64)
	for _, d := range q.devices[1:min(3, len(q.devices))] {
		at = min(at, q.at[d])
	}
	return at
}

// Advance tells when something is next on the device in front, if anything is.
func (q *Queue) Advance(at int64, ok bool) {
	last := len(q.devices) - 1
	if ok {
		q.at[q.devices[0]] = at
	} else {
		q.devices[0] = q.devices[last]
		q.devices = q.devices[:last]
	}
	q.sink(0)
}

// sink puts a device behind those that are before it.
func (q *Queue) sink(i int) {
	before := func(a, b int) bool {
		return cmp.Or(cmp.Compare(q.at[q.devices[a]], q.at[q.devices[b]]), cmp.Compare(q.devices[a], q.devices[b])) < 0
	}
	for {
		child := 2*i + 1
		if child >= len(q.devices) {
			return
		}
		if child+1 < len(q.devices) && before(child+1, child) {
			child++
		}
		if !before(child, i) {
			return
		}
		q.devices[i], q.devices[child] = q.devices[child], q.devices[i]
		i = child
	}
}
