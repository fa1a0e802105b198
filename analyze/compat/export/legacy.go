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
	n := min(present.Entries(t), legacyKernels)
	var d doc.Document
	d.Add(doc.H(1, "kernels", "Kernel Summary (Top-K)"), doc.P(doc.Text("Rows: "+strconv.Itoa(n))))
	if n > 0 {
		d.Add(legacyTable(v, t, n))
	}
	return d
}

func legacyTable(v *present.View, t *report.Table, n int) doc.Table {
	out := doc.Table{ID: "kernels", Columns: []doc.Column{
		{Title: "kernel_name"}, {Title: "total_ms", Align: doc.Right}, {Title: "calls", Align: doc.Right},
		{Title: "mean_ms", Align: doc.Right}, {Title: "device"},
	}}
	devices := kernelDevices(v)
	for i := range n {
		name, _ := present.CellOf(t, i, "kernel_name").Str()
		total, _ := present.CellOf(t, i, "total").Num()
		calls, _ := present.CellOf(t, i, "count").Int()
		mean, ok := present.CellOf(t, i, "mean").Num()
		if !ok && calls > 0 {
			mean = total / float64(calls)
		}
		out.Rows = append(out.Rows, []doc.Cell{
			{doc.Name(name)}, {doc.Text(fixed(total/1e6, 3))}, {doc.Text(strconv.FormatInt(calls, 10))},
			{doc.Text(fixed(mean/1e6, 6))},
			{doc.Text(strings.Join(devices[name], ", "))},
		})
	}
	return out
}

func fixed(x float64, decimals int) string { return strconv.FormatFloat(x, 'f', decimals, 64) }

// kernelDevices lists the devices on which each kernel ran.
func kernelDevices(v *present.View) map[string][]string {
	list := map[string][]string{}
	add := func(t *report.Table) {
		for i := range present.Entries(t) {
			name, _ := present.CellOf(t, i, "kernel_name").Str()
			if d, ok := present.CellOf(t, i, "device_id").Int(); ok {
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
