package breakdown

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/pairing"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/internal/significance"
)

// story describes what happened to the units of one kind.
type story struct {
	parts  *Parts           // of the kind's change; nil if one side lacks it
	what   string           // describes units of a kind that one side lacks; empty for a kind of both sides
	class  comparison.Class // of the kind's time; empty if what is set
	weight float64          // change of the base's work, ns
}

// Limits on the stories.
const (
	mostKinds = 4    // kinds of unit
	namedKind = 0.02 // least share of the side's unit time for a kind that the other side lacks to be named
)

// stories returns at least one story: of the kind that leads the headline, of the other kinds that got slower, and of
// the kinds that only one side runs in that form, those that change the base's work most first.
func (x *Parts) stories() []*story {
	row, _ := x.C.Headline()
	var lead *story
	var list []*story
	for _, k := range x.Chosen.Judged {
		rows := rowsOf(x.C.Primary, k.Name)
		s := &story{parts: x, class: timeClass(rows)}
		n, before, _ := x.Base.OfKind(k.Base)
		_, after, _ := x.Head.OfKind(k.Head)
		s.weight = float64(n) * (comparison.Value(after) - comparison.Value(before))
		leads := row != nil && row.Kind != "" && row.Kind == k.Name.String()
		told := s.class == comparison.Regressed || row != nil && s.class == comparison.Improved
		if k != x.Chosen.Judged[0] && (leads || told) {
			s.parts = x.of(k, rows)
		}
		switch {
		case leads:
			lead = s
		case told:
			list = append(list, s)
		}
	}
	list = append(list, x.newKinds()...)
	list = append(list, goneKinds(x.Chosen.Kinds, x.Base)...)
	sign := 1.0
	if row != nil && row.Class == comparison.Improved {
		sign = -1
	}
	lists.Sort(list, func(a, b *story) int { return cmp.Compare(sign*b.weight, sign*a.weight) })
	moved := len(list) > 0 && row != nil && row.Metric == comparison.MetricWork && comparison.Real(row) ||
		slices.ContainsFunc(list, func(s *story) bool { return s.class != "" })
	if lead == nil && !moved { // the kind with most time leads
		lead = &story{parts: x, class: timeClass(rowsOf(x.C.Primary, x.Chosen.Kind))}
	}
	if lead != nil {
		list = slices.Insert(list, 0, lead)
	}
	return list[:min(len(list), mostKinds)]
}

func rowsOf(primary []comparison.Row, k side.Kind) []comparison.Row {
	return lists.Filter(primary, func(r comparison.Row) bool {
		return r.Kind == k.String() && r.Labels["device"] == ""
	})
}

// timeClass joins the classes of the median and the mean of unit.time: if they disagree, the one that is known to have
// changed counts.
func timeClass(rows []comparison.Row) comparison.Class {
	found := map[comparison.Class]bool{}
	for i := range rows {
		if m := rows[i].Metric; m == "unit.time.p50" || m == "unit.time.mean" {
			found[rows[i].Class] = true
		}
	}
	switch {
	case found[comparison.Regressed] && !found[comparison.Improved]:
		return comparison.Regressed
	case found[comparison.Improved] && !found[comparison.Regressed]:
		return comparison.Improved
	case found[comparison.Same] && len(found) == 1:
		return comparison.Same
	}
	return comparison.Unsettled
}

// of works out the parts of the change of another kind of unit than the attributed one; rows are that kind's rows. It
// does not judge the kernels.
func (x *Parts) of(k *pairing.Kind, rows []comparison.Row) *Parts {
	y := *x
	y.fused, y.Chosen.Kind = nil, k.Name
	y.Base, y.Head = k.Of(x.Base, x.Head)
	depth := pairing.Depth(y.Base, y.Head)
	y.C = &comparison.Comparison{Depth: depth, Primary: rows, Attribution: Attribute(y.Base, y.Head, depth, x.Limits),
		API: APIRows(y.Base, y.Head), Structure: Structure(y.Base, y.Head, depth)}
	if depth == comparison.DepthKernel {
		pairs, _ := pairing.KernelRows(y.Base, y.Head, x.Limits.MinShare, x.Limits.Top)
		mean := y.Base.UnitTime()
		y.C.Kernels = lists.Map(pairs, func(p pairing.Pair) comparison.Kernel { return pairing.KernelRow(p, mean) })
	}
	return &y
}

