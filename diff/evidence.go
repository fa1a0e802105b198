package diff

import (
	"fmt"

	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/match"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// evidence compares sides without a trace.
func (x *comparer) evidence() {
	c := x.C
	c.Comparable = true
	x.Environment()
	x.KindsOfEvidence()
	x.iterations()
	x.Measured()
	if len(c.Primary) > 0 {
		c.Depth = comparison.DepthEvidence
	} else if c.Comparable {
		x.Refuse(comparison.MissingMetric, "there is no number that both sides hold")
	}
	if !c.Comparable && !c.Identical {
		x.unsettle()
	}
}

// iterations compares the unit of work, where logs detail iterations on both sides.
func (x *comparer) iterations() {
	for _, s := range []*side.Side{x.Base, x.Head} {
		for _, c := range s.Captures {
			if len(c.Kinds) == 0 {
				return
			}
		}
	}
	if x.Opt.Phase == "" && x.Opt.Batch == nil && !x.CommonKind() { // different kinds say nothing of the other numbers
		x.Reason(
			comparison.DifferentWork,
			fmt.Sprintf("no kind of iteration occurs on both sides: base has %s; head has %s",
				match.KindsText(x.BaseKinds()), match.KindsText(x.HeadKinds())),
		)
		return
	}
	if !x.Choose() {
		return
	}
	u := &x.Base.Captures[0].Report.Unit
	x.C.Unit.Kind, x.C.Unit.Name = u.Kind, u.Name
	x.C.Unit.Phase, x.C.Unit.Batch, x.C.Unit.Tokens = x.Kind.Phase, match.Optional(
		x.Kind.Batch), match.Optional(x.Kind.Tokens)
	x.C.Unit.BaseN, x.C.Unit.HeadN = x.Base.Units(), x.Head.Units()
	x.Rows()
}
