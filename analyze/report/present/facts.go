package present

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// fact is one key number of a report, with its label and explanation; without a value the report has none.
type fact struct {
	label  string
	value  string     // the number
	detail []doc.Span // what matters most first: a terminal cuts it at a clause
	now    bool       // the line about the server's state includes it
	tabled bool       // the terminal summary leaves it out: a table has it, or there is nothing to report
}

// factsOf returns the key numbers that a capture has, in the order in which a reader asks for them.
func factsOf(v *View) (list []fact) {
	for _, of := range []func(*View) fact{idleFact, kernelTimeFact, launchFact, syncFact, copiesFact, graphsFact, nvtxFact,
		steadyFact, loadFact, stepFact} {
		if f := of(v); f.value != "" {
			list = append(list, f)
		}
	}
	return append(list, evidenceFacts(v)...)
}

// onDevice names the device of a number, and states that it is the worst one if there are several.
func onDevice(v *View, device string) []doc.Span {
	spans := doc.Spans("GPU ", v.names.word(device))
	if n := len(v.devices()); n > 1 {
		spans = append(spans, doc.Text(", the worst of "+strconv.Itoa(n)))
	}
	return spans
}

// idleFact is left out if there are steps: then idle time is that of a step and is shown with it.
func idleFact(v *View) fact {
	device, m := v.worst("gpu.idle_ratio")
	if m == nil || warned(v, "no_kernels") || len(stepAnswer(v)) > 0 {
		return fact{}
	}
	spans := onDevice(v, device)
	cause := func(m *report.Metric) any { return doc.Spans(v.names.word(m.Labels["cause"]), " "+ValueOf(m)) }
	if causes := doc.Joined(", ", v.causes(device), cause); len(causes) > 0 {
		spans = doc.Spans(spans, ": ", causes)
	}
	idle, window := v.value("gpu.idle_time", "device", device), v.value("gpu.window", "device", device)
	if idle != "" && window != "" {
		spans = append(spans, doc.Text("; "+idle+" of "+window))
	}
	return fact{label: "GPU idle", value: ValueOf(m), detail: spans}
}

// causes returns the idle causes of a device, largest first, without zeros.
func (v *View) causes(device string) []*report.Metric {
	return largestFirst(v.All("gpu.idle_cause_time"), func(m *report.Metric) bool {
		return m.Labels["device"] == device && m.Labels["cause"] != ""
	})
}

func kernelTimeFact(v *View) fact {
	text := "sum over all devices"
	if n := v.value("kernel.count"); n != "" {
		text = n + " kernels, " + text
	}
	if rate := v.value("kernel.rate"); rate != "" {
		text += ", " + rate
	}
	return fact{label: "Kernel time", value: v.value("kernel.total_time"), detail: doc.Spans(text), tabled: true}
}

func launchFact(v *View) fact {
	rate, ok := v.Num("launch.rate")
	if !ok {
		return fact{}
	}
	var parts []string
	if n, ok := v.Num("launch.count"); ok {
		parts = append(parts, wording.Count(int64(n), "launch call"))
	}
	if t := v.value("launch.api_time"); t != "" {
		parts = append(parts, t+" inside them")
	}
	f := fact{label: "Launch rate", value: v.value("launch.rate"), tabled: rate == 0, detail: doc.Spans(strings.Join(parts, ", "))}
	if a := v.ranked("launch.api_time", "api"); len(a) > 0 && len(parts) > 0 {
		all, _ := v.Num("launch.api_time")
		f.detail = doc.Spans(f.detail, mostly(*a[0].Value, all), v.names.word(a[0].Labels["api"]))
	}
	return f
}

func syncFact(v *View) fact {
	blocked, ok := v.Num("sync.blocked_time")
	if !ok {
		return fact{}
	}
	f := fact{label: "Blocking sync", value: v.value("sync.blocked_time"), tabled: blocked == 0}
	total, _ := v.Num("sync.total_time")
	if a := v.ranked("sync.total_time", "api"); len(a) == 1 {
		f.detail = doc.Spans(v.names.word(a[0].Labels["api"]))
	} else if len(a) > 1 {
		f.detail = doc.Spans(mostly(*a[0].Value, total)[2:], v.names.word(a[0].Labels["api"]))
	}
	say := func(sep, text string) {
		if len(f.detail) > 0 {
			text = sep + text
		}
		f.detail = append(f.detail, doc.Text(text))
	}
	if n, ok := v.Num("sync.count"); ok {
		say(", ", wording.Count(int64(n), "call"))
	}
	if share := v.value("sync.share"); share != "" {
		say("; ", "the most blocked thread waits for "+share+" of the window")
	}
	if whole := v.value("sync.total_time"); whole != "" && whole != f.value {
		say("; ", whole+" in whole calls, over threads")
	}
	return f
}

