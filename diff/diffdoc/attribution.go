package diffdoc

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
)

// attributionTable splits the change twice: by class and, indented, each class into its parts: idle time by cause,
// compute by category of kernels. The shares of each level sum to 100 %.
func attributionTable(c *comparison.Comparison) doc.Table {
	a := &c.Attribution
	if len(a.Rows) == 0 || a.TotalDelta == 0 {
		return doc.Table{}
	}
	rows := attributionRows(a)
	values, deltas := []float64{a.Base, a.Head}, make([]float64, len(rows))
	for i, r := range rows {
		values = append(values, r.Base, r.Head)
		deltas[i] = r.Delta
	}
	scale, change := unit.Common(report.Nanoseconds, values...), unit.Common(report.Nanoseconds, append(deltas, a.TotalDelta)...)
	t := doc.Table{ID: "attribution", Columns: doc.Cols("Part of one unit", ">"+scale.Header("Base"),
		">"+scale.Header("Head"), ">"+change.Header("Change"), ">Share of change")}
	t.Caption = doc.Spans("Where the change of " + delta(a.TotalDelta) + " comes from (mean " + a.Metric + ")")
	t.Columns[3].Bars = deltaBars(deltas)
	for _, r := range rows {
		name := "└ " + words(r.ID)
		switch {
		case r.Kind == comparison.KindClass:
			name = words(r.ID)
		case r.Kind == comparison.KindHost && r.ID == "unknown":
			name = "└─ host, not recorded"
		case r.Kind == comparison.KindHost: // a part of a part; markdown tables would drop leading spaces
			name = "└─ " + words(r.ID)
		}
		t.Row(name, scale.Format(r.Base), scale.Format(r.Head), change.Delta(r.Delta), unit.Percent(r.Delta/a.TotalDelta))
	}
	t.Last("all classes", scale.Format(a.Base), scale.Format(a.Head), change.Delta(a.TotalDelta), "100 %")
	return t
}

// words writes an id for people.
func words(id string) string { return strings.ReplaceAll(id, "_", " ") }

// largestChanges returns at most most items with the largest changes, largest first.
func largestChanges[T any](list []T, most int, change func(T) float64) []T {
	list = slices.Clone(list)
	lists.Sort(list, func(a, b T) int { return cmp.Compare(math.Abs(change(b)), math.Abs(change(a))) })
	return list[:min(len(list), most)]
}

// deltaBars returns how far the bar behind each change reaches, -1 to 1: the largest is 1 or -1; nil if all are 0.
func deltaBars(deltas []float64) []float64 {
	most := lists.Most(deltas, math.Abs)
	if most == 0 {
		return nil
	}
	return lists.Map(deltas, func(d float64) float64 { return d / most })
}

// categoryMatters is the smallest share of the change, 0 to 1, for a category of kernels to have a row of its own.
const categoryMatters = 0.05

// attributionRows returns the classes, each followed by its parts.
func attributionRows(a *comparison.Attribution) (rows []comparison.AttributionRow) {
	of := func(kind string) []comparison.AttributionRow {
		return lists.Filter(a.Rows, func(r comparison.AttributionRow) bool { return r.Kind == kind && (r.Base != 0 || r.Head != 0) })
	}
	for _, class := range of(comparison.KindClass) {
		rows = append(rows, class)
		switch class.ID {
		case comparison.ClassIdle:
			for _, cause := range of(comparison.KindCause) {
				if rows = append(rows, cause); cause.ID == "host" {
					rows = append(rows, hostCauses(a)...)
				}
			}
		case comparison.ClassCompute:
			n, rest := len(rows), comparison.AttributionRow{ID: "other kernels", Base: class.Base, Head: class.Head, Delta: class.Delta}
			for _, r := range of(comparison.KindCategory) {
				if r.ID != "comm" && math.Abs(r.Delta) >= categoryMatters*math.Abs(a.TotalDelta) {
					rows = append(rows, r)
					rest.Base, rest.Head, rest.Delta = rest.Base-r.Base, rest.Head-r.Head, rest.Delta-r.Delta
				}
			}
			if len(rows) > n && (math.Abs(rest.Base) >= 0.5 || math.Abs(rest.Head) >= 0.5) { // ns: less is rounding
				rows = append(rows, rest)
			}
		}
	}
	return rows
}

// hostCauses lists what the launching thread did; nil if the captures do not show it.
func hostCauses(a *comparison.Attribution) []comparison.AttributionRow {
	rows := lists.Filter(a.Rows, func(r comparison.AttributionRow) bool { return r.Kind == comparison.KindHost })
	if !slices.ContainsFunc(rows, func(r comparison.AttributionRow) bool { return r.ID != "unknown" }) {
		return nil
	}
	return rows
}

// display names a kernel, with what replaced it, as tables do. name is its name on either side.
func display(c *comparison.Comparison, name string) doc.Cell {
	of := lists.Find(c.Kernels, func(k *comparison.Kernel) bool {
		base, head := comparison.Value(k.BaseName), comparison.Value(k.HeadName)
		return name == base && head == "" || name == head && (base == "" || base == head)
	})
	of = cmp.Or(of, lists.Find(c.Kernels, func(k *comparison.Kernel) bool {
		return name == comparison.Value(k.BaseName) || name == comparison.Value(k.HeadName)
	}))
	if of == nil {
		return doc.Cell{doc.Name(name)}
	}
	return briefName(c, of)
}
