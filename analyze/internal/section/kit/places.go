package kit

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Phased reports whether one of the ranges lo <= i < hi maps to a phase.
func (o *Options) Phased(r *trace.Ranges, lo, hi int) bool {
	phased := lists.Map(r.Names, func(n trace.RangeName) bool { return o.phase(n.Tag) != "" })
	if !slices.Contains(phased, true) {
		return false
	}
	for i := lo; i < hi; i++ {
		if phased[r.Name(i)] {
			return true
		}
	}
	return false
}

// PhaseOf is the index into Options.Phases of a range name's phase, by the name's tag, or -1.
func PhaseOf(tag uint32) int { return int(tag&phaseBits) - 1 }

// RangeCell is the cell of a range name that may be missing.
func RangeCell(name string) report.Cell {
	return report.S(cmp.Or(name, "(no range)"))
}

// Path is the place and the next ranges around the innermost, from the inside out: in PyTorch aten::copy_ alone tells
// little, and aten::copy_ in aten::item much.
func (p *places) Path(call int32) (rng, within, phase string) {
	rng, phase = p.Place(call)
	var outer []string
	first := true
	p.contexts.Walk(call, func(name int32) bool {
		if !first {
			outer = append(outer, p.names[name].Text)
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
	if n := p.contexts.Of(call); n != trace.None {
		rng = p.names[p.contexts.NameOf(n)].Text
	}
	if name := p.phased.Of(call); name != trace.None {
		phase = p.options.phase(p.names[name].Tag)
	}
	return rng, phase
}

// phase of a range name, by its tag, or empty.
func (o *Options) phase(tag uint32) string {
	if p := PhaseOf(tag); p >= 0 && p < len(o.Phases) {
		return o.Phases[p]
	}
	return ""
}

func NewPlaces(in *Input) *places {
	p := &places{contexts: in.Contexts, names: in.Trace.Ranges.Names, options: &in.Options}
	p.phased = in.Contexts.Nearest(func(name int32) bool { return in.Options.phase(p.names[name].Tag) != "" })
	return p
}

// places finds where in the program API calls were made.
type places struct {
	contexts *timeline.Contexts
	names    []trace.RangeName
	options  *Options
	phased   *timeline.Nearest // range name that maps to a phase
}

// alsoShare is the share of the judged time, 0..1, from which a place is named beside the main one.
const alsoShare = 0.05

// further are the other ranges and calls, at most two, that hold at least some time.
func (w *IdlePlace) further(t *trace.Trace, least float64, said ...[]string) (names []string) {
	times := w.inCalls(t)
	lists.AddTo(times, w.Ranges)
	for _, name := range ByTime(times) {
		if float64(times[name]) >= least && len(names) < 2 && !slices.Contains(slices.Concat(said...), name) {
			names = append(names, name)
		}
	}
	return names
}

// inCalls is the time in calls, by name.
func (w *IdlePlace) inCalls(t *trace.Trace) map[string]int64 {
	times := map[string]int64{}
	for key, ns := range w.Calls {
		times[key.Name(t)] += ns
	}
	return times
}

// ByTime are the keys of some times, most time first.
func ByTime[K cmp.Ordered](times map[K]int64) []K {
	return slices.SortedFunc(maps.Keys(times), func(a, b K) int {
		return cmp.Or(cmp.Compare(times[b], times[a]), cmp.Compare(a, b))
	})
}

// phaseBits of a range name's tag hold its phase plus one.
const phaseBits = 1<<12 - 1
