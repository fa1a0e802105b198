package report

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// UnitSteps describes a unit of work kernel by kernel: for each main kind of a phase on its slowest device, and for the
// main kind on the other devices, as far as there is room.
type UnitSteps struct {
	Names      []string `json:"names"`      // of kernels, calls and ranges; what is written elsewhere is the place here
	Categories []string `json:"categories"` // of kernels, by name; empty for what is none
	// Stacks are the ranges that launching calls are inside of, by turns: the place of the range around it, in which
	// they stand as pairs, or -1, and its place in Names. A range stands behind the one around it.
	Stacks []int64     `json:"stacks,omitempty"`
	List   []*UnitStep `json:"list"`
}

// Stack is the names of the ranges of a place in Stacks, the outermost first.
func (s *UnitSteps) Stack(place int) (list []string) {
	for ; place >= 0; place = int(s.Stacks[2*place]) {
		list = append(list, s.Names[s.Stacks[2*place+1]])
	}
	slices.Reverse(list)
	return list
}

// StepCauses are the causes of idle time in the order in which they are within a gap.
var StepCauses = []string{"sync", "host", "launch", "dependency", "unknown"}

const stepCauses = 5

// UnitStep is one kind of unit on one device: the sequence of its kernels in the median unit, each of which is a
// position. Every nanosecond of its units belongs to a position, to the end (the time after a unit's last kernel until
// the next unit starts), or to the rest (kernels of other units, and kernels without a position). All sums are over the
// kept units, or if there are more than 4,096 over so many of them, evenly spread, and add up:
//
//	Time = Σ (gaps + copies + alone) over positions + gaps and copies at the end + rest
//
// Columns are by position and written as [Position] explains; Positions gives them back.
type UnitStep struct {
	Group   string `json:"group"`  // id of the kind
	Device  int64  `json:"device"` // deviceId
	Units   int64  `json:"units"`  // kept units that the sums are over
	Sampled int64  `json:"sampled"`
	Time    int64  `json:"time"`    // sum of the units' times, ns
	Aligned int64  `json:"aligned"` // kernels of the units that are at a position
	Kernels int64  `json:"kernels"` // all of them
	// Folded says that the sequence was too long: neighbours of one category on one stream are one position.
	Folded bool `json:"folded"`

	Name   []int64 `json:"name"`   // places in Names
	Stream []int64 `json:"stream"` // runs of the streamId
	Ran    []int64 `json:"ran"`    // runs of the number of units that it ran in
	// runs of the sum of offsets from the unit's start, less what comes before it
	Start       []int64 `json:"start"`
	StartMedian []int64 `json:"start_median"` // ns, changes
	Alone       []int64 `json:"alone"`        // ns, sums
	AloneMedian []int64 `json:"alone_median"` // ns, mean less median
	Hidden      []int64 `json:"hidden"`       // runs of the sum of durations less Alone, ns
	TimeMedian  []int64 `json:"time_median"`  // runs of the median duration less AloneMedian, ns
	Copies      []int64 `json:"copies"`       // runs of ns, sums
	Gaps        []int64 `json:"gaps"`         // position less the one before, cause, ns by turns; what is missing is 0
	GapMedian   []int64 `json:"gap_median"`   // runs of ns
	// Inside is runs of the place in Stacks of the ranges around the call that launched it, or -1; absent if no call is
	// in a range.
	Inside []int64 `json:"inside,omitempty"`

	End  StepEnd `json:"end"`
	Rest int64   `json:"rest"` // ns, sum
	// Hiccups are, of the sampled units, single gaps and kernels that took Threshold longer than their median:
	// position, part (0 the gap, 1 the kernel), Number of the unit, excess in ns by turns; the longest first. The
	// position behind the last is the end.
	Hiccups     []int64 `json:"hiccups"`
	HiccupCount int64   `json:"hiccup_count"` // also of those that there was no room for
	Threshold   int64   `json:"threshold"`    // ns, 5 % of the median unit

	Shown []*UnitShown `json:"shown"`
}

