package diff

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// Identifiers of structural findings. Those of calls and copies go on with a slash and the name of the call, or the
// direction of the copies.
const (
	FoundBlocking      = "blocking_call"
	FoundPageable      = "pageable_copies"
	FoundCopies        = "copies"
	FoundLaunches      = "launches_per_unit"
	FoundStorm         = "launch_storm"
	FoundGraphs        = "graph_coverage"
	FoundCommunication = "communication"
)

// leastCount is from how many more or fewer per unit, on average, a count has changed: half a call per unit is one in
// every other unit.
const leastCount = 0.5

// Bounds of a launch storm: so many more launches per unit, of kernels that take so little on average that launching them
// costs as much as running them.
const (
	stormLaunches = 20
	stormKernel   = 10e3 // ns
)

// structure finds what is done differently, however long it takes. Counts are exact, so one capture a side is enough.
func (x *Parts) structure(base, head []work) {
	x.graphs()
	x.launches(base, head)
	x.blocking()
	x.copies()
	if x.c.Depth == DepthKernel {
		x.communication(base, head)
	}
}

// found adds a finding about a count of which less is better. A count that comes from nothing is added, one that goes to
// nothing removed.
func (x *Parts) found(id, text string, b, h float64) {
	class := better(h - b)
	switch {
	case b < leastCount && h >= leastCount:
		class = Added
	case h < leastCount && b >= leastCount:
		class = Removed
	}
	x.c.Structure = append(x.c.Structure, Structural{ID: id, Text: text, Base: &b, Head: &h, Class: class})
}

func perUnit(b, h float64) string { return fmt.Sprintf("%.4g → %.4g per unit", b, h) }

// median of a count on both sides; ok is false where a capture lacks it.
func (x *Parts) medians(of func(v *view) *report.Summary) (b, h float64, ok bool) {
	p50 := func(v *view) (float64, bool) {
		if s := of(v); s != nil {
			return s.P50, true
		}
		return 0, false
	}
	b, ok = x.base.mean(p50)
	h, ok2 := x.head.mean(p50)
	return b, h, ok && ok2
}

// graphs finds CUDA graphs that are no longer, or newly, launched in every unit.
func (x *Parts) graphs() {
	b0, h0, ok := x.calls(func(name string) bool { return strings.Contains(name, "GraphLaunch") })
	if !ok || math.Abs(h0-b0) < leastCount {
		return
	}
	text := "CUDA graph launches " + perUnit(b0, h0)
	class := better(b0 - h0) // fewer graph launches mean more single ones
	if b, h, ok := x.medians(func(v *view) *report.Summary { return v.launches }); ok {
		text += ", launches " + perUnit(b, h)
		switch {
		case h0 < b0 && h > b:
			text += ": kernels that a graph launched are launched one by one"
		case h0 > b0 && h < b:
			text += ": kernels that were launched one by one are launched by a graph"
		case b0 >= leastCount && h0 >= leastCount && h != b:
			class = better(h - b) // the same work in fewer graphs, or in more of them
			text += more(h0-b0, ": the work is in more graphs", ": the work is in fewer graphs")
		}
	}
	x.c.Structure = append(x.c.Structure, Structural{ID: FoundGraphs, Text: text, Base: &b0, Head: &h0, Class: class})
}

// launches finds a changed number of launches, and many more of short kernels.
func (x *Parts) launches(base, head []work) {
	b, h, ok := x.medians(func(v *view) *report.Summary { return v.launches })
	if !ok || b == h {
		return
	}
	x.found(FoundLaunches, "launches "+perUnit(b, h), b, h)
	if x.c.Depth != DepthKernel || h-b < stormLaunches || slices.ContainsFunc(x.c.Structure, func(s Structural) bool { return s.ID == FoundGraphs }) {
		return
	}
	var more, time float64
	for _, p := range pairWork(base, head) {
		x, y := of(base, p.base), of(head, p.head)
		if n := y.count - x.count; n > 0 {
			each := y.time / y.count
			if own := (y.time - x.time) / n; own > 0 {
				each = min(each, own) // than the runs that were there before
			}
			more += n
			time += n * each
		}
	}
	if more > 0 && time/more <= stormKernel {
		x.found(FoundStorm, fmt.Sprintf("%.4g more launches per unit, of kernels that take %s on average", h-b, ns(time/more)), b, h)
	}
}

// calls counts the calls per unit whose names match.
func (x *Parts) calls(match func(name string) bool) (b, h float64, ok bool) {
	count := func(v *view) (float64, bool) {
		sum := 0.0
		for i := range v.api {
			if match(v.api[i].name) {
				sum += v.api[i].count
			}
		}
		return sum, v.hasAPI
	}
	b, ok = x.base.mean(count)
	h, ok2 := x.head.mean(count)
	return b, h, ok && ok2
}

