package engine

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/serverlog"
	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
)

var DeviceSteps = kit.Section{
	ID: "device_steps", Group: report.GroupStep, Title: "Host and device time of a step", Evidence: []file.Kind{file.ServerLog},
	Derivation: "TensorRT-LLM's iteration log (print_iter_log) states what each step took on the host, and with the next " +
		"step what it took on the device. Statistics are over the steps for which both are known.",
	Findings: []kit.FindingDef{
		{ID: "host_bound_steps", Title: "Most steps take longer on the host than on the device"},
	},
	Metrics: []report.MetricDef{
		kit.EventTime("serve.step_device_time", report.Lower, report.Leave,
			"time of a step on the device, as the engine logs it (median)").Summarised().By("", "type"),
		kit.EventTime("serve.step_host_time", report.Lower, report.Leave,
			"time of the same steps on the host (median)").Summarised().By("", "type"),
		kit.Ratio("serve.host_bound_steps", report.Lower, report.Leave,
			"share of the steps that take longer on the host than on the device"),
		kit.NoisyCount("serve.joined_steps", report.None, report.Leave,
			"steps that the log and the trace both have, by their number; n counts those of the trace"),
		kit.EventTime("serve.joined_gpu_time", report.Lower, report.Leave,
			"time of a joined step on the GPU in the trace, from its first to its last work (median)").Summarised(),
		kit.EventTime("serve.joined_unit_time", report.Lower, report.Leave,
			"time of a joined step in the trace up to the start of the next one (median)").Summarised(),
	},
	Tables: []report.Table{
		{ID: "device_steps", Title: "Host and device time by type", File: "device_steps.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("type", "Type"),
			kit.CountCol("steps", "Steps"),
			kit.MeanCol("host", "Host, median", "host_p50_ms"),
			kit.MeanCol("device", "Device, median", "device_p50_ms"),
			kit.MeanCol("host_p99", "Host, p99", "host_p99_ms"),
			kit.MeanCol("device_p99", "Device, p99", "device_p99_ms"),
			kit.RatioCol("host_bound", "Host longer", "pct_host_bound"),
		}},
		{ID: "joined_steps", Title: "Steps of the log and of the trace", File: "joined_steps.csv", Merge: report.Leave, Columns: []report.Column{
			kit.IDCol("step", "Step"),
			kit.TextCol("type", "Type"),
			kit.CountCol("requests", "Requests"),
			kit.NsCol("host", "Host, log", "log_host_ms"),
			kit.NsCol("device", "Device, log", "log_device_ms"),
			kit.NsCol("gpu", "GPU, trace", "trace_gpu_ms"),
			kit.NsCol("unit", "Whole step, trace", "trace_unit_ms"),
		}},
	},
	Run: func(in *kit.Input, out *kit.Output) {
		deviceSteps(in, out)
		joinSteps(in, out)
	},
}

// hostBound is the share of steps, 0..1, with a host slower than the device, from which it is a finding.
const hostBound = 0.5

func deviceSteps(in *kit.Input, out *kit.Output) {
	list := &in.Evidence.Log.Iterations
	type times struct {
		host, device []int64
		longer       int64 // on the host
		late, taken  int64 // ns: the host over the device, the longer of the two
	}
	var byType [serverlog.Types + 1]times // the last one covers all types
	for i := range list.Len() {
		it := list.At(i)
		device, ok := it.Device()
		if !ok {
			continue
		}
		for _, x := range []*times{&byType[it.Type()], &byType[serverlog.Types]} {
			x.host, x.device = append(x.host, it.Elapsed().Nanoseconds()), append(x.device, device.Nanoseconds())
			if late := it.Elapsed() - device; late > 0 {
				x.longer++
				x.late += late.Nanoseconds()
			}
			x.taken += max(it.Elapsed(), device).Nanoseconds()
		}
	}
	all := &byType[serverlog.Types]
	if len(all.host) == 0 {
		out.Status(report.NotApplicable, "the log states no time of the device (TensorRT-LLM: print_iter_log writes it)")
		return
	}
	out.FromEvidence(file.ServerLog, len(all.host), "host_step_time", "prev_device_step_time")
	t := out.Table("device_steps")
	for k := range byType {
		x := &byType[k]
		if len(x.host) == 0 {
			continue
		}
		name, labels := "all", report.Labels(nil)
		if k < int(serverlog.Types) {
			name = serverlog.TypeNames[k]
			labels = kit.Labels("type", name)
		}
		share := stat.Ratio(x.longer, int64(len(x.host)))
		host := out.Summary("serve.step_host_time", labels, x.host).Summary
		device := out.Summary("serve.step_device_time", labels, x.device).Summary
		t.Row(
			kit.Text("type", name), kit.Int("steps", int64(len(x.host))), kit.Float("host", host.P50),
			kit.Float("device", device.P50), kit.Float("host_p99", host.P99), kit.Float("device_p99", device.P99),
			kit.Maybe("host_bound", share))
	}
	t.Add()
	share := stat.Ratio(all.longer, int64(len(all.host)))
	out.Metric("serve.host_bound_steps", nil, share).N = int64(len(all.host))
	if share != nil && *share >= hostBound {
		out.Find("host_bound_steps",
			kit.Refs("serve.host_bound_steps", "serve.step_host_time", "serve.step_device_time"),
			"The GPU waits for the host: the overlap scheduler and CUDA graphs (cuda_graph_config) take work off it; a trace says what the host does.").
			Costs(kit.WorthOf(report.OfRun, float64(all.late), float64(all.taken)))
	}
}

