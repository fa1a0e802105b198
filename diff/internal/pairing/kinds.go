package pairing

import (
	"cmp"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// Kind is one kind of unit, on one side or both.
type Kind struct {
	Name side.Kind // the base's name for it, else the head's
	// index among the kinds of each capture, -1 if a capture has none; nil if the side has none
	Base, Head []int

	// BaseViews and HeadViews hold one view per capture; nil unless all captures have one.
	BaseViews, HeadViews []*side.View

	Like *Kind // for a kind of one side: the kind of both sides that does nearly the same work; nil if none
}

// Both reports whether every capture has units of the kind and says what makes up their time.
func (k *Kind) Both() bool { return k.BaseViews != nil && k.HeadViews != nil }

// judgedShare is the least share of either side's unit time for a kind of unit to have its own rows.
const judgedShare = 0.02

// matchKinds finds which kinds of unit are the same on both sides. It matches each capture with its side's first, and
// the head's first with the base's first, see [kindMatcher.score].
func matchKinds(base, head *side.Side, study []string) (kinds []*Kind) {
	m := &kindMatcher{views: map[*side.Capture][]*side.View{}, places: map[*side.Capture][]int{},
		sizes: !slices.Contains(study, comparison.StudyBatch)}
	inBase, inHead := m.lineUp(base.Captures), m.lineUp(head.Captures)
	first := func(s *side.Side, rows [][]int) []kindRef {
		return lists.Map(rows, func(row []int) kindRef { return firstOf(s, row) })
	}
	b, h := first(base, inBase), first(head, inHead)
	of := m.assign(b, h)
	if !slices.ContainsFunc(of, func(k int) bool { return k >= 0 }) {
		// Pair the main kinds although their kernels differ: [Sides.Work] says how.
		i, k := mainOf(b), mainOf(h)
		if i >= 0 && k >= 0 && (len(study) > 0 || b[i].group().Kind.Plain() && h[k].group().Kind.Plain()) {
			of[i] = k
		}
	}
	taken := make([]bool, len(h))
	for i, k := range of {
		kind := &Kind{Name: b[i].group().Kind, Base: inBase[i]}
		if k >= 0 {
			kind.Head, taken[k] = inHead[k], true
			kind.BaseViews, kind.HeadViews = m.all(base, inBase[i]), m.all(head, inHead[k])
		}
		kinds = append(kinds, kind)
	}
	for k := range h {
		if !taken[k] {
			kinds = append(kinds, &Kind{Name: h[k].group().Kind, Head: inHead[k]})
		}
	}
	m.variants(kinds, base, head)
	return kinds
}

// leastVariant is the least share of a kind's kernels that a unit must run to be priced as one unit of it: two halves
// of a step are not two steps.
const leastVariant = 0.8

// variants finds the kinds of one side that do the work of a kind of both sides: steps that run one more kernel now and
// then, or many more with names that the kind of both sides lacks. The kind of both sides is looked at on either side,
// since its kernels may have other names on the other.
func (m *kindMatcher) variants(kinds []*Kind, base, head *side.Side) {
	for _, k := range kinds {
		of, row := base, k.Base
		if row == nil {
			of, row = head, k.Head
		} else if k.Head != nil {
			continue
		}
		own, best := firstOf(of, row), -1.0
		for _, o := range kinds {
			if o.Base == nil || o.Head == nil {
				continue
			}
			for _, other := range []kindRef{firstOf(base, o.Base), firstOf(head, o.Head)} {
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
}

// kindRef points to a kind of unit in one capture.
type kindRef struct {
	c  *side.Capture
	at int
}

func (r kindRef) group() *side.Group { return &r.c.Kinds[r.at] }

// firstOf points to the kind that row points to, in the first capture of a side that has it.
func firstOf(s *side.Side, row []int) kindRef {
	c := slices.IndexFunc(row, func(at int) bool { return at >= 0 })
	return kindRef{s.Captures[c], row[c]}
}

// mainOf returns the index of the kind of the report's unlabelled metrics, else of the one with most time; -1 if there
// is none.
func mainOf(list []kindRef) int {
	if i := slices.IndexFunc(list, func(r kindRef) bool { return r.c.IsMain(r.at) }); i >= 0 {
		return i
	}
	return min(0, len(list)-1)
}

type kindMatcher struct {
	sizes  bool // another batch size makes another kind
	views  map[*side.Capture][]*side.View
	places map[*side.Capture][]int // kind of each unit
}

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

// all returns the views of a kind on a side, or nil if a capture lacks it.
func (m *kindMatcher) all(s *side.Side, row []int) []*side.View {
	list := make([]*side.View, len(row))
	for i, at := range row {
		if at >= 0 {
			list[i] = m.view(kindRef{s.Captures[i], at})
		}
	}
	if slices.Contains(list, nil) {
		return nil
	}
	return list
}

// lineUp arranges the kinds of one side's captures in rows with an index per capture, -1 if a capture lacks the kind.
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
				rows, refs = append(rows, append(noneOf(n), k)), append(refs, list[k])
			}
		}
	}
	return rows
}

