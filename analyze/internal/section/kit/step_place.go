package kit

import (
	"math"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// IdleSite is the main cause of the judged idle time, and its place.
type IdleSite struct {
	Cause int // timeline.CauseSync, …
	Host  int // timeline.HostOS, …, where the cause is host
	Time  int64
	Of    int64 // the idle time of all causes that it was chosen from
	// Ranges are the innermost ranges that hold at least 30 % of the time, at most two; the text names what is in
	// quotes. Empty if there is none.
	Ranges  []string
	In      int64    // time in them
	AtLeast bool     // In is a lower bound: other findings hold some of that time
	Calls   []string // those that hold at least 30 % of the time of the cause, at most two
	Chain   string   // callers of the first call of the operating system
	Thread  string   // the only one that holds at least 30 % of the time, or empty
	Also    []string // other ranges and calls, at most two, that hold at least 5 % of the judged time

	Meanwhile Meanwhile
	// Loads is the kernel after the gap that holds most of the time, if no range explains it: its code is loaded in the
	// gap, and it never ran before.
	Loads string
}

// IdleSite is the main cause and place of the judged idle time.
func (in *Input) IdleSite() *IdleSite {
	var idle [timeline.Causes]int64
	for c := range idle {
		idle[c] = in.Step().IdleOf(c)
	}
	return in.IdleSiteOf(&idle)
}

// IdleSiteOf is the same of a part of that time, by cause.
func (in *Input) IdleSiteOf(idle *[timeline.Causes]int64) *IdleSite {
	s, t := in.Step(), in.Trace
	x := &IdleSite{Host: -1, Of: lists.Total(idle[:])}
	for c, ns := range idle {
		if c != timeline.CauseHost && ns > x.Time {
			x.Cause, x.Time = c, ns
		}
	}
	w, by := &s.Where, &s.HostLeft
	if x.Of > s.IdleLeft() { // no finding is about read-backs after all
		w, by = &s.Everywhere, &s.Host
	}
	host := lists.Total(by[:])
	for h, ns := range by {
		ns = int64(math.Round(float64(ns) * float64(idle[timeline.CauseHost]) / float64(max(host, 1))))
		if ns > x.Time {
			x.Cause, x.Host, x.Time = timeline.CauseHost, h, ns
		}
	}
	switch x.Cause {
	case timeline.CauseDependency:
		x.Ranges, x.In = s.Behind.ranges()
		return x
	case timeline.CauseUnknown:
		return x
	}
	if x.Ranges, x.In = w.ranges(); len(x.Ranges) > 0 {
		left := idle[timeline.CauseSync] + idle[timeline.CauseHost] + idle[timeline.CauseLaunch]
		x.leave(max(0, w.Total-left), left)
	}
	if x.Meanwhile = s.Meanwhile; len(x.Ranges) == 0 && x.Cause == timeline.CauseHost {
		x.Loads = s.loadedInGap(in)
	}
	threads := map[string]int64{}
	for th, ns := range w.Threads {
		threads[threadText(t, th)] += ns
	}
	if list, _ := leading(threads, w.Total); len(list) == 1 {
		x.Thread = list[0]
	}
	calls := map[string]int64{}
	var of int64
	for key, ns := range w.Calls {
		if x.Cause == timeline.CauseHost && key.Cause == x.Host {
			calls[key.Name(t)] += ns
			of += ns
		}
	}
	if x.Cause == timeline.CauseSync {
		calls, of = w.blocking(&t.API), s.IdleOf(timeline.CauseSync)
	}
	x.Calls, _ = leading(calls, of)
	if len(x.Calls) > 0 && x.Host == timeline.HostOS {
		x.Chain = CallersOf(t, w.Stacks)[x.Calls[0]].From
	}
	x.Also = w.further(t, alsoShare*float64(s.Of), x.Ranges, x.Calls)
	return x
}

// leave leaves out idle time that other findings hold, wherever it was: of the time in the ranges at least the rest is
// left. They are not named if that is less than 30 % of what is left in all.
func (x *IdleSite) leave(told, left int64) {
	x.In, x.AtLeast = x.In-told, told > 0
	if float64(x.In) < placeShare*float64(left) {
		x.Ranges, x.In = nil, 0
	}
}

// loadedInGap is the kernel after the longest gap, if that gap is most of the judged idle time, its thread loads code
// in it and launches next, and the kernel never ran before; else empty.
func (s *Step) loadedInGap(in *Input) string {
	t := in.Trace
	g := &s.Gap
	if 2*g.Len() < s.Idle || g.Thread == trace.None || s.Device.Kind(int(g.Next)) != timeline.KernelWork {
		return ""
	}
	name := t.Kernels.Name(s.Device.Row(int(g.Next)))
	for i := range t.Kernels.Len() {
		if t.Kernels.Name(i) == name && t.Kernels.Start(i) < g.Start {
			return ""
		}
	}
	for i := int(g.Call) - 1; i >= 0 && t.API.Start(i) >= g.Start; i-- {
		if t.API.Thread(i) == g.Thread {
			if call := t.API.Names[t.API.Name(i)].Name; strings.HasPrefix(call, "cuModuleLoad") || strings.HasPrefix(call, "cuLibraryLoad") ||
				strings.HasPrefix(call, "cudaLibraryLoad") {
				return in.Kinds[name].Display
			}
			return ""
		}
	}
	return ""
}

// ranges are those that hold at least 30 % of the time, and the time in them: the innermost, or the narrowest around
// them if many are inside of one.
func (w *IdlePlace) ranges() (names []string, in int64) {
	if names, in = leading(w.Ranges, w.Total); len(names) > 0 {
		return names, in
	}
	for name, ns := range w.Within {
		if float64(ns) >= placeShare*float64(w.Total) && ns > 0 &&
			(len(names) == 0 || ns < in || ns == in && name < names[0]) {
			names, in = []string{name}, ns
		}
	}
	return names, in
}

// Inside says which calls and which ranges hold at least 30 % of the time, as the end of a sentence; empty if none
// does.
func (w *IdlePlace) Inside(t *trace.Trace, say func(ns int64) string) (text string) {
	if names, ns := leading(w.inCalls(t), w.Total); len(names) > 0 {
		text = ", " + say(ns) + " in " + Quoted(names...)
	}
	if names, ns := w.ranges(); len(names) > 0 {
		text += ", " + say(ns) + " inside " + Quoted(names...)
	}
	return text
}

// slow reports whether the thread launches more slowly than the GPU works: its time is spread over many gaps of each
// step, and no gap holds a third of it.
func (x *IdleSite) slow(s *Step) bool {
	w := &s.Where
	return x.Cause == timeline.CauseHost && (x.Host == timeline.HostRunning || x.Host == timeline.HostUnknown) && len(x.Ranges) == 0 &&
		w.Gaps >= leastGaps*max(s.Units, 1) && 3*w.Longest*max(s.Units, 1) <= x.Time
}

// leastGaps of a step are many; they are at the beginning of steps if earlyShare of their time is.
const (
	leastGaps  = 10
	earlyShare = 0.8
)

// manyGaps says how many gaps have host time, and whether they are at the beginning of the steps.
func (s *Step) manyGaps() string {
	w := &s.Where
	if s.Units == 0 {
		return "in " + unit.Int(w.Gaps) + " gaps"
	}
	text := "in " + unit.Int((w.Gaps+s.Units/2)/s.Units) + " gaps of each step"
	host := lists.Total(s.HostLeft[:])
	if float64(w.Early) >= earlyShare*float64(host) {
		text += ", most of it in its first fifth: the queue is empty when a step begins"
	}
	return text
}

// leading are the names, at most two, that each hold at least 30 % of a time: the second only if it holds a third of
// the time of the first.
func leading(times map[string]int64, of int64) (names []string, ns int64) {
	for _, name := range ByTime(times) {
		if of > 0 && float64(times[name]) >= placeShare*float64(of) && len(names) < 2 {
			names, ns = append(names, name), ns+times[name]
		}
	}
	return names, ns
}

// threadText names a thread for a sentence.
func threadText(t *trace.Trace, th int32) string {
	x := &t.Threads[th]
	if x.Proc != trace.None && x.TID == t.Procs[x.Proc].PID {
		return "the main thread"
	}
	return threadNamed(x.Name, "the launching thread")
}

// threadNamed names a thread, or says which it is without a name; PyTorch's profiler calls such a thread "thread 17".
func threadNamed(name, without string) string {
	if name == "" {
		return without
	}
	return "thread " + quoted(strings.TrimPrefix(name, "thread "))
}

// quoted is a name of the capture as prose marks it, cut where it is long.
func quoted(name string) string {
	return "`" + wording.Shorten(strings.ReplaceAll(name, "`", "'"), maxPlace) + "`"
}

const maxPlace = 80 // characters of a name in a title

// Quoted are names for a sentence.
func Quoted(names ...string) string {
	list := lists.Map(names, quoted)
	return strings.Join(list, " and ")
}

// Each is a time of the judged steps per step, else of the window: "143 ms of each step".
func (s *Step) Each(ns int64) string {
	switch {
	case s.Units == 0:
		return unit.Format(float64(ns), report.Nanoseconds)
	case stall(s) > 0:
		return unit.Format(float64(ns)/float64(s.Units), report.Nanoseconds) + " per step on average"
	}
	return unit.Format(float64(ns)/float64(s.Units), report.Nanoseconds) + " of each step"
}

// stall is the judged part of the longest gap if it holds a large share of the idle time of all steps, and a step
// usually idles for much less; else 0.
func stall(s *Step) int64 {
	if ns := s.Spans.Within(s.Gap.Start, s.Gap.End); float64(ns) >= stallShare*float64(s.Idle) && ns*s.Units >= stallMeans*s.Idle {
		return ns
	}
	return 0
}

// Bounds of a stall: of the idle time of all steps, and in mean idle times of a step.
const (
	stallShare = 0.20
	stallMeans = 3
)

// Stall says which part of the idle time of all steps one gap is; empty if no gap is a stall.
func Stall(s *Step) string {
	ns := stall(s)
	if ns == 0 {
		return ""
	}
	return "; one gap of " + unit.Format(float64(s.Gap.Len()), report.Nanoseconds) + " is " +
		unit.Percent(float64(ns)/float64(s.Idle)) + " of the idle time of all " + unit.Int(s.Units) + " steps"
}