// text tells the story in one sentence: what is slower, by how much, and the causes that explain most.
func (s *story) text(verdict comparison.Verdict) string {
	if s.parts == nil {
		return s.what
	}
	text := s.what
	if text == "" {
		text = s.changed(verdict)
	}
	rows, _ := s.effects(false)
	sep := ": "
	for i := range rows[:min(len(rows), 2)] {
		text += sep + delta(rows[i].Delta) + " " + rows[i].Text()
		sep = ", "
	}
	return text
}

// changed names the kind of unit with the change of its mean time. If the comparison passed, it calls nothing
// unsettled.
func (s *story) changed(verdict comparison.Verdict) string {
	kind, mean := perKind(s.parts.Chosen.Kind), s.parts.C.Row("unit.time.mean")
	if mean == nil {
		return kind + " of unknown size"
	}
	word := "not settled"
	if verdict == comparison.Pass {
		word = "no change beyond noise"
	}
	switch s.class {
	case comparison.Regressed:
		word = "slower"
	case comparison.Improved:
		word = "faster"
	case comparison.Same:
		word = "no change beyond noise"
	case comparison.Unsettled, comparison.Added, comparison.Removed:
	}
	return fmt.Sprintf("%s: %s %s, %s → %s", kind, rowChange(mean), word, pairing.NS(comparison.Value(mean.Base)), pairing.NS(comparison.Value(mean.Head)))
}

func rowChange(r *comparison.Row) string {
	if r.Ratio == nil {
		return "of unknown size"
	}
	return unit.Change(comparison.Value(r.Ratio) - 1)
}

// otherRuns returns the kernel with the largest change of time among those that run more or less often, or nil.
func otherRuns(onBase, onHead *side.Side, names *kernelNames) []comparison.AnswerRow {
	most := comparison.AnswerRow{Part: comparison.AnswerKernel}
	for _, p := range pairing.Kernels(onBase, onHead) {
		b, h := p.Works()
		if d := h.Time - b.Time; b.Count != h.Count && math.Abs(d) > math.Abs(most.Delta) {
			most.Delta = d
			most.What = fmt.Sprintf("kernel %s, runs %s", names.pair(p.Name()), perUnit(b.Count, h.Count))
			if b.Count == 0 {
				most.What = fmt.Sprintf("kernel %s, new: %s", names.pair(p.Name()), wording.Means("per unit", h.Count))
			}
		}
	}
	if most.What == "" {
		return nil
	}
	return []comparison.AnswerRow{most}
}

// otherForm says that many of the head's units run far fewer or far more kernels than the base's, though one marker
// names both.
func otherForm(base, head *side.Side) string {
	usual := runsOf(base)
	of := func(x *side.Side) (other []side.UnitRow, all int) {
		units := slices.Concat(lists.Map(x.Views, func(v *side.View) []side.UnitRow { return v.Units })...)
		return lists.Filter(units, func(u side.UnitRow) bool {
			return u.Kernels > 0 && (u.Kernels <= usual*fewerRuns || u.Kernels >= usual/fewerRuns)
		}), len(units)
	}
	before, _ := of(base)
	other, all := of(head)
	n := len(other)
	if usual <= 0 || len(before) > 0 || float64(n) < leastForm*float64(all) || n == all {
		return ""
	}
	runs := lists.Sum(other, func(u side.UnitRow) float64 { return u.Kernels }) / float64(n)
	return fmt.Sprintf("%s are of another kind, with %s kernels instead of %s", partOf("head", int64(n), int64(all), ""),
		wording.Mean(runs), wording.Mean(usual))
}

// Limits for units of another form.
const (
	fewerRuns = 0.8 // of the base's kernels in a unit; or its inverse for more
	leastForm = 0.1 // least share of the head's units
)

// some says how many of the head's units hold the change, if most did not get slower: "3 of 26 steps". It is nil if the
// median moved, or if the base has as many slow units.
func (s *story) some() *string {
	if s.parts == nil || s.what != "" || s.parts.C.Attribution.TotalDelta <= 0 {
		return nil
	}
	before, of, _, m0 := slowOf(s.parts.Base)
	n, all, excess, m1 := slowOf(s.parts.Head)
	d := s.parts.C.Attribution.TotalDelta
	if all == 0 || of == 0 || m1-m0 > d*medianMoved || 2*before*all >= n*of || excess < float64(all)*d/2 {
		return nil
	}
	return new(fmt.Sprintf("%d of %s", n, wording.Count(all, "step")))
}

// slowOf counts the slow units of a side's captures and all; excess is what the slow ones take in sum beyond the
// median, middle the mean of the medians.
func slowOf(x *side.Side) (n, all int, excess, middle float64) {
	for _, v := range x.Views {
		k, of, sum, m := slowUnits(times(v))
		n, all, excess, middle = n+k, all+of, excess+sum, middle+m/float64(len(x.Views))
	}
	return n, all, excess, middle
}

