package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// UnitSeries is every unit of work of a capture, by device, process, then start; see [UnitSeries.Decode]. Columns that
// rarely change are runs, value and count by turns: device 0 for 40 units and then 1 for 39 is [0, 40, 1, 39]. Of
// numbers, starts, durations and times without work the change from unit to unit is stored. A thousand units take some
// 10 kB.
type UnitSeries struct {
	Count int64 `json:"count"` // units in the columns
	Every int64 `json:"every"` // 1: all units of the capture; k: every k-th, since there are too many
	// hashes of a unit's work: kernels with their launch geometry, copies with their bytes
	Signatures []string `json:"signatures"`
	Device     []int64  `json:"device"`    // runs of deviceId
	Process    []int64  `json:"process"`   // runs of the process id; -1 unknown
	Number     []int64  `json:"number"`    // runs of the change of Number
	Group      []int64  `json:"group"`     // runs of the place in Unit.Groups; -1 none
	State      []int64  `json:"state"`     // runs of the place in [UnitStates]
	Signature  []int64  `json:"signature"` // runs of the place in Signatures; -1 for one that Signatures has no room for
	Start      []int64  `json:"start"`     // runs of the time from the end of the unit before, ns; the first is since 0
	Duration   []int64  `json:"duration"`  // ns, changes
	Idle       []int64  `json:"idle"`      // ns of the duration in which nothing ran on the device, changes

	NotCompute []int64 `json:"not_compute,omitempty"` // ns of the busy time in which no compute ran, changes
	Launches   []int64 `json:"launches,omitempty"`    // runs of the launches the unit's kernels came from
	Kernels    []int64 `json:"kernels,omitempty"`     // runs of the number of its kernels
	// runs of the number that the unit's marker carries, less Number: the first step's number where steps are counted
	// by ones; only where the markers of all units carry one
	Step []int64 `json:"step,omitempty"`
}

// UnitStates are what becomes of units: kept ones are what numbers are made from, outside those that start outside
// the analysed window.
var UnitStates = []string{"kept", "cut", "warmup", "other", "outside"}

// Bounds of a series.
const (
	MaxSeriesUnits  = 65_536
	maxSeriesHashes = 1_024
)

// UnitPoint is one unit of a series.
type UnitPoint struct {
	Device, Process int64
	Number          int64 // counts the units of a process on a device from 0, whatever became of them
	Group           int64 // place in Unit.Groups; -1 none
	State           int64 // place in UnitStates
	Signature       string
	Start           int64 // ns, as the capture counts
	Duration, Busy  int64 // ns

	Compute, Launches, Kernels int64 // ns and numbers; -1 unknown

	// Step is the number that the unit's marker carries, as ProfilerStep#12 does; 0 in all units of a series where they
	// carry none.
	Step int64
}

// NewUnitSeries encodes units, every k-th of them if there are more than MaxSeriesUnits.
func NewUnitSeries(units []UnitPoint) *UnitSeries {
	every := (len(units)-1)/MaxSeriesUnits + 1
	s := &UnitSeries{Every: int64(every)}
	var signatures lists.Numbering[string]
	stepped := slices.ContainsFunc(units, func(u UnitPoint) bool { return u.Step != 0 })
	var before UnitPoint
	for i := 0; i < len(units); i += every {
		u := &units[i]
		id := int64(-1)
		if u.Signature != "" && (len(signatures.Keys) < maxSeriesHashes || signatures.Has(u.Signature)) {
			id = int64(signatures.Of(u.Signature))
		}
		s.Count++
		s.Device, s.Process = lists.AddRun(s.Device, u.Device), lists.AddRun(s.Process, u.Process)
		s.Number = lists.AddRun(s.Number, u.Number-before.Number)
		s.Group, s.State = lists.AddRun(s.Group, u.Group), lists.AddRun(s.State, u.State)
		s.Signature = lists.AddRun(s.Signature, id)
		s.Start = lists.AddRun(s.Start, u.Start-before.Start-before.Duration)
		s.Duration = append(s.Duration, u.Duration-before.Duration)
		s.Idle = append(s.Idle, (u.Duration-u.Busy)-(before.Duration-before.Busy))
		s.NotCompute = append(s.NotCompute, (u.Busy-u.Compute)-(before.Busy-before.Compute))
		s.Launches, s.Kernels = lists.AddRun(s.Launches, u.Launches), lists.AddRun(s.Kernels, u.Kernels)
		if stepped {
			s.Step = lists.AddRun(s.Step, u.Step-u.Number)
		}
		before = *u
	}
	s.Signatures = signatures.Keys
	Complete(s)
	return s
}

