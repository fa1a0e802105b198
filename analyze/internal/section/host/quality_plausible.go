package host

import (
	"strconv"
	"strings"
	"time"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/secret"
)

// flagTime writes a time as --from and --to read it.
func flagTime(ns int64) string {
	d := time.Duration(ns)
	if d > time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Microsecond).String()
}

// checkTimeUnit makes sure that the times are nanoseconds, as far as sizes can tell.
func checkTimeUnit(in *kit.Input, out *kit.Output) *checked {
	k := &in.Trace.Kernels
	lo, hi := k.Starting(in.Span.Start, in.Span.End)
	if len(in.Timeline.Devices) == 0 {
		return unchecked("no GPU work")
	}
	if !in.Trace.RanKernels() {
		return unchecked("no kernels")
	}
	if hi > lo {
		mean := float64(in.KernelStats().All.Total) / float64(hi-lo)
		if mean < shortestMean || mean > longestMeanNs {
			return failed(measured{}, "time_unit",
				"A kernel takes "+formatTime(int64(mean))+" on average, which is not plausible: the times of this file may not "+
					"be in nanoseconds. All times in this report assume that they are.")
		}
	}
	return that(float64(in.Span.Len()) < uncheckable, timed(in.Span.Len(), nil), "time_unit",
		"The time unit could not be checked: the window is only "+formatTime(in.Span.Len())+" long if times are in nanoseconds, as this report assumes.")
}

// checkPIDs are nsys-llm-explainer's checks of the process ids.
func checkPIDs(in *kit.Input, out *kit.Output) *checked {
	t := in.Trace
	var known, zero, large int64
	ran, kernelProcs := in.KernelStats(), map[int32]bool{}
	for _, c := range ran.Cells {
		p := ran.Places[c.B].A
		if p == trace.None {
			continue
		}
		known += c.Count
		kernelProcs[p] = true
		switch pid := t.Procs[p].PID; {
		case pid == 0:
			zero += c.Count
		case pid > largePid:
			large += c.Count
		}
	}
	if known == 0 {
		return unchecked("no kernel names a process")
	}
	apiProcs := lists.Set(in.CallStats().Cells, func(c kit.Crossed) int32 { return in.Trace.ProcOf(c.B) })
	rangeProcs := lists.Set(totalsOfRanges(in).parts, func(r rangeTotal) int32 { return r.proc })
	delete(apiProcs, trace.None)
	delete(rangeProcs, trace.None)
	bad := false
	warn := func(code, text string) {
		bad = true
		out.Warn(code, text)
	}
	zeros, larges := *stat.Ratio(zero, known), *stat.Ratio(large, known)
	switch {
	case zero == known:
		warn("pid_zero", "Every kernel belongs to pid 0: the export does not know the processes, and numbers by process mean nothing.")
	case zeros >= pidShareWarn:
		warn("pid_zero", formatRatio(zeros)+" of the kernels belong to pid 0: the export does not know their process, and numbers by process are incomplete.")
	}
	if larges >= pidShareWarn {
		warn("pid_large", formatRatio(larges)+" of the kernels belong to "+
			"pids above "+formatCount(largePid)+", which no system assigns by default: the process column may hold "+
			"something else.")
	} else if large > 0 {
		warn("pid_large", "Some kernels ("+formatRatio(larges)+") belong to pids above "+formatCount(largePid)+": the process column may hold something else.")
	}
	if len(kernelProcs) == 1 && max(len(apiProcs), len(rangeProcs)) > 1 {
		warn("pid_mismatch", "All kernels belong to one process, while "+strconv.Itoa(len(apiProcs))+
			" made CUDA calls and "+strconv.Itoa(len(rangeProcs))+
			" opened NVTX ranges: either the others launched nothing, or the kernels' process is wrong. Read numbers by process with care.")
	}
	if len(kernelProcs) > 1 {
		for _, d := range in.Timeline.Devices {
			if both := sharedTime(d, in.Span); d.ID >= 0 && float64(both) > sharedWarn*float64(d.Busy()) {
				warn("shared_device", "On GPU "+strconv.Itoa(int(d.ID))+" kernels of several processes run at the same time, for "+formatTime(both)+
					" of "+formatTime(d.Busy())+": the processes number GPUs for themselves (CUDA_VISIBLE_DEVICES) and the capture does not say which GPU is whose, or they share one through MPS. "+
					"Numbers by GPU treat them as one GPU. Captures of nsys from 2025.1 on say which GPU is whose.")
			}
		}
	}
	return that(bad, counted(zero+large, stat.Ratio(zero+large, known)), "", "")
}