// names of the API calls of both sides, those of the base first, in the order of the reports.
func (x *Parts) callNames() []string {
	var names []string
	for _, s := range []*side{x.base, x.head} {
		for _, v := range s.views {
			for i := range v.api {
				if n := v.api[i].name; !slices.Contains(names, n) {
					names = append(names, n)
				}
			}
		}
	}
	return names
}

// blocking finds calls that wait for the device and were made less often, or not at all, before.
func (x *Parts) blocking() {
	for _, name := range x.callNames() {
		b, h, ok := x.calls(func(n string) bool { return n == name })
		if !blocks(name) || !ok || math.Abs(h-b) < leastCount {
			continue
		}
		what := "blocking call "
		switch {
		case b < leastCount:
			what = "new blocking call "
		case h < leastCount:
			what = "no more blocking call "
		}
		x.found(FoundBlocking+"/"+name, what+name+", "+perUnit(b, h), b, h)
	}
}

// copies finds copies to or from pageable memory, which hold up the host, and a changed number of copies.
func (x *Parts) copies() {
	sum := func(s *side, match func(c *copies) bool) (count, bytes float64, ok bool) {
		for _, v := range s.views {
			if !v.hasCopies && v.copied.Max > 0 {
				return 0, 0, false // a report that does not say
			}
			for i := range v.copies {
				if match(&v.copies[i]) {
					count += v.copies[i].count
					bytes += v.copies[i].bytes
				}
			}
		}
		n := float64(len(s.views))
		return count / n, bytes / n, true
	}
	var directions []string
	for _, s := range []*side{x.base, x.head} {
		for _, v := range s.views {
			for i := range v.copies {
				if d := v.copies[i].direction; !slices.Contains(directions, d) {
					directions = append(directions, d)
				}
			}
		}
	}
	slices.Sort(directions)
	for _, d := range directions {
		for _, pageable := range []bool{true, false} {
			match := func(c *copies) bool { return c.direction == d && (!pageable || c.kind == "pageable") }
			b, b0, ok := sum(x.base, match)
			h, h0, ok2 := sum(x.head, match)
			if !ok || !ok2 || math.Abs(h-b) < leastCount {
				continue
			}
			id, text := FoundCopies+"/"+d, d+" copies "
			if pageable {
				id, text = FoundPageable+"/"+d, "pageable "+d+" copies "
			}
			x.found(id, fmt.Sprintf("%s%s, %s → %s", text, perUnit(b, h), unit.Format(b0, report.Bytes), unit.Format(h0, report.Bytes)), b, h)
		}
	}
}

// communication finds a changed number of communication kernels.
func (x *Parts) communication(base, head []work) {
	count := func(list []work) (n float64) {
		for i := range list {
			if list[i].category == communication {
				n += list[i].count
			}
		}
		return n
	}
	if b, h := count(base), count(head); math.Abs(h-b) >= leastCount {
		what := "communication kernels "
		if b < leastCount {
			what = "new communication: kernels "
		}
		x.found(FoundCommunication, what+perUnit(b, h), b, h)
	}
}

// leastCall is the share of the unit's time that a call must take to be judged by its length.
const leastCall = 0.001

// apiRows compares the host's calls, in the order of the base's time.
func (x *Parts) apiRows() {
	type sums struct{ count, time float64 }
	of := func(s *side, name string) (r sums, ok bool) {
		for _, v := range s.views {
			if !v.hasAPI {
				return r, false
			}
			if c := v.call(name); c != nil {
				r.count += c.count / float64(len(s.views))
				r.time += c.time / float64(len(s.views))
			}
		}
		return r, true
	}
	for _, name := range x.callNames() {
		b, ok := of(x.base, name)
		h, ok2 := of(x.head, name)
		if !ok || !ok2 {
			continue
		}
		a := API{Name: name, Kind: kindOfCall(name), BaseCount: &b.count, HeadCount: &h.count, BaseTime: &b.time, HeadTime: &h.time, Class: Unsettled}
		if b.count > 0 {
			mean := b.time / b.count
			a.BaseMean = &mean
		}
		if h.count > 0 {
			mean := h.time / h.count
			a.HeadMean = &mean
		}
		switch {
		case b.count == 0:
			a.Class = Added
		case h.count == 0:
			a.Class = Removed
		case *a.BaseMean > 0 && *a.HeadMean > 0:
			ratio := *a.HeadMean / *a.BaseMean
			a.Ratio = &ratio
			switch l := math.Abs(math.Log(ratio)); {
			case l <= math.Log1p(DefaultFloor) || max(b.time, h.time) < leastCall*x.shorter():
				a.Class = Same
			case blocks(name): // lasts as long as what it waits for
			case l > math.Log1p(2*DefaultFloor):
				a.Class = better(ratio - 1)
			}
		}
		x.c.API = append(x.c.API, a)
	}
}
