package workunit

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Bounds of finding units by markers that engines emit.
const (
	minMarkers     = 3   // with GPU work on a device; one suffices if a program states which ranges are its steps
	minMarkerShare = 0.3 // of all GPU work, launched inside markers
	maxDepth       = 256 // of ranges around a marker that are examined
)

// engineTitle is the name of an engine's markers in reports.
var engineTitle = map[string]string{
	kernelname.EngineVLLM:    "execute_context_N(M)_generation_K(L)",
	kernelname.EngineSGLang:  "step[MODE bs=N]",
	kernelname.EngineTRTLLM:  "[Executor] _forward_step N",
	kernelname.EngineATOM:    "prefill[bs=N] / decode[bs=N]",
	kernelname.EnginePyTorch: "ProfilerStep#N",
	kernelname.EngineLLM:     "LLM@phase",
	kernelname.EngineMLC:     "BatchPrefill / BatchDecode",

	kernelname.EngineSGLangLoop: "scheduler.run_batch",
	kernelname.EngineVLLMScopes: "gpu_model_runner: forward",
	kernelname.EngineTRTLLMLoop: "_forward_step / executeContext",
	kernelname.EngineLMDeploy:   "forward_cudagraph / forward_eager",
	kernelname.EngineScript:     "prefill / decode / step N",
}

// rank orders the programs that emit ranges around steps: an engine's markers state what is in the step, its loop and
// its layers do not, those written by hand may be anything, and torch.profiler's surround whatever the program calls a
// step.
func rank(engine string, marker bool) int {
	switch {
	case engine == kernelname.EnginePyTorch:
		return 3
	case engine == kernelname.EngineScript:
		return 2
	case marker && !strings.HasPrefix(engine, kernelname.EngineLayers):
		return 0
	}
	return 1
}

// marked is the ranges that are units, and their groups. On one thread, no range lies inside another.
type marked struct {
	ranges []int32 // by start
	kinds  []int32 // by index into ranges: index into groups
	groups []Group
}

// stepMarkers reads what range names state about a step, by name, and ranks the programs that wrote them.
func stepMarkers(names []trace.RangeName) (markers []kernelname.Marker, ranks map[string]int) {
	markers, ranks = make([]kernelname.Marker, len(names)), map[string]int{}
	var context []int
	decodes := false
	for i := range names {
		m, ok := kernelname.ParseMarker(names[i].Text)
		marker := ok
		if !ok {
			m, ok = kernelname.ParseStep(names[i].Text)
		}
		if !ok {
			continue
		}
		if m.Engine == kernelname.EngineScript {
			if strings.Contains(strings.ToLower(names[i].Text), "context") {
				context = append(context, i)
			}
			decodes = decodes || m.Phase == kernelname.PhaseDecode
		}
		markers[i] = m
		ranks[m.Engine] = rank(m.Engine, marker)
	}
	if !decodes { // a context may be anything, if nothing generates tokens
		for _, i := range context {
			markers[i] = kernelname.Marker{}
		}
	}
	return markers, ranks
}

// byMarkers finds units by the step markers that engines emit. Among engines of equal rank, the one whose markers
// launched the most work counts.
func (f *Search) byMarkers() *Result {
	r := &f.Trace.Ranges
	markers, ranks := stepMarkers(r.Names)
	type way struct {
		engine string
		rank   int
		set    *marked
		work   int64
	}
	var ways []way
	for engine, rank := range ranks {
		set := markersOf(f.Trace,
			func(name int32) bool { return markers[name].Engine == engine },
			func(i int32) bool { return markers[r.Name(int(i))].Whole })
		set.group(f.Input, func(i int32) Group {
			m := &markers[r.Name(int(i))]
			return Group{Phase: cmp.Or(m.Phase, "step"), Batch: m.Batch, Tokens: bucket(m.PrefillTokens)}
		})
		ways = append(ways, way{engine: engine, rank: rank, set: set, work: set.launched(f.Input)})
	}
	slices.SortFunc(ways, func(a, b way) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.work, a.work), cmp.Compare(a.engine, b.engine))
	})
	if len(ways) == 0 {
		return nil
	}
	var all int64
	for _, device := range f.Timeline.Devices {
		for i := range device.Len() {
			all += device.End(i) - device.Start(i)
		}
	}
	for _, w := range ways {
		if float64(w.work) < minMarkerShare*float64(all) {
			continue
		}
		title := cmp.Or(engineTitle[w.engine], w.engine)
		if w.engine == kernelname.EngineScript && !slices.ContainsFunc(w.set.groups, func(g Group) bool { return g.Phase != "step" }) {
			title = "step N" // of training, for example
		}
		res := f.markerUnits(w.set, title)
		if len(res.Units) < minMarkers && (w.rank == 1 || w.rank == 2 || len(res.Units) == 0) {
			continue
		}
		if !f.sound(res) {
			continue
		}
		res.Why = fmt.Sprintf("step markers %s: %d ranges, in which %.2f of the GPU work was launched; a unit is the work launched in one, and lasts until the first work of the next",
			title, len(w.set.ranges), float64(w.work)/float64(max(all, 1)))
		return res
	}
	return nil
}