// sharedTime is the time in the window in which a kernel of one process runs beside an earlier one of another process.
// A GPU runs one process at a time, unless MPS shares it.
func sharedTime(d *timeline.Device, window interval.Interval) int64 {
	both := kit.Covered{Reached: window.Start}
	last, end := trace.None, window.Start // the process whose kernels end last so far
	for i := range d.Len() {
		if k := d.Kind(i); k != timeline.KernelWork && k != timeline.GraphWork {
			continue
		}
		p, to := d.Proc(i), min(d.End(i), window.End)
		if p != last && p != trace.None && last != trace.None {
			both.Add(max(d.Start(i), window.Start), min(to, end))
		}
		if to > end {
			last, end = p, to
		}
	}
	return both.Ns
}

// checkOverhead reports the cost that the profiler states.
func checkOverhead(in *kit.Input, out *kit.Output) *checked {
	o := &in.Trace.Overhead
	if o.Len() == 0 {
		return unchecked("the export does not say")
	}
	var total int64
	rows := 0
	for i := range o.Len() {
		if in.Host.Holds(o.Start(i)) {
			total += o.Dur(i)
			rows++
		}
	}
	ratio := stat.Ratio(kit.Overhead(in.Trace).Within(in.Span.Start, in.Span.End), in.Span.Len())
	out.From(trace.RoleOverhead, rows, "start", "end")
	out.Int("quality.profiler_overhead", nil, total)
	out.Metric("quality.profiler_overhead_ratio", nil, ratio)
	if ratio == nil {
		return unchecked("the window has no length")
	}
	return that(*ratio >= overheadWarn, timed(total, ratio), "profiler_overhead",
		"Profiler overhead covers "+formatRatio(*ratio)+" of the window: durations of API calls and idle time around it are not the program's own. Trace less (--trace=cuda,nvtx), or capture a shorter time.")
}

// lacking counts the kernels of the window that lack something, and says how many they are of all.
func lacking(in *kit.Input, lacks func(name int32, place kit.Pair) bool) (rows int, m measured, of string) {
	stats, n := in.KernelStats(), int64(0)
	for _, c := range stats.Cells {
		if lacks(c.A, stats.Places[c.B]) {
			n += c.Count
		}
	}
	all := stats.All.Count
	return int(all), counted(n, stat.Ratio(n, all)), formatCount(n) + " of " + formatCount(all) + " kernels "
}

func checkProcesses(in *kit.Input, out *kit.Output) *checked {
	rows, m, of := lacking(in, func(_ int32, place kit.Pair) bool { return place.A == trace.None })
	switch n, _ := m.count.Int(); {
	case rows == 0:
		return unchecked("no kernels")
	case !in.Trace.Has.KernelPID:
		return unchecked("the export has no such column")
	default:
		out.From(trace.RoleKernel, rows, "globalPid")
		out.Int("quality.unknown_process", nil, n)
		return that(n > 0, m, "unknown_process",
			of+"name no process: they count in all GPU times, and in no number by process, range or phase.")
	}
}

func checkDevices(in *kit.Input, out *kit.Output) *checked {
	rows, m, of := lacking(in, func(_ int32, place kit.Pair) bool { return place.B < 0 })
	switch n, _ := m.count.Int(); {
	case rows == 0:
		return unchecked("no kernels")
	case !in.Trace.Has.KernelDevice:
		return failed(measured{}, "unknown_device",
			"The export does not say on which device a kernel ran: all of them are shown as device -1, as if there were only one.")
	default:
		out.From(trace.RoleKernel, rows, "deviceId")
		out.Int("quality.unknown_device", nil, n)
		return that(n > 0, m, "unknown_device", of+"name no device: they are shown as device -1.")
	}
}

