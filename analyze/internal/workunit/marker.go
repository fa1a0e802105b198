package workunit

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// Bounds of finding units by markers that engines emit.
const (
	minMarkers     = 3   // with GPU work on a device
	minMarkerShare = 0.3 // of all GPU work, launched inside markers
	maxDepth       = 256 // of ranges around a marker that are looked at
)

// engineTitle is how an engine's markers are called in reports.
var engineTitle = map[string]string{
	kernelname.EngineVLLM:    "execute_context_N(M)_generation_K(L)",
	kernelname.EngineSGLang:  "step[MODE bs=N]",
	kernelname.EngineTRTLLM:  "[Executor] _forward_step N",
	kernelname.EngineATOM:    "prefill[bs=N] / decode[bs=N]",
	kernelname.EnginePyTorch: "ProfilerStep#N",
	kernelname.EngineLLM:     "LLM@phase",
}

// marked is the set of ranges that are units, and what they say.
type marked struct {
	ranges []int32 // by start
	place  []int32 // by range: index into ranges, or -1
	kinds  []int32 // by index into ranges: index into groups
	groups []Group
}

// byMarkers finds units by the step markers that engines emit. An engine's own markers go before torch.profiler's, which
// go around whatever the program calls a step; of several engines the one whose markers launched most work counts.
func (f *finder) byMarkers() *Result {
	if f.Stacks == nil || f.Trace.Ranges.Len() == 0 {
		return nil
	}
	r := &f.Trace.Ranges
	markers := make([]kernelname.Marker, len(r.Names))
	engines := map[string]bool{}
	for i := range r.Names {
		if m, ok := kernelname.ParseMarker(r.Names[i].Text); ok {
			markers[i] = m
			engines[m.Engine] = true
		}
	}
	type way struct {
		engine string
		late   bool
		set    *marked
		work   int64
	}
	var ways []way
	for engine := range engines {
		set := f.markers(func(i int) bool { return markers[r.Name(i)].Engine == engine }, func(i int) bool { return markers[r.Name(i)].Whole })
		f.groupMarkers(set, func(i int32) Group {
			m := &markers[r.Name(int(i))]
			return Group{Phase: cmp.Or(m.Phase, "step"), Batch: m.Batch, Tokens: bucket(m.PrefillTokens)}
		})
		ways = append(ways, way{engine: engine, late: engine == kernelname.EnginePyTorch, set: set, work: f.launchedIn(set)})
	}
	slices.SortFunc(ways, func(a, b way) int {
		if a.late != b.late {
			if b.late {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.work, a.work), cmp.Compare(a.engine, b.engine))
	})
	var all int64
	for d := range f.Timeline.Devices {
		for i := range f.Timeline.Devices[d].Work {
			w := &f.Timeline.Devices[d].Work[i]
			all += w.End - w.Start
		}
	}
	for _, w := range ways {
		if float64(w.work) < minMarkerShare*float64(all) {
			continue
		}
		title := cmp.Or(engineTitle[w.engine], w.engine)
		res := f.markerUnits(w.set, title)
		if len(res.Units) < minMarkers {
			continue
		}
		if units, _ := res.kept(); units == 0 {
			continue
		}
		res.Why = fmt.Sprintf("step markers %s: %d ranges, in which %.2f of the GPU work was launched; a unit is the work launched in one, and lasts until the first work of the next",
			title, len(w.set.ranges), float64(w.work)/float64(max(all, 1)))
		return res
	}
	f.forget()
	return nil
}

// bucket rounds a number of tokens up to a power of two, because prompts are all of different length.
func bucket(tokens int64) int64 {
	if tokens <= 0 {
		return -1
	}
	return int64(1) << bits.Len64(uint64(tokens-1))
}

