package analyze

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
)

// Like makes options ask for the units of r, which captures will be compared with. It reports whether they can be asked
// for: where they start, or which of the program's own ranges they are.
func (o *Options) Like(r *report.Report) bool {
	o.Anchor, o.Range = r.Unit.Used(), ""
	if o.Anchor == nil && r.Unit.Kind == "nvtx" {
		o.Range = r.Unit.Name
	}
	return o.Anchor != nil || o.Range != ""
}

// Again reports whether a capture must be analysed once more to have the units that [Options.Like] asked for: its
// report cannot be cut where these start, for there are more places than a report carries, and one of the program's own
// ranges carries none; or they are other ranges of the program, since it is by a little that a family holds most of the
// work.
func (o *Options) Again(r *report.Report) bool {
	if !slices.Contains([]string{"kernel", "nvtx", "none"}, r.Unit.Kind) {
		return false
	}
	if o.Anchor == nil {
		return r.Unit.Kind != "nvtx" || r.Unit.Name != o.Range
	}
	_, ok := r.CutAt(o.Anchor)
	return !ok
}
