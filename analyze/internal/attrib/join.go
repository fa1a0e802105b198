// Package attrib says who caused what: which API call launched a piece of GPU work, which NVTX ranges were open around
// the call, and what the GPU was waiting for while it was idle. The rules are design.md's, section 4.
package attrib

import (
	"sort"

	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// Calls are, for each row of a GPU activity table, the API call that launched it (an index into Trace.API), or
// trace.None.
type Calls struct {
	Kernel, Copy, Set, Graph []int32
}

// Join finds the API call of every piece of GPU work by (process, correlationId): correlation ids repeat between
// processes. An export that lacks the process on either side, or the correlation id, joins nothing.
func Join(t *trace.Trace) *Calls {
	index := newCallIndex(t)
	find := func(w *trace.Work) []int32 {
		calls := make([]int32, w.Len())
		for i := range calls {
			calls[i] = index.find(w.Proc(i), w.Corr(i))
		}
		return calls
	}
	return &Calls{Kernel: find(&t.Kernels.Work), Copy: find(&t.Copies.Work), Set: find(&t.Sets.Work), Graph: find(&t.Graphs.Work)}
}

// callIndex finds API calls by process and correlation id. Ids of one process are dense, so an array beats a map by a
// factor of twenty; where they are not, the process falls back to a sorted list.
type callIndex struct {
	procs []procCalls
}

type procCalls struct {
	low    int64
	dense  []int32
	sparse []corrCall
}

type corrCall struct {
	corr int64
	call int32
}

// sparseFactor is how many array slots per call are still considered dense.
const sparseFactor = 16

func newCallIndex(t *trace.Trace) *callIndex {
	x := &callIndex{procs: make([]procCalls, len(t.Procs))}
	type bounds struct{ low, high, count int64 }
	spans := make([]bounds, len(t.Procs))
	api := &t.API
	procOf := func(i int) int32 {
		if th := api.Thread(i); th != trace.None {
			return t.Threads[th].Proc
		}
		return trace.None
	}
	for i := range api.Len() {
		p, c := procOf(i), api.Corr(i)
		if p == trace.None || c < 0 {
			continue
		}
		b := &spans[p]
		if b.count == 0 || c < b.low {
			b.low = c
		}
		if b.count == 0 || c > b.high {
			b.high = c
		}
		b.count++
	}
	for p, b := range spans {
		if b.count == 0 {
			continue
		}
		x.procs[p].low = b.low
		if b.high-b.low < b.count*sparseFactor+1024 {
			x.procs[p].dense = make([]int32, b.high-b.low+1)
			for i := range x.procs[p].dense {
				x.procs[p].dense[i] = trace.None
			}
		} else {
			x.procs[p].sparse = make([]corrCall, 0, b.count)
		}
	}
	for i := range api.Len() {
		p, c := procOf(i), api.Corr(i)
		if p == trace.None || c < 0 {
			continue
		}
		e := &x.procs[p]
		if e.dense != nil {
			if at := &e.dense[c-e.low]; *at == trace.None {
				*at = int32(i)
			}
		} else {
			e.sparse = append(e.sparse, corrCall{c, int32(i)})
		}
	}
	for p := range x.procs {
		s := x.procs[p].sparse
		sort.SliceStable(s, func(i, j int) bool { return s[i].corr < s[j].corr })
	}
	return x
}

// find returns the first call of the process with this correlation id.
func (x *callIndex) find(proc int32, corr int64) int32 {
	if proc == trace.None || corr < 0 {
		return trace.None
	}
	e := &x.procs[proc]
	if e.dense != nil {
		if at := corr - e.low; at >= 0 && at < int64(len(e.dense)) {
			return e.dense[at]
		}
		return trace.None
	}
	i := sort.Search(len(e.sparse), func(i int) bool { return e.sparse[i].corr >= corr })
	if i < len(e.sparse) && e.sparse[i].corr == corr {
		return e.sparse[i].call
	}
	return trace.None
}
