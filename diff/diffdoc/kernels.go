package diffdoc

import (
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
)

// changedKernels returns the kernels that changed or have a note.
func changedKernels(c *comparison.Comparison) []comparison.Kernel {
	var list []comparison.Kernel
	for _, k := range c.Kernels {
		if k.Class != comparison.Same || k.Note != "" {
			list = append(list, k)
		}
	}
	return list
}

// kernelTable lists kernels; if detail is set, also the effects of count and of time per call, and how kernels were
// paired.
func kernelTable(c *comparison.Comparison, kernels []comparison.Kernel, limit int, detail bool) (doc.Table, bool) {
	if len(kernels) == 0 {
		return doc.Table{}, false
	}
	shown := kernels[:min(len(kernels), limit)]
	var values, deltas []float64
	for i := range shown {
		values = append(values, comparison.Value(shown[i].Base), comparison.Value(shown[i].Head))
		deltas = append(deltas, shown[i].Delta, shown[i].CountEffect, shown[i].PerCallEffect)
	}
	scale, change := unit.Common(report.Nanoseconds, values...), unit.Common(report.Nanoseconds, deltas...)
	t := doc.Table{
		ID:      "kernels",
		Caption: doc.Spans("Kernels that changed, or may have"),
		Columns: doc.Cols("Kernel", ">"+scale.Header("Base"), ">"+scale.Header("Head"), ">"+change.Header("Change"), ">%",
			">Runs", "Class"),
	}
	if !detail {
		t.Columns = append(t.Columns, doc.Column{Title: "Change is"})
	}
	if detail {
		t.Columns = append(t.Columns, doc.Column{Title: change.Header("by count"), Align: doc.Right, Wide: true},
			doc.Column{Title: change.Header("per call"), Align: doc.Right, Wide: true},
			doc.Column{Title: "Paired by", Wide: true})
	}
	bars := make([]float64, len(shown))
	for i := range shown {
		bars[i] = shown[i].Delta
	}
	t.Columns[3].Bars = deltaBars(bars)
	num := func(v *float64) doc.Cell {
		if v == nil {
			return doc.Cell{doc.Text(comparison.NoValue)}
		}
		return doc.Cell{doc.Text(scale.Format(*v))}
	}
	for i := range shown {
		k := &shown[i]
		name := kernelName(k)
		if !detail {
			name = briefName(c, k)
		}
		row := doc.Row(name, num(k.Base), num(k.Head), change.Delta(k.Delta), ratioText(k.Ratio), runs(k),
			classWord(k.Class))
		if !detail {
			row = append(row, doc.Cell{doc.Text(changedBy(k))})
		}
		if detail {
			row = append(row, doc.Cell{doc.Text(change.Delta(k.CountEffect))},
				doc.Cell{doc.Text(change.Delta(k.PerCallEffect))}, doc.Cell{doc.Text(k.PairedBy)})
		}
		t.Rows = append(t.Rows, row)
	}
	if n := len(kernels) - len(shown); n > 0 {
		t.Last("and " + unit.Int(int64(n)) + " more")
	}
	return t, true
}

// kernelName shows a replaced kernel as "A → B".
func kernelName(k *comparison.Kernel) doc.Cell {
	base, head := firstOf(k.BaseShort, k.BaseName), firstOf(k.HeadShort, k.HeadName)
	switch {
	case base == nil && head == nil:
		return nil
	case base == nil:
		return doc.Cell{doc.Name(*head)}
	case head == nil || comparison.Value(k.HeadName) == comparison.Value(k.BaseName):
		return doc.Cell{doc.Name(*base)}
	}
	return doc.Cell{doc.Name(*base), doc.Text(" → "), doc.Name(*head)}
}

// briefName is kernelName without template arguments where no other kernel is then called the same.
func briefName(c *comparison.Comparison, k *comparison.Kernel) doc.Cell {
	cell := kernelName(k)
	for i := range cell {
		name := cell[i].Text
		brief, _, cut := strings.Cut(name, "<")
		alike := func(short *string) bool {
			other, _, _ := strings.Cut(comparison.Value(short), "<")
			return other == brief && comparison.Value(short) != name
		}
		if cut && brief != "" && !slices.ContainsFunc(c.Kernels, func(o comparison.Kernel) bool { return alike(o.BaseShort) || alike(o.HeadShort) }) {
			cell[i].Text = brief
		}
	}
	return cell
}

// mostly is the share of a change, 0 to 1, from which on it is called the change of one sort.
const mostly = 0.9

// changedBy says whether a kernel changed because it runs more or less often, or because one call takes longer or
// shorter; empty if it did not change, or was added or removed.
func changedBy(k *comparison.Kernel) string {
	count, call := math.Abs(k.CountEffect), math.Abs(k.PerCallEffect)
	switch {
	case count+call == 0, k.Class == comparison.Added, k.Class == comparison.Removed:
		return ""
	case call >= mostly*(count+call):
		return "per call"
	case count >= mostly*(count+call):
		return "by count"
	}
	return "both"
}

func firstOf(list ...*string) *string {
	for _, s := range list {
		if s != nil && *s != "" {
			return s
		}
	}
	return nil
}

// runs is how often a kernel runs in one unit.
func runs(k *comparison.Kernel) string {
	base, head := format(k.BaseCount, report.Count), format(k.HeadCount, report.Count)
	if base == head {
		return base
	}
	return base + " → " + head
}
