package diff

import (
	"errors"
	"fmt"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
)

// Options of a comparison. The zero value compares the kind of unit that both sides spend most time in.
type Options struct {
	Version  string    // of explain, for Comparison.Tool
	Phase    string    // compare units of this phase; empty: the one with most time
	Batch    *int64    // and of this batch size
	MinShare float64   // kernels below this share of the shorter unit go to others, 0..1; 0 means DefaultMinShare
	Top      int       // rows of kernels; 0 means DefaultTop
	Noise    *Noise    // from calibrate; nil: DefaultFloor
	Policy   *Policy   // nil: DefaultPolicy
	Rules    []Rule    // instead of the policy's; none: the policy's
	Today    time.Time // the day that waivers are held to; needed where the policy has some
	Seed     uint64    // of the bootstrap; 0 means DefaultSeed
}

// Defaults of [Options].
const (
	DefaultMinShare        = 0.005
	DefaultTop             = 30
	DefaultSeed     uint64 = 20260101
)

// fill puts defaults in, and what the policy says where the options do not. The policy of the caller stays as it is.
func (o *Options) fill() error {
	if o.Policy == nil {
		o.Policy = DefaultPolicy()
	}
	if len(o.Rules) > 0 {
		p := *o.Policy
		p.Rules = o.Rules
		o.Policy = &p
	}
	if err := o.Policy.Validate(); err != nil {
		return fmt.Errorf("diff: policy: %w", err)
	}
	if len(o.Policy.Waivers) > 0 && o.Today.IsZero() {
		return errors.New("diff: the policy has waivers, and Options.Today does not say which of them have expired")
	}
	if o.Phase == "" {
		o.Phase = o.Policy.Phase
	}
	if o.Batch == nil {
		o.Batch = o.Policy.Batch
	}
	if o.MinShare <= 0 {
		o.MinShare = o.Policy.MinShare
	}
	if o.MinShare <= 0 {
		o.MinShare = DefaultMinShare
	}
	if o.Top <= 0 {
		o.Top = DefaultTop
	}
	if o.Seed == 0 {
		o.Seed = DefaultSeed
	}
	return nil
}

// Compare compares two sides of one or several reports each. It fails only where a side has no report: what cannot be
// compared is a comparison that says so.
func Compare(base, head []*report.Report, opt Options) (*Comparison, error) {
	if len(base) == 0 || len(head) == 0 {
		return nil, errors.New("diff: a comparison needs a report on each side")
	}
	return compare(newCaptures(base), newCaptures(head), opt)
}

// compare compares captures, which it leaves as they are.
func compare(base, head []*capture, opt Options) (*Comparison, error) {
	bare := opt.Policy == nil && len(opt.Rules) == 0
	if err := opt.fill(); err != nil {
		return nil, err
	}
	c := &Comparison{Schema: SchemaID, Tool: report.Tool{Name: "explain", Version: opt.Version}, Verdict: Inconclusive, Depth: DepthNone}
	both := newSides(base, head, matchOptions{Policy: opt.Policy, Phase: opt.Phase, Batch: opt.Batch, MinShare: opt.MinShare, Top: opt.Top}, c)
	x := &comparer{newDecider(both, opt.Noise, opt.Seed)}
	c.Base, c.Head = x.base.describe(), x.head.describe()
	c.Unit.OverlapNeeded = overlapNeeded
	c.Identical = x.identicalSides()
	x.residue()
	switch {
	case x.evidenceOnly():
		if bare {
			x.opt.Policy = &Policy{Rules: EvidenceRules(), Stats: DefaultStats()}
		}
		x.evidence()
	case x.check():
		x.compare()
	default:
		x.totals()
	}
	x.mix()
	c.Comparable = c.Comparable || c.Identical // even where there is no unit: nothing differs
	c.Cause = x.parts().cause()
	c.fill()
	c.Counts.MetricsCompared = int64(len(c.Primary))
	c.Counts.UnitsBase, c.Counts.UnitsHead = c.Unit.BaseN, c.Unit.HeadN
	x.nameKernels()
	judgeAll(c, x.opt.Policy, x.base, x.head, opt.Today)
	return c, c.Validate()
}

// comparer is a comparison on its way from room to room.
type comparer struct{ *Decider }

