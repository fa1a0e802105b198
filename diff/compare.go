package diff

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/breakdown"
	"github.com/nsys-llm/explain/diff/internal/noise"
	"github.com/nsys-llm/explain/diff/internal/pairing"
	"github.com/nsys-llm/explain/diff/internal/rules"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/policy"
)

// Options of a comparison. The zero value compares the kind of unit that both sides spend most time in.
type Options struct {
	Version  string         // of explain, for Comparison.Tool
	Phase    string         // compare units of this phase; empty: the one with most time
	Batch    *int64         // and of this batch size
	Device   *int64         // on this GPU; nil: the one whose units take longest, over both sides
	MinShare float64        // kernels below this share of the shorter unit go to others, 0..1; 0 means DefaultMinShare
	Top      int            // rows of kernels; 0 means DefaultTop
	Noise    *noise.Noise   // from calibrate; nil: DefaultFloor
	Policy   *policy.Policy // nil: DefaultPolicy
	Rules    []policy.Rule  // instead of the policy's; none: the policy's
	NoBase   policy.NoBase  // why there is no base; JudgeBudgets only
	Today    time.Time      // the day on which waivers must be valid; needed if the policy has any
	Seed     uint64         // of the bootstrap; 0 means DefaultSeed
	Study    []string       // of [comparison.StudyFields]: the sides differ in these on purpose, and are compared without a verdict
	apart    string         // why the sides have unlike units, by unify
}

// Defaults of [Options].
const (
	DefaultMinShare        = 0.005
	DefaultTop             = 30
	DefaultSeed     uint64 = 20260101
)

// fill sets defaults, and values of the policy that the options do not set. The policy of the caller stays unchanged.
func (o *Options) fill() error {
	if o.Policy == nil {
		o.Policy = policy.Default()
	}
	if len(o.Rules) > 0 {
		o.Policy = o.Policy.With(o.Rules)
	}
	if len(o.Policy.Waivers) > 0 && o.Today.IsZero() {
		return errors.New("diff: the policy has waivers, and Options.Today does not say which of them have expired")
	}
	o.Phase = cmp.Or(o.Phase, o.Policy.Phase)
	o.Batch = cmp.Or(o.Batch, o.Policy.Batch)
	o.MinShare = cmp.Or(max(o.MinShare, 0), o.Policy.MinShare, DefaultMinShare)
	o.Top = cmp.Or(max(o.Top, 0), DefaultTop)
	o.Seed = cmp.Or(o.Seed, DefaultSeed)
	return nil
}

// Compare compares two sides of one or several reports each. It returns an error only if a side has no report: sides
// that cannot be compared give a comparison with the reason.
func Compare(base, head []*report.Report, opt Options) (*comparison.Comparison, error) {
	if len(base) == 0 || len(head) == 0 {
		return nil, errors.New("diff: a comparison needs a report on each side")
	}
	base, head, opt.apart = unify(base, head)
	c, err := compare(side.NewCaptures(base), side.NewCaptures(head), opt)
	if err == nil {
		sayApart(c, opt.apart)
	}
	return c, err
}

