package export

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/present"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// stages are the phases that llm-perf-opt reports, in its order. The vision stages run inside prefill.
var stages = []string{"prefill", "decode", "sam", "clip", "projector"}

// StakeholderMD is llm-perf-opt's stakeholder_summary.md. It takes each value from llm-perf-opt's own artifacts, else
// from the capture, else from a server's log, else from a profiler session. It says which values are missing. whole are
// tables with the rows that the report leaves out.
func StakeholderMD(r *report.Report, whole ...report.Table) doc.Document {
	v := present.NewView(r)
	var d doc.Document
	d.Add(doc.H(1, "summary", "Stakeholder Summary"))
	d.Add(doc.H(2, "environment", "Environment"), environmentOf(v))
	d.Add(doc.H(2, "aggregates", "Aggregates"), aggregates(v))
	d.Add(doc.H(2, "stages", "Per-Stage Timings"))
	d.Add(stageTimings(v)...)
	d.Add(doc.H(2, "mfu", "MFU"))
	d.Add(mfuOf(v)...)
	d.Add(doc.H(2, "takeaways", "Stage Takeaways"), takeaway(v))
	d.Add(doc.H(2, "operators", "Top Operators"), topOperators(v))
	d.Add(doc.H(2, "kernels", "Top Kernels"), legacyTopKernels(v, whole))
	d.Add(doc.H(2, "recommendations", "Recommendations"), recommendations(v))
	return d
}

func environmentOf(v *present.View) doc.Table {
	t := doc.Table{ID: "environment", Columns: doc.Cols("Key", "Value")}
	for _, g := range v.Environment.GPUs {
		t.Row("Device "+strconv.Itoa(g.Device), report.Of(g.Name, doc.Name, doc.Text("unknown")))
	}
	add := func(key string, value *string) {
		if value != nil {
			t.Row(key, doc.Name(*value))
		}
	}
	e := &v.Environment
	add("Driver", e.Driver)
	add("CUDA", e.CUDA)
	add("Model", e.Model)
	add("DType", e.DType)
	add("Parallelism", e.Parallelism)
	count := func(key string, n *int64) {
		if n != nil {
			t.Row(key, unit.Int(*n))
		}
	}
	count("Max model length", e.MaxModelLen)
	count("Max sequences", e.MaxNumSeqs)
	peak := func(key string, labels ...string) {
		text := "unknown"
		if p, ok := v.Num("mfu.peak_flops", labels...); ok {
			text = fixed(p/1e12, 2)
		}
		t.Row(key, doc.Text(text))
	}
	of := ""
	for _, g := range v.Environment.GPUs {
		if id := strconv.Itoa(g.Device); v.Metric("mfu.peak_flops", "device", id) != nil {
			of = " of the GPU of the session"
			peak("Peak TFLOPs of device "+id, "device", id)
		}
	}
	peak("Peak TFLOPs" + of)
	return t
}

// statRow is a Metric, Mean, Std row of a metric that has a distribution, or its value alone.
func statRow(label doc.Span, m *report.Metric) []doc.Cell {
	mean, std := "", ""
	switch {
	case m == nil:
	case m.Summary != nil:
		mean, std = unit.Format(m.Summary.Mean, m.Unit), unit.Format(m.Summary.Stddev, m.Unit)
	default:
		mean = present.ValueOf(m)
	}
	return doc.Row(label, cmp.Or(mean, present.Unknown), cmp.Or(std, present.Unknown))
}

// cellRow is a Mean, Std row of table cells in a base unit.
func cellRow(label string, mean, std report.Cell, u string) []doc.Cell {
	show := func(c report.Cell) string {
		if x, ok := c.Num(); ok {
			return unit.Format(x, u)
		}
		return present.Unknown
	}
	return doc.Row(label, show(mean), show(std))
}