func (x *comparer) parts() *Parts { return &Parts{Sides: x.Sides, shift: x.shift} }

// compare fills in everything that is said of one kind of unit.
func (x *comparer) compare() {
	c := x.c
	u, h := &x.base.captures[0].Report.Unit, &x.head.captures[0].Report.Unit
	c.Unit.Kind, c.Unit.Name = u.Kind, u.Name
	if u.Kind != h.Kind {
		c.Unit.Kind, c.Unit.Name = u.Kind+" → "+h.Kind, u.Name+" → "+h.Name
	}
	c.Unit.Phase, c.Unit.Batch, c.Unit.Tokens = x.kind.phase, optional(x.kind.batch), optional(x.kind.tokens)
	c.Unit.BaseN, c.Unit.HeadN = x.base.units(), x.head.units()
	x.work()
	x.coverage()
	x.rows()
	base, baseOthers := x.base.merged()
	head, headOthers := x.head.merged()
	var rows, rest []pair
	if c.Depth == DepthKernel {
		rows, rest = x.kernelRows(base, head, x.shorter())
		x.kernels(base, head, rows, rest)
	}
	parts := x.parts()
	parts.attribute(base, head, baseOthers, headOthers, rows, rest)
	parts.distribution()
	parts.apiRows()
	parts.structure(base, head)
	if !c.Comparable && !c.Identical {
		x.unsettle()
	} else if row := c.row("unit.time.p50"); row != nil && row.Class == Unsettled {
		x.reason(WideInterval, "unit.time.p50: "+row.Why)
	}
}

// coverage refuses captures whose units are mostly not kept, because their work does not recur.
func (x *Sides) coverage() {
	for _, s := range []*side{x.base, x.head} {
		for _, v := range s.views {
			var kept int64
			for _, g := range v.c.groups {
				kept += g.Count
			}
			if t := v.c.Report.Unit.Trimmed; t.Other > kept {
				x.refuse(LowCoverage, fmt.Sprintf("%s: %d units of work do not recur and only %d do, so that these say little of the whole", v.c.Report.Trace.Name, t.Other, kept))
			}
		}
	}
}

// unsettle takes the classes of durations back where the sides turned out not to be comparable: the numbers stand, and
// nothing may be concluded from them.
func (x *comparer) unsettle() {
	why := "not comparable: " + string(x.c.Reasons[0].Code)
	for i := range x.c.Primary {
		r := &x.c.Primary[i]
		r.Class, r.Why, r.NeedCaptures = Unsettled, why, nil
	}
	for i := range x.c.Kernels {
		k := &x.c.Kernels[i]
		k.Class, k.Why = Unsettled, why
	}
	for i := range x.c.API {
		x.c.API[i].Class = Unsettled
	}
	x.c.Structure = nil
}

// totals shows totals of the captures where there is no unit to compare. They grow with the length of a capture: nothing
// but equality can be concluded from them.
func (x *comparer) totals() {
	for _, id := range []string{"gpu.busy_time", "kernel.total_time", "kernel.count", "launch.count"} {
		row, ok := x.totalRow(id)
		if !ok {
			continue
		}
		row.Class, row.Why = Unsettled, "a total grows with the length of the capture: nothing follows from a change"
		if *row.Delta == 0 {
			row.Class, row.Why = Same, "both sides are equal"
		}
		x.c.Primary = append(x.c.Primary, row)
	}
}

func (x *comparer) totalRow(id string) (Row, bool) {
	row := Row{Metric: id, Labels: report.Labels{}, BaseValues: []float64{}, HeadValues: []float64{}, Unreplicated: len(x.base.captures) == 1 || len(x.head.captures) == 1}
	for _, s := range []struct {
		side   *side
		values *[]float64
		mean   **float64
	}{{x.base, &row.BaseValues, &row.Base}, {x.head, &row.HeadValues, &row.Head}} {
		for _, c := range s.side.captures {
			v, ok := c.Value(id, nil)
			if !ok {
				return row, false
			}
			row.Unit = c.Metric(id, nil).Unit
			*s.values = append(*s.values, v)
		}
		mean := average(*s.values)
		*s.mean = &mean
	}
	row.change()
	return row, true
}
