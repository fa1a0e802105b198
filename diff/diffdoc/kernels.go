package diffdoc

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
)

// changedKernels returns the kernels that changed or have a note, but none of which only the name changed.
func changedKernels(c *comparison.Comparison) []comparison.Kernel {
	return lists.Filter(c.Kernels, func(k comparison.Kernel) bool {
		return k.Class != comparison.Same || k.Note != "" && (k.Delta != 0 || k.CountEffect != 0 || k.Launch != "")
	})
}

// kernelTable lists kernels; if detail is set, also the effects of count and of time per call, the interval of the
// change, and how kernels were paired.
func kernelTable(c *comparison.Comparison, kernels []comparison.Kernel, limit int, detail bool) doc.Table {
	shown := kernels[:min(len(kernels), limit)]
	var values, deltas, changes, oneRun []float64
	var counts []*float64
	for _, k := range shown {
		counts = append(counts, k.BaseCount, k.HeadCount)
		oneRun = append(oneRun, comparison.Value(perRun(k.Base, k.BaseCount)), comparison.Value(perRun(k.Head, k.HeadCount)))
		values = append(values, comparison.Value(k.Base), comparison.Value(k.Head))
		deltas, changes = append(deltas, k.Delta), append(changes, k.Delta, k.CountEffect, k.PerCallEffect)
	}
	scale, change := unit.Common(report.Nanoseconds, values...), unit.Common(report.Nanoseconds, changes...)
	run := unit.Common(report.Nanoseconds, oneRun...)
	t := doc.Table{
		ID:      "kernels",
		Caption: doc.Spans("Kernels that changed, or may have"),
		Columns: doc.Cols("Kernel", ">"+scale.Header("Base"), ">"+scale.Header("Head"), ">"+change.Header("Change"), ">%",
			">"+countsTitle("runs", counts), ">"+run.Header("One run"), "Class"),
	}
	if detail {
		t.Caption = nil
		t.Columns = append(t.Columns, doc.Cols(">+"+change.Header("from more or fewer runs"),
			">+"+change.Header("from slower or faster runs"), "+Interval", "+Paired by")...)
	}
	t.Columns[3].Bars = deltaBars(deltas)
	num := func(scale unit.Scale, v *float64) string { return report.Of(v, scale.Format, comparison.NoValue) }
	for i := range shown {
		k := &shown[i]
		name, more := briefName(c, k), doc.Row()
		if detail {
			name, more = kernelName(k), doc.Row(change.Delta(k.CountEffect), change.Delta(k.PerCallEffect), intervalText(k.Interval), k.PairedBy)
		}
		class := classWord(k.Class)
		if k.Class != comparison.Unsettled { // of kernels that is the result of a test, also in a study
			class = changeWord(c, k.Class, k.Delta)
		}
		row := doc.Row(name, num(scale, k.Base), num(scale, k.Head), change.Delta(k.Delta), ratioText(k.Ratio),
			arrow(format(k.BaseCount, report.Count), format(k.HeadCount, report.Count)),
			arrow(num(run, perRun(k.Base, k.BaseCount)), num(run, perRun(k.Head, k.HeadCount))), class)
		t.Rows = append(t.Rows, append(row, more...))
	}
	andMore(&t, len(kernels)-len(shown))
	return t
}

// andMore ends a table with the number of rows that it leaves out.
func andMore(t *doc.Table, n int) {
	if n > 0 {
		t.Last("and " + unit.Int(n) + " more")
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

// perRun is the time of one run, ns; nil if it is not known.
func perRun(time, count *float64) *float64 {
	if time == nil || comparison.Value(count) <= 0 {
		return nil
	}
	return new(*time / *count)
}
