package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
)

// unify cuts the units of all captures at one anchor that all of them know, so that both sides have the same unit of
// work. It chooses the anchor whose units have about as many kernels everywhere, then the one that captures rank best,
// then by name. The choice does not depend on which side is the base. Captures whose units are the same ranges of the
// program, markers or graphs stay as they are.
//
// If the captures have no common anchor, they are cut into units of as many kernels, wherever these start: a step
// takes as long from any kernel to the next of its kind. If that fails, each keeps its own unit. apart says that they
// have no common anchor.
func unify(base, head []*report.Report) (b, h []*report.Report, apart string) {
	all := slices.Concat(base, head)
	for _, r := range all {
		if r.Unit.Used() == nil {
			return base, head, mixed(all)
		}
	}
	var best *candidate
	for i := range all[0].Unit.Anchors {
		c := newCandidate(all, &all[0].Unit.Anchors[i])
		if c != nil && c.rank == 0 && all[0].Unit.Kind == "nvtx" {
			return base, head, ""
		}
		if c != nil && (best == nil || c.compare(best) < 0) {
			best = c
		}
	}
	if best == nil {
		apart = missing(all[0].Unit.Used(), all)
		best = anywhere(all)
	}
	if best == nil {
		return base, head, apart
	}
	return best.cut[:len(base)], best.cut[len(base):], apart
}

// mixed says that units of the captures were found in unlike ways and what to do; empty if all are alike.
func mixed(all []*report.Report) string {
	way := func(u *report.Unit) string {
		switch u.Kind {
		case "nvtx":
			return "by the markers " + u.Name
		case "graph":
			return "by CUDA graph launches"
		case "kernel":
			return "in the kernel sequence"
		}
		return ""
	}
	first := all[0]
	for _, r := range all[1:] {
		if one, other := way(&first.Unit), way(&r.Unit); one != other && one != "" && other != "" {
			unit := "kernel:REGEX (of a kernel that each step runs once)"
			if first.Unit.Kind == "graph" || r.Unit.Kind == "graph" {
				unit = "graph (if a graph launch is a step of both)"
			}
			return fmt.Sprintf("units of %s were found %s, those of %s %s: emit the same markers, or compare the traces with "+
				"--unit %s", first.Trace.Name, one, r.Trace.Name, other, unit)
		}
	}
	return ""
}

// candidate is an anchor that all captures know.
type candidate struct {
	cut    []*report.Report
	unlike int // 0 if the units have about as many kernels everywhere, else 1
	rank   int // sum over the captures: 0 if it is the first choice of all
	name   string
}

func newCandidate(all []*report.Report, a *report.UnitAnchor) *candidate {
	c := &candidate{cut: cutAll(all, a), name: fmt.Sprintf("%q %d", a.Names, a.Start)}
	if c.cut == nil || !ownUnits(all, c.cut) {
		return nil
	}
	if !report.AlikeUnits(report.AlikeKernels, c.cut...) {
		c.unlike = 1
	}
	for _, r := range all {
		if !r.Unit.Used().Same(a) {
			c.rank += 1 + slices.IndexFunc(r.Unit.Anchors, func(b report.UnitAnchor) bool { return b.Same(a) })
		}
	}
	return c
}

// ownUnits reports whether the units of a cut are those that one of the captures has by itself: else they are a part of
// the step, of which captures of different models may have as many kernels.
func ownUnits(all, cut []*report.Report) bool {
	for i, r := range all {
		if report.AlikeUnits(report.AlikeKernels, r, cut[i]) {
			return true
		}
	}
	return false
}

// anywhere is the best choice of cuts, one for each capture, whose units have as many kernels as those of one of them;
// nil if there is none.
func anywhere(all []*report.Report) (best *candidate) {
	cuts := lists.Map(all, func(r *report.Report) (list []*report.Report) {
		for i := range r.Unit.Anchors {
			if cut, ok := r.CutAt(&r.Unit.Anchors[i]); ok {
				list = append(list, cut)
			}
		}
		return list
	})
	for _, target := range slices.Concat(cuts...) {
		a := target.Unit.Used()
		c := &candidate{name: fmt.Sprintf("%q %d", a.Names, a.Start)}
		for _, of := range cuts {
			k := slices.IndexFunc(of, func(cut *report.Report) bool { return report.AlikeUnits(report.SameKernels, cut, target) })
			if k < 0 {
				break
			}
			c.cut, c.rank = append(c.cut, of[k]), c.rank+k
		}
		if len(c.cut) == len(all) && ownUnits(all, c.cut) && (best == nil || c.compare(best) < 0) {
			best = c
		}
	}
	return best
}

// compare returns a number below 0 if c is the better choice.
func (c *candidate) compare(d *candidate) int {
	return cmp.Or(c.unlike-d.unlike, c.rank-d.rank, strings.Compare(c.name, d.name))
}

// cutAll cuts all captures at an anchor; nil if one does not know it.
func cutAll(all []*report.Report, a *report.UnitAnchor) []*report.Report {
	cut := make([]*report.Report, len(all))
	for i, r := range all {
		var ok bool
		if cut[i], ok = r.CutAt(a); !ok {
			return nil
		}
	}
	return cut
}

// missing says which kernels of an anchor are missing in the captures that cannot be cut there.
func missing(a *report.UnitAnchor, all []*report.Report) string {
	column := "canonical"
	if a.Families {
		column = "family"
	}
	for _, r := range all[1:] {
		if _, ok := r.CutAt(a); ok {
			continue
		}
		var lacking []string
		t := report.NewIndex(r).Table("unit", "unit_kernels")
		for _, name := range a.Names {
			if len(lists.Where(t.Len(), func(i int) bool { return t.Str(i, column) == name })) == 0 {
				lists.Place[int32](&lacking, name)
			}
		}
		at := "units of " + all[0].Trace.Name + " start at " + strings.Join(a.Names, " → ")
		if len(lacking) > 0 {
			return fmt.Sprintf("%s, and units of %s have no %s: each side has a unit of its own", at, r.Trace.Name,
				strings.Join(lacking, ", "))
		}
		return fmt.Sprintf("%s, and those of %s at %s: each side has a unit of its own; compare the traces with --unit",
			at, r.Trace.Name, strings.Join(r.Unit.Used().Names, " → "))
	}
	return ""
}

// sayApart adds to a comparison that could not be made that the sides have different units.
func sayApart(c *comparison.Comparison, apart string) {
	said := slices.ContainsFunc(c.Reasons, func(r comparison.Reason) bool { return strings.HasSuffix(r.Text, apart) })
	if apart != "" && !said && !c.Comparable && !c.Identical {
		c.Reason(comparison.DifferentWork, apart)
	}
}
