package gpu

import (
	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
)

// extremes are the indexes of the largest and of the smallest of n > 0 values, of several the first.
func extremes(n int, value func(i int) int64) (most, least int) {
	for i := range n {
		if value(i) > value(most) {
			most = i
		}
		if value(i) < value(least) {
			least = i
		}
	}
	return most, least
}

// hiddenKernels is why sections about kernels are partial if CUDA graphs were traced as a whole.
const hiddenKernels = "CUDA graphs were traced as a whole (--cuda-graph-trace=graph): the kernels inside them are not in the capture; capture with --cuda-graph-trace=node to see them"

// wholeGraphs are the CUDA graphs of the window that were traced as a whole: the sum of their times, and how many.
func wholeGraphs(in *kit.Input) (total int64, count int) {
	g := &in.Trace.Graphs
	lo, hi := g.Starting(in.Span.Start, in.Span.End)
	return kit.Total(lo, hi, g.Dur), hi - lo
}

// chunkStarts is the start of each of n chunks of the window, and the end of the last; the division comes first, so
// that nothing overflows.
func chunkStarts(window interval.Interval, n int) []int64 {
	starts, length, chunks := make([]int64, n+1), window.Len(), int64(n)
	for i := range starts {
		starts[i] = window.Start + length/chunks*int64(i) + length%chunks*int64(i)/chunks
	}
	return starts
}

// transferBound is the share of the window, 0..1, from which it is bound by copies.
const transferBound = 0.40

// shortWindow is the length in ns below which shares of a window mean little.
const shortWindow = 100_000

// insideGraphs names the time of CUDA graphs whose kernels were not traced.
const insideGraphs = "(inside CUDA graphs)"
