package diffdoc

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
)

// changedKernels returns the kernels that changed or have a note, but none of which only the name changed.
func changedKernels(c *comparison.Comparison) []comparison.Kernel {
	var list []comparison.Kernel
	for _, k := range c.Kernels {
		if k.Class != comparison.Same || k.Note != "" && (k.Delta != 0 || k.CountEffect != 0 || k.Launch != "") {
			list = append(list, k)
		}
	}
	return list
}

// kernelTable lists kernels; if detail is set, also the effects of count and of time per call, and how kernels were
// paired.
func kernelTable(c *comparison.Comparison, kernels []comparison.Kernel, limit int, detail bool) doc.Table {
	if len(kernels) == 0 {
		return doc.Table{}
	}
	shown := kernels[:min(len(kernels), limit)]
	var values, deltas, changes []float64
	for _, k := range shown {
		values = append(values, comparison.Value(k.Base), comparison.Value(k.Head))
		deltas, changes = append(deltas, k.Delta), append(changes, k.Delta, k.CountEffect, k.PerCallEffect)
	}
	scale, change := unit.Common(report.Nanoseconds, values...), unit.Common(report.Nanoseconds, changes...)
	counts := countsTitle("runs", shown, func(k comparison.Kernel) [2]*float64 { return [2]*float64{k.BaseCount, k.HeadCount} })
	t := doc.Table{
		ID:      "kernels",
		Caption: doc.Spans("Kernels that changed, or may have"),
		Columns: doc.Cols("Kernel", ">"+scale.Header("Base"), ">"+scale.Header("Head"), ">"+change.Header("Change"), ">%",
			">"+counts, "Class"),
	}
	more := doc.Cols("Change is")
	if detail {
		more = doc.Cols(">+"+change.Header("by count"), ">+"+change.Header("per call"), "+Paired by")
	}
	t.Columns = append(t.Columns, more...)
	t.Columns[3].Bars = deltaBars(deltas)
	num := func(v *float64) string {
		if v == nil {
			return comparison.NoValue
		}
		return scale.Format(*v)
	}
	for i := range shown {
		k := &shown[i]
		name, more := briefName(c, k), doc.Row(changedBy(k))
		if detail {
			name, more = kernelName(k), doc.Row(change.Delta(k.CountEffect), change.Delta(k.PerCallEffect), k.PairedBy)
		}
		class := classWord(k.Class)
		if k.Class != comparison.Unsettled { // of kernels that is the result of a test, also in a study
			class = changeWord(c, k.Class, k.Delta)
		}
		row := doc.Row(name, num(k.Base), num(k.Head), change.Delta(k.Delta), ratioText(k.Ratio), runs(k), class)
		t.Rows = append(t.Rows, append(row, more...))
	}
	andMore(&t, len(kernels)-len(shown))
	return t
}

// andMore ends a table with the number of rows that it leaves out.
func andMore(t *doc.Table, n int) {
	if n > 0 {
		t.Last("and " + unit.Int(int64(n)) + " more")
	}
}

// arrow joins the values of both sides; one, if they are equal.
func arrow(base, head string) string {
	if base == head {
		return base
	}
	return base + " → " + head
}

// kernelName shows a replaced kernel as "A → B".
func kernelName(k *comparison.Kernel) doc.Cell {
	base := cmp.Or(comparison.Value(k.BaseShort), comparison.Value(k.BaseName))
	head := cmp.Or(comparison.Value(k.HeadShort), comparison.Value(k.HeadName))
	switch {
	case base == "" && head == "":
		return nil
	case base == "":
		return doc.Cell{doc.Name(head)}
	case head == "" || comparison.Value(k.HeadName) == comparison.Value(k.BaseName):
		return doc.Cell{doc.Name(base)}
	}
	return doc.Cell{doc.Name(base), doc.Text(" → "), doc.Name(head)}
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

// runs is how often a kernel runs in one unit.
func runs(k *comparison.Kernel) string {
	return arrow(format(k.BaseCount, report.Count), format(k.HeadCount, report.Count))
}