// StepEnd is the time after a unit's last kernel, ns: sums over units, and the median of the gap.
type StepEnd struct {
	Gap       []int64 `json:"gap"` // by cause
	Copies    int64   `json:"copies"`
	GapMedian int64   `json:"gap_median"`
}

// Position is one kernel of the sequence. Sums are over all units, those without it included; medians over the sampled
// units, where one without it counts as 0.
type Position struct {
	Name               int   // place in [UnitSteps.Names]
	Stream             int64 // streamId
	Ran                int64 // units in which it ran, as often as it did
	Start, StartMedian int64 // ns from the unit's start, where it ran
	Time, TimeMedian   int64 // ns, duration
	Alone, AloneMedian int64 // ns that are its alone, as in kernel.exclusive_time_per_unit
	Copies             int64 // ns of exposed copies before it
	Gap                [stepCauses]int64
	GapMedian          int64 // ns of the gap before it
	Inside             int   // place in [UnitSteps.Stacks], or -1
}

// Idle is the gap before it, all causes.
func (p *Position) Idle() int64 { return lists.Total(p.Gap[:]) }

// Sum is all of the units' time that is at the position.
func (p *Position) Sum() int64 { return p.Idle() + p.Copies + p.Alone }

// maxStepPositions bounds the positions of a step.
const maxStepPositions = 20_000

// SetPositions writes the columns.
func (s *UnitStep) SetPositions(list []Position) {
	for _, column := range []*[]int64{&s.Name, &s.Stream, &s.Ran, &s.Start, &s.StartMedian, &s.Alone, &s.AloneMedian,
		&s.Hidden, &s.TimeMedian, &s.Copies, &s.Gaps, &s.GapMedian} {
		*column = []int64{}
	}
	s.Inside = nil
	if slices.ContainsFunc(list, func(p Position) bool { return p.Inside >= 0 }) {
		s.Inside = []int64{}
	}
	var before, last, gapAt int64
	for i, p := range list {
		s.Name = append(s.Name, int64(p.Name))
		s.Stream, s.Ran = lists.AddRun(s.Stream, p.Stream), lists.AddRun(s.Ran, p.Ran)
		s.Start = lists.AddRun(s.Start, p.Start-before-p.Idle()-p.Copies)
		s.StartMedian = append(s.StartMedian, p.StartMedian-last)
		s.Alone = append(s.Alone, p.Alone)
		s.AloneMedian = append(s.AloneMedian, p.Alone/max(s.Units, 1)-p.AloneMedian)
		s.Hidden = lists.AddRun(s.Hidden, p.Time-p.Alone)
		s.TimeMedian = lists.AddRun(s.TimeMedian, p.TimeMedian-p.AloneMedian)
		s.Copies, s.GapMedian = lists.AddRun(s.Copies, p.Copies), lists.AddRun(s.GapMedian, p.GapMedian)
		if s.Inside != nil {
			s.Inside = lists.AddRun(s.Inside, int64(p.Inside))
		}
		for cause, ns := range p.Gap {
			if ns != 0 {
				s.Gaps = append(s.Gaps, int64(i)-gapAt, int64(cause), ns)
				gapAt = int64(i)
			}
		}
		before, last = before+p.Sum(), p.StartMedian
	}
}

