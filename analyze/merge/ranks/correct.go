package ranks

import (
	"math"
	"slices"
)

// correct moves the session of one rank on a host if collectives, which end at one time on all ranks, contradict when
// it began. Most of the host's ranks have to agree on another time; without communicators, ranks that agree with some
// others may be of a group that follows the first. Of two ranks, MPI or a communicator has to tie them.
func correct(members []Member, list [][]line) {
	for _, bucket := range list {
		byClock := map[int][]line{}
		for _, l := range bucket {
			clock := members[l.member].Clock
			byClock[clock] = append(byClock[clock], l)
		}
		for clock, lines := range byClock {
			g := group{members: members, seed: lines[0], clocks: map[int]Line{clock: {}}, hi: len(lines[0].calls)}
			var at, began []int64 // when each line ends, and its session began
			var of []*Member
			for i := range lines {
				if ahead, ok := g.ahead(&lines[i]); ok {
					m := &members[lines[i].member]
					at, began, of = append(at, ahead), append(began, m.Shift), append(of, m)
				}
			}
			if len(at) < 2 {
				continue
			}
			host := slices.Sorted(slices.Values(at))[(len(at)-1)/2]
			agree := func(when int64) (sessions map[int64]bool) {
				sessions = map[int64]bool{}
				for i := range at {
					if abs(at[i]-when) <= surest*SameHost {
						sessions[began[i]] = true
					}
				}
				return sessions
			}
			tied := len(lines) == 2 && (of[0].Device < 0 || of[0].Calls[lines[0].calls[0]].Comm >= 0)
			for i, m := range of {
				off := at[i] - host
				if abs(off) > surest*SameHost && len(agree(at[i])) == 1 && (tied || 2*len(agree(host)) > len(lines)) {
					move(members, m, off)
				}
			}
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
