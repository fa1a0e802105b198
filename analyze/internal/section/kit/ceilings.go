package kit

import (
	"cmp"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/attrib"
	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/stepgraph"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
)

// goodFit is the median error of replayed units, as a share of them, up to which ceilings are believed.
const goodFit = 0.01

// ceilings puts in place of what a finding is worth on its face what a replay says that units would gain if it went
// away: time that something else then takes is no gain. Findings that no change stands for stay as they are, and all do
// where there is no unit or the graph does not explain the units.
func (in *Input) ceilings(findings []report.Finding) {
	if in.NoTrace || in.Units == nil || in.Units.Kind == workunit.KindNone ||
		in.Units.Primary < 0 || !in.Has(trace.RoleAPI) {
		return
	}
	type asked struct {
		finding *report.Finding
		change  *stepgraph.Change
	}
	var list []asked
	for i := range findings {
		if f := &findings[i]; f.Worth != nil && f.Worth.Units > 0 && f.Worth.Time > 0 {
			if c := in.changeFor(f); c != nil {
				list = append(list, asked{f, c})
			}
		}
	}
	g := in.UnitGraph()
	if len(list) == 0 || g == nil {
		return
	}
	r := newReplayed(in, g)
	var off float64
	fits := false
	gains := make([]*float64, len(list))
	parallel.Each(1+len(list), func(i int) {
		if i == 0 {
			off, fits = r.fit()
		} else if share, ok := r.gain(list[i-1].change); ok {
			gains[i-1] = &share
		}
	})
	if !fits || off > goodFit {
		return
	}
	for i, share := range gains {
		if w := list[i].finding.Worth; share != nil {
			w.Time, w.Replayed = int64(math.Round(*share*float64(w.Of))), true
		}
	}
}

// changeFor is the change that a finding is about, or nil.
func (in *Input) changeFor(f *report.Finding) *stepgraph.Change {
	label := func(key string) (list []string) {
		for i := range f.Evidence {
			if v := f.Evidence[i].Labels[key]; v != "" && !slices.Contains(list, v) {
				list = append(list, v)
			}
		}
		return list
	}
	names := in.Trace.API.Names
	calls := func(are func(n *trace.APIName) bool) func(name int32) bool {
		return func(name int32) bool { return are(&names[name]) }
	}
	kernels := func(are func(name int32) bool) *stepgraph.Change {
		return &stepgraph.Change{Work: func(d *attrib.Device, i int) float64 {
			if d.Kind(i) == attrib.KernelWork && are(in.Trace.Kernels.Name(d.Row(i))) {
				return 0
			}
			return 1
		}}
	}
	switch f.ID {
	case "gpu_idle", "unit_idle":
		if c := label("cause"); slices.Equal(c, []string{"host"}) || slices.Equal(c, []string{"launch"}) {
			return &stepgraph.Change{HostFree: true}
		}
	case "no_graphs", "few_graphs", "launch_storm", "launch_rate":
		return &stepgraph.Change{Graph: true}
	case "slow_launches":
		api := label("api")
		return &stepgraph.Change{Call: func(name int32) float64 {
			if slices.Contains(api, names[name].Name) {
				return 0
			}
			return 1
		}}
	case "sync":
		return &stepgraph.Change{NoWait: calls(func(n *trace.APIName) bool { return n.Sync })}
	case "sync_old":
		return &stepgraph.Change{NoWait: calls(func(n *trace.APIName) bool { return n.OldSync })}
	case "exposed_comm":
		return &stepgraph.Change{Overlap: true}
	case "transfer_bound", "serial_copies":
		return &stepgraph.Change{Work: func(d *attrib.Device, i int) float64 {
			if d.Class(i) == attrib.Copy {
				return 0
			}
			return 1
		}}
	case "dominant_kernel", "large_kernel":
		kernel := label("kernel")
		return kernels(func(name int32) bool { return slices.Contains(kernel, in.Trace.Kernels.Names[name].Name) })
	case "pointwise_kernels":
		return kernels(func(name int32) bool {
			c := in.Kinds[name].Category
			return c == kernelname.Elementwise || c == kernelname.Memory
		})
	}
	return nil
}

// replayed is a stretch of units to be replayed: at most a few hundred of the main kind, with all that is between them.
type replayed struct {
	in      *Input
	graph   *stepgraph.Graph
	units   *stepgraph.Units
	stretch []int32 // kept units, of any kind, on any device
}

func newReplayed(in *Input, g *stepgraph.Graph) *replayed {
	r := &replayed{in: in, graph: g, units: g.UnitsOf(in.Units)}
	for i := range in.Units.Units {
		if in.Units.Units[i].State == workunit.Kept {
			r.stretch = append(r.stretch, int32(i))
		}
	}
	slices.SortStableFunc(r.stretch, func(a, b int32) int {
		return cmp.Compare(in.Units.Units[a].Start, in.Units.Units[b].Start)
	})
	return r
}

func (r *replayed) replay(c *stepgraph.Change) []int64 {
	return r.graph.Replay(stepgraph.Stretch(r.in.Units, r.stretch), r.units, c)
}

// fit is the median error of units that are replayed with typical latencies.
func (r *replayed) fit() (median float64, ok bool) {
	times := r.replay(&stepgraph.Change{Typical: true})
	var off []float64
	for _, u := range r.stretch {
		if ns := r.in.Units.Units[u].Time(); times[u] >= 0 && ns > 0 {
			off = append(off, math.Abs(float64(times[u]-ns))/float64(ns))
		}
	}
	if len(off) == 0 {
		return 0, false
	}
	slices.Sort(off)
	return off[len(off)/2], true
}

// gain is the share of the time of units, 0 to 1, that a change takes away, of the device with most of it.
func (r *replayed) gain(c *stepgraph.Change) (share float64, ok bool) {
	times := r.replay(c)
	devices := len(r.in.Units.Timeline.Devices)
	was, is := make([]float64, devices), make([]float64, devices)
	for _, u := range r.stretch {
		if x := &r.in.Units.Units[u]; times[u] >= 0 {
			was[x.Index], is[x.Index] = was[x.Index]+float64(x.Time()), is[x.Index]+float64(times[u])
		}
	}
	for d := range was {
		if was[d] > 0 {
			share, ok = max(share, (was[d]-is[d])/was[d]), true
		}
	}
	return share, ok
}