// bucket rounds a number of tokens up to a power of two, because prompts all differ in length.
func bucket(tokens int64) int64 {
	if tokens <= 0 {
		return -1
	}
	return int64(1) << bits.Len64(uint64(tokens-1))
}

// byUserRange makes units of the ranges that --unit nvtx:REGEX matches.
func (f *Search) byUserRange() *Result {
	what := "--unit nvtx:" + f.Spec.Pattern.String()
	none := func(why string) *Result { return &Result{Kind: KindNone, Why: what + " " + why} }
	r := &f.Trace.Ranges
	named, names := false, make([]string, len(r.Names))
	for i := range r.Names {
		names[i] = r.Names[i].Text
		named = named || f.Marked(r.Names[i].Tag)
	}
	if !named {
		return f.Spec.unmatched("NVTX range", names)
	}
	set := markersOf(f.Trace, func(name int32) bool { return f.Marked(r.Names[name].Tag) }, func(int32) bool { return false })
	if len(set.ranges) == 0 {
		return none("matches no NVTX range on a thread")
	}
	texts := lists.Set(set.ranges, func(i int32) string { return fold(r.Names[r.Name(int(i))].Text) })
	set.group(f.Input, func(i int32) Group {
		text := r.Names[r.Name(int(i))].Text
		if m, ok := kernelname.ParseMarker(text); ok {
			return Group{Phase: cmp.Or(m.Phase, "step"), Batch: m.Batch, Tokens: bucket(m.PrefillTokens)}
		}
		if len(texts) == 1 {
			return Group{Phase: "step", Batch: -1, Tokens: -1}
		}
		return Group{Phase: fold(text), Batch: -1, Tokens: -1}
	})
	res := f.markerUnits(set, f.Spec.Pattern.String())
	f.sound(res)
	switch {
	case len(res.Units) == 0:
		return none("matches ranges in which no GPU work was launched")
	case len(res.grouped()) == 0:
		return none("gives no complete unit")
	}
	res.Why = fmt.Sprintf("asked for with %s: a unit is the work launched in one of %d ranges, and lasts until the first work of the next", what, len(set.ranges))
	return res
}

// markersOf selects ranges by their names. If selected ranges nest, only the outermost counts; ranges that span a phase
// of many steps (whole) are replaced by the steps inside.
func markersOf(t *trace.Trace, is func(name int32) bool, whole func(r int32) bool) *marked {
	r := &t.Ranges
	names, found := make([]bool, len(r.Names)), false
	for n := range names {
		names[n] = is(int32(n))
		found = found || names[n]
	}
	if !found {
		return &marked{}
	}
	list := lists.Where(r.Len(), func(i int32) bool { // by start
		return names[r.Name(int(i))] && r.Thread(int(i)) != trace.None
	})
	around := nest(t, list)
	hollow := make([]bool, len(list))
	for k, i := range list {
		up := around[k]
		for depth := 0; up >= 0 && depth < maxDepth; depth, up = depth+1, around[up] {
			u := list[up]
			if r.End(int(u)) < r.End(int(i)) {
				continue
			}
			if whole(u) && !whole(i) {
				hollow[up] = true
				continue
			}
			if whole(i) && !whole(u) || !hollow[up] {
				hollow[k] = true
				break
			}
		}
	}
	m := &marked{}
	for k, i := range list {
		if !hollow[k] {
			m.ranges = append(m.ranges, i)
		}
	}
	return m
}

