package kit

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/stepgraph"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/whatif"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
)

// Ceilings is the most that units of work would gain by changes: findings, the section on the critical path and explain
// mcp share it. It is nil if there is no unit, no graph or no API call.
//
// The gain of units, as a share of their time, times the mean time of a unit is the ceiling in ns per step. It counts
// only if Fits; else the worth is the plain time of the finding, and is said to be not replayed.
func (in *Input) Ceilings() *whatif.Ceilings {
	if in.NoTrace || in.Units == nil || in.Units.Kind == workunit.KindNone ||
		in.Units.Primary < 0 || !in.Trace.Tables.Has(trace.RoleAPI) {
		return nil
	}
	return Once(in, "ceilings", func() *whatif.Ceilings {
		if g := in.UnitGraph(); g != nil {
			return whatif.NewCeilings(g, in.Units)
		}
		return nil
	})
}

// replayWorths replaces the plain time that findings are worth by the gain of units in a replay without it: time that
// something else then takes is not gained. Findings that no change stands for stay as they are, not replayed; so do all
// if there is no unit or if the graph does not resolve the units.
func replayWorths(in *Input, findings []*Finding) {
	type asked struct {
		finding *Finding
		change  *stepgraph.Change
		told    *stepgraph.Change // the gain of this part belongs to another finding
	}
	var list []asked
	for i := range findings {
		if f := findings[i]; f.Worth != nil && f.Worth.Units > 0 && f.Worth.Time > 0 {
			if c, told := f.change(in.Trace, in.Step()); c != nil {
				list = append(list, asked{f, c, told})
			}
		}
	}
	if len(list) == 0 {
		return
	}
	c := in.Ceilings()
	if c == nil || !c.Fits {
		return
	}
	// The replays of long captures are where memory peaks. They, and what is kept of a rank, ask for work and calls alone.
	in.Trace.DropRanges()
	gains := make([]*float64, len(list))
	parallel.Each(len(list), func(i int) {
		if g := c.Gain(list[i].change, false); g.Time > 0 {
			share := g.UpTo / g.Time
			if told := list[i].told; told != nil {
				less := c.Gain(told, false)
				share = max(0, share-less.UpTo/max(1, less.Time))
			}
			gains[i] = &share
		}
	})
	for i, share := range gains {
		f, step := list[i].finding, in.Step()
		if w := f.Worth; share != nil {
			w.Time, w.Replayed = int64(math.Round(*share*float64(w.Of))), true
			if w.Time > step.Copy && slices.Contains(f.claims, step.CopyClaim()) { // uploads make the host late
				f.claims = append(f.claims, step.IdleClaims(w.Time-step.Copy, timeline.CauseHost, timeline.CauseLaunch,
					timeline.CauseSync)...)
			}
			if about := f.claimed(); about > 0 { // the upper end of an interval may exceed it
				w.Time = min(w.Time, about)
			}
		}
	}
}

// change removes the time of the finding; nil if no change stands for it. The gain of told, a part of it, belongs to
// another finding.
func (f *Finding) change(t *trace.Trace, step *Step) (change, told *stepgraph.Change) {
	label := func(key string) (list []string) {
		for i := range f.Evidence {
			if v := f.Evidence[i].Labels[key]; v != "" && !slices.Contains(list, v) {
				list = append(list, v)
			}
		}
		return list
	}
	names := t.API.Names
	calls := func(are func(n *trace.APIName) bool) func(call int32) bool {
		return func(call int32) bool {
			return are(&names[t.API.Name(int(call))]) && !(step.ReadBacksTold() && step.readWaits[call])
		}
	}
	without := func(are func(name string) bool) func(name int32) float64 {
		return func(name int32) float64 {
			if are(names[name].Name) {
				return 0
			}
			return 1
		}
	}
	allocates := func(n *trace.APIName) bool { return Allocates(n.Name) }
	id := f.ID
	if id == "launch_storm" && sumOf(f.claims) > 0 && f.claims[0].of == "kernel" {
		id = "pointwise_kernels" // without them, not as a graph
	}
	switch id {
	case "gpu_idle":
		if c := label("cause"); !slices.Equal(c, []string{"host"}) && !slices.Equal(c, []string{"launch"}) {
			return nil, nil
		}
		change = &stepgraph.Change{HostFree: true}
		if step.ReadBacksTold() {
			change.NoWait = func(call int32) bool { return step.readWaits[call] }
			told = &stepgraph.Change{NoWait: change.NoWait}
		}
	case "no_graphs", "few_graphs", "launch_storm", "launch_rate":
		change = &stepgraph.Change{Graph: true}
	case "slow_launches":
		api := label("api")
		change = &stepgraph.Change{Call: without(func(name string) bool { return slices.Contains(api, name) })}
	case "allocations": // many of them wait for the GPU
		change = &stepgraph.Change{Call: without(Allocates), NoWait: calls(allocates)}
	case "sync":
		change = &stepgraph.Change{NoWait: calls(func(n *trace.APIName) bool { return n.Sync })}
		if idle, _, _ := AllocationIdle(step, t); Told(step, idle) {
			change.Call = without(Allocates)
			change.NoWait = calls(func(n *trace.APIName) bool { return n.Sync || allocates(n) })
			told = &stepgraph.Change{Call: change.Call, NoWait: calls(allocates)}
		}
	case "read_backs":
		change = &stepgraph.Change{NoWait: func(call int32) bool { return step.readWaits[call] }}
	case "sync_old":
		change = &stepgraph.Change{NoWait: calls(func(n *trace.APIName) bool { return n.OldSync })}
	case "exposed_comm":
		change = &stepgraph.Change{Overlap: true}
	case "transfer_bound", "serial_copies": // what is read from the device still waits for the work before it
		change = &stepgraph.Change{Work: func(d *timeline.Device, i int) float64 {
			switch {
			case d.Class(i) != timeline.Copy:
				return 1
			case d.Kind(i) == timeline.CopyWork && t.Copies.Kind(d.Row(i)) == CopyDtoH:
				return stepgraph.Instant
			}
			return 0
		}}
	case "dominant_kernel", "large_kernel", "dominant_category", "pointwise_kernels", "layout_conversions", "fp32_math", "fp64_math",
		"unnamed_kernels":
		names := f.kernels()
		change = &stepgraph.Change{Work: func(d *timeline.Device, i int) float64 {
			if d.Kind(i) == timeline.KernelWork && names[t.Kernels.Name(d.Row(i))] {
				return f.leaves
			}
			return 1
		}}
	}
	return change, told
}

// kernels are the names of kernels that the finding is about.
func (f *Finding) kernels() map[int32]bool {
	names := map[int32]bool{}
	for _, c := range f.claims {
		if c.of == "kernel" {
			names[c.name] = true
		}
	}
	return names
}
