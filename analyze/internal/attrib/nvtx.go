package attrib

import (
	"sort"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// NVTX is the GPU time of kernels (and of whole CUDA graphs, whose kernels are hidden) that started in the window,
// attributed to the ranges open around the call that launched them.
type NVTX struct {
	Self      []int64 // by range: time of kernels for which it was the innermost
	Inclusive []int64 // by range: time of kernels launched anywhere inside it
	SelfCount []int32
	InclCount []int32

	KernelRange []int32 // by kernel: innermost range, or trace.None
	GraphRange  []int32 // by graph launch, likewise

	Total, Attributed           int64 // kernel time in the window, and the part that some range encloses
	TotalCount, AttributedCount int64
	Pairs                       int64 // (kernel, enclosing range) pairs
}

// Attribute gives every piece of work to the ranges around its launch call.
func Attribute(t *trace.Trace, calls *Calls, stacks *Stacks, window interval.Interval) *NVTX {
	n := t.Ranges.Len()
	x := &NVTX{Self: make([]int64, n), Inclusive: make([]int64, n), SelfCount: make([]int32, n), InclCount: make([]int32, n)}
	launched := make([]launchedWork, t.API.Len())
	add := func(w *trace.Work, calls []int32) []int32 {
		ranges := make([]int32, w.Len())
		for i := range w.Len() {
			ranges[i] = trace.None
			if s := w.Start(i); s < window.Start || s > window.End {
				continue
			}
			dur := w.Dur(i)
			x.Total += dur
			x.TotalCount++
			if calls[i] == trace.None {
				continue
			}
			r := stacks.Innermost[calls[i]]
			if r == trace.None {
				continue
			}
			ranges[i] = r
			x.Self[r] += dur
			x.SelfCount[r]++
			x.Attributed += dur
			x.AttributedCount++
			launched[calls[i]].dur += dur
			launched[calls[i]].count++
		}
		return ranges
	}
	x.KernelRange = add(&t.Kernels.Work, calls.Kernel)
	x.GraphRange = add(&t.Graphs.Work, calls.Graph)
	x.addInclusive(t, stacks, launched)
	return x
}

// launchedWork is the GPU work of one call that some range encloses.
type launchedWork struct {
	dur   int64
	count int32
}

// threadCalls are the calls of one thread that launched work inside a range, by start, with running sums of that work:
// sums[i] is the work of the calls before i.
type threadCalls struct {
	calls   []int32
	sums    []launchedWork
	overlap bool // a call ends before one that started earlier, which real calls of a thread never do
}

// addInclusive sums up each range's work. The calls inside a range stand side by side in the order of the thread, so a
// difference of running sums is enough, however many ranges are open at once.
func (x *NVTX) addInclusive(t *trace.Trace, stacks *Stacks, launched []launchedWork) {
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
		last := th.sums[len(th.calls)]
		th.calls = append(th.calls, int32(i))
		th.sums = append(th.sums, launchedWork{last.dur + launched[i].dur, last.count + launched[i].count})
	}
	for i := range threads {
		if !threads[i].overlap {
			continue
		}
		for _, call := range threads[i].calls {
			stacks.Walk(call, func(r int32) bool {
				x.include(r, launched[call])
				return true
			})
		}
	}
	next := make([]int, len(threads)) // by thread: the first call that does not start before the ranges seen so far
	for r := range t.Ranges.Len() {
		at := t.Ranges.Thread(r)
		if at == trace.None || threads[at].overlap {
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
		step := 1 // doubled, since most ranges hold few calls
		for lo+step < len(th.calls) && inside(lo+step) {
			step *= 2
		}
		from := lo + step/2
		hi := from + sort.Search(min(lo+step, len(th.calls))-from, func(i int) bool { return !inside(from + i) })
		x.include(int32(r), launchedWork{th.sums[hi].dur - th.sums[lo].dur, th.sums[hi].count - th.sums[lo].count})
	}
}

func (x *NVTX) include(r int32, w launchedWork) {
	x.Inclusive[r] += w.dur
	x.InclCount[r] += w.count
	x.Pairs += int64(w.count)
}
