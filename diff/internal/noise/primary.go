package noise

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/infer"
	"github.com/nsys-llm/explain/diff/internal/match"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/policy"
)

// How rows are decided.
const (
	// Tau is the relative change that several captures a side are tested against, and up to which a row can be "same".
	Tau = 0.03
)

// Decider says of each change whether it is real or noise.
type Decider struct {
	*match.Sides
	noise *Noise   // that applies to both sides, or nil
	seed  uint64   // of the bootstrap
	Shift *float64 // of all kernels, ln, where several captures a side tell
}

// NewDecider takes the noise where it applies to all captures, and names it as residue where it does not.
func NewDecider(x *match.Sides, noise *Noise, seed uint64) *Decider {
	d := &Decider{Sides: x, seed: seed}
	if noise == nil {
		return d
	}
	for _, c := range slices.Concat(x.Base.Captures, x.Head.Captures) {
		if ok, why := noise.Applies(c.Report, x.Opt.Policy.Environment); !ok {
			x.C.Residue = append(x.C.Residue, comparison.Residue{Field: "noise", Base: why, Head: why, Soft: true})
			return d
		}
	}
	d.noise = noise
	return d
}

// primary describes one primary row.
type primary struct {
	metric string
	of     func(v *side.View) *report.Summary
	stat   func(s *report.Summary) float64
	series func(u *side.UnitRow) float64 // nil where the report has none
	part   bool                          // of the unit: only changes of a share of it count
	exact  bool
	plain  bool // neither way is better
}

func median(s *report.Summary) float64 { return s.P50 }

func meanOf(s *report.Summary) float64 { return s.Mean }

func unitTime(v *side.View) *report.Summary { return v.Time }

func timeOf(u *side.UnitRow) float64 { return u.Time }

func (p *primary) unit() string {
	if p.exact {
		return report.Count
	}
	return report.Nanoseconds
}

// statistic of a sample that the row's value is, which may reorder it.
func (p *primary) statistic() side.Statistic {
	switch {
	case strings.HasSuffix(p.metric, ".p50"):
		return infer.MedianOf
	case strings.HasSuffix(p.metric, ".p90"):
		return quantile(0.9)
	case strings.HasSuffix(p.metric, ".p99"):
		return quantile(0.99)
	}
	return side.Average
}

// quantile is a statistic that sorts its argument; it interpolates between the closest ranks, as reports do.
func quantile(q float64) side.Statistic {
	return func(values []float64) float64 {
		if len(values) == 0 {
			return 0
		}
		slices.Sort(values)
		at := q * float64(len(values)-1)
		i := int(at)
		if i+1 == len(values) {
			return values[i]
		}
		return values[i] + (at-float64(i))*(values[i+1]-values[i])
	}
}

// primaries are the rows that answer whether it got slower. unit.time decides, by its median, which one slow unit does
// not move, and by its mean, which the attribution splits; the others say where to look.
func primaries() []primary {
	return []primary{
		{metric: "unit.time.p50", of: unitTime, stat: median, series: timeOf},
		{metric: "unit.time.mean", of: unitTime, stat: meanOf, series: timeOf},
		{metric: "unit.gpu_busy.mean", of: func(v *side.View) *report.Summary { return v.Busy }, stat: meanOf,
			series: func(u *side.UnitRow) float64 { return u.Busy }, part: true},
		{metric: "unit.gpu_idle.mean", of: func(v *side.View) *report.Summary { return v.Idle }, stat: meanOf,
			series: func(u *side.UnitRow) float64 { return u.Idle }, part: true},
		{metric: "unit.launches", of: func(v *side.View) *report.Summary { return v.Launches }, stat: median,
			exact: true},
		{metric: "unit.kernels", of: func(v *side.View) *report.Summary { return v.Kernels }, stat: median,
			exact: true, plain: true},
	}
}

// Units on each side from which a tail says something: five of them lie beyond it.
const (
	unitsForP99 = 500
	unitsForP90 = 50
)

// tail is the row of the slow end of unit.time, of which there must be enough units on both sides; ok is false where
// there are not.
func (x *Decider) tail() (p primary, ok bool) {
	p = primary{of: unitTime, series: timeOf}
	switch n := min(x.Base.Units(), x.Head.Units()); {
	case n >= unitsForP99:
		p.metric, p.stat = "unit.time.p99", func(s *report.Summary) float64 { return s.P99 }
	case n >= unitsForP90:
		p.metric, p.stat = "unit.time.p90", func(s *report.Summary) float64 { return s.P90 }
	default:
		return p, false
	}
	return p, true
}

