package diff

import (
	"fmt"

	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// evidence compares sides without a trace.
func (x *comparer) evidence() {
	c := x.C
	iterations := x.sides.CheckEvidence()
	x.found()
	if iterations {
		x.nameUnit()
		x.rows()
	}
	x.measured(false)
	if len(c.Primary) > 0 {
		c.Depth = comparison.DepthEvidence
	} else if c.Comparable {
		c.Refuse(comparison.MissingMetric, "base and head have no metric in common")
	}
	if !c.Comparable && !c.Identical {
		x.unsettle()
	}
}

// measured compares the numbers of the evidence: all of them, or beside traces those that no trace has.
func (x *comparer) measured(beside bool) {
	rows := x.noise.Measured(beside, len(x.C.Primary))
	x.C.Primary = append(x.C.Primary, rows...)
	if beside && len(rows) > 0 && !x.C.Comparable && !x.C.Identical {
		x.unsettle()
	}
}

// mostFailures is the share of failed requests from which on the latencies of the others mean nothing: requests that
// fail are often the slow ones, and a server that sheds load is fast.
const mostFailures = 0.01

// failedRequests withdraws the classes of latencies if too many requests of a side failed.
func (x *comparer) failedRequests() {
	for name, c := range side.Each(x.Base.Captures, x.Head.Captures) {
		if v, ok := c.Value("load.failure_ratio", nil); ok && v > mostFailures {
			x.C.Reason(comparison.FailedRequests, fmt.Sprintf("%s: %s of the requests of %s failed: latencies are those of the "+
				"others, and nothing follows from them", name, unit.Percent(v), c.Report.Trace.Name))
		}
	}
	if x.C.Has(comparison.FailedRequests) {
		withdraw(x.C, "failed_requests: latencies are those of the requests that did not fail", comparison.IsLatency)
	}
}
