package ranks

import (
	"cmp"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// link is the messages of one channel between a member with a known clock and one whose clock is unknown.
type link struct {
	from, to     int // members
	sends, recvs []int32
}

const (
	// maxRate is the largest drift between the clocks of two hosts, in ns per ns.
	maxRate = 100e-6
	// maxOpen is the largest residual of a clock, in ns, for it to count as compared by messages.
	maxOpen = 10_000_000
	// bins is the number of time bins; in each, only the message with the tightest bound counts.
	bins = 64
	// nearer: another order of messages is believed, or makes the plain one doubtful, if it puts a clock this many
	// times nearer to what the hosts' own clocks state.
	nearer = 3
)

// byMessages compares clocks that no collective links, by causality: a receive cannot end before its send began.
// Messages to a clock bound how far it is ahead from above, messages from it bound that from below. The middle is the
// offset, and half of the range is its residual. Messages in one direction only do not suffice. It reports whether a
// clock became known.
func (a *Aligned) byMessages() (found bool) {
	open := func(c Clock) bool { return !c.Known && c.N == 0 && c.Messages == 0 }
	if !slices.ContainsFunc(a.Clocks, open) {
		return false
	}
	links := make([][]link, len(a.Clocks))
	calls, order := channels(a.Members, func(int, int) bool { return false }, func(int, int) {})
	for _, c := range order {
		l := link{c.one, c.to, calls[c][c.one], nil}
		if c.to < 0 || len(l.sends) == 0 || len(calls[c][c.to]) == 0 {
			continue
		}
		l.recvs = calls[c][c.to]
		one, to := a.Members[c.one].Clock, a.Members[c.to].Clock
		switch {
		case a.Clocks[one].Known && !a.Clocks[to].Known:
			links[to] = append(links[to], l)
		case a.Clocks[to].Known && !a.Clocks[one].Known:
			links[one] = append(links[one], l)
		}
	}
	for at := range a.Clocks {
		if len(links[at]) > 0 && open(a.Clocks[at]) {
			found = a.tie(at, links[at]) || found
		}
	}
	return found
}

// tie compares a clock by its links. If captures hold equally many sends and receives, the n-th send matches the n-th
// receive. Else some were captured on one side only, and orders that are up to maxOff messages apart are tried. If
// causality allows several, the one that is clearly nearest to the hosts' own clocks counts.
func (a *Aligned) tie(at int, links []link) bool {
	type found struct {
		line Line
		open float64
		by   int
	}
	var list []found
	equal := !slices.ContainsFunc(links, func(l link) bool { return len(l.sends) != len(l.recvs) })
	for by := -maxOff; by <= maxOff; by++ {
		if line, open, ok := between(a.bounds(at, links, by)); ok {
			list = append(list, found{line, open, by})
		}
	}
	lists.Sort(list, func(x, y found) int { return cmp.Compare(math.Abs(x.line.Offset), math.Abs(y.line.Offset)) })
	best := 0
	if equal {
		best = slices.IndexFunc(list, func(f found) bool { return f.by == 0 })
	}
	if best < 0 || len(list) == 0 || list[best].open > maxOpen {
		return false
	}
	own := func(k int) float64 { return math.Abs(list[k].line.Offset) }
	if best > 0 && nearer*own(0) < own(best) || !equal && len(list) > 1 && own(1) < nearer*own(0) {
		return false
	}
	c := &a.Clocks[at]
	c.Known, c.Line = true, list[best].line
	c.P50 = list[best].open
	for _, l := range links {
		c.Messages += min(len(l.sends), len(l.recvs))
		c.P50 = max(c.P50, list[best].open+max(a.Clock(l.from).P99, a.Clock(l.to).P99))
	}
	c.P99 = c.P50
	return true
}

// bounds returns points that bound how far a clock is ahead, from above and from below, if the n-th message of the
// other side is its (n+by)-th.
func (a *Aligned) bounds(at int, links []link, by int) (upper, lower []point) {
	for _, l := range links {
		for k, s := range l.sends {
			if a.Members[l.to].Clock == at {
				if r := k + by; r >= 0 && r < len(l.recvs) {
					end := a.Members[l.to].end(l.recvs[r])
					upper = append(upper, point{end, end - a.Start(l.from, s)})
				}
			} else if r := k - by; r >= 0 && r < len(l.recvs) {
				start := a.Members[l.from].start(s)
				lower = append(lower, point{start, start - a.End(l.to, l.recvs[r])})
			}
		}
	}
	return upper, lower
}

// between returns the line halfway between the upper and lower bounds, with a drift of at most maxRate, and half of the
// range that they allow. ok is false if no line fits, or one side has no points.
func between(upper, lower []point) (line Line, open float64, ok bool) {
	if len(upper) == 0 || len(lower) == 0 {
		return line, 0, false
	}
	from, to := int64(math.MaxInt64), int64(math.MinInt64)
	for _, p := range slices.Concat(upper, lower) {
		from, to = min(from, p.at), max(to, p.at)
	}
	above, below := tightest(upper, from, to, 1), tightest(lower, from, to, -1)
	high := func(drift float64) float64 { return extreme(above, from, drift, 1) }
	low := func(drift float64) float64 { return extreme(below, from, drift, -1) }
	room := func(drift float64) float64 { return high(drift) - low(drift) }
	middle := most(-maxRate, maxRate, room)
	if room(middle) < 0 {
		return line, 0, false
	}
	least, greatest := border(middle, -maxRate, room), border(middle, maxRate, room)
	length := float64(to - from)
	var centre [2]float64
	for k, x := range []float64{0, length} {
		top := func(drift float64) float64 { return high(drift) + drift*x }
		bottom := func(drift float64) float64 { return -low(drift) - drift*x }
		t, b := top(most(least, greatest, top)), -bottom(most(least, greatest, bottom))
		centre[k], open = (t+b)/2, max(open, (t-b)/2)
	}
	line = Line{From: from, Offset: centre[0]}
	if length > 0 {
		line.Drift = (centre[1] - centre[0]) / length
	}
	return line, open, true
}

// tightest returns, for each time bin, the point with the smallest sign times difference.
func tightest(points []point, from, to int64, sign int64) []*point {
	var best [bins]*point
	for i := range points {
		p, k := &points[i], 0
		if to > from {
			k = int(float64(p.at-from) / float64(to-from) * (bins - 1))
		}
		if best[k] == nil || sign*p.diff < sign*best[k].diff {
			best[k] = p
		}
	}
	return slices.DeleteFunc(best[:], func(p *point) bool { return p == nil })
}

// extreme returns the largest offset that upper bounds allow at a drift or, with sign -1, the smallest that lower
// bounds allow.
func extreme(points []*point, from int64, drift float64, sign float64) float64 {
	least := math.Inf(1)
	for _, p := range points {
		least = min(least, sign*(float64(p.diff)-drift*float64(p.at-from)))
	}
	return sign * least
}

// most returns where a function that rises and then falls has its maximum.
func most(lo, hi float64, of func(float64) float64) float64 {
	for range 60 {
		a, b := lo+(hi-lo)/3, hi-(hi-lo)/3
		if of(a) < of(b) {
			lo = a
		} else {
			hi = b
		}
	}
	return (lo + hi) / 2
}

// border returns the place up to which such a function stays at or above 0, on the way to an end.
func border(from, end float64, of func(float64) float64) float64 {
	if of(end) >= 0 {
		return end
	}
	for range 60 {
		if middle := (from + end) / 2; of(middle) >= 0 {
			from = middle
		} else {
			end = middle
		}
	}
	return from
}
