package diffdoc

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
)

// forest draws the rows that a rule judged: each change with its interval, the noise floor and the limit of the rule,
// so that the decision is visible.
func forest(c *comparison.Comparison) (doc.Chart, bool) {
	series := map[string]*doc.Series{}
	var list []doc.Series
	for _, e := range [][2]string{{"change", "point"}, {"from", "low"}, {"to", "high"}, {"noise floor", "noise"},
		{"limit", "limit"}} {
		list = append(list, doc.Series{Name: e[0], Style: e[1]})
	}
	for i := range list {
		series[list[i].Style] = &list[i]
	}
	kinds := severalKinds(c)
	for i := range c.Primary {
		r := &c.Primary[i]
		g := slices.IndexFunc(c.Gates, func(g comparison.Gate) bool { return g.Of(r) })
		if g < 0 || r.Ratio == nil || !c.Comparable {
			continue
		}
		label := r.Metric
		if kinds && r.Kind != "" {
			label += " " + r.Kind
		}
		add := func(style string, v float64) {
			s := series[style]
			s.Labels, s.Values = append(s.Labels, label), append(s.Values, v)
		}
		gate := &c.Gates[g]
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
		add("point", change)
		series["point"].Tones = append(series["point"].Tones, classTone(r.Class))
		add("low", low)
		add("high", high)
		add("noise", noise)
		add("limit", limit)
	}
	return doc.Chart{ID: "judged", Title: "Change of each judged number, and its limit", Kind: "forest",
		Unit: report.Ratio, XTitle: "Metric", Series: list}, len(list[0].Values) > 0
}

// causeBlocks shows the attribution as drawings and as a table.
func causeBlocks(c *comparison.Comparison) []doc.Block {
	var blocks []doc.Block
	r := timeRow(c)
	if r != nil && r.Class == comparison.Same {
		text := "The mean unit changed by " + unit.Delta(c.Attribution.TotalDelta, report.Nanoseconds) + " of " +
			unit.Format(c.Attribution.Base, report.Nanoseconds)
		if r.NoiseFloor != nil {
			text += ", which is within the noise floor of " + unit.Percent(comparison.Value(r.NoiseFloor))
		}
		blocks = append(blocks, doc.P(text+": there is nothing to explain. The parts below sum to it all the same."))
	} else if chart, ok := changes(c, r); ok {
		blocks = append(blocks, chart)
	}
	if chart, ok := classes(c); ok {
		blocks = append(blocks, chart)
	}
	if t, ok := attributionTable(c, len(c.Attribution.Rows), true); ok {
		t.Caption = nil
		blocks = append(blocks, t, doc.P(doc.Text(attributionText(c)).With(doc.Muted)))
	}
	return blocks
}

// timeRow returns the row of the unit's mean time that the attribution explains; nil if it was not judged.
func timeRow(c *comparison.Comparison) *comparison.Row {
	for _, metric := range []string{"unit.time.mean", "unit.time.p50"} {
		for i := range c.Primary {
			r, kind := &c.Primary[i], c.Attribution.Kind
			if r.Metric == metric && (r.Kind == kind || r.Kind == "" || kind == "") {
				return r
			}
		}
	}
	return nil
}

// Limits of the drawn parts: their number, and the smallest share of all changes for a bar of its own.
const (
	drawnParts = 14
	leastPart  = 0.02
)

// changes draws the parts of the change of one unit, from zero: categories of kernels, exposed copies and causes of
// idle time, which sum to it. Small parts are summed up. The noise floor of the unit's time is shaded.
func changes(c *comparison.Comparison, r *comparison.Row) (doc.Chart, bool) {
	a := &c.Attribution
	var parts []comparison.AttributionRow
	moved := 0.0
	for _, r := range a.Rows {
		switch {
		case r.Kind == "category", r.Kind == "idle_cause", r.Kind == "class" && r.ID == "exposed_copy":
			parts = append(parts, r)
			moved += math.Abs(r.Delta)
		}
	}
	if len(parts) == 0 {
		return doc.Chart{}, false
	}
	slices.SortStableFunc(parts,
		func(x, y comparison.AttributionRow) int { return cmp.Compare(math.Abs(y.Delta), math.Abs(x.Delta)) })
	s := doc.Series{Name: "mean " + a.Metric}
	rest, small := a.TotalDelta, 0
	for i, r := range parts {
		if math.Abs(r.Delta) < leastPart*moved || i == drawnParts {
			small = len(parts) - i
			break
		}
		name := strings.ReplaceAll(r.ID, "_", " ")
		if r.Kind == "idle_cause" {
			name = "idle: " + name
		}
		s.Labels, s.Values = append(s.Labels, name), append(s.Values, r.Delta)
		rest -= r.Delta
	}
	if math.Abs(rest) >= 0.5 { // the rounding residual of means is not a part
		name := "rounding"
		if small > 0 {
			name = wording.Count(small, "small part")
		}
		s.Labels, s.Values = append(s.Labels, name), append(s.Values, rest)
	}
	chart := doc.Chart{ID: "changes", Title: "What the change of one unit is made of: " + delta(a.TotalDelta),
		Kind: "deltas", Unit: report.Nanoseconds, Series: []doc.Series{s}}
	if r != nil && r.NoiseFloor != nil {
		chart.Band = &doc.Band{Low: -a.Base * comparison.Value(r.NoiseFloor), High: a.Base * comparison.Value(r.NoiseFloor),
			Text: "the noise floor, " + unit.Percent(comparison.Value(r.NoiseFloor)) + " of the base to both sides"}
	}
	return chart, true
}