// Decode gives the units back. It fails where columns differ in length, a place is out of range or a time overflows,
// and never makes more units than [MaxSeriesUnits].
func (s *UnitSeries) Decode() ([]UnitPoint, error) {
	n := int(s.Count)
	switch {
	case s.Count < 0 || s.Count > MaxSeriesUnits || s.Every < 1:
		return nil, fmt.Errorf("%d units, every %d-th", s.Count, s.Every)
	case len(s.Duration) != n || len(s.Idle) != n || len(s.NotCompute) != n:
		return nil, fmt.Errorf("%d durations, %d times without work and %d without compute for %d units", len(s.Duration),
			len(s.Idle), len(s.NotCompute), n)
	}
	x := expander{n: n}
	device, process := x.column("device", s.Device, math.MinInt32, math.MaxInt32), x.column("process", s.Process, math.MinInt64, math.MaxInt64)
	number, group := x.column("number", s.Number, -math.MaxInt32, math.MaxInt32), x.column("group", s.Group, -1, math.MaxInt32)
	state := x.column("state", s.State, 0, int64(len(UnitStates)-1))
	signature := x.column("signature", s.Signature, -1, int64(len(s.Signatures)-1))
	launches, kernels := x.column("launches", s.Launches, 0, math.MaxInt64), x.column("kernels", s.Kernels, 0, math.MaxInt64)
	start := x.column("start", s.Start, math.MinInt64, math.MaxInt64)
	var step []int64
	if len(s.Step) > 0 {
		step = x.column("step", s.Step, -math.MaxInt32, math.MaxInt64-math.MaxInt32)
	}
	if x.err != nil {
		return nil, x.err
	}
	units := make([]UnitPoint, n)
	var before UnitPoint
	var idle, rest, end int64
	for i := range units {
		idle, rest = idle+s.Idle[i], rest+s.NotCompute[i]
		u := &units[i]
		*u = UnitPoint{Device: device[i], Process: process[i], Number: before.Number + number[i], Group: group[i], State: state[i],
			Start: end + start[i], Duration: before.Duration + s.Duration[i], Launches: launches[i], Kernels: kernels[i]}
		u.Busy = u.Duration - idle
		u.Compute = u.Busy - rest
		if signature[i] >= 0 {
			u.Signature = s.Signatures[signature[i]]
		}
		if step != nil {
			u.Step = u.Number + step[i]
		}
		end = u.Start + u.Duration
		switch {
		case u.Number < 0 || u.Number > math.MaxInt32:
			return nil, fmt.Errorf("number: unit %d has number %d", i, u.Number)
		case u.Step < 0:
			return nil, fmt.Errorf("step: unit %d has step %d", i, u.Step)
		case idle < 0 || idle > u.Duration:
			return nil, fmt.Errorf("unit %d lasts %d ns, of which %d without work", i, u.Duration, idle)
		case rest < 0 || rest > u.Busy:
			return nil, fmt.Errorf("unit %d is busy for %d ns, of which %d without compute", i, u.Busy, rest)
		case end < u.Start:
			return nil, fmt.Errorf("start: unit %d ends beyond the range of times", i)
		}
		before = *u
	}
	return units, nil
}

// expander turns columns of runs into their n values, and keeps the first error.
type expander struct {
	n   int
	err error
}

// column is the values of a column, each from least to most; nil after an error.
func (x *expander) column(name string, runs []int64, least, most int64) []int64 {
	list, err := lists.OfRuns(runs, x.n, least, most)
	if err != nil && x.err == nil {
		x.err = fmt.Errorf("%s: %w", name, err)
	}
	return list
}
