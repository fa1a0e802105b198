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
// E occurs once a step: it is an anchor, as S is. N is none, since it occurs twice: N G and N G S E would be two
// kinds of unit. L makes unit 1 longer by one kernel and moves nothing, while a fixed distance of 6 kernels would
// be out of step from there on, and one of 19 would call three steps one. Anchors are looked for on the stream with
// most compute time, E N G N G S, because streams interleave differently at every step; a unit then gets what
// starts on any stream in it.
//
// Of all anchors the one wins whose units are most alike, by time and by kernels, over the whole capture; a tenth of a
// unit's work may differ. Among equals the shorter unit wins, and where the GPU waits for the host before each of many
// short units, these are the steps, though they differ.
//
// Either way a unit's time runs from the start of its first work to the start of the next unit's first work, so that
// idle time within and between units counts, and every moment between the first and the last unit is in exactly one of
// them. If steps overlap on the device (asynchronous scheduling), the overlap counts in the later one.
package workunit

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// Kinds of unit, by how they were found.
const (
	KindNVTX   = "nvtx"
	KindGraph  = "graph"
	KindKernel = "kernel"
	KindNone   = "none"
)

// Result is what was found.
type Result struct {
	Kind string
	Name string // marker family or pattern, anchor kernel, or empty
	Why  string // how it was found, or why nothing was
	Rule string // which units take part in statistics
	// Unmatched is set, and the kind none, where --unit names a range or a kernel that the capture does not have.
	Unmatched *NoMatchError

	Units   []Unit // by device, process, then start
	Groups  []Group
	Primary int // of the phase with most kept time the group with most; or -1

	// Coverage is the share of the compute time, 0 to 1, that lies in units: kept ones, those of the warm-up and
	// those that an end of the capture cut.
	Coverage float64
	Period   Period // of the kernel sequence, if that was looked at
	// Anchors are up to three places at which units may be cut, best first, where the unit was found in the kernel
	// sequence.
	Anchors []Anchor

	// Timeline is the whole capture's, which the units are cut from, whatever the window.
	Timeline *timeline.Timeline
	// Of says, for each device of Timeline, which unit its work belongs to.
	Of []Members
	// Between is nil, or likewise for work that was launched after the unit's marker had ended and before the next
	// began, such as an engine's sampling: it runs in the unit's time or later, but in no unit.
	Between []Members
	between [][]int32 // until the search is done
}

// Unit is one step of one process on one device.
type Unit struct {
	Device     int32 // deviceId
	Index      int32 // of the device in Result.Timeline
	Proc       int32 // process, or trace.None
	Start, End int64 // End is the start of the next unit, or of its own last work's end if none follows
	LastWork   int64 // end of its last work

	// HostStart and HostEnd bound what the host did for the unit: from marker to marker, or from the call that
	// launched the first work to the call that launched the next unit's. HostEnd < HostStart if that is not
	// known.
	HostStart, HostEnd int64

	Marker int32 // range, or trace.None
	Group  int32 // index into Groups, or -1
	State  State

	// Number counts the units of a process on a device from 0 in the order of their start, whatever became of them.
	Number int32
	// Signature is a hash of the unit's work: of its kernels with their launch geometry and of its copies and fills
	// with their bytes, how often each, in any order. Equal work has equal signatures in every capture.
	Signature uint64

	incomplete bool // events of it are missing from the capture

	closed bool   // another unit follows
	first  int32  // piece of work
	hash   uint64 // of its kernels' names, how often each
	anchor int32  // which kind of anchor it starts at
}

// Time is the unit's duration.
func (u *Unit) Time() int64 { return u.End - u.Start }

// HostKnown reports whether HostStart and HostEnd mean anything.
func (u *Unit) HostKnown() bool { return u.HostEnd > u.HostStart }

// State says whether a unit takes part in statistics.
type State uint8

// States of a unit.
const (
	Kept    State = iota
	Cut           // incomplete: at an end of the capture, last with nothing to close it, or with events missing
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
	Phase     string // prefill, decode, mixed, …; step where the work is not named
	Batch     int64  // requests in the step; -1 unknown
	Tokens    int64  // prompt tokens of the step, rounded up to a power of two; -1 unknown
	Signature string // hash of the canonical kernel names of one unit and how often each ran, the same in every capture
	Kernels   int64  // kernels in one unit, median
	Count     int64  // kept units, over all devices
	Time      int64  // of the kept units together
	Example   int32  // a kept unit with the group's signature, or -1

	kernels []int64
}

// Period is what the kernel sequence repeats.
type Period struct {
	Kernels    int     // compute kernels of the stream that was looked at in one unit of the main kind; 0: none found
	Share      float64 // of compute time in units of the main kind
	Inner      int     // a shorter period inside, such as a layer in a pass; 0: none
	InnerShare float64
	Coverage   float64 // share of compute time in units of all kinds that recur
	Paired     bool    // two kinds of different kernels alternate, and one of each is a unit
	Families   bool    // names were compared by family, because exact ones differ (autotuned tile variants)
	Tracks     int     // processes and devices that repeat it
}