func checkKernelNames(in *kit.Input, out *kit.Output) *checked {
	rows, m, of := lacking(in, func(name int32, _ kit.Pair) bool { return strings.HasPrefix(in.Trace.Kernels.Names[name].Name, "#") })
	if rows == 0 {
		return unchecked("no kernels")
	}
	n, _ := m.count.Int()
	return that(n > 0, m, "unknown_name",
		of+"have a name that is missing from the export's strings: they are shown by the number of the name. Export the .nsys-rep again.")
}

func checkOpenRanges(in *kit.Input, out *kit.Output) *checked {
	r := &in.Trace.Ranges
	lo, hi := r.Starting(in.Host.Start, in.Host.End)
	if hi == lo {
		return unchecked("no ranges")
	}
	open := int64(in.OpenRanges())
	out.From(trace.RoleNVTX, hi-lo, "end")
	out.Int("quality.open_ranges", nil, open)
	x := passed(counted(open, stat.Ratio(open, int64(hi-lo))))
	if open > 0 {
		x.result = "ok: the capture stopped inside them"
	}
	return x
}

// privateNames warns of ranges whose names may not be meant for every reader of the report. Ranges that only differ in
// counters count once.
func privateNames(in *kit.Input, out *kit.Output) {
	count := map[secret.Kind]int64{}
	for _, n := range in.Trace.Ranges.Names {
		if kind := secret.Of(n.Text); kind != secret.None {
			count[kind]++
		}
	}
	if len(count) == 0 {
		return
	}
	var kinds []string
	for _, k := range []secret.Kind{secret.Token, secret.Email, secret.Prompt} {
		if count[k] > 0 {
			kinds = append(kinds, formatCount(count[k])+" like "+k.Article())
		}
	}
	out.Warn("private_names", "Names of NVTX ranges that look private: "+strings.Join(kinds, ", ")+". Read them before you share this report, or report on a copy: explain scrub --names hash. Texts that look like a token are replaced by "+secret.Redacted+".")
}

// checkWindow finds one long time without work, which makes totals over the window an average of two different parts.
func checkWindow(in *kit.Input, out *kit.Output) *checked {
	if len(in.Timeline.Devices) == 0 || in.Span.Len() <= 0 {
		return unchecked("no GPU work")
	}
	// Activity of all devices: its length, the number of gaps, and how much of it comes before the longest gap.
	var longest interval.Interval
	var stretches int
	var busy, before int64
	reached := in.Span.Start
	gap := func(to int64) {
		if to-reached > longest.Len() {
			longest, before = interval.Interval{Start: reached, End: to}, busy
		}
	}
	in.Timeline.Together(func(start, end int64) {
		gap(start)
		stretches++
		busy += end - start
		reached = end
	})
	gap(in.Span.End)
	ratio := stat.Ratio(longest.Len(), in.Span.Len())
	out.FromWork(stretches, "start", "end")
	out.Int("quality.longest_gap", nil, longest.Len())
	out.Metric("quality.longest_gap_ratio", nil, ratio)
	from, to := longest.Start-in.Span.Start, longest.End-in.Span.Start
	part, narrow := "load or warm-up before it", "--from "+flagTime(to)
	if before > busy-before {
		part, narrow = "a tail after it", "--to "+flagTime(from)
	}
	steady := ""
	if in.Steady != nil {
		steady = "; findings are of the steady part alone"
	}
	if s := in.Steady; s != nil && (longest.End <= s.Span.Start || longest.Start >= s.Span.End) {
		narrow = "" // the findings are of the steady part, which the gap is no part of
	} else {
		narrow = ": narrow it with " + narrow
		if flags := in.NarrowFlags(); strings.HasPrefix(flags, "--steady") || strings.HasPrefix(flags, "--window") {
			flags, _, _ = strings.Cut(flags, ", --from")
			narrow = strings.Replace(narrow, "narrow it with ", "narrow it with "+flags+" or ", 1)
		}
	}
	return that(*ratio > kit.GapWarn, timed(longest.Len(), ratio), "window_gap",
		"One gap without GPU work is "+formatRatio(*ratio)+" of the window ("+formatTime(longest.Len())+
			", from "+formatTime(from)+" to "+formatTime(to)+" after its start)"+narrow+
			". The window mixes the work with "+part+", and idle time, rates and shares of the window are averages of both"+steady+".")
}
