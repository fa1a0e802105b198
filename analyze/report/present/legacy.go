package present

import (
	"sort"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

const legacyKernels = 20

// KernelsMD is llm-perf-opt's kernels.md: the top kernels with total and mean in milliseconds.
func KernelsMD(r *report.Report) doc.Document {
	v := newView(r)
	t := v.table("kernels", "kernels")
	n := min(entries(t), legacyKernels)
	var d doc.Document
	d.Add(doc.H(1, "kernels", "Kernel Summary (Top-K)"), doc.P(doc.Text("Rows: "+strconv.Itoa(n))))
	if n > 0 {
		d.Add(v.legacyTable(t, n))
	}
	return d
}

func (v *view) legacyTable(t *report.Table, n int) doc.Table {
	out := doc.Table{ID: "kernels", Columns: []doc.Column{
		{Title: "kernel_name"}, {Title: "total_ms", Align: doc.Right}, {Title: "calls", Align: doc.Right}, {Title: "mean_ms", Align: doc.Right}, {Title: "device"},
	}}
	devices := v.kernelDevices()
	for i := range n {
		name, _ := cellOf(t, i, "kernel_name").Str()
		total, _ := cellOf(t, i, "total").Num()
		calls, _ := cellOf(t, i, "count").Int()
		mean, ok := cellOf(t, i, "mean").Num()
		if !ok && calls > 0 {
			mean = total / float64(calls)
		}
		out.Rows = append(out.Rows, []doc.Cell{
			{doc.Name(name)}, {doc.Text(fixed(total/1e6, 3))}, {doc.Text(strconv.FormatInt(calls, 10))}, {doc.Text(fixed(mean/1e6, 6))},
			{doc.Text(strings.Join(devices[name], ", "))},
		})
	}
	return out
}

func fixed(x float64, decimals int) string { return strconv.FormatFloat(x, 'f', decimals, 64) }

// kernelDevices lists the devices on which each kernel ran.
func (v *view) kernelDevices() map[string][]string {
	list := map[string][]string{}
	add := func(t *report.Table) {
		for i := range entries(t) {
			name, _ := cellOf(t, i, "kernel_name").Str()
			if d, ok := cellOf(t, i, "device_id").Int(); ok {
				list[name] = append(list[name], strconv.FormatInt(d, 10))
			}
		}
	}
	if t := v.table("kernels", "kernels_per_device"); t != nil {
		add(t)
	}
	if len(list) == 0 {
		add(v.table("kernels", "kernels"))
	}
	for _, d := range list {
		sort.Slice(d, func(i, j int) bool { return len(d[i]) < len(d[j]) || len(d[i]) == len(d[j]) && d[i] < d[j] })
	}
	return list
}

// stages are the phases that llm-perf-opt reports, in its order. The vision stages run inside prefill.
var stages = []string{"prefill", "decode", "sam", "clip", "projector"}

// StakeholderMD is llm-perf-opt's stakeholder_summary.md, filled with what the capture holds. What needs a model's
// dimensions or the engine's own counters (tokens per second, MFU, operators) says so.
func StakeholderMD(r *report.Report) doc.Document {
	v := newView(r)
	var d doc.Document
	d.Add(doc.H(1, "summary", "Stakeholder Summary"))
	d.Add(doc.H(2, "environment", "Environment"), v.environment())
	d.Add(doc.H(2, "aggregates", "Aggregates"), v.aggregates())
	d.Add(doc.H(2, "stages", "Per-Stage Timings"))
	d.Add(v.stageTimings()...)
	d.Add(doc.H(2, "mfu", "MFU"), doc.P(doc.Text("Not available: a capture holds no model dimensions, so FLOPs per token are unknown.")))
	d.Add(doc.H(2, "takeaways", "Stage Takeaways"), v.takeaway())
	d.Add(doc.H(2, "operators", "Top Operators"), doc.P(doc.Text("Not available: operators come from the PyTorch profiler.")))
	d.Add(doc.H(2, "kernels", "Top Kernels"))
	if t := v.table("kernels", "kernels"); entries(t) > 0 {
		d.Add(v.legacyTable(t, min(entries(t), legacyKernels)))
	} else {
		d.Add(doc.P(doc.Text("None in the capture.")))
	}
	d.Add(doc.H(2, "recommendations", "Recommendations"), v.recommendations())
	return d
}

func (v *view) environment() doc.Table {
	t := doc.Table{ID: "environment", Columns: []doc.Column{{Title: "Key"}, {Title: "Value"}}}
	for _, g := range v.Environment.GPUs {
		name := doc.Text("unknown")
		if g.Name != nil {
			name = doc.Name(*g.Name)
		}
		t.Rows = append(t.Rows, []doc.Cell{{doc.Text("Device " + strconv.Itoa(g.Device))}, {name}})
	}
	add := func(key string, value *string) {
		if value != nil {
			t.Rows = append(t.Rows, []doc.Cell{{doc.Text(key)}, {doc.Name(*value)}})
		}
	}
	add("Driver", v.Environment.Driver)
	add("CUDA", v.Environment.CUDA)
	add("Model", v.Environment.Model)
	add("DType", v.Environment.DType)
	t.Rows = append(t.Rows, []doc.Cell{{doc.Text("Peak TFLOPs")}, {doc.Text("not in the capture")}})
	return t
}

// statRow is a Metric, Mean, Std row of a metric that has a distribution, or its value alone.
func statRow(label doc.Span, m *report.Metric) []doc.Cell {
	row := []doc.Cell{{label}, {doc.Text(unknown)}, {doc.Text(unknown)}}
	switch {
	case m == nil:
	case m.Summary != nil:
		row[1] = doc.Cell{doc.Text(unit.Format(m.Summary.Mean, m.Unit))}
		row[2] = doc.Cell{doc.Text(unit.Format(m.Summary.Stddev, m.Unit))}
	case valueOf(m) != "":
		row[1] = doc.Cell{doc.Text(valueOf(m))}
	}
	return row
}

func meanStd(id, first string) doc.Table {
	return doc.Table{ID: id, Columns: []doc.Column{{Title: first}, {Title: "Mean", Align: doc.Right}, {Title: "Std", Align: doc.Right}}}
}

func (v *view) aggregates() doc.Table {
	t := meanStd("aggregates", "Metric")
	for _, m := range []struct{ label, id string }{
		{"Step time", "unit.time"}, {"GPU busy per step", "unit.gpu_busy"}, {"GPU idle per step", "unit.gpu_idle"},
		{"Kernels per step", "unit.kernels"}, {"Launches per step", "unit.launches"},
	} {
		if found := v.metric(m.id); found != nil {
			t.Rows = append(t.Rows, statRow(doc.Text(m.label), found))
		}
	}
	t.Rows = append(t.Rows, statRow(doc.Text("Tokens per second"), nil))
	return t
}

// stage is the metric that times one stage: per unit of work if units carry the phase, else its wall time.
func (v *view) stage(phase string) *report.Metric {
	if m := v.metric("unit.time", "phase", phase); m != nil {
		return m
	}
	return v.metric("phase.wall_time", "phase", phase)
}

func (v *view) stageTimings() []doc.Block {
	t := meanStd("stages", "Stage")
	vision := false
	for _, s := range stages {
		if m := v.stage(s); m != nil {
			t.Rows = append(t.Rows, statRow(doc.Text(s), m))
			vision = vision || s == "sam" || s == "clip" || s == "projector"
		}
	}
	if len(t.Rows) == 0 {
		return []doc.Block{doc.P(doc.Text("Not available: no NVTX range maps to a stage, see "), doc.Code("--phase-map"), doc.Text("."))}
	}
	blocks := []doc.Block{t}
	if vision {
		blocks = append(blocks, doc.P(doc.Text("Note: vision (sam, clip, projector) is nested in prefill.")))
	}
	return blocks
}

// takeaway compares the total wall times of prefill and decode by llm-perf-opt's rule: one dominates where it takes at
// least 1.2 times the other.
func (v *view) takeaway() doc.Block {
	prefill, okP := v.num("phase.wall_time", "phase", "prefill")
	decode, okD := v.num("phase.wall_time", "phase", "decode")
	text := "Prefill and decode are comparable."
	switch {
	case !okP && !okD:
		return doc.P(doc.Text("Not available: neither prefill nor decode was found."))
	case decode >= 1.2*max(1, prefill):
		text = "Decode dominates."
	case prefill >= 1.2*max(1, decode):
		text = "Prefill dominates."
	}
	show := func(x float64, ok bool) string {
		if !ok {
			return "none"
		}
		return unit.Format(x, report.Nanoseconds)
	}
	return doc.P(doc.Strong(text), doc.Text(" Wall time: prefill "+show(prefill, okP)+", decode "+show(decode, okD)+"."))
}

func (v *view) recommendations() doc.Block {
	var l doc.List
	for _, f := range v.Findings {
		item := doc.Item{Spans: prose(f.Title)}
		var sub doc.List
		for _, a := range f.Advice {
			sub.Items = append(sub.Items, doc.Item{Spans: prose(a)})
		}
		if len(sub.Items) > 0 {
			item.Blocks = []doc.Block{sub}
		}
		l.Items = append(l.Items, item)
	}
	if len(l.Items) == 0 {
		return doc.P(doc.Text("No rule found anything to recommend."))
	}
	return l
}
