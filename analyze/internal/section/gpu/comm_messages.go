package gpu

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sort"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

// commSize is the calls of one collective with one message size, in communicators of equally many ranks.
type commSize struct {
	collective string
	bytes      int64
	ranks      int64 // -1 unknown
}

// traffic is the bytes that calls moved, and their time.
type traffic struct {
	calls, time, bytes int64   // bytes of the messages
	moved, carried     float64 // bytes of the collectives, and of what each link carries; NaN if some call's are unknown
}

func (t *traffic) add(o *traffic) {
	t.calls, t.time, t.bytes = t.calls+o.calls, t.time+o.time, t.bytes+o.bytes
	t.moved, t.carried = t.moved+o.moved, t.carried+o.carried
}

// rates are the algorithm and the bus bandwidth, in bytes per second; nil unknown.
func (t *traffic) rates() (algorithm, bus *float64) {
	return bytesPerSecond(t.moved, t.time), bytesPerSecond(t.carried, t.time)
}

// messageVolume is the bytes that a collective of n ranks moves for a given message size, as nccl-tests define it: its
// size, for the algorithm bandwidth, and the bytes that each link carries, for the bus bandwidth. n is -1 if it is not
// known. What does not follow is NaN.
func messageVolume(collective string, bytes, n int64) (moved, carried float64) {
	moved, ranks := float64(bytes), float64(n)
	if n <= 0 {
		ranks = math.NaN()
	}
	switch collective {
	case kernelname.CollAllReduce:
		return moved, moved * 2 * (ranks - 1) / ranks
	case kernelname.CollAllGather, kernelname.CollReduceScatter:
		return moved * ranks, moved * (ranks - 1)
	case kernelname.CollBroadcast, kernelname.CollReduce, kernelname.CollSendRecv:
		return moved, moved
	}
	return moved, math.NaN()
}

// commMessages joins the kernels to NCCL's ranges around the calls that launched them, whose payloads state the size of
// a message.
func commMessages(in *kit.Input, out *kit.Output) {
	calls := newMessageCalls(in.Trace.NCCL)
	if len(calls.of) == 0 {
		out.Note("This export lacks the size of messages, so bandwidth is unknown: NCCL 2.18 and later states it " +
			"in the payloads of its NVTX ranges (nsys profile --trace cuda,nvtx), which nsys export writes with " +
			"--include-blobs=true, if its help lists that option.")
		return
	}
	uses := kit.NewTally[commSize, traffic]()
	seen := map[int32]*traffic{} // by call
	kernels, joined := 0, 0
	for _, d := range in.Timeline.Devices {
		for j := range d.Len() {
			if d.Class(j) != timeline.Comm || d.Start(j) < in.Span.Start {
				continue
			}
			kernels++
			at := calls.around(in, d.Call(j))
			if at < 0 {
				continue
			}
			joined++
			u := seen[at]
			if u == nil {
				c := &in.Trace.NCCL[at]
				s := commSize{collective(in, d, j), c.Bytes, cmp.Or(calls.worlds[c.Comm], -1)}
				u = uses.At(s)
				seen[at] = u
				moved, carried := messageVolume(s.collective, s.bytes, s.ranks)
				u.add(&traffic{1, 0, s.bytes, moved, carried})
			}
			u.time += d.End(j) - d.Start(j)
		}
	}
	if joined == 0 {
		out.Note("No communication kernel was launched inside an NCCL range that states the size of its message: " +
			"bandwidth is unknown.")
		return
	}
	if joined < kernels {
		out.Note(fmt.Sprintf("%d of %d communication kernels have no message size: they were launched in a group of "+
			"calls, by a CUDA graph or by another library, and bandwidth leaves them out.", kernels-joined, kernels))
	}
	messageMetrics(out, uses)
	messageTable(in, out, uses)
}

