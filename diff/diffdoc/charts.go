package diffdoc

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
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
		change, low, high, noise, limit := comparison.Value(r.Ratio)-1, math.NaN(), math.NaN(), math.NaN(), math.NaN()
		switch x := r.Interval; {
		case gate.Tested != nil:
			change, low, high = gate.Tested.Change, gate.Tested.Low, gate.Tested.High
		case x != nil:
			low, high = x.Low-1, x.High-1
		}
		if r.NoiseFloor != nil && gate.Tested != nil { // exactly repeating values have no noise
			noise = comparison.Value(r.NoiseFloor)
		}
		if gate.Limit != nil {
			limit = comparison.Value(gate.Limit)
		}
		for k, v := range []float64{change, low, high, noise, limit} {
			chart.Series[k].Add(label, v)
		}
		chart.Series[0].Tones = append(chart.Series[0].Tones, classTones[r.Class])
	}
	return chart
}

// causeBlocks shows the attribution as drawings and as a table.
func causeBlocks(c *comparison.Comparison) []doc.Block {
	var blocks []doc.Block
	r := timeRow(c)
	if r != nil && r.Class == comparison.Same {
		text := "The mean unit changed by " + delta(c.Attribution.TotalDelta) + " of " +
			unit.Format(c.Attribution.Base, report.Nanoseconds)
		if r.NoiseFloor != nil {
			text += ", which is within the noise floor of " + unit.Percent(comparison.Value(r.NoiseFloor))
		}
		blocks = append(blocks, doc.P(text+": there is nothing to explain. The parts below sum to it all the same."))
	} else {
		blocks = append(blocks, changes(c, r))
	}
	blocks = append(blocks, classes(c))
	if t := attributionTable(c, len(c.Attribution.Rows), true); len(t.Rows) > 0 {
		t.Caption = nil
		blocks = append(blocks, t, doc.P(doc.Text(attributionText(c)).With(doc.Muted)))
	}
	return blocks
}

// timeRow returns the row of the unit's mean time that the attribution explains; nil if it was not judged.
func timeRow(c *comparison.Comparison) *comparison.Row {
	of := func(metric string) *comparison.Row {
		return lists.Find(c.Primary, func(r *comparison.Row) bool {
			return r.Metric == metric && (r.Kind == c.Attribution.Kind || r.Kind == "" || c.Attribution.Kind == "")
		})
	}
	return cmp.Or(of("unit.time.mean"), of("unit.time.p50"))
}

// Limits of the drawn parts: their number, and the smallest share of all changes for a bar of its own.
const (
	drawnParts = 14
	leastPart  = 0.02
)

// changes draws the parts of the change of one unit, from zero: categories of kernels, exposed copies and causes of
// idle time, which sum to it. Small parts are summed up. The noise floor of the unit's time is shaded.
func changes(c *comparison.Comparison, r *comparison.Row) doc.Chart {
	a := &c.Attribution
	parts := lists.Filter(a.Rows, func(r comparison.AttributionRow) bool {
		return r.Kind == "category" || r.Kind == "idle_cause" || r.Kind == "class" && r.ID == "exposed_copy"
	})
	if len(parts) == 0 {
		return doc.Chart{}
	}
	moved := lists.Sum(parts, func(r comparison.AttributionRow) float64 { return math.Abs(r.Delta) })
	s := doc.Series{Name: "mean " + a.Metric}
	rest, small := a.TotalDelta, 0
	for i, r := range largestChanges(parts, len(parts), func(r comparison.AttributionRow) float64 { return r.Delta }) {
		if math.Abs(r.Delta) < leastPart*moved || i == drawnParts {
			small = len(parts) - i
			break
		}
		name := words(r.ID)
		if r.Kind == "idle_cause" {
			name = "idle: " + name
		}
		s.Add(name, r.Delta)
		rest -= r.Delta
	}
	if math.Abs(rest) >= 0.5 { // the rounding residual of means is not a part
		name := "rounding"
		if small > 0 {
			name = wording.Count(small, "small part")
		}
		s.Add(name, rest)
	}
	chart := doc.Chart{ID: "changes", Title: "What the change of one unit is made of: " + delta(a.TotalDelta),
		Kind: "deltas", Unit: report.Nanoseconds, Series: []doc.Series{s}}
	if r != nil && r.NoiseFloor != nil {
		chart.Band = &doc.Band{Low: -a.Base * comparison.Value(r.NoiseFloor), High: a.Base * comparison.Value(r.NoiseFloor),
			Text: "the noise floor, " + unit.Percent(comparison.Value(r.NoiseFloor)) + " of the base to both sides"}
	}
	return chart
}

