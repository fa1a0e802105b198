package rules

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/noise"
	"github.com/nsys-llm/explain/diff/internal/significance"
	"github.com/nsys-llm/explain/diff/policy"
)

// question is a number and the rule that judges it. s is nil if the rule selects nothing.
type question struct {
	r        *policy.Rule
	s        *subject
	step     float64 // the base's median time of a unit, ns; 0 if unknown
	own      bool    // the rule is the policy's own, and not of its preset
	exceeded bool    // the values exceed the rule

	milder *question // the same number under the rule's milder form; nil: none
}

// exactly is the tolerance of a rule that tolerates nothing: smaller than any real difference.
const exactly = 1e-9

// ask judges all noisy numbers that rules select, each at its rule's own tolerance. Kernels, calls and ranges form one
// family. Every other metric is a family of its own, across kinds of unit and other labels: the median and the mean of
// a kind are nearly the same number, so correcting for both would only cost power.
func (j *judge) ask(list []*question) {
	if j.x == nil {
		return
	}
	const many = "" // family of kernels, calls and ranges: dozens
	families := map[string][]*question{}
	for _, q := range list {
		if q.s == nil || q.s.number == nil || q.r.Budgeted() || q.r.Improve {
			continue
		}
		n := *q.s.number
		n.Tolerance = q.tolerance()
		way := q.direction() // of a rule that judges both, that of the change
		n.HigherBetter = way == policy.Down || way == policy.Both && comparison.Value(q.s.row.Delta) < 0
		if q.s.inverse { // a rate that falls by t is a time that rises by t / (1 - t)
			n.HigherBetter, n.Tolerance = !n.HigherBetter, n.Tolerance/max(1-n.Tolerance, exactly)
		}
		q.s.number = &n
		q.exceeded, _ = q.exceeds()
		name := q.s.row.Metric
		if q.s.many {
			name = many
		}
		families[name] = append(families[name], q)
	}
	for name, of := range families {
		f := noise.Primary(j.p.Stats.Alpha)
		if name == many {
			f = noise.Many(j.p.Stats.FDR)
		}
		numbers := lists.Map(of, func(q *question) significance.Number { return *q.s.number })
		for i, v := range j.x.Judge(numbers, f) {
			of[i].s.verdict, of[i].s.family = &v, f
		}
	}
}

// direction returns the direction that is bad: the rule's, else the number's.
func (q *question) direction() string {
	if q.r.Direction == "" && q.s.higher {
		return policy.Down
	}
	return cmp.Or(q.r.Direction, policy.Up)
}

// shortUnit is the unit's time, ns, below which the relative tolerance of the whole unit limits absolute tolerances.
const shortUnit = 300e3

// tolerance of the rule for the number, as a ratio of the base: the larger of its relative and its absolute part.
func (q *question) tolerance() float64 {
	t := max(exactly, comparison.Value(q.r.Rel))
	if base := math.Abs(comparison.Value(q.s.row.Base)); q.r.Abs != nil && base > 0 {
		t = max(t, q.absolute()/base)
	}
	return t
}

// absolute returns the rule's absolute tolerance, in the number's unit. In units below 300 us no time may change by more
// than the relative tolerance of the whole unit: 10 us is nothing in a step of 10 ms and a third of one of 30 us.
func (q *question) absolute() float64 {
	r, s := q.r, q.s
	if r.Rel == nil || s.unit != report.Nanoseconds || !policy.PerUnit(s.row.Metric) || s.scaled ||
		q.step <= 0 || q.step >= shortUnit {
		return *r.Abs
	}
	return min(*r.Abs, *r.Rel*q.step)
}

// noisy judges a change by the verdict on its number.
func (j *judge) noisy(g *comparison.Gate, q *question) {
	r, s := q.r, q.s
	v, n := s.verdict, s.number
	g.Class = v.Class
	if v.Ratio != 0 {
		g.P = &v.PAdjusted
		g.Tested = &comparison.Tested{Change: v.Ratio - 1, Low: v.Low - 1, High: v.High - 1}
	}
	if v.Resolution > 0 && v.Resolution < 10 {
		g.Resolution = &v.Resolution
	}
	more, text := q.exceeds()
	why := j.x.Why(n, v, s.family)
	// The interval of a median between two lengths of step reaches from one to the other, as [significance.TwoLengths]
	// tells them apart.
	wide := v.Outcome == significance.Fails && v.High > significance.Stalled*v.Low
	switch open := wide || v.Outcome == significance.Undecided; {
	case open && s.row.Metric == "unit.time.p50" && j.means[s.row.Labels.String()] && twoLengths(n):
		g.Verdict = comparison.Pass
		g.Reason = text + "; steps have two lengths, and the median lies between them: the mean is judged"
	case v.Outcome == significance.Holds:
		g.Verdict, g.Reason = comparison.Pass, text
		if g.Resolution != nil && v.Class != comparison.Improved {
			g.Reason += "; would have failed from " + bad(n, s, *g.Resolution) + " on"
		}
	case v.Outcome == significance.Warns:
		g.Verdict, g.Reason = comparison.Warn, text+"; "+why
	case v.Outcome == significance.Fails:
		if !more { // pairs of units and strata are judged by their own ratio, not that of the values
			text = unit.Change(s.ratio(v.Ratio)-1) + " is more than " + r.Threshold()
		}
		g.Verdict, g.Reason = verdictOf(r.Level), text+"; "+why
	default:
		g.Open(cmp.Or(v.Code, comparison.WideInterval), text+", and this is not certain: "+why)
	}
	if v.Class == comparison.Unsettled || v.Few {
		j.parts(g, r, s)
	}
	if floor, most, is := blind(n, v); is && r.Level == comparison.LevelError && g.Verdict != comparison.Fail &&
		v.Class != comparison.Improved && (more || comparison.OfTime(s.metric)) {
		g.Class = comparison.Unsettled
		g.Open(comparison.BlindGate, fmt.Sprintf("%s; the measured noise hides changes of up to %s, and above %s this gate "+
			"could not fail", text, unit.Percent(floor), unit.Percent(most)))
	}
}