// alone says that the median unit changed and the mean hardly did, as fewer or more units are slow. row is the row of
// one of them; the text names the other.
func (x *Parts) alone(row *comparison.Row) string {
	median, mean := row, beside(x.C.Primary, row, "unit.time.mean")
	told, name := mean, "mean"
	if row.Metric == "unit.time.mean" {
		median, mean = beside(x.C.Primary, row, "unit.time.p50"), row
		told, name = median, "median"
	}
	if told == nil {
		return ""
	}
	m := math.Abs(comparison.Value(median.Delta))
	if m < x.Floor*comparison.Value(median.Base) || math.Abs(comparison.Value(mean.Delta)) > m*medianMoved {
		return ""
	}
	b, ofBase, _, _ := slowOf(x.Base)
	h, ofHead, _, _ := slowOf(x.Head)
	was, is := comparison.Value(told.Base), comparison.Value(told.Head)
	return fmt.Sprintf("the %s step: %s, %s, as %d of base's %s are longer than the others and %d of head's %d", name,
		rowChange(told), comparison.FromTo(was, is, report.Nanoseconds), b, wording.Count(ofBase, "step"), h, ofHead)
}

// medianMoved is the share of the mean's change from which a moved median shows that most units changed.
const medianMoved = 1.0 / 3

// bimodal reports whether a side's units have two lengths, so that a median between them describes neither.
func bimodal(s *side.Side) bool {
	return slices.ContainsFunc(s.Views, func(v *side.View) bool { return significance.TwoLengths(times(v)) })
}

// stalls describes the slow units that one side has and the other has not: "head: 1 in 8 steps takes 3 times as long as
// the others".
func stalls(base, head *side.Side) string {
	return cmp.Or(stallsOnly("head", head, base), stallsOnly("base", base, head))
}

// stallsOnly describes the slow units of a side, if the other has no such units.
func stallsOnly(name string, one, other *side.Side) string {
	worst := slowSteps{}
	of := "steps"
	for _, v := range one.Views {
		if e := stallsOf(times(v)); e.Units > worst.Units {
			worst, of = e, "steps"
			if int64(e.Of) < v.Time.N {
				worst.Every, of = 0, "sampled steps"
			}
		}
	}
	for _, v := range other.Views {
		if e := stallsOf(times(v)); 2*e.Units*worst.Of > worst.Units*e.Of {
			return ""
		}
	}
	switch {
	case worst.Units == 0:
		return ""
	case worst.Every == 2:
		return fmt.Sprintf("%s: every second step takes %.2g times as long as the others", name, worst.Times)
	case worst.Every > 0:
		return fmt.Sprintf("%s: 1 in %d steps takes %.2g times as long as the others", name, worst.Every, worst.Times)
	}
	first := ""
	if worst.First && worst.Units > 1 {
		first = "the first "
	}
	return fmt.Sprintf("%s: %s%s of %s %s take %.2g times as long as the others", name, first, unit.Int(int64(worst.Units)),
		unit.Int(int64(worst.Of)), of, worst.Times)
}

// times returns the time of every unit if the report lists them all, ns; else of the sample that it lists.
func times(v *side.View) []float64 {
	if list := v.Times(side.Kept); list != nil && int64(len(list)) == v.Time.N { // else they are of another device
		return list
	}
	return side.UnitValues(v.Units, "unit.time")
}

// mixText says that the mix of units changed, which the times of one kind do not show. It needs changed counts: other
// shares of the time at the same counts are a change of what units cost.
func mixText(mix []comparison.Mix, kind side.Kind) string {
	base := lists.Sum(mix, func(m comparison.Mix) int64 { return m.BaseCount })
	head := lists.Sum(mix, func(m comparison.Mix) int64 { return m.HeadCount })
	if base == 0 || head == 0 {
		return ""
	}
	for _, m := range mix {
		b, h := float64(m.BaseCount)/float64(base), float64(m.HeadCount)/float64(head)
		if m.Compared && m.BaseShare != nil && m.HeadShare != nil && math.Abs(comparison.Value(m.HeadShare)-comparison.Value(m.BaseShare)) >= mixMoved &&
			math.Abs(h-b) >= mixMoved/2 {
			return fmt.Sprintf("units of %s are %d of %d instead of %d of %d, a change of the mix and not of the cost",
				kind, m.HeadCount, head, m.BaseCount, base)
		}
	}
	return ""
}

// mixMoved is the least change of a kind's share of the time for the mix to have changed.
const mixMoved = 0.1
