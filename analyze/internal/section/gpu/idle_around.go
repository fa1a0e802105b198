package gpu

import (
	"cmp"
	"sort"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

// surrounding is the state of the host during a gap, on the thread that launched the work after it.
type surrounding struct {
	api      string // the API that thread spent at least half of the gap in; empty if there is none
	text     string // name of the innermost NVTX range open in the middle of the gap; empty if there is none
	pid, tid report.Cell
}

// lookAround finds the state of the host during each gap, going back from its end.
func lookAround(in *kit.Input, gaps []deviceGap) []surrounding {
	t := in.Trace
	list := make([]surrounding, len(gaps))
	spent := make([]int64, len(t.API.Names))
	ranges := lastEnds{ranges: &t.Ranges}
	for i, g := range gaps {
		if g.Next == trace.None {
			continue
		}
		call := g.device.Call(int(g.Next))
		if call == trace.None {
			continue
		}
		th := t.API.Thread(int(call))
		if th == trace.None {
			continue
		}
		list[i].pid, list[i].tid = report.I(t.Procs[t.Threads[th].Proc].PID), report.I(t.Threads[th].TID)
		list[i].api = mainCall(&t.API, th, g.Start, g.End, spent)
		if r := ranges.open(th, g.Start+g.Len()/2); r >= 0 {
			list[i].text = t.Ranges.Names[t.Ranges.Name(r)].Text
		}
	}
	return list
}

// mainCall is the API that took at least half of the time from start to end on a thread, all of its calls together, or
// empty. spent is scratch, by API name, and all zero between calls.
func mainCall(api *trace.API, thread int32, start, end int64, spent []int64) string {
	var used []int32
	after := sort.Search(api.Len(), func(i int) bool { return api.Start(i) >= end })
	for c := after - 1; c >= 0; c-- {
		if api.Thread(c) != thread {
			continue
		}
		if api.End(c) <= start {
			break // calls of one thread follow each other
		}
		n := api.Name(c)
		if spent[n] == 0 {
			used = append(used, n)
		}
		spent[n] += min(api.End(c), end) - max(api.Start(c), start)
	}
	best := ""
	for _, n := range used {
		if name := api.Names[n].Name; 2*spent[n] >= end-start && (best == "" || name < best) {
			best = name
		}
		spent[n] = 0
	}
	return best
}

// lastEnds finds the range that is open at a moment, going back from it. Over long distances it skips blocks of ranges
// that all ended before.
type lastEnds struct {
	ranges *trace.Ranges
	blocks []int64 // by block: the last end in it; nil until it is needed
}

const endsBlock = 1 << 12 // ranges

// open is the innermost range of a thread that is open at a moment, or -1: the one that started last; if several
// started together, the shortest; if these are equal, the last.
func (x *lastEnds) open(thread int32, at int64) int {
	r := x.ranges
	best := -1
	after := sort.Search(r.Len(), func(i int) bool { return r.Start(i) > at })
	for i := after - 1; i >= 0; i-- {
		if best >= 0 && r.Start(i) != r.Start(best) {
			return best
		}
		if i%endsBlock == endsBlock-1 && after-i > endsBlock && x.endOf(i/endsBlock) <= at {
			i -= endsBlock - 1
			continue
		}
		if r.Thread(i) == thread && r.End(i) > at && (best < 0 || r.End(i) < r.End(best)) {
			best = i
		}
	}
	return best
}

// endOf is the last end in a block.
func (x *lastEnds) endOf(block int) int64 {
	if x.blocks == nil {
		n := x.ranges.Len()
		x.blocks = make([]int64, (n+endsBlock-1)/endsBlock)
		for b := range x.blocks {
			x.blocks[b] = minTime
			for i := b * endsBlock; i < min(n, (b+1)*endsBlock); i++ {
				x.blocks[b] = max(x.blocks[b], x.ranges.End(i))
			}
		}
	}
	return x.blocks[block]
}

const minTime = -1 << 63

// deviceGap is one gap of one device.
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
	index := kit.NewNumbering[key]()
	of := make([]int32, hi-lo)
	for i := range of {
		k := key{f.Device(lo + i), f.Proc(lo + i), ""}
		if k.proc != trace.None {
			k.name = in.Trace.HostFuncNames[trace.HostFunc{Global: in.Trace.Procs[k.proc].Global, Corr: f.Corr(lo + i)}]
		}
		of[i] = index.Of(k)
	}
	groups := kit.Gather(nil, len(index.Keys), lo, hi, func(i int) int32 { return of[i-lo] }, f.Dur).Sort()
	t := out.Table("host_functions")
	for _, e := range groups.Rank(cmp.Compare) {
		k := &index.Keys[e.Key]
		t.Row(append(t.Stats(e.Summary), kit.Int("device_id", int64(k.device)), kit.Put("pid", in.PID(k.proc)),
			kit.Put("function", kit.OptionalCell(k.name)), kit.Int("count", e.Count), kit.Int("total", e.Total))...)
	}
	t.Cut(in.Options.Top, "count", "total").Add()
}

// hostFuncShare is the share of the window, 0..1, held by host functions from which it is a finding.
const hostFuncShare = 0.01

func hostFuncFinding(in *kit.Input, out *kit.Output, found []deviceIdle) {
	for i := range found {
		if float64(found[i].held) < hostFuncShare*float64(in.Span.Len()) {
			continue
		}
		id := strconv.Itoa(int(in.Timeline.Devices[i].ID))
		out.Find("host_functions",
			[]report.MetricRef{kit.Ref("idle.host_function_time", "device", id),
				kit.Ref("gpu.idle_cause_time", "cause", "dependency", "device", id)},
			"cudaLaunchHostFunc and host nodes of graphs stop their stream until the host has run the function, on a thread of the driver that other functions wait for too.",
			"Keep such functions short, or wait on the host for an event instead. The table of host functions says which they are, where the capture has their names.")
		return
	}
}
