package pairing

import (
	"cmp"
	"math"
	"slices"

	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// Kind is one kind of unit, as far as the sides have it.
type Kind struct {
	Name side.Kind // as the base calls it, or else the head
	// its place among the kinds of each capture, -1 if a capture has none; nil if the side has none
	Base, Head []int

	// BaseViews and HeadViews are what the captures say of it, one each; nil unless all captures say something.
	BaseViews, HeadViews []*side.View

	Like *Kind // of a kind that one side has: the kind of both whose work it does with some more or less; nil if none
}

// Both reports whether every capture has units of the kind and says what they are made of.
func (k *Kind) Both() bool { return k.BaseViews != nil && k.HeadViews != nil }

// judgedShare is the share of either side's unit time from which a kind of unit has rows of its own.
const judgedShare = 0.02

// matchKinds finds which kinds of unit of the two sides are the same. Captures of one side are lined up with the first
// of it, and the first of the head with the first of the base, see [kindMatcher.score].
func (x *Sides) matchKinds() {
	m := &kindMatcher{views: map[*side.Capture][]*side.View{}, sizes: !slices.Contains(x.Opt.Study, comparison.StudyBatch)}
	base, head := m.lineUp(x.Base.Captures), m.lineUp(x.Head.Captures)
	first := func(s *side.Side, rows [][]int) []kindRef {
		list := make([]kindRef, len(rows))
		for i, row := range rows {
			c := slices.IndexFunc(row, func(at int) bool { return at >= 0 })
			list[i] = kindRef{s.Captures[c], row[c]}
		}
		return list
	}
	b, h := first(x.Base, base), first(x.Head, head)
	of := m.assign(b, h)
	if !slices.ContainsFunc(of, func(k int) bool { return k >= 0 }) {
		// One kind each, of other kernels: [Sides.Work] says how they differ.
		i, k := mainOf(b), mainOf(h)
		if i >= 0 && k >= 0 && (len(x.Opt.Study) > 0 || b[i].group().Kind.Plain() && h[k].group().Kind.Plain()) {
			of[i] = k
		}
	}
	taken := make([]bool, len(h))
	for i, k := range of {
		kind := Kind{Name: b[i].group().Kind, Base: base[i]}
		if k >= 0 {
			kind.Head, taken[k] = head[k], true
			kind.BaseViews, kind.HeadViews = m.all(x.Base, base[i]), m.all(x.Head, head[k])
		}
		x.Kinds = append(x.Kinds, kind)
	}
	for k := range h {
		if !taken[k] {
			x.Kinds = append(x.Kinds, Kind{Name: h[k].group().Kind, Head: head[k]})
		}
	}
	x.variants(m)
}

// leastVariant of the kernels of a kind must be in a unit that is priced as one of it: two halves of a step are not two
// steps.
const leastVariant = 0.8

// variants finds the kinds of one side that do the work of a kind of both: steps with a kernel more every now and then,
// or with many more, of names that the kind of both does not have.
func (x *Sides) variants(m *kindMatcher) {
	ref := func(s *side.Side, row []int) kindRef { // nil rows are of the other side
		if row == nil {
			return kindRef{}
		}
		c := slices.IndexFunc(row, func(at int) bool { return at >= 0 })
		return kindRef{s.Captures[c], row[c]}
	}
	for i := range x.Kinds {
		k := &x.Kinds[i]
		if k.Base != nil && k.Head != nil {
			continue
		}
		best := -1.0
		for j := range x.Kinds {
			o := &x.Kinds[j]
			if o.Base == nil || o.Head == nil {
				continue
			}
			own, other := ref(x.Head, k.Head), ref(x.Base, o.Base)
			if k.Base != nil {
				own, other = ref(x.Base, k.Base), ref(x.Head, o.Head)
			}
			score, ok := m.score(own, other)
			if ok && float64(own.group().Kernels) < leastVariant*float64(other.group().Kernels) {
				ok = false
			}
			if !ok {
				score, ok = 0, m.adds(own, other)
			}
			if ok && score > best {
				best, k.Like = score, o
			}
		}
	}
}

// kindRef is a kind of unit in one capture.
type kindRef struct {
	c  *side.Capture
	at int
}

func (r kindRef) group() *side.Group { return &r.c.Kinds[r.at] }

// mainOf is the kind that the report's unlabelled metrics are of, else the one with most time; -1 if there is none.
func mainOf(list []kindRef) int {
	if i := slices.IndexFunc(list, func(r kindRef) bool { return r.c.IsMain(r.at) }); i >= 0 {
		return i
	}
	return min(0, len(list)-1)
}

type kindMatcher struct {
	sizes bool // kinds of another batch size are others
	views map[*side.Capture][]*side.View
}

// view of a kind, or nil.
func (m *kindMatcher) view(r kindRef) *side.View {
	list, ok := m.views[r.c]
	if !ok {
		list = make([]*side.View, len(r.c.Kinds))
		for i := range list {
			list[i] = side.NewView(r.c, i)
		}
		m.views[r.c] = list
	}
	return list[r.at]
}

// all are the views of a kind of a side, or nil if a capture does not have it.
func (m *kindMatcher) all(s *side.Side, row []int) []*side.View {
	list := make([]*side.View, 0, len(row))
	for i, at := range row {
		if at < 0 {
			return nil
		}
		v := m.view(kindRef{s.Captures[i], at})
		if v == nil {
			return nil
		}
		list = append(list, v)
	}
	return list
}

// lineUp puts the kinds of one side's captures into rows, one place per capture, -1 if a capture lacks the kind.
func (m *kindMatcher) lineUp(captures []*side.Capture) [][]int {
	var rows [][]int
	var refs []kindRef
	for n, c := range captures {
		list := make([]kindRef, len(c.Kinds))
		for i := range list {
			list[i] = kindRef{c, i}
		}
		taken := make([]bool, len(list))
		for i, k := range m.assign(refs, list) {
			if rows[i] = append(rows[i], k); k >= 0 {
				taken[k] = true
			}
		}
		for k := range list {
			if !taken[k] {
				row := make([]int, n, len(captures))
				for i := range row {
					row[i] = -1
				}
				rows, refs = append(rows, append(row, k)), append(refs, list[k])
			}
		}
	}
	return rows
}

// assign gives each kind of a at most one of b, the best pairs first: -1 for none. A kind that rather does the work of
// one that has its pair, with some more or less, is none with what does far less or more. Swapping a and b gives the
// same pairs.
func (m *kindMatcher) assign(a, b []kindRef) []int {
	type pair struct {
		i, k         int
		score, share float64
	}
	var pairs []pair
	for i := range a {
		for k := range b {
			if s, ok := m.score(a[i], b[k]); ok {
				pairs = append(pairs, pair{i, k, s, a[i].group().Share + b[k].group().Share})
			}
		}
	}
	slices.SortStableFunc(pairs, func(p, q pair) int {
		return cmp.Or(cmp.Compare(q.score, p.score), cmp.Compare(q.share, p.share),
			cmp.Compare(p.i+p.k, q.i+q.k), cmp.Compare(min(p.i, p.k), min(q.i, q.k)))
	})
	of, taken := make([]int, len(a)), make([]bool, len(b))
	for i := range of {
		of[i] = -1
	}
	near := func(p *pair) bool {
		x, y := a[p.i].group(), b[p.k].group()
		return !x.Kind.Plain() || alike(float64(x.Kernels), float64(y.Kernels)) >= leastVariant
	}
	nearA, nearB := make([][]int, len(a)), make([][]int, len(b)) // the kinds of the other side that a kind is near to
	for i := range pairs {
		if p := &pairs[i]; near(p) {
			nearA[p.i], nearB[p.k] = append(nearA[p.i], p.k), append(nearB[p.k], p.i)
		}
	}
	for i := range pairs {
		p := &pairs[i]
		variant := slices.ContainsFunc(nearA[p.i], func(k int) bool { return taken[k] }) ||
			slices.ContainsFunc(nearB[p.k], func(i int) bool { return of[i] >= 0 })
		if of[p.i] < 0 && !taken[p.k] && (!variant || near(p)) {
			of[p.i], taken[p.k] = p.k, true
		}
	}
	return of
}

// Kinds of equal kernels are the same before those that only have work in common.
const equalWork = 3

// score says how much two kinds of unit are the same, and whether they can be at all. Kinds that markers name must be
// of one phase, batch size and number of tokens. Those that nothing names must have enough of their work in common
// ([overlap]), so that a step and half a step are two kinds, and a step with one kernel renamed is the same. If
// kernels are not known or hidden, their number or the time of the unit stands for the work.
func (m *kindMatcher) score(a, b kindRef) (score float64, ok bool) {
	g, h := a.group(), b.group()
	named := !g.Kind.Plain() || !h.Kind.Plain()
	if named && (g.Kind.Phase != h.Kind.Phase || m.sizes && g.Kind != h.Kind) {
		return 0, false
	}
	if g.Signature == h.Signature && g.Signature != "" {
		return equalWork + alike(g.Mean, h.Mean), true
	}
	u, v := m.view(a), m.view(b)
	switch {
	case u == nil || v == nil || u.HasWork != v.HasWork:
	case u.Hidden != v.Hidden:
		s := alike(g.Mean, h.Mean)
		return s, named || s >= 1/hiddenRange
	case u.HasWork:
		s := overlap(u.Work, v.Work)
		return 1 + s, named || s >= OverlapNeeded
	}
	s := alike(float64(g.Kernels), float64(h.Kernels))
	return s, named || s >= OverlapNeeded
}

// adds reports whether a kind does all the work of another one that nothing names either, and more with kernels that
// the other does not run.
func (m *kindMatcher) adds(a, b kindRef) bool {
	if !a.group().Kind.Plain() || !b.group().Kind.Plain() {
		return false
	}
	u, v := m.view(a), m.view(b)
	if u == nil || v == nil || !u.HasWork || !v.HasWork || u.Hidden || v.Hidden {
		return false
	}
	counts := func(list []side.Work) map[string]float64 {
		by := make(map[string]float64, len(list))
		for i := range list {
			by[list[i].Canonical] += list[i].Count
		}
		return by
	}
	own := counts(u.Work)
	for name, n := range counts(v.Work) {
		if math.Abs(own[name]-n) > equalRun*n {
			return false
		}
	}
	return true
}

// equalRun is the share of its runs by which a kernel may differ between two kinds of unit that run it equally often.
const equalRun = 0.05

// alike is the smaller of two numbers over the larger, 0 to 1.
func alike(a, b float64) float64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	return min(a, b) / max(a, b)
}

