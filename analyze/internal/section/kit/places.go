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

// RangeWalk goes through ascending stretches of threads' time, and knows the ranges open on the thread.
type RangeWalk struct {
	r     *trace.Ranges
	next  int           // the next range to come
	open  [][]openRange // by thread
	names []int32       // of those open, outermost first
}

type openRange struct {
	start, end int64
	name       int32
}

func NewRangeWalk(t *trace.Trace) *RangeWalk {
	return &RangeWalk{r: &t.Ranges, open: make([][]openRange, len(t.Threads))}
}

// Each calls visit for every piece of a stretch, with the names of the ranges that are open in it, the innermost last.
func (w *RangeWalk) Each(thread int32, start, end int64, visit func(open []int32, ns int64)) {
	for at := start; at < end; {
		r, next := w.r, w.next // in registers: this loop sees every range of the capture
		for ; next < r.Len() && r.Start(next) <= at; next++ {
			if r.End(next) > at { // most end between the stretches
				w.push(next)
			}
		}
		w.next = next
		open := w.ended(thread, at)
		until := end
		w.names = w.names[:0]
		for i := range open {
			if open[i].end > at { // one that crosses another may have ended before the inner one
				until = min(until, open[i].end)
				w.names = append(w.names, open[i].name)
			}
		}
		if w.next < w.r.Len() {
			until = min(until, w.r.Start(w.next))
		}
		visit(w.names, until-at)
		at = until
	}
}

// ended removes from a thread the innermost ranges that have ended.
func (w *RangeWalk) ended(thread int32, at int64) []openRange {
	open := w.open[thread]
	for len(open) > 0 && open[len(open)-1].end <= at {
		open = open[:len(open)-1]
	}
	w.open[thread] = open
	return open
}

// push opens a range. If ranges start together, the longer one is the outer one.
func (w *RangeWalk) push(row int) {
	thread := w.r.Thread(row)
	if thread == trace.None {
		return
	}
	o := openRange{w.r.Start(row), w.r.End(row), w.r.Name(row)}
	open := append(w.ended(thread, o.start), o)
	for i := len(open) - 1; i > 0 && open[i-1].start == o.start && open[i-1].end < o.end; i-- {
		open[i-1], open[i] = open[i], open[i-1]
	}
	w.open[thread] = open
}
