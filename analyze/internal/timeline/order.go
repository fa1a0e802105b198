package timeline

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Kind of a piece of GPU work: the table it is a row of.
type Kind uint8

// Kinds of GPU work.
const (
	KernelWork Kind = iota
	GraphWork
	CopyWork
	SetWork
)

// Work is one piece of GPU work on a device's timeline.
type Work struct {
	Start, End int64
	Corr       int64
	Row        int32 // row in the table of its kind
	Call       int32 // the API call that launched it, or trace.None
	Kind       Kind
}

// compare orders the work of a device: by start, then the lowest correlation id, then kind, then row.
func (w *Work) compare(x *Work) int {
	return cmp.Or(cmp.Compare(w.Start, x.Start), cmp.Compare(w.Corr, x.Corr), cmp.Compare(w.Kind, x.Kind),
		cmp.Compare(w.Row, x.Row))
}

// ref is a piece of work in four bytes: its sort above, its row below.
type ref uint32

// Sorts of work: its kind, and for kernels whether they communicate.
const (
	computeKernel = iota
	commKernel
	wholeGraph
	memoryCopy
	memorySet
	sorts

	rowBits = 29
	// MaxRows is how many rows of one sort of GPU work can be numbered: traces with more are refused on opening.
	MaxRows = 1 << rowBits
)

func (r ref) sort() int { return int(r >> rowBits) }
func (r ref) row() int  { return int(r & (MaxRows - 1)) }

var (
	sortKind  = [sorts]Kind{KernelWork, KernelWork, GraphWork, CopyWork, SetWork}
	sortClass = [sorts]Class{Compute, Comm, Compute, Copy, Copy}
)

// order is the work of one device.
type order []ref

// sources are the tables in which the work of a timeline is looked up.
type sources struct {
	trace  *trace.Trace
	work   [sorts]*trace.Work
	calls  [sorts][]int32
	isComm []bool // by kernel name
}

func newSources(t *trace.Trace, c *Calls, isComm []bool) *sources {
	k := &t.Kernels.Work
	return &sources{
		trace:  t,
		work:   [sorts]*trace.Work{k, k, &t.Graphs.Work, &t.Copies.Work, &t.Sets.Work},
		calls:  [sorts][]int32{c.Kernel, c.Kernel, c.Graph, c.Copy, c.Set},
		isComm: isComm,
	}
}

func (s *sources) start(r ref) int64 { return s.work[r.sort()].Start(r.row()) }
func (s *sources) end(r ref) int64   { return s.work[r.sort()].End(r.row()) }

func (s *sources) at(r ref) Work {
	k, i := r.sort(), r.row()
	w := s.work[k]
	return Work{Start: w.Start(i), End: w.End(i), Corr: w.Corr(i), Row: int32(i), Call: s.calls[k][i],
		Kind: sortKind[k]}
}

// layOut finds the devices and, of each, the work that overlaps the window, by start. A device without work in the
// window is idle, not absent. Work that starts together is not in order yet.
func (s *sources) layOut(window interval.Interval) []*Device {
	tables := []int{computeKernel, wholeGraph, memoryCopy, memorySet}
	var ids lists.Numbering[int32]
	var counts []int // by number of the id
	for _, k := range tables {
		for w, i := s.work[k], 0; i < w.Len(); i++ {
			*lists.At(&counts, ids.Of(w.Device(i)))++
		}
	}
	list := lists.Map(lists.Indexes[int](len(counts)), func(n int) *Device {
		return &Device{ID: ids.Keys[n], in: s, window: window, order: order(spill.Make[ref](s.trace.Memory(), counts[n]))[:0]}
	})
	byStart(lists.Map(tables, func(k int) *trace.Work { return s.work[k] }), func(table, i int) {
		k := tables[table]
		w := s.work[k]
		d := list[ids.Of(w.Device(i))]
		r := ref(k<<rowBits | i)
		if k == computeKernel && s.isComm[s.trace.Kernels.Name(i)] {
			r = ref(commKernel<<rowBits | i)
		}
		switch start, end := w.Start(i), w.End(i); {
		case start > window.End:
			if end > start && (d.after.End == d.after.Start || start <= d.after.Start) {
				if x := s.at(r); d.after.End == d.after.Start || x.compare(&d.after) < 0 {
					d.after = x
				}
			}
		case end >= window.Start:
			d.order = append(d.order, r)
		}
	})
	slices.SortFunc(list, func(a, b *Device) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// settle orders work that starts together.
func (o order) settle(s *sources) {
	for lo := 0; lo+1 < len(o); {
		hi, start := lo+1, s.start(o[lo])
		for hi < len(o) && s.start(o[hi]) == start {
			hi++
		}
		if hi-lo > 1 {
			slices.SortFunc(o[lo:hi], func(a, b ref) int {
				x, y := s.at(a), s.at(b)
				return x.compare(&y)
			})
		}
		lo = hi
	}
}

// Len is how many pieces of work overlap the window.
func (d *Device) Len() int { return len(d.order) }

// Work is the i-th piece of the device's work, by start, then correlation id.
func (d *Device) Work(i int) Work { return d.in.at(d.order[i]) }

// Kind of the i-th piece of work.
func (d *Device) Kind(i int) Kind { return sortKind[d.order[i].sort()] }

// Class of the i-th piece of work.
func (d *Device) Class(i int) Class { return sortClass[d.order[i].sort()] }

// Row of the i-th piece of work in the table of its kind.
func (d *Device) Row(i int) int { return d.order[i].row() }

// Start of the i-th piece of work.
func (d *Device) Start(i int) int64 { return d.span.Start(i) }

// End of the i-th piece of work.
func (d *Device) End(i int) int64 { return d.span.End(i) }

// Call is the API call that launched the i-th piece of work, or trace.None.
func (d *Device) Call(i int) int32 {
	r := d.order[i]
	return d.in.calls[r.sort()][r.row()]
}

// Proc is the process of the i-th piece of work, or trace.None.
func (d *Device) Proc(i int) int32 {
	r := d.order[i]
	return d.in.work[r.sort()].Proc(r.row())
}

// Stream is the stream of the i-th piece of work, or -1.
func (d *Device) Stream(i int) int64 {
	r := d.order[i]
	return d.in.work[r.sort()].Stream(r.row())
}
