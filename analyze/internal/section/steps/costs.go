package steps

import (
	"fmt"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

type unitCost struct {
	timeline.Times
	time                        int64
	launches, kernels           int64
	betweenTime, betweenKernels int64 // of kernels that were launched between its marker and the next
}

// unitNumber is a number of a unit: its metric, and its column in the table of units.
type unitNumber struct {
	metric, column string
	of             func(c *unitCost) int64
}

var unitNumbers = []unitNumber{
	{"unit.time", "duration", func(c *unitCost) int64 { return c.time }},
	{"unit.gpu_busy", "busy", func(c *unitCost) int64 { return c.Busy() }},
	{"unit.gpu_idle", "idle", func(c *unitCost) int64 { return c.time - c.Busy() }},
	{"unit.launches", "launches", func(c *unitCost) int64 { return c.launches }},
	{"unit.kernels", "kernels", func(c *unitCost) int64 { return c.kernels }},
	{"unit.compute_time", "compute", func(c *unitCost) int64 { return c.Compute }},
	{"unit.exposed_comm_time", "exposed_comm", func(c *unitCost) int64 { return c.ExposedComm }},
	{"unit.exposed_copy_time", "exposed_copy", func(c *unitCost) int64 { return c.ExposedCopy }},
}

type unitCosts []unitCost

// fields are the columns of the table of units that the costs of some units, added up, fill.
func (costs unitCosts) fields(units ...int32) []kit.Field {
	return lists.Map(unitNumbers, func(n unitNumber) kit.Field {
		return kit.Int(n.column, lists.Sum(units, func(u int32) int64 { return n.of(&costs[u]) }))
	})
}

// of are the costs of one sort of the units of a set.
func (costs unitCosts) of(s *unitSet, of func(c *unitCost) int64) []int64 {
	return lists.Map(s.Units, func(u int32) int64 { return of(&costs[u]) })
}

// mean of a cost over a set of units.
func (costs unitCosts) mean(s *unitSet, of func(c *unitCost) int64) float64 {
	total := lists.Sum(s.Units, func(u int32) int64 { return of(&costs[u]) })
	return float64(total) / float64(len(s.Units))
}

// unitSums are the costs of all units, and the calls that the devices waited for in them.
type unitSums struct {
	costs unitCosts
	late  []*lateCalls // by device
}

func sumsOf(in *kit.Input) unitSums {
	return kit.Once(in, "unit costs", func() unitSums { return addUnits(in) })
}

// unitLooks visit the gaps of the devices for the units.
func unitLooks(in *kit.Input) []*lateCalls {
	return kit.Once(in, "unit looks", func() []*lateCalls {
		devices := lists.Indexes[int](len(in.Units.Timeline.Devices))
		return lists.Map(devices, func(d int) *lateCalls { return newLateCalls(in, d) })
	})
}

// unitGaps are the visitors of the window's devices: none if the units are cut from more than the window.
func unitGaps(in *kit.Input) []*timeline.Visitor {
	if len(in.Units.Units) == 0 || in.Units.Timeline != in.Timeline {
		return nil
	}
	return visitorsOf(unitLooks(in))
}

func visitorsOf(looks []*lateCalls) []*timeline.Visitor {
	return lists.Map(looks, func(x *lateCalls) *timeline.Visitor { return &x.Visitor })
}

// addUnits computes every unit of the capture, by index into Units. Times are of the device between the unit's start
// and end; launches and kernels are those of the work that belongs to it.
func addUnits(in *kit.Input) unitSums {
	x, late := in.Units, unitLooks(in)
	costs := spill.Make[unitCost](in.Trace.Memory(), len(x.Units))
	in.Visit(x.Timeline, visitorsOf(late))
	parallel.Each(len(late), func(index int) {
		moments, times := late[index].Moments, late[index].Times
		for i := range x.Units {
			u, c := &x.Units[i], &costs[i]
			if int(u.Index) != index {
				continue
			}
			from, _ := slices.BinarySearch(moments, u.Start)
			to, _ := slices.BinarySearch(moments, u.End)
			c.time, c.Times = u.Time(), times[to].Minus(&times[from])
		}
		spill.Free(in.Trace.Memory(), times)
		late[index].Moments, late[index].Times = nil, nil
	})
	countLaunches(in, costs)
	for d := range x.Between {
		device := x.Timeline.Devices[d]
		between := x.Between[d].Walk()
		for i := range device.Len() {
			if u := between.Of(i); u != trace.None && device.Kind(i) == timeline.KernelWork {
				costs[u].betweenKernels++
				costs[u].betweenTime += device.End(i) - device.Start(i)
			}
		}
	}
	return unitSums{costs, late}
}

// Series is every unit of the input; group gives its index in the report's list. nil if there is none.
func Series(in *kit.Input, group func(g int32) int64) *report.UnitSeries {
	x := in.Units
	if len(x.Units) == 0 {
		return nil
	}
	costs, numbers := sumsOf(in).costs, stepNumbers(in)
	points := make([]report.UnitPoint, len(x.Units))
	for i := range x.Units {
		u := &x.Units[i]
		p := report.UnitPoint{
			Device: int64(u.Device), Process: -1, Number: int64(u.Number), Group: group(u.Group), State: int64(u.State),
			Signature: fmt.Sprintf("%012x", u.Signature>>16), Start: u.Start, Duration: u.Time(), Busy: costs[i].Busy(),
			Compute: costs[i].Compute, Launches: costs[i].launches, Kernels: costs[i].kernels,
		}
		if u.Proc != trace.None {
			p.Process = in.Trace.Procs[u.Proc].PID
		}
		if numbers != nil {
			p.Step = numbers[i]
		}
		points[i] = p
	}
	s := report.NewUnitSeries(points)
	if _, err := s.Decode(); err != nil {
		return nil // times of a damaged capture
	}
	return s
}

// SlowestDevices is, by group, the deviceId on which its median kept unit takes longest; -1 if none was kept.
func SlowestDevices(in *kit.Input) []int64 {
	devices := slices.Repeat([]int64{-1}, len(in.Units.Groups))
	for _, s := range in.Units.Sets() {
		if s.Slowest {
			devices[s.Group] = int64(s.Device)
		}
	}
	return devices
}

// countLaunches counts kernels and the launches they came from: the kernels of one CUDA graph launch share a
// correlation id and are one.
func countLaunches(in *kit.Input, costs []unitCost) {
	type launch struct {
		call int32 // None: the capture lacks it, and the others tell
		proc int32
		corr int64
	}
	x := in.Units
	shared := sharedCalls(in)
	lastOf := map[launch]int32{} // by launch of several pieces: the unit for which it was last counted, plus one
	for d := range x.Of {
		device := x.Timeline.Devices[d]
		members := x.Of[d].Walk()
		for i := range device.Len() {
			u, kind := members.Of(i), device.Kind(i)
			if u == trace.None || kind != timeline.KernelWork && kind != timeline.GraphWork {
				continue
			}
			c := &costs[u]
			if kind == timeline.KernelWork {
				c.kernels++
			}
			l := launch{call: device.Call(i)}
			several := l.call != trace.None && shared.has(l.call)
			if l.call == trace.None {
				l.proc, l.corr = x.Units[u].Proc, device.Work(i).Corr
				several = l.corr >= 0
			}
			if !several {
				c.launches++
			} else if lastOf[l] != u+1 {
				lastOf[l] = u + 1
				c.launches++
			}
		}
	}
}

// callSet is a set of API calls, a bit each.
type callSet []uint64

func (s callSet) has(call int32) bool { return s[call>>6]&(1<<(call&63)) != 0 }
func (s callSet) add(call int32)      { s[call>>6] |= 1 << (call & 63) }

// sharedCalls are those that launched more than one kernel or graph.
func sharedCalls(in *kit.Input) callSet {
	n := in.Trace.API.Len()/64 + 1
	once, shared := make(callSet, n), make(callSet, n)
	for _, calls := range [][]int32{in.Calls.Kernel, in.Calls.Graph} {
		for _, call := range calls {
			switch {
			case call == trace.None:
			case once.has(call):
				shared.add(call)
			default:
				once.add(call)
			}
		}
	}
	return shared
}

// unitSet is the kept units of one group on one device, in order.
type unitSet struct {
	workunit.Set
	id string // of the group, see [kit.GroupIDs]
}

// oneUnit is a set of a single unit.
func oneUnit(unit int32) *unitSet { return &unitSet{Set: workunit.Set{Units: []int32{unit}}} }

// mostUnits bounds how many units of a set are looked at kernel by kernel, or along their critical paths.
const mostUnits = 4096

// summary emits the median of a sample of the set's kind of unit.
func (s *unitSet) summary(out *kit.Output, id string, l report.Labels, sample []int64) {
	out.Summary(id, l, sample).Group = s.id
}

// sample is the set without units beyond mostUnits, evenly spread.
func (s *unitSet) sample() *unitSet {
	x := *s
	x.Units = spread(s.Units, mostUnits)
	return &x
}
