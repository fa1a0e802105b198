package comparison

import (
	"cmp"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Headline is what the verdict stands on: of the rows that the worst gates judged the one that changed most, or the
// first such gate where they judged other numbers; if all passed, the row that would lead if the sides changed places,
// else the first that was judged. A row that no rule judged never leads, unless there is no rule at all.
func (c *Comparison) Headline() (*Row, *Gate) {
	for _, v := range []Verdict{Fail, Inconclusive} {
		var first *Gate
		var worst *Row
		for i := range c.Gates {
			g := &c.Gates[i]
			if g.Verdict != v || g.Level != LevelError {
				continue
			}
			row := c.rowOf(g)
			if row != nil && Value(row.Delta) != 0 && (worst == nil || moreOf(row, worst) > 0) {
				worst = row
			}
			first = cmp.Or(first, g)
		}
		switch {
		case worst != nil:
			return worst, nil
		case first != nil:
			return nil, first
		}
	}
	if row := c.wayBack(); row != nil {
		return row, nil
	}
	for i := range c.Primary {
		r := &c.Primary[i]
		judged := slices.ContainsFunc(c.Gates, func(g Gate) bool { return g.Of(r) })
		if (judged || len(c.Gates) == 0) && r.Base != nil && r.Head != nil {
			return r, nil
		}
	}
	return nil, nil
}

// wayBack is the row of time that leads whichever side is the base: of those that changed by more than their rule
// allows, either way, the one that changed most, those that did so for certain first by what the gate was decided on,
// which need not be the row alone: the other kinds of unit, or the parts; nil if none did. Parts that are certain
// where the row is not may hold a rule that the row would keep. What changed for certain, and by more than its rule for
// all that is known, is not certain in this sense: it would not fail.
func (c *Comparison) wayBack() (best *Row) {
	certain := false
	for i := range c.Gates {
		g := &c.Gates[i]
		row := c.rowOf(g)
		if row == nil || g.Level != LevelError || g.Limit == nil || row.Unit != report.Nanoseconds {
			continue
		}
		sure := g.Class == Improved || g.Class == Regressed
		sure = sure && (g.ByParts || Value(g.P) <= c.Policy.Alpha)
		if !g.ByParts && size(row) <= math.Abs(math.Log1p(Value(g.Limit))) {
			continue
		}
		if best == nil || sure && !certain || sure == certain && moreOf(row, best) > 0 {
			best, certain = row, sure
		}
	}
	return best
}

// rowOf is the row that a gate judged, if both of its values are known.
func (c *Comparison) rowOf(g *Gate) *Row {
	return lists.Find(c.Primary, func(r *Row) bool {
		return g.Of(r) && r.Base != nil && r.Head != nil && r.Delta != nil
	})
}

// moreOf orders rows by what they say of the time, and then by the size of the change.
func moreOf(a, b *Row) int {
	time := func(r *Row) int {
		if r.Unit == report.Nanoseconds {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(time(a), time(b)), cmp.Compare(size(a), size(b)))
}

// size of a change: of its logarithm where it has one, as far as sums of floats are exact.
func size(r *Row) float64 {
	if r.Ratio == nil || Value(r.Ratio) <= 0 {
		return 0
	}
	return math.Round(math.Abs(math.Log(Value(r.Ratio)))*1e9) / 1e9
}

// Of reports whether a gate judged a row.
func (g *Gate) Of(r *Row) bool {
	return (g.Metric == r.Metric || g.Metric+".p50" == r.Metric) && g.Labels.String() == r.Labels.String()
}

// Unreplicated reports whether a side has fewer than two captures, so that noise between captures is unknown.
func (c *Comparison) Unreplicated() bool { return c.Base.Captures < 2 || c.Head.Captures < 2 }
