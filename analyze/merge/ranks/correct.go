package ranks

import (
	"cmp"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// correct moves sessions of a host if collectives, which end at one time on all ranks, contradict when they began. Each
// has to contradict all others: ranks that agree among themselves may be of a group that follows another in lockstep.
// Unless MPI or a communicator ties them, some others have to agree.
func correct(members []Member, list [][]line) {
	for _, bucket := range list {
		for _, lines := range lists.Groups(bucket, func(l line) int { return members[l.member].Clock }) {
			first := &members[lines[0].member]
			g := group{members: members, seed: lines[0], clocks: map[int]Line{first.Clock: {}}, hi: len(lines[0].calls)}
			var list []session
			for i := range lines {
				if ahead, ok := g.ahead(&lines[i]); ok {
					m := &members[lines[i].member]
					list = append(list, session{m, m.Shift, ahead})
				}
			}
			if len(list) > 1 && 2*len(list) > len(lines) {
				moveOdd(members, list, first.Device < 0 || first.Calls[lines[0].calls[0]].Comm >= 0)
			}
		}
	}
}

// session is when a member's session began, and how far its collectives end after those of another, in ns.
type session struct {
	*Member
	began, ahead int64
}

// moveOdd moves sessions that agree with no other to those that agree; if tied, to the first if none do.
func moveOdd(members []Member, list []session, tied bool) {
	agree := func(with session) int {
		began := map[int64]bool{}
		for _, s := range list {
			if abs(s.ahead-with.ahead) <= surest*SameHost {
				began[s.began] = true
			}
		}
		return len(began)
	}
	most := slices.MaxFunc(list, func(a, b session) int { return cmp.Compare(agree(a), agree(b)) })
	var odd []session
	for _, s := range list {
		switch {
		case abs(s.ahead-most.ahead) <= surest*SameHost:
		case agree(s) > 1:
			return
		default:
			odd = append(odd, s)
		}
	}
	for _, s := range odd {
		if tied || agree(most) > 1 {
			move(members, s.Member, s.ahead-most.ahead)
		}
	}
}

// move sets back the session of a member, unless that was done.
func move(members []Member, of *Member, by int64) {
	if of.Moved != 0 {
		return
	}
	shift := of.Shift
	for i := range members {
		if m := &members[i]; m.Clock == of.Clock && m.Shift == shift {
			m.Shift, m.Moved = shift-by, by
		}
	}
}

// ahead is how much later a line's calls end than the seed's, in ns; not ok if that is not clear. Pairing them as the
// clock says is believed, unless another pairing leaves ends that differ far less from each other.
func (g *group) ahead(l *line) (best int64, ok bool) {
	middle, near := g.near(l)
	near = max(0, min(near, len(l.calls)-1))
	as := l.number(near) - g.seed.number(middle)
	least := math.Inf(1)
	try := func(shift int, gain float64) {
		points := g.points(l, shift)
		if len(points) < stretch {
			return
		}
		flat := Line{Offset: median(points, func(p point) float64 { return float64(p.diff) })}
		if p50, _ := residuals(points, flat); p50 <= SameHost && p50 < gain*least {
			best, least = int64(flat.Offset), p50
		}
	}
	for _, k := range []int{0, -1, 1} {
		try(as+k, 1)
	}
	try(0, clearer)                              // both begin at once
	try(len(l.calls)-len(g.seed.calls), clearer) // both end at once
	for k := 2; k <= maxOff && least > clearer*SameHost; k++ {
		try(as-k, clearer)
		try(as+k, clearer)
	}
	return best, !math.IsInf(least, 1)
}

// clearer is the share of the difference between ends that another pairing may leave, to be believed instead.
const clearer = 0.25
