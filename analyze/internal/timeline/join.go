// Package timeline attributes cause and effect: which API call launched a piece of GPU work, which NVTX ranges were
// open around the call, and what the GPU was waiting for while it was idle.
package timeline

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Calls are, for each row of a GPU activity table, the API call that launched it (an index into Trace.API), or
// trace.None. For synchronizations and recorded events it is the call that waited or recorded.
type Calls struct {
	Kernel, Copy, Set, Graph []int32
	Sync, Event              []int32
}

// Launched says of each API call whether it launched one of some pieces of work, given by their calls.
func Launched(t *trace.Trace, work ...[]int32) []bool {
	launched := make([]bool, t.API.Len())
	for _, calls := range work {
		for _, call := range calls {
			if call != trace.None {
				launched[call] = true
			}
		}
	}
	return launched
}

// leastChunk is how many rows justify a processor of their own.
const leastChunk = 1 << 15

// Join finds the API call of every piece of GPU work by (process, correlationId): correlation ids repeat between
// processes. An export that lacks the process on either side, or the correlation id, joins nothing.
func Join(t *trace.Trace) *Calls {
	index := newCallIndex(t)
	find := func(w rows) []int32 {
		calls := spill.Make[int32](t.Memory(), w.Len())
		parallel.Chunks(len(calls), leastChunk, func(lo, hi int) {
			f := finder{index: index, near: make([]int, len(index.procs))}
			for i := lo; i < hi; i++ {
				calls[i] = f.find(w.Proc(i), w.Corr(i))
			}
		})
		return calls
	}
	c := &Calls{Kernel: find(&t.Kernels.Work), Copy: find(&t.Copies.Work), Set: find(&t.Sets.Work),
		Graph: find(&t.Graphs.Work), Sync: find(&t.Syncs), Event: find(eventRows(t.Events))}
	index.free(t.Memory())
	return c
}

// rows is a table with correlation ids.
type rows interface {
	Len() int
	Proc(i int) int32
	Corr(i int) int64
}

type eventRows trace.Events

func (e eventRows) Len() int         { return len(e) }
func (e eventRows) Proc(i int) int32 { return e[i].Proc }
func (e eventRows) Corr(i int) int64 { return e[i].Corr }

// callIndex finds API calls by process and correlation id. Ids of one process are usually dense, so that an array is
// enough; if they are not, the process has a list sorted by id.
type callIndex struct {
	api   *trace.API
	procs []procCalls
}

type procCalls struct {
	low, high int64   // ids of the process
	count     int     // of calls with an id
	zeros     int     // of those with the id 0
	dense     []int32 // by id above low: the call, or trace.None
	sparse    []int32 // calls, by id
}

// sparseFactor is how many array slots per call are still considered dense.
const sparseFactor = 3

func newCallIndex(t *trace.Trace) *callIndex {
	api, memory := &t.API, t.Memory()
	x := &callIndex{api: api, procs: make([]procCalls, len(t.Procs))}
	// By thread plus one; unknown first.
	procs := append([]int32{trace.None}, lists.Map(t.Threads, func(th trace.Thread) int32 { return th.Proc })...)
	each := func(visit func(e *procCalls, i int, id int64)) {
		for i := range api.Len() {
			if p, id := procs[api.Thread(i)+1], api.Corr(i); p != trace.None && id >= 0 {
				visit(&x.procs[p], i, id)
			}
		}
	}
	each(func(e *procCalls, _ int, id int64) {
		if e.count == 0 {
			e.low, e.high = id, id
		}
		e.low, e.high = min(e.low, id), max(e.high, id)
		e.count++
		if id == 0 {
			e.zeros++
		}
	})
	for p := range x.procs {
		e := &x.procs[p]
		switch span := e.high - e.low; { // ids are never negative, so that it cannot overflow
		case e.count == 0:
		case span < int64(e.count)*sparseFactor+1024:
			e.dense = spill.Make[int32](memory, int(span)+1)
			for i := range e.dense {
				e.dense[i] = trace.None
			}
		default:
			e.sparse = spill.Make[int32](memory, e.count)[:0]
		}
	}
	each(func(e *procCalls, i int, id int64) {
		if e.dense == nil {
			e.sparse = append(e.sparse, int32(i))
		} else if at := &e.dense[id-e.low]; *at == trace.None {
			*at = int32(i)
		}
	})
	parallel.Each(len(x.procs), func(p int) {
		byID := func(a, b int32) int {
			return cmp.Or(cmp.Compare(api.Corr(int(a)), api.Corr(int(b))), cmp.Compare(a, b))
		}
		if s := x.procs[p].sparse; !slices.IsSortedFunc(s, byID) {
			slices.SortFunc(s, byID)
		}
	})
	return x
}

// free releases the memory of the index.
func (x *callIndex) free(memory *spill.Arena) {
	for p := range x.procs {
		spill.Free(memory, x.procs[p].dense)
		spill.Free(memory, x.procs[p].sparse)
	}
}

// finder looks up one call after the other. Work runs mostly in the order in which it was launched, so that the next
// call is near the last one found.
type finder struct {
	index *callIndex
	near  []int // by process: where the last one was in its sorted list
}

// find returns the first call of the process with this correlation id.
func (f *finder) find(proc int32, corr int64) int32 {
	if proc == trace.None || corr < 0 {
		return trace.None
	}
	e := &f.index.procs[proc]
	if corr == 0 && e.zeros > 1 {
		return trace.None // CUPTI's id of work without one
	}
	if e.dense != nil {
		if at := corr - e.low; at >= 0 && at < int64(len(e.dense)) {
			return e.dense[at]
		}
		return trace.None
	}
	if e.count == 0 || corr < e.low || corr > e.high {
		return trace.None
	}
	at := lists.Near(len(e.sparse), f.near[proc],
		func(i int) bool { return f.index.api.Corr(int(e.sparse[i])) >= corr })
	f.near[proc] = at
	if call := e.sparse[at]; f.index.api.Corr(int(call)) == corr {
		return call
	}
	return trace.None
}
