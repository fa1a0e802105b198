package kit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// hostDoes says what the launching thread does, by host cause.
var hostDoes = [timeline.HostCauses]string{
	timeline.HostAPI: " is in", timeline.HostProfiler: " is held up by the profiler", timeline.HostOS: " sits in",
	timeline.HostNotScheduled: " is on no CPU", timeline.HostRunning: " runs code between launches",
	timeline.HostUnknown: " does not launch, and no reason was recorded",
}

// Title says what the thread does and where, and how long.
func (x *IdleSite) Title(in *Input) string {
	s := in.Step()
	text := "GPU idle " + unit.Percent(s.Share(s.Idle))
	if left := s.IdleLeft(); x.Of < s.Idle {
		told := " in other findings; "
		if x.Of == left {
			told = " after read-backs; "
		}
		text += ": " + unit.Percent(s.Share(s.Idle-x.Of)) + told
		if x.Cause != timeline.CauseDependency { // which has its own share
			text += "in the other " + unit.Percent(s.Share(x.Of)) + ", "
		}
	} else {
		text += ": "
	}
	who := cmp.Or(x.Thread, "the launching thread")
	calls := Quoted(x.Calls...)
	switch x.Cause {
	case timeline.CauseDependency:
		return text + unit.Percent(s.Share(x.Time)) + s.BehindLaunch(in)
	case timeline.CauseUnknown:
		return text + "no reason was recorded"
	case timeline.CauseSync:
		text += who + " is blocked"
		if calls != "" {
			text += " in " + calls
		}
	case timeline.CauseLaunch:
		switch {
		case x.oneLaunch(in):
			text += "one call of " + quoted(in.Trace.API.Names[s.LongCall].Name) + " takes " + unit.Format(float64(s.LongLaunch), report.Nanoseconds)
		case s.Cause[timeline.CauseLaunch] >= s.Compute:
			text += "launching takes longer than the work"
		default:
			text += who + " is in launch calls"
		}
	case timeline.CauseHost:
		if x.Loads != "" {
			text += "a gap of " + unit.Format(float64(s.Gap.Len()), report.Nanoseconds) + " ends with the first launch of " + quoted(x.Loads) +
				", whose code is loaded just before"
			break
		}
		if x.slow(s) {
			text += who + " launches more slowly than the GPU works, " + s.manyGaps()
			break
		}
		if len(x.Ranges) > 0 && (x.Host == timeline.HostRunning || x.Host == timeline.HostUnknown) {
			text += who + " is"
		} else {
			text += who + hostDoes[x.Host]
		}
		switch {
		case calls != "" && x.Host != timeline.HostProfiler:
			text += " " + calls
		case x.Host == timeline.HostOS:
			text += " calls of the operating system"
		case x.Host == timeline.HostAPI:
			text += " other CUDA calls"
		}
	}
	switch {
	case x.Loads != "":
	case len(x.Ranges) > 0:
		text += " inside " + Quoted(x.Ranges...)
		switch {
		case x.AtLeast:
			text += ", at least " + s.Each(x.In)
		case x.In <= x.Of:
			text += ", " + s.Each(x.In)
		}
	case x.Chain != "":
		text += " (" + quoted(x.Chain) + ")"
	default:
		text += x.noRange(in)
	}
	if len(x.Also) > 0 {
		text += "; also in " + Quoted(x.Also...)
	}
	if m := &x.Meanwhile; m.Range != "" {
		text += "; " + threadNamed(in.Trace.Threads[m.Thread].Name, "another thread") + " is in " + quoted(m.Range) + " meanwhile, " + unit.Percent(m.Share) + " of that time"
	}
	if b := TwoTimes(in.Units); b != nil {
		text += "; " + b.String()
	}
	return text + Stall(s)
}

// noRange says that no range explains the time, as the end of a sentence; empty if that is not known.
func (x *IdleSite) noRange(in *Input) string {
	s, text := in.Step(), "; no range"
	if s.hasRanges {
		text += " inside the step"
	}
	switch {
	case x.AtLeast || !in.Trace.Ranges.Any():
		return ""
	case len(s.Where.Ranges) > 0:
		return text + " holds 30 % of that"
	}
	return text + " covers it"
}

// BehindLaunch says what is known of idle time after the launch, as the end of a sentence.
func (s *Step) BehindLaunch(in *Input) string {
	text := " behind launched work, and what it waits for is not resolved"
	switch {
	case 2*s.LongWait >= s.Cause[timeline.CauseDependency] && s.Cause[timeline.CauseDependency] > 0:
		text = " behind launched work, most of it one wait of " + unit.Format(float64(s.LongWait), report.Nanoseconds) + " before " +
			quoted(in.WorkNames().Of(s.Device, int(s.LongWaitNext))) + ", and what that waits for is not resolved"
	case s.MostlyShort():
		text = " behind launched work, most of it in short gaps before queued kernels, " +
			unit.Format(float64(s.Short)/float64(s.Shorts), report.Nanoseconds) + " on average"
	}
	if names, _ := s.Behind.ranges(); len(names) > 0 {
		text += ", launched inside " + Quoted(names...)
	}
	return text
}

// MostlyShort reports whether most of the idle time of cause dependency is how long the GPU takes to begin queued work.
func (s *Step) MostlyShort() bool {
	return s.Shorts > 0 && 2*s.Short >= s.Cause[timeline.CauseDependency]
}

// oneLaunch reports whether one call is most of the idle time of cause launch: its first launch loads a kernel's code.
func (x *IdleSite) oneLaunch(in *Input) bool {
	s := in.Step()
	return s.Units == 0 && 2*s.LongLaunch >= s.Cause[timeline.CauseLaunch]
}

