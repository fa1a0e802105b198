package timeline

import "math"

// Queue is a heap of what is next on devices and threads: container/heap without a value in an interface for each. In
// front is what is earliest, of the same moment what has the lower order.
type Queue[T any] []Next[T]

// Next is something at a moment.
type Next[T any] struct {
	At    int64
	Order int32
	What  T
}

func (x *Next[T]) before(y *Next[T]) bool { return x.At < y.At || x.At == y.At && x.Order < y.Order }

// At is the moment of what is in front, math.MaxInt64 if nothing is left.
func (q Queue[T]) At() int64 {
	if len(q) == 0 {
		return math.MaxInt64
	}
	return q[0].At
}

// second is the moment of what comes after it.
func (q Queue[T]) second() int64 {
	at := int64(math.MaxInt64)
	for i := 1; i < min(3, len(q)); i++ {
		at = min(at, q[i].At)
	}
	return at
}

// Push adds something.
func (q *Queue[T]) Push(x Next[T]) {
	*q = append(*q, x)
	h := *q
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(&h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

// Pop takes away what is in front.
func (q *Queue[T]) Pop() T {
	h := *q
	first, last := h[0].What, h[len(h)-1]
	if *q = h[:len(h)-1]; len(*q) > 0 {
		q.Replace(last)
	}
	return first
}

// Replace puts something in place of what is in front.
func (q Queue[T]) Replace(x Next[T]) {
	i := 0
	for down := 1; down < len(q); down = 2*i + 1 {
		if down+1 < len(q) && q[down+1].before(&q[down]) {
			down++
		}
		if !q[down].before(&x) {
			break
		}
		q[i] = q[down]
		i = down
	}
	q[i] = x
}

// byStart visits the work of several lists, each of which is by start, by start: the i-th piece of the n-th list.
func byStart[L interface {
	Len() int
	Start(i int) int64
}](all []L, visit func(n, i int)) {
	var q Queue[int] // the next piece of each list
	for n, list := range all {
		if list.Len() > 0 {
			q.Push(Next[int]{list.Start(0), int32(n), 0})
		}
	}
	for len(q) > 0 {
		n, i, next := q[0].Order, q[0].What, q.second()
		list := all[n]
		for ; i < list.Len() && list.Start(i) <= next; i++ { // as long as no other list has work in between
			visit(int(n), i)
		}
		if i < list.Len() {
			q.Replace(Next[int]{list.Start(i), n, i})
		} else {
			q.Pop()
		}
	}
}
