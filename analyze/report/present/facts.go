package present

import (
	"sort"
	"strconv"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// fact is one key number of a report with what it takes to read it.
type fact struct {
	label  string
	value  string // the number
	detail []doc.Span
}

// facts are the key numbers of a report, those that it has, in the order in which a reader asks for them.
func (v *view) facts() []fact {
	var list []fact
	for _, f := range []func() (fact, bool){
		v.idle, v.topKernel, v.kernelTime, v.exposedComm, v.exposedCopy, v.launches, v.sync, v.copies, v.graphs, v.nvtx, v.unitOfWork,
	} {
		if f, ok := f(); ok {
			list = append(list, f)
		}
	}
	return list
}

// onDevice names the device a number is of, and that it is the worst one if there are several.
func (v *view) onDevice(device string) []doc.Span {
	spans := doc.Spans(doc.Text("GPU "), v.word(device))
	if len(v.devices()) > 1 {
		spans = append(spans, doc.Text(", the worst of "+strconv.Itoa(len(v.devices()))))
	}
	return spans
}

// of adds "; PART of WHOLE" for two metrics of a device.
func (v *view) of(spans []doc.Span, part, whole, device string) []doc.Span {
	p, w := v.value(part, "device", device), v.value(whole, "device", device)
	if p == "" || w == "" {
		return spans
	}
	return append(spans, doc.Text("; "+p+" of "+w))
}

func (v *view) idle() (fact, bool) {
	device, m := v.worst("gpu.idle_ratio")
	if m == nil {
		return fact{}, false
	}
	detail := v.of(v.onDevice(device), "gpu.idle_time", "gpu.window", device)
	for i, c := range v.causes(device) {
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		detail = append(detail, doc.Text(sep), v.word(c.Labels["cause"]), doc.Text(" "+valueOf(c)))
	}
	return fact{"GPU idle", valueOf(m), detail}, true
}

// causes are the idle causes of a device, largest first, without zeros.
func (v *view) causes(device string) []*report.Metric {
	var list []*report.Metric
	for _, m := range v.byID["gpu.idle_cause_time"] {
		if m.Labels["device"] == device && m.Labels["cause"] != "" && m.Value != nil && *m.Value > 0 {
			list = append(list, m)
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return *list[i].Value > *list[j].Value })
	return list
}

func (v *view) topKernel() (fact, bool) {
	t := v.table("kernels", "kernels")
	if entries(t) == 0 {
		return fact{}, false
	}
	name, _ := cellOf(t, 0, "kernel_name").Str()
	detail := doc.Spans(v.name(name))
	share, known := cellOf(t, 0, "share").Num()
	total, ok := cellOf(t, 0, "total").Num()
	if !ok {
		return fact{"Top kernel", unknown, detail}, true
	}
	text := ", " + unit.Format(total, report.Nanoseconds)
	if n, ok := cellOf(t, 0, "count").Int(); ok {
		text += " in " + plural(n, "call")
	}
	if mean, ok := cellOf(t, 0, "mean").Num(); ok {
		text += ", mean " + unit.Format(mean, report.Nanoseconds)
	}
	detail = append(detail, doc.Text(text))
	if !known {
		return fact{"Top kernel", unit.Format(total, report.Nanoseconds), detail}, true
	}
	return fact{"Top kernel", unit.Percent(share), detail}, true
}

func (v *view) kernelTime() (fact, bool) {
	m := v.metric("kernel.total_time")
	if valueOf(m) == "" {
		return fact{}, false
	}
	text := "sum over all devices"
	if n := v.value("kernel.count"); n != "" {
		text = n + " kernels, " + text
	}
	if rate := v.value("kernel.rate"); rate != "" {
		text += ", " + rate
	}
	return fact{"Kernel time", valueOf(m), doc.Spans(doc.Text(text))}, true
}

func (v *view) exposedComm() (fact, bool) {
	device, m := v.worst("gpu.exposed_comm_time")
	if m == nil || *m.Value == 0 {
		return fact{}, false
	}
	detail := v.onDevice(device)
	if all := v.value("gpu.comm_time", "device", device); all != "" {
		detail = append(detail, doc.Text("; of "+all+" in communication kernels"))
	}
	return fact{"Exposed communication", valueOf(m), detail}, true
}

func (v *view) exposedCopy() (fact, bool) {
	device, m := v.worst("gpu.exposed_copy_time")
	if m == nil || *m.Value == 0 {
		return fact{}, false
	}
	detail := v.onDevice(device)
	if all := v.value("gpu.copy_time", "device", device); all != "" {
		detail = append(detail, doc.Text("; of "+all+" in copies and memsets"))
	}
	return fact{"Exposed copies", valueOf(m), detail}, true
}

func (v *view) launches() (fact, bool) {
	m := v.metric("launch.rate")
	if valueOf(m) == "" {
		return fact{}, false
	}
	text := ""
	if n, ok := v.num("launch.count"); ok {
		text = plural(int64(n), "launch call")
	}
	if t := v.value("launch.api_time"); t != "" {
		text += ", " + t + " inside them"
	}
	if a := v.ranked("launch.api_time", "api"); len(a) > 0 && text != "" {
		return fact{"Launch rate", valueOf(m), doc.Spans(doc.Text(text+", mostly "), v.word(a[0].Labels["api"]))}, true
	}
	return fact{"Launch rate", valueOf(m), doc.Spans(doc.Text(text))}, true
}

func (v *view) sync() (fact, bool) {
	m := v.metric("sync.total_time")
	if valueOf(m) == "" {
		return fact{}, false
	}
	var detail []doc.Span
	if n, ok := v.num("sync.count"); ok {
		detail = append(detail, doc.Text(plural(int64(n), "blocking call")))
	}
	if a := v.ranked("sync.total_time", "api"); len(a) > 0 {
		detail = append(detail, doc.Text(", mostly "), v.word(a[0].Labels["api"]), doc.Text(" "+valueOf(a[0])))
	}
	return fact{"Blocking sync", valueOf(m), detail}, true
}

// copies are the directions with the most time, without splitting them by kind of memory.
func (v *view) copies() (fact, bool) {
	list := v.ranked("memcpy.time", "direction")
	if len(list) == 0 {
		return fact{}, false
	}
	var detail []doc.Span
	for i, m := range list[:min(len(list), 3)] {
		if i > 0 {
			detail = append(detail, doc.Text(", "))
		}
		d := m.Labels["direction"]
		detail = append(detail, v.word(d))
		if b := v.value("memcpy.bytes", "direction", d); b != "" {
			detail = append(detail, doc.Text(" "+b))
		}
		if i > 0 {
			detail = append(detail, doc.Text(" in "+valueOf(m)))
		}
		if r := v.value("memcpy.throughput", "direction", d); r != "" {
			detail = append(detail, doc.Text(" at "+r))
		}
	}
	return fact{"Copies", valueOf(list[0]), detail}, true
}

func (v *view) graphs() (fact, bool) {
	m := v.metric("graph.coverage")
	if valueOf(m) == "" {
		return fact{}, false
	}
	text := "of kernel time runs inside CUDA graphs"
	if n, ok := v.num("graph.launches"); ok {
		text += ", " + plural(int64(n), "graph launch call")
	}
	return fact{"CUDA graphs", valueOf(m), doc.Spans(doc.Text(text))}, true
}

func (v *view) nvtx() (fact, bool) {
	m := v.metric("nvtx.coverage")
	if valueOf(m) == "" {
		return fact{}, false
	}
	detail := doc.Spans(doc.Text("of kernel time was launched inside NVTX ranges"))
	for i, p := range v.ranked("phase.gpu_time", "phase") {
		if i == 3 {
			break
		}
		sep := ", "
		if i == 0 {
			sep = "; "
		}
		detail = append(detail, doc.Text(sep), v.word(p.Labels["phase"]), doc.Text(" "+valueOf(p)))
	}
	return fact{"NVTX coverage", valueOf(m), detail}, true
}

// unitOfWork is the time of one step, of the group with the most units.
func (v *view) unitOfWork() (fact, bool) {
	if v.Unit.Kind == "" {
		return fact{}, false
	}
	if v.Unit.Kind == "none" || len(v.Unit.Groups) == 0 {
		return fact{"Unit of work", "none", prose(v.Unit.Why)}, true
	}
	g := v.mainGroup()
	m := v.groupMetric("unit.time", g)
	value := valueOf(m)
	var detail []doc.Span
	if m != nil && m.Summary != nil {
		value = unit.Format(m.Summary.P50, m.Unit)
		detail = append(detail, doc.Text("p50 of "))
	}
	detail = append(detail, v.group(g)...)
	if m != nil && m.Summary != nil {
		detail = append(detail, doc.Text(", p90 "+unit.Format(m.Summary.P90, m.Unit)))
	}
	if value == "" {
		value = unit.Int(g.Count)
	}
	if more := len(v.Unit.Groups) - 1; more > 0 {
		detail = append(detail, doc.Text("; "+plural(int64(more), "other kind")))
	}
	return fact{"Unit of work", value, detail}, true
}

func (v *view) mainGroup() report.UnitGroup {
	best := v.Unit.Groups[0]
	for _, g := range v.Unit.Groups {
		if g.Count > best.Count {
			best = g
		}
	}
	return best
}

// groupMetric is a metric of a group of units: by phase and batch, by phase, or of all units.
func (v *view) groupMetric(id string, g report.UnitGroup) *report.Metric {
	if g.Batch != nil {
		if m := v.metric(id, "phase", g.Phase, "batch", strconv.FormatInt(*g.Batch, 10)); m != nil {
			return m
		}
	}
	if m := v.metric(id, "phase", g.Phase); m != nil {
		return m
	}
	return v.metric(id)
}

// group describes a group of units: "120 × decode (batch 8, 57 kernels each)".
func (v *view) group(g report.UnitGroup) []doc.Span {
	phase := v.word(g.Phase)
	if g.Phase == "" {
		phase = doc.Text("step")
	}
	text := " ("
	if g.Batch != nil {
		text += "batch " + unit.Int(*g.Batch) + ", "
	}
	return doc.Spans(doc.Text(unit.Int(g.Count)+" × "), phase, doc.Text(text+plural(g.Kernels, "kernel")+" each)"))
}
