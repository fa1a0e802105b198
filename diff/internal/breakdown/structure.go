package breakdown

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/pairing"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// leastCount is the least mean change per unit for a count to have changed: half a call per unit is one in every other
// unit.
const leastCount = 0.5

// Limits of a launch storm: at least this many more launches per unit, of kernels so short on average that launching
// them costs as much as running them.
const (
	stormLaunches = 20
	stormKernel   = 10e3 // ns
)

// Structure finds what is done differently, however long it takes. Counts are exact, so one capture a side is enough.
func Structure(base, head *side.Side, depth comparison.Depth) []comparison.Structural {
	s := &structure{base: base, head: head}
	s.graphs()
	s.launches(depth)
	s.blocking()
	s.copies()
	if depth == comparison.DepthKernel {
		s.communication()
	}
	return s.found
}

// structure is what was found to be done differently.
type structure struct {
	base, head *side.Side
	found      []comparison.Structural
}

// add adds a finding about a count that should be low. A count that rises from 0 is added, one that falls to 0 removed.
func (s *structure) add(id, text string, b, h float64) {
	class := comparison.Better(h - b)
	switch {
	case b < leastCount && h >= leastCount:
		class = comparison.Added
	case h < leastCount && b >= leastCount:
		class = comparison.Removed
	}
	s.found = append(s.found, comparison.Structural{ID: id, Text: text, Base: &b, Head: &h, Class: class})
}

func perUnit(b, h float64) string { return wording.Means("per unit", b, h) }

// means returns the mean of a number over the views or the captures of both sides; ok is false if one lacks it.
func means[T any](base, head []T, of func(T) (float64, bool)) (b, h float64, ok bool) {
	b, ok = side.MeanOf(base, of)
	h, ok2 := side.MeanOf(head, of)
	return b, h, ok && ok2
}

// launchMedian returns the median of a capture's launches per unit; ok is false if it is unknown.
func launchMedian(v *side.View) (n float64, ok bool) {
	if v.Launches == nil {
		return 0, false
	}
	return v.Launches.P50, true
}

// graphs finds CUDA graphs that are no longer, or newly, launched in every unit.
func (s *structure) graphs() {
	b0, h0, ok := s.calls(func(name string) bool { return strings.Contains(name, "GraphLaunch") }, countOf)
	if !ok || math.Abs(h0-b0) < leastCount {
		return
	}
	text := "CUDA graph launches " + perUnit(b0, h0)
	class := comparison.Better(b0 - h0) // fewer graph launches mean more single ones
	if b, h, ok := means(s.base.Views, s.head.Views, launchMedian); ok {
		text += ", launches " + perUnit(b, h)
		switch {
		case h0 < b0 && h > b:
			text += ": kernels that a graph launched are launched one by one"
		case h0 > b0 && h < b:
			text += ": kernels that were launched one by one are launched by a graph"
		case b0 >= leastCount && h0 >= leastCount && h != b:
			class = comparison.Better(h - b) // the same work in fewer graphs, or in more of them
			text += more(h0-b0, ": the work is in more graphs", ": the work is in fewer graphs")
		}
	}
	s.found = append(s.found,
		comparison.Structural{ID: comparison.FoundGraphs, Text: text, Base: &b0, Head: &h0, Class: class})
}

// launches finds a changed number of launches, and many more launches of short kernels.
func (s *structure) launches(depth comparison.Depth) {
	b, h, ok := means(s.base.Views, s.head.Views, launchMedian)
	if !ok || b == h {
		return
	}
	s.add(comparison.FoundLaunches, "launches "+perUnit(b, h), b, h)
	if depth != comparison.DepthKernel || h-b < stormLaunches ||
		slices.ContainsFunc(s.found, func(o comparison.Structural) bool { return o.ID == comparison.FoundGraphs }) {
		return
	}
	var more, time float64
	for _, p := range pairing.Kernels(s.base, s.head) {
		x, y := p.Works()
		if n := y.Count - x.Count; n > 0 {
			each := y.Time / y.Count
			if own := (y.Time - x.Time) / n; own > 0 {
				each = min(each, own) // leaves out the runs that the base had
			}
			more += n
			time += n * each
		}
	}
	if more > 0 && time/more <= stormKernel {
		s.add(comparison.FoundStorm, fmt.Sprintf("%s more launches per unit, of kernels that take %s on average",
			wording.Mean(h-b), pairing.NS(time/more)), b, h)
	}
}

func countOf(c side.Call) float64 { return c.Count }

func timeOf(c side.Call) float64 { return c.Time }

// calls returns the number or the time of the calls per unit whose names match; ok is false if it is unknown.
func (s *structure) calls(match func(name string) bool, of func(c side.Call) float64) (b, h float64, ok bool) {
	return means(s.base.Views, s.head.Views, func(v *side.View) (float64, bool) {
		matching := lists.Filter(v.Api, func(c side.Call) bool { return match(c.Name) })
		return lists.Sum(matching, of), len(v.Api) > 0
	})
}

