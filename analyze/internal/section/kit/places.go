package kit

import (
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

// Phased reports whether one of these ranges maps to a phase.
func (in *Input) Phased(lo, hi int) bool {
	r := &in.Trace.Ranges
	maps, found := make([]bool, len(r.Names)), false
	for n := range maps {
		p := PhaseOf(r.Names[n].Tag)
		maps[n] = p >= 0 && p < len(in.Options.Phases)
		found = found || maps[n]
	}
	for i := lo; found && i < hi; i++ {
		if maps[r.Name(i)] {
			return true
		}
	}
	return false
}

// PhaseOf is the index into Options.Phases of a range name's phase, by the name's tag, or -1.
func PhaseOf(tag uint32) int { return int(tag&phaseBits) - 1 }

// RangeCell is the cell of a range name that may be missing.
func RangeCell(name string) report.Cell {
	if name == "" {
		return report.S("(no range)")
	}
	return report.S(name)
}

// Path is the place and the next ranges around the innermost, from the inside out: in PyTorch aten::copy_ alone tells
// little, and aten::copy_ in aten::item much.
func (p *places) Path(call int32) (rng, within, phase string) {
	rng, phase = p.Place(call)
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

// outerRanges are how many ranges around the innermost one path names.
const outerRanges = 3

// Place is the innermost NVTX range around a call and the nearest phase around it. Each is empty if there is none.
func (p *places) Place(call int32) (rng, phase string) {
	if n := p.in.Contexts.Of(call); n != trace.None {
		rng = p.in.rangeText(p.in.Contexts.NameOf(n))
	}
	if name := p.phased.Of(call); name != trace.None {
		phase = p.in.rangePhase(name)
	}
	return rng, phase
}

func (in *Input) rangeText(name int32) string { return in.Trace.Ranges.Names[name].Text }

// rangePhase is the phase of a range name, or empty.
func (in *Input) rangePhase(name int32) string {
	if p := PhaseOf(in.Trace.Ranges.Names[name].Tag); p >= 0 && p < len(in.Options.Phases) {
		return in.Options.Phases[p]
	}
	return ""
}

func NewPlaces(in *Input) *places {
	return &places{in, in.Contexts.Nearest(func(name int32) bool { return in.rangePhase(name) != "" })}
}

// places finds where in the program API calls were made.
type places struct {
	in     *Input
	phased *timeline.Nearest // range name that maps to a phase
}

// phaseBits of a range name's tag hold its phase plus one.
const phaseBits = 1<<12 - 1