// Input is what Find looks at. Timeline must be that of the whole capture.
type Input struct {
	Trace    *trace.Trace
	Calls    *timeline.Calls
	Timeline *timeline.Timeline
	Kinds    []kernelname.Info // by kernel name
	Spec     Spec
	// Range is the name, as [Result.Name] has it, of the program's own ranges that the units of another capture are;
	// empty: of none. If this one has such ranges, they are its units, as long as neither step markers nor graph
	// launches tell.
	Range string
	// Marked reports whether the tag of a range name says that --unit nvtx:REGEX matches it.
	Marked func(tag uint32) bool
	// MappedPhase, if set, is the phase that the user maps a range to, by the tag of its name, or empty: it names
	// units that nothing else names.
	MappedPhase func(tag uint32) string
}

// Search looks for the units of one capture, in one way or in several. What the ways share stays in memory until Free.
type Search struct{ f *finder }

// NewSearch prepares a search.
func NewSearch(in *Input) *Search { return &Search{newFinder(in)} }

// Find finds the units. It never fails: without a unit the result is of kind none and says why. If neither step
// markers nor graph launches tell, they are cut at the given anchor, of another capture, if there is one and it fits.
func (s *Search) Find(given *Anchor) *Result {
	s.f.begin()
	return s.f.finish(s.f.find(given))
}

// At cuts the capture at an anchor, whatever other units it has. If that does not occur, or what lies between its
// occurrences does not recur, the result is of kind none and says so.
func (s *Search) At(anchor *Anchor) *Result {
	s.f.begin()
	return s.f.finish(s.f.byAnchor(anchor))
}

// Free gives back what only the search needs. Results stay.
func (s *Search) Free() { s.f.free() }

// finish makes a result of what was found.
func (f *finder) finish(r *Result) *Result {
	r.Timeline = f.Timeline
	memory := f.Trace.Memory()
	r.Of, r.Between = membersOf(memory, f.of), membersOf(memory, r.between)
	f.of, r.between = nil, nil
	if r.Kind == KindNone {
		r.Free(memory)
		r.Of = make([]Members, len(f.Timeline.Devices))
		r.Units, r.Groups, r.Primary = nil, nil, -1
	}
	return r
}

// Free gives back what says which work belongs to which unit; the rest of the result stays.
func (r *Result) Free(memory *spill.Arena) {
	for _, of := range [][]Members{r.Of, r.Between} {
		for d := range of {
			of[d].free(memory)
		}
	}
	r.Of, r.Between = nil, nil
}

// Narrow takes the units out of the statistics that do not start in the window, and counts the groups anew.
func (r *Result) Narrow(window interval.Interval) {
	for i := range r.Units {
		if u := &r.Units[i]; u.Start < window.Start || u.Start >= window.End {
			u.State = Outside
		}
	}
	r.count()
}

// Steady is the time from the first to the last kept unit over all devices.
func (r *Result) Steady() (span interval.Interval, ok bool) {
	for i := range r.Units {
		u := &r.Units[i]
		if u.State != Kept {
			continue
		}
		if !ok {
			span, ok = interval.Interval{Start: u.Start, End: u.End}, true
		}
		span.Start, span.End = min(span.Start, u.Start), max(span.End, u.End)
	}
	return span, ok
}

// Trimmed counts the units that are not kept, by state.
func (r *Result) Trimmed() (cut, warmup, other int64) {
	for i := range r.Units {
		switch r.Units[i].State {
		case Cut:
			cut++
		case Warmup:
			warmup++
		case Other:
			other++
		case Kept, Outside:
		}
	}
	return cut, warmup, other
}

// count fills in what a group says of its kept units, and chooses the primary one: of the phase with most time.
func (r *Result) count() {
	for g := range r.Groups {
		r.Groups[g].Count, r.Groups[g].Time = 0, 0
	}
	for i := range r.Units {
		if u := &r.Units[i]; u.State == Kept && u.Group >= 0 {
			r.Groups[u.Group].Count++
			r.Groups[u.Group].Time += u.Time()
		}
	}
	r.Primary = -1
	if mains := r.PhaseMains(); len(mains) > 0 {
		r.Primary = mains[0]
	}
}

// PhaseMains is the group with most kept time of each phase, in the order of the phases' time.
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
		at := slices.IndexFunc(phases, func(p phase) bool { return p.name == x.Phase })
		if at < 0 {
			at = len(phases)
			phases = append(phases, phase{x.Phase, g, 0})
		}
		p := &phases[at]
		p.time += x.Time
		if x.Time > r.Groups[p.main].Time {
			p.main = g
		}
	}
	sort.SliceStable(phases, func(i, j int) bool { return phases[i].time > phases[j].time })
	mains := make([]int, len(phases))
	for i := range phases {
		mains[i] = phases[i].main
	}
	return mains
}

// Spec is what the user said a unit is. The zero value leaves it to Find.
type Spec struct {
	Kind    string // empty, nvtx, kernel, graph or none
	Pattern *regexp.Regexp
}

// ParseSpec reads the value of --unit: nvtx:REGEX, kernel:REGEX, graph, none, or auto.
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
