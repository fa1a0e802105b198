package timeline

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// NVTX is the GPU time of kernels (and of whole CUDA graphs, whose kernels are hidden) that started in the window,
// attributed to the ranges open around the call that launched them.
type NVTX struct {
	// Ranges are the names with any GPU time, by name, then process.
	Ranges []RangeTime

	Total, Attributed           int64 // kernel time in the window, and the part that some range encloses
	TotalCount, AttributedCount int64
}

// RangeTime is the GPU time of the ranges of one name in one process.
type RangeTime struct {
	Name      int32 // index into Ranges.Names
	Proc      int32
	Inclusive int64 // of kernels launched anywhere inside, once for each range around them
	Pairs     int64 // kernels behind it, likewise
	Self      int64 // of kernels for which it was the innermost
	SelfCount int64
}

// launchedWork is the GPU work of calls that some range encloses.
type launchedWork struct{ dur, count int64 }

func (w *launchedWork) add(x launchedWork) {
	w.dur += x.dur
	w.count += x.count
}

// Attribute attributes every piece of work to the ranges around its launch call.
func Attribute(t *trace.Trace, calls *Calls, contexts *Contexts, window interval.Interval) *NVTX {
	x := &NVTX{}
	self := make([]launchedWork, contexts.Nodes())
	var byCall []launchedWork
	if contexts.tangled {
		byCall = make([]launchedWork, t.API.Len())
	}
	add := func(w *trace.Work, calls []int32) {
		lo, hi := w.Starting(window.Start, window.End)
		for i := lo; i < hi; i++ {
			work := launchedWork{w.Dur(i), 1}
			x.Total += work.dur
			node := contexts.Of(calls[i])
			if node == trace.None {
				continue
			}
			self[node].add(work)
			if byCall != nil && contexts.crossed[contexts.thread[node]] {
				byCall[calls[i]].add(work)
			}
		}
		x.TotalCount += int64(hi - lo)
	}
	add(&t.Kernels.Work, calls.Kernel)
	add(&t.Graphs.Work, calls.Graph)
	s := &rangeSums{trace: t}
	s.nested(contexts, self)
	if slices.ContainsFunc(byCall, func(w launchedWork) bool { return w.count > 0 }) {
		s.crossed(t, contexts, byCall)
	}
	x.Ranges = s.list
	slices.SortFunc(x.Ranges, func(a, b RangeTime) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Proc, b.Proc))
	})
	for i := range x.Ranges {
		x.Attributed += x.Ranges[i].Self
		x.AttributedCount += x.Ranges[i].SelfCount
	}
	return x
}

// rangeSums adds up by name and process.
type rangeSums struct {
	trace *trace.Trace
	pairs lists.Numbering[[2]int32]
	list  []RangeTime
}

func (s *rangeSums) of(name, thread int32) *RangeTime {
	proc := s.trace.Threads[thread].Proc
	at := int(s.pairs.Of([2]int32{name, proc}))
	if at == len(s.list) {
		s.list = append(s.list, RangeTime{Name: name, Proc: proc})
	}
	return &s.list[at]
}

// nested adds the work of every node to its name, and to those of all nodes around it.
func (s *rangeSums) nested(c *Contexts, self []launchedWork) {
	inside := slices.Clone(self)
	for n := len(inside) - 1; n >= 0; n-- {
		if self[n].count > 0 {
			e := s.of(c.name[n], c.thread[n])
			e.Self += self[n].dur
			e.SelfCount += self[n].count
		}
		if inside[n].count == 0 || c.crossed[c.thread[n]] {
			continue
		}
		e := s.of(c.name[n], c.thread[n])
		e.Inclusive += inside[n].dur
		e.Pairs += inside[n].count
		if out := c.out[n]; out != trace.None {
			inside[out].add(inside[n])
		}
	}
}

// threadCalls are the calls of one thread that launched work inside a range, by start, with running sums of that work:
// sums[i] is the work of the calls before i.
type threadCalls struct {
	calls   []int32
	sums    []launchedWork
	overlap bool // a call ends before one that started earlier, which real calls of a thread never do
}

// crossed adds the inclusive time of ranges on threads on which they do not nest. The calls inside a range are
// consecutive in the order of the thread, so that a difference of running sums is enough, however many ranges are open
// at once.
func (s *rangeSums) crossed(t *trace.Trace, c *Contexts, launched []launchedWork) {
	threads := make([]threadCalls, len(t.Threads))
	for i := range launched {
		if launched[i].count == 0 {
			continue
		}
		th := &threads[t.API.Thread(i)]
		if n := len(th.calls); n == 0 {
			th.sums = append(th.sums, launchedWork{})
		} else if t.API.End(i) < t.API.End(int(th.calls[n-1])) {
			th.overlap = true
		}
		sum := th.sums[len(th.calls)]
		sum.add(launched[i])
		th.calls, th.sums = append(th.calls, int32(i)), append(th.sums, sum)
	}
	include := func(name, thread int32, w launchedWork) {
		e := s.of(name, thread)
		e.Inclusive += w.dur
		e.Pairs += w.count
	}
	for i := range threads {
		if !threads[i].overlap {
			continue
		}
		for _, call := range threads[i].calls {
			c.Walk(call, func(name int32) bool {
				include(name, int32(i), launched[call])
				return true
			})
		}
	}
	next := make([]int, len(threads)) // by thread: the first call that does not start before the ranges seen so far
	for r := range t.Ranges.Len() {
		at := t.Ranges.Thread(r)
		if at == trace.None || len(threads[at].calls) == 0 || threads[at].overlap {
			continue
		}
		th, start, end := &threads[at], t.Ranges.Start(r), t.Ranges.End(r)
		lo := next[at]
		for lo < len(th.calls) && t.API.Start(int(th.calls[lo])) < start {
			lo++
		}
		next[at] = lo
		inside := func(i int) bool { return t.API.End(int(th.calls[i])) <= end && t.API.Start(int(th.calls[i])) < end }
		if lo == len(th.calls) || !inside(lo) {
			continue
		}
		hi := lists.Near(len(th.calls), lo, func(i int) bool { return !inside(i) }) // most ranges hold few calls
		include(t.Ranges.Name(r), at,
			launchedWork{th.sums[hi].dur - th.sums[lo].dur, th.sums[hi].count - th.sums[lo].count})
	}
}
