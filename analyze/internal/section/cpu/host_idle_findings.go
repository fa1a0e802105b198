package cpu

import (
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/report"
)

// Bounds from which the findings name the work of the launching thread.
const (
	gilShare   = 0.10 // of the host time
	frameShare = 0.30 // of the samples, and …
	frameLow   = 0.20 // … the lower end of its interval
	frameMost  = 0.95 // of the samples: functions on nearly every stack explain nothing
)

func (x *late) findings(in *kit.Input, out *kit.Output) {
	if !in.RanKernels() {
		return
	}
	s := in.Step()
	if ns := s.Host[timeline.HostProfiler]; ns > 0 && s.Device != nil {
		out.Find("host_profiler",
			[]report.MetricRef{kit.Ref("gpu.host_cause_time", "device", strconv.Itoa(int(s.Device.ID)), "cause", "profiler")},
			"This time disappears without the profiler: trace less (fewer kinds of events, CUDA graphs as a whole with "+
				"--cuda-graph-trace=graph, no stacks), or a shorter time.",
		).OfIdle(s, ns, timeline.CauseHost)
	}
	x.gilFinding(in, out, s)
	x.frameFinding(out)
}

func (x *late) gilFinding(in *kit.Input, out *kit.Output, s *kit.Step) {
	for _, m := range out.Metrics() {
		if m.ID == "host.gil_time" && m.Value != nil && *m.Value >= gilShare*float64(x.total) {
			ns := int64(*m.Value)
			out.Find("host_gil", []report.MetricRef{kit.Ref("host.gil_time")},
				"Other threads of the process run Python: move them to a process of their own (tokenizing, HTTP, logging), or let them release the lock.",
			).OfIdle(s, int64(float64(s.Cause[timeline.CauseHost])*float64(ns)/float64(x.total)), timeline.CauseHost)
		}
	}
}

// frameFinding names the function that most samples are in, except functions on nearly every stack; a Python function
// if Python stacks were sampled.
func (x *late) frameFinding(out *kit.Output) {
	frames, samples, ratio, count := x.python, x.pythonSamples, "host.python_ratio", "host.python_sample_count"
	best := mostIn(frames, samples)
	if best < 0 {
		frames, samples, ratio, count = x.frames, x.stacked, "host.frame_ratio", "host.sample_count"
		best = mostIn(frames, samples)
	}
	if best < 0 {
		return
	}
	out.Find("host_frame", []report.MetricRef{kit.Ref(ratio, "frame", frames[best].name), kit.Ref(count)},
		"The share is an estimate from samples: the table of functions has its interval. Look at what the function does in every step.")
}

// mostIn is the index of the function that a finding names, or -1. Among functions with equally many samples the one
// that is innermost most often comes first.
func mostIn(frames []lateFrame, samples int64) int {
	best := -1
	for i, f := range frames[:min(len(frames), maxNames)] {
		low, _ := stat.Wilson(f.within, samples)
		share := float64(f.within) / float64(samples)
		if share >= frameShare && low >= frameLow && share <= frameMost && !slices.ContainsFunc(interpreter, f.begins) &&
			(best < 0 || f.within > frames[best].within) {
			best = i
		}
	}
	return best
}

// interpreter are functions of the Python interpreter, which do not tell what Python runs.
var interpreter = []string{"_PyEval", "PyEval", "_PyFunction", "_PyObject", "PyObject_", "_Py", "Py_", "[unresolved", "__libc", "_start",
	"start_thread", "main", "clone"}

func (f *lateFrame) begins(with string) bool { return strings.HasPrefix(f.name, with) }