func messageMetrics(out *kit.Output, uses *kit.Tally[commSize, traffic]) {
	type class struct{ collective, size string }
	sums := kit.NewTally[class, traffic]()
	for i, s := range uses.Keys {
		size := int64(0)
		if s.bytes > 0 {
			size = 1 << (bits.Len64(uint64(s.bytes)) - 1)
		}
		for _, c := range []class{{}, {s.collective, ""}, {s.collective, strconv.FormatInt(size, 10)}} {
			sums.At(c).add(uses.Values[i])
		}
	}
	for _, c := range slices.SortedFunc(slices.Values(sums.Keys), func(a, b class) int {
		return cmp.Or(cmp.Compare(a.collective, b.collective), cmp.Compare(len(a.size), len(b.size)),
			cmp.Compare(a.size, b.size))
	}) {
		u, l := sums.At(c), report.Labels{}
		if c.collective != "" {
			l = kit.Labels("collective", c.collective)
		}
		out.From(trace.RoleNVTX, int(u.calls), "start", "end", "globalTid", "binaryData")
		if c.size == "" {
			out.Int("comm.bytes", l, u.bytes)
		} else {
			l = kit.And(l, "size", c.size)
		}
		if algorithm, bus := u.rates(); c.collective != "" {
			out.Known("comm.algorithm_bandwidth", l, algorithm)
			out.Known("comm.bus_bandwidth", l, bus)
		}
	}
}

func messageTable(in *kit.Input, out *kit.Output, uses *kit.Tally[commSize, traffic]) {
	t := out.Table("comm_sizes")
	for _, s := range slices.SortedFunc(slices.Values(uses.Keys), func(a, b commSize) int {
		return cmp.Or(cmp.Compare(uses.At(b).time, uses.At(a).time), cmp.Compare(a.collective, b.collective),
			cmp.Compare(b.bytes, a.bytes), cmp.Compare(b.ranks, a.ranks))
	}) {
		u := uses.At(s)
		algorithm, bus := u.rates()
		t.Row(
			kit.Text("collective", s.collective), kit.Int("size", s.bytes), kit.Put("ranks", kit.Known(s.ranks)),
			kit.Int("count", u.calls), kit.Int("total", u.time),
			kit.Float("mean", float64(u.time)/float64(u.calls)), kit.Maybe("algorithm", algorithm), kit.Maybe("bus", bus))
	}
	t.Cut(in.Options.Top, "count", "total").Add()
}

// messageCalls are NCCL's ranges that state the size of a message, by thread and start.
type messageCalls struct {
	of     map[int64][]int32 // by globalTid: indexes into trace.NCCL
	list   []trace.NCCLCall
	worlds map[uint64]int64 // by communicator: its ranks, 0 if calls disagree
}

func newMessageCalls(list []trace.NCCLCall) *messageCalls {
	m := &messageCalls{of: map[int64][]int32{}, list: list, worlds: map[uint64]int64{}}
	for i, c := range list { // by start
		if c.Bytes >= 0 {
			m.of[c.Thread] = append(m.of[c.Thread], int32(i))
		}
		if c.Comm != 0 && c.World > 0 {
			if n, known := m.worlds[c.Comm]; known && n != c.World {
				m.worlds[c.Comm] = 0
			} else {
				m.worlds[c.Comm] = c.World
			}
		}
	}
	return m
}

// around is the range in which an API call began, or -1. NCCL's ranges that state a size do not nest.
func (m *messageCalls) around(in *kit.Input, call int32) int32 {
	if call == trace.None {
		return -1
	}
	api := &in.Trace.API
	thread := api.Thread(int(call))
	if thread == trace.None {
		return -1
	}
	list, start := m.of[in.Trace.Threads[thread].Global], api.Start(int(call))
	at := sort.Search(len(list), func(i int) bool { return m.list[list[i]].Start > start })
	if at == 0 || m.list[list[at-1]].End < start {
		return -1
	}
	return list[at-1]
}