func aggregates(v *present.View) doc.Table {
	t := doc.Table{ID: "aggregates", Columns: doc.Cols("Metric", ">Mean", ">Std")}
	stages := v.Table("mfu", "stages")
	for i := range stages.Entries() {
		switch name := stages.Str(i, "stage"); name {
		case "prefill", "decode":
			t.Rows = append(t.Rows, cellRow("Time of "+name, stages.Cell(i, "mean"),
				stages.Cell(i, "std"), report.Nanoseconds))
		}
	}
	run := v.Table("mfu", "run_tokens")
	for i := range run.Entries() {
		t.Rows = append(t.Rows, cellRow(run.Str(i, "quantity"), run.Cell(i, "mean"), run.Cell(i, "std"), report.Count))
	}
	for _, m := range []struct{ label, id string }{
		{"Step time", "unit.time"}, {"GPU busy per step", "unit.gpu_busy"}, {"GPU idle per step", "unit.gpu_idle"},
		{"Kernels per step", "unit.kernels"}, {"Launches per step", "unit.launches"},
		{"Prompt tokens per second", "serve.prompt_throughput"}, {"Generated tokens per second",
			"serve.generation_throughput"},
		{"Time to first token", "serve.ttft"}, {"Time per output token", "serve.tpot"},
		{"Request latency", "serve.e2e"},
		{"Tokens per second of forward time", "forward.token_rate"},
	} {
		if found := v.Metric(m.id); found != nil {
			t.Rows = append(t.Rows, statRow(doc.Text(m.label), found))
		}
	}
	if v.Metric("serve.generation_throughput") == nil && v.Metric("forward.token_rate") == nil && run.Entries() == 0 {
		t.Rows = append(t.Rows, statRow(doc.Text("Tokens per second"), nil))
	}
	return t
}

// stageTimings are the times of the stages, each from the first that has it: the stages of llm-perf-opt, units of work
// with their phase, a profiler session's forward passes, the ranges of the phase on the host.
func stageTimings(v *present.View) []doc.Block {
	t := doc.Table{ID: "stages", Columns: doc.Cols("Stage", ">Mean", ">Std")}
	vision := false
	measured := v.Table("mfu", "stages")
	for _, s := range stages {
		before := len(t.Rows)
		for i := range measured.Entries() {
			if measured.Str(i, "stage") == s {
				t.Rows = append(t.Rows, cellRow(s, measured.Cell(i, "mean"), measured.Cell(i, "std"), report.Nanoseconds))
			}
		}
		if len(t.Rows) == before {
			some := func(w *phaseWall) bool { return w.phase == s && w.count > 0 }
			if m := cmp.Or(v.Metric("unit.time", "phase", s), v.Metric("forward.time", "phase", s)); m != nil {
				t.Rows = append(t.Rows, statRow(doc.Text(s), m))
			} else if w := lists.Find(phasesOf(v), some); w != nil {
				mean := unit.Format(float64(w.wall)/float64(w.count), report.Nanoseconds)
				t.Rows = append(t.Rows, doc.Row(s, mean+" per range", present.Unknown))
			}
		}
		vision = vision || len(t.Rows) > before && s != "prefill" && s != "decode"
	}
	if len(t.Rows) == 0 {
		return []doc.Block{doc.P("Not available: no NVTX range maps to a stage, see ", doc.Code("--phase-map"), ".")}
	}
	blocks := []doc.Block{t}
	if vision {
		blocks = append(blocks, doc.P("Note: vision (sam, clip, projector) is nested in prefill; do not add it."))
	}
	return blocks
}

// mfuOf is the utilisation by scope. The value that llm-perf-opt stated stands beside it: it counts fewer operations
// and assumes other peaks.
func mfuOf(v *present.View) []doc.Block {
	t := doc.Table{ID: "mfu", Columns: doc.Cols("Scope", ">MFU", ">Memory bandwidth", ">MFU as llm-perf-opt states it")}
	some := false
	for _, s := range []struct{ scope, stage string }{{"Model-level", "model"}, {"Vision", "vision"},
		{"Prefill", "prefill"}, {"Decode", "decode"}} {
		row := doc.Row(s.scope)
		for _, id := range []string{"mfu.utilization", "mfu.bandwidth_utilization", "mfu.stated"} {
			text := present.Unknown
			if x, ok := v.Num(id, "stage", s.stage); ok {
				text, some = fixed(x, 6), true
			}
			row = append(row, doc.Cell{doc.Text(text)})
		}
		t.Rows = append(t.Rows, row)
	}
	if !some {
		return []doc.Block{doc.P("Not available: FLOPs per token are computed from the dimensions of the model, which nothing that was given states.")}
	}
	return []doc.Block{t}
}

