// Package workunit finds the unit of work: the step that a workload repeats, from markers, CUDA graph launches, the
// program's own ranges or the kernel sequence itself.
//
// Everything is found per track, the GPU work of one process on one device, and over the whole capture. There are two
// ways to get units:
//
//   - From markers: a unit is the GPU work launched inside one range. Which unit a piece of work belongs to is decided
//     by who launched it, so that kernel counts are exact however steps are pipelined.
//   - From an anchor, a piece of work at which each unit starts: a kernel the user named, a graph launch, or one to
//     three kernels in a row that occur once a unit. A unit is what starts from one anchor up to the next.
//
// An anchor is not a distance. Here a decode step is an embedding E, two layers of a norm N and a matrix product G,
// and a sampling kernel S; at the second step a logging kernel L runs as well, and copies C run on a stream of
// their own:
//
//	compute   E N G N G S  E N G L N G S  E N G N G S  E …
//	copies     C              C        C        C
//	units    |-- unit 0 --|--- unit 1 ---|-- unit 2 --|
//
// E occurs once per step, so it is an anchor, as S is. N is not, because it occurs twice: N G and N G S E would be two
// kinds of unit. L makes unit 1 longer by one kernel and moves nothing else, whereas a fixed distance of 6 kernels
// would be out of step from there on, and one of 19 would take three steps for one. Anchors are searched on the stream
// with the most compute time and different kernels, E N G N G S, because streams interleave differently at every step;
// a unit then includes what starts on any stream during it. If another program launches E twice in a row, E E N G N G S, both start one
// unit; if what follows two E in turn is different work, as in E N G N E S S, both parts are one unit.
//
// The best anchor is the one whose units are most alike, by time and by kernels, over the whole capture; a tenth of a
// unit's work may differ. Among equals the shorter unit wins. If the GPU waits for the host before each of many short
// units, these are the steps, even if they differ.
//
// Either way a unit's time runs from the start of its first work to the start of the next unit's first work, so that
// idle time within and between units counts, and every moment between the first and the last unit is in exactly one of
// them. If steps overlap on the device (asynchronous scheduling), the overlap counts in the later one.
package workunit

