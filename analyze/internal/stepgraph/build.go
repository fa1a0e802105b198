package stepgraph

import (
	"slices"
	"sort"

	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Bounds of plausible waits, in ns except for the queue.
const (
	longCall   = 20_000  // from which it is checked what a cudaFree waited for
	roomCall   = 4_000   // from which it is checked whether the queue of a launch was full
	roomAhead  = 100_000 // from its end to the start of the work that it launched
	fullQueue  = 128     // pieces ahead of a launch that waits for room, at least; CUDA holds about a thousand
	nearlyFull = 90      // percent of the most pieces that were ahead of a launch into the stream
	justEnded  = 5_000   // between work that nothing explains and earlier work that it seems to wait for
	unexplain  = 10_000  // beyond the typical latency: from here on another explanation is sought
	sampleSize = 4096    // of latencies
	// mostLatency bounds a typical latency: work that starts later waits for something else, known or not.
	mostLatency = 100_000
)

// quickest is the share of launches that reach the GPU sooner than the quickest.
const quickest = 0.05

// latencies of a capture without samples.
const usualLaunch, usualStream, usualEvent = 5_000, 1_000, 2_000 // usualLaunch from the start of the call

// stream is the work of one stream in the order in which it started, which is the order of its launches.
type stream struct {
	streamKey
	d      *timeline.Device
	base   int32 // the number of the device's first piece
	pieces []int32
	near   int    // what started found last
	full   int    // pieces ahead of a launch that waits for room; 0 until it is asked for
	later  sparse // by place in pieces: the latest launching call so far, where that is not the piece's own
}

type streamKey struct {
	proc, device int32 // device is a deviceId
	id           int64
}

// builder is the state that only building needs.
type builder struct {
	g        *Graph
	calls    *timeline.Calls
	onDevice [][]stream
	streams  streams
}

// streams are those of each process.
type streams map[int32][]*stream

// New builds the graph of a timeline. In time it is n log n in the rows of the capture.
func New(t *trace.Trace, calls *timeline.Calls, tl *timeline.Timeline) *Graph {
	g := &Graph{Timeline: tl, trace: t, api: &t.API, base: make([]int32, len(tl.Devices))}
	n := 0
	for d := range tl.Devices {
		g.base[d] = int32(n)
		n += tl.Devices[d].Len()
	}
	memory := t.Memory()
	if n >= maxWork {
		return nil
	}
	g.before = spill.Make[int32](memory, n)
	g.after, g.group = newSparse(n), newSparse(n)
	g.waited = spill.NewIndexes(memory, t.API.Len())
	b := &builder{g: g, calls: calls, onDevice: make([][]stream, len(tl.Devices)), streams: streams{}}
	places := b.layOut(n)
	parallel.Do(b.hosts, b.measure, b.collect)
	g.Found.Collectives = int64(len(g.lasts))
	b.measureEvents()
	b.infer()
	spill.Free(memory, places)
	return g
}

// layOut lists the work of each stream, and the predecessor of each piece. A stream is of one device.
func (b *builder) layOut(n int) (pieces []int32) {
	pieces = spill.Make[int32](b.g.memory(), n)
	parallel.Each(len(b.onDevice), func(d int) {
		from := int(b.g.base[d])
		to := from + b.g.Timeline.Devices[d].Len()
		b.onDevice[d] = b.layOutDevice(d, pieces[from:to])
	})
	for _, list := range b.onDevice {
		for i := range list {
			s := &list[i]
			b.streams[s.proc] = append(b.streams[s.proc], s)
		}
	}
	return pieces
}

// layOutDevice is layOut of one device, for whose pieces there is room.
func (b *builder) layOutDevice(device int, room []int32) []stream {
	d, base := b.g.Timeline.Devices[device], b.g.base[device]
	before := b.g.before[base:][:d.Len()] // first used for the stream
	list, counts := numberStreams(d, before)
	for s := range list {
		list[s].d, list[s].base = d, base
		list[s].pieces, list[s].later, room = room[:0:counts[s]], newSparse(counts[s]), room[counts[s]:]
	}
	type soFar struct {
		longest int32 // the piece that ends last
		end     int64 // of it
		call    int32 // the latest
	}
	tops := make([]soFar, len(list)) // by stream
	for i := range before {
		s := before[i]
		x, piece, top := &list[s], base+int32(i), &tops[s]
		start, end, call := d.Start(i), d.End(i), d.Call(i)
		before[i] = trace.None
		if k := len(x.pieces); k > 0 {
			before[i] = x.pieces[k-1]
			if top.end <= start {
				before[i] = top.longest
			}
			if call < top.call {
				x.later.set(int32(k), top.call)
			}
			top.call = max(top.call, call)
		} else {
			top.call = call
		}
		if len(x.pieces) == 0 || end >= top.end {
			top.longest, top.end = piece, end
		}
		x.pieces = append(x.pieces, piece)
	}
	return list
}

// call is the latest call that launched one of the pieces up to the k-th, or trace.None.
func (s *stream) call(k int) int32 {
	if c := s.later.of(int32(k)); c != trace.None {
		return c
	}
	return s.d.Call(int(s.pieces[k] - s.base))
}

// numberStreams finds the streams of a device in the order in which they start, that of each piece, and how many pieces
// each has.
func numberStreams(d *timeline.Device, of []int32) (list []stream, counts []int) {
	var keys lists.Numbering[streamKey]
	for i := range of {
		k := streamKey{d.Proc(i), d.ID, d.Stream(i)}
		if of[i] = keys.Of(k); int(of[i]) == len(list) {
			list, counts = append(list, stream{streamKey: k}), append(counts, 0)
		}
		counts[of[i]]++
	}
	return list, counts
}

// mayWait reports whether a call may have waited for the work that it launched, or for room in the queue.
func (b *builder) mayWait(d *timeline.Device, i, call int, quick []int64) bool {
	name := b.g.api.Name(call)
	n := &b.g.api.Names[name]
	switch {
	case n.SyncCopy:
		return true
	case n.Launch:
		return b.g.api.Dur(call) > max(roomCall, 2*quick[name]) && d.Start(i)-b.g.api.End(call) > roomAhead
	case n.AsyncCopy && d.Kind(i) == timeline.CopyWork:
		row := d.Row(i)
		return b.g.trace.Copies.SrcKind(row) == 0 || b.g.trace.Copies.DstKind(row) == 0
	}
	return false
}

// upTo is the last piece of the stream that was launched by a call before call, or trace.None.
func (s *stream) upTo(call int32) int32 {
	if k := sort.Search(len(s.pieces), func(k int) bool { return s.call(k) >= call }); k > 0 {
		return s.pieces[k-1]
	}
	return trace.None
}

// from is the first piece that was launched by a call after call, or trace.None.
func (s *stream) from(call int32) int32 {
	if k := sort.Search(len(s.pieces), func(k int) bool { return s.call(k) > call }); k < len(s.pieces) {
		return s.pieces[k]
	}
	return trace.None
}

// named is the stream of a process that a row names, or nil. If a process numbers its devices otherwise
// than the timeline does, the stream alone identifies it.
func (of streams) named(proc, device int32, id int64) (found *stream) {
	for _, s := range of[proc] {
		if s.id == id {
			if s.device == device {
				return s
			}
			if found != nil {
				return nil
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
	passed int // since the last one kept
}

func (s *sample) add(v int64) {
	if s.passed++; s.passed < s.step {
		return
	}
	s.passed = 0
	if s.list = append(s.list, v); len(s.list) == 2*sampleSize {
		for i := range sampleSize {
			s.list[i] = s.list[2*i]
		}
		s.list, s.step = s.list[:sampleSize], 2*max(s.step, 1)
	}
}

// at is a percentile, or usual if there are fewer than three numbers.
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
	var launch [timeline.SetWork + 1][2]sample
	var stream [timeline.SetWork + 1]sample
	for di := range b.g.Timeline.Devices {
		d, base := b.g.Timeline.Devices[di], b.g.base[di]
		for i := range d.Len() {
			w := begin(d, i)
			if w.call == trace.None {
				continue
			}
			from, to := b.g.api.Start(int(w.call)), b.g.api.End(int(w.call))
			behind := int64(minTime) // the end of the work before on its stream
			if p := b.g.before[base+int32(i)]; p != trace.None {
				behind = d.End(int(p - base))
			}
			switch {
			case from > w.start:
			case behind < from-usualEvent:
				at, still := b.g.launched(w.call, w.start)
				launch[w.kind][still].add(w.start - at)
			case to+usualLaunch < behind && behind <= w.start:
				stream[w.kind].add(w.start - behind)
			}
		}
	}
	for k := range launch {
		b.g.typical.launch[k] = [2]int64{min(mostLatency, launch[k][0].at(0.5, usualStream)),
			min(mostLatency, launch[k][1].at(0.5, usualLaunch))}
		b.g.typical.quick[k] = min(b.g.typical.launch[k][1], launch[k][1].at(quickest, usualLaunch))
		b.g.typical.stream[k] = min(mostLatency, stream[k].at(0.5, usualStream))
	}
	b.g.typical.event = usualEvent
}

// measureEvents finds the typical latency of work that waited for an event.
func (b *builder) measureEvents() {
	var event sample
	for d, device := range b.g.Timeline.Devices {
		for i := range device.Len() {
			piece := b.g.base[d] + int32(i)
			p := b.g.after.of(piece)
			if p == trace.None {
				continue
			}
			w, at := begin(device, i), b.g.end(p)
			if q := b.g.before[piece]; (q == trace.None || b.g.end(q)+usualEvent < at) &&
				(w.call == trace.None || b.g.api.End(int(w.call))+usualLaunch < at) {
				event.add(w.start - at)
			}
		}
	}
	b.g.typical.event = event.at(0.5, usualEvent)
}

// infer looks for explanations of work that starts later than everything known explains: other work of its device that
// had just ended.
func (b *builder) infer() {
	found := make([][]inference, len(b.onDevice))
	parallel.Each(len(found), func(d int) {
		if n := len(b.onDevice[d]); n >= 2 && n <= 64 {
			found[d] = b.inferOn(d)
		}
	})
	for _, list := range found {
		for _, x := range list {
			b.g.after.set(x.piece, x.after|inferred)
		}
		b.g.Found.Inferred += int64(len(list))
	}
}

// inference is the work that a piece of work seems to have waited for.
type inference struct{ piece, after int32 }

// inferOn is infer of one device.
func (b *builder) inferOn(d int) (found []inference) {
	device := b.g.Timeline.Devices[d]
	for i := range device.Len() {
		piece := b.g.base[d] + int32(i)
		if b.g.after.of(piece) != trace.None {
			continue
		}
		w, h := b.g.bind(piece)
		if w.start-h.ready <= unexplain || h.by == ByNothing {
			continue
		}
		best, at := trace.None, w.start-justEnded
		for _, s := range b.onDevice[d] {
			x := s.pieces
			k := sort.Search(len(x), func(k int) bool { return x[k] >= piece })
			if k > 0 && x[k-1] != b.g.before[piece] {
				if end := b.g.end(x[k-1]); end >= at && end <= w.start {
					best, at = x[k-1], end
				}
			}
		}
		if best != trace.None {
			found = append(found, inference{piece, best})
		}
	}
	return found
}