// Of are two sides, looked at by one kind of unit.
func (k *Kind) Of(base, head *side.Side) (b, h *side.Side) {
	return &side.Side{Captures: base.Captures, Views: k.BaseViews}, &side.Side{Captures: head.Captures, Views: k.HeadViews}
}

// Variant is a kind of the head against the kind of both whose work it does with some more or less; nil if there is
// none, or a capture says too little.
func (k *Kind) Variant(head *side.Side) *Kind {
	if k.Like == nil || !k.Like.Both() {
		return nil
	}
	v := &Kind{Name: k.Name, BaseViews: k.Like.BaseViews}
	for i, at := range k.Head {
		if at < 0 {
			continue
		}
		view := side.NewView(head.Captures[i], at)
		if view == nil {
			return nil
		}
		v.HeadViews = append(v.HeadViews, view)
	}
	return v
}

// Depth is how far down units can be compared whose work is known to be the same.
func Depth(base, head *side.Side) comparison.Depth {
	for _, v := range slices.Concat(base.Views, head.Views) {
		if !v.HasWork || v.Hidden {
			return comparison.DepthUnit
		}
	}
	return comparison.DepthKernel
}

// Chosen is what the sides are looked at by: what is known once a kind of unit is chosen.
type Chosen struct {
	Kind    side.Kind // that is attributed
	Kinds   []Kind    // on either side: those of the base first
	Judged  []*Kind   // those with rows of their own: the attributed one first; none if no kind was chosen
	Whole   bool      // they are traces, and nobody asked for one phase or batch size
	Device  int64     // on which the attributed kind is looked at, if there are several
	Devices []int64   // those of the attributed kind, if there are several
	Moved   string    // says that another device is the slowest on the head; empty if none is
}