// callNames returns the names of the API calls of both sides, the base's first, in report order.
func callNames(base, head *side.Side) []string {
	var names []string
	for _, v := range slices.Concat(base.Views, head.Views) {
		for i := range v.Api {
			lists.Place[int32](&names, v.Api[i].Name)
		}
	}
	return names
}

// blocking finds calls that wait for the device and whose number per unit changed.
func (s *structure) blocking() {
	for _, name := range callNames(s.base, s.head) {
		b, h, ok := s.calls(func(n string) bool { return n == name }, countOf)
		if !side.Blocks(name) || !ok || math.Abs(h-b) < leastCount {
			continue
		}
		what := "blocking call "
		switch {
		case b < leastCount:
			what = "new blocking call "
		case h < leastCount:
			what = "no more blocking call "
		}
		s.add(comparison.FoundBlocking+"/"+name, what+name+", "+perUnit(b, h), b, h)
	}
}

// copies finds changed numbers of copies, and of pageable ones, which hold up the host.
func (s *structure) copies() {
	for _, d := range directions(s.base, s.head) {
		for _, pageable := range []bool{true, false} {
			b, h, ok := copiesOf(s.base, s.head, d, pageable)
			if !ok || math.Abs(h.Count-b.Count) < leastCount {
				continue
			}
			id, text := comparison.FoundCopies+"/"+d, d+" copies "
			if pageable {
				id, text = comparison.FoundPageable+"/"+d, "pageable "+d+" copies "
			}
			s.add(id, text+perUnit(b.Count, h.Count)+", "+unit.Format(b.Bytes, report.Bytes)+" → "+
				unit.Format(h.Bytes, report.Bytes), b.Count, h.Count)
		}
	}
}

// directions returns the directions of the copies of both sides, sorted.
func directions(base, head *side.Side) []string {
	var list []string
	for _, v := range slices.Concat(base.Views, head.Views) {
		for i := range v.Copies {
			lists.Place[int32](&list, v.Copies[i].Direction)
		}
	}
	slices.Sort(list)
	return list
}

// copiesOf returns both sides' copies of a direction, means per unit; ok is false if a report lacks them, or does not
// say which of them are pageable.
func copiesOf(base, head *side.Side, direction string, pageable bool) (b, h side.Copies, ok bool) {
	ok = true
	sum := func(s *side.Side) (c side.Copies) {
		for _, v := range s.Views {
			ok = ok && (len(v.Copies) > 0 || v.Copied.Max <= 0)
			for i := range v.Copies {
				r := &v.Copies[i]
				ok = ok && (!pageable || r.Direction != direction || r.Kind != "unknown" || r.Count == 0)
				if r.Direction == direction && (!pageable || r.Kind == "pageable") {
					c.Count += r.Count / float64(len(s.Views))
					c.Bytes += r.Bytes / float64(len(s.Views))
				}
			}
		}
		return c
	}
	b, h = sum(base), sum(head)
	return b, h, ok
}

// communication finds a changed number of communication kernels.
func (s *structure) communication() {
	of := func(w side.Work) bool { return w.Category == side.Communication }
	count := func(x *side.Side) float64 {
		list, _ := x.Merged()
		return lists.Sum(lists.Filter(list, of), func(w side.Work) float64 { return w.Count })
	}
	if b, h := count(s.base), count(s.head); math.Abs(h-b) >= leastCount {
		what := "communication kernels "
		if b < leastCount {
			what = "new communication: kernels "
		}
		s.add(comparison.FoundCommunication, what+perUnit(b, h), b, h)
	}
}

// leastCall is the least share of the unit's time for a call to be judged by its length.
const leastCall = 0.001

// APIRows compares the host's calls, in the order of callNames.
func APIRows(base, head *side.Side) (list []comparison.API) {
	s := &structure{base: base, head: head}
	for _, name := range callNames(base, head) {
		own := func(n string) bool { return n == name }
		b, h, ok := s.calls(own, countOf)
		time, timeHead, _ := s.calls(own, timeOf)
		if !ok {
			continue
		}
		a := comparison.API{Name: name, Kind: side.KindOfCall(name), BaseCount: &b, HeadCount: &h,
			BaseTime: &time, HeadTime: &timeHead, Class: comparison.Unsettled}
		if b > 0 {
			a.BaseMean = new(time / b)
		}
		if h > 0 {
			a.HeadMean = new(timeHead / h)
		}
		switch {
		case b == 0:
			a.Class = comparison.Added
		case h == 0:
			a.Class = comparison.Removed
		case comparison.Value(a.BaseMean) > 0 && comparison.Value(a.HeadMean) > 0:
			ratio := comparison.Value(a.HeadMean) / comparison.Value(a.BaseMean)
			a.Ratio = &ratio
			switch l := math.Abs(math.Log(ratio)); {
			case l <= math.Log1p(comparison.DefaultFloor) || max(time, timeHead) < leastCall*pairing.Shorter(base, head):
				a.Class = comparison.Same
			case side.Blocks(name): // lasts as long as the work that it waits for
			case l > math.Log1p(2*comparison.DefaultFloor):
				a.Class = comparison.Better(ratio - 1)
			}
		}
		list = append(list, a)
	}
	return list
}
