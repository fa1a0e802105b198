package host

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

// checkLostKernels counts launches whose kernel is missing, which happens when buffers ran full, whether nsys reports
// it or not. A launch while a stream is captured into a graph has no kernel, nor has one that failed.
func checkLostKernels(in *kit.Input, out *kit.Output) *checked {
	api := &in.Trace.API
	if in.Trace.Kernels.Len() == 0 || api.Len() == 0 || !joins(in) {
		return unchecked("kernels and calls cannot be joined")
	}
	ran := timeline.Launched(in.Trace, in.Calls.Kernel)
	var seen, lost, since int64 // since the last launch with a kernel
	lo, hi := api.Starting(in.Span.Start, in.Span.End)
	if in.Window.Mode == "capture" {
		lo = 0 // the first launch comes before the first kernel
	}
	eachLaunch(in, lo, hi, false, func(i int) {
		switch {
		case ran[i]:
			seen++
			lost += since
			since = 0
		case seen > 0:
			since++
		}
	})
	if seen == 0 {
		return unchecked("no launch of a kernel")
	}
	all := seen + lost
	ratio := stat.Ratio(lost, all)
	out.From(trace.RoleAPI, int(all), "correlationId", "nameId")
	out.Source.With(trace.RoleKernel, "correlationId", "globalPid")
	out.Metric("quality.lost_kernels", nil, ratio)
	return that(*ratio >= lostWarn, counted(lost, ratio), "lost_kernels",
		formatCount(lost)+" of "+formatCount(all)+" launch calls ("+formatRatio(*ratio)+") have no kernel in the capture: "+
			"kernels were lost, and counts and busy times are lower bounds. Record a shorter time, or trace less.")
}

// eachLaunch calls do for each launch of lo to hi that ran, of kernels or of graphs, except those while a stream is
// captured into a graph, and those that failed.
func eachLaunch(in *kit.Input, lo, hi int, graphs bool, do func(call int)) {
	api := &in.Trace.API
	capturing := make([]bool, len(in.Trace.Threads)+1) // by thread, the last for calls that name none
	for i := lo; i < hi; i++ {
		th := orLast(api.Thread(i), len(in.Trace.Threads))
		switch n := &api.Names[api.Name(i)]; {
		case n.BeginsGraph:
			capturing[th] = true
		case n.EndsGraph:
			capturing[th] = false
		case n.Launch && n.GraphLaunch == graphs && !capturing[th] && api.Return(i) == 0:
			do(i)
		}
	}
}

// checkGraphLaunches counts launches of CUDA graphs under which no GPU time was recorded, which tracing by hardware
// causes: the steps that they ran are missing from the capture. The last two may still be running when it stops.
func checkGraphLaunches(in *kit.Input, out *kit.Output) *checked {
	t := in.Trace
	if !launchesGraph(t) {
		return nil
	}
	if !joins(in) {
		return unchecked("kernels and calls cannot be joined")
	}
	ran := timeline.Launched(in.Trace, in.Calls.Kernel, in.Calls.Copy, in.Calls.Set, in.Calls.Graph)
	var all, hidden, last int64 // last: in a row at the end
	eachLaunch(in, 0, t.API.Len(), true, func(i int) {
		all++
		last++
		if hidden++; ran[i] {
			hidden--
			last = 0
		}
	})
	if all == 0 {
		return nil
	}
	if last <= 2 && last < all {
		hidden -= last
	}
	ratio := stat.Ratio(hidden, all)
	out.From(trace.RoleAPI, int(all), "correlationId", "nameId")
	out.Source.With(trace.RoleKernel, "correlationId", "globalPid")
	out.Metric("quality.hidden_graph_launches", nil, ratio)
	return that(*ratio >= hiddenWarn, counted(hidden, ratio), "hidden_graph_launches",
		formatCount(hidden)+" of "+formatCount(all)+" launches of CUDA graphs ("+formatRatio(*ratio)+") have no GPU time under them: "+
			"the work they ran, usually decode steps, is missing from the capture and from every number. "+
			"Capture again with --trace cuda-sw,nvtx,osrt (nsys 2025.6 or later) or --graph-trace graph.")
}

// hiddenWarn is the share of launches of graphs without GPU time, 0..1, from which to warn; complete captures have
// none.
const hiddenWarn = 0.02

