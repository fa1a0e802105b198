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

// attributionTable splits the change twice: by class and, indented, each class into its parts: idle time by cause;
// compute and exposed communication by kernel, those that changed most and the rest of the class in one row. The shares
// of each level sum to 100 %.
func attributionTable(c *comparison.Comparison, kernels int, effects bool) doc.Table {
	a := &c.Attribution
	if len(a.Rows) == 0 || a.TotalDelta == 0 {
		return doc.Table{}
	}
	rows := attributionRows(a, kernels)
	values, deltas := []float64{a.Base, a.Head}, make([]float64, len(rows))
	for i, r := range rows {
		values = append(values, r.Base, r.Head)
		deltas[i] = r.Delta
	}
	scale, change := unit.Common(report.Nanoseconds, values...), unit.Common(report.Nanoseconds, append(deltas, a.TotalDelta)...)
	t := doc.Table{ID: "attribution", Columns: doc.Cols("Part of one unit", ">"+scale.Header("Base"),
		">"+scale.Header("Head"), ">"+change.Header("Change"), ">Share of change")}
	if effects {
		t.Columns = append(t.Columns, effectColumns(change)...)
	}
	t.Caption = doc.Spans("Where the change of " + delta(a.TotalDelta) + " comes from (mean " + a.Metric + ")")
	t.Columns[3].Bars = deltaBars(deltas)
	effect := func(v *float64) any {
		return report.Of(v, func(x float64) any { return change.Delta(x) }, nil)
	}
	for _, r := range rows {
		name := doc.Spans(partOf + words(r.ID))
		switch r.Kind {
		case comparison.KindClass:
			name = doc.Spans(words(r.ID))
		case comparison.KindKernel:
			name = doc.Spans(partOf+"kernel ", display(c, r.ID))
		case comparison.KindHost:
			name = doc.Spans(partOfPart + words(r.ID))
			if r.ID == "unknown" {
				name = doc.Spans(partOfPart + "host, not recorded")
			}
		}
		row := doc.Row(name, scale.Format(r.Base), scale.Format(r.Head), change.Delta(r.Delta), unit.Percent(r.Delta/a.TotalDelta))
		if effects {
			row = append(row, doc.Row(effect(r.CountEffect), effect(r.PerCallEffect))...)
		}
		t.Rows = append(t.Rows, row)
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

// partOf begins a row for a part of the class above it.
const partOf = "└ "

// partOfPart begins a row for a part of the part above it; markdown tables would drop leading spaces.
const partOfPart = "└─ "

// attributionRows returns the classes, each followed by its parts.
func attributionRows(a *comparison.Attribution, kernels int) []comparison.AttributionRow {
	shown := movedKernels(a, kernels)
	var rows []comparison.AttributionRow
	for i := range a.Rows {
		class := a.Rows[i]
		if class.Kind != comparison.KindClass || class.Base == 0 && class.Head == 0 {
			continue
		}
		rows = append(rows, class)
		switch class.ID {
		case comparison.ClassIdle:
			for _, cause := range a.Rows {
				if cause.Kind == comparison.KindCause && (cause.Base != 0 || cause.Head != 0) {
					rows = append(rows, cause)
					if cause.ID == "host" {
						rows = append(rows, hostCauses(a)...)
					}
				}
			}
		case comparison.ClassCompute, comparison.ClassComm:
			rest := comparison.AttributionRow{ID: "other kernels", Kind: comparison.KindOthers,
				Base: class.Base, Head: class.Head, Delta: class.Delta}
			n := len(rows)
			for _, k := range shown {
				if (k.Category == "comm") == (class.ID == comparison.ClassComm) {
					rows = append(rows, k)
					rest.Base, rest.Head, rest.Delta = rest.Base-k.Base, rest.Head-k.Head, rest.Delta-k.Delta
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

// movedKernels returns the kernels whose part of the change is worth showing, largest changes first.
func movedKernels(a *comparison.Attribution, limit int) []comparison.AttributionRow {
	list := lists.Filter(a.Rows, func(r comparison.AttributionRow) bool {
		return r.Kind == comparison.KindKernel && math.Abs(r.Delta) >= kernelMatters*math.Abs(a.TotalDelta)
	})
	return largestChanges(list, limit, func(r comparison.AttributionRow) float64 { return r.Delta })
}

// display names a kernel, or a kernel and what replaced it, as every table of the terminal does; name is of the
// attribution, or of either side.
func display(c *comparison.Comparison, name string) doc.Cell {
	of := lists.Find(c.Kernels, func(k *comparison.Kernel) bool {
		base, head := comparison.Value(k.BaseName), comparison.Value(k.HeadName)
		return name == base+" → "+head || name == base && head == "" || name == head && (base == "" || base == head)
	})
	of = cmp.Or(of, lists.Find(c.Kernels, func(k *comparison.Kernel) bool {
		return name == comparison.Value(k.BaseName) || name == comparison.Value(k.HeadName)
	}))
	if of == nil {
		return doc.Cell{doc.Name(name)}
	}
	return briefName(c, of)
}

// kernelMatters is the smallest share of the change, 0 to 1, for a kernel to be shown with the causes.
const kernelMatters = 0.05

func attributionText(c *comparison.Comparison) string {
	text := "Mean " + c.Attribution.Metric + ", which splits into parts exactly: classes sum to the change, idle causes to idle, kernels to compute and exposed communication."
	if math.Abs(c.Attribution.Residual) < 0.5 { // less than the resolution of the clock (ns) is the rounding of means
		return text + " Nothing is left over."
	}
	return text + " Residual " + unit.Format(c.Attribution.Residual, report.Nanoseconds) + "."
}