import (
	"fmt"
	"regexp"
	"sort"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Kinds of unit, by how they were found.
const (
	KindNVTX   = "nvtx"
	KindGraph  = "graph"
	KindKernel = "kernel"
	KindNone   = "none"
)

// Result is the units of a capture.
type Result struct {
	Kind string
	Name string // marker family or pattern, anchor kernel, or empty
	Why  string // how it was found, or why nothing was found
	// Unmatched is set if --unit names a range or a kernel that the capture does not have; the kind is then none.
	Unmatched *NoMatchError

	Units   []Unit // by device, process, then start
	Groups  []Group
	Primary int // index into Groups: in the phase with the most kept time, the group with the most; or -1

	// Coverage is the share of the compute time, 0 to 1, that lies in kept units, warm-up units, and units that an end
	// of the capture cut.
	Coverage float64
	Period   Period // of the kernel sequence, if it was searched
	// Anchors are anchors for cutting units, best first, if the units were found in the kernel sequence or by the
	// program's own ranges.
	Anchors []Anchor

	// Timeline is that of the whole capture, whatever the window.
	Timeline *timeline.Timeline
	// Of gives, for each device of Timeline, the unit of each piece of work.
	Of []Members
	// Between does the same for work launched after the unit's marker ended and before the next began, such as an
	// engine's sampling: it runs in the unit's time or later, but belongs to no unit. It may be nil.
	Between []Members
	between owned // until the search is done
}

// Unit is one step of one process on one device.
type Unit struct {
	Device     int32 // deviceId
	Index      int32 // of the device in Result.Timeline
	Proc       int32 // process, or trace.None
	Start, End int64 // End is the start of the next unit, or the end of its own last work if none follows; ns
	LastWork   int64 // end of its last work

	// HostStart and HostEnd bound the host's work for the unit, in ns: from marker to marker, or from the call that
	// launched its first work to the call that launched the next unit's. HostEnd < HostStart if unknown.
	HostStart, HostEnd int64

	Marker int32 // range, or trace.None
	First  int32 // the first piece of the device's work that is the unit's, or trace.None
	Pieces int32 // of the device's work
	Group  int32 // index into Groups, or -1
	State  State

	// Number counts the units of a process on a device from 0, by start, in every state.
	Number int32
	// Signature hashes the unit's work: its kernels with their launch geometry, and its copies and fills with their
	// bytes, with the number of each, in any order. Equal work has equal signatures in every capture.
	Signature uint64

	incomplete bool // the capture lacks events of it

	closed bool   // another unit follows
	comp   int32  // number of its compute kernels and whole graphs
	busy   int64  // total duration of those, ns
	hash   uint64 // of its kernels' names and the number of each
	anchor int32  // index of the anchor that it starts at
}

// Time is the unit's duration in ns.
func (u *Unit) Time() int64 { return u.End - u.Start }

// HostKnown reports whether HostStart and HostEnd are known.
func (u *Unit) HostKnown() bool { return u.HostEnd > u.HostStart }

// State says whether a unit counts in statistics.
type State uint8

// States of a unit.
const (
	Kept    State = iota
	Cut           // incomplete: at an end of the capture, last without a next one, or with events missing
	Warmup        // slow, at the start
	Other         // different work from every group
	Outside       // starts outside the analysed window
)

// String is the state's name in tables.
func (s State) String() string {
	return [...]string{"kept", "cut", "warmup", "other", "outside"}[s]
}

// Group is one kind of unit.
type Group struct {
	Phase     string // prefill, decode, mixed, …; step if the work is not named
	Batch     int64  // requests in the step; -1 unknown
	Tokens    int64  // prompt tokens of the step, rounded up to a power of two; -1 unknown
	Signature string // hash of the canonical kernel names of one unit and the number of each, the same in every capture
	Kernels   int64  // kernels in one unit, median
	Count     int64  // kept units, over all devices
	Time      int64  // of the kept units together, ns
	Example   int32  // a kept unit with the group's signature, or -1

	kernels []int64
}

// Period describes how the kernel sequence repeats.
type Period struct {
	Kernels    int     // compute kernels in one unit of the main kind, on the stream that was searched; 0: none found
	Share      float64 // share of compute time in units of the main kind, 0 to 1
	Inner      int     // a shorter period inside, such as a layer in a pass; 0: none
	InnerShare float64
	Coverage   float64 // share of compute time in units of all kinds that recur, 0 to 1
	Paired     bool    // two kinds of different kernels alternate, and one of each is a unit
	Families   bool    // names were compared by family, because exact names differ (autotuned tile variants)
	Tracks     int     // processes and devices that repeat it
}

// Input is the input of [NewSearch]. Timeline must be that of the whole capture.
type Input struct {
	Trace    *trace.Trace
	Calls    *timeline.Calls
	Timeline *timeline.Timeline
	Kinds    []kernelname.Info // by kernel name
	Spec     Spec
	// Marked reports whether --unit nvtx:REGEX matches the range name with this tag.
	Marked func(tag uint32) bool
	// MappedPhase, if set, returns the phase that the user maps a range to, by the tag of its name, or empty: it names
	// units that are otherwise unnamed.
	MappedPhase func(tag uint32) string
}

// Find finds the units. It never fails: if there are none, the result is of kind none and says why.
func (f *Search) Find() *Result {
	r := f.finish(f.find())
	r.Anchors = append(r.Anchors, otherAnchors(f, r)...)
	return r
}

// At cuts the capture at an anchor, whatever other units it has. If the anchor does not occur, or the work between its
// occurrences does not recur, the result is of kind none and says so.
func (f *Search) At(anchor *Anchor) *Result {
	return f.finish(f.byAnchor(anchor))
}

// finish completes a result.
func (f *Search) finish(r *Result) *Result {
	r.Timeline = f.Timeline
	r.Of, r.Between = membersOf(f.of), membersOf(r.between)
	f.of, r.between = nil, nil
	if r.Kind == KindNone {
		r.Between = nil
		r.Of = make([]Members, len(f.Timeline.Devices))
		r.Units, r.Groups, r.Primary = nil, nil, -1
	}
	return r
}

// Narrow excludes units that do not start in the window from statistics, and recounts the groups.
func (r *Result) Narrow(window interval.Interval) {
	for i := range r.Units {
		if u := &r.Units[i]; u.Start < window.Start || u.Start >= window.End {
			u.State = Outside
		}
	}
	r.count()
}

// Steady is the interval from the first to the last kept unit over all devices, in ns; ok is false without kept units.
func (r *Result) Steady() (span interval.Interval, ok bool) {
	for _, i := range r.grouped() {
		u := &r.Units[i]
		if !ok {
			span, ok = interval.Interval{Start: u.Start, End: u.End}, true
		}
		span.Start, span.End = min(span.Start, u.Start), max(span.End, u.End)
	}
	return span, ok
}

// Trimmed counts the units that are not kept, by state.
func (r *Result) Trimmed() (cut, warmup, other int64) {
	var n [Outside + 1]int64
	for i := range r.Units {
		n[r.Units[i].State]++
	}
	return n[Cut], n[Warmup], n[Other]
}

// count computes each group's numbers from its kept units, and chooses the primary one: from the phase with the most
// time.
func (r *Result) count() {
	for g := range r.Groups {
		r.Groups[g].Count, r.Groups[g].Time = 0, 0
	}
	for _, u := range r.grouped() {
		x := &r.Units[u]
		r.Groups[x.Group].Count++
		r.Groups[x.Group].Time += x.Time()
	}
	r.Primary = -1
	if mains := r.PhaseMains(); len(mains) > 0 {
		r.Primary = mains[0]
	}
}

// PhaseMains returns the group with the most kept time of each phase, phases with the most time first.
func (r *Result) PhaseMains() []int {
	type phase struct {
		name string
		main int
		time int64
	}
	var phases []phase
	for g := range r.Groups {
		x := &r.Groups[g]
		if x.Count == 0 {
			continue
		}
		p := lists.Entry(&phases, func(p phase) bool { return p.name == x.Phase }, phase{x.Phase, g, 0})
		p.time += x.Time
		if x.Time > r.Groups[p.main].Time {
			p.main = g
		}
	}
	sort.SliceStable(phases, func(i, j int) bool { return phases[i].time > phases[j].time })
	return lists.Map(phases, func(p phase) int { return p.main })
}

// Spec is what the user asked for with --unit. The zero value leaves the choice to Find.
type Spec struct {
	Kind    string // empty, nvtx, kernel, graph or none
	Pattern *regexp.Regexp
}

// ParseSpec parses the value of --unit: nvtx:REGEX, kernel:REGEX, graph, none, or auto. Anything else is an error.
func ParseSpec(text string) (Spec, error) {
	kind, expr, hasExpr := strings.Cut(text, ":")
	switch {
	case text == "" || text == "auto":
		return Spec{}, nil
	case text == KindGraph || text == KindNone:
		return Spec{Kind: text}, nil
	case hasExpr && (kind == KindNVTX || kind == KindKernel):
		if expr == "" {
			return Spec{}, fmt.Errorf("%s: is empty; write %s:REGEX", kind, kind)
		}
		re, err := regexp.Compile(expr)
		if err != nil {
			return Spec{}, err
		}
		return Spec{Kind: kind, Pattern: re}, nil
	}
	return Spec{}, fmt.Errorf("%q is not one of auto, nvtx:REGEX, kernel:REGEX, graph, none", text)
}