// compare compares captures, without changing them: it pairs the sides, decides their rows, judges these by the policy
// and explains the result. Each room returns its part, and only this package writes it into the comparison.
func compare(base, head []*side.Capture, opt Options) (*comparison.Comparison, error) {
	if err := opt.fill(); err != nil {
		return nil, err
	}
	c := &comparison.Comparison{Schema: comparison.SchemaID, Tool: report.Tool{Name: "explain", Version: opt.Version},
		Verdict: comparison.Inconclusive, Depth: comparison.DepthNone}
	base = collapse(c, "base", base)
	head = collapse(c, "head", head)
	sides := pairing.New(base, head, pairing.Options{Policy: opt.Policy, Phase: opt.Phase, Batch: opt.Batch,
		Device: opt.Device, Study: opt.Study, Apart: opt.apart})
	decider, ignored := noise.NewDecider(sides.Base, sides.Head, sides.Opt.Policy, opt.Noise, opt.Seed)
	x := &comparer{C: c, Opt: opt, Base: sides.Base, Head: sides.Head, sides: sides, noise: decider}
	c.Base, c.Head = x.Base.Describe(), x.Head.Describe()
	c.Unit.OverlapNeeded = pairing.OverlapNeeded
	c.Identical = pairing.Identical(base, head)
	c.Residue = ignored
	evidence := pairing.EvidenceOnly(x.Base, x.Head)
	switch {
	case evidence:
		x.evidence()
	case sides.Check():
		x.units()
	default:
		x.found()
		x.totals()
	}
	if !evidence {
		x.measured(true)
	}
	odd := decider.Odd
	c.Warnings = append(c.Warnings, odd...)
	x.failedRequests()
	acrossSides(c, base, head)
	incomplete(c, base, head)
	overhead(c, opt.Policy.Stats.MaxOverhead, base, head)
	doubt(c)
	c.Mix = sides.Mix()
	c.Ranks = compareRanks(x.Base, x.Head)
	c.Comparable = c.Comparable || c.Identical // even without a unit: nothing differs
	c.Fill()
	c.Counts.MetricsCompared = int64(len(c.Primary))
	c.Counts.UnitsBase, c.Counts.UnitsHead = c.Unit.BaseN, c.Unit.HeadN
	pairing.NameKernels(c.Kernels, x.Base, x.Head)
	onlyNames := func() bool { return pairing.OnlyNames(pairing.Kernels(x.Base, x.Head)) }
	c.Judged(rules.All(c, decider, onlyNames, opt.Today))
	if len(odd) == 0 {
		c.Warnings = append(c.Warnings, decider.Odd...)
	}
	if len(opt.Study) > 0 {
		x.unjudge()
	}
	parts := &breakdown.Parts{C: c, Base: x.Base, Head: x.Head, Chosen: sides.Chosen,
		Limits: breakdown.Limits{MinShare: opt.MinShare, Top: opt.Top}, Floor: decider.Known.UnitFloor()}
	c.Answer, c.Attribution = parts.Answer()
	c.Fill()
	c.Cause = c.Answer.String()
	if c.Study != nil {
		x.price()
	}
	return c, c.Validate()
}

type comparer struct {
	C          *comparison.Comparison
	Opt        Options
	Base, Head *side.Side // of the kind of unit that is attributed, once it is chosen
	sides      *pairing.Sides
	noise      *noise.Decider
}

// found takes over what the pairing found.
func (x *comparer) found() {
	c, f := x.C, x.sides.Found()
	c.Comparable, c.Depth, c.Unit.Overlap = f.Comparable, f.Depth, f.Overlap
	c.Reasons = append(c.Reasons, f.Reasons...)
	c.Warnings = append(c.Warnings, f.Warnings...)
	c.Residue = append(c.Residue, f.Residue...)
}

// rows decides the rows and the parts of the units.
func (x *comparer) rows() {
	c, found := x.C, x.noise.Rows(x.sides.Chosen, x.C.Depth, x.C.Comparable)
	c.Primary, c.Parts = found.Primary, found.Parts
	c.Reasons = append(c.Reasons, found.Reasons...)
}

func (x *comparer) units() {
	c := x.C
	x.sides.Work()
	x.found()
	c.Identical = c.Identical && !c.Has(comparison.DifferentWork) // launches of another size, in the same times
	x.nameUnit()
	for _, text := range pairing.Coverage(x.Base, x.Head) {
		c.Refuse(comparison.LowCoverage, text)
	}
	x.rows()
	limits := breakdown.Limits{MinShare: x.Opt.MinShare, Top: x.Opt.Top}
	if c.Depth == comparison.DepthKernel {
		x.kernels(limits)
		c.Step = breakdown.Step(x.Base, x.Head)
	}
	c.Attribution = breakdown.Attribute(x.Base, x.Head, c.Depth, limits)
	c.Distribution = breakdown.Distribution(x.Base, x.Head)
	c.API = breakdown.APIRows(x.Base, x.Head)
	c.Structure = breakdown.Structure(x.Base, x.Head, c.Depth)
	c.Unjudged = breakdown.Unjudged(x.Base, x.Head)
	if !c.Comparable && !c.Identical {
		x.unsettle()
	} else if row := c.Row("unit.time.p50"); row != nil && row.Class == comparison.Unsettled {
		c.Reason(cmp.Or(row.Code, comparison.WideInterval), "unit.time.p50: "+row.Why)
	}
}

