package comparison

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/nsys-llm/explain/analyze/report"
)

// maxBytes bounds what Read accepts. A comparison has some hundred rows.
const maxBytes = 16 << 20

// Write validates the comparison and writes it as JSON, one line per row of the long lists, so that two comparisons can
// be compared line by line. The same comparison always gives the same bytes.
func Write(w io.Writer, c *Comparison) error {
	if err := c.Validate(); err != nil {
		return err
	}
	l := &report.Lines{}
	l.Field("schema", c.Schema)
	l.Field("tool", c.Tool)
	l.Field("verdict", c.Verdict)
	if c.Study != nil {
		l.Field("study", c.Study)
	}
	l.Field("answer", c.Answer)
	l.Field("cause", c.Cause)
	l.Field("comparable", c.Comparable)
	l.Field("depth", c.Depth)
	l.Field("identical", c.Identical)
	report.List(l, "reasons", c.Reasons)
	report.List(l, "warnings", c.Warnings)
	l.Field("base", c.Base)
	l.Field("head", c.Head)
	l.Field("unit", c.Unit)
	report.List(l, "primary", c.Primary)
	if len(c.Parts) > 0 {
		report.List(l, "parts", c.Parts)
	}
	attribution(l, &c.Attribution)
	step(l, c.Step)
	ranks(l, c.Ranks)
	l.Field("distribution", c.Distribution)
	report.List(l, "kernels", c.Kernels)
	report.List(l, "api", c.API)
	report.List(l, "structure", c.Structure)
	report.List(l, "mix", c.Mix)
	report.List(l, "unjudged", c.Unjudged)
	l.Field("policy", c.Policy)
	l.Field("resolution", c.Resolution)
	report.List(l, "gates", c.Gates)
	report.List(l, "waivers", c.Waivers)
	report.List(l, "overrides", c.Overrides)
	report.List(l, "residue", c.Residue)
	l.Field("counts", c.Counts)
	return l.Write(w)
}

// attribution writes the rows of the attribution one per line too.
func attribution(l *report.Lines, a *Attribution) {
	var inner report.Lines
	inner.Field("metric", a.Metric)
	if a.Kind != "" {
		inner.Field("kind", a.Kind)
	}
	inner.Field("base", a.Base)
	inner.Field("head", a.Head)
	inner.Field("total_delta", a.TotalDelta)
	report.List(&inner, "rows", a.Rows)
	inner.Field("residual", a.Residual)
	l.Object("attribution", &inner)
}

// step writes the rows of the step one per line too.
func step(l *report.Lines, s *Step) {
	if s == nil {
		return
	}
	var inner report.Lines
	inner.Field("device", s.Device)
	inner.Field("base", s.Base)
	inner.Field("head", s.Head)
	inner.Field("delta", s.Delta)
	inner.Field("idle", s.Idle)
	inner.Field("systematic", s.Systematic)
	inner.Field("sporadic", s.Sporadic)
	inner.Field("base_units", s.BaseUnits)
	inner.Field("head_units", s.HeadUnits)
	inner.Field("where", s.Where)
	report.List(&inner, "stretches", s.Stretches)
	report.List(&inner, "base_hiccups", s.BaseHiccups)
	report.List(&inner, "head_hiccups", s.HeadHiccups)
	inner.Field("names", s.Names)
	report.List(&inner, "rows", s.Rows)
	if len(s.Tree) > 0 {
		report.List(&inner, "tree", s.Tree)
	}
	l.Object("step", &inner)
}

// ranks writes ranks and steps one per line too.
func ranks(l *report.Lines, r *Ranks) {
	if r == nil {
		return
	}
	var inner report.Lines
	inner.Field("by", r.By)
	inner.Field("where", r.Where)
	inner.Field("held", r.Held)
	report.List(&inner, "rows", r.Rows)
	report.List(&inner, "steps", r.Steps)
	l.Object("ranks", &inner)
}

