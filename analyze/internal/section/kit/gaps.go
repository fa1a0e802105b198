package kit

import (
	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
)

// Visit makes sure that the visitors, one for each device of a timeline, have visited their devices: together with
// those of the other sections if [Begin] knows them, else alone.
func (in *Input) Visit(tl *timeline.Timeline, visitors []*timeline.Visitor) {
	in.visitTogether()
	parallel.Each(len(visitors), func(d int) {
		if !visitors[d].Visited() {
			tl.Devices[d].Visit(in.Threads, visitors[d])
		}
	})
}

// visitTogether goes through the devices once for all sections, and for those of the inputs beside.
func (in *Input) visitTogether() {
	if in.besides != nil {
		in = in.besides
	}
	Once(in, "gaps", func() (none struct{}) {
		var lists [][]*timeline.Visitor
		for _, visitors := range in.gaps {
			if list := visitors(); len(list) > 0 {
				lists = append(lists, list)
			}
		}
		if len(lists) == 0 {
			return none
		}
		parallel.Each(len(in.Timeline.Devices), func(d int) {
			visitors := make([]*timeline.Visitor, len(lists))
			for i := range lists {
				visitors[i] = lists[i][d]
			}
			in.Timeline.Devices[d].Visit(in.Threads, visitors...)
		})
		return none
	})
}

// Beside lets the gaps of a section of another input on the same timeline be visited with those of this one.
func (in *Input) Beside(other *Input, s *Section) {
	other.besides = in
	in.gaps = append(in.gaps, func() []*timeline.Visitor { return s.Gaps(other) })
}
