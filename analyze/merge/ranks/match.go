package ranks

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Member is a track with the host on whose clock its times are.
type Member struct {
	*Track
	Host  string // members of one host share a clock; empty: a clock of its own
	Shift int64  // ns added to its times: when its session began, relative to the first one
	Moved int64  // set by [Match]: ns by which its session began earlier than stated, as collectives show

	Clock int // place of its clock in [Aligned.Clocks]; set by [Match]
}

// Set is the matched collectives of some ranks: the n-th calls of all members are one collective.
type Set struct {
	Members []int     // indexes of tracks
	Calls   [][]int32 // by member: index of its n-th call; -1 if missing, never for the first member
}

// Len is the number of collectives.
func (s *Set) Len() int { return len(s.Calls[0]) }

const (
	// overlapping is the share of collectives that two ranks must run at the same time for their order to be believed.
	overlapping = 0.95
	// common is the share of the first rank's collectives that another rank must have captured too.
	common = 0.5
	// maxSeeds bounds how many groups are looked for among ranks of one communicator, or of none.
	maxSeeds = 256
)

// Match finds the collectives in which ranks took part together. It matches the n-th calls of ranks in each
// communicator, or, if none is known, among all calls of hosts and all of devices, if kinds are equal and 95 % overlap
// in time. A capture may begin or end some collectives before others.
func Match(members []Member) (sets []Set) {
	var clocks lists.Numbering[any] // by host; a member of an unknown host has its own
	for i := range members {
		var of any = members[i].Host
		if of == "" {
			of = i
		}
		members[i].Clock = int(clocks.Of(of))
	}
	list := buckets(members)
	correct(members, list)
	for _, bucket := range list {
		sets = append(sets, together(members, bucket)...)
	}
	return sets
}

// line is the calls of a member in one communicator, in order.
type line struct {
	member int
	calls  []int32
	track  *Track // of a sample, whose calls have numbers; nil: their indexes are their numbers
}

// number returns the number of a call from its index.
func (l *line) number(i int) int {
	if l.track == nil {
		return i
	}
	return int(l.track.Calls[l.calls[i]].Seq)
}

// place returns the index of the call with a number; -1 if it is missing.
func (l *line) place(number int) int {
	if l.track == nil {
		if number < 0 || number >= len(l.calls) {
			return -1
		}
		return number
	}
	by := func(call int32, number int) int { return cmp.Compare(int(l.track.Calls[call].Seq), number) }
	if at, ok := slices.BinarySearchFunc(l.calls, number, by); ok && number >= 0 {
		return at
	}
	return -1
}

// buckets groups the lines of all members by communicator; lines without one by whether the host or a device calls.
func buckets(members []Member) [][]line {
	var keys lists.Numbering[string]
	var list [][]line
	hosts := map[string]int{} // number of host tracks, by communicator
	for i := range members {
		if t := members[i].Track; t.Device < 0 {
			for _, name := range t.Comms {
				hosts[name]++
			}
		}
	}
	for i := range members {
		t := members[i].Track
		own := make([][]int32, len(t.Comms)+1) // the last list is for calls without a communicator
		for k := range t.Calls {
			if !t.synchronises(k) {
				continue
			}
			c := t.Calls[k].Comm
			if c < 0 || t.Device < 0 && t.Total == nil && hosts[t.Comms[c]] < 2 { // MPI uses a name that no other rank knows
				c = int32(len(t.Comms))
			}
			own[c] = append(own[c], int32(k))
		}
		for c, calls := range own {
			if len(calls) == 0 {
				continue
			}
			l := line{member: i, calls: calls}
			if t.Total != nil {
				l.track = t
			}
			key := "none " + strconv.FormatBool(t.Device < 0)
			if c < len(t.Comms) {
				key = "comm " + t.Comms[c]
			}
			bucket := lists.At(&list, keys.Of(key))
			*bucket = append(*bucket, l)
		}
	}
	return list
}

// together returns the groups of lines whose n-th calls overlap in time. Lines as long as the first of a group come
// first: what they show about their host's clock helps to find where shorter ones begin.
func together(members []Member, list []line) []Set {
	var sets []Set
	for seeds := 0; len(list) > 1 && seeds < maxSeeds; seeds++ {
		seed := list[0]
		g := group{members: members, seed: seed, clocks: map[int]Line{members[seed.member].Clock: {}}, hi: len(seed.calls)}
		g.take(seed, 0)
		equal := func(l line) bool { return len(l.calls) == len(seed.calls) && g.join(l, 0) }
		list = slices.DeleteFunc(slices.Clone(list[1:]), equal)
		list = slices.DeleteFunc(list, g.find)
		if len(g.set.Members) > 1 {
			for i, calls := range g.set.Calls {
				g.set.Calls[i] = calls[g.lo:g.hi]
			}
			sets = append(sets, g.set)
		}
	}
	return sets
}

