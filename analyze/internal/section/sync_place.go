package section

import (
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/attrib"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

// numbering gives each distinct key a small number, in order of first appearance.
type numbering[K comparable] struct {
	index map[K]int32
	keys  []K
	last  int32 // neighbouring events mostly have the same key
}

func newNumbering[K comparable]() *numbering[K] {
	return &numbering[K]{index: map[K]int32{}}
}

func (n *numbering[K]) of(k K) int32 {
	if len(n.keys) > 0 && n.keys[n.last] == k {
		return n.last
	}
	i, ok := n.index[k]
	if !ok {
		i = int32(len(n.keys))
		n.index[k] = i
		n.keys = append(n.keys, k)
	}
	n.last = i
	return i
}

// places says where in the program API calls were made.
type places struct {
	in     *Input
	phased *attrib.Nearest // range name that maps to a phase
}

func newPlaces(in *Input) *places {
	return &places{in, in.Contexts.Nearest(func(name int32) bool { return in.rangePhase(name) != "" })}
}

// rangePhase is the phase of a range name, or empty.
func (in *Input) rangePhase(name int32) string {
	if p := PhaseOf(in.Trace.Ranges.Names[name].Tag); p >= 0 && p < len(in.Options.Phases) {
		return in.Options.Phases[p]
	}
	return ""
}

func (in *Input) rangeText(name int32) string { return in.Trace.Ranges.Names[name].Text }

// place is the innermost NVTX range around a call and the nearest phase outward. Each is empty where there is none.
func (p *places) place(call int32) (rng, phase string) {
	if n := p.in.Contexts.Of(call); n != trace.None {
		rng = p.in.rangeText(p.in.Contexts.NameOf(n))
	}
	if name := p.phased.Of(call); name != trace.None {
		phase = p.in.rangePhase(name)
	}
	return rng, phase
}

// outerRanges are how many ranges around the innermost one path names.
const outerRanges = 3

// path is place and, from the inside out, the next ranges around the innermost: in PyTorch aten::copy_ says little, and
// aten::copy_ in aten::item much.
func (p *places) path(call int32) (rng, within, phase string) {
	rng, phase = p.place(call)
	var outer []string
	first := true
	p.in.Contexts.Walk(call, func(name int32) bool {
		if !first {
			outer = append(outer, p.in.rangeText(name))
		}
		first = false
		return len(outer) < outerRanges
	})
	return rng, strings.Join(outer, " < "), phase
}

// rangeCell is the cell of a range name that may be missing.
func rangeCell(name string) report.Cell {
	if name == "" {
		return report.S("(no range)")
	}
	return report.S(name)
}

// optionalCell is the cell of a name that may be missing.
func optionalCell(name string) report.Cell {
	if name == "" {
		return report.Null
	}
	return report.S(name)
}