// Read parses a comparison and validates it, see [report.ReadVersioned]. The file may come from anybody, and what is
// read may be shown to everybody: beside what [Comparison.Validate] asks, lists are bounded, counts are not negative,
// and the verdict is no better than that of the gates it stands on. The numbers are those of whoever wrote them.
func Read(r io.Reader) (*Comparison, error) {
	c, err := report.ReadVersioned[Comparison](r, "comparison", SchemaID, maxBytes)
	if err != nil {
		return nil, err
	}
	c.Fill()
	c.fillPolicy()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := c.plausible(); err != nil {
		return nil, fmt.Errorf("comparison: %w", err)
	}
	return c, nil
}

// NewError is the comparison of a run that ended with an error before it compared anything: what a folder holds in
// place of the comparison of an earlier run. The text may hold anything.
func NewError(version string, v Verdict, text string) *Comparison {
	c := &Comparison{Schema: SchemaID, Tool: report.Tool{Name: "explain", Version: version}, Verdict: v, Cause: text,
		Depth: DepthNone, Reasons: []Reason{{Code: NotJudged, Text: text}},
		Answer: Answer{Direction: NotComparable, Notes: []string{text}}}
	c.fillPolicy()
	c.Fill()
	return c
}

// Fill replaces nil slices and maps: "never null" holds for what was read as for what is written.
func (c *Comparison) Fill() {
	OrEmpty(&c.Reasons)
	OrEmpty(&c.Warnings)
	c.Answer.fill()
	if c.Step != nil {
		c.Step.fill()
	}
	if c.Ranks != nil {
		c.Ranks.fill()
	}
	OrEmpty(&c.Distribution.Edges)
	OrEmpty(&c.Distribution.Base)
	OrEmpty(&c.Distribution.Head)
	OrEmpty(&c.Base.Names)
	OrEmpty(&c.Head.Names)
	OrEmpty(&c.Primary)
	for i := range c.Parts {
		if c.Parts[i].Labels == nil {
			c.Parts[i].Labels = report.Labels{}
		}
	}
	OrEmpty(&c.Unjudged)
	OrEmpty(&c.Attribution.Rows)
	OrEmpty(&c.Kernels)
	OrEmpty(&c.API)
	OrEmpty(&c.Structure)
	OrEmpty(&c.Mix)
	OrEmpty(&c.Gates)
	OrEmpty(&c.Waivers)
	OrEmpty(&c.Overrides)
	OrEmpty(&c.Policy.IgnoredKernels)
	OrEmpty(&c.Policy.Hard)
	OrEmpty(&c.Policy.Soft)
	OrEmpty(&c.Policy.Residue)
	OrEmpty(&c.Residue)
	for i := range c.Primary {
		r := &c.Primary[i]
		OrEmpty(&r.BaseValues)
		OrEmpty(&r.HeadValues)
		if r.Labels == nil {
			r.Labels = report.Labels{}
		}
	}
	for i := range c.Gates {
		if c.Gates[i].Labels == nil {
			c.Gates[i].Labels = report.Labels{}
		}
	}
}

// closeEnough bounds, in ns, how far parts may be from their sum: means of integers, rounded to 53 bits and added up.
const closeEnough = 0.5