// Chosen says what the sides are looked at by.
func (x *Sides) Chosen() Chosen {
	c := Chosen{Kind: x.Kind, Kinds: x.Kinds, Device: x.Device, Moved: x.Moved}
	c.Whole = x.Opt.Phase == "" && x.Opt.Batch == nil && !x.EvidenceOnly()
	if x.Main != nil {
		c.Judged, c.Devices = x.judged(), devices(x.Base, x.Head)
	}
	return c
}

// judged are the kinds of unit that have rows of their own, the one that is attributed first: those that every capture
// has and that take 2 % of either side's unit time.
func (x *Sides) judged() []*Kind {
	list := []*Kind{x.Main}
	for i := range x.Kinds {
		k := &x.Kinds[i]
		if k != x.Main && k.Both() && x.asked(k) && max(x.share(x.Base, k.Base), x.share(x.Head, k.Head)) >= judgedShare &&
			x.sameWork(k) {
			list = append(list, k)
		}
	}
	rest := list[1:]
	slices.SortStableFunc(rest, func(a, b *Kind) int { return cmp.Compare(x.time(b), x.time(a)) })
	return list
}

// sameWork reports whether the units of a kind are the same step on both sides: by what ties them, or by their work as
// far as that is known.
func (x *Sides) sameWork(k *Kind) bool {
	tied := x.tied()
	for _, b := range k.BaseViews {
		for _, h := range k.HeadViews {
			if b.HasWork && h.HasWork && !b.Hidden && !h.Hidden && overlap(b.Work, h.Work) < OverlapNeeded &&
				(!tied || moreOfTheSame(b.Work, h.Work)) {
				return false
			}
		}
	}
	return true
}

// asked reports whether a kind is of the phase and batch size that were asked for.
func (x *Sides) asked(k *Kind) bool {
	return (x.Opt.Phase == "" || k.Name.Phase == x.Opt.Phase) && (x.Opt.Batch == nil || k.Name.Batch == *x.Opt.Batch)
}

// share of a side's unit time that units of a kind take, averaged over its captures.
func (x *Sides) share(s *side.Side, row []int) float64 {
	var sum float64
	for i, at := range row {
		if at >= 0 {
			sum += s.Captures[i].Kinds[at].Share
		}
	}
	return sum / float64(len(s.Captures))
}

// time that both sides spend in a kind, as shares.
func (x *Sides) time(k *Kind) float64 { return x.share(x.Base, k.Base) + x.share(x.Head, k.Head) }