// BehindAdvice is what to do about idle time after the launch.
func (s *Step) BehindAdvice(in *Input) []string {
	if s.MostlyShort() {
		return []string{"The GPU takes a few µs to begin each queued kernel: fewer and larger ones have fewer gaps (torch.compile, the engine's fused kernels), and a CUDA graph has shorter ones" + in.Engine().graphFlag() + "."}
	}
	return []string{"It waits for an event, another stream or the device: look at cudaStreamWaitEvent calls, and at the stream of the work before the longest gaps.",
		"Work of another process on the GPU, or a capture without its launches, looks the same."}
}

// Place is the range, else the chain or the call.
func (x *IdleSite) Place() string {
	switch {
	case len(x.Ranges) > 0:
		return strings.Join(x.Ranges, ", ")
	case x.Chain != "":
		return x.Chain
	case x.Loads != "":
		return x.Loads
	}
	return strings.Join(x.Calls, ", ")
}

// Advice are the two lines that the evidence selects.
func (x *IdleSite) Advice(in *Input) []string {
	where := "The table of the longest idle gaps has what ran before and after them."
	if len(x.Ranges) == 0 && !in.Trace.Ranges.Any() {
		where = "NVTX ranges around the parts of a step (--trace=…,nvtx) would say where in the program this is."
	}
	engine, what := in.Engine(), ""
	group := "" // of the call of the operating system that the thread sits in
	if x.Host == timeline.HostOS {
		group = OSGroup(lists.Nth(x.Calls, 0, ""))
	}
	switch {
	case x.Cause == timeline.CauseSync:
		what = "Remove the barrier from the step (.item(), .cpu(), torch.cuda.synchronize()), or read the result one step later through an event." + engine.AsyncScheduling()
	case x.Cause == timeline.CauseLaunch && x.oneLaunch(in):
		what = "The first launch of a kernel loads its code: launch it once before what is measured, or load eagerly (CUDA_MODULE_LOADING=EAGER)."
	case x.Cause == timeline.CauseLaunch:
		what = "One launch per kernel costs more than the kernels: run the step as a CUDA graph" + engine.graphFlag() + ", or fuse small kernels (torch.compile)."
	case x.Cause == timeline.CauseDependency:
		return in.Step().BehindAdvice(in)
	case x.Cause == timeline.CauseUnknown:
		return []string{"The capture does not hold the launching calls of this time (it was cut, or API rows were dropped), or nothing ran after it. Capture with --trace=cuda,nvtx and a longer window."}
	case x.named("dataload", "data_load", "dataset", "next_batch", "prefetch", "fetch", "reader", "_next_data", "[dali]", "loader"):
		what = "The step waits for its input: load ahead, with more workers, a longer prefetch queue or decoded data in memory."
	case x.Loads != "" || x.named("compile", "nvrtc", "inductor", "ptxas", "cicc", "autotun"):
		what = "Code is compiled or tuned while the program runs: do it before what is measured (warm-up), and keep the compiler's cache between runs."
	case group == OSDisk:
		what = "The thread reads or writes files: read them ahead in large blocks, on a thread that does not launch, or keep the data in memory."
	case group == OSSleep:
		what = "The thread sleeps: wait on the event or condition itself instead of polling."
	case group != "":
		what = "The thread waits for another thread, a file or a sleep: have the result ready before the step asks for it, or hand the work to a thread that does not launch."
	case x.Host == timeline.HostAPI:
		what = "Calls that load modules, allocate, pin or query belong before the steps: warm up, load eagerly (CUDA_MODULE_LOADING=EAGER), keep memory in a pool."
	case x.Host == timeline.HostProfiler:
		return []string{"This time disappears without the profiler: trace fewer kinds of events, CUDA graphs as a whole, no stacks."}
	case x.Host == timeline.HostNotScheduled && !in.Trace.Tables.Has(trace.RoleOS):
		what = "The thread sleeps or has no CPU: calls of the operating system (--trace=…,osrt) show where it sleeps."
	case x.Host == timeline.HostNotScheduled:
		what = "More threads want to run than there are CPUs: give the process more (its container's limit, taskset), or see who had the CPU in the host section."
	case x.Host == timeline.HostUnknown && !in.Trace.Tables.Has(trace.RoleOS) && !in.Trace.Tables.Has(trace.RoleSched):
		return []string{ahead(in.Step(), engine),
			"Capture what the host does: explain capture --host, or nsys profile with --trace=cuda,nvtx,osrt --cpuctxsw=process-tree --sample=process-tree."}
	case len(x.Ranges) > 0:
		return []string{"Look at what the program does there between launches, and move it out of the step or to another thread." + engine.AsyncScheduling(),
			"If it is launching kernel by kernel, a CUDA graph" + engine.graphFlag() + " makes it one call."}
	default:
		what = ahead(in.Step(), engine)
	}
	return []string{what, where}
}

// ahead is what to do where the thread prepares and launches more slowly than the GPU works.
func ahead(s *Step, engine Engine) string {
	if 2*s.Graphed > s.Compute {
		return "The step runs as a CUDA graph already: prepare the next one while it runs, or batch more work per step." + engine.AsyncScheduling()
	}
	return "Batch more work per step, or run it as a CUDA graph" + engine.graphFlag() +
		": the thread prepares and launches more slowly than the GPU works." + engine.AsyncScheduling()
}

// named reports whether what is waited in, or what another thread does meanwhile, has one of the words in its name.
func (x *IdleSite) named(words ...string) bool {
	text := strings.ToLower(strings.Join(x.Ranges, " ") + " " + x.Chain + " " + x.Meanwhile.Range)
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}