// classes draws both sides' units by class.
func classes(c *comparison.Comparison) (doc.Chart, bool) {
	base, head := doc.Series{Name: "base"}, doc.Series{Name: "head"}
	for _, r := range c.Attribution.Rows {
		if r.Kind != "class" {
			continue
		}
		name := strings.ReplaceAll(r.ID, "_", " ")
		base.Labels, base.Values = append(base.Labels, name), append(base.Values, r.Base)
		head.Labels, head.Values = append(head.Labels, name), append(head.Values, r.Head)
	}
	chart := doc.Chart{ID: "classes", Title: "One unit by class", Kind: "stacked", Unit: report.Nanoseconds,
		Series: []doc.Series{base, head}}
	return chart, len(base.Values) > 0
}

// drawnKernels bounds the kernels in the drawing.
const drawnKernels = 24

// kernelBlocks shows the changes of kernels: a drawing of the largest ones, and a table of all. Kernels without a
// detectable change share one line with their sum.
func kernelBlocks(c *comparison.Comparison) []doc.Block {
	var blocks []doc.Block
	var list []*comparison.Kernel
	same, sum := int64(0), 0.0
	for i := range c.Kernels {
		k := &c.Kernels[i]
		if k.Class == comparison.Same {
			same++
			sum += k.Delta
			continue
		}
		if k.Delta != 0 {
			list = append(list, k)
		}
	}
	slices.SortStableFunc(list,
		func(x, y *comparison.Kernel) int { return cmp.Compare(math.Abs(y.Delta), math.Abs(x.Delta)) })
	s, low, high := doc.Series{Name: "change"}, doc.Series{Name: "from", Style: "low"},
		doc.Series{Name: "to", Style: "high"}
	intervals := false
	for _, k := range list[:min(len(list), drawnKernels)] {
		from, to := math.NaN(), math.NaN()
		if x := k.Interval; x != nil && k.Base != nil {
			from, to, intervals = (x.Low-1)*comparison.Value(k.Base), (x.High-1)*comparison.Value(k.Base), true
		}
		low.Labels, low.Values = append(low.Labels, kernelLabel(k)), append(low.Values, from)
		high.Labels, high.Values = append(high.Labels, kernelLabel(k)), append(high.Values, to)
		s.Labels, s.Values = append(s.Labels, kernelLabel(k)), append(s.Values, k.Delta)
		tone := classTone(k.Class)
		switch k.Class {
		case comparison.Added:
			tone = doc.Bad
		case comparison.Removed:
			tone = doc.Good
		case comparison.Improved, comparison.Regressed, comparison.Same, comparison.Unsettled:
		}
		s.Tones = append(s.Tones, tone)
	}
	if len(s.Values) > 0 {
		chart := doc.Chart{ID: "kernel-deltas", Title: "Kernels that changed, or may have: time in one unit",
			Kind: "deltas", Unit: report.Nanoseconds, Series: []doc.Series{s}}
		if intervals {
			chart.Series = append(chart.Series, low, high)
		}
		blocks = append(blocks, chart)
	}
	if same > 0 {
		text := wording.Count(same, "kernel") + " unchanged: together " + unit.Delta(sum, report.Nanoseconds) + " per unit"
		if n := len(list) - drawnKernels; n > 0 {
			text += "; " + wording.Count(n, "more kernel") + " with less change in the table"
		}
		blocks = append(blocks, doc.P(doc.Text(text+".").With(doc.Muted)))
	}
	if t, ok := kernelTable(c, c.Kernels, len(c.Kernels), true); ok {
		t.Caption = nil
		blocks = append(blocks, t)
	}
	return blocks
}

