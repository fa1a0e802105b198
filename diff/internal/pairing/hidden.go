package pairing

import (
	"fmt"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// hiddenRange is the largest ratio of times at which units, or CUDA graphs, with hidden kernels count as the same work:
// nothing else shows it.
const hiddenRange = 2.0

// otherGraphs says that CUDA graphs which hide their kernels on both sides may do different work: they take far longer
// on one side, and the kernels beside them are others. It is empty if they need not.
func otherGraphs(a, b []side.Work) string {
	split := func(list []side.Work) (seen []side.Work, hidden float64) {
		graph := func(w side.Work) bool { return w.Category == side.Graph }
		seen = lists.Filter(list, func(w side.Work) bool { return !graph(w) })
		return seen, lists.Sum(lists.Filter(list, graph), func(w side.Work) float64 { return w.Time })
	}
	seenA, timeA := split(a)
	seenB, timeB := split(b)
	if min(timeA, timeB) <= 0 || alike(timeA, timeB) >= 1/hiddenRange || overlap(seenA, seenB) >= OverlapNeeded {
		return ""
	}
	return fmt.Sprintf("CUDA graphs, which hide their kernels, take %.3g times as long, and the kernels beside them are others: "+
		"this may be different work; capture with --cuda-graph-trace=node to see it", timeB/timeA)
}