// Validate reports the first thing that breaks the contract of a comparison: a null list, a number that is not finite,
// a word that is none of its kind, parts that do not sum.
func (c *Comparison) Validate() error {
	if c.Schema != SchemaID {
		return fmt.Errorf("comparison: schema is %q, expected %q", c.Schema, SchemaID)
	}
	if c.Reasons == nil || c.Base.Names == nil || c.Head.Names == nil || c.Primary == nil ||
		c.Attribution.Rows == nil || c.Kernels == nil || c.API == nil || c.Structure == nil || c.Mix == nil ||
		c.Unjudged == nil ||
		c.Gates == nil || c.Waivers == nil || c.Overrides == nil || c.Residue == nil ||
		c.Policy.IgnoredKernels == nil ||
		c.Policy.Hard == nil ||
		c.Policy.Soft == nil ||
		c.Policy.Residue == nil {
		return errors.New("comparison: a list is null")
	}
	if err := c.Study.validate(c); err != nil {
		return err
	}
	if !c.Verdict.valid() && c.Study == nil {
		return fmt.Errorf("comparison: verdict is %q", c.Verdict)
	}
	switch c.Depth {
	case DepthNone, DepthEvidence, DepthUnit, DepthKernel:
	default:
		return fmt.Errorf("comparison: depth is %q", c.Depth)
	}
	if !c.Comparable && len(c.Reasons) == 0 {
		return errors.New("comparison: not comparable, and no reason")
	}
	if err := c.Answer.validate(c.Attribution.TotalDelta); err != nil {
		return err
	}
	if err := c.Distribution.Validate(); err != nil {
		return err
	}
	if c.Step != nil {
		if err := c.Step.validate(); err != nil {
			return err
		}
	}
	if c.Ranks != nil {
		if err := c.Ranks.validate(); err != nil {
			return err
		}
	}
	for i := range c.Primary {
		if err := c.Primary[i].validate(); err != nil {
			return fmt.Errorf("comparison: primary row %s: %w", c.Primary[i].Metric, err)
		}
	}
	for i := range c.Parts {
		if p := &c.Parts[i]; !p.Class.valid() || !Finite(p.Base, p.Head, p.Delta, p.Share, p.P) ||
			p.Interval != nil && !Finite(p.Interval.Low, p.Interval.High) || p.Hits != nil && !Finite(p.Hits.Times) {
			return fmt.Errorf("comparison: part %d is not valid", i)
		}
	}
	for i := range c.Kernels {
		k := &c.Kernels[i]
		if !k.Class.valid() || k.BaseName == nil && k.HeadName == nil || k.BaseName == nil && k.BaseShort != nil ||
			k.HeadName == nil && k.HeadShort != nil ||
			!Finite(k.Delta, k.CountEffect, k.PerCallEffect) ||
			!known(k.Base, k.Head, k.Ratio, k.BaseCount, k.HeadCount, k.Share, k.P, k.PAdjusted) ||
			!k.Test.valid() {
			return fmt.Errorf("comparison: kernel row %d is not valid", i)
		}
		if math.Abs(k.CountEffect+k.PerCallEffect-k.Delta) > closeEnough {
			return fmt.Errorf("comparison: kernel row %d: its effects do not sum to its change", i)
		}
	}
	for i := range c.API {
		a := &c.API[i]
		if !a.Class.valid() ||
			!known(a.BaseCount, a.HeadCount, a.BaseTime, a.HeadTime, a.BaseMean, a.HeadMean, a.Ratio) {
			return fmt.Errorf("comparison: API row %d is not valid", i)
		}
	}
	for i := range c.Structure {
		if s := &c.Structure[i]; !s.Class.valid() || s.ID == "" || !known(s.Base, s.Head) {
			return fmt.Errorf("comparison: structural row %d is not valid", i)
		}
	}
	for i := range c.Mix {
		if m := &c.Mix[i]; !known(m.BaseTime, m.HeadTime, m.Ratio, m.BaseShare, m.HeadShare) {
			return fmt.Errorf("comparison: row %d of the mix is not valid", i)
		}
	}
	for i := range c.Gates {
		if g := &c.Gates[i]; !g.Verdict.valid() || !g.CountsAs.valid() || !g.Class.valid() || g.Labels == nil ||
			!known(g.Base, g.Head, g.Delta, g.Ratio) ||
			g.Level != LevelError && g.Level != LevelWarn ||
			g.Waiver != nil && !waiverStatus(g.Waiver.Status) {
			return fmt.Errorf("comparison: gate %s is not valid", g.Rule)
		}
	}
	for i := range c.Waivers {
		if w := &c.Waivers[i]; !waiverStatus(w.Status) || w.Gates < 0 {
			return fmt.Errorf("comparison: waiver of %s is not valid", w.Rule)
		}
	}
	for i := range c.Overrides {
		if o := &c.Overrides[i]; !o.From.valid() || !o.To.valid() {
			return fmt.Errorf("comparison: override by %s is not valid", o.Label)
		}
	}
	for i := range c.Unjudged {
		if u := &c.Unjudged[i]; !Finite(u.Base, u.Head, u.Delta) || !known(u.Ratio) {
			return fmt.Errorf("comparison: %s is not finite", u.ID)
		}
	}
	if p := &c.Policy; !Finite(p.Alpha, p.FDR) || !p.OnInconclusive.valid() || !p.OnNotComparable.valid() ||
		!p.OnMissing.valid() ||
		!p.OnMissingBaseline.valid() {
		return errors.New("comparison: its policy is not valid")
	}
	return c.Attribution.validate()
}

