package noise

import (
	"math"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/pairing"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/internal/significance"
	"github.com/nsys-llm/explain/diff/policy"
)

// Tau is the relative change that the test over several captures uses; a row can be "same" only below it.
const Tau = 0.03

// Negligible is the relative change of a unit's time that nobody looks for.
const Negligible = pairing.LeastPart

// Decider decides whether each change is real or noise.
type Decider struct {
	Base, Head *side.Side // for one kind of unit on one device
	Policy     *policy.Policy

	Known  Known               // of the noise
	Judged Judged              // so far
	Odd    []comparison.Reason // warns of a capture unlike the others of its side, if a row shows one

	kinds []*pairing.Kind        // all kinds of unit of both sides
	seed  uint64                 // of the bootstrap
	ties  ties                   // of units
	work  *workload              // nil if there is no row work.time
	parts map[string]judgedParts // by the labels of their unit
}

// NewDecider uses the noise if it applies to all captures; if not, it ignores it and returns it as residue.
func NewDecider(base, head *side.Side, p *policy.Policy, noise *Noise, seed uint64) (*Decider, []comparison.Residue) {
	d := &Decider{Base: base, Head: head, Policy: p, seed: seed, ties: ties{}, parts: map[string]judgedParts{},
		Judged: Judged{},
		Known:  Known{noise: noise, floor: p.Stats.Floor, otherRun: side.BetweenRuns(base, head)}}
	if noise == nil {
		return d, nil
	}
	for _, x := range slices.Concat(base.Captures, head.Captures) {
		if ok, why := noise.Applies(x.Report, p.Environment); !ok {
			d.Known.noise = nil
			return d, []comparison.Residue{{Field: "noise", Base: why, Head: why, Soft: true}}
		}
	}
	return d, nil
}

type primary struct {
	id, stat string // of a metric with a summary
	of       func(v *side.View) *report.Summary
	part     bool // a part of the unit: only changes above a share of the unit count
	exact    bool // a count, which rows name without its statistic
	plain    bool // neither direction is better
}

func unitTime(v *side.View) *report.Summary { return v.Time }

// value returns the number of a view whose report has the metric.
func (p *primary) value(v *side.View) float64 { return report.Statistics[p.stat](p.of(v)) }

func (p *primary) metric() string {
	if p.exact {
		return p.id
	}
	return p.id + "." + p.stat
}

func (p *primary) unit() string {
	if p.exact {
		return report.Count
	}
	return report.Nanoseconds
}

// primaries lists the rows that show whether the head got slower. unit.time decides: its median, because one slow unit
// does not move it, and its mean, because the breakdown splits it. The other rows show where to look.
func primaries() []primary {
	return []primary{
		{id: "unit.time", stat: "p50", of: unitTime},
		{id: "unit.time", stat: "mean", of: unitTime},
		{id: "unit.gpu_busy", stat: "mean", of: func(v *side.View) *report.Summary { return v.Busy }, part: true},
		{id: "unit.gpu_idle", stat: "mean", of: func(v *side.View) *report.Summary { return v.Idle }, part: true},
		{id: "unit.launches", stat: "p50", of: func(v *side.View) *report.Summary { return v.Launches }, exact: true},
		{id: "unit.kernels", stat: "p50", of: func(v *side.View) *report.Summary { return v.Kernels }, exact: true,
			plain: true},
	}
}

// tail returns the row for a high percentile of unit.time: p99, or p90 with fewer units. ok is false if n units, those of
// the side with fewer, are too few for either.
func tail(n int64) (p primary, ok bool) {
	st, ok := significance.Tail(int(n))
	p = primary{id: "unit.time", stat: "p90", of: unitTime}
	if st == significance.P99 {
		p.stat = "p99"
	}
	return p, ok
}

// units are those of one kind on both sides.
type units struct {
	kind       side.Kind
	base, head *side.Side
	device     string // one of several; empty: the device that is compared
}

// Found is what the units of two sides show: their primary rows, their parts, and why they are not conclusive.
type Found struct {
	Primary []comparison.Row
	Parts   []comparison.Part
	Reasons []comparison.Reason
}

// Rows decides the primary rows: all of them for the chosen kind of unit, and for each other judged kind those that
// show whether it got slower. Each row is decided by itself, because the median and the mean of one kind are nearly
// equal, and its parts and counts only show where to look. Gates correct for the number of kinds. A kind has no row if
// a side has fewer than three units of it. The number of kernels has one only at the depth of kernels, and the whole
// workload only if the sides are comparable.
func (x *Decider) Rows(chosen pairing.Chosen, depth comparison.Depth, comparable bool) (found Found) {
	x.kinds = chosen.Kinds
	for i, k := range chosen.Judged {
		base, head := k.Of(x.Base, x.Head)
		list, n := primaries(), min(base.Units(), head.Units())
		if depth != comparison.DepthKernel {
			list = slices.DeleteFunc(list, func(p primary) bool { return p.id == "unit.kernels" })
		}
		if i > 0 {
			if n < significance.LeastUnits {
				continue // work.time includes them
			}
			list = slices.DeleteFunc(list, func(p primary) bool { return p.part || p.plain })
		}
		if p, ok := tail(n); ok {
			list = slices.Insert(list, 2, p) // after median and mean
		}
		u := &units{kind: k.Name, base: base, head: head}
		found.Primary = append(found.Primary, x.kindRows(u, list)...)
		found.Parts = append(found.Parts, x.partRows(u)...)
	}
	for _, d := range chosen.Devices { // the median of the chosen kind on the others
		if d == chosen.Device {
			continue
		}
		if base, head := pairing.On(x.Base, x.Head, d); base != nil {
			u := &units{chosen.Kind, base, head, strconv.FormatInt(d, 10)}
			found.Primary = append(found.Primary, x.kindRows(u, primaries()[:1])...)
		}
	}
	if chosen.Whole && comparable {
		x.workload(&found)
	}
	return found
}

