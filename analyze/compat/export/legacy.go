package export

import (
	"sort"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/present"
)

const legacyKernels = 20

// KernelsMD is llm-perf-opt's kernels.md: the top kernels with total and mean in milliseconds.
func KernelsMD(r *report.Report) doc.Document {
	v := present.NewView(r)
	t := v.Table("kernels", "kernels")
	n := min(t.Entries(), legacyKernels)
	var d doc.Document
	d.Add(doc.H(1, "kernels", "Kernel Summary (Top-K)"), doc.P("Rows: "+strconv.Itoa(n)))
	if n > 0 {
		d.Add(legacyTable(v, t, n))
	}
	return d
}

// OperatorsMD is llm-perf-opt's operators.md: the PyTorch operators that take most GPU time, from the ranges that
// emit_nvtx writes, or as the evidence states them. total_time_ms is host time.
func OperatorsMD(r *report.Report) doc.Document {
	t, ok := operatorTable(present.NewView(r))
	var d doc.Document
	d.Add(doc.H(1, "operators", "Operator Summary (Top-K)"), doc.P("Rows: "+strconv.Itoa(len(t.Rows))))
	if ok {
		d.Add(t)
	}
	return d
}

// operatorTable is a table in the columns of operators.md; not ok if neither source lists operators.
func operatorTable(v *present.View) (out doc.Table, ok bool) {
	t, cuda, total := v.Table("torch_ops", "torch_ops"), "gpu", "host"
	if t.Entries() == 0 {
		t, cuda, total = v.Table("operators", "operators"), "cuda", "total"
	}
	out = doc.Table{ID: "operators", Columns: doc.Cols("op_name", ">total_time_ms", ">cuda_time_ms", ">calls",
		">mean_ms")}
	ms := func(i int, column string, decimals int) doc.Cell {
		x, ok := t.Num(i, column)
		if !ok {
			return doc.Cell{doc.Text(present.Unknown)}
		}
		return doc.Cell{doc.Text(fixed(x/1e6, decimals))}
	}
	for i := range min(t.Entries(), legacyKernels) {
		op := t.Str(i, "operator")
		calls, _ := t.Int(i, "calls")
		out.Row(doc.Name(op), ms(i, total, 3), ms(i, cuda, 3), strconv.FormatInt(calls, 10), ms(i, "mean", 6))
	}
	return out, len(out.Rows) > 0
}

func legacyTable(v *present.View, t *report.Table, n int) doc.Table {
	out := doc.Table{ID: "kernels", Columns: doc.Cols("kernel_name", ">total_ms", ">calls", ">mean_ms", "device")}
	devices := kernelDevices(v)
	for i := range n {
		name := t.Str(i, "kernel_name")
		total, _ := t.Num(i, "total")
		calls, _ := t.Int(i, "count")
		mean, ok := t.Num(i, "mean")
		if !ok && calls > 0 {
			mean = total / float64(calls)
		}
		out.Row(doc.Name(name), fixed(total/1e6, 3), strconv.FormatInt(calls, 10), fixed(mean/1e6, 6),
			strings.Join(devices[name], ", "))
	}
	return out
}

func fixed(x float64, decimals int) string { return strconv.FormatFloat(x, 'f', decimals, 64) }

// kernelDevices lists the devices on which each kernel ran.
func kernelDevices(v *present.View) map[string][]string {
	list := map[string][]string{}
	add := func(t *report.Table) {
		for i := range t.Entries() {
			name := t.Str(i, "kernel_name")
			if d, ok := t.Int(i, "device_id"); ok {
				list[name] = append(list[name], strconv.FormatInt(d, 10))
			}
		}
	}
	if t := v.Table("kernels", "kernels_per_device"); t != nil {
		add(t)
	}
	if len(list) == 0 {
		add(v.Table("kernels", "kernels"))
	}
	for _, d := range list {
		sort.Slice(d, func(i, j int) bool { return len(d[i]) < len(d[j]) || len(d[i]) == len(d[j]) && d[i] < d[j] })
	}
	return list
}