// byUserRange makes units of the ranges that --unit nvtx:REGEX matches.
func (f *finder) byUserRange() *Result {
	what := "--unit nvtx:" + f.Spec.Pattern.String()
	none := func(why string) *Result { return &Result{Kind: KindNone, Why: what + " " + why} }
	r := &f.Trace.Ranges
	if f.Stacks == nil || r.Len() == 0 {
		return none("matches nothing: the capture has no NVTX ranges")
	}
	set := f.markers(func(i int) bool { return f.Marked(r.Names[r.Name(i)].Tag) }, nil)
	if len(set.ranges) == 0 {
		return none("matches no NVTX range on a thread")
	}
	texts := map[string]bool{}
	for _, i := range set.ranges {
		texts[r.Names[r.Name(int(i))].Text] = true
	}
	f.groupMarkers(set, func(i int32) Group {
		text := r.Names[r.Name(int(i))].Text
		if m, ok := kernelname.ParseMarker(text); ok {
			return Group{Phase: cmp.Or(m.Phase, "step"), Batch: m.Batch, Tokens: bucket(m.PrefillTokens)}
		}
		if len(texts) == 1 {
			text = "step"
		}
		return Group{Phase: text, Batch: -1, Tokens: -1}
	})
	res := f.markerUnits(set, f.Spec.Pattern.String())
	switch units, _ := res.kept(); {
	case len(res.Units) == 0:
		return none("matches ranges in which no GPU work was launched")
	case units == 0:
		return none("gives no complete unit")
	}
	res.Why = fmt.Sprintf("asked for with %s: a unit is the work launched in one of %d ranges, and lasts until the first work of the next", what, len(set.ranges))
	return res
}

// markers selects ranges, outermost first where they nest: a range within one that is selected is part of it. Ranges that
// span a phase of many steps (whole) give way to the steps inside.
func (f *finder) markers(is, whole func(i int) bool) *marked {
	r := &f.Trace.Ranges
	m := &marked{place: make([]int32, r.Len())}
	const no, yes, hollow = -1, -2, -3
	for i := range r.Len() {
		m.place[i] = no
		if r.Thread(i) != trace.None && is(i) {
			m.place[i] = yes
		}
	}
	for i := range r.Len() {
		if m.place[i] == no {
			continue
		}
		up := f.Stacks.Parent[i]
		for depth := 0; up != trace.None && depth < maxDepth; depth, up = depth+1, f.Stacks.Parent[up] {
			if m.place[up] == no || r.End(int(up)) < r.End(i) {
				continue
			}
			if whole != nil && whole(int(up)) && !whole(i) {
				m.place[up] = hollow
				continue
			}
			if whole != nil && whole(i) && !whole(int(up)) || m.place[up] != hollow {
				m.place[i] = hollow
				break
			}
		}
	}
	for i := range m.place {
		if m.place[i] == yes {
			m.place[i] = int32(len(m.ranges))
			m.ranges = append(m.ranges, int32(i))
		} else {
			m.place[i] = -1
		}
	}
	return m
}

// groupMarkers numbers the kinds of unit in the order of their first appearance.
func (f *finder) groupMarkers(m *marked, kind func(r int32) Group) {
	type key struct {
		phase         string
		batch, tokens int64
	}
	index := map[key]int32{}
	m.kinds = make([]int32, len(m.ranges))
	for i, r := range m.ranges {
		g := kind(r)
		k := key{g.Phase, g.Batch, g.Tokens}
		at, ok := index[k]
		if !ok {
			at = int32(len(m.groups))
			index[k] = at
			m.groups = append(m.groups, g)
		}
		m.kinds[i] = at
	}
}

// owners finds the marker of an API call: the one open around it on its thread, or, where all markers of the process are
// on one thread, the one open there when another thread made the call.
type owners struct {
	f     *finder
	m     *marked
	known []int32   // by range: index of the marker around it, -1 none, -2 not looked at
	alone [][]int32 // by process: its markers, if they are on one thread and do not overlap
}

func (f *finder) owners(m *marked) *owners {
	r := &f.Trace.Ranges
	o := &owners{f: f, m: m, known: make([]int32, r.Len()), alone: make([][]int32, len(f.Trace.Procs))}
	for i := range o.known {
		o.known[i] = -2
	}
	thread := make([]int32, len(f.Trace.Procs))
	for i := range thread {
		thread[i] = trace.None
	}
	for i, id := range m.ranges {
		th := r.Thread(int(id))
		p := f.Trace.Threads[th].Proc
		if p == trace.None {
			continue
		}
		switch list := o.alone[p]; {
		case thread[p] == trace.None:
			thread[p] = th
			o.alone[p] = []int32{int32(i)}
		case list == nil:
		case thread[p] != th || r.End(int(m.ranges[list[len(list)-1]])) > r.Start(int(id)):
			o.alone[p] = nil
		default:
			o.alone[p] = append(list, int32(i))
		}
	}
	return o
}

