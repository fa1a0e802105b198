package comparison

import "fmt"

// Bounds of the lists of a comparison that somebody else wrote. explain writes a few hundred rows.
const (
	maxFewRows  = 1000
	maxManyRows = 50_000
	maxRowSize  = 32 // labels of a row
)

// plausible reports what no comparison of explain holds.
func (c *Comparison) plausible() error {
	few := max(len(c.Reasons), len(c.Warnings), len(c.Base.Names), len(c.Head.Names), len(c.Primary), len(c.Unjudged),
		len(c.Waivers), len(c.Overrides), len(c.Residue), len(c.Policy.IgnoredKernels))
	many := max(len(c.Attribution.Rows), len(c.Kernels), len(c.API), len(c.Structure), len(c.Mix), len(c.Gates))
	if few > maxFewRows {
		return fmt.Errorf("a list of %d rows, at most %d of its kind are read", few, maxFewRows)
	}
	if many > maxManyRows {
		return fmt.Errorf("a list of %d rows, at most %d are read", many, maxManyRows)
	}
	for i := range c.Primary {
		r := &c.Primary[i]
		if len(r.Labels) > maxRowSize || max(len(r.BaseValues), len(r.HeadValues)) > maxFewRows || min(r.NBase, r.NHead) < 0 {
			return fmt.Errorf("primary row %d is not one that explain writes", i)
		}
	}
	n := &c.Counts
	if v := min(n.GatesChecked, n.MetricsCompared, n.KernelsCompared, n.KernelsPaired, n.UnitsBase, n.UnitsHead,
		c.Unit.BaseN, c.Unit.HeadN, int64(c.Base.Captures), int64(c.Head.Captures), c.Policy.Rules, c.Policy.Budgets,
		c.Policy.MinCaptures); v < 0 {
		return fmt.Errorf("a count is %d", v)
	}
	for i := range c.Gates {
		g := &c.Gates[i]
		if len(g.Labels) > maxRowSize {
			return fmt.Errorf("gate %d has %d labels", i, len(g.Labels))
		}
		if g.Verdict != Inconclusive && g.CountsAs != g.Verdict && !(g.Level == LevelWarn && g.CountsAs == Warn) {
			return fmt.Errorf("gate %d is %s and counts as %s", i, g.Verdict, g.CountsAs)
		}
		if len(c.Overrides) == 0 && Rank(c.Verdict) < Rank(g.CountsAs) {
			return fmt.Errorf("the verdict is %s, and gate %d counts as %s", c.Verdict, i, g.CountsAs)
		}
	}
	for i := range c.Overrides {
		if o := &c.Overrides[i]; o.From != Fail || o.To != Warn || c.Verdict != Warn {
			return fmt.Errorf("a label turns %s into %s, and the verdict is %s: it only ever turns fail into warn",
				o.From, o.To, c.Verdict)
		}
	}
	if c.Verdict == Pass && n.GatesChecked == 0 {
		return fmt.Errorf("the verdict is %s, and no gate was checked", c.Verdict)
	}
	if n.GatesChecked > int64(len(c.Gates)) {
		return fmt.Errorf("%d gates checked of %d", n.GatesChecked, len(c.Gates))
	}
	return nil
}
