package attrib

import (
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

// Attribute walks the stack of every kernel's launch call once.
func Attribute(t *trace.Trace, calls *Calls, stacks *Stacks, window interval.Interval) *NVTX {
	n := t.Ranges.Len()
	x := &NVTX{Self: make([]int64, n), Inclusive: make([]int64, n), SelfCount: make([]int32, n), InclCount: make([]int32, n)}
	walk := func(w *trace.Work, calls []int32) []int32 {
		ranges := make([]int32, w.Len())
		for i := range w.Len() {
			ranges[i] = trace.None
			if s := w.Start(i); s < window.Start || s > window.End {
				continue
			}
			dur := w.Dur(i)
			x.Total += dur
			x.TotalCount++
			stacks.Walk(calls[i], func(r int32) bool {
				if ranges[i] == trace.None {
					ranges[i] = r
					x.Self[r] += dur
					x.SelfCount[r]++
					x.Attributed += dur
					x.AttributedCount++
				}
				x.Inclusive[r] += dur
				x.InclCount[r]++
				x.Pairs++
				return true
			})
		}
		return ranges
	}
	x.KernelRange = walk(&t.Kernels.Work, calls.Kernel)
	x.GraphRange = walk(&t.Graphs.Work, calls.Graph)
	return x
}
