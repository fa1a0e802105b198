package ranks

import (
	"math"
	"slices"
	"strconv"
)

// Member is a track with the host whose clock its times are on.
type Member struct {
	*Track
	Host  string // of one clock; empty: a clock of its own
	Shift int64  // ns that are added to its times: when its session began, since the first one's

	clock int
}

// Set is the matched collectives of some ranks: the n-th of each is one collective.
type Set struct {
	Comm    string    // communicator; empty where none is known
	Members []int     // places of tracks
	Calls   [][]int32 // by member: the place of its n-th call
}

// Len is the number of collectives.
func (s *Set) Len() int { return len(s.Calls[0]) }

const (
	// overlapping is the share of collectives in which two ranks must be at the same time for their order to be believed.
	overlapping = 0.95
	// common is the share of the first rank's collectives that another must have been captured in as well.
	common = 0.5
	// maxSeeds bounds how many groups are looked for among ranks of one communicator, or of none.
	maxSeeds = 256
)

// Match finds the collectives that ranks took part in together: in each communicator, or where none is known among all
// calls of hosts and all of devices, the n-th of each rank where kinds are equal and 95 % overlap in time. A capture
// may begin or end some collectives before others. Alone are the tracks of which nothing could be matched.
func Match(members []Member) (sets []Set, alone []int) {
	numberClocks(members)
	matched := make([]bool, len(members))
	for _, bucket := range buckets(members) {
		for _, s := range together(members, bucket) {
			for _, m := range s.Members {
				matched[m] = true
			}
			sets = append(sets, s)
		}
	}
	for i, ok := range matched {
		if !ok {
			alone = append(alone, i)
		}
	}
	return sets, alone
}

// numberClocks gives members of one host one clock.
func numberClocks(members []Member) {
	hosts := map[string]int{}
	n := 0
	for i := range members {
		m := &members[i]
		at, ok := hosts[m.Host]
		if m.Host == "" || !ok {
			at = n
			n++
		}
		if m.Host != "" {
			hosts[m.Host] = at
		}
		m.clock = at
	}
}

// line is the calls of a member in one communicator, in their order.
type line struct {
	member int
	comm   string
	calls  []int32
}

// buckets are the lines of all members by communicator; those that name none by whether the host or a device calls.
func buckets(members []Member) [][]line {
	at := map[string]int{}
	var list [][]line
	for i := range members {
		t := members[i].Track
		own := make([][]int32, len(t.Comms)+1) // the last is of none
		for k := range t.Calls {
			if !t.synchronises(k) {
				continue
			}
			c := t.Calls[k].Comm
			if c < 0 {
				c = int32(len(t.Comms))
			}
			own[c] = append(own[c], int32(k))
		}
		for c, calls := range own {
			if len(calls) == 0 {
				continue
			}
			l := line{member: i, calls: calls}
			key := "none " + strconv.FormatBool(t.Device < 0)
			if c < len(t.Comms) {
				l.comm = t.Comms[c]
				key = "comm " + l.comm
			}
			b, ok := at[key]
			if !ok {
				b = len(list)
				at[key], list = b, append(list, nil)
			}
			list[b] = append(list[b], l)
		}
	}
	return list
}

// together are the groups of lines whose n-th calls overlap in time. Lines as long as the first of a group come before
// others: what they say of their host's clock helps to find where those begin.
func together(members []Member, list []line) []Set {
	var sets []Set
	for seeds := 0; len(list) > 1 && seeds < maxSeeds; seeds++ {
		seed := list[0]
		g := group{members: members, seed: seed, clocks: map[int]Line{members[seed.member].clock: {}},
			lines: []line{seed}, shifts: []int{0}, hi: len(seed.calls)}
		var others, rest []line
		for _, l := range list[1:] {
			if len(l.calls) != len(seed.calls) || !g.join(l, 0) {
				others = append(others, l)
			}
		}
		for _, l := range others {
			if !g.find(l) {
				rest = append(rest, l)
			}
		}
		if len(g.lines) > 1 {
			sets = append(sets, g.set())
		}
		list = rest
	}
	return sets
}

