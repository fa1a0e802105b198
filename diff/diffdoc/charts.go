package diffdoc

import (
	"math"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
)

// forest draws the rows that a rule judged: each change with its interval, the noise floor and the limit of the rule,
// so that the decision is visible.
func forest(c *comparison.Comparison) doc.Chart {
	chart := doc.Chart{ID: "judged", Title: "Change of each judged number, and its limit", Kind: "forest",
		Unit: report.Ratio, XTitle: "Metric", Series: []doc.Series{{Name: "change", Style: "point"}, {Name: "from", Style: "low"},
			{Name: "to", Style: "high"}, {Name: "noise floor", Style: "noise"}, {Name: "limit", Style: "limit"}}}
	kinds := severalKinds(c)
	for _, r := range c.Primary {
		gate := lists.Find(c.Gates, func(g *comparison.Gate) bool { return g.Of(&r) })
		if gate == nil || r.Ratio == nil || !c.Comparable {
			continue
		}
		label := r.Metric
		if kinds && r.Kind != "" {
			label += " " + r.Kind
		}
		change, low, high, noise := comparison.Value(r.Ratio)-1, math.NaN(), math.NaN(), math.NaN()
		switch x := r.Interval; {
		case gate.Tested != nil:
			change, low, high = gate.Tested.Change, gate.Tested.Low, gate.Tested.High
		case x != nil:
			low, high = x.Low-1, x.High-1
		}
		if r.NoiseFloor != nil && gate.Tested != nil { // exactly repeating values have no noise
			noise = comparison.Value(r.NoiseFloor)
		}
		for k, v := range []float64{change, low, high, noise, report.ValueOr(gate.Limit, math.NaN())} {
			chart.Series[k].Add(label, v)
		}
		chart.Series[0].Tones = append(chart.Series[0].Tones, classTones[r.Class])
	}
	return chart
}

// causeBlocks shows where the change comes from.
func causeBlocks(c *comparison.Comparison) []doc.Block {
	t := attributionTable(c)
	t.Caption = nil
	if len(t.Rows) == 0 {
		return nil
	}
	text := "Mean " + c.Attribution.Metric + ", which splits into parts exactly: classes sum to the change, idle causes to idle, " +
		"categories of kernels to compute."
	if !moved(c) {
		text += " The change is not more than noise: there is nothing to explain."
	}
	return []doc.Block{t, doc.P(doc.Text(text).With(doc.Muted))}
}

// hostTime says what the time of host calls means for a step.
const hostTime = "Time in calls is the host's; it makes the step longer only if the GPU waits for it: see idle time."

// distribution draws the times of single units: a dot for each, in a row for each capture; nothing if those of a side
// are not known.
func distribution(c *comparison.Comparison) doc.Chart {
	x := &c.Distribution
	dots := doc.Chart{ID: "distribution", Title: "Times of single units, a row for each capture", Kind: "dots",
		Unit: report.Nanoseconds}
	sides := lists.Groups(x.Captures, func(u comparison.CaptureUnits) string { return u.Side })
	for _, side := range sides {
		for i, u := range side {
			s := doc.Series{Name: u.Side, Style: u.Side}
			if len(side) > 1 {
				s.Name += " " + strconv.Itoa(i+1) + ": " + u.Name
			}
			for k, t := range u.Times {
				s.Add(strconv.Itoa(k+1), t)
			}
			dots.Series = append(dots.Series, s)
		}
	}
	if len(sides) < 2 {
		return doc.Chart{}
	}
	return dots
}

// obstacles lists side by side what prevents a comparison and must become equal, and what else differs.
func obstacles(c *comparison.Comparison) doc.Table {
	t := doc.Table{ID: "obstacles", Columns: doc.Cols("What differs", "Base", "Head", "In the way")}
	if c.Comparable || c.FirstRun() {
		return t
	}
	for _, r := range c.Reasons {
		yes := doc.Spans(doc.Text("✗ yes: ").With(doc.Bad), doc.Code(string(r.Code)))
		if r.Field == "" {
			t.Row(r.Text, nil, nil, yes)
			continue
		}
		t.Row(r.Field, residueValue(r.Base), residueValue(r.Head), yes)
	}
	for _, r := range c.Residue {
		if slices.ContainsFunc(c.Reasons, func(why comparison.Reason) bool {
			return why.Field != "" && why.Base == r.Base && why.Head == r.Head ||
				r.Field == "unit" && why.Code == comparison.NoUnit
		}) {
			continue // is listed above
		}
		t.Row(words(r.Field), residueValue(r.Base), residueValue(r.Head), "✓ no")
	}
	return t
}