// kernelLabel is a kernel's name, or "A → B" if one kernel replaced another.
func kernelLabel(k *comparison.Kernel) string {
	switch {
	case k.BaseShort == nil && k.HeadShort == nil:
		return ""
	case k.BaseShort == nil:
		return comparison.Value(k.HeadShort) + " (added)"
	case k.HeadShort == nil:
		return comparison.Value(k.BaseShort) + " (removed)"
	case comparison.Value(k.BaseShort) != comparison.Value(k.HeadShort):
		return comparison.Value(k.BaseShort) + " → " + comparison.Value(k.HeadShort)
	}
	return comparison.Value(k.BaseShort)
}

// apiBlocks shows the host calls, with the change of each one's time per unit.
func apiBlocks(c *comparison.Comparison) []doc.Block {
	t, ok := apiTable(c, false)
	if !ok {
		return nil
	}
	t.Caption = nil
	sum := 0.0
	for i := range c.API {
		sum += callCost(&c.API[i])
	}
	text := "All calls together: " + unit.Delta(sum, report.Nanoseconds) +
		" per unit. " + hostTime
	return []doc.Block{doc.P(doc.Text(text).With(doc.Muted)), t}
}

// hostTime says what the time of host calls means for a step.
const hostTime = "Time in calls is the host's, and counts only where the GPU waits for it: see idle time."

// callCost is the change of a unit's time in these calls, head minus base, in ns.
func callCost(a *comparison.API) float64 {
	return comparison.Value(a.HeadTime) - comparison.Value(a.BaseTime)
}

// distribution draws the times of single units: a dot for each, in a row for each capture; or, if captures are not
// recorded separately, a histogram of each side.
func distribution(c *comparison.Comparison) []doc.Block {
	x := &c.Distribution
	dots := doc.Chart{ID: "distribution", Title: "Times of single units, a row for each capture", Kind: "dots",
		Unit: report.Nanoseconds}
	count := map[string]int{}
	for i := range x.Captures {
		count[x.Captures[i].Side]++
	}
	nth := map[string]int{}
	for i := range x.Captures {
		u := &x.Captures[i]
		nth[u.Side]++
		s := doc.Series{Name: u.Side, Style: u.Side, Values: u.Times}
		if count[u.Side] > 1 {
			s.Name += " " + strconv.Itoa(nth[u.Side]) + ": " + u.Name
		}
		for k := range u.Times {
			s.Labels = append(s.Labels, strconv.Itoa(k+1))
		}
		dots.Series = append(dots.Series, s)
	}
	if count["base"] > 0 && count["head"] > 0 {
		return []doc.Block{dots}
	}
	if len(x.Edges) < 2 {
		return nil
	}
	series := func(name string, counts []int64) doc.Series {
		s := doc.Series{Name: name}
		for i, n := range counts {
			s.Labels = append(s.Labels, strconv.FormatFloat(x.Edges[i], 'f', -1, 64))
			s.Values = append(s.Values, float64(n))
		}
		return s
	}
	return []doc.Block{doc.Chart{ID: "distribution", Title: "Times of single units, as shares of each side",
		Kind: "histogram", Unit: report.Count, XUnit: report.Nanoseconds,
		Series: []doc.Series{series("base", x.Base), series("head", x.Head)}}}
}

// obstacles lists side by side what prevents a comparison and must become equal, and what else differs.
func obstacles(c *comparison.Comparison) (doc.Table, bool) {
	t := doc.Table{ID: "obstacles", Columns: doc.Cols("What differs", "Base", "Head", "In the way")}
	if c.Comparable || c.FirstRun() {
		return t, false
	}
	for _, r := range c.Reasons {
		base, head := doc.Cell{}, doc.Cell{}
		what := doc.Cell{doc.Text(r.Text)}
		if r.Field != "" {
			what, base, head = doc.Cell{doc.Text(r.Field)}, doc.Cell{residueValue(r.Base)}, doc.Cell{residueValue(r.Head)}
		}
		t.Row(what, base, head, doc.Spans(doc.Text("✗ yes: ").With(doc.Bad), doc.Code(string(r.Code))))
	}
	for _, r := range c.Residue {
		if slices.ContainsFunc(c.Reasons, func(why comparison.Reason) bool {
			return why.Field != "" && why.Base == r.Base && why.Head == r.Head ||
				r.Field == "unit" && why.Code == comparison.NoUnit
		}) {
			continue // is listed above
		}
		t.Row(strings.ReplaceAll(r.Field, "_", " "), residueValue(r.Base), residueValue(r.Head), "✓ no")
	}
	return t, len(t.Rows) > 0
}