// assign matches each kind of a with at most one of b, the best pairs first; -1 if none. A kind that is a variant of an
// already matched one is not matched with a kind of far less or more work. Swapping a and b gives the same pairs.
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
	lists.Sort(pairs, func(p, q pair) int {
		return cmp.Or(cmp.Compare(q.score, p.score), cmp.Compare(q.share, p.share),
			cmp.Compare(p.i+p.k, q.i+q.k), cmp.Compare(min(p.i, p.k), min(q.i, q.k)))
	})
	of, taken := noneOf(len(a)), make([]bool, len(b))
	near := func(p *pair) bool {
		x, y := a[p.i].group(), b[p.k].group()
		return !x.Kind.Plain() || alike(float64(x.Kernels), float64(y.Kernels)) >= leastVariant
	}
	nearA, nearB := make([][]int, len(a)), make([][]int, len(b)) // the kinds of the other side that are near
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

// samePlaces returns the share of units, 0 to 1, that have the places of units of the other kind, on the side where it is
// smaller. It is 0 unless both captures ran equally many units.
func (m *kindMatcher) samePlaces(a, b kindRef) float64 {
	here, there := m.placesOf(a.c), m.placesOf(b.c)
	if len(here) < leastTied || len(here) != len(there) {
		return 0
	}
	var both, n, k float64
	for i, at := range here {
		if at == a.at {
			n++
		}
		if there[i] == b.at {
			k++
			if at == a.at {
				both++
			}
		}
	}
	return both / max(n, k, 1)
}

func (m *kindMatcher) placesOf(c *side.Capture) []int {
	if _, ok := m.places[c]; !ok {
		m.places[c] = side.KindsByPlace(&c.Report.Unit, c.Kinds)
	}
	return m.places[c]
}

// equalWork puts kinds with equal kernels before those whose units have the same places, and equalPlaces those before
// kinds that only have work in common.
const (
	equalWork   = 5
	equalPlaces = 3
)

