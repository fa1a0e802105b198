package present

import (
	"sort"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// fact is one key number of a report, with its label and explanation.
type fact struct {
	label  string
	value  string // the number
	detail []doc.Span
	brief  []doc.Span // the detail if it must fit in one line
	now    bool       // the line about the server's state includes it
	tabled bool       // the terminal summary leaves it out: a table has it, or there is nothing to report
}

// facts returns the key numbers that a capture has, in the order in which a reader asks for them. If there are steps,
// idle time and the top kernel are those of a step and are shown with it.
func (v *View) facts() []fact {
	var list []fact
	ask := []func() (fact, bool){v.kernelTime, v.exposedComm, v.exposedCopy, v.launches, v.sync, v.copies, v.graphs, v.nvtx,
		v.steady, v.load}
	if len(v.stepAnswer()) == 0 {
		ask = append(append([]func() (fact, bool){v.idle, v.topKernel}, ask...), v.unitOfWork)
	}
	for _, f := range ask {
		if f, ok := f(); ok {
			list = append(list, f)
		}
	}
	return append(list, v.evidenceFacts()...)
}

// onDevice names the device of a number, and states that it is the worst one if there are several.
func (v *View) onDevice(device string) []doc.Span {
	spans := doc.Spans("GPU ", v.word(device))
	if len(v.devices()) > 1 {
		spans = append(spans, doc.Text(", the worst of "+strconv.Itoa(len(v.devices()))))
	}
	return spans
}

func (v *View) idle() (fact, bool) {
	device, m := v.worst("gpu.idle_ratio")
	if m == nil || v.warned("no_kernels") {
		return fact{}, false
	}
	detail := v.onDevice(device)
	brief := doc.Spans("GPU ", v.word(device))
	if idle, window := v.value("gpu.idle_time", "device", device), v.value("gpu.window", "device",
		device); idle != "" && window != "" {
		detail = append(detail, doc.Text("; "+idle+" of "+window))
	}
	sep := ": "
	for i, c := range v.causes(device) {
		cause := doc.Spans(sep, v.word(c.Labels["cause"]), " "+ValueOf(c))
		detail = append(detail, cause...)
		if i < 3 {
			brief = append(brief, cause...)
		}
		sep = ", "
	}
	return fact{label: "GPU idle", value: ValueOf(m), detail: detail, brief: brief}, true
}

// causes returns the idle causes of a device, largest first, without zeros.
func (v *View) causes(device string) []*report.Metric {
	var list []*report.Metric
	for _, m := range v.All("gpu.idle_cause_time") {
		if m.Labels["device"] == device && m.Labels["cause"] != "" && m.Value != nil && *m.Value > 0 {
			list = append(list, m)
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return *list[i].Value > *list[j].Value })
	return list
}

func (v *View) topKernel() (fact, bool) {
	t := v.Table("kernels", "kernels")
	if t.Entries() == 0 {
		return fact{}, false
	}
	f := fact{label: "Top kernel", value: Unknown, tabled: true}
	name := t.Str(0, "kernel_name")
	f.detail = doc.Spans(v.name(name))
	text := ""
	if total, ok := t.Num(0, "total"); ok {
		f.value = unit.Format(total, report.Nanoseconds)
		text = ", " + f.value
	}
	if n, ok := t.Int(0, "count"); ok {
		text += " in " + wording.Count(int64(n), "call")
	}
	if mean, ok := t.Num(0, "mean"); ok {
		text += ", mean " + unit.Format(mean, report.Nanoseconds)
	}
	if share, ok := t.Num(0, "share"); ok {
		f.value = unit.Percent(share)
		text += "; share of all kernel time"
	}
	f.detail = append(f.detail, doc.Text(text))
	return f, true
}

func (v *View) kernelTime() (fact, bool) {
	m := v.Metric("kernel.total_time")
	if ValueOf(m) == "" {
		return fact{}, false
	}
	text := "sum over all devices"
	if n := v.value("kernel.count"); n != "" {
		text = n + " kernels, " + text
	}
	if rate := v.value("kernel.rate"); rate != "" {
		text += ", " + rate
	}
	return fact{label: "Kernel time", value: ValueOf(m), detail: doc.Spans(text), tabled: true}, true
}

// exposed is the time in which a class of work kept the device from computing.
func (v *View) exposed(label, id, whole, what string) (fact, bool) {
	device, m := v.worst(id)
	if m == nil || *m.Value == 0 {
		return fact{}, false
	}
	detail := v.onDevice(device)
	if all := v.value(whole, "device", device); all != "" {
		detail = append(detail, doc.Text("; of "+all+" in "+what))
	}
	return fact{label: label, value: ValueOf(m), detail: detail, tabled: true}, true
}

func (v *View) exposedComm() (fact, bool) {
	return v.exposed("Exposed communication", "gpu.exposed_comm_time", "gpu.comm_time", "communication kernels")
}

func (v *View) exposedCopy() (fact, bool) {
	return v.exposed("Exposed copies", "gpu.exposed_copy_time", "gpu.copy_time", "copies and memsets")
}

func (v *View) launches() (fact, bool) {
	m := v.Metric("launch.rate")
	if ValueOf(m) == "" {
		return fact{}, false
	}
	var parts []string
	if n, ok := v.Num("launch.count"); ok {
		parts = append(parts, wording.Count(int64(n), "launch call"))
	}
	if t := v.value("launch.api_time"); t != "" {
		parts = append(parts, t+" inside them")
	}
	f := fact{label: "Launch rate", value: ValueOf(m), tabled: *m.Value == 0,
		brief: doc.Spans(strings.Join(parts, ", "))}
	f.detail = f.brief
	if a := v.ranked("launch.api_time", "api"); len(a) > 0 && len(parts) > 0 {
		all, _ := v.Num("launch.api_time")
		f.detail = doc.Spans(f.brief[0], mostly(*a[0].Value, all), v.word(a[0].Labels["api"]))
	}
	return f, true
}

func (v *View) sync() (fact, bool) {
	m := v.Metric("sync.blocked_time")
	if m == nil { // an older report
		m = v.Metric("sync.total_time")
	}
	if ValueOf(m) == "" {
		return fact{}, false
	}
	f := fact{label: "Blocking sync", value: ValueOf(m), tabled: *m.Value == 0}
	sep := ""
	switch a := v.ranked("sync.total_time", "api"); {
	case len(a) == 1:
		f.brief, sep = doc.Spans(v.word(a[0].Labels["api"])), ", "
	case len(a) > 1:
		all, _ := v.Num("sync.total_time")
		f.brief, sep = doc.Spans(mostly(*a[0].Value, all)[2:], v.word(a[0].Labels["api"])), ", "
	}
	if n, ok := v.Num("sync.count"); ok {
		f.brief = append(f.brief, doc.Text(sep+wording.Count(int64(n), "call")))
		sep = "; "
	}
	f.detail = f.brief
	if total := v.value("sync.total_time"); total != "" && total != f.value {
		f.detail = append(f.detail[:len(f.detail):len(f.detail)], doc.Text(sep+total+" in whole calls, over threads"))
		sep = "; "
	}
	if share := v.value("sync.share"); share != "" {
		f.detail = append(f.detail[:len(f.detail):len(f.detail)],
			doc.Text(sep+"the most blocked thread waits for "+share+" of the window"))
	}
	return f, true
}

// copies returns the copy directions with the most time, over all kinds of memory.
func (v *View) copies() (fact, bool) {
	list := v.ranked("memcpy.time", "direction")
	if len(list) == 0 {
		return fact{}, false
	}
	f := fact{label: "Copies", value: v.value("memcpy.time")}
	if f.value == "" {
		f.value = ValueOf(list[0])
	}
	for i, m := range list[:min(len(list), 4)] {
		d := m.Labels["direction"]
		var part []doc.Span
		if i > 0 {
			part = append(part, doc.Text(", "))
		}
		part = append(part, v.word(d))
		if b := v.value("memcpy.bytes", "direction", d); b != "" {
			part = append(part, doc.Text(" "+b))
		}
		if r := v.value("memcpy.throughput", "direction", d); r != "" {
			part = append(part, doc.Text(" at "+r))
		}
		f.detail = append(f.detail, part...)
		if i < 2 {
			f.brief = append(f.brief, part...)
		}
	}
	return f, true
}

func (v *View) graphs() (fact, bool) {
	m := v.Metric("graph.coverage")
	if ValueOf(m) == "" {
		return fact{}, false
	}
	launches := ""
	if n, ok := v.Num("graph.launches"); ok {
		launches = ", " + wording.Count(int64(n), "graph launch call")
	}
	if *m.Value == 0 && launches == ", 0 graph launch calls" {
		return fact{label: "CUDA graphs", value: "none", detail: doc.Spans("no graph was launched"), tabled: true}, true
	}
	return fact{label: "CUDA graphs", value: ValueOf(m),
		detail: doc.Spans("of kernel time runs inside CUDA graphs" + launches),
		brief:  doc.Spans("of kernel time" + launches), tabled: *m.Value == 0}, true
}

func (v *View) nvtx() (fact, bool) {
	m := v.Metric("nvtx.coverage")
	if ValueOf(m) == "" {
		return fact{}, false
	}
	var phases []doc.Span
	sep := "; "
	for i, p := range v.ranked("phase.gpu_time", "phase") {
		if phase := p.Labels["phase"]; i < 4 && phase != "unmapped" {
			phases = append(phases, doc.Text(sep), v.word(phase), doc.Text(" "+ValueOf(p)))
			sep = ", "
		}
	}
	return fact{label: "NVTX coverage", value: ValueOf(m),
		detail: doc.Spans("of kernel time was launched inside NVTX ranges", phases),
		brief:  doc.Spans("of kernel time", phases)}, true
}

// unitOfWork returns the time of one step, from the main group.
func (v *View) unitOfWork() (fact, bool) {
	if v.Unit.Kind == "" {
		return fact{}, false
	}
	if len(v.devices()) == 0 {
		return fact{}, false // the page already states that there is no GPU work
	}
	if v.Unit.Kind == "none" || len(v.Unit.Groups) == 0 {
		why := v.Unit.Why[strings.LastIndex(v.Unit.Why, ", and ")+1:]
		why, _, _ = strings.Cut(strings.TrimPrefix(why, " and "), ": ")
		return fact{label: "Step (unit of work)", value: "none", detail: Prose(v.Unit.Why), brief: Prose(clip(why))}, true
	}
	g := v.mainGroup()
	f := fact{label: "Step (unit of work)", value: Unknown}
	m := v.groupMetric("unit.time", g)
	switch {
	case m != nil && m.Summary != nil:
		f.value = unit.Format(m.Summary.P50, m.Unit)
		f.detail = append(append(f.detail, doc.Text("p50 of ")), v.group(g)...)
		f.detail = append(f.detail, doc.Text(", p90 "+unit.Format(m.Summary.P90, m.Unit)))
	case ValueOf(m) != "":
		f.value = ValueOf(m)
		f.detail = v.group(g)
	default:
		f.detail = v.group(g)
	}
	f.brief = f.detail // a terminal line has no room for more
	if c := v.Unit.Coverage; c != nil {
		f.detail = append(f.detail[:len(f.detail):len(f.detail)],
			doc.Text("; units cover "+unit.Format(*c, report.Ratio)+" of GPU compute time"))
	}
	if more := len(v.Unit.Groups) - 1; more > 0 {
		f.detail = append(f.detail[:len(f.detail):len(f.detail)], doc.Text("; "+wording.Count(more, "other kind")))
	}
	return f, true
}

// steady is the part of the window that findings cover.
func (v *View) steady() (fact, bool) {
	value := v.value("steady.window")
	if value == "" {
		return fact{}, false
	}
	detail := doc.Spans("of " + unit.Format(float64(v.Window.Length), report.Nanoseconds) + ": the findings are of it")
	return fact{label: "Steady part", value: value, detail: detail, tabled: true}, true
}

// load is the amount copied before the first kernel.
func (v *View) load() (fact, bool) {
	if ns, ok := v.Num("steady.load_copy_time"); !ok || ns < loadShare*float64(v.Window.Length) {
		return fact{}, false
	}
	detail := doc.Spans("of copies (" + v.value("steady.load_copy_bytes") + ") before the first kernel: model load")
	return fact{label: "Load", value: v.value("steady.load_copy_time"), detail: detail, brief: detail}, true
}

// loadShare is the smallest share of the window, 0 to 1, for which copies before the first kernel are reported.
const loadShare = 0.01

// mainGroup returns the group that the metrics without labels describe or, if unknown, the one with the most units.
func (v *View) mainGroup() report.UnitGroup {
	best := v.Unit.Groups[0]
	all := v.Metric("unit.time")
	for _, g := range v.Unit.Groups {
		if m := v.groupMetric("unit.time", g); m != nil && m != all && all != nil && m.Value != nil &&
			all.Value != nil && *m.Value == *all.Value && m.N == all.N {
			return g
		}
		if g.Count > best.Count {
			best = g
		}
	}
	return best
}

// groupMetric returns a metric of a group of units: by phase, batch and tokens, else by phase, else without labels.
func (v *View) groupMetric(id string, g report.UnitGroup) *report.Metric {
	if g.Batch != nil {
		pairs := []string{"phase", g.Phase, "batch", strconv.FormatInt(*g.Batch, 10)}
		if g.Tokens != nil {
			pairs = append(pairs, "tokens", strconv.FormatInt(*g.Tokens, 10))
		}
		if m := v.Metric(id, pairs...); m != nil {
			return m
		}
	}
	if m := v.Metric(id, "phase", g.Phase); m != nil {
		return m
	}
	return v.Metric(id)
}

// group formats a group of units: "120 × decode (batch 8, 742 kernels each)".
func (v *View) group(g report.UnitGroup) []doc.Span {
	phase := v.word(g.Phase)
	if g.Phase == "" {
		phase = doc.Text("step")
	}
	text := " ("
	if g.Batch != nil {
		text += "batch " + unit.Int(*g.Batch) + ", "
	}
	if g.Tokens != nil {
		text += "up to " + wording.Count(*g.Tokens, "token") + ", "
	}
	return doc.Spans(unit.Int(g.Count)+" × ", phase, text+wording.Count(g.Kernels, "kernel")+" each)")
}
