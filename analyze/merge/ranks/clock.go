package ranks

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/order"
)

// Clock is the difference between one host's clock and the first.
type Clock struct {
	Members int  // tracks on it
	Known   bool // it could be compared with the first, or is the first
	Line    Line // how far its times are ahead, ns
	N       int  // number of collectives it was compared by; 0 for the first
	// Messages is the number of messages it was compared by, if no collective links it to another clock.
	Messages int
	// P50 and P99 are the residual in ns. From collectives: the median and the 99th percentile of the absolute
	// difference between the ends of matched ones, after the line was subtracted. From messages both are the same: half
	// the range of offsets that causality allows, plus the residual of the other clock.
	P50, P99 float64
}

// Line is a difference of two clocks: Offset ns at the time From, and Drift ns more for each ns after.
type Line struct {
	From   int64
	Offset float64
	Drift  float64
}

// At returns the difference at time t, in ns.
func (l *Line) At(t int64) int64 {
	return int64(math.Round(l.Offset + l.Drift*float64(t-l.From)))
}

// maxResidual is the 99th percentile of the residual, in ns, above which a clock counts as unknown.
const maxResidual = 200_000

// Aligned are the clocks of a run, and the times of its members on the first one.
type Aligned struct {
	Members []Member
	Clocks  []Clock
}

// Align compares clocks by the ends of matched collectives, which release all ranks at the same moment. It starts at
// the first clock and goes on to those that share a collective with a known one; clocks that no collective links are
// compared by messages. All clocks but the first get an offset, and a drift if that explains the ends much better.
func Align(members []Member, sets []Set) *Aligned {
	a := &Aligned{members, make([]Clock, lists.Most(members, func(m Member) int { return m.Clock + 1 }))}
	for i := range members {
		a.Clocks[members[i].Clock].Members++
	}
	if len(a.Clocks) == 0 {
		return a
	}
	a.Clocks[0].Known = true
	for {
		points := map[int][]point{}
		for i := range sets {
			a.compare(&sets[i], points)
		}
		if len(points) == 0 && !a.byMessages() {
			return a
		}
		for at, list := range points {
			c := &a.Clocks[at]
			c.Line, c.N, c.Known = fit(list), len(list), true
			c.P50, c.P99 = residuals(list, c.Line)
			if c.P99 > maxResidual {
				c.Known = false
				c.N = -len(list) // tried
			}
		}
	}
}

// compare collects how far the ends of a set on unknown clocks are from those on known clocks.
func (a *Aligned) compare(s *Set, points map[int][]point) {
	own := map[int][]int{} // members by clock
	var known []int
	for k, m := range s.Members {
		at := a.Members[m].Clock
		if a.Clocks[at].Known {
			known = append(known, k)
		} else if a.Clocks[at].N == 0 {
			own[at] = append(own[at], k)
		}
	}
	if len(known) == 0 || len(own) == 0 {
		return
	}
	every := (s.Len()-1)/maxPoints + 1
	var ends []int64
	median := func(list []int, n int, end func(m int, call int32) int64) (at int64, ok bool) {
		ends = ends[:0]
		for _, k := range list {
			if c := s.Calls[k][n]; c >= 0 {
				ends = append(ends, end(s.Members[k], c))
			}
		}
		return order.Median(ends), len(ends) > 0
	}
	plain := func(m int, call int32) int64 { return a.Members[m].end(call) }
	for n := 0; n < s.Len(); n += every {
		base, ok := median(known, n, a.End)
		for at, list := range own {
			if end, there := median(list, n, plain); ok && there {
				points[at] = append(points[at], point{end, end - base})
			}
		}
	}
}

// maxPoints bounds how many collectives of a set are used to compare clocks.
const maxPoints = 4096

// Start returns the start of a member's call on the first clock, in ns.
func (a *Aligned) Start(member int, call int32) int64 {
	return a.onFirst(member, a.Members[member].start(call))
}

// End returns the end of a member's call on the first clock, in ns.
func (a *Aligned) End(member int, call int32) int64 {
	return a.onFirst(member, a.Members[member].end(call))
}

// onFirst is a time of a member's clock on the first clock.
func (a *Aligned) onFirst(member int, t int64) int64 { return t - a.Clock(member).Line.At(t) }

// Clock returns the clock of a member.
func (a *Aligned) Clock(member int) *Clock { return &a.Clocks[a.Members[member].Clock] }

// point is the difference of two clocks at a time, in ns.
type point struct{ at, diff int64 }

const (
	leastForDrift = 16      // points
	mostDrift     = 1e-3    // ns per ns: no clock of a computer is as bad
	driftGain     = 0.7     // the median residual with a drift must be at most this share of that without
	mad           = 1.4826  // of the median absolute deviation: the standard deviation of a normal distribution
	outlier       = 3 * mad // times the median absolute deviation
)

// fit is the line through points, of which there are some. The offset alone is their median. With a drift, the slope is
// the median of slopes between points half of the list apart (Theil, 1950; Sen, 1968), refined by least squares over the
// points near the line.
func fit(points []point) Line {
	lists.Sort(points, func(a, b point) int { return int(min(1, max(-1, a.at-b.at))) })
	first := points[0].at
	flat := Line{From: first, Offset: median(points, func(p point) float64 { return float64(p.diff) })}
	if len(points) < leastForDrift {
		return flat
	}
	half := len(points) / 2
	var slopes []float64
	for i := range len(points) - half {
		if a, b := points[i], points[i+half]; b.at > a.at {
			slopes = append(slopes, float64(b.diff-a.diff)/float64(b.at-a.at))
		}
	}
	if len(slopes) == 0 {
		return flat
	}
	slices.Sort(slopes)
	line := Line{From: first, Drift: slopes[len(slopes)/2]}
	line.Offset = median(points, func(p point) float64 { return float64(p.diff) - line.Drift*float64(p.at-first) })
	for range 2 {
		line = squares(points, line)
	}
	before, _ := residuals(points, flat)
	after, _ := residuals(points, line)
	if math.Abs(line.Drift) > mostDrift || after > driftGain*before {
		return flat
	}
	return line
}

// squares returns the least-squares line through the points near a line.
func squares(points []point, line Line) Line {
	spread := median(points, func(p point) float64 { return math.Abs(line.off(p)) })
	var n, sx, sy, sxx, sxy float64
	for _, p := range points {
		if math.Abs(line.off(p)) > outlier*spread+1 {
			continue
		}
		x, y := float64(p.at-line.From), float64(p.diff)-line.Offset
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	det := n*sxx - sx*sx
	if n < 3 || det <= 0 {
		return line
	}
	drift := (n*sxy - sx*sy) / det
	return Line{From: line.From, Offset: line.Offset + (sy-drift*sx)/n, Drift: drift}
}

// off is the distance of a point from the line.
func (l *Line) off(p point) float64 {
	return float64(p.diff) - l.Offset - l.Drift*float64(p.at-l.From)
}

// residuals are the median and the 99th percentile of the distances from a line.
func residuals(points []point, l Line) (p50, p99 float64) {
	list := lists.Map(points, func(p point) float64 { return math.Abs(l.off(p)) })
	slices.Sort(list)
	return list[len(list)/2], list[(len(list)*99)/100]
}

func median(points []point, of func(p point) float64) float64 {
	list := lists.Map(points, of)
	return order.Median(list)
}
