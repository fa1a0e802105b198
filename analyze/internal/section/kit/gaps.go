package kit

import (
	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// gapWalk is the one walk of all sections over the gaps of a timeline.
type gapWalk struct {
	makers []func() []*timeline.Visitor // of the sections, including those of the inputs beside
	with   *Input                       // the input whose walk the visitors of this one join
}

// add lets a section of an input take part.
func (w *gapWalk) add(in *Input, s *Section) {
	w.makers = append(w.makers, func() []*timeline.Visitor { return s.Gaps(in) })
}

// Visit makes sure that the visitors, one for each device of a timeline, have visited their devices: together with
// those of the other sections if [Begin] knows them, else alone.
func (in *Input) Visit(tl *timeline.Timeline, visitors []*timeline.Visitor) {
	visitTogether(in)
	parallel.Each(len(visitors), func(d int) {
		if !visitors[d].Visited() {
			tl.Devices[d].Visit(in.Threads, visitors[d])
		}
	})
}

// visitTogether goes through the devices once, with the visitors of all sections.
func visitTogether(in *Input) {
	if in.walk.with != nil {
		in = in.walk.with
	}
	Once(in, "gaps", func() (none struct{}) {
		var sets [][]*timeline.Visitor
		for _, visitors := range in.walk.makers {
			if set := visitors(); len(set) > 0 {
				sets = append(sets, set)
			}
		}
		if len(sets) == 0 {
			return none
		}
		parallel.Each(len(in.Timeline.Devices), func(d int) {
			visitors := lists.Map(sets, func(set []*timeline.Visitor) *timeline.Visitor { return set[d] })
			in.Timeline.Devices[d].Visit(in.Threads, visitors...)
		})
		return none
	})
}

// Beside lets the gaps of a section of another input on the same timeline be visited with those of this one.
func (in *Input) Beside(other *Input, s *Section) {
	other.walk.with = in
	in.walk.add(other, s)
}