// group is a set that is being built.
type group struct {
	members []Member
	seed    line
	set     Set          // so far, with a call for each of the seed
	lo, hi  int          // range of the seed's calls that all lines cover
	clocks  map[int]Line // difference of each clock from the seed's
}

// take adds a line whose calls are shifted against the seed's.
func (g *group) take(l line, shift int) {
	calls := slices.Repeat([]int32{-1}, len(g.seed.calls))
	for n := range calls {
		if at := l.place(g.seed.number(n) + shift); at >= 0 {
			calls[n] = l.calls[at]
		}
	}
	g.set.Members, g.set.Calls = append(g.set.Members, l.member), append(g.set.Calls, calls)
}

// find joins a line that begins or ends some calls before the seed: the counterpart of the seed's middle call is the
// one that ended nearest to it, or a neighbour. If calls are missing in between, it matches by time.
func (g *group) find(l line) bool {
	b := &g.members[l.member]
	if l.track != nil && g.join(l, 0) {
		return true
	}
	middle, near := g.near(&l)
	shift := func(at int) (int, bool) {
		if l.track != nil && (at < 0 || at >= len(l.calls)) {
			return 0, false
		}
		return l.number(at) - g.seed.number(middle), true
	}
	if clock, known := g.clocks[b.Clock]; known {
		for _, at := range []int{near, near - 1, near + 1, near - 2} {
			if by, ok := shift(at); ok && g.join(l, by) {
				return true
			}
		}
		return g.byTime(l, clock)
	}
	best, least := 0, math.Inf(1)
	for at := near - maxOff; at <= near+maxOff; at++ {
		by, ok := shift(at)
		if !ok {
			continue
		}
		if points := g.points(&l, by); len(points) > 0 {
			if p50, _ := residuals(points, fit(points)); p50 < least {
				best, least = by, p50
			}
		}
	}
	if !math.IsInf(least, 1) && g.join(l, best) {
		return true
	}
	return g.byTime(l, g.guess(&l, middle, near))
}

// near returns the index of the seed's middle call, and that of the line's call that ended next to it.
func (g *group) near(l *line) (middle, at int) {
	a, b := &g.members[g.seed.member], &g.members[l.member]
	middle = len(g.seed.calls) / 2
	clock := g.clocks[b.Clock] // clocks of other hosts as they are, if not yet compared
	end := a.end(g.seed.calls[middle])
	end += clock.At(end)
	at, _ = slices.BinarySearchFunc(l.calls, end, func(c int32, t int64) int { return cmp.Compare(b.end(c), t) })
	return middle, at
}

// guess estimates the difference of an unknown clock from the seed's, from consecutive calls around the seed's middle
// one: as they are, or shifted by some calls, whichever leaves the smallest residual between ends.
func (g *group) guess(l *line, middle, near int) Line {
	a, b := &g.members[g.seed.member], &g.members[l.member]
	from := max(0, middle-stretch/2)
	var best Line
	least := math.Inf(1)
	for by := near - middle - maxOff; by <= near-middle+maxOff; by++ {
		var points []point
		for n := from; n < min(from+stretch, len(g.seed.calls)); n++ {
			if at := n + by; at >= 0 && at < len(l.calls) {
				end := a.end(g.seed.calls[n])
				points = append(points, point{end, b.end(l.calls[at]) - end})
			}
		}
		if len(points) < stretch/2 {
			continue
		}
		line := Line{From: points[0].at, Offset: median(points, func(p point) float64 { return float64(p.diff) })}
		if p50, _ := residuals(points, line); p50 < least {
			best, least = line, p50
		}
	}
	return best
}

// byTime joins a line in which calls are missing: each call of the seed gets the call of its kind that overlaps it and
// ends nearest to it.
func (g *group) byTime(l line, clock Line) bool {
	_, known := g.clocks[g.members[l.member].Clock]
	calls, points := g.meet(&l, clock)
	if !known && len(points) > 0 {
		clock = fit(points)
		calls, points = g.meet(&l, clock)
	}
	if l.track != nil {
		if len(points) < stretch/2-2 || !g.steady(&l, calls) {
			return false
		}
	} else {
		lo, hi := 0, len(calls)
		for ; lo < hi && calls[lo] < 0; lo++ {
		}
		for ; lo < hi && calls[hi-1] < 0; hi-- {
		}
		lo, hi = max(lo, g.lo), min(hi, g.hi)
		if n := float64(len(points)); hi <= lo || n < overlapping*float64(hi-lo) || n < common*float64(len(calls)) {
			return false
		}
		g.lo, g.hi = lo, hi
	}
	g.clocks[g.members[l.member].Clock] = clock
	g.set.Members, g.set.Calls = append(g.set.Members, l.member), append(g.set.Calls, calls)
	return true
}

