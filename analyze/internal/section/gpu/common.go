package gpu

import (
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// deviceID is a device as the label of metrics.
func deviceID(d *timeline.Device) string { return strconv.Itoa(int(d.ID)) }

// causeFields fill the columns of the causes of idle time, in ns.
func causeFields(times [timeline.Causes]int64) []kit.Field {
	return lists.Map(lists.Indexes[int](timeline.Causes), func(c int) kit.Field {
		return kit.Int(timeline.CauseNames[c], times[c])
	})
}

// ranIn is when work of a class ran on a device.
func ranIn(d *timeline.Device, class timeline.Class) (set interval.Set) {
	for i := range d.Len() {
		if d.Class(i) == class {
			set.Add(d.Start(i), d.End(i))
		}
	}
	return set
}

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

// sinceStart are moments of a chart over the window: its labels, in ns since the start.
func sinceStart(window interval.Interval, moments []int64) []string {
	return lists.Map(moments, func(at int64) string { return strconv.FormatInt(at-window.Start, 10) })
}

// transferBound is the share of the window, 0..1, from which it is bound by copies.
const transferBound = 0.40

// shortWindow is the length in ns below which shares of a window mean little.
const shortWindow = 100_000

// insideGraphs names the time of CUDA graphs whose kernels were not traced.
const insideGraphs = "(inside CUDA graphs)"
