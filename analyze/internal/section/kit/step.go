package kit

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
)

// Step is the judged time, which all findings of a capture are of, and an account of it in which every nanosecond is
// once: the kept units of the main kind on the device where they take longest, or the window of the busiest device
// where there are none.
type Step struct {
	Device *timeline.Device // nil where the capture holds no GPU work
	Units  int64            // 0: the window
	Of     int64            // ns

	Compute, Comm, Copy, Idle int64
	Graphed                   int64 // of Compute, in CUDA graphs
	Cause                     [timeline.Causes]int64
	Host                      [timeline.HostCauses]int64 // of Cause host
	// HostLeft is Host without what reading values back leads to, where that is told for itself.
	HostLeft [timeline.HostCauses]int64
	// Kernels is compute by kernel name, each moment given to the kernel that started first; whole CUDA graphs are last.
	Kernels []int64
	// Where the launching thread was while the device waited for it: idle time of the causes sync, host and launch,
	// without what reading values back leads to, where that is told for itself.
	Where IdlePlace
	// ReadBack is idle time while the launching thread was in a copy of at most ReadBackBytes from the device, or in the
	// call that waits for it; Staged in an asynchronous copy of pageable memory of at least StagedBytes; Blocked in a
	// synchronous copy. ReadBacks counts the calls that read back.
	ReadBack, Staged, Blocked int64
	ReadBacks                 int64
	ReadBackAt                string // the range that at least 30 % of that time is in, or empty
	// ReadBackBy is idle time that read-backs lead to, by cause: the GPU has done all that was launched when such a call
	// returns, and idles until the thread has launched again.
	ReadBackBy [timeline.Causes]int64
	// Short is idle time of cause dependency in gaps of which that part is at most ShortGap, and Shorts counts them: the
	// GPU takes so long to begin what is launched already. Behind is where the work after all such idle time was launched.
	Short, Shorts int64
	Behind        IdlePlace
	// LongWait is the longest part of the idle time of cause dependency in one gap, and LongWaitNext what ran after it, a
	// row of the device.
	LongWait     int64
	LongWaitNext int32
	// LongLaunch is the longest part of the idle time of cause launch that one call holds, LongCall its name's index.
	LongLaunch int64
	LongCall   int32
	// Spans are the judged stretches, disjoint and ascending.
	Spans     interval.Set
	readWaits map[int32]bool // calls that wait for a value read back, by row
	hasRanges bool           // the judged steps have ranges of their own, which are no place within them
	// Gap is the longest judged gap.
	Gap LongGap
}

// LongGap is a gap: how long it is in all, what ran after it (a row of the device, or None), and the call and thread
// that launched that.
type LongGap struct {
	interval.Interval
	Next, Call, Thread int32
}

// Limits of copies: a read-back fetches a value, and staging costs where a copy is large. A GPU begins queued work
// within ShortGap ns.
const (
	ShortGap      = 20_000
	ReadBackBytes = 64
	StagedBytes   = 1 << 20
)

// placeShare is the least share of a time that its place holds.
const placeShare = 0.30

// IdlePlace is where time passed, by what names it.
type IdlePlace struct {
	Total  int64
	Calls  map[LateCall]int64
	Syncs  map[int32]int64 // by name of the blocking call
	Ranges map[string]int64
	// Within is by range, those around it counted too.
	Within  map[string]int64
	Threads map[int32]int64
	Stacks  map[int64]StackTime
	// Meanwhile is, of threads without CUDA calls, the range that one of them was in for most of the time.
	Meanwhile Meanwhile
	// Gaps is how many gaps have host time, and Longest the most host time that one of them has.
	Gaps, Longest int64
	// Early is the host time in the first fifth of each step.
	Early int64
}

// Meanwhile is what another thread did while the launching thread was late.
type Meanwhile struct {
	Thread int32
	Range  string  // empty: nothing that holds most of it
	Share  float64 // of the time
}

// JudgedUnits are the kept units of the main kind on the device where their median is longest, of one process.
func (in *Input) JudgedUnits() []int32 {
	x := in.Units
	if x == nil || x.Kind == workunit.KindNone || x.Primary < 0 {
		return nil
	}
	type key struct{ device, proc int32 }
	lists := map[key][]int32{}
	var keys []key
	for i := range x.Units {
		if u := &x.Units[i]; u.State == workunit.Kept && int(u.Group) == x.Primary {
			k := key{u.Device, u.Proc}
			if lists[k] == nil {
				keys = append(keys, k)
			}
			lists[k] = append(lists[k], int32(i))
		}
	}
	times := map[int32][]int64{} // by device
	for k, list := range lists {
		for _, u := range list {
			times[k.device] = append(times[k.device], x.Units[u].Time())
		}
	}
	medians := make(map[int32]float64, len(times))
	for device, list := range times {
		slices.Sort(list)
		medians[device] = float64(list[(len(list)-1)/2]+list[len(list)/2]) / 2
	}
	if len(keys) == 0 {
		return nil
	}
	best, most := keys[0], medians[keys[0].device]
	for _, k := range keys[1:] {
		switch m := medians[k.device]; {
		case k.device == best.device && len(lists[k]) > len(lists[best]), k.device != best.device && m > most:
			best, most = k, m
		}
	}
	return lists[best]
}

// Step is the account of the judged time, of the whole capture also where the input is of the steady part.
func (in *Input) Step() *Step {
	if in.Whole != nil {
		in = in.Whole
	}
	return Once(in, "step", func() *Step {
		x := in.stepLook()
		if x.Device != nil {
			in.Visit(x.tl, x.idle)
			x.finish()
		}
		return &x.Step
	})
}

// StepVisitors are the visitors of [Input.Step], one for each device of the input's timeline; none where the step is
// cut from another.
func (in *Input) StepVisitors() []*timeline.Visitor {
	if in.Whole != nil || in.Timeline == nil {
		return nil
	}
	if x := in.stepLook(); x.Device != nil && x.tl == in.Timeline {
		return x.idle
	}
	return nil
}

// Share is a part of the judged time, 0 to 1.
func (s *Step) Share(ns int64) float64 {
	if s.Of <= 0 {
		return 0
	}
	return float64(ns) / float64(s.Of)
}

// Worth is what ns of the judged time are worth; nil where none is.
func (s *Step) Worth(ns int64) *report.Worth {
	if s.Of <= 0 {
		return nil
	}
	return &report.Worth{Time: min(max(ns, 0), s.Of), Of: s.Of, Units: s.Units}
}

// ReadBacksTold reports whether reading values back costs enough to be told by itself.
func (s *Step) ReadBacksTold() bool { return s.Share(s.ReadBackIdle()) >= leastWorth }

// ReadBackIdle is the idle time that read-backs lead to.
func (s *Step) ReadBackIdle() (ns int64) {
	for _, part := range s.ReadBackBy {
		ns += part
	}
	return ns
}

// IdleLeft is the idle time without what is told of reading values back.
func (s *Step) IdleLeft() int64 {
	if s.ReadBacksTold() {
		return s.Idle - s.ReadBackIdle()
	}
	return s.Idle
}

// What the judged time is called.
func (s *Step) What() string {
	if s.Units > 0 {
		return "step"
	}
	return "window"
}