// Rows fills in the primary rows: of the kind of unit that is attributed everything, of each other kind with a share of
// the time what answers whether it got slower.
func (x *Decider) Rows() {
	var tested []int
	for i, k := range x.Judged() {
		y := *x
		y.Sides = x.Of(k)
		list := primaries()
		if i > 0 {
			list = slices.DeleteFunc(list, func(p primary) bool { return p.part || p.plain })
		}
		if p, ok := y.tail(); ok {
			list = slices.Insert(list, 2, p) // behind median and mean
		}
		tested = append(tested, y.kindRows(list)...)
	}
	tested = append(tested, x.deviceRows()...)
	x.several(tested)
	x.Workload()
}

// deviceRows adds the median on each other device that both sides ran the attributed kind on.
func (x *Decider) deviceRows() (tested []int) {
	for _, d := range x.Devices() {
		if d == x.Device {
			continue
		}
		y := *x
		if y.Sides = x.On(d); y.Sides == nil {
			continue
		}
		from := len(x.C.Primary)
		tested = append(tested, y.kindRows(primaries()[:1])...)
		for i := range x.C.Primary[from:] {
			r := &x.C.Primary[from+i]
			r.Labels = r.Labels.Clone()
			r.Labels["device"] = strconv.FormatInt(d, 10)
		}
	}
	return tested
}

// kindRows adds the rows of one kind of unit, and returns the places of those that several captures a side decide.
func (x *Decider) kindRows(list []primary) (tested []int) {
	replicated := len(x.Base.Captures) > 1 && len(x.Head.Captures) > 1
	from := len(x.C.Primary)
	for i := range list {
		p := &list[i]
		if p.metric == "unit.kernels" && x.C.Depth != comparison.DepthKernel {
			continue
		}
		row, ok := x.row(p)
		if !ok {
			continue
		}
		switch {
		case p.exact:
			x.exact(p, &row)
		case *row.Delta == 0 && slices.Equal(row.BaseValues, row.HeadValues):
			row.Class, row.Why = comparison.Same, "both sides are equal"
		case replicated:
			tested = append(tested, len(x.C.Primary))
		default:
			x.single(p, &row)
		}
		x.C.Primary = append(x.C.Primary, row)
	}
	agree(x.C.Primary[from:])
	return tested
}

// agree lets median and mean of unit.time of one kind decide together where there is one capture on a side: a change of one of them
// stands only if the other changed beyond the noise floor too, in the same direction. A median can jump between two
// humps, a mean follows a single unit.
func agree(rows []comparison.Row) {
	row := func(metric string) *comparison.Row {
		if i := slices.IndexFunc(rows, func(r comparison.Row) bool { return r.Metric == metric }); i >= 0 {
			return &rows[i]
		}
		return nil
	}
	p50, mean := row("unit.time.p50"), row("unit.time.mean")
	if p50 == nil || mean == nil || !p50.Unreplicated {
		return
	}
	with := func(row, other *comparison.Row, name string) (comparison.Class, string) {
		if !comparison.Real(row) || other.Ratio == nil ||
			(*row.Ratio > 1) == (*other.Ratio > 1) &&
				math.Abs(math.Log(*other.Ratio)) > math.Log1p(comparison.Value(row.NoiseFloor)) {
			return row.Class, row.Why
		}
		return comparison.Unsettled, row.Why + "; but the " + name + " changed by " + unit.Change(
			*other.Ratio-1) + " only"
	}
	a, why := with(p50, mean, "mean")
	b, why2 := with(mean, p50, "median")
	p50.Class, p50.Why, mean.Class, mean.Why = a, why, b, why2
}

// row has the numbers of a primary row, and no class yet.
func (x *Decider) row(p *primary) (comparison.Row, bool) {
	number := func(v *side.View) (float64, bool) {
		if s := p.of(v); s != nil {
			return p.stat(s), true
		}
		return 0, false
	}
	b, ok := x.Base.Values(number)
	h, ok2 := x.Head.Values(number)
	if !ok || !ok2 {
		return comparison.Row{}, false
	}
	base, head := side.Average(b), side.Average(h)
	row := comparison.Row{Metric: p.metric, Kind: x.Kind.String(), Labels: x.labels(), Unit: p.unit(), Base: &base,
		Head: &head, NBase: x.Base.Units(), NHead: x.Head.Units(), BaseValues: b,
		HeadValues: h, Unreplicated: !p.exact && (len(b) == 1 || len(h) == 1)}
	row.Change()
	if p.series != nil {
		if d, ok := infer.CliffsDelta(x.Base.Series(p.series), x.Head.Series(p.series)); ok {
			row.EffectSize = &d
		}
	}
	return row, true
}