// Positions gives the columns back. It fails where they differ in length or a place is out of range.
func (s *UnitStep) Positions() ([]Position, error) {
	n := len(s.Name)
	if n > maxStepPositions {
		return nil, fmt.Errorf("%d positions, %d are allowed", n, maxStepPositions)
	}
	for _, c := range [][]int64{s.StartMedian, s.Alone, s.AloneMedian} {
		if len(c) != n {
			return nil, fmt.Errorf("a column of %d for %d positions", len(c), n)
		}
	}
	x := expander{n: n}
	column := func(name string, runs []int64) []int64 { return x.column(name, runs, math.MinInt64, math.MaxInt64) }
	stream, ran, start, hidden := column("stream", s.Stream), column("ran", s.Ran), column("start", s.Start), column("hidden", s.Hidden)
	median, copies, gap := column("time_median", s.TimeMedian), column("copies", s.Copies), column("gap_median", s.GapMedian)
	inside := slices.Repeat([]int64{-1}, n)
	if len(s.Inside) > 0 {
		inside = column("inside", s.Inside)
	}
	if x.err != nil {
		return nil, x.err
	}
	list := make([]Position, n)
	if err := s.readGaps(list); err != nil {
		return nil, err
	}
	var before, last int64
	for i := range list {
		p := &list[i]
		p.Name, p.Alone, p.Stream, p.Ran, p.Inside = int(s.Name[i]), s.Alone[i], stream[i], ran[i], int(inside[i])
		p.Copies, p.GapMedian = copies[i], gap[i]
		p.AloneMedian = p.Alone/max(s.Units, 1) - s.AloneMedian[i]
		p.Time, p.TimeMedian = hidden[i]+p.Alone, median[i]+p.AloneMedian
		p.Start = start[i] + before + p.Idle() + p.Copies
		last += s.StartMedian[i]
		p.StartMedian = last
		before += p.Sum()
	}
	return list, nil
}

func (s *UnitStep) readGaps(list []Position) error {
	if len(s.Gaps)%3 != 0 {
		return errors.New("gaps: not three numbers each")
	}
	at := int64(0)
	for i := 0; i < len(s.Gaps); i += 3 {
		at += s.Gaps[i]
		cause := s.Gaps[i+1]
		if s.Gaps[i] < 0 || at < 0 || at >= int64(len(list)) || cause < 0 || cause >= stepCauses {
			return fmt.Errorf("gaps: cause %d before position %d", cause, at)
		}
		list[at].Gap[cause] += s.Gaps[i+2]
	}
	return nil
}

// UnitShown is one unit as it ran: the one nearest to the median, or the slowest. Numbers come by turns; a start is the
// time since the start before it, ns, the first since the unit's start.
type UnitShown struct {
	Which    string  `json:"which"`    // median or slowest
	Number   int64   `json:"number"`   // counts the units of a process on a device from 0
	Start    int64   `json:"start"`    // ns, as the capture counts
	Duration int64   `json:"duration"` // ns
	GPU      []int64 `json:"gpu"`      // name, streamId, start, ns: work that overlaps the unit, by start
	Gaps     []int64 `json:"gaps"`     // start, and ns by cause: a gap in which nothing ran on the device
	Thread   string  `json:"thread"`   // that launched most of the unit's kernels; empty if it is not known
	Calls    []int64 `json:"calls"`    // name, start, ns: of that thread
	// Others are the other threads that launched kernels of the unit, that with most of them first.
	Others  []UnitThread `json:"other_threads,omitempty"`
	Ranges  []int64      `json:"ranges"`   // name, depth, start, ns: open on that thread
	LeftOut int64        `json:"left_out"` // events that there was no room for
	// Origins are by piece of GPU work the place in Calls, and behind them in those of Others, of the call that
	// launched it, or -1 if that is not among them, less the place before it, and the place in Names of the geometry of
	// its launch, or -1. Absent if neither is known.
	Origins []int64 `json:"origins,omitempty"`
	// Path is what the unit's time hangs on, from its start to its end without a hole: place in PathParts, ns by turns.
	// What is too short to be drawn counts with what is before it. Absent if it is not known.
	Path []int64 `json:"path,omitempty"`
}

// UnitThread is a thread that launched kernels of a unit.
type UnitThread struct {
	Thread string  `json:"thread"`
	Calls  []int64 `json:"calls"` // as those of [UnitShown]
}

// PathParts are the parts of the critical path, in the order in which [UnitShown.Path] numbers them.
var PathParts = []string{"compute", "communication", "copy", "latency", "call", "host", "unknown"}

// Widths of the lists of a [UnitShown].
const (
	shownGPU    = 4
	shownGap    = 1 + stepCauses
	shownCall   = 3
	shownRange  = 4
	shownOrigin = 2
	maxShown    = 100_000 // numbers of a list
)