// kernels decides the rows of kernels, and counts all compared kernels.
func (x *comparer) kernels(limits breakdown.Limits) {
	pairs, rest := pairing.KernelRows(x.Base, x.Head, limits.MinShare, limits.Top)
	x.C.Kernels = x.noise.Kernels(pairs)
	all := slices.Concat(pairs, rest)
	x.C.Counts.KernelsCompared = int64(len(all))
	x.C.Counts.KernelsPaired = int64(lists.Count(all, pairing.Pair.Both))
}

// nameUnit describes the kind of unit that is compared.
func (x *comparer) nameUnit() {
	c := x.C
	u, h := &x.Base.Captures[0].Report.Unit, &x.Head.Captures[0].Report.Unit
	c.Unit.Kind, c.Unit.Name = u.Kind, u.Name
	if u.Kind != h.Kind {
		c.Unit.Kind, c.Unit.Name = u.Kind+" → "+h.Kind, u.Name+" → "+h.Name
	}
	b, k := x.sides.Kind, x.sides.HeadKind()
	c.Unit.Phase, c.Unit.Batch, c.Unit.Tokens = b.Phase, report.Optional(b.Batch), report.Optional(b.Tokens)
	switch {
	case (k.Batch < 0) != (b.Batch < 0):
		c.Unit.Batch = nil
	case k.Batch != b.Batch:
		c.Unit.HeadBatch = report.Optional(k.Batch)
	}
	if k.Plain() != b.Plain() || !b.Plain() && k.Phase != b.Phase {
		c.Unit.Phase = ""
	}
	c.Unit.BaseN, c.Unit.HeadN = x.Base.Units(), x.Head.Units()
	c.Unit.BaseCoverage, c.Unit.HeadCoverage = unitCoverage(x.Base), unitCoverage(x.Head)
	c.Unit.BaseGPU, c.Unit.HeadGPU = pairing.GPUs(x.Base, x.Head)
}

// unitCoverage is the share of GPU compute time in units, averaged over captures; nil if unknown for one of them.
func unitCoverage(s *side.Side) *float64 {
	mean, ok := side.MeanOf(s.Captures, func(c *side.Capture) (float64, bool) {
		share := c.Report.Unit.Coverage
		return comparison.Value(share), share != nil
	})
	if !ok {
		return nil
	}
	return &mean
}

// unsettle withdraws all classes if the sides turn out not to be comparable: it keeps the numbers, without a
// conclusion.
func (x *comparer) unsettle() {
	why := "not comparable: " + string(x.C.Reasons[0].Code)
	withdraw(x.C, why, func(string) bool { return true })
	withdrawParts(x.C, why)
	x.C.Step = nil
}

// withdraw makes the rows of some metrics unsettled.
func withdraw(c *comparison.Comparison, why string, is func(metric string) bool) {
	for i := range c.Primary {
		if r := &c.Primary[i]; is(r.Metric) {
			r.Class, r.Why, r.NeedCaptures = comparison.Unsettled, why, nil
		}
	}
}

// withdrawParts makes kernels and host calls unsettled, and drops what was found of the structure.
func withdrawParts(c *comparison.Comparison, why string) {
	for i := range c.Kernels {
		c.Kernels[i].Class, c.Kernels[i].Why = comparison.Unsettled, why
	}
	for i := range c.API {
		c.API[i].Class = comparison.Unsettled
	}
	c.Structure = nil
}

// totals shows totals of the captures if there is no unit to compare. They grow with the length of a capture: only
// their equality means anything.
func (x *comparer) totals() {
	for _, id := range []string{"gpu.busy_time", "kernel.total_time", "kernel.count", "launch.count"} {
		base, head := x.Base.Sample(id, "", nil), x.Head.Sample(id, "", nil)
		if base.Mean() == nil || head.Mean() == nil {
			continue
		}
		row := side.Row(id, report.Labels{}, x.Base.Captures[0].Metric(id, nil).Unit, base.Values, head.Values)
		row.Class, row.Why = comparison.Unsettled,
			"a total grows with the length of the capture: nothing follows from a change"
		if comparison.Value(row.Delta) == 0 {
			row.Class, row.Why = comparison.Same, "both sides are equal"
		}
		x.C.Primary = append(x.C.Primary, row)
	}
}
