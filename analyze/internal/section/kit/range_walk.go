package kit

import "github.com/nsys-llm/explain/analyze/internal/trace"

// RangeWalk goes through ascending stretches of threads' time, and knows the ranges open on the thread.
type RangeWalk struct {
	r     *trace.Ranges
	next  int           // the next range to come
	open  [][]openRange // by thread
	names []int32       // of those open, outermost first
}

type openRange struct {
	start, end int64
	name       int32
}

func NewRangeWalk(t *trace.Trace) *RangeWalk {
	return &RangeWalk{r: &t.Ranges, open: make([][]openRange, len(t.Threads))}
}

// Each calls visit for every piece of a stretch, with the names of the ranges that are open in it, the innermost last.
func (w *RangeWalk) Each(thread int32, start, end int64, visit func(open []int32, ns int64)) {
	for at := start; at < end; {
		r, next := w.r, w.next // in registers: this loop sees every range of the capture
		for ; next < r.Len() && r.Start(next) <= at; next++ {
			if r.End(next) > at { // most end between the stretches
				w.push(next)
			}
		}
		w.next = next
		open := w.ended(thread, at)
		until := end
		w.names = w.names[:0]
		for i := range open {
			if open[i].end > at { // one that crosses another may have ended before the inner one
				until = min(until, open[i].end)
				w.names = append(w.names, open[i].name)
			}
		}
		if w.next < w.r.Len() {
			until = min(until, w.r.Start(w.next))
		}
		visit(w.names, until-at)
		at = until
	}
}

// ended removes from a thread the innermost ranges that have ended.
func (w *RangeWalk) ended(thread int32, at int64) []openRange {
	open := w.open[thread]
	for len(open) > 0 && open[len(open)-1].end <= at {
		open = open[:len(open)-1]
	}
	w.open[thread] = open
	return open
}

// push opens a range. If ranges start together, the longer one is the outer one.
func (w *RangeWalk) push(row int) {
	thread := w.r.Thread(row)
	if thread == trace.None {
		return
	}
	o := openRange{w.r.Start(row), w.r.End(row), w.r.Name(row)}
	open := append(w.ended(thread, o.start), o)
	for i := len(open) - 1; i > 0 && open[i-1].start == o.start && open[i-1].end < o.end; i-- {
		open[i-1], open[i] = open[i], open[i-1]
	}
	w.open[thread] = open
}
