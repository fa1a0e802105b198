package comparison

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
)

// maxBytes bounds what Read accepts. A comparison has a few hundred rows.
const maxBytes = 16 << 20

// Write validates the comparison and writes it as JSON, one line per row of the long lists, so that two comparisons can
// be compared line by line. The same comparison always gives the same bytes.
func Write(w io.Writer, c *Comparison) error {
	if err := c.Validate(); err != nil {
		return err
	}
	return report.WriteLines(w, c)
}

// Read parses a comparison and validates it, see [report.ReadVersioned]. The file may come from anybody, and what is
// read may be shown to everybody: beside what [Comparison.Validate] asks, lists are bounded, counts are not negative,
// and the verdict is no better than that of the gates it stands on. Its author vouches for the numbers.
func Read(r io.Reader) (*Comparison, error) {
	c, err := report.ReadVersioned[Comparison](r, "comparison", SchemaID, maxBytes)
	if err != nil {
		return nil, err
	}
	c.Fill()
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
	c.Policy = PolicyInfo{Unit: "auto", Alpha: 0.05, FDR: 0.05, MinCaptures: 1, OnInconclusive: Warn,
		OnNotComparable: Inconclusive, OnMissing: Inconclusive, OnMissingBaseline: Warn}
	c.Fill()
	return c
}

// Fill replaces nil slices and maps: "never null" holds for what was read as for what is written.
func (c *Comparison) Fill() {
	report.Complete(c)
	c.Answer.Direction = cmp.Or(c.Answer.Direction, NoDirection)
}

// closeEnough bounds, in ns, how far parts may be from their sum: means of integers, rounded to 53 bits and added up.
const closeEnough = 0.5

// Validate reports the first thing that breaks the contract of a comparison: a null list, a number that is not finite,
// a word that is not of its kind, parts that do not sum.
func (c *Comparison) Validate() error {
	if c.Schema != SchemaID { // a file may name several, of which the first was looked at
		return fmt.Errorf("comparison: schema is %q, expected %q", c.Schema, SchemaID)
	}
	if err := report.Sound(c); err != nil {
		return fmt.Errorf("comparison: %w", err)
	}
	if !c.Comparable && len(c.Reasons) == 0 {
		return errors.New("comparison: not comparable, and no reason")
	}
	if err := cmp.Or(c.Study.validate(c), c.Answer.validate(c.Attribution.TotalDelta), c.Distribution.Validate(),
		c.Step.validate(), c.Ranks.validate()); err != nil {
		return err
	}
	for i := range c.Kernels {
		k := &c.Kernels[i]
		if k.BaseName == nil && k.HeadName == nil || k.BaseName == nil && k.BaseShort != nil ||
			k.HeadName == nil && k.HeadShort != nil || math.Abs(k.CountEffect+k.PerCallEffect-k.Delta) > closeEnough {
			return fmt.Errorf("comparison: kernel row %d is not valid", i)
		}
	}
	for i := range c.Structure {
		if c.Structure[i].ID == "" {
			return fmt.Errorf("comparison: structural row %d is not valid", i)
		}
	}
	for i := range c.Gates {
		if g := &c.Gates[i]; g.Verdict == None || g.CountsAs == None || g.Level != LevelError && g.Level != LevelWarn ||
			g.Waiver != nil && !waiverStatus(g.Waiver.Status) {
			return fmt.Errorf("comparison: gate %s is not valid", g.Rule)
		}
	}
	for i := range c.Waivers {
		if w := &c.Waivers[i]; !waiverStatus(w.Status) || w.Gates < 0 {
			return fmt.Errorf("comparison: waiver of %s is not valid", w.Rule)
		}
	}
	return c.Attribution.validate()
}

func waiverStatus(s string) bool {
	return slices.Contains([]string{WaiverApplied, WaiverUnused, WaiverExpired, WaiverExceeded, WaiverNotJudged}, s)
}

// validate checks that the rows of each kind sum to what they split.
func (a *Attribution) validate() error {
	if len(a.Rows) == 0 {
		return nil
	}
	var classes, fine, causes, host float64
	split := false
	for i := range a.Rows {
		r := &a.Rows[i]
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

// Valid reports whether it is a verdict, of a study too.
func (v Verdict) Valid() bool {
	return slices.Contains([]Verdict{Pass, Warn, Inconclusive, Fail, Error, None}, v)
}

func (c Class) Valid() bool {
	return slices.Contains([]Class{Improved, Regressed, Same, Added, Removed, Unsettled}, c)
}

func (d Depth) Valid() bool {
	return slices.Contains([]Depth{DepthNone, DepthEvidence, DepthUnit, DepthKernel}, d)
}
