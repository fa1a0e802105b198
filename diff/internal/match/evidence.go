package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
)

func KindsText(kinds []side.Kind) string {
	const most = 6
	var list []string
	for _, k := range kinds[:min(len(kinds), most)] {
		list = append(list, k.String())
	}
	if len(kinds) > most {
		list = append(list, fmt.Sprintf("%d more", len(kinds)-most))
	}
	if len(list) == 0 {
		return "none in all of its captures"
	}
	return strings.Join(list, ", ")
}

// EvidenceOnly reports whether no trace is behind any report of either side.
func (x *Sides) EvidenceOnly() bool {
	for _, s := range []*side.Side{x.Base, x.Head} {
		for _, c := range s.Captures {
			if !c.EvidenceOnly() {
				return false
			}
		}
	}
	return true
}

// KindsOfEvidence refuses sides that have no kind of evidence in common.
func (x *Sides) KindsOfEvidence() {
	kinds := func(s *side.Side) []string {
		var list []string
		for _, c := range s.Captures {
			for _, e := range c.Report.Evidence {
				if !slices.Contains(list, e.Kind) {
					list = append(list, e.Kind)
				}
			}
		}
		return list
	}
	b, h := kinds(x.Base), kinds(x.Head)
	if !slices.ContainsFunc(b, func(k string) bool { return slices.Contains(h, k) }) {
		x.Refuse(
			comparison.DifferentWork,
			fmt.Sprintf("base is %s and head is %s, which measure different things: compare files of one kind",
				strings.Join(b, ", "), strings.Join(h, ", ")),
		)
	}
}

// CommonKind reports whether some kind of unit occurs in all captures.
func (x *Sides) CommonKind() bool {
	theirs := x.Head.Kinds()
	return slices.ContainsFunc(x.Base.Kinds(), func(k side.Kind) bool { return slices.Contains(theirs, k) })
}
