package gpu

import (
	"cmp"
	"slices"
	"sort"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// surrounding is the state of the host during a gap, on the thread that launched the work after it.
type surrounding struct {
	api  string // the API that thread spent at least half of the gap in; empty if there is none
	text string // name of the innermost NVTX range open in the middle of the gap; empty if there is none
	pid  kit.Field
	tid  report.Cell
}

// lookAround finds the state of the host during each gap.
func lookAround(in *kit.Input, gaps []deviceGap) []surrounding {
	t := in.Trace
	list, order := make([]surrounding, len(gaps)), make([]int, len(gaps))
	for i := range order {
		order[i], list[i].pid = i, kit.PID(t.Procs, trace.None)
	}
	middle := func(i int) int64 { return gaps[i].Start + gaps[i].Len()/2 }
	lists.Sort(order, func(a, b int) int { return cmp.Compare(middle(a), middle(b)) })
	ranges := kit.NewRangeWalk(t)
	for _, i := range order {
		g, x := &gaps[i], &list[i]
		if g.Next == trace.None || g.device.Call(int(g.Next)) == trace.None {
			continue
		}
		th := t.API.Thread(int(g.device.Call(int(g.Next))))
		if th == trace.None {
			continue
		}
		x.pid, x.tid = kit.PID(in.Trace.Procs, t.Threads[th].Proc), report.I(t.Threads[th].TID)
		x.api = mainCall(&t.API, th, g.Start, g.End)
		ranges.Each(th, middle(i), middle(i)+1, func(open []int32, _ int64) {
			if n := len(open); n > 0 {
				x.text = t.Ranges.Names[open[n-1]].Text
			}
		})
	}
	return list
}

// mainCall is the API that took at least half of the time from start to end on a thread, all of its calls together, or
// empty.
func mainCall(api *trace.API, thread int32, start, end int64) (best string) {
	spent := map[int32]int64{} // by API name
	after := sort.Search(api.Len(), func(i int) bool { return api.Start(i) >= end })
	for c := after - 1; c >= 0; c-- {
		if api.Thread(c) != thread {
			continue
		}
		if api.End(c) <= start {
			break // calls of one thread follow each other
		}
		spent[api.Name(c)] += min(api.End(c), end) - max(api.Start(c), start)
	}
	for n, ns := range spent {
		if name := api.Names[n].Name; 2*ns >= end-start && (best == "" || name < best) {
			best = name
		}
	}
	return best
}

type deviceGap struct {
	device *timeline.Device
	timeline.Gap
}

// waiter waits for a host function: a stream, or the launch of a graph with a host node. The other field is trace.None.
type waiter struct {
	proc, device int32
	stream, corr int64
}

// heldWork is the time in which the host ran functions that something waited for; empty if the capture lacks it.
type heldWork map[waiter]interval.Set

func newHeldWork(t *trace.Trace) heldWork {
	held, f := heldWork{}, &t.HostFuncs
	for i := range f.Len() {
		at := waiter{f.Proc(i), f.Device(i), f.Stream(i), int64(trace.None)}
		keys := []waiter{at}
		if corr := f.Corr(i); corr >= 0 {
			at.stream, at.corr = int64(trace.None), corr
			keys = append(keys, at)
		}
		for _, k := range keys {
			set := held[k]
			set.Add(f.Start(i), f.End(i))
			held[k] = set
		}
	}
	return held
}

// within is how much of a gap, after the end of the call that launched the next work, that work was held.
func (h heldWork) within(d *timeline.Device, g *timeline.Gap) int64 {
	if len(h) == 0 || g.Next == trace.None {
		return 0
	}
	next := int(g.Next)
	at := waiter{d.Proc(next), d.ID, d.Stream(next), int64(trace.None)}
	launched := g.End - g.Cause[timeline.CauseDependency] - g.Cause[timeline.CauseUnknown]
	list := h[at].Clip(launched, g.End)
	at.stream, at.corr = int64(trace.None), d.Work(next).Corr
	return interval.Of(append(list, h[at].Clip(launched, g.End)...)).Len()
}

var hostFuncTable = report.Table{ID: "host_functions", Title: "Host functions of streams", File: "host_functions.csv",
	Merge: report.Leave, Columns: []report.Column{
		kit.IDCol("device_id", "GPU"),
		kit.IDCol("pid", "PID"),
		kit.NameCol("function", "Function"),
		kit.CountCol("count", "Count"),
		kit.NsCol("total", "Total", "total_ms"),
		kit.NsCol("max", "Max", "max_ms"),
	}}

// hostFuncRows shows the host functions that start in the window, by device, process and name.
func hostFuncRows(in *kit.Input, out *kit.Output) {
	type key struct {
		device, proc int32
		name         string
	}
	f := &in.Trace.HostFuncs
	lo, hi := f.Starting(in.Span.Start, in.Span.End)
	if lo == hi {
		return
	}
	var index lists.Numbering[key]
	groups := kit.Gather(nil, 0, lo, hi, func(i int) int32 {
		k := key{f.Device(i), f.Proc(i), ""}
		if k.proc != trace.None {
			k.name = in.Trace.HostFuncNames[trace.HostFunc{Global: in.Trace.Procs[k.proc].Global, Corr: f.Corr(i)}]
		}
		return index.Of(k)
	}, f.Dur).Sort()
	t := out.Table("host_functions")
	for _, e := range groups.Rank(cmp.Compare) {
		k := &index.Keys[e.Key]
		t.Row(append(t.Stats(e.Summary), kit.Int("device_id", int64(k.device)), kit.PID(in.Trace.Procs, k.proc),
			kit.Put("function", report.OrNull(k.name)), kit.Int("count", e.Count), kit.Int("total", e.Total))...)
	}
	t.Cut(in.Options.Top, "count", "total").Add()
}

// hostFuncShare is the share of the window, 0..1, held by host functions from which it is a finding.
const hostFuncShare = 0.01

func hostFuncFinding(in *kit.Input, out *kit.Output, found []*deviceIdle) {
	held := func(x *deviceIdle) bool { return float64(x.held) >= hostFuncShare*float64(in.Span.Len()) }
	if i := slices.IndexFunc(found, held); i >= 0 {
		id := deviceID(found[i].device)
		out.Find("host_functions",
			[]report.MetricRef{kit.Ref("idle.host_function_time", "device", id),
				kit.Ref("gpu.idle_cause_time", "cause", "dependency", "device", id)},
			"cudaLaunchHostFunc and host nodes of graphs stop their stream until the host has run the function, on a thread of the driver that other functions wait for too.",
			"Keep such functions short, or wait on the host for an event instead. The table of host functions says which they are, where the capture has their names.")
	}
}
