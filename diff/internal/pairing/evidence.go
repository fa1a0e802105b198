package pairing

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// kindsText names the kinds of unit that all captures of a side have, for both sides.
func (x *Sides) kindsText() string {
	return "base has " + kindsOf(x.Kinds, x.Base, func(k *Kind) []int { return k.Base }) + "; head has " +
		kindsOf(x.Kinds, x.Head, func(k *Kind) []int { return k.Head })
}

func kindsOf(all []*Kind, s *side.Side, of func(k *Kind) []int) string {
	const most = 6
	kinds := lists.Filter(all, func(k *Kind) bool { return known(s, of(k)) })
	list := lists.Map(kinds[:min(len(kinds), most)], func(k *Kind) string { return k.Name.String() })
	if len(kinds) > most {
		list = append(list, fmt.Sprintf("%d more", len(kinds)-most))
	}
	if len(list) == 0 {
		return "none in all of its captures"
	}
	return strings.Join(list, ", ")
}

// EvidenceOnly reports whether no report of either side comes from a trace.
func EvidenceOnly(base, head *side.Side) bool {
	ofTrace := func(c *side.Capture) bool { return !c.EvidenceOnly() }
	return !slices.ContainsFunc(slices.Concat(base.Captures, head.Captures), ofTrace)
}

func evidenceKinds(captures ...*side.Capture) (list []string) {
	for _, c := range captures {
		for _, e := range c.Report.Evidence {
			lists.Place[int32](&list, e.Kind)
		}
	}
	return list
}

// otherEvidence says that the sides have no kind of evidence in common; empty if they have one.
func otherEvidence(base, head *side.Side) string {
	b, h := evidenceKinds(base.Captures...), evidenceKinds(head.Captures...)
	if slices.ContainsFunc(b, func(k string) bool { return slices.Contains(h, k) }) {
		return ""
	}
	return fmt.Sprintf("base is %s and head is %s, which measure different things: compare files of one kind",
		strings.Join(b, ", "), strings.Join(h, ", "))
}
