package steps

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/stepgraph"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// waitFor is the target of a wait in idle time of cause dependency.
type waitFor struct {
	reason stepgraph.Reason
	what   what
	work   kit.WorkKey // or, of a call, in Of the index of its name
}

type what uint8

const (
	nothing what = iota // that is known
	aPiece
	aCall
)

// waitList adds up the waits of one device, whose gaps it visits.
type waitList struct {
	timeline.Visitor
	lists.Numbering[waitFor]
	direct [stepgraph.Reasons][]int32 // by reason and place: the number plus 1, or 0, for most waits
	calls  int                        // how many names of calls have places, before those of kernels
	list   []spent
	sums   [stepgraph.Reasons]int64
}

// waitLists are those of the window's devices.
func waitLists(in *kit.Input) []*waitList {
	return kit.Once(in, "waits", func() []*waitList {
		list := make([]*waitList, len(in.Timeline.Devices))
		g := in.Graph()
		for d := range list {
			l := &waitList{calls: len(in.Trace.API.Names)}
			for reason := range l.direct {
				l.direct[reason] = make([]int32, min(l.calls+len(in.Trace.Kernels.Names), maxDirect))
			}
			l.Gap = func(gap *timeline.Gap) { l.gap(in, g, d, gap) }
			list[d] = l
		}
		return list
	})
}

// waitGaps are the visitors of the window's devices; none if there is no graph.
func waitGaps(in *kit.Input) []*timeline.Visitor {
	if len(in.Timeline.Devices) == 0 || in.Graph() == nil {
		return nil
	}
	return lists.Map(waitLists(in), func(l *waitList) *timeline.Visitor { return &l.Visitor })
}

// maxDirect is how many names are found without a lookup.
const maxDirect = 1 << 12

func (l *waitList) number(w waitFor) int32 {
	place := int(w.work.Of)
	switch {
	case w.what == aPiece && w.work.Kind == timeline.KernelWork:
		place += l.calls
	case w.what != aCall:
		return l.Of(w)
	}
	if place >= maxDirect {
		return l.Of(w)
	}
	at := &l.direct[w.reason][place]
	if *at == 0 {
		*at = l.Of(w) + 1
	}
	return *at - 1
}

func (l *waitList) add(w waitFor, ns int64) {
	if ns <= 0 {
		return
	}
	lists.At(&l.list, l.number(w)).add(spent{1, ns})
	l.sums[w.reason] += ns
}

// gap adds what a gap of the device with that index waited for.
func (l *waitList) gap(in *kit.Input, graph *stepgraph.Graph, device int, g *timeline.Gap) {
	ns := g.Cause[timeline.CauseDependency]
	unresolved := waitFor{reason: stepgraph.WaitsUnresolved}
	switch {
	case ns == 0:
		return
	case g.Next == trace.None:
		l.add(unresolved, ns)
		return
	}
	reason, piece, call, known, unknown := graph.Reason(graph.Number(device, int(g.Next)), ns)
	w := waitFor{reason: reason}
	if piece != trace.None {
		d, i := graph.Place(piece)
		w.what, w.work = aPiece, in.WorkNames().Key(graph.Timeline.Devices[d], i)
	} else if call != trace.None {
		w.what, w.work.Of = aCall, int64(in.Trace.API.Name(int(call)))
	}
	l.add(w, known)
	l.add(unresolved, unknown)
}

func (r *pathRun) nameOfWait(w *waitFor) string {
	switch w.what {
	case aPiece:
		return r.in.WorkNames().OfKey(w.work)
	case aCall:
		return r.in.Trace.API.Names[w.work.Of].Name
	case nothing:
	}
	return ""
}

// wait is a row of the table.
type wait struct {
	device int
	reason stepgraph.Reason
	name   string
}

type spent struct{ count, ns int64 }

func (s *spent) add(o spent) { s.count, s.ns = s.count+o.count, s.ns+o.ns }

// longestFirst are the keys of times, those with most time first; before orders those with equal time.
func longestFirst[K comparable](sums *kit.Tally[K, spent], before func(a, b K) int) []K {
	keys := slices.Clone(sums.Keys)
	lists.Sort(keys, func(a, b K) int { return cmp.Or(cmp.Compare(sums.At(b).ns, sums.At(a).ns), before(a, b)) })
	return keys
}

const maxWaitRows, maxPathRows = 20, 15

func (r *pathRun) waits() {
	devices, found := r.in.Timeline.Devices, waitLists(r.in)
	r.in.Visit(r.in.Timeline, waitGaps(r.in))
	sums := kit.NewTally[wait, spent]()
	var total int64
	for i, d := range devices {
		r.from(d.Len())
		for reason, ns := range found[i].sums {
			r.out.Int("gpu.dependency_time", kit.Labels("device", strconv.Itoa(int(d.ID)), "reason",
				stepgraph.ReasonNames[reason]), ns)
			total += ns
		}
		for n, w := range found[i].Keys {
			sums.At(wait{i, w.reason, r.nameOfWait(&w)}).add(found[i].list[n])
		}
	}
	order := longestFirst(sums, func(a, b wait) int {
		return cmp.Or(cmp.Compare(a.device, b.device), cmp.Compare(a.reason, b.reason), cmp.Compare(a.name, b.name))
	})
	t := r.out.Table("dependency_waits")
	for _, w := range order {
		x := sums.At(w)
		t.Row(kit.Int("device_id", int64(devices[w.device].ID)), kit.Text("reason", stepgraph.ReasonNames[w.reason]),
			kit.Put("what", report.OrNull(w.name)), kit.Int("gaps", x.count), kit.Int("time", x.ns),
			kit.Maybe("share", stat.Ratio(x.ns, total)))
	}
	t.Cut(maxWaitRows, "gaps", "time", "share").Add()
}
