package diffdoc

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
)

// primaryTable shows metrics of different units, so every cell has its own unit.
func primaryTable(c *comparison.Comparison, rows []comparison.Row) doc.Table {
	t := doc.Table{ID: "primary", Columns: doc.Cols("Per unit of work", ">Base", ">Head", ">Change", ">%",
		">+"+intervalTitle(rows), "Class")}
	t.Columns[0].Whole = true // cut names may be alike
	if c.Unit.Kind == "" || c.Unit.Kind == "none" || c.Depth == comparison.DepthEvidence {
		t.Columns[0].Title = "Metric"
	}
	// if all rows share labels, these name the kind of unit, which is named elsewhere
	shared := len(rows) > 1 && len(lists.Set(rows, func(r comparison.Row) string { return r.Labels.String() })) == 1
	kinds := severalKinds(c)
	for _, r := range rows {
		labels := r.Labels
		if shared {
			labels = nil
		}
		change := report.Of(r.Delta, func(d float64) string { return unit.Delta(d, r.Unit) }, comparison.NoValue)
		metric := r.Metric
		if c.Depth == comparison.DepthEvidence { // all rows are about a server
			metric = strings.TrimPrefix(metric, "serve.")
		}
		name := metricCell(metric, labels)
		if kinds && r.Kind != "" {
			name = kindCell(&r)
		}
		t.Columns[0].Whole = t.Columns[0].Whole && len(name) == 1
		t.Row(name, format(r.Base, r.Unit), format(r.Head, r.Unit), change, ratioText(r.Ratio),
			intervalText(r.Interval), rowClass(c, &r))
	}
	return t
}

// severalKinds reports whether the rows cover more than one kind of unit, so that each must name its own.
func severalKinds(c *comparison.Comparison) bool {
	kinds := lists.Set(c.Primary, func(r comparison.Row) string { return r.Kind })
	delete(kinds, "")
	return len(kinds) > 1
}

func kindCell(r *comparison.Row) doc.Cell {
	return doc.Cell{doc.Code(r.Metric), doc.Text(" "), doc.Name(r.Kind)}
}

// rowsToShow returns at most limit primary rows, in order. Rows that did not pass take precedence.
func rowsToShow(c *comparison.Comparison, limit int) []comparison.Row {
	if len(c.Primary) <= limit {
		return c.Primary
	}
	order := lists.Indexes[int](len(c.Primary))
	lists.Lead(order, func(i int) bool { return objected(c, &c.Primary[i]) })
	order = order[:limit]
	slices.Sort(order)
	return lists.Map(order, func(i int) comparison.Row { return c.Primary[i] })
}

// objected reports whether a rule that judged the row did not pass.
func objected(c *comparison.Comparison, r *comparison.Row) bool {
	return slices.ContainsFunc(c.Gates, func(g comparison.Gate) bool {
		return g.Of(r) && g.Verdict != comparison.Pass
	})
}

// intervalTitle includes the level of the intervals if they share one.
func intervalTitle(rows []comparison.Row) string {
	level := 0.0
	for i := range rows {
		switch x := rows[i].Interval; {
		case x == nil:
		case level != 0 && x.Level != level:
			return "Interval"
		default:
			level = x.Level
		}
	}
	if level == 0 {
		return "Interval"
	}
	return strconv.FormatFloat(math.Round(1000*level)/10, 'f', -1, 64) + " % interval" // at most three digits
}

// intervalText is empty for an interval that is narrower than its rounding.
func intervalText(i *comparison.Interval) string {
	if i == nil || unit.Change(i.Low-1) == unit.Change(i.High-1) {
		return ""
	}
	return unit.Change(i.Low-1) + " … " + unit.Change(i.High-1)
}

// metricCell shows a metric with its labels, whose values may come from a capture.
func metricCell(metric string, l report.Labels) doc.Cell {
	cell := doc.Cell{doc.Code(metric)}
	if len(l) > 0 {
		cell = append(cell, doc.Text(" "), doc.Name(l.String()))
	}
	return cell
}

// sameReason is the reason that all metrics share, if there are several metrics: a list would repeat it.
func sameReason(c *comparison.Comparison) string {
	whys := lists.Set(c.Primary, func(r comparison.Row) string { return r.Why })
	needs := slices.ContainsFunc(c.Primary, func(r comparison.Row) bool { return r.NeedCaptures != nil })
	if len(c.Primary) < 2 || len(whys) > 1 || needs {
		return ""
	}
	return c.Primary[0].Why
}

// decisions explains the class of each row.
func decisions(c *comparison.Comparison) (l doc.List) {
	if why := sameReason(c); why != "" {
		l.Add("Every metric: " + why)
		return l
	}
	kinds, what := severalKinds(c), "capture"
	if c.Depth == comparison.DepthEvidence {
		what = "run"
	}
	for _, r := range c.Primary {
		if r.Why == "" {
			continue
		}
		name := metricCell(r.Metric, nil)
		switch device := r.Labels["device"]; {
		case device != "":
			name = metricCell(r.Metric, report.Labels{"device": device})
		case kinds && r.Kind != "":
			name = kindCell(&r)
		}
		text := ": " + r.Why
		if r.NeedCaptures != nil {
			text += "; " + wording.Count(comparison.Value(r.NeedCaptures), what) + " a side would settle it"
		}
		l.Add(name, text)
	}
	return l
}