// copiesFact names the copy directions with the most time, over all kinds of memory.
func copiesFact(v *View) fact {
	list := v.ranked("memcpy.time", "direction")
	if len(list) == 0 {
		return fact{}
	}
	detail := doc.Joined(", ", list[:min(len(list), 4)], func(m *report.Metric) any {
		d := m.Labels["direction"]
		text := ""
		if b := v.value("memcpy.bytes", "direction", d); b != "" {
			text += " " + b
		}
		if r := v.value("memcpy.throughput", "direction", d); r != "" {
			text += " at " + r
		}
		return doc.Spans(v.names.word(d), text)
	})
	return fact{label: "Copies", value: cmp.Or(v.value("memcpy.time"), ValueOf(list[0])), detail: detail}
}

func graphsFact(v *View) fact {
	coverage, ok := v.Num("graph.coverage")
	if !ok {
		return fact{}
	}
	launches := ""
	if n, ok := v.Num("graph.launches"); ok {
		launches = ", " + wording.Count(int64(n), "graph launch call")
	}
	if coverage == 0 && launches == ", 0 graph launch calls" {
		return fact{label: "CUDA graphs", value: "none", detail: doc.Spans("no graph was launched"), tabled: true}
	}
	return fact{label: "CUDA graphs", value: v.value("graph.coverage"), detail: doc.Spans("of kernel time" + launches),
		tabled: coverage == 0}
}

func nvtxFact(v *View) fact {
	list := v.ranked("phase.gpu_time", "phase")
	list = slices.DeleteFunc(list[:min(len(list), 4)], func(p *report.Metric) bool { return p.Labels["phase"] == "unmapped" })
	phases := doc.Joined(", ", list, func(p *report.Metric) any { return doc.Spans(v.names.word(p.Labels["phase"]), " "+ValueOf(p)) })
	if len(phases) > 0 {
		phases = doc.Spans("; ", phases)
	}
	return fact{label: "NVTX coverage", value: v.value("nvtx.coverage"), detail: doc.Spans("of kernel time", phases)}
}

// stepFact says why there is no step.
func stepFact(v *View) fact {
	if v.Unit.Kind != "none" || len(v.devices()) == 0 { // the page already states that there is no GPU work
		return fact{}
	}
	return fact{label: "Step (unit of work)", value: "none", detail: Prose(v.Unit.Why)}
}

// steadyFact is the part of the window that findings cover.
func steadyFact(v *View) fact {
	detail := doc.Spans("of " + unit.Format(float64(v.Window.Length), report.Nanoseconds) + ": findings refer to it")
	return fact{label: "Steady part", value: v.value("steady.window"), detail: detail, tabled: true}
}

// loadFact is the amount copied before the first kernel.
func loadFact(v *View) fact {
	if ns, ok := v.Num("steady.load_copy_time"); !ok || ns < loadShare*float64(v.Window.Length) {
		return fact{}
	}
	detail := doc.Spans("of copies (" + v.value("steady.load_copy_bytes") + ") before the first kernel: model load")
	return fact{label: "Load", value: v.value("steady.load_copy_time"), detail: detail}
}

// loadShare is the smallest share of the window, 0 to 1, for which copies before the first kernel are reported.
const loadShare = 0.01

// mainGroup returns the group that the metrics without labels describe; an empty one if there is none.
func (v *View) mainGroup() report.UnitGroup {
	main := lists.Find(v.Unit.Groups, func(g *report.UnitGroup) bool { return g.Main })
	return report.ValueOr(main, report.UnitGroup{})
}

// group formats a group of units: "120 × decode (batch 8, 742 kernels each)".
func groupText(v *View, g report.UnitGroup) []doc.Span {
	phase := v.names.word(g.Phase)
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