func waiverStatus(s string) bool {
	switch s {
	case WaiverApplied, WaiverUnused, WaiverExpired, WaiverExceeded, WaiverNotJudged:
		return true
	}
	return false
}

func (r *Row) validate() error {
	switch {
	case !r.Class.valid():
		return fmt.Errorf("class is %q", r.Class)
	case r.Labels == nil || r.BaseValues == nil || r.HeadValues == nil:
		return errors.New("a list or map is null")
	case !known(r.Base, r.Head, r.Delta, r.Ratio, r.NoiseFloor, r.P, r.PAdjusted, r.EffectSize) ||
		!Finite(r.BaseValues...) || !Finite(r.HeadValues...):
		return errors.New("is not finite")
	case r.Interval != nil && !Finite(r.Interval.Low, r.Interval.High, r.Interval.Level):
		return errors.New("interval is not finite")
	case !r.Test.valid():
		return errors.New("test is not finite")
	}
	return nil
}

func (t *Test) valid() bool {
	return t == nil || Finite(t.Effect, t.SE, t.DF, t.Tau, t.S2, t.Moderated)
}

// validate checks that the rows of each kind sum to what they split.
func (a *Attribution) validate() error {
	if !Finite(a.Base, a.Head, a.TotalDelta, a.Residual) {
		return errors.New("comparison: attribution is not finite")
	}
	if len(a.Rows) == 0 {
		return nil
	}
	var classes, fine, causes, host float64
	split := false
	for i := range a.Rows {
		r := &a.Rows[i]
		if !Finite(r.Base, r.Head, r.Delta) || !known(r.CountEffect, r.PerCallEffect) {
			return fmt.Errorf("comparison: attribution to %s is not finite", r.ID)
		}
		switch {
		case r.Kind == KindClass:
			classes += r.Delta
			if r.ID == ClassCopy {
				fine += r.Delta
			}
		case r.Kind == KindKernel || r.Kind == KindOthers || r.Kind == KindCause:
			fine += r.Delta
			if r.Kind == KindCause && r.ID == "host" {
				causes = r.Delta
			}
		case r.Kind == KindHost:
			host += r.Delta
			split = true
		case r.Kind != KindCategory && r.Kind != KindCall:
			return fmt.Errorf("comparison: attribution row %s has kind %q", r.ID, r.Kind)
		}
		if r.CountEffect != nil && r.PerCallEffect != nil &&
			math.Abs(Value(r.CountEffect)+Value(r.PerCallEffect)-r.Delta) > closeEnough {
			return fmt.Errorf("comparison: attribution to %s: its effects do not sum to its change", r.ID)
		}
	}
	if math.Abs(classes-a.TotalDelta) > closeEnough || math.Abs(fine+a.Residual-a.TotalDelta) > closeEnough {
		return fmt.Errorf("comparison: attribution does not close: classes %g, rows %g and residual %g, total %g",
			classes, fine, a.Residual, a.TotalDelta)
	}
	if split && math.Abs(causes-host) > 2*closeEnough {
		return fmt.Errorf("comparison: attribution does not close: idle cause host %g, its causes %g", causes, host)
	}
	return nil
}

func (v Verdict) valid() bool {
	switch v {
	case Pass, Warn, Inconclusive, Fail, Error:
		return true
	}
	return false
}

func (c Class) valid() bool {
	switch c {
	case Improved, Regressed, Same, Added, Removed, Unsettled:
		return true
	}
	return false
}

func known(values ...*float64) bool {
	for _, v := range values {
		if v != nil && !Finite(*v) {
			return false
		}
	}
	return true
}

// OrEmpty turns a null list into an empty one.
func OrEmpty[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}

func Finite(values ...float64) bool {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}
