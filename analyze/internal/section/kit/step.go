package kit

import (
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Step is the judged time, which all findings of a capture refer to, and an account of it that counts every nanosecond
// once. The judged time is the kept units of the main kind on the device on which they take longest, or if there are
// none the window of the busiest device.
type Step struct {
	Device *timeline.Device // nil if the capture holds no GPU work
	Units  int64            // 0: the window
	Of     int64            // ns

	Compute, Comm, Copy, Idle int64
	Graphed                   int64 // of Compute, in CUDA graphs
	Cause                     [timeline.Causes]int64
	Host                      [timeline.HostCauses]int64 // of Cause host
	// HostLeft is Host without the time caused by reading values back, if that is reported separately.
	HostLeft [timeline.HostCauses]int64
	// Kernels is compute by kernel name, each moment given to the kernel that started first; whole CUDA graphs are
	// last.
	Kernels []int64
	// Place of the launching thread while the device waited for it: idle time of the causes sync, host and launch,
	// without the time caused by reading values back, if that is reported separately.
	Where IdlePlace
	// AfterRead is its place in that time, other than ReadBackAt.
	AfterRead  IdlePlace
	Everywhere IdlePlace // Where, that time, and Allocating
	// Meanwhile is the range in which a thread without CUDA calls spent most of the time in which the device waited.
	Meanwhile Meanwhile
	// Allocating is its place in calls that allocate or free memory, which Where leaves out if a finding is about them.
	Allocating IdlePlace
	// ReadBack is idle time while the launching thread was in a copy of at most ReadBackBytes from the device, or in
	// the call that waits for it; Staged in an asynchronous copy of pageable memory of at least StagedBytes; Blocked in
	// a synchronous copy. ReadBacks counts the calls that read back.
	ReadBack, Staged, Blocked int64
	ReadBacks                 int64
	ReadBackAt                string // the range that at least 30 % of that time is in, or empty
	// ReadBackBy is idle time caused by read-backs, by cause: the GPU has finished all launched work when such a call
	// returns, and idles until the thread has launched again.
	ReadBackBy [timeline.Causes]int64
	// OldWaits is idle time in waits in cudaThreadSynchronize, and as long again after each.
	OldWaits int64
	// Short is idle time of cause dependency in gaps of which that part is at most ShortGap ns, and Shorts counts them:
	// the GPU's delay before work that is already launched. Behind is where the work after all such idle time was
	// launched.
	Short, Shorts int64
	Behind        IdlePlace
	// LongWait is the longest part of the idle time of cause dependency in one gap, and LongWaitNext what ran after it,
	// a row of the device.
	LongWait     int64
	LongWaitNext int32
	// LongLaunch is the longest part of the idle time of cause launch that one call holds, LongCall its name's index.
	LongLaunch int64
	LongCall   int32
	// Spans are the judged stretches, disjoint and ascending.
	Spans     interval.Set
	readWaits map[int32]bool // calls that wait for a value read back, by row
	hasRanges bool           // the judged steps have ranges of their own, which do not count as a place inside them
	// Gap is the longest judged gap.
	Gap LongGap
}

// LongGap is a gap: its whole length, the work after it (a row of the device, or None), and the call and thread that
// launched that work.
type LongGap struct {
	interval.Interval
	Next, Call, Thread int32
}

// Limits of copies: a read-back fetches a single value, and staging costs time only if a copy is large. A GPU begins
// queued work within ShortGap ns.
const (
	ShortGap      = 20_000
	ReadBackBytes = 64
	StagedBytes   = 1 << 20
)

// placeShare is the least share of a time, 0..1, that a place must hold to be named.
const placeShare = 0.30

// IdlePlace is the place of some time, by several names.
type IdlePlace struct {
	Total  int64
	Calls  map[LateCall]int64
	Syncs  map[int32]int64 // by name of the blocking call
	Ranges map[string]int64
	// Within is by range, also for the ranges around it.
	Within  map[string]int64
	Threads map[int32]int64
	Stacks  map[int64]StackTime
	// Gaps is how many gaps have host time, and Longest the most host time that one of them has.
	Gaps, Longest int64
	// Early is the host time in the first fifth of each step.
	Early int64
}

// Meanwhile is the activity of another thread while the launching thread was late.
type Meanwhile struct {
	Thread int32
	Range  string  // empty: no range holds most of it
	Share  float64 // of the time
}

// Step is the account of the judged time; of the whole capture even if the input is the steady part.
func (in *Input) Step() *Step {
	if in.Whole != nil {
		in = in.Whole
	}
	return Once(in, "step", func() *Step {
		x := stepLookOf(in)
		if x.step.Device != nil {
			in.Visit(x.tl, x.idle)
			x.finish()
		}
		return &x.step
	})
}

// StepVisitors are the visitors of [Input.Step], one for each device of the input's timeline; none if the step is cut
// from another timeline.
func (in *Input) StepVisitors() []*timeline.Visitor {
	if in.Whole != nil || in.Timeline == nil {
		return nil
	}
	if x := stepLookOf(in); x.step.Device != nil && x.tl == in.Timeline {
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

// Worth is the worth of ns of the judged time; nil if there is no judged time.
func (s *Step) Worth(ns int64) *report.Worth {
	if s.Of <= 0 {
		return nil
	}
	return &report.Worth{Time: min(max(ns, 0), s.Of), Of: s.Of, Units: s.Units}
}

// ReadBacksTold reports whether reading values back costs enough for a finding of its own.
func (s *Step) ReadBacksTold() bool { return Told(s, s.ReadBackIdle()) }

// ReadBackIdle is the idle time caused by read-backs.
func (s *Step) ReadBackIdle() int64 {
	return lists.Total(s.ReadBackBy[:])
}

// IdleLeft is the idle time without the part of the finding on reading values back.
func (s *Step) IdleLeft() int64 { return s.Idle - s.IdleOf(CauseReadBack) }

// What names the judged time.
func (s *Step) What() string {
	if s.Units > 0 {
		return "step"
	}
	return "window"
}

// Told reports whether ns of the judged time are enough for a finding.
func Told(s *Step, ns int64) bool { return s.Share(ns) >= leastWorth }

// AllocationIdle is the judged idle time while the launching thread was in calls that allocate or free memory, and the
// call and the range that most of it was in.
func AllocationIdle(s *Step, t *trace.Trace) (ns int64, call, rng string) {
	calls := s.Allocating.inCalls(t)
	for _, time := range calls {
		ns += time
	}
	list, _ := leading(calls, ns)
	ranges, _ := s.Allocating.ranges()
	return ns, lists.Nth(list, 0, ""), lists.Nth(ranges, 0, "")
}

// Allocates reports whether a call allocates, frees or pins memory at once. Many such calls wait for the device.
func Allocates(name string) bool {
	if strings.Contains(name, "Async") || strings.Contains(name, "FromPool") {
		return false
	}
	return slices.ContainsFunc([]string{"cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaHostRegister",
		"cudaHostUnregister", "cuMemAlloc", "cuMemFree", "cuMemHostAlloc", "cuMemHostRegister",
		"cuMemHostUnregister"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