// steady reports whether a sample's calls have the same offset in number from those of the seed, nearly all of them.
func (g *group) steady(l *line, calls []int32) bool {
	count, n, most := map[int]int{}, 0, 0
	for k, c := range calls {
		if c < 0 {
			continue
		}
		at, _ := slices.BinarySearch(l.calls, c)
		by := l.number(at) - g.seed.number(k)
		count[by]++
		n, most = n+1, max(most, count[by])
	}
	return float64(most) >= overlapping*float64(n)
}

// meet returns, by the seed's calls, the calls of a line that overlap them, and how far apart their ends are.
func (g *group) meet(l *line, clock Line) (calls []int32, points []point) {
	a, b := &g.members[g.seed.member], &g.members[l.member]
	calls = slices.Repeat([]int32{-1}, len(g.seed.calls))
	pairs := meeting(len(calls), len(l.calls), func(n, k int) (bool, int64) {
		x, y := g.seed.calls[n], l.calls[k]
		end := a.end(x)
		ahead := clock.At(end)
		overlap := max(a.start(x), b.start(y)-ahead) < min(end, b.end(y)-ahead)
		return overlap && a.kind(x) == b.kind(y), b.end(y) - ahead - end
	})
	for _, p := range pairs {
		x, y := g.seed.calls[p[0]], l.calls[p[1]]
		calls[p[0]] = y
		points = append(points, point{a.end(x), b.end(y) - a.end(x)})
	}
	return calls, points
}

func abs(v int64) int64 { return max(v, -v) }

// maxOff is by how many collectives the clocks of two hosts may differ; the shift with the smallest residual between
// ends is taken.
const maxOff = 16

// shared returns the range of the seed's calls that a shifted line covers too; none if they are few.
func (g *group) shared(l *line, shift int) (lo, hi int) {
	lo, hi = g.lo, g.hi
	has := func(n int) bool { return l.place(g.seed.number(n)+shift) >= 0 }
	for ; lo < hi && !has(lo); lo++ {
	}
	for ; lo < hi && !has(hi-1); hi-- {
	}
	if l.track == nil && float64(hi-lo) < common*float64(len(g.seed.calls)) {
		return 0, 0
	}
	return lo, hi
}

// points returns how far the ends of a shifted line are from the seed's.
func (g *group) points(l *line, shift int) []point {
	lo, hi := g.shared(l, shift)
	a, b := &g.members[g.seed.member], &g.members[l.member]
	every := (hi-lo-1)/maxPoints + 1
	var points []point
	for n := lo; n < hi; n += every {
		if at := l.place(g.seed.number(n) + shift); at >= 0 {
			end := a.end(g.seed.calls[n])
			points = append(points, point{end, b.end(l.calls[at]) - end})
		}
	}
	return points
}

// join adds a shifted line if the kinds of calls agree and calls overlap in time once the clocks are aligned.
func (g *group) join(l line, shift int) bool {
	lo, hi := g.shared(&l, shift)
	if hi <= lo {
		return false
	}
	a, b := &g.members[g.seed.member], &g.members[l.member]
	clock, known := g.clocks[b.Clock]
	if !known {
		clock = fit(g.points(&l, shift))
	}
	both, n := 0, 0
	for k := lo; k < hi; k++ {
		at := l.place(g.seed.number(k) + shift)
		if at < 0 {
			continue
		}
		x, y := g.seed.calls[k], l.calls[at]
		if a.kind(x) != b.kind(y) {
			return false
		}
		n++
		ahead := clock.At(a.end(x))
		if max(a.start(x), b.start(y)-ahead) < min(a.end(x), b.end(y)-ahead) {
			both++
		}
	}
	if float64(both) < overlapping*float64(n) || l.track == nil && float64(n) < common*float64(len(g.seed.calls)) || n < min(stretch, len(l.calls)) {
		return false
	}
	g.clocks[b.Clock] = clock
	g.take(l, shift)
	if l.track == nil { // samples may have gaps anywhere
		g.lo, g.hi = lo, hi
	}
	return true
}

// start and end of a call, on the clock of the host.
func (m *Member) start(call int32) int64 { return m.Calls[call].Start + m.Shift }
func (m *Member) end(call int32) int64   { return m.Calls[call].End + m.Shift }

func (m *Member) kind(call int32) string { return m.Kinds[m.Calls[call].Kind] }
