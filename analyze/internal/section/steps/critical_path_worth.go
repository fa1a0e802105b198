package steps

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stepgraph"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/whatif"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// shownWhatIfs is how many changes the section lists, those that gain most, besides a free host; sizedKernels is for
// how many kernels it asks.
const shownWhatIfs, sizedKernels = 3, 3

// whatIf is a change in the notation of explain whatif, and the gain of units by it.
type whatIf struct {
	text   string
	change *stepgraph.Change
	gain   whatif.Gained
}

// whatIfs lists the changes that steps would gain most by, and says if the replay is not reliable.
func (r *pathRun) whatIfs() {
	c := r.in.Ceilings()
	if c == nil {
		return
	}
	if c.Contradicted {
		r.out.Note("The critical path is not resolved: " + percent(c.OnHost) + " of it lies on the host, its calls and " +
			"latencies, and a replay without these gains " + percent(c.Bare) + ".")
	}
	if !c.Fits {
		r.out.Note("The worth of findings is not replayed: the graph does not explain the units well enough (" +
			percent(c.Error) + " off, " + percent(c.Unknown) + " of their paths unknown, " +
			percent(c.Unlaunched) + " of the work without a launching call).")
		return
	}
	list := r.candidates()
	most := r.notComputing()
	parallel.Each(len(list), func(i int) {
		g := c.Gain(list[i].change, true)
		if list[i].change.Work == nil { // the interval may reach beyond the time that there is
			g.UpTo = max(g.Gain, min(g.UpTo, most))
		}
		list[i].gain = g
	})
	lists.Sort(list, func(a, b whatIf) int { return cmp.Compare(b.gain.UpTo, a.gain.UpTo) })
	r.from(r.in.Timeline.Pieces())
	t := r.out.Table("what_ifs")
	for i, w := range list {
		if up := w.gain.UpTo; up > 0 && (i < shownWhatIfs || w.change.HostFree) {
			t.Row(kit.Text("change", w.text), kit.Int("time", int64(up+0.5)), kit.Float("share", up/w.gain.Time))
		}
	}
	t.Add()
}

// notComputing is the mean time of a unit of the main kind in which no kernel computes, on the device where it is
// longest. Changes that leave the work as it is gain no more.
func (r *pathRun) notComputing() float64 {
	costs := sumsOf(r.in).costs
	return lists.Most(kindsOf(r.in).devices, func(s *unitSet) float64 {
		return costs.mean(s, func(c *unitCost) int64 { return c.time - c.Compute })
	})
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + " %" }

// candidates are the changes that are tried: a free host, CUDA graphs, no synchronisation, hidden communication, and
// the kernels that take most time at twice their speed.
func (r *pathRun) candidates() []whatIf {
	in := r.in
	list := []whatIf{{text: "--host-free", change: &stepgraph.Change{HostFree: true}},
		{text: "--graph", change: &stepgraph.Change{Graph: true}}}
	names := in.Trace.API.Names
	blocks := func(call int32) bool {
		n := &names[in.Trace.API.Name(int(call))]
		return n.Sync || n.OldSync
	}
	if slices.ContainsFunc(names, func(n trace.APIName) bool { return n.Sync || n.OldSync }) {
		list = append(list, whatIf{text: "--no-sync *Synchronize", change: &stepgraph.Change{NoWait: blocks}})
	}
	times, comm := make([]int64, len(in.Trace.Kernels.Names)), false
	for _, device := range in.Units.Timeline.Devices {
		comm = comm || device.Comm > 0
		for i := range device.Len() {
			if device.Kind(i) == timeline.KernelWork && device.Class(i) == timeline.Compute {
				times[in.Trace.Kernels.Name(device.Row(i))] += device.End(i) - device.Start(i)
			}
		}
	}
	if comm {
		list = append(list, whatIf{text: "--overlap comm", change: &stepgraph.Change{Overlap: true}})
	}
	order := lists.Indexes[int](len(times))
	lists.Sort(order, func(a, b int) int { return cmp.Compare(times[b], times[a]) })
	for _, name := range order[:min(len(order), sizedKernels)] {
		if times[name] == 0 {
			break
		}
		list = append(list, whatIf{text: "--speedup kernel:" + in.Kinds[name].Display + "=2x",
			change: &stepgraph.Change{Work: func(d *timeline.Device, i int) float64 {
				if d.Kind(i) == timeline.KernelWork && int(in.Trace.Kernels.Name(d.Row(i))) == name {
					return 0.5
				}
				return 1
			}}})
	}
	return list
}