// checkGraphs warns of CUDA graphs traced as a whole.
func checkGraphs(in *kit.Input, out *kit.Output) *checked {
	t := in.Trace
	if t.Graphs.Len() == 0 {
		switch {
		case !t.Kernels.InGraphs() && launchesGraph(t):
			return unchecked("graphs were launched and left no rows")
		case !t.Kernels.InGraphs() && !in.Trace.Tables.Has(trace.RoleAPI):
			return unchecked("no API calls")
		default:
			return passed(counted(0, nil))
		}
	}
	whole := kit.Total(0, t.Graphs.Len(), t.Graphs.Dur)
	kernels := kit.Total(0, t.Kernels.Len(), t.Kernels.Dur)
	ratio := stat.Ratio(whole, whole+kernels)
	text := ""
	if ratio != nil {
		text = ", " + formatRatio(*ratio) + " of the GPU time of kernels and graphs,"
	}
	return failed(counted(int64(t.Graphs.Len()), ratio), "graph_trace",
		formatCount(int64(t.Graphs.Len()))+" launches of CUDA graphs"+text+" were traced as a whole: no table shows the kernels inside. Capture with --cuda-graph-trace=node to see them (at more overhead), and compare only captures of the same mode.")
}

func launchesGraph(t *trace.Trace) bool {
	return slices.ContainsFunc(t.API.Names, func(n trace.APIName) bool { return n.GraphLaunch })
}

// hostPlaceShare is the share, 0..1, of a capture without kernels from which a range or a call is named.
const hostPlaceShare = 0.30

// hostPlace is a thread's time inside a range or a CUDA call of a name.
type hostPlace struct {
	thread int32
	name   string
}

// hostTimes adds up the places of the threads of a capture: of those with CUDA calls, or of all if none has any. A
// range nested in one of its own name counts once.
type hostTimes struct {
	first, last int64
	kit.Tally[hostPlace, kit.Covered]
}

func (x *hostTimes) add(p hostPlace, start, end int64) {
	if len(x.Keys) == 0 {
		x.first = start
	}
	x.last = max(x.last, end)
	x.At(p).Add(start, end)
}

// shortest is the place with least of the time, of those with hostPlaceShare of it or more.
func (x *hostTimes) shortest() (best hostPlace, ns int64) {
	for i, p := range x.Keys {
		t := x.Values[i].Ns
		if float64(t) < hostPlaceShare*float64(x.last-x.first) {
			continue
		}
		if best.name == "" || t < ns || t == ns && (p.name < best.name || p.name == best.name && p.thread < best.thread) {
			best, ns = p, t
		}
	}
	return best, ns
}

// hostOnly names the places of the time in a capture without kernels.
func hostOnly(in *kit.Input, out *kit.Output) {
	t := in.Trace
	var ranges, calls hostTimes
	r, api := &t.Ranges, &t.API
	for i := range r.Len() {
		th := r.Thread(i)
		if th != trace.None && !r.Open(i) && (api.Len() == 0 || in.Threads.Calls(th)) {
			name := string(kernelname.AppendRangeCanonical(nil, r.Names[r.Name(i)].Text))
			ranges.add(hostPlace{th, name}, r.Start(i), r.End(i))
		}
	}
	for i := range api.Len() {
		if th := api.Thread(i); th != trace.None {
			calls.add(hostPlace{th, api.Names[api.Name(i)].Name}, api.Start(i), api.End(i))
		}
	}
	for _, of := range []struct {
		*hostTimes
		role        trace.Role
		label, what string
	}{{&ranges, trace.RoleNVTX, "range", "inside "}, {&calls, trace.RoleAPI, "api", "in "}} {
		p, ns := of.shortest()
		if p.name == "" {
			continue
		}
		all := of.last - of.first
		out.From(of.role, 0, "start", "end", "globalTid")
		out.Int("capture.place_time", kit.Labels(of.label, p.name), ns)
		out.Int("capture.host_time", nil, all)
		share := float64(ns) / float64(all)
		out.FindAs("host_place", "No kernel was captured: the host is "+of.what+kit.Quoted(p.name)+" for "+formatRatio(share)+" of the time",
			[]report.MetricRef{kit.Ref("capture.place_time", of.label, p.name), kit.Ref("capture.host_time")},
			"Trace the process that launches kernels, while it works (--trace=cuda,nvtx): only then explain knows what a GPU would gain.",
		).At(p.name).Costs(kit.WorthOf(report.OfRun, float64(ns), float64(all)))
		return
	}
}