// maxJoined bounds the units whose step number is read again from the trace.
const maxJoined = 1 << 16

// joinedStep is a step that the log and the trace both have, ns.
type joinedStep struct {
	number, unit, gpu int64 // unit: to the start of the next step; gpu: from its first to its last work
	log               *serverlog.Iteration
}

// joinSteps matches the steps of the log with the units of the trace: TensorRT-LLM writes the number of the iteration
// into the range around it, "[Executor] _forward_step 7: …", and into its log, "iter = 7".
func joinSteps(in *kit.Input, out *kit.Output) {
	units := stepUnits(in)
	if len(units) == 0 {
		return
	}
	logged, twice := stepsOfLog(&in.Evidence.Log.Iterations)
	list := make([]joinedStep, 0, len(units))
	for _, u := range units {
		if it, ok := logged[u.number]; ok {
			u.log = it
			list = append(list, u)
		}
	}
	out.FromEvidence(file.ServerLog, len(list), "iter", "host_step_time", "prev_device_step_time")
	out.Source.With(trace.RoleNVTX, "text", "textId")
	out.Source.With(trace.RoleKernel, "start", "end")
	out.Int("serve.joined_steps", nil, int64(len(list))).N = int64(len(units))
	if len(list) == 0 {
		out.Note("None of the steps in the trace has its number in the log: they are not of the same time.")
		return
	}
	t := out.Table("joined_steps")
	var whole, gpu []int64
	for _, s := range list {
		whole, gpu = append(whole, s.unit), append(gpu, s.gpu)
		row := []kit.Field{kit.Int("step", s.number), kit.Text("type", serverlog.TypeNames[s.log.Type()]),
			kit.Int("requests", int64(s.log.Context)+int64(s.log.Generation)), kit.Int("host", s.log.Elapsed().Nanoseconds()),
			kit.Int("gpu", s.gpu), kit.Int("unit", s.unit)}
		if d, ok := s.log.Device(); ok {
			row = append(row, kit.Int("device", d.Nanoseconds()))
		}
		t.Partial(row...)
	}
	out.Summary("serve.joined_unit_time", nil, whole)
	out.Summary("serve.joined_gpu_time", nil, gpu)
	t.Cut(in.Options.Top, "host", "device", "gpu", "unit").Add()
	if twice > 0 {
		out.Note("Numbers that the log has more than once, as after a restart, are joined with no step.")
	}
}

// stepUnits are the units whose marker has a number, by number; with several GPUs, the unit that took longest.
func stepUnits(in *kit.Input) []joinedStep {
	if in.NoTrace || in.Evidence.Log.Iterations.Len() == 0 {
		return nil
	}
	var ranges, of []int
	for i, u := range in.Units.Units {
		if u.Marker == trace.None || u.State == workunit.Cut || len(ranges) == maxJoined {
			continue
		}
		if name := in.Trace.Ranges.Name(int(u.Marker)); strings.Contains(in.Trace.Ranges.Names[name].Text, "_forward_step") {
			ranges, of = append(ranges, int(u.Marker)), append(of, i)
		}
	}
	texts, err := in.Trace.RangeText(ranges)
	if err != nil {
		return nil
	}
	longest := map[int64]joinedStep{}
	for k, text := range texts {
		m, ok := kernelname.ParseMarker(text)
		if !ok || m.Engine != kernelname.EngineTRTLLM || m.Step == kernelname.Unknown {
			continue
		}
		u := &in.Units.Units[of[k]]
		s := joinedStep{number: m.Step, unit: u.Time(), gpu: u.LastWork - u.Start}
		if s.gpu >= longest[m.Step].gpu {
			longest[m.Step] = s
		}
	}
	return slices.SortedFunc(maps.Values(longest), func(a, b joinedStep) int { return cmp.Compare(a.number, b.number) })
}

// stepsOfLog are the steps by number, without numbers that occur more than once.
func stepsOfLog(all *serverlog.Iterations) (steps map[int64]*serverlog.Iteration, twice int) {
	steps, seen := make(map[int64]*serverlog.Iteration, all.Len()), map[int64]bool{}
	for i := range all.Len() {
		it := all.At(i)
		number := int64(it.Index)
		if seen[number] {
			delete(steps, number)
			twice++
			continue
		}
		seen[number], steps[number] = true, it
	}
	return steps, twice
}
