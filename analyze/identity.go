package analyze

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// identity says which capture this is, see [report.Capture].
func identity(in *kit.Input) report.Capture {
	var id report.Capture
	if in.NoTrace {
		return id
	}
	t := in.Trace
	id.Content = content(in)
	for _, r := range t.Ranks {
		id.Ranks = append(id.Ranks, r.Rank)
	}
	slices.Sort(id.Ranks)
	id.Ranks = slices.Compact(id.Ranks)
	session := ""
	if at := t.Meta.SessionStart; at > 0 {
		session = strconv.FormatInt(at, 10)
		id.SessionStart = report.Hash("session", session)
	}
	gpus := lists.Map(t.GPUs, func(g trace.GPUInfo) string { return g.Fingerprint })
	if gpus = slices.DeleteFunc(gpus, func(f string) bool { return f == "" }); len(gpus) > 0 {
		slices.Sort(gpus)
		id.Host = report.Hash(append([]string{"host"}, gpus...)...)
		if session != "" {
			hour := t.Meta.SessionStart / time.Hour.Nanoseconds()
			id.Run = report.Hash("run", *id.Host, strconv.FormatInt(hour, 10))
		}
	}
	if len(t.Procs) > 0 {
		pids := lists.Map(t.Procs, func(p trace.Proc) string { return strconv.FormatInt(p.PID, 10) })
		slices.Sort(pids)
		id.Processes = report.Hash(append([]string{"processes", session}, pids...)...)
	}
	return id
}

// eventSum adds up the hashes of events, so that order does not matter: exports differ in how they order equal times.
type eventSum struct {
	from int64 // times count from here
	a, b uint64
	n    uint64
}

// add adds an event that starts at start and takes dur; word encodes everything else.
func (s *eventSum) add(start, dur int64, word uint64) {
	x := mix(mix(mix(uint64(start-s.from))^uint64(dur)) ^ word)
	s.a += x
	s.b += mix(x ^ 0x9e3779b97f4a7c15)
	s.n++
}

// mix makes every bit of the result depend on every bit of x, which may be 0.
func mix(x uint64) uint64 { return workunit.Mix(x + 0x9e3779b97f4a7c15) }

func textHash(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// content is the hash over the events of the window, null if there are none. It makes one pass over columns in memory.
func content(in *kit.Input) *string {
	t := in.Trace
	s := eventSum{from: in.Span.Start}
	work := func(w *trace.Work, word func(i int) uint64) {
		lo, hi := w.Starting(in.Span.Start, in.Span.End)
		for i := lo; i < hi; i++ {
			s.add(w.Start(i), w.Dur(i), mix(word(i))^uint64(w.Device(i)))
		}
	}
	names := lists.Map(t.Kernels.Names, func(k trace.KernelName) uint64 { return textHash("kernel", k.Name) })
	configs := make([]uint64, len(t.Kernels.Configs))
	for i, c := range t.Kernels.Configs {
		for _, v := range [...]int32{c.Grid[0], c.Grid[1], c.Grid[2], c.Block[0], c.Block[1], c.Block[2]} {
			configs[i] = mix(configs[i] ^ uint64(v))
		}
	}
	work(&t.Kernels.Work, func(i int) uint64 { return names[t.Kernels.Name(i)] ^ configs[t.Kernels.Config(i)] })
	copies := &t.Copies
	work(&copies.Work, func(i int) uint64 {
		kinds := uint64(copies.Kind(i))<<32 ^ uint64(uint16(copies.SrcKind(i)))<<16 ^ uint64(uint16(copies.DstKind(i)))
		return mix(uint64(copies.Bytes(i))) ^ kinds ^ 1<<60
	})
	work(&t.Sets.Work, func(i int) uint64 { return mix(uint64(t.Sets.Bytes(i))) ^ 2<<60 })
	work(&t.Graphs.Work, func(int) uint64 { return 3 << 60 })
	calls := lists.Map(t.API.Names, func(a trace.APIName) uint64 { return textHash("call", a.Name) })
	for lo, hi := t.API.Starting(in.Host.Start, in.Host.End); lo < hi; lo++ {
		s.add(t.API.Start(lo), t.API.Dur(lo), calls[t.API.Name(lo)])
	}
	ranges := lists.Map(t.Ranges.Names, func(r trace.RangeName) uint64 { return textHash("range", r.Text) })
	for lo, hi := t.Ranges.Starting(in.Host.Start, in.Host.End); lo < hi; lo++ {
		s.add(t.Ranges.Start(lo), t.Ranges.Dur(lo), ranges[t.Ranges.Name(lo)])
	}
	if s.n == 0 {
		return nil
	}
	var sum [24]byte
	binary.LittleEndian.PutUint64(sum[:], s.a)
	binary.LittleEndian.PutUint64(sum[8:], s.b)
	binary.LittleEndian.PutUint64(sum[16:], s.n)
	return report.Hash("content", string(sum[:]))
}
