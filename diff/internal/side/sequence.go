package side

import (
	"strconv"

	"github.com/nsys-llm/explain/analyze/report/align"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Sequence lists the kernels of a side's units in the order of the first capture, with means over all captures. Times
// are ns per unit.
type Sequence struct {
	Device    int64
	Units     int64
	Time      float64 // mean of the units: the sum over positions, the end and the rest
	Positions []Position
	End       Position
	Rest      float64 // of kernels without a position
	Hiccups   []Hiccup
	Streams   int // number of streams that kernels run on
}

// Position is one kernel of the sequence.
type Position struct {
	Name, Category string
	Stream         int      // number of its stream, by order of first kernel
	Ranges         []string // around the launching call, outermost first
	Start          float64
	Gap            [5]float64 // idle before it, by cause, see [report.StepCauses]
	Copies         float64    // exposed copies before it
	Alone          float64    // exclusive time of the kernel
	Hidden         float64    // the rest of its time
	GapMedian      float64
	AloneMedian    float64
}

// Idle returns the gap before the kernel, summed over causes, ns.
func (p *Position) Idle() float64 {
	return lists.Total(p.Gap[:])
}

// Sum returns the time at the position, ns: idle, copies and exclusive kernel time.
func (p *Position) Sum() float64 { return p.Idle() + p.Copies + p.Alone }

func (p *Position) add(x *Position, weight float64) {
	for c := range p.Gap {
		p.Gap[c] += x.Gap[c] * weight
	}
	p.Start += x.Start * weight
	p.Copies += x.Copies * weight
	p.Alone += x.Alone * weight
	p.Hidden += x.Hidden * weight
	p.GapMedian += x.GapMedian * weight
	p.AloneMedian += x.AloneMedian * weight
}

// Hiccup is one gap (part 0) or kernel (part 1) of one unit.
type Hiccup struct {
	Position, Part int // the position after the last is the end
	Unit           int64
	Excess         float64 // ns over the median
}

// Sequence returns nil if a capture of the side does not state its sequence.
func (s *Side) Sequence() *Sequence {
	var all *Sequence
	weight := 1 / float64(len(s.Views))
	for _, v := range s.Views {
		one := v.sequence()
		if one == nil {
			return nil
		}
		if all == nil {
			all = one.untimed()
		}
		all.merge(one, weight)
	}
	return all
}

func (v *View) sequence() *Sequence {
	k := v.C.Report.Unit.Step(v.group.ID, v.Device())
	if k == nil {
		return nil
	}
	list, _ := k.Positions() // validated
	names := v.C.Report.Unit.Steps
	n := float64(k.Units)
	s := &Sequence{Device: k.Device, Units: k.Units, Time: float64(k.Time) / n, Rest: float64(k.Rest) / n}
	var streams lists.Numbering[int64]
	for i := range list {
		p := &list[i]
		x := Position{Name: names.Names[p.Name], Category: names.Categories[p.Name], Stream: int(streams.Of(p.Stream)),
			Ranges: names.Stack(p.Inside), Hidden: float64(p.Time-p.Alone) / n,
			Start: float64(p.Start) / float64(max(p.Ran, 1)), Copies: float64(p.Copies) / n, Alone: float64(p.Alone) / n,
			GapMedian: float64(p.GapMedian), AloneMedian: float64(p.AloneMedian)}
		for c, ns := range p.Gap {
			x.Gap[c] = float64(ns) / n
		}
		s.Positions = append(s.Positions, x)
	}
	s.Streams = len(streams.Keys)
	s.End = Position{Copies: float64(k.End.Copies) / n, GapMedian: float64(k.End.GapMedian), Start: s.Time}
	for c, ns := range k.End.Gap {
		s.End.Gap[c] = float64(ns) / n
	}
	s.End.Start -= s.End.Idle() + s.End.Copies
	for h := 0; h+4 <= len(k.Hiccups); h += 4 {
		s.Hiccups = append(s.Hiccups, Hiccup{int(k.Hiccups[h]), int(k.Hiccups[h+1]), k.Hiccups[h+2], float64(k.Hiccups[h+3])})
	}
	return s
}

// kernelsOfStep takes the kernels of the view's device from its steps, which know of every kernel how often and how long
// it ran, but not how it varied. It reports whether the report lists all kernels of all units of that device by name.
func (v *View) kernelsOfStep() bool {
	k := v.C.Report.Unit.Step(v.group.ID, v.Device())
	if k == nil || k.Folded || k.Aligned != k.Kernels || k.Units != v.Time.N {
		return false
	}
	list, _ := k.Positions() // validated
	known, n, names, at := v.known(false), float64(k.Units), v.C.Report.Unit.Steps, map[int]int{}
	var work []Work
	for i := range list {
		p := &list[i]
		if _, ok := at[p.Name]; !ok {
			name := names.Names[p.Name]
			w, ok := known[name]
			if !ok {
				w = Work{Family: name, Canonical: name, Category: names.Categories[p.Name]}
			}
			w.Name, w.Position, w.Spread, w.Units = name, float64(i), -1, k.Units
			at[p.Name], work = len(work), append(work, w)
		}
		w := &work[at[p.Name]]
		w.Count += float64(p.Ran) / n
		w.Time += float64(p.Time) / n
		w.Alone += float64(p.Alone) / n
	}
	v.Work = byTime(work)
	v.sumOthers()
	v.categories = nil
	for _, w := range v.Work {
		same := func(c Work) bool { return c.Name == w.Category }
		c := lists.Entry(&v.categories, same, Work{Name: w.Category, Category: w.Category})
		c.Count, c.Time, c.Alone = c.Count+w.Count, c.Time+w.Time, c.Alone+w.Alone
	}
	return v.Others.Alone >= 0
}

// untimed returns a sequence of the same positions that no unit has run.
func (s *Sequence) untimed() *Sequence {
	return &Sequence{Device: s.Device, Streams: s.Streams, Positions: lists.Map(s.Positions, func(p Position) Position {
		return Position{Name: p.Name, Category: p.Category, Stream: p.Stream, Ranges: p.Ranges}
	})}
}

// merge adds a capture's units; positions without a partner in the first capture go to the rest.
func (s *Sequence) merge(x *Sequence, weight float64) {
	of, _ := align.Pairs(s.keys(), x.keys(), align.MaxEdits)
	s.Time += x.Time * weight
	s.Rest += x.Rest * weight
	s.End.add(&x.End, weight)
	s.Units += x.Units
	for k := range x.Positions {
		if i := of[k]; i >= 0 {
			s.Positions[i].add(&x.Positions[k], weight)
		} else {
			s.Rest += x.Positions[k].Sum() * weight
		}
	}
	for _, h := range x.Hiccups {
		switch {
		case h.Position == len(x.Positions):
			h.Position = len(s.Positions)
		case of[h.Position] < 0:
			continue
		default:
			h.Position = int(of[h.Position])
		}
		s.Hiccups = append(s.Hiccups, h)
	}
}

// keys identify positions by stream and kernel name.
func (s *Sequence) keys() []string {
	return lists.Map(s.Positions, func(p Position) string { return strconv.Itoa(p.Stream) + "\x00" + p.Name })
}