// classes draws both sides' units by class.
func classes(c *comparison.Comparison) doc.Chart {
	base, head := doc.Series{Name: "base"}, doc.Series{Name: "head"}
	for _, r := range c.Attribution.Rows {
		if r.Kind == "class" {
			base.Add(words(r.ID), r.Base)
			head.Add(words(r.ID), r.Head)
		}
	}
	return doc.Chart{ID: "classes", Title: "One unit by class", Kind: "stacked", Unit: report.Nanoseconds,
		Series: []doc.Series{base, head}}
}

// drawnKernels bounds the kernels in the drawing.
const drawnKernels = 24

// kernelBlocks shows the changes of kernels: a drawing of the largest ones, and a table of all. Kernels without a
// detectable change share one line with their sum.
func kernelBlocks(c *comparison.Comparison) []doc.Block {
	same := lists.Filter(c.Kernels, func(k comparison.Kernel) bool { return k.Class == comparison.Same })
	list := lists.Filter(c.Kernels, func(k comparison.Kernel) bool {
		return k.Class != comparison.Same && k.Delta != 0
	})
	change := func(k comparison.Kernel) float64 { return k.Delta }
	s, low, high := doc.Series{Name: "change"}, doc.Series{Name: "from", Style: "low"}, doc.Series{Name: "to", Style: "high"}
	intervals := false
	for _, k := range largestChanges(list, drawnKernels, change) {
		from, to := math.NaN(), math.NaN()
		if x := k.Interval; x != nil && k.Base != nil {
			from, to, intervals = (x.Low-1)*comparison.Value(k.Base), (x.High-1)*comparison.Value(k.Base), true
		}
		label := kernelLabel(&k)
		low.Add(label, from)
		high.Add(label, to)
		s.Add(label, k.Delta)
		tone := classTones[k.Class]
		if k.Class == comparison.Added {
			tone = doc.Bad
		} else if k.Class == comparison.Removed {
			tone = doc.Good
		}
		s.Tones = append(s.Tones, tone)
	}
	chart := doc.Chart{ID: "kernel-deltas", Title: "Kernels that changed, or may have: time in one unit",
		Kind: "deltas", Unit: report.Nanoseconds, Series: []doc.Series{s}}
	if intervals {
		chart.Series = append(chart.Series, low, high)
	}
	unchanged := doc.Paragraph{}
	if len(same) > 0 {
		text := wording.Count(len(same), "kernel") + " unchanged: together " + delta(lists.Sum(same, change)) +
			" per unit"
		if n := len(list) - drawnKernels; n > 0 {
			text += "; " + wording.Count(n, "more kernel") + " with less change in the table"
		}
		unchanged = doc.P(doc.Text(text + ".").With(doc.Muted))
	}
	t := kernelTable(c, c.Kernels, len(c.Kernels), true)
	t.Caption = nil
	return []doc.Block{chart, unchanged, t}
}

// kernelLabel is a kernel's name, or "A → B" if one kernel replaced another.
func kernelLabel(k *comparison.Kernel) string {
	switch base, head := comparison.Value(k.BaseShort), comparison.Value(k.HeadShort); {
	case k.BaseShort == nil && k.HeadShort != nil:
		return head + " (added)"
	case k.HeadShort == nil && k.BaseShort != nil:
		return base + " (removed)"
	default:
		return arrow(base, head)
	}
}

// apiBlocks shows the host calls, with the change of each one's time per unit.
func apiBlocks(c *comparison.Comparison) []doc.Block {
	t := apiTable(c, false)
	if len(t.Rows) == 0 {
		return nil
	}
	t.Caption = nil
	sum := lists.Sum(c.API, callCost)
	return []doc.Block{doc.P(doc.Text("All calls together: " + delta(sum) + " per unit. " + hostTime).With(doc.Muted)), t}
}

// hostTime says what the time of host calls means for a step.
const hostTime = "Time in calls is the host's; it makes the step longer only if the GPU waits for it: see idle time."

// callCost is the change of a unit's time in these calls, head minus base, in ns.
func callCost(a comparison.API) float64 {
	return comparison.Value(a.HeadTime) - comparison.Value(a.BaseTime)
}

// distribution draws the times of single units: a dot for each, in a row for each capture; or, if captures are not
// recorded separately, a histogram of each side.
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
	if len(sides) == 2 {
		return dots
	}
	if len(x.Edges) < 2 {
		return doc.Chart{}
	}
	series := func(name string, counts []int64) doc.Series {
		s := doc.Series{Name: name}
		for i, n := range counts {
			s.Add(strconv.FormatFloat(x.Edges[i], 'f', -1, 64), float64(n))
		}
		return s
	}
	return doc.Chart{ID: "distribution", Title: "Times of single units, as shares of each side",
		Kind: "histogram", Unit: report.Count, XUnit: report.Nanoseconds,
		Series: []doc.Series{series("base", x.Base), series("head", x.Head)}}
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