// group is a set in the making.
type group struct {
	members []Member
	seed    line
	lines   []line
	shifts  []int        // by how many calls each line is ahead of the seed
	lo, hi  int          // calls of the seed that all lines have
	clocks  map[int]Line // how clocks stand to the seed's
}

func (g *group) set() Set {
	s := Set{Comm: g.seed.comm}
	for i, l := range g.lines {
		s.Members = append(s.Members, l.member)
		s.Calls = append(s.Calls, l.calls[g.lo+g.shifts[i]:g.hi+g.shifts[i]])
	}
	return s
}

// find joins a line that begins or ends some calls before the seed: the call that ended nearest to the seed's middle
// one is its counterpart, or a neighbour.
func (g *group) find(l line) bool {
	a, b := &g.members[g.seed.member], &g.members[l.member]
	middle := len(g.seed.calls) / 2
	clock := g.clocks[b.clock] // of other hosts as they are, where nothing is known
	end := a.end(g.seed.calls[middle])
	end += clock.At(end)
	near, _ := slices.BinarySearchFunc(l.calls, end, func(c int32, t int64) int {
		if b.end(c) < t {
			return -1
		}
		return 1
	})
	if _, known := g.clocks[b.clock]; known {
		for _, at := range []int{near, near - 1, near + 1, near - 2} {
			if g.join(l, at-middle) {
				return true
			}
		}
		return false
	}
	best, least := 0, math.Inf(1)
	for at := near - maxOff; at <= near+maxOff; at++ {
		if points := g.points(l, at-middle); len(points) > 0 {
			if p50, _ := residuals(points, fit(points)); p50 < least {
				best, least = at-middle, p50
			}
		}
	}
	return !math.IsInf(least, 1) && g.join(l, best)
}

// maxOff is by how many collectives the clocks of two hosts may be apart as they are: the shift that leaves least
// between ends is taken.
const maxOff = 16

// shared are the calls of the seed that a line that is some calls ahead has too, none where they are few.
func (g *group) shared(l line, shift int) (lo, hi int) {
	lo, hi = max(g.lo, -shift), min(g.hi, len(l.calls)-shift)
	if float64(hi-lo) < common*float64(len(g.seed.calls)) {
		return 0, 0
	}
	return lo, hi
}

// points are how far the ends of a line that is some calls ahead are from the seed's.
func (g *group) points(l line, shift int) []point {
	lo, hi := g.shared(l, shift)
	a, b := &g.members[g.seed.member], &g.members[l.member]
	every := (hi-lo-1)/maxPoints + 1
	var points []point
	for n := lo; n < hi; n += every {
		end := a.end(g.seed.calls[n])
		points = append(points, point{end, b.end(l.calls[n+shift]) - end})
	}
	return points
}

// join takes a line in that is some calls ahead, where the kinds of calls agree and calls overlap in time after the
// clocks were put together.
func (g *group) join(l line, shift int) bool {
	lo, hi := g.shared(l, shift)
	if hi <= lo {
		return false
	}
	a, b := &g.members[g.seed.member], &g.members[l.member]
	as, bs := g.seed.calls[lo:hi], l.calls[lo+shift:hi+shift]
	for n := range as {
		if a.kind(as[n]) != b.kind(bs[n]) {
			return false
		}
	}
	clock, known := g.clocks[b.clock]
	if !known {
		clock = fit(g.points(l, shift))
	}
	both := 0
	for n := range as {
		ahead := clock.At(a.end(as[n]))
		if max(a.start(as[n]), b.start(bs[n])-ahead) < min(a.end(as[n]), b.end(bs[n])-ahead) {
			both++
		}
	}
	if float64(both) < overlapping*float64(len(as)) {
		return false
	}
	g.clocks[b.clock] = clock
	g.lines, g.shifts, g.lo, g.hi = append(g.lines, l), append(g.shifts, shift), lo, hi
	return true
}

// start and end of a call, on the clock of the host.
func (m *Member) start(call int32) int64 { return m.Calls[call].Start + m.Shift }
func (m *Member) end(call int32) int64   { return m.Calls[call].End + m.Shift }

func (m *Member) kind(call int32) string { return m.Kinds[m.Calls[call].Kind] }