// labels of the kind of unit that is compared: none where it is what both reports' unlabelled metrics are of.
func (x *Decider) labels() report.Labels {
	for _, s := range []*side.Side{x.Base, x.Head} {
		for _, v := range s.Views {
			if len(v.Labels) > 0 {
				l := report.Labels{"phase": x.Kind.Phase}
				if x.Kind.Batch >= 0 {
					l["batch"] = strconv.FormatInt(x.Kind.Batch, 10)
				}
				if x.Kind.Tokens >= 0 {
					l["tokens"] = strconv.FormatInt(x.Kind.Tokens, 10)
				}
				return l
			}
		}
	}
	return report.Labels{}
}

// exact decides a count. A count that is the same in every unit of a side is exact; one that varies is that
// side's median.
func (x *Decider) exact(p *primary, row *comparison.Row) {
	row.Why = "counts are exact"
	for _, s := range []*side.Side{x.Base, x.Head} {
		for _, v := range s.Views {
			if m := p.of(v); m.Min != m.Max {
				row.Why = "counts are exact; they vary from unit to unit, and medians are compared"
			}
		}
	}
	switch d := *row.Delta; {
	case d == 0:
		row.Class = comparison.Same
	case d > 0 && p.plain:
		row.Class = comparison.Added
	case p.plain:
		row.Class = comparison.Removed
	case d > 0:
		row.Class = comparison.Regressed
	default:
		row.Class = comparison.Improved
	}
}

// floor is the noise floor of a metric: calibrated, or assumed.
func (x *Decider) floor(metric string, labels report.Labels) (ratio float64, text string) {
	if x.noise != nil {
		id, _ := policy.SplitStat(metric)
		if metric == comparison.MetricWork { // a sum of such times
			metric = "unit.time.mean"
			id, _ = policy.SplitStat(metric)
		}
		for _, m := range []string{metric, id} {
			if r, ok := x.noise.Floor(m, labels); ok {
				return r, "calibrated noise floor of " + unit.Percent(r)
			}
		}
	}
	return comparison.DefaultFloor, "noise floor of " + unit.Percent(
		comparison.DefaultFloor) + " (assumed: nothing was calibrated)"
}

// single decides a duration with one capture on a side, see the page one-capture. It has changed only if it did so by
// more than the noise floor and the interval over the units inside the captures does not hold "no change"; it is the
// same only if it changed by no more than Tau and the floor and the interval lies within the floor.
func (x *Decider) single(p *primary, row *comparison.Row) {
	floor, text := x.floor(row.Metric, row.Labels)
	row.NoiseFloor = &floor
	row.Class = comparison.Unsettled
	if row.Ratio == nil || *row.Ratio <= 0 {
		row.Why = "one side is 0, so that there is no ratio to hold against the " + text
		if x.immaterial(p, row) {
			row.Class, row.Why = comparison.Same, immaterial
		}
		return
	}
	few := false
	if p.series != nil {
		row.Interval, few = x.interval(p)
	}
	change := unit.Change(*row.Ratio - 1)
	if row.Interval == nil {
		row.Why = fmt.Sprintf("%s; %d and %d units are too few for an interval", change, len(x.Base.Series(timeOf)),
			len(x.Head.Series(timeOf)))
		if x.immaterial(p, row) {
			row.Class = comparison.Same
		}
		return
	}
	r, lo, hi := *row.Ratio, row.Interval.Low, row.Interval.High
	within := fmt.Sprintf("%s, interval over units %s to %s", change, unit.Change(lo-1), unit.Change(hi-1))
	beyond := math.Abs(math.Log(r)) > math.Log1p(floor)
	clear := r > 1 && lo > 1 || r < 1 && hi < 1
	switch {
	case x.immaterial(p, row):
		row.Class, row.Why = comparison.Same, immaterial
	case beyond && clear && few:
		row.Why = within + ": beyond the " + text + ", but so few units cannot show that it is more than a slow stretch"
	case beyond && clear:
		row.Class, row.Why = comparison.Better(*row.Delta), within+": beyond the "+text
	case beyond:
		row.Why = within + ": beyond the " + text + ", but the units inside the captures vary as much"
	case math.Abs(math.Log(r)) <= math.Log1p(min(floor, Tau)) && lo >= 1/(1+floor) && hi <= 1+floor:
		row.Class, row.Why = comparison.Same, within+": within the "+text
	case clear && math.Abs(math.Log(r)) > math.Log1p(Tau):
		row.Why = within + ": more than " + unit.Percent(
			Tau) + " but within the " + text + "; several captures a side would tell"
	default:
		row.Why = within + ": neither beyond the " + text + " nor surely within it"
	}
	if row.Class == comparison.Unsettled {
		// The floor is what noise exceeds in one comparison of a hundred: 2.326 standard deviations of a difference.
		sd := math.Log1p(floor) / (2.326 * math.Sqrt2)
		if k := infer.Captures(math.Log(r), math.Log1p(Tau), sd, 0, x.alpha()); k > 0 {
			row.NeedCaptures = &k
		}
	}
}