// twoLengths reports whether the units of a capture have two lengths.
func twoLengths(n *significance.Number) bool {
	return slices.ContainsFunc(slices.Concat(n.Base, n.Head), func(c significance.Capture) bool {
		return significance.TwoLengths(c.Units)
	})
}

// ofStep reports whether a number belongs to a kernel, a call or a range of the steps.
func ofStep(s *subject) bool { return s.row.Labels["kernel"] != "" || policy.PerUnit(s.row.Metric) }

// moved reports whether the time of any kind of unit among these rows got worse, or may have by more than noise.Tau. If none
// did, nobody needs to look at its kernels, calls and ranges.
func moved(rows []comparison.Row) bool {
	return slices.ContainsFunc(rows, func(row comparison.Row) bool {
		return comparison.OfTime(row.Metric) && row.Labels["device"] == "" && (row.Class == comparison.Regressed ||
			row.Class == comparison.Unsettled && row.Ratio != nil && comparison.Value(row.Ratio) > 1+noise.Tau)
	})
}

// parts fails an undecided gate on the unit's time if the parts that changed for certain, improvements included, sum to
// more than the rule and the noise floor allow, and the mean is not lower. If the work drifts, only idle time counts:
// other work does not reduce it. A gate that would fail this way in the other direction is improved.
func (j *judge) parts(g *comparison.Gate, r *policy.Rule, s *subject) {
	if _, device := s.row.Labels["device"]; device || r.Level != comparison.LevelError || !unitsRule(&s.row, j.means) {
		return
	}
	mean := lists.Find(j.c.Primary, func(row *comparison.Row) bool {
		return row.Metric == "unit.time.mean" && row.Labels.String() == s.row.Labels.String()
	})
	share, text := j.x.Net(s.row.Labels, s.verdict.Open == comparison.Trend)
	switch step := j.c.Step; {
	case s.row.Metric == comparison.MetricWork:
		mean = &s.row
		share, text = j.x.NetOfWork(j.c.Primary)
	case step != nil && mean != nil && len(s.row.Labels) == 0:
		share = lessFilled(share, step.Filled/step.Base, comparison.Value(mean.Ratio)-1)
	}
	least := max(s.number.Tolerance, s.verdict.Floor)
	switch {
	case mean == nil:
	case share > least && comparison.Value(mean.Delta) >= 0 && (s.verdict.Outcome != significance.Holds || s.verdict.Loose):
		g.Class, g.Code, g.Verdict, g.ByParts = comparison.Regressed, "", verdictOf(r.Level), true
		g.Reason = unit.Change(share) + " by the parts that changed for certain is more than " + r.Threshold() + ": " + text
	case betterBy(share) > least && comparison.Value(mean.Delta) <= 0 && g.Verdict == comparison.Pass:
		g.Class, g.ByParts = comparison.Improved, true
		g.Reason += "; " + unit.Change(share) + " by the parts that changed for certain: " + text
	}
}

// lessFilled is what parts sum to without the idle time that longer work fills, or shorter work leaves, down to what
// the mean changed by. All are shares of the unit's time.
func lessFilled(share, filled, mean float64) float64 {
	if share < 0 {
		return -lessFilled(-share, -filled, -mean)
	}
	return min(share, max(share+min(filled, 0), mean))
}

// unitsRule reports whether a row's gate answers for the parts: one on the mean of the unit's time, or on its median if
// no rule judges the mean. means has the labels for which one does.
func unitsRule(row *comparison.Row, means map[string]bool) bool {
	switch row.Metric {
	case "unit.time.mean":
		return true
	case "unit.time.p50":
		return !means[row.Labels.String()]
	case comparison.MetricWork:
		return len(row.Labels) == 0
	}
	return false
}

// bad formats a change for the worse of this size, a ratio.
func bad(n *significance.Number, s *subject, size float64) string {
	if s.inverse {
		return unit.Change(1/(1+size) - 1)
	}
	if n.HigherBetter {
		return unit.Change(-size)
	}
	return unit.Change(size)
}