// of is the index of the call's marker, or -1.
func (o *owners) of(call int32) int32 {
	if call == trace.None {
		return -1
	}
	api, r := &o.f.Trace.API, &o.f.Trace.Ranges
	start, end := api.Start(int(call)), api.End(int(call))
	in := o.f.Stacks.Innermost[call]
	if in != trace.None {
		m := o.around(in)
		if m >= 0 {
			id := int(o.m.ranges[m])
			if r.Start(id) <= start && r.End(id) >= end {
				return m
			}
			m = -1
			o.f.Stacks.Walk(call, func(x int32) bool { // ranges that do not nest
				m = o.m.place[x]
				return m < 0
			})
			if m >= 0 {
				return m
			}
		}
	}
	th := api.Thread(int(call))
	if th == trace.None {
		return -1
	}
	p := o.f.Trace.Threads[th].Proc
	if p == trace.None || len(o.alone[p]) == 0 || r.Thread(int(o.m.ranges[o.alone[p][0]])) == th {
		return -1
	}
	list := o.alone[p]
	at, ok := slices.BinarySearchFunc(list, start, func(i int32, t int64) int { return cmp.Compare(r.Start(int(o.m.ranges[i])), t) })
	if !ok {
		at--
	}
	if at >= 0 && r.End(int(o.m.ranges[list[at]])) >= end {
		return list[at]
	}
	return -1
}

// around is the marker that is or encloses a range, found once per range.
func (o *owners) around(r int32) int32 {
	at, m := r, int32(-1)
	for at != trace.None {
		if o.m.place[at] >= 0 {
			m = o.m.place[at]
			break
		}
		if o.known[at] != -2 {
			m = o.known[at]
			break
		}
		at = o.f.Stacks.Parent[at]
	}
	for x := r; x != at; x = o.f.Stacks.Parent[x] {
		o.known[x] = m
	}
	return m
}

// launchedIn is the GPU time launched inside the markers.
func (f *finder) launchedIn(m *marked) int64 {
	o := f.owners(m)
	var sum int64
	for d := range f.Timeline.Devices {
		for i := range f.Timeline.Devices[d].Work {
			if w := &f.Timeline.Devices[d].Work[i]; o.of(w.Call) >= 0 {
				sum += w.End - w.Start
			}
		}
	}
	return sum
}

// markerUnits makes a unit of every marker on every device on which it launched work.
func (f *finder) markerUnits(m *marked, name string) *Result {
	f.forget()
	r := &f.Trace.Ranges
	o := f.owners(m)
	var units []Unit
	at := make([]int32, len(m.ranges)) // the marker's unit on this device, or -1
	for d := range f.Timeline.Devices {
		device := &f.Timeline.Devices[d]
		for i := range at {
			at[i] = -1
		}
		for i := range device.Work {
			w := &device.Work[i]
			k := o.of(w.Call)
			if k < 0 {
				continue
			}
			if at[k] < 0 {
				at[k] = int32(len(units))
				id := m.ranges[k]
				u := Unit{Device: device.ID, Index: int32(d), Proc: f.Trace.Threads[r.Thread(int(id))].Proc, Start: w.Start, LastWork: w.End,
					HostStart: r.Start(int(id)), HostEnd: r.End(int(id)), Marker: id, Group: m.kinds[k]}
				if r.Open(int(id)) {
					u.State = Cut
				}
				units = append(units, u)
			}
			u := &units[at[k]]
			u.LastWork = max(u.LastWork, w.End)
			f.of[d][i] = at[k]
		}
	}
	res := &Result{Kind: KindNVTX, Name: name, Groups: slices.Clone(m.groups), Primary: -1}
	res.Units = f.order(units)
	res.Of = f.of
	chain(res.Units, r)
	f.settle(res)
	return res
}

// chain ends each unit where the next of its process and device starts.
func chain(units []Unit, r *trace.Ranges) {
	for i := range units {
		u := &units[i]
		u.End = u.LastWork
		if i+1 == len(units) || units[i+1].Index != u.Index || units[i+1].Proc != u.Proc {
			continue
		}
		next := &units[i+1]
		u.End, u.closed = next.Start, true
		if h := r.Start(int(next.Marker)); h > u.HostStart {
			u.HostEnd = h
		}
		if u.End <= u.Start {
			u.State = Other
		}
	}
}