// kindRows decides the rows in list for one kind of unit.
func (x *Decider) kindRows(u *units, list []primary) (rows []comparison.Row) {
	for i := range list {
		p := &list[i]
		row, ok := u.row(p)
		if !ok {
			continue
		}
		n := x.primaryNumber(u, p, &row)
		if u.device != "" {
			row.Labels["device"] = u.device
		}
		x.decide(&row, n)
		p.describe(&row, pairing.Shorter(u.base, u.head))
		rows = append(rows, row)
	}
	return rows
}

// describe marks a part of a unit (ns) that hardly changed as same, and a count without a better direction as added or
// removed.
func (p *primary) describe(row *comparison.Row, unit float64) {
	if p.part && math.Abs(comparison.Value(row.Delta)) < pairing.LeastPart*unit && comparison.Value(row.Delta) != 0 {
		row.Class, row.Why, row.NeedCaptures = comparison.Same, immaterial, nil
	}
	switch {
	case !p.plain:
	case row.Class == comparison.Regressed:
		row.Class = comparison.Added
	case row.Class == comparison.Improved:
		row.Class = comparison.Removed
	}
}

// primaryNumber turns a primary row into a number to judge.
func (x *Decider) primaryNumber(u *units, p *primary, row *comparison.Row) significance.Number {
	st := statistics[p.stat]
	n := x.Known.number(row.Metric, row.Labels, p.unit(), st)
	n.Count, n.Whole = p.exact, p.id == "unit.time"
	captures := func(views []*side.View) (list []significance.Capture) {
		for _, v := range views {
			one := significance.Capture{Value: p.value(v), Units: side.UnitValues(v.Units, p.id)}
			if n.Whole && !st.Enough(len(one.Units)) {
				if times := tailTimes(v); st.Enough(len(times)) {
					one.Units = times
				}
			}
			summarised(&one, p.of(v), st, one.Units == nil, v.Units)
			list = append(list, one)
		}
		return list
	}
	n.Base, n.Head = captures(u.base.Views), captures(u.head.Views)
	x.ties.tie(&n, u.base.Views, u.head.Views)
	x.Known.unsteady(&n, p.id, row.Labels)
	return n
}

// mostOfTail is the most units behind a tail, so that a bootstrap over them takes a fraction of a second.
const mostOfTail = 4096

// tailTimes are the times of a view's units, spread over the capture, for a tail that the sample of the report's table
// is too short for.
func tailTimes(v *side.View) (times []float64) {
	all := v.Times(side.Kept)
	for i, t := range all {
		if lists.Sampled(int64(i), len(all), mostOfTail) {
			times = append(times, t)
		}
	}
	return times
}

func key(row *comparison.Row) string { return row.Metric + "{" + row.Labels.String() + "}" }

// Judged holds the numbers that were judged, by the key of their row.
type Judged map[string]significance.Number

// Number returns the number by which a row was judged; nil if only its values are known.
func (j Judged) Number(row *comparison.Row) *significance.Number { return j.of(key(row)) }

// Kernel returns the number by which the row of a kernel was judged; nil if its class needed no statistics.
func (j Judged) Kernel(k *comparison.Kernel) *significance.Number { return j.of(kernelKey(k)) }

func (j Judged) of(key string) *significance.Number {
	if n, ok := j[key]; ok {
		return &n
	}
	return nil
}

// row builds a primary row without its class. ok is false if a capture lacks the value.
func (u *units) row(p *primary) (comparison.Row, bool) {
	number := func(v *side.View) (float64, bool) {
		if p.of(v) == nil {
			return 0, false
		}
		return p.value(v), true
	}
	b, ok := side.ValuesOf(u.base.Views, number)
	h, ok2 := side.ValuesOf(u.head.Views, number)
	if !ok || !ok2 {
		return comparison.Row{}, false
	}
	row := side.Row(p.metric(), u.labels(), p.unit(), b, h)
	row.Kind, row.NBase, row.NHead = u.kind.String(), u.base.Units(), u.head.Units()
	row.Unreplicated = row.Unreplicated && !p.exact
	if !p.exact {
		if d, ok := significance.CliffsDelta(u.base.Series(p.id), u.head.Series(p.id)); ok {
			row.EffectSize = &d
		}
	}
	return row, true
}

// labels returns the labels of the kind of unit, empty if both reports' unlabelled metrics describe it.
func (u *units) labels() report.Labels {
	labelled := func(v *side.View) bool { return len(v.Labels) > 0 }
	if !slices.ContainsFunc(slices.Concat(u.base.Views, u.head.Views), labelled) {
		return report.Labels{}
	}
	return u.kind.Labels()
}

const immaterial = "a change of less than 0.5 % of the unit's time"