const immaterial = "a change of less than 0.5 % of the unit's time"

// immaterial reports whether a part of the unit changed by less than a share of the unit that anybody would notice.
func (x *Decider) immaterial(p *primary, row *comparison.Row) bool {
	if !p.part {
		return false
	}
	return math.Abs(*row.Delta) < match.LeastPart*x.Shorter()
}

// several decides rows with several captures on each side, see the page several-captures.
func (x *Decider) several(tested []int) {
	if len(tested) == 0 {
		return
	}
	var samples []infer.Sample
	var rows []*comparison.Row
	var history []infer.History
	for _, i := range tested {
		row := &x.C.Primary[i]
		if slices.Min(row.BaseValues) <= 0 || slices.Min(row.HeadValues) <= 0 {
			row.Class, row.Why = comparison.Unsettled, "a value of 0 has no logarithm to test"
			if p := primaryOf(row.Metric); x.immaterial(&p, row) {
				row.Class, row.Why = comparison.Same, immaterial
			}
			continue
		}
		samples = append(samples,
			infer.Sample{ID: row.Metric, Base: side.Logs(row.BaseValues), Head: side.Logs(row.HeadValues)})
		rows = append(rows, row)
		if x.noise != nil {
			id, _ := policy.SplitStat(row.Metric)
			for _, m := range []string{row.Metric, id} { // the statistic's own variance, else the metric's
				if s2, df, ok := x.noise.Variance(m, row.Labels, false); ok {
					history = append(history, infer.History{ID: row.Metric, S2: s2, DF: df})
					break
				}
			}
		}
	}
	results := infer.TREAT(samples, math.Log1p(Tau), x.alpha(), false, history...)
	p := make([]float64, len(results))
	for i := range results {
		p[i] = results[i].P
	}
	adjusted := infer.Holm(p)
	for i, row := range rows {
		t := &results[i]
		row.P, row.PAdjusted = &p[i], &adjusted[i]
		row.Test = &comparison.Test{Effect: t.Effect, SE: t.SE, DF: t.DF, Tau: math.Log1p(Tau),
			S2: t.S2, Moderated: t.Moderated}
		if t.Known {
			row.Interval = &comparison.Interval{Low: math.Exp(t.Low), High: math.Exp(t.High),
				Level: 1 - x.alpha(), Method: "t interval over captures, moderated variance"}
		}
		what := primaryOf(row.Metric)
		row.Class, row.Why = x.tested(t, adjusted[i], x.alpha(), "Holm")
		x.betweenRuns(row)
		switch {
		case x.immaterial(&what, row):
			row.Class, row.Why = comparison.Same, immaterial
		case row.Class == comparison.Unsettled:
			if k := infer.Captures(t.Effect, math.Log1p(Tau), math.Sqrt(t.Moderated), t.DF, x.alpha()); k > 0 {
				row.NeedCaptures = &k
			}
		}
	}
}

// betweenRuns keeps the noise floor where the spread of the captures does not contain what differs between runs.
func (x *Decider) betweenRuns(row *comparison.Row) {
	floor, text := x.floor(row.Metric, row.Labels)
	if !comparison.Real(row) || row.Ratio == nil || !side.BetweenRuns(x.Base, x.Head) ||
		math.Abs(math.Log(*row.Ratio)) > math.Log1p(floor) {
		return
	}
	row.NoiseFloor = &floor
	row.Class = comparison.Unsettled
	row.Why += "; but the sides are of different runs, whose difference no capture contains: within the " + text
}

func primaryOf(metric string) primary {
	list := primaries()
	if i := slices.IndexFunc(list, func(p primary) bool { return p.metric == metric }); i >= 0 {
		return list[i]
	}
	return primary{}
}

// alpha that the policy goes by.
func (x *Decider) alpha() float64 { return x.Opt.Policy.Stats.Alpha }

// tested is the class that a test gives, and why: level is the adjusted p-value up to which a change is one.
func (x *Decider) tested(t *infer.Result, adjusted, level float64, method string) (comparison.Class, string) {
	tau := math.Log1p(Tau)
	text := fmt.Sprintf("%s (interval %s to %s), adjusted p (%s) against ±%s is %s", unit.Change(math.Expm1(t.Effect)),
		unit.Change(math.Expm1(t.Low)), unit.Change(math.Expm1(t.High)), method, unit.Percent(Tau),
		strconv.FormatFloat(adjusted, 'g', 3, 64))
	switch {
	case !t.Known:
		return comparison.Unsettled, "nothing is known of the noise between captures"
	case adjusted <= level:
		return comparison.Better(t.Effect), text
	case t.Low > -tau && t.High < tau:
		return comparison.Same, text + ": within ±" + unit.Percent(Tau)
	}
	return comparison.Unsettled, text + ": neither beyond it nor surely within it"
}