// UnitEvent is one event of a unit that is shown. Start is ns since the unit's start; Lane is the streamId of GPU work,
// and how many ranges are around a range.
type UnitEvent struct {
	Name            int
	Lane            int64
	Start, Duration int64
}

// UnitGap is one gap of a unit that is shown, by cause, ns; causes follow each other.
type UnitGap struct {
	Start  int64
	Causes [stepCauses]int64
}

// Duration of the gap, ns.
func (g *UnitGap) Duration() int64 { return lists.Total(g.Causes[:]) }

// SetEvents writes the lists; each must be sorted by start.
func (u *UnitShown) SetEvents(work, calls, ranges []UnitEvent, gaps []UnitGap) {
	u.GPU, u.Calls, u.Ranges, u.Gaps = packEvents(work, shownGPU), packEvents(calls, shownCall), packEvents(ranges, shownRange), []int64{}
	last := int64(0)
	for _, g := range gaps {
		u.Gaps = append(append(u.Gaps, g.Start-last), g.Causes[:]...)
		last = g.Start
	}
}

// UnitOrigin says where a piece of GPU work comes from.
type UnitOrigin struct {
	Call  int64 // place among all listed calls, those of Calls first, or -1
	Shape int64 // place in [UnitSteps.Names] of the geometry of its launch, or -1
}

// SetOrigins says where each piece of GPU work comes from.
func (u *UnitShown) SetOrigins(list []UnitOrigin) {
	u.Origins = nil
	if !slices.ContainsFunc(list, func(o UnitOrigin) bool { return o != (UnitOrigin{-1, -1}) }) {
		return
	}
	last := int64(0)
	for _, o := range list {
		u.Origins = append(u.Origins, o.Call-last, o.Shape)
		last = o.Call
	}
}

// WorkOrigins is where each piece of GPU work comes from; nil if nothing is known.
func (u *UnitShown) WorkOrigins() (list []UnitOrigin) {
	last := int64(0)
	for i := 0; i+shownOrigin <= len(u.Origins); i += shownOrigin {
		last += u.Origins[i]
		list = append(list, UnitOrigin{last, u.Origins[i+1]})
	}
	return list
}

// AddThread adds another launching thread with its calls, sorted by start.
func (u *UnitShown) AddThread(name string, calls []UnitEvent) {
	u.Others = append(u.Others, UnitThread{name, packEvents(calls, shownCall)})
}

// Events are the calls of the thread.
func (t *UnitThread) Events() []UnitEvent { return unpackEvents(t.Calls, shownCall) }

// packEvents writes events as width numbers each: the name, of four also the lane, the time since the start of the
// event before, and the duration.
func packEvents(events []UnitEvent, width int) []int64 {
	list, last := make([]int64, 0, width*len(events)), int64(0)
	for _, e := range events {
		if list = append(list, int64(e.Name)); width == shownGPU {
			list = append(list, e.Lane)
		}
		list = append(list, e.Start-last, e.Duration)
		last = e.Start
	}
	return list
}

func unpackEvents(list []int64, width int) (events []UnitEvent) {
	last := int64(0)
	for e := range slices.Chunk(list, width) {
		last += e[width-2]
		event := UnitEvent{int(e[0]), 0, last, e[width-1]}
		if width == shownGPU {
			event.Lane = e[1]
		}
		events = append(events, event)
	}
	return events
}

// Events gives the lists back; they must be valid.
func (u *UnitShown) Events() (work, calls, ranges []UnitEvent, gaps []UnitGap) {
	last := int64(0)
	for g := range slices.Chunk(u.Gaps, shownGap) {
		last += g[0]
		gaps = append(gaps, UnitGap{last, [stepCauses]int64(g[1:])})
	}
	return unpackEvents(u.GPU, shownGPU), unpackEvents(u.Calls, shownCall), unpackEvents(u.Ranges, shownRange), gaps
}

