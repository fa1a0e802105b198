package noise

import (
	"math"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/report"
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
	C          *comparison.Comparison
	Base, Head *side.Side // for one kind of unit on one device
	Policy     *policy.Policy

	kind  side.Kind      // of Base and Head
	kinds []pairing.Kind // all kinds of unit of both sides
	noise *Noise         // nil if there is no calibration, or it does not apply to both sides
	seed  uint64         // of the bootstrap
	// OtherRun reports that the sides come from different runs. Captures of one run do not show how runs differ, so
	// the noise floor applies to any number of captures.
	OtherRun bool

	numbers map[string]significance.Number // judged, by key of their row
	kernels map[string]significance.Number // judged, by kernelKey
	marks   map[*side.View]Marks           // see marksOf
	work    *workload                      // nil if there is no row work.time
	// drifting parts, by the part's name and the labels of its unit
	drifting map[string]bool
	apart    map[string]comparison.Part // by the labels of a unit: the units that stand apart as a whole
}

// NewDecider uses the noise if it applies to all captures; if not, it ignores it and lists it as residue.
func NewDecider(c *comparison.Comparison, base, head *side.Side, p *policy.Policy, noise *Noise, seed uint64) *Decider {
	d := &Decider{C: c, Base: base, Head: head, Policy: p, seed: seed, OtherRun: side.BetweenRuns(base, head),
		marks: map[*side.View]Marks{}}
	if noise == nil {
		return d
	}
	for _, x := range slices.Concat(base.Captures, head.Captures) {
		if ok, why := noise.Applies(x.Report, p.Environment); !ok {
			c.Residue = append(c.Residue, comparison.Residue{Field: "noise", Base: why, Head: why, Soft: true})
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
	series func(u *side.UnitRow) float64 // nil if the report has none
	part   bool                          // a part of the unit: only changes above a share of the unit count
	exact  bool
	plain  bool // neither direction is better
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

// primaries lists the rows that show whether the head got slower. unit.time decides: its median, because one slow unit
// does not move it, and its mean, because the breakdown splits it. The other rows show where to look.
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

// tail returns the row for a high percentile of unit.time: p99, or p90 with fewer units. ok is false if a side has too
// few units for either.
func (x *Decider) tail() (p primary, ok bool) {
	p = primary{of: unitTime, series: timeOf}
	st, ok := significance.Tail(int(min(x.Base.Units(), x.Head.Units())))
	switch st {
	case significance.P99:
		p.metric, p.stat = "unit.time.p99", func(s *report.Summary) float64 { return s.P99 }
	case significance.P90:
		p.metric, p.stat = "unit.time.p90", func(s *report.Summary) float64 { return s.P90 }
	}
	return p, ok
}

// Rows adds the primary rows: all of them for the chosen kind of unit, and for each other judged kind those that show
// whether it got slower. Each row is decided by itself, because the median and the mean of one kind are nearly equal,
// and its parts and counts only show where to look. Gates correct for the number of kinds. A kind has no row if a side
// has fewer than three units of it.
func (x *Decider) Rows(chosen pairing.Chosen) {
	x.numbers, x.drifting, x.apart = map[string]significance.Number{}, map[string]bool{}, map[string]comparison.Part{}
	x.kind, x.kinds = chosen.Kind, chosen.Kinds
	for i, k := range chosen.Judged {
		y := *x
		y.kind = k.Name
		y.Base, y.Head = k.Of(x.Base, x.Head)
		list := primaries()
		if i > 0 {
			if min(y.Base.Units(), y.Head.Units()) < significance.LeastUnits {
				continue // work.time includes them
			}
			list = slices.DeleteFunc(list, func(p primary) bool { return p.part || p.plain })
		}
		if p, ok := y.tail(); ok {
			list = slices.Insert(list, 2, p) // after median and mean
		}
		y.kindRows(list)
		y.partRows()
	}
	x.deviceRows(chosen)
	if chosen.Whole {
		x.Workload()
	}
}

// deviceRows adds the median of the chosen kind for each other device that ran it on both sides.
func (x *Decider) deviceRows(chosen pairing.Chosen) {
	for _, d := range chosen.Devices {
		if d == chosen.Device {
			continue
		}
		y := *x
		if y.Base, y.Head = pairing.On(x.Base, x.Head, d); y.Base == nil {
			continue
		}
		y.numbers = nil // those of the kind stay as they are
		from := len(x.C.Primary)
		y.kindRows(primaries()[:1])
		for i := range x.C.Primary[from:] {
			r := &x.C.Primary[from+i]
			n, _ := y.Number(r)
			r.Labels = r.Labels.Clone()
			r.Labels["device"] = strconv.FormatInt(d, 10)
			x.remember(r, n)
		}
	}
}

// kindRows adds the rows in list for one kind of unit.
func (x *Decider) kindRows(list []primary) {
	for i := range list {
		p := &list[i]
		if p.metric == "unit.kernels" && x.C.Depth != comparison.DepthKernel {
			continue
		}
		row, ok := x.row(p)
		if !ok {
			continue
		}
		x.decide([]*comparison.Row{&row}, []significance.Number{x.primaryNumber(p, &row)}, x.Alone())
		x.describe(p, &row)
		x.C.Primary = append(x.C.Primary, row)
	}
}

// describe marks a part that hardly changed as same, and a count without a better direction as added or removed.
func (x *Decider) describe(p *primary, row *comparison.Row) {
	if p.part && math.Abs(comparison.Value(row.Delta)) < pairing.LeastPart*pairing.Shorter(x.Base, x.Head) && comparison.Value(row.Delta) != 0 {
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
func (x *Decider) primaryNumber(p *primary, row *comparison.Row) significance.Number {
	id, stat := policy.SplitStat(p.metric)
	st, _ := statistic(stat)
	if p.exact {
		st = significance.Median
	}
	n := x.number(p.metric, row.Labels, p.unit(), st)
	n.Count, n.Whole = p.exact, id == "unit.time"
	for _, s := range []struct {
		side *side.Side
		out  *[]significance.Capture
	}{{x.Base, &n.Base}, {x.Head, &n.Head}} {
		for _, v := range s.side.Views {
			one := significance.Capture{Value: p.stat(p.of(v))}
			for i := range v.Units {
				if u, ok := v.Units[i].Of(id); ok {
					one.Units = append(one.Units, u)
				}
			}
			summarised(&one, p.of(v), st, one.Units == nil, v.Units)
			*s.out = append(*s.out, one)
		}
	}
	x.tied(&n)
	x.unsteady(&n, id, row.Labels)
	return n
}

// key returns the key of a row in Decider.numbers.
func key(metric string, l report.Labels) string { return metric + "{" + l.String() + "}" }

func (x *Decider) remember(row *comparison.Row, n significance.Number) {
	if x.numbers == nil {
		x.numbers = map[string]significance.Number{}
	}
	x.numbers[key(row.Metric, row.Labels)] = n
}

// Number returns the number by which a row was judged; ok is false if only its values are known.
func (x *Decider) Number(row *comparison.Row) (n significance.Number, ok bool) {
	if x == nil {
		return n, false
	}
	n, ok = x.numbers[key(row.Metric, row.Labels)]
	return n, ok
}

// row builds a primary row without its class. ok is false if a capture lacks the value.
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
	row := comparison.Row{Metric: p.metric, Kind: x.kind.String(), Labels: x.labels(), Unit: p.unit(), Base: &base,
		Head: &head, NBase: x.Base.Units(), NHead: x.Head.Units(), BaseValues: b,
		HeadValues: h, Unreplicated: !p.exact && (len(b) == 1 || len(h) == 1)}
	row.Change()
	if p.series != nil {
		if d, ok := significance.CliffsDelta(x.Base.Series(p.series), x.Head.Series(p.series)); ok {
			row.EffectSize = &d
		}
	}
	return row, true
}

// labels returns the labels of the compared kind of unit, empty if both reports' unlabelled metrics describe it.
func (x *Decider) labels() report.Labels {
	for _, s := range []*side.Side{x.Base, x.Head} {
		for _, v := range s.Views {
			if len(v.Labels) > 0 {
				l := report.Labels{"phase": x.kind.Phase}
				if x.kind.Batch >= 0 {
					l["batch"] = strconv.FormatInt(x.kind.Batch, 10)
				}
				if x.kind.Tokens >= 0 {
					l["tokens"] = strconv.FormatInt(x.kind.Tokens, 10)
				}
				return l
			}
		}
	}
	return report.Labels{}
}

const immaterial = "a change of less than 0.5 % of the unit's time"

// alpha returns the policy's significance level.
func (x *Decider) alpha() float64 { return x.Policy.Stats.Alpha }
