package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/serverlog"
	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
)

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
	out.With(trace.RoleNVTX, "text", "textId")
	out.With(trace.RoleKernel, "start", "end")
	out.Int("serve.joined_steps", nil, int64(len(list))).N = int64(len(units))
	if len(list) == 0 {
		out.Note("None of the steps in the trace has its number in the log: they are not of the same time.")
		return
	}
	t := out.Table("joined_steps")
	var whole, gpu []int64
	for _, s := range list {
		device := report.Null
		if d, ok := s.log.Device(); ok {
			device = report.I(d.Nanoseconds())
		}
		whole, gpu = append(whole, s.unit), append(gpu, s.gpu)
		t.Row(kit.Int("step", s.number), kit.Text("type", serverlog.TypeNames[s.log.Type()]),
			kit.Int("requests", int64(s.log.Context)+int64(s.log.Generation)), kit.Int("host", s.log.Elapsed().Nanoseconds()),
			kit.Put("device", device), kit.Int("gpu", s.gpu), kit.Int("unit", s.unit))
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
	for i := range in.Units.Units {
		u := &in.Units.Units[i]
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
	list := make([]joinedStep, 0, len(longest))
	for _, s := range longest {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b joinedStep) int { return cmp.Compare(a.number, b.number) })
	return list
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
