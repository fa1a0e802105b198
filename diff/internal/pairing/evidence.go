package pairing

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

// EvidenceOnly reports whether no report of either side comes from a trace.
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
	if x.Kinds == nil {
		x.matchKinds()
	}
	return slices.ContainsFunc(x.Kinds, func(k Kind) bool { return x.common(&k) })
}

// BaseKinds and HeadKinds name the kinds of unit that all captures of a side have.
func (x *Sides) BaseKinds() []side.Kind {
	return x.everyKind(x.Base, func(k *Kind) []int { return k.Base })
}

func (x *Sides) HeadKinds() []side.Kind {
	return x.everyKind(x.Head, func(k *Kind) []int { return k.Head })
}

func (x *Sides) everyKind(s *side.Side, of func(k *Kind) []int) []side.Kind {
	var list []side.Kind
	for i := range x.Kinds {
		if x.known(s, of(&x.Kinds[i])) {
			list = append(list, x.Kinds[i].Name)
		}
	}
	return list
}
