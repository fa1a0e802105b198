package stepgraph

import (
	"math/bits"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// Kernels of one collective end together: within a tenth of the shorter one, at least endsWithin ns.
const (
	endsTogether = 10
	endsWithin   = 20_000
)

// openCollective is one that kernels may still join.
type openCollective struct {
	name          int32
	devices       uint64 // bits
	end, shortest int64  // of the first; of all durations
	minEnd        int64
	pieces        []int32 // the one that joined last at the end
}

// collect finds the kernels of one collective on several devices: of the same name, one per device, all running when
// the last begins, and ending together.
func (b *builder) collect() {
	devices := b.g.Timeline.Devices
	if len(devices) < 2 || len(devices) > 64 {
		return
	}
	k := &b.g.trace.Kernels
	var open []*openCollective
	settle := func(now int64) {
		open = slices.DeleteFunc(open, func(o *openCollective) bool {
			if o.minEnd > now {
				return false
			}
			b.settleCollective(o)
			return true
		})
	}
	number := make(map[*timeline.Device]int, len(devices))
	for d := range devices {
		number[devices[d]] = d
	}
	b.g.Timeline.ByStart(func(d *timeline.Device, i int) {
		if d.Class(i) != timeline.Comm {
			return
		}
		w, di := d.Work(i), number[d]
		settle(w.Start)
		name, piece := k.Name(int(w.Row)), b.g.base[di]+int32(i)
		for _, o := range open {
			off := w.End - o.end
			short := min(o.shortest, w.End-w.Start)
			if short > 0 && o.name == name && o.devices>>di&1 == 0 && max(off, -off) <= max(endsWithin, short/endsTogether) {
				o.devices |= 1 << di
				o.shortest, o.minEnd = short, min(o.minEnd, w.End)
				o.pieces = append(o.pieces, piece)
				return
			}
		}
		if len(open) < maxOpen {
			open = append(open, &openCollective{name: name, devices: 1 << di, end: w.End, shortest: w.End - w.Start,
				minEnd: w.End, pieces: []int32{piece}})
		}
	})
	settle(maxTime)
}

// maxOpen bounds the collectives that are open at once.
const maxOpen = 256

func (b *builder) settleCollective(o *openCollective) {
	if bits.OnesCount64(o.devices) < 2 {
		return
	}
	for _, p := range o.pieces {
		b.g.group.set(p, int32(len(b.g.lasts)))
	}
	b.g.lasts = append(b.g.lasts, o.pieces[len(o.pieces)-1])
}

// joinedLast is the piece that joined the collective of a piece last, or the piece itself without a collective.
func (g *Graph) joinedLast(piece int32) int32 {
	if c := g.group.of(piece); c != trace.None {
		return g.lasts[c]
	}
	return piece
}
