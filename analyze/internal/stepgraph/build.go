package stepgraph

import (
	"cmp"
	"slices"
	"sort"

	"github.com/nsys-llm/explain/analyze/internal/attrib"
	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// Bounds of what is believed, in ns but for the queue.
const (
	longCall   = 20_000  // from which a cudaFree is asked what it waited for
	roomCall   = 4_000   // from which a launch is asked whether its queue was full
	roomAhead  = 100_000 // from its end to the start of what it launched
	fullQueue  = 128     // pieces ahead of a launch that waits for room; CUDA holds about a thousand
	justEnded  = 5_000   // between work that nothing explains and the work before that it seems to wait for
	unexplain  = 10_000  // beyond the typical latency: from here on something else is sought
	sampleSize = 4096    // of latencies
)

// latencies where a capture has no sample.
const usualLaunch, usualStream, usualEvent = 5_000, 1_000, 2_000 // usualLaunch from the start of the call

// stream is the work of one stream in the order in which it started, which is the order of its launches.
type stream struct {
	proc, device int32 // device is a deviceId
	id           int64
	pieces       []int32
	calls        []int32 // by place in pieces: the latest launching call so far, or trace.None
}

// builder is what only building needs.
type builder struct {
	*Graph
	t       *trace.Trace
	calls   *attrib.Calls
	streams []stream
	ofProc  map[int32][]int32 // indexes into streams
	own     []callPiece       // of calls that may have waited for their own work, or for room in the queue; by call
}

type callPiece struct{ call, piece int32 }

// New builds the graph of a timeline. In time it is n log n in the rows of the capture.
func New(t *trace.Trace, calls *attrib.Calls, tl *attrib.Timeline) *Graph {
	g := &Graph{Timeline: tl, trace: t, api: &t.API, base: make([]int32, len(tl.Devices))}
	n := 0
	for d := range tl.Devices {
		g.base[d] = int32(n)
		n += tl.Devices[d].Len()
	}
	memory := t.Memory()
	list := func(n int) []int32 {
		s := spill.Make[int32](memory, n)
		for i := range s {
			s[i] = trace.None
		}
		return s
	}
	if n >= maxWork {
		return nil
	}
	g.before, g.after = list(n), list(n)
	g.held, g.waited = list(t.API.Len()), list(t.API.Len())
	b := &builder{Graph: g, t: t, calls: calls, ofProc: map[int32][]int32{}}
	places, callsOf := b.layOut(n)
	b.measure()
	b.hosts()
	b.measureEvents()
	b.collect()
	b.infer()
	spill.Free(memory, places)
	spill.Free(memory, callsOf)
	return g
}

type streamKey struct {
	proc, device int32
	id           int64
}

// layOut lists the work of each stream, and what each piece follows.
func (b *builder) layOut(n int) (pieces, calls []int32) {
	memory := b.t.Memory()
	pieces, calls = spill.Make[int32](memory, n), spill.Make[int32](memory, n)
	index := map[streamKey]int32{}
	var counts []int
	each := func(visit func(s int32, d *attrib.Device, piece int32, i int)) {
		for di := range b.Timeline.Devices {
			d := &b.Timeline.Devices[di]
			last, at := streamKey{proc: -2}, int32(0)
			for i := range d.Len() {
				k := streamKey{d.Proc(i), d.ID, d.Stream(i)}
				if k != last {
					s, ok := index[k]
					if !ok {
						s = int32(len(index))
						index[k] = s
						b.streams = append(b.streams, stream{proc: k.proc, device: k.device, id: k.id})
						b.ofProc[k.proc] = append(b.ofProc[k.proc], s)
						counts = append(counts, 0)
					}
					last, at = k, s
				}
				visit(at, d, b.base[di]+int32(i), i)
			}
		}
	}
	each(func(s int32, _ *attrib.Device, _ int32, _ int) { counts[s]++ })
	from := 0
	for s := range b.streams {
		x := &b.streams[s]
		x.pieces, x.calls = pieces[from:from:from+counts[s]], calls[from:from:from+counts[s]]
		from += counts[s]
	}
	longest := make([]int32, len(b.streams)) // by stream: the piece that ends last so far
	each(func(s int32, d *attrib.Device, piece int32, i int) {
		x, start := &b.streams[s], d.Start(i)
		call := d.Call(i)
		latest := call
		if k := len(x.pieces); k > 0 {
			latest = max(call, x.calls[k-1])
			b.before[piece] = x.pieces[k-1]
			if b.end(longest[s]) <= start {
				b.before[piece] = longest[s]
			}
		} else {
			longest[s] = piece
		}
		if d.End(i) >= b.end(longest[s]) {
			longest[s] = piece
		}
		x.pieces, x.calls = append(x.pieces, piece), append(x.calls, latest)
		if call != trace.None && b.mayWait(d, i, int(call)) {
			b.own = append(b.own, callPiece{call, piece})
		}
	})
	slices.SortFunc(b.own, func(x, y callPiece) int {
		return cmp.Or(cmp.Compare(x.call, y.call), cmp.Compare(x.piece, y.piece))
	})
	return pieces, calls
}

// mayWait reports whether a call may have waited for the work that it launched, or for room.
func (b *builder) mayWait(d *attrib.Device, i, call int) bool {
	n := &b.api.Names[b.api.Name(call)]
	room := b.api.Dur(call) > roomCall && d.Start(i)-b.api.End(call) > roomAhead
	switch {
	case n.SyncCopy:
		return true
	case n.Launch:
		return room
	case n.AsyncCopy && d.Kind(i) == attrib.CopyWork:
		row := d.Row(i)
		return b.t.Copies.SrcKind(row) == 0 || b.t.Copies.DstKind(row) == 0
	}
	return false
}

// upTo is the last piece of the stream that was launched by a call before call, or trace.None.
func (s *stream) upTo(call int32) int32 {
	if k := sort.Search(len(s.calls), func(k int) bool { return s.calls[k] >= call }); k > 0 {
		return s.pieces[k-1]
	}
	return trace.None
}

// from is the first piece that was launched by a call after call, or trace.None.
func (s *stream) from(call int32) int32 {
	if k := sort.Search(len(s.calls), func(k int) bool { return s.calls[k] > call }); k < len(s.calls) {
		return s.pieces[k]
	}
	return trace.None
}

// named is the stream of a process by what a row says, by index, or -1. A process that numbers its devices otherwise
// than the timeline is told apart by the stream alone.
func (b *builder) named(proc, device int32, id int64) int32 {
	found := int32(-1)
	for _, s := range b.ofProc[proc] {
		if x := &b.streams[s]; x.id == id {
			if x.device == device {
				return s
			}
			if found >= 0 {
				return -1
			}
			found = s
		}
	}
	return found
}

// sample keeps every k-th of many numbers.
type sample struct {
	list   []int64
	step   int
	passed int
}

func (s *sample) add(v int64) {
	s.step = max(s.step, 1)
	if s.passed++; s.passed%s.step != 0 {
		return
	}
	if s.list = append(s.list, v); len(s.list) == 2*sampleSize {
		for i := range sampleSize {
			s.list[i] = s.list[2*i]
		}
		s.list, s.step = s.list[:sampleSize], 2*s.step
	}
}

// at is a percentile, or usual where there are fewer than three.
func (s *sample) at(q float64, usual int64) int64 {
	if len(s.list) < 3 {
		return usual
	}
	slices.Sort(s.list)
	return int64(stat.Percentile(s.list, q))
}

// measure finds the typical latencies: of launches into a stream that was idle, and between work that was launched long
// before. Half of them are longer.
func (b *builder) measure() {
	var launch [attrib.SetWork + 1][2]sample
	var stream [attrib.SetWork + 1]sample
	for d := range b.Timeline.Devices {
		device := &b.Timeline.Devices[d]
		for i := range device.Len() {
			w := device.Work(i)
			if w.Call == trace.None {
				continue
			}
			from, to := b.api.Start(int(w.Call)), b.api.End(int(w.Call))
			p := b.before[b.base[d]+int32(i)]
			switch {
			case from > w.Start:
			case p == trace.None || b.end(p)+usualEvent < from:
				at, still := b.launched(&w)
				launch[w.Kind][still].add(w.Start - at)
			case to+usualLaunch < b.end(p) && b.end(p) <= w.Start:
				stream[w.Kind].add(w.Start - b.end(p))
			}
		}
	}
	for k := range launch {
		b.typical.launch[k] = [2]int64{launch[k][0].at(0.5, usualStream), launch[k][1].at(0.5, usualLaunch)}
		b.typical.stream[k] = stream[k].at(0.5, usualStream)
	}
	b.typical.event = usualEvent
}

// measureEvents finds the typical latency of work that waited for an event.
func (b *builder) measureEvents() {
	var event sample
	for d := range b.Timeline.Devices {
		device := &b.Timeline.Devices[d]
		for i := range device.Len() {
			piece := b.base[d] + int32(i)
			p := b.after[piece]
			if p == trace.None {
				continue
			}
			w, at := device.Work(i), b.end(p)
			if q := b.before[piece]; (q == trace.None || b.end(q)+usualEvent < at) &&
				(w.Call == trace.None || b.api.End(int(w.Call))+usualLaunch < at) {
				event.add(w.Start - at)
			}
		}
	}
	b.typical.event = event.at(0.5, usualEvent)
}

// infer looks for what work waited for that starts later than all that is known explains: other work of its device that
// had just ended.
func (b *builder) infer() {
	byDevice := map[int32][]int32{}
	for s := range b.streams {
		byDevice[b.streams[s].device] = append(byDevice[b.streams[s].device], int32(s))
	}
	for d := range b.Timeline.Devices {
		device := &b.Timeline.Devices[d]
		streams := byDevice[device.ID]
		if len(streams) < 2 || len(streams) > 64 {
			continue
		}
		for i := range device.Len() {
			piece := b.base[d] + int32(i)
			w := device.Work(i)
			if h := b.bind(&w, piece); b.after[piece] != trace.None || w.Start-h.ready <= unexplain || h.by == ByNothing {
				continue
			}
			best, at := trace.None, w.Start-justEnded
			for _, s := range streams {
				x := b.streams[s].pieces
				k := sort.Search(len(x), func(k int) bool { return x[k] >= piece })
				if k > 0 && x[k-1] != b.before[piece] {
					if end := b.end(x[k-1]); end >= at && end <= w.Start {
						best, at = x[k-1], end
					}
				}
			}
			if best != trace.None {
				b.after[piece] = best | inferred
				b.Found.Inferred++
			}
		}
	}
}
