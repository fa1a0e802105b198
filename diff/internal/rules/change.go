package rules

import (
	"math"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/policy"
)

// change judges a change by its class and its size.
func (j *judge) change(g *comparison.Gate, q *question) {
	r, s, row := q.r, q.s, &q.s.row
	inconclusive := func(c comparison.Code, text string) { g.Class = comparison.Unsettled; g.Open(c, text) }
	switch code, text := j.hindrance(q); {
	case s.length:
		id, stat := policy.SplitStat(s.metric)
		g.Open(comparison.NothingMatched, policy.LengthReason(id, stat, s.stats))
		return
	case code != "":
		inconclusive(code, text)
		return
	case r.Improve:
		q.improved(g)
		return
	}
	exceeds, text := q.exceeds()
	if exceeds && s.share && j.x != nil {
		switch {
		case j.x.MixDiffers():
			inconclusive(comparison.DifferentWork, text+", and the sides ran their kinds of unit in other proportions")
			return
		case math.Abs(comparison.Value(row.Delta)) <= side.Unkept(j.x.Base, j.x.Head):
			inconclusive(comparison.DifferentWork, text+", and work outside the compared units can be all of it")
			return
		}
	}
	if v := s.verdict; v != nil && !(s.number.Count && v.Level == 1) { // a constant count has no noise
		j.noisy(g, q)
		return
	}
	switch {
	case !exceeds:
		g.Verdict, g.Reason = comparison.Pass, text
	case !comparison.Real(row):
		g.Open(comparison.WideInterval, text+", and this is not certain: "+row.Why)
	default:
		g.Verdict, g.Reason = verdictOf(r.Level), text
		if row.Why != "" {
			g.Reason += "; " + row.Why
		}
	}
}

// hindrance says why a change cannot be judged; its code is empty if it can.
func (j *judge) hindrance(q *question) (comparison.Code, string) {
	r, s, row := q.r, q.s, &q.s.row
	switch {
	case !r.FitsAbs(s.unit):
		return comparison.NothingMatched, "the change is given in " + r.AbsUnit + ", the metric in " + s.unit
	case !j.c.Comparable && !j.c.Identical:
		return why(j.c)
	case j.c.Has(comparison.IncompleteCapture) && comparison.CountsEvents(s.metric):
		return comparison.IncompleteCapture, "events are missing from a capture: what it counts is a lower bound"
	case j.c.Has(comparison.FailedRequests) && comparison.IsLatency(s.metric):
		return comparison.FailedRequests, "too many requests of a side failed to compare the latencies of the others"
	case s.other != "":
		return comparison.DifferentWork, s.other
	case row.Head == nil && row.Base == nil:
		return comparison.MissingMetric, "its value is known on neither side"
	case row.Base == nil && row.Class != comparison.Added:
		return comparison.MissingMetric, j.notKnown("base")
	case row.Head == nil && row.Class != comparison.Removed:
		return comparison.MissingMetric, j.notKnown("head")
	}
	return "", ""
}

// notKnown says that a side lacks a number, and which flags add the evidence that the other side has.
func (j *judge) notKnown(side string) string {
	text := "the " + side + "'s value is not known"
	if lacking, flags := j.c.Lacks(); lacking == side {
		text += ": its report was made without " + strings.Join(flags, " and ")
	}
	return text
}

// improved judges a change that the rule demands: it must be for the better, for certain, and as large as the rule asks
// for.
func (q *question) improved(g *comparison.Gate) {
	r, s := q.r, q.s
	better := *r
	if better.Direction = policy.Down; q.direction() == policy.Down {
		better.Direction = policy.Up
	}
	enough, text := (&question{r: &better, s: s, step: q.step}).exceeds()
	most := s.row.Ratio // the most that the interval allows
	if x := s.row.Interval; x != nil && s.row.Base != nil {
		edge := x.Low
		if better.Direction == policy.Up {
			edge = x.High
		}
		most = &edge
	}
	far := *s
	if most != nil && s.row.Base != nil {
		far.row.Head = new(comparison.Value(s.row.Base) * comparison.Value(most))
	}
	could, _ := (&question{r: &better, s: &far, step: q.step}).exceeds()
	switch {
	case enough && (s.row.Class == comparison.Improved || !s.noisy):
		g.Verdict, g.Reason = comparison.Pass, strings.Replace(text, "is more than", "is the required improvement:", 1)
	case enough || could && s.noisy:
		g.Open(comparison.WideInterval, text+", and whether it improves as asked ("+r.Threshold()+") is not certain: "+s.row.Why)
	default:
		g.Verdict, g.Reason = verdictOf(r.Level), text+": it must "+r.Threshold()
	}
}

// exceeds reports whether the change is larger than the rule tolerates, in the rule's direction, with a text that gives
// the numbers. An added or removed number counts with its whole value and has no relative change.
func (q *question) exceeds() (bool, string) {
	r, s, row := q.r, q.s, &q.s.row
	b, h := comparison.Value(row.Base), comparison.Value(row.Head)
	delta := h - b
	size := delta
	switch q.direction() {
	case policy.Down:
		size = -delta
	case policy.Both:
		size = math.Abs(delta)
	}
	changed := "no change"
	if delta != 0 {
		changed = unit.Delta(delta, s.unit)
	}
	if row.Base != nil && b != 0 && delta != 0 {
		changed = unit.Change(delta/math.Abs(b)) + " (" + changed + ")"
	}
	if size <= 0 {
		return false, changed
	}
	tolerated := func(text string) (bool, string) { return false, changed + " is within " + text }
	if r.Rel != nil && row.Base != nil && b != 0 && policy.Within(size/math.Abs(b), *r.Rel) {
		return tolerated(unit.Percent(*r.Rel))
	}
	if r.Abs != nil {
		if abs := q.absolute(); policy.Within(size, abs) {
			return tolerated(strings.TrimPrefix(unit.Delta(abs, s.unit), "+"))
		}
	}
	return true, changed + " is more than " + r.Threshold()
}