// takeaway compares the total times of prefill and decode by llm-perf-opt's rule: one dominates if it takes at least
// 1.2 times the other, and at least 1.2 ms.
func takeaway(v *present.View) doc.Block {
	var prefill, decode float64
	var okP, okD bool
	what := ""
	for _, source := range []struct{ id, label, what string }{
		{"stage.time", "stage", "Mean time"}, {"phase.wall_time", "phase", "Wall time"},
		{"forward.total_time", "phase", "Forward time"},
	} {
		prefill, okP = v.Num(source.id, source.label, "prefill")
		decode, okD = v.Num(source.id, source.label, "decode")
		if what = source.what; okP || okD {
			break
		}
	}
	const ms = 1e6
	text := "Prefill and decode are comparable."
	switch {
	case !okP && !okD:
		if b, ok := iterationTakeaway(v); ok {
			return b
		}
		return doc.P("Not available: neither prefill nor decode was found.")
	case decode >= 1.2*max(ms, prefill):
		text = "Decode dominates."
	case prefill >= 1.2*max(ms, decode):
		text = "Prefill dominates."
	}
	show := func(x float64, ok bool) string {
		if !ok {
			return "none"
		}
		return unit.Format(x, report.Nanoseconds)
	}
	return doc.P(doc.Strong(text), " "+what+": prefill "+show(prefill, okP)+", decode "+show(decode, okD)+".")
}

// iterationTakeaway applies the same rule to a server's iterations by type, if a log details them.
func iterationTakeaway(v *present.View) (doc.Block, bool) {
	list, largest, most, second := "", "", 0.0, 0.0
	for _, name := range []string{"prefill", "decode", "mixed"} {
		x, ok := v.Num("serve.iteration_time_share", "type", name)
		if !ok {
			continue
		}
		list += ", " + name + " " + unit.Format(x, report.Ratio)
		if x > most {
			largest, most, second = name, x, most
		} else {
			second = max(second, x)
		}
	}
	if list == "" {
		return nil, false
	}
	text := "No type of iteration dominates."
	if most >= 1.2*second && most > 0 {
		text = map[string]string{"prefill": "Prefill dominates.", "decode": "Decode dominates.",
			"mixed": "Iterations that mix prefill and decode dominate."}[largest]
	}
	return doc.P(doc.Strong(text), " Share of the iterations' time: "+strings.TrimPrefix(list, ", ")+"."), true
}

func topOperators(v *present.View) doc.Block {
	if t := operatorTable(v); len(t.Rows) > 0 {
		return t
	}
	return doc.P("Not available: operators come from the NVTX ranges of ",
		doc.Code("torch.autograd.profiler.emit_nvtx()"), ", or from operators.md of llm-perf-opt.")
}

// legacyTopKernels are the capture's top kernels, or if there are none, those of llm-perf-opt's kernels.md.
func legacyTopKernels(v *present.View, whole []report.Table) doc.Block {
	stated := v.Table("operators", "stated_kernels")
	switch {
	case v.Table("kernels", "kernels").Entries() > 0:
		return capturedKernels(v, whole)
	case stated.Entries() > 0:
		return legacyTable(stated, "kernel", "calls")
	case v.EvidenceOnly():
		return doc.P("Not available: no trace was given.")
	}
	return doc.P("None in the capture.")
}

func recommendations(v *present.View) doc.Block {
	var l doc.List
	for _, f := range v.Findings {
		var sub doc.List
		for _, a := range f.Advice {
			sub.Add(present.Prose(a))
		}
		l.Items = append(l.Items, doc.Item{Spans: present.Prose(f.Title), Blocks: doc.Some(sub)})
	}
	if len(l.Items) == 0 {
		return doc.P("No rule found anything to recommend.")
	}
	return l
}

const legacyKernels = 20