// score says how similar two kinds of unit are; ok is false if they cannot be the same. Kinds that markers name must
// agree in phase, batch size and number of tokens. Unnamed kinds must be the same units of captures with equally many, or
// have enough work in common ([overlap]): a step and half a step are two kinds, a step with one kernel renamed is the
// same kind. If kernels are unknown or hidden, their number or the unit's time is compared instead.
func (m *kindMatcher) score(a, b kindRef) (score float64, ok bool) {
	g, h := a.group(), b.group()
	named := !g.Kind.Plain() || !h.Kind.Plain()
	if named && (g.Kind.Phase != h.Kind.Phase || m.sizes && g.Kind != h.Kind) {
		return 0, false
	}
	if g.Signature == h.Signature && g.Signature != "" {
		return equalWork + alike(g.Mean, h.Mean), true
	}
	if p := m.samePlaces(a, b); !named && p >= leastVariant {
		return equalPlaces + p, true
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

// adds reports whether a kind does all the work of another one, and possibly more with kernels that the other does not
// run. No marker may name either kind.
func (m *kindMatcher) adds(a, b kindRef) bool {
	if !a.group().Kind.Plain() || !b.group().Kind.Plain() {
		return false
	}
	u, v := m.view(a), m.view(b)
	if u == nil || v == nil || !u.HasWork || !v.HasWork || u.Hidden || v.Hidden {
		return false
	}
	own := runs(u.Work)
	for name, n := range runs(v.Work) {
		if math.Abs(own[name]-n) > equalRun*n {
			return false
		}
	}
	return true
}

// noneOf is a list of n indexes of nothing.
func noneOf(n int) []int { return slices.Repeat([]int{-1}, n) }

// equalRun is the relative difference in runs up to which two kinds of unit run a kernel equally often.
const equalRun = 0.05

// alike returns the smaller of two numbers over the larger, 0 to 1; 0 unless both are positive.
func alike(a, b float64) float64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	return min(a, b) / max(a, b)
}

// Of returns both sides with their views of the kind.
func (k *Kind) Of(base, head *side.Side) (b, h *side.Side) {
	return &side.Side{Captures: base.Captures, Views: k.BaseViews}, &side.Side{Captures: head.Captures, Views: k.HeadViews}
}

// Variant sets a kind of one side against the kind of both sides whose work is nearly the same; nil if there is none, or
// a capture says too little.
func (k *Kind) Variant(base, head *side.Side) *Kind {
	if k.Like == nil || !k.Like.Both() {
		return nil
	}
	views := func(s *side.Side, row []int) (list []*side.View) {
		for i, at := range row {
			if at >= 0 {
				list = append(list, side.NewView(s.Captures[i], at))
			}
		}
		if slices.Contains(list, nil) {
			return nil
		}
		return list
	}
	v := &Kind{Name: k.Name, BaseViews: k.Like.BaseViews, HeadViews: k.Like.HeadViews}
	if k.Head == nil {
		v.BaseViews = views(base, k.Base)
	} else {
		v.HeadViews = views(head, k.Head)
	}
	if v.BaseViews == nil || v.HeadViews == nil {
		return nil
	}
	return v
}

// Depth returns how far down units of the same work can be compared.
func Depth(base, head *side.Side) comparison.Depth {
	vague := func(v *side.View) bool { return !v.HasWork || v.Hidden || v.Foreign }
	if slices.ContainsFunc(slices.Concat(base.Views, head.Views), vague) {
		return comparison.DepthUnit
	}
	return comparison.DepthKernel
}

// Chosen is what a comparison uses once a kind of unit is chosen.
type Chosen struct {
	Kind    side.Kind // attributed kind
	Kinds   []*Kind   // on either side: the base's first
	Judged  []*Kind   // kinds with rows of their own, the attributed one first; empty if no kind was chosen
	Whole   bool      // the sides are traces, and no phase or batch size was asked for
	Device  int64     // device that is compared for the attributed kind, if there are several
	Devices []int64   // devices of the attributed kind, if there are several
	Moved   string    // says that another device is the slowest on the head; else empty
}

// judged returns the kinds of unit with rows of their own, the attributed one first: those that every capture has, that
// do the same work, and that take 2 % of either side's unit time.
func (x *Sides) judged() []*Kind {
	tied := tied(x.Base, x.Head)
	rest := lists.Filter(x.Kinds, func(k *Kind) bool {
		return k != x.Main && k.Both() && x.Opt.asks(k) &&
			max(x.Base.Share(k.Base), x.Head.Share(k.Head)) >= judgedShare && k.sameWork(tied)
	})
	lists.Falling(rest, func(k *Kind) float64 { return k.time(x.Base, x.Head) })
	return append([]*Kind{x.Main}, rest...)
}

// sameWork reports whether the units of a kind are the same step on both sides: because the sides are tied, or by their
// work as far as it is known.
func (k *Kind) sameWork(tied bool) bool {
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

// asks reports whether a kind has the phase and batch size that are asked for.
func (o *Options) asks(k *Kind) bool {
	return (o.Phase == "" || k.Name.Phase == o.Phase) && (o.Batch == nil || k.Name.Batch == *o.Batch)
}

// time returns the sum of both sides' shares of unit time in the kind, 0 to 2.
func (k *Kind) time(base, head *side.Side) float64 { return base.Share(k.Base) + head.Share(k.Head) }
