package diff

import (
	"fmt"

	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/pairing"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// evidence compares sides without a trace.
func (x *comparer) evidence() {
	c := x.C
	c.Comparable = true
	x.sides.Environment()
	if text := pairing.OtherEvidence(x.Base, x.Head); text != "" {
		c.Refuse(comparison.DifferentWork, text)
	}
	x.iterations()
	x.noise.Measured(false)
	if len(c.Primary) > 0 {
		c.Depth = comparison.DepthEvidence
	} else if c.Comparable {
		c.Refuse(comparison.MissingMetric, "base and head have no metric in common")
	}
	if !c.Comparable && !c.Identical {
		x.unsettle()
	}
}

// iterations compares the unit of work if logs detail iterations on both sides.
func (x *comparer) iterations() {
	for _, s := range []*side.Side{x.Base, x.Head} {
		for _, c := range s.Captures {
			if len(c.Kinds) == 0 {
				return
			}
		}
	}
	// If kinds differ, the other numbers cannot be compared
	if x.Opt.Phase == "" && x.Opt.Batch == nil && !x.sides.CommonKind() {
		x.C.Reason(
			comparison.DifferentWork,
			"no kind of iteration occurs on both sides: "+x.sides.KindsText(),
		)
		return
	}
	if !x.sides.Choose() {
		return
	}
	u := &x.Base.Captures[0].Report.Unit
	x.C.Unit.Kind, x.C.Unit.Name = u.Kind, u.Name
	x.C.Unit.Phase, x.C.Unit.Batch, x.C.Unit.Tokens = x.sides.Kind.Phase, pairing.Optional(
		x.sides.Kind.Batch), pairing.Optional(x.sides.Kind.Tokens)
	x.C.Unit.BaseN, x.C.Unit.HeadN = x.Base.Units(), x.Head.Units()
	x.noise.Rows(x.sides.Chosen())
}

// beside compares the evidence beside the traces of both sides in the same way as evidence without traces.
func (x *comparer) beside() {
	rows := len(x.C.Primary)
	x.noise.Measured(true)
	if len(x.C.Primary) > rows && !x.C.Comparable && !x.C.Identical {
		x.unsettle()
	}
}

// mostFailures is the share of failed requests from which on the latencies of the others mean nothing: requests that
// fail are often the slow ones, and a server that sheds load is fast.
const mostFailures = 0.01

// failedRequests withdraws the classes of latencies if too many requests of a side failed.
func (x *comparer) failedRequests() {
	for _, s := range []struct {
		name string
		side *side.Side
	}{{"base", x.Base}, {"head", x.Head}} {
		for _, c := range s.side.Captures {
			if v, ok := c.Value("load.failure_ratio", nil); ok && v > mostFailures {
				x.C.Reason(comparison.FailedRequests, fmt.Sprintf(
					"%s: %s of the requests of %s failed: latencies are those of the others, and nothing follows from them",
					s.name, unit.Percent(v), c.Report.Trace.Name))
			}
		}
	}
	if !x.C.Has(comparison.FailedRequests) {
		return
	}
	for i := range x.C.Primary {
		if r := &x.C.Primary[i]; comparison.IsLatency(r.Metric) {
			r.Class, r.Why, r.NeedCaptures = comparison.Unsettled, "failed_requests: latencies are those of the requests that did not fail", nil
		}
	}
}