// apiTable shows the host side: the time of a unit's calls, calls × mean, sorted by the size of the change. If changed
// is set, it leaves out calls that did not change, and the mean time of one call.
func apiTable(c *comparison.Comparison, changed bool) doc.Table {
	calls := lists.Filter(c.API, func(a comparison.API) bool {
		return !changed || a.Class != comparison.Same ||
			format(a.BaseCount, report.Count) != format(a.HeadCount, report.Count)
	})
	calls = largestChanges(calls, len(calls), comparison.API.Cost)
	costs := lists.Map(calls, comparison.API.Cost)
	var values []float64
	var counts []*float64
	for _, a := range calls {
		values = append(values, comparison.Value(a.BaseTime), comparison.Value(a.HeadTime))
		counts = append(counts, a.BaseCount, a.HeadCount)
	}
	scale, change := unit.Common(report.Nanoseconds, values...), unit.Common(report.Nanoseconds, costs...)
	t := doc.Table{ID: "api", Caption: doc.Spans("Host calls of one unit. " + hostTime), Columns: doc.Cols("Call",
		">"+countsTitle("calls", counts), ">"+scale.Header("Base"), ">"+scale.Header("Head"),
		">"+change.Header("Change"), ">% per call", "Class")}
	if !changed {
		t.Columns = append(t.Columns, doc.Cols(">Mean of one call")...)
	}
	t.Columns[4].Bars = deltaBars(costs)
	for i, a := range calls {
		// the class is of the mean time of one call, else of all
		oneCall := report.Of(a.Ratio, func(r float64) float64 { return r - 1 }, costs[i])
		row := doc.Row(doc.Name(a.Name), arrow(format(a.BaseCount, report.Count), format(a.HeadCount, report.Count)),
			scale.Format(comparison.Value(a.BaseTime)), scale.Format(comparison.Value(a.HeadTime)),
			change.Delta(costs[i]), ratioText(a.Ratio), changeWord(c, a.Class, oneCall))
		if !changed {
			row = append(row, doc.Row(arrow(format(a.BaseMean, report.Nanoseconds), format(a.HeadMean, report.Nanoseconds)))...)
		}
		t.Rows = append(t.Rows, row)
	}
	if !changed && len(calls) > 0 {
		t.Last("all calls", nil, nil, nil, change.Delta(lists.Total(costs)))
	}
	return t
}

// countsTitle heads a column of counts in a unit: they are means if one of them is not whole.
func countsTitle(noun string, counts []*float64) string {
	if slices.ContainsFunc(counts, func(n *float64) bool { return n != nil && *n != math.Trunc(*n) }) {
		return "Mean " + noun
	}
	return strings.ToUpper(noun[:1]) + noun[1:]
}

// structureList names what changed in the structure of a step.
func structureList(c *comparison.Comparison) (l doc.List) {
	for _, s := range c.Structure {
		l.Add(changeWord(c, s.Class, comparison.Value(s.Head)-comparison.Value(s.Base)), ": "+s.Text)
	}
	return l
}

// residue names what differs and does not block the comparison, what causes a warning first.
func residue(c *comparison.Comparison, limit int) doc.Paragraph {
	list := slices.DeleteFunc(slices.Clone(c.Residue), func(r comparison.Residue) bool {
		return r.Field == comparison.StudyEngine // the line of the sides names both
	})
	lists.Lead(list, func(r comparison.Residue) bool { return r.Soft })
	end := "."
	if n := len(list) - limit; n > 0 {
		list, end = list[:limit], "; and "+unit.Int(n)+" more."
	}
	spans := doc.Joined("; ", list, func(r comparison.Residue) any {
		field := doc.Text(words(r.Field) + " ")
		if r.Soft {
			field = field.With(doc.Warn)
		}
		return doc.Spans(field, residueValue(r.Base), " → ", residueValue(r.Head))
	})
	if len(spans) == 0 {
		return doc.Paragraph{}
	}
	return doc.P("Also differs (no reason to refuse): ", spans, end)
}

func residueValue(s string) doc.Span {
	if s == "" {
		return doc.Text("unknown")
	}
	return doc.Name(s)
}

// mixTable counts the units of each kind: a change of the mix does not change the time of a unit.
func mixTable(c *comparison.Comparison) doc.Table {
	t := doc.Table{ID: "mix", Columns: doc.Cols("Phase", ">Batch", ">+Prompt tokens", ">Units, base", ">Units, head",
		">Mean, base", ">Mean, head", ">Change")}
	if len(c.Mix) < 2 {
		return t
	}
	id := func(v *int64) string { return report.Of(v, unit.Int[int64], comparison.NoValue) }
	for _, m := range c.Mix {
		t.Row(doc.Name(m.Phase), id(m.Batch), id(m.Tokens), unit.Int(m.BaseCount), unit.Int(m.HeadCount),
			format(m.BaseTime, report.Nanoseconds), format(m.HeadTime, report.Nanoseconds), ratioText(m.Ratio))
	}
	return t
}

// unjudgedTable lists what is shown with its change but never judged.
func unjudgedTable(c *comparison.Comparison) doc.Table {
	t := doc.Table{ID: "unjudged", Columns: doc.Cols("Shown, not judged", ">Base", ">Head", ">Change", ">%")}
	for _, u := range c.Unjudged {
		t.Row(u.Text, unit.Format(u.Base, u.Unit), unit.Format(u.Head, u.Unit), unit.Delta(u.Delta, u.Unit), ratioText(u.Ratio))
	}
	return t
}