// Step is what is known of a kind of unit on a device; nil if nothing is. A negative device is any.
func (u *Unit) Step(group string, device int64) *UnitStep {
	if u.Steps == nil {
		return nil
	}
	for _, s := range u.Steps.List {
		if s.Group == group && (device < 0 || s.Device == device) {
			return s
		}
	}
	return nil
}

// validate reports the first thing that a reader of steps would stumble over.
func (s *UnitSteps) validate() error {
	if s.Names == nil || s.List == nil || len(s.Categories) != len(s.Names) {
		return errors.New("names and categories do not fit")
	}
	known := func(name int64) bool { return name >= 0 && name < int64(len(s.Names)) }
	if len(s.Stacks)%2 != 0 {
		return errors.New("stacks: not two numbers each")
	}
	for i := 0; i < len(s.Stacks); i += 2 {
		if around := s.Stacks[i]; around < -1 || around >= int64(i/2) || !known(s.Stacks[i+1]) {
			return fmt.Errorf("stacks: range %d is inside %d", i/2, around)
		}
	}
	for i, k := range s.List {
		if k == nil || k.Shown == nil || len(k.End.Gap) != stepCauses || k.Units < 1 || len(k.Hiccups)%4 != 0 {
			return fmt.Errorf("step %d is not complete", i)
		}
		list, err := k.Positions()
		if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		for n := range list {
			if !known(int64(list[n].Name)) {
				return fmt.Errorf("step %d: position %d has name %d", i, n, list[n].Name)
			}
			if at := list[n].Inside; at < -1 || at >= len(s.Stacks)/2 {
				return fmt.Errorf("step %d: position %d is inside %d", i, n, at)
			}
		}
		for h := 0; h < len(k.Hiccups); h += 4 {
			if at := k.Hiccups[h]; at < 0 || at > int64(len(list)) {
				return fmt.Errorf("step %d: a hiccup at position %d of %d", i, at, len(list))
			}
		}
		for _, u := range k.Shown {
			if err := u.validate(known); err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
		}
	}
	return nil
}

func (u *UnitShown) validate(known func(name int64) bool) error {
	if u == nil || u.Duration < 0 || u.Which != "median" && u.Which != "slowest" {
		return errors.New("a unit that is shown is not complete")
	}
	if len(u.Path)%2 != 0 || len(u.Path) > maxShown {
		return fmt.Errorf("a path of %d numbers, two each", len(u.Path))
	}
	for i := 0; i < len(u.Path); i += 2 {
		if part := u.Path[i]; part < 0 || part >= int64(len(PathParts)) || u.Path[i+1] < 0 {
			return fmt.Errorf("a path with part %d", part)
		}
	}
	if n := len(u.Origins); n > 0 && n != len(u.GPU)/shownGPU*shownOrigin {
		return fmt.Errorf("%d numbers on where %d pieces of work come from", n, len(u.GPU)/shownGPU)
	}
	for _, o := range u.WorkOrigins() {
		if o.Call < -1 || o.Shape < -1 || o.Shape >= 0 && !known(o.Shape) {
			return fmt.Errorf("work launched by call %d with geometry %d", o.Call, o.Shape)
		}
	}
	type listed struct {
		list  []int64
		width int
		named bool
	}
	lists := []listed{{u.GPU, shownGPU, true}, {u.Calls, shownCall, true}, {u.Ranges, shownRange, true}, {u.Gaps, shownGap, false}}
	for _, t := range u.Others {
		lists = append(lists, listed{t.Calls, shownCall, true})
	}
	for _, l := range lists {
		if l.list == nil || len(l.list)%l.width != 0 || len(l.list) > maxShown {
			return fmt.Errorf("a list of %d numbers, %d each", len(l.list), l.width)
		}
		for i := 0; i < len(l.list) && l.named; i += l.width {
			if !known(l.list[i]) || l.list[i+l.width-1] < 0 {
				return fmt.Errorf("an event of name %d", l.list[i])
			}
		}
	}
	return nil
}