// nest returns, for each range of a list sorted by start, the one that is open around it on its thread, or -1. Of
// ranges that start together, the longer one is the outer one.
func nest(t *trace.Trace, list []int32) []int32 {
	r := &t.Ranges
	around, tops := make([]int32, len(list)), slices.Repeat([]int32{-1}, len(t.Threads))
	var together []int32
	for k := 0; k < len(list); {
		start := r.Start(int(list[k]))
		together = together[:0]
		for ; k < len(list) && r.Start(int(list[k])) == start; k++ {
			together = append(together, int32(k))
		}
		slices.SortStableFunc(together, func(a, b int32) int {
			return cmp.Compare(r.End(int(list[b])), r.End(int(list[a])))
		})
		for _, at := range together {
			top := &tops[r.Thread(int(list[at]))]
			for *top >= 0 && r.End(int(list[*top])) <= start {
				*top = around[*top]
			}
			around[at], *top = *top, at
		}
	}
	return around
}

// group numbers the kinds of unit in the order of their first appearance.
func (m *marked) group(in *Input, kind func(r int32) Group) {
	type key struct {
		phase         string
		batch, tokens int64
	}
	var keys lists.Numbering[key]
	m.kinds = make([]int32, len(m.ranges))
	for i, r := range m.ranges {
		g := kind(r)
		if in.MappedPhase != nil && g.Phase == "step" {
			tag := in.Trace.Ranges.Names[in.Trace.Ranges.Name(int(r))].Tag
			g.Phase = cmp.Or(in.MappedPhase(tag), g.Phase)
		}
		m.kinds[i] = keys.Of(key{g.Phase, g.Batch, g.Tokens})
		if int(m.kinds[i]) == len(m.groups) {
			m.groups = append(m.groups, g)
		}
	}
}

// launched is the GPU time launched inside the markers, in ns.
func (m *marked) launched(in *Input) int64 {
	o := newOpener(in.Trace, m.ranges).alone()
	var sum int64
	for _, device := range in.Timeline.Devices {
		for i := range device.Len() {
			if o.around(device.Call(i)) >= 0 {
				sum += device.End(i) - device.Start(i)
			}
		}
	}
	return sum
}

// markerUnits makes a unit of each marker on every device on which it launched work.
func (f *Search) markerUnits(m *marked, name string) *Result {
	f.begin()
	r := &f.Trace.Ranges
	o := newOpener(f.Trace, m.ranges).alone()
	var units []Unit
	between := newOwned(f.Trace.Memory(), f.Timeline)
	for d, device := range f.Timeline.Devices {
		at := slices.Repeat([]int32{-1}, len(m.ranges)) // the marker's unit on this device, or -1
		for i := range device.Len() {
			call := device.Call(i)
			k := o.around(call)
			if k < 0 {
				if k = o.before(call); k >= 0 {
					between[d].Set(i, k)
				}
				continue
			}
			start, end := device.Start(i), device.End(i)
			if at[k] < 0 {
				at[k] = int32(len(units))
				id := m.ranges[k]
				u := Unit{Device: device.ID, Index: int32(d), Proc: f.Trace.Threads[r.Thread(int(id))].Proc,
					Start: start, LastWork: end,
					HostStart: r.Start(int(id)), HostEnd: r.End(int(id)), Marker: id, Group: m.kinds[k]}
				if r.Open(int(id)) {
					u.State = Cut
				}
				units = append(units, u)
			}
			u := &units[at[k]]
			u.LastWork = max(u.LastWork, end)
			f.of[d].Set(i, at[k])
		}
		for i := range device.Len() {
			if k := between[d].At(i); k >= 0 {
				between[d].Set(i, at[k])
			}
		}
	}
	res := &Result{Kind: KindNVTX, Name: name, Groups: slices.Clone(m.groups), Primary: -1}
	var place []int32
	res.Units, place = sorted(units)
	between.renumber(place)
	f.of.renumber(place)
	res.between = between
	chain(res.Units, r)
	f.settle(res)
	return res
}

// chain ends each unit where the next of its process and device starts. A unit without a next one ends with its work; a
// profiler may record only one step.
func chain(units []Unit, r *trace.Ranges) {
	for i := range units {
		u := &units[i]
		u.End = u.LastWork
		if i+1 == len(units) || units[i+1].Index != u.Index || units[i+1].Proc != u.Proc {
			u.closed = u.State != Cut && (i == 0 || units[i-1].Index != u.Index || units[i-1].Proc != u.Proc)
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