// unasked warns of rows of time that got worse for certain and that no rule judges: a gate never passes in silence over
// such a row. last holds the numbers that rules judge or switch off. Rows of single devices are left out: a step takes
// as long as its slowest device, which the row of the kind shows.
func (j *judge) unasked(last map[string]*policy.Rule) []comparison.Gate {
	var list []comparison.Gate
	if j.first || !j.c.Comparable || j.p.Changes() == 0 { // a policy of budgets alone needs no base
		return nil
	}
	for i := range j.c.Primary {
		row := &j.c.Primary[i]
		s := subject{row: *row}
		_, judged := last[s.key("change")]
		_, device := row.Labels["device"]
		if judged || device || !comparison.OfTime(row.Metric) || row.Class != comparison.Regressed {
			continue
		}
		j.questions = append(j.questions, &question{r: &policy.Rule{}})
		list = append(list, comparison.Gate{Rule: "regressed", Metric: row.Metric, Labels: row.Labels.Clone(),
			Level: comparison.LevelWarn, Base: row.Base, Head: row.Head, Delta: row.Delta, Ratio: row.Ratio, Class: row.Class,
			P: row.PAdjusted, Verdict: comparison.Warn, Reason: "no rule judges it, and it got worse; " + row.Why})
	}
	return list
}

// resolution returns the smallest loss of the unit's time that would have failed a gate that passed; nil if no such
// gate knows it.
func resolution(gates []comparison.Gate) *float64 {
	var least *float64
	for _, g := range gates {
		if g.Verdict == comparison.Pass && g.Level == comparison.LevelError && comparison.OfTime(g.Metric) && g.Resolution != nil &&
			(least == nil || *g.Resolution < *least) {
			least = g.Resolution
		}
	}
	return least
}

// notSlower turns a failure, and a doubt that only more captures would settle, into a warning: under only_slower, unless
// the unit's time got worse or may have; for what a unit does (launches, kernels, graphs, structure), if its time got
// better. Budgets still fail: they do not depend on the base.
func notSlower(g *comparison.Gate, r *policy.Rule, rows []comparison.Row, x *noise.Decider) {
	suspected := g.Verdict == comparison.Inconclusive && (g.Code == comparison.WideInterval || g.Code == comparison.TooFewUnits)
	if g.Verdict != comparison.Fail && !suspected || r.Budgeted() {
		return
	}
	switch {
	case r.OnlySlower && !slower(rows, g.Labels):
		g.Reason += "; the unit did not get slower, so this is only shown"
	case ofWork(g.Metric) && faster(rows, g.Labels, x):
		g.Reason += "; the unit got faster, so this is only shown"
	default:
		return
	}
	g.Verdict, g.Code = comparison.Warn, ""
}

// ofWork reports whether a metric says what a unit does, rather than how long it takes.
func ofWork(metric string) bool {
	return metric == comparison.MetricStructure ||
		comparison.Begins(metric, "unit.launches", "unit.kernels", "graph.", "launch.", "kernel.count")
}

// faster reports whether the unit's time under these labels got better for certain, in itself or by its parts, and
// neither its mean nor its median got worse.
func faster(rows []comparison.Row, l report.Labels, x *noise.Decider) bool {
	better := false
	for i := range rows {
		row := &rows[i]
		id, stat := policy.SplitStat(row.Metric)
		if id != "unit.time" || stat != "p50" && stat != "mean" || row.Labels.String() != l.String() {
			continue
		}
		if row.Class == comparison.Regressed {
			return false
		}
		better = better || row.Class == comparison.Improved
		if stat == "mean" && x != nil && comparison.Value(row.Delta) < 0 {
			share, _ := x.Net(l, row.Code == comparison.Trend)
			better = better || betterBy(share) > comparison.DefaultFloor
		}
	}
	return better
}

// betterBy returns a fall by a share of the base as the rise that would undo it.
func betterBy(share float64) float64 { return -share / (1 + share) }

// slower reports whether the unit's time under these labels got worse, or may have by more than a negligible part.
func slower(rows []comparison.Row, l report.Labels) bool {
	return slices.ContainsFunc(rows, func(row comparison.Row) bool {
		return comparison.OfTime(row.Metric) && row.Labels.String() == l.String() && (row.Class == comparison.Regressed ||
			row.Class == comparison.Unsettled && (row.Ratio == nil || comparison.Value(row.Ratio) > 1+noise.Negligible))
	})
}

// A measured noise floor above blindFloor, or above blindTimes the rule's tolerance, hides the changes that the rule
// looks for. An assumed floor hides nothing.
const (
	blindFloor = 0.15
	blindTimes = 5
)

// blind reports whether the measured noise is so large that a rule could not fail. floor is the noise floor for one
// capture a side, and the smallest detectable loss for several; most is the largest allowed floor, both ratios.
func blind(n *significance.Number, v *significance.Verdict) (floor, most float64, is bool) {
	if n.History == nil {
		return 0, 0, false
	}
	if floor = v.Floor; v.Replicated && !n.FloorStays {
		floor = v.Resolution
	}
	most = min(blindFloor, max(blindTimes*n.Tolerance, comparison.DefaultFloor))
	return floor, most, floor > most
}
