package workunit

import (
	"sort"

	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// owners finds the marker of an API call: the one open around it on its thread, or, where all markers of the
// process are on one thread, the one open there when another thread made the call.
type owners struct {
	f        *finder
	m        *marked
	byThread []markerList
	alone    []int32 // by process: the thread that has all its markers, if they do not overlap, or trace.None
}

// markerList are the markers of one thread, as indexes into marked.ranges. Both their starts and their ends ascend,
// since none lies inside another.
type markerList struct {
	list []int32
	near int // where the last search ended: calls come much in order
}

func (f *finder) owners(m *marked) *owners {
	r := &f.Trace.Ranges
	o := &owners{f: f, m: m, byThread: make([]markerList, len(f.Trace.Threads)),
		alone: make([]int32, len(f.Trace.Procs))}
	const several = -2
	for p := range o.alone {
		o.alone[p] = trace.None
	}
	for i, id := range m.ranges {
		th := r.Thread(int(id))
		list := &o.byThread[th].list
		overlap := len(*list) > 0 && r.End(int(m.ranges[(*list)[len(*list)-1]])) > r.Start(int(id))
		*list = append(*list, int32(i))
		p := f.Trace.Threads[th].Proc
		if p == trace.None {
			continue
		}
		switch {
		case o.alone[p] == trace.None:
			o.alone[p] = th
		case o.alone[p] != th || overlap:
			o.alone[p] = several
		}
	}
	for p := range o.alone {
		if o.alone[p] == several {
			o.alone[p] = trace.None
		}
	}
	return o
}

// of is the index of the call's marker, or -1.
func (o *owners) of(call int32) int32 {
	if call == trace.None {
		return -1
	}
	api := &o.f.Trace.API
	th := api.Thread(int(call))
	if th == trace.None {
		return -1
	}
	start, end := api.Start(int(call)), api.End(int(call))
	if m := o.open(th, start, end); m >= 0 && o.end(m) > start {
		return m
	}
	p := o.f.Trace.Threads[th].Proc
	if p == trace.None || o.alone[p] == trace.None || o.alone[p] == th {
		return -1
	}
	return o.open(o.alone[p], start, end)
}

// before is the last marker that started before the call, on its thread or the one that has all of its process's,
// or -1.
func (o *owners) before(call int32) int32 {
	if call == trace.None {
		return -1
	}
	th := o.f.Trace.API.Thread(int(call))
	if th == trace.None {
		return -1
	}
	if p := o.f.Trace.Threads[th].Proc; len(o.byThread[th].list) == 0 && p != trace.None {
		th = o.alone[p]
	}
	if th == trace.None {
		return -1
	}
	list, start := o.byThread[th].list, o.f.Trace.API.Start(int(call))
	k := sort.Search(len(list), func(i int) bool { return o.start(list[i]) > start })
	if k == 0 {
		return -1
	}
	return list[k-1]
}

func (o *owners) start(m int32) int64 { return o.f.Trace.Ranges.Start(int(o.m.ranges[m])) }
func (o *owners) end(m int32) int64   { return o.f.Trace.Ranges.End(int(o.m.ranges[m])) }

// open is the last marker of the thread that starts no later than start, if it is open up to end, or -1.
func (o *owners) open(th int32, start, end int64) int32 {
	l := &o.byThread[th]
	if len(l.list) == 0 {
		return -1
	}
	last := func(i int) bool { // whether the i-th is the last that starts by then
		return o.start(l.list[i]) <= start && (i+1 == len(l.list) || o.start(l.list[i+1]) > start)
	}
	switch {
	case last(l.near):
	case l.near+1 < len(l.list) && last(l.near+1):
		l.near++
	default:
		at := sort.Search(len(l.list), func(i int) bool { return o.start(l.list[i]) > start })
		if at == 0 {
			return -1
		}
		l.near = at - 1
	}
	if m := l.list[l.near]; o.end(m) >= end {
		return m
	}
	return -1
}