// KernelsMD is llm-perf-opt's kernels.md: the top kernels with total and mean in milliseconds. whole are tables with
// the rows that the report leaves out.
func KernelsMD(r *report.Report, whole ...report.Table) doc.Document {
	return summaryOf("Kernel", capturedKernels(present.NewView(r), whole))
}

// OperatorsMD is llm-perf-opt's operators.md: the PyTorch operators that take most GPU time, from the ranges that
// emit_nvtx writes, or as the evidence states them. total_time_ms is host time.
func OperatorsMD(r *report.Report) doc.Document {
	return summaryOf("Operator", operatorTable(present.NewView(r)))
}

func summaryOf(what string, t doc.Table) (d doc.Document) {
	d.Add(doc.H(1, t.ID, what+" Summary (Top-K)"), doc.P("Rows: "+strconv.Itoa(len(t.Rows))), t)
	return d
}

// operatorTable is a table in the columns of operators.md, without rows if neither source lists operators.
func operatorTable(v *present.View) doc.Table {
	t, cuda, total := v.Table("torch_ops", "torch_ops"), "gpu", "host"
	if t.Entries() == 0 {
		t, cuda, total = v.Table("operators", "operators"), "cuda", "total"
	}
	out := doc.Table{ID: "operators", Columns: doc.Cols("op_name", ">total_time_ms", ">cuda_time_ms", ">calls",
		">mean_ms")}
	for i := range min(t.Entries(), legacyKernels) {
		out.Row(doc.Name(t.Str(i, "operator")), ms(t, i, total, 3), ms(t, i, cuda, 3), digits(t, i, "calls"), ms(t, i, "mean", 6))
	}
	return out
}

// capturedKernels are the capture's top kernels with the devices on which each ran.
func capturedKernels(v *present.View, whole []report.Table) doc.Table {
	t := v.Table("kernels", "kernels")
	out := legacyTable(t, "kernel_name", "count")
	out.Columns = append(out.Columns, doc.Cols("device")...)
	devices, calls := kernelDevices(v, whole)
	for i := range out.Rows {
		name := t.Str(i, "kernel_name")
		if calls[name] < t.Whole(i, "count") && calls[name] > 0 { // the report does not list the rest
			devices[name] = append(devices[name], "…")
		}
		out.Rows[i] = append(out.Rows[i], doc.Row(strings.Join(devices[name], ", "))...)
	}
	return out
}

// legacyTable lists the first kernels of a table that has their names and calls in these columns.
func legacyTable(t *report.Table, name, count string) doc.Table {
	out := doc.Table{ID: "kernels", Columns: doc.Cols("kernel_name", ">total_ms", ">calls", ">mean_ms")}
	for i := range min(t.Entries(), legacyKernels) {
		out.Row(doc.Name(t.Str(i, name)), ms(t, i, "total", 3), digits(t, i, count), ms(t, i, "mean", 6))
	}
	return out
}

func fixed(x float64, decimals int) string { return strconv.FormatFloat(x, 'f', decimals, 64) }

// ms is a cell of ns in milliseconds.
func ms(t *report.Table, row int, column string, decimals int) string {
	if x, ok := t.Num(row, column); ok {
		return fixed(x/1e6, decimals)
	}
	return present.Unknown
}

func digits(t *report.Table, row int, column string) string {
	return strconv.FormatInt(max(t.Whole(row, column), 0), 10)
}

// kernelDevices lists the devices on which each kernel ran, and counts its calls there.
func kernelDevices(v *present.View, whole []report.Table) (list map[string][]string, calls map[string]int64) {
	list, calls = map[string][]string{}, map[string]int64{}
	t := cmp.Or(lists.Find(whole, func(t *report.Table) bool { return t.ID == "kernels_per_device" }),
		v.Table("kernels", "kernels_per_device"), v.Table("kernels", "kernels"))
	for i := range t.Entries() {
		name := t.Str(i, "kernel_name")
		if d, ok := t.Int(i, "device_id"); ok {
			list[name] = append(list[name], strconv.FormatInt(d, 10))
			calls[name] += t.Whole(i, "count")
		}
	}
	for _, d := range list {
		lists.Sort(d, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	}
	return list, calls
}
