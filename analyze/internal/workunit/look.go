package workunit

import (
	"math"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/order"
)

// sums holds prefix sums of a line, which give the contents of any stretch in constant time.
type sums struct {
	time  []int64  // before each position, and at the end, ns
	lanes []uint64 // likewise: hashes of names in eight bytes, each for one eighth of the names
	lane  [lanes]float64
	bins  [lanes][256]bin // empty between calls
}

// lanes is the number of parts into which the names are divided. Units that differ in one kernel still agree in most
// parts.
const lanes = 8

func newSums(l *line) *sums {
	n := len(l.seq)
	s := &sums{time: make([]int64, n+1), lanes: make([]uint64, n+1)}
	for i, name := range l.seq {
		h, time := l.hash[name], int64(l.time[i])
		lane := h >> 56 % lanes
		s.time[i+1] = s.time[i] + time
		s.lanes[i+1] = addLane(s.lanes[i], lane, h)
		s.lane[lane] += float64(time)
	}
	if l.total > 0 {
		for i := range s.lane {
			s.lane[i] /= float64(l.total)
		}
	}
	return s
}

// addLane adds the low byte of h to one of the eight bytes without a carry.
func addLane(x, lane, h uint64) uint64 {
	shift := lane * 8
	return x&^(0xFF<<shift) | (x>>shift+h)&0xFF<<shift
}

// laneOf returns the byte of the stretch between two sums.
func laneOf(from, to uint64, lane int) byte { return byte(to>>(lane*8)) - byte(from>>(lane*8)) }

// bin counts units that agree in one lane.
type bin struct {
	time  int64
	units int32
}

// look is the first, quick score of an anchor: for each lane the squared share of time in units that agree in it,
// averaged over the lanes by the time of their names. It takes constant time per unit.
func (s *sums) look(pos []int32) float64 {
	stride := (len(pos)-1)/maxSampled + 1
	var best [lanes]int64
	var sampled, longest int64
	visit := func(do func(from, to int32)) {
		for i := 0; i+1 < len(pos); {
			do(pos[i], pos[i+1])
			if i++; stride > 1 { // not every k-th: units may alternate
				i += int(Mix(uint64(i)) % uint64(2*stride-1))
			}
		}
	}
	visit(func(from, to int32) {
		time := s.time[to] - s.time[from]
		sampled += time
		longest = max(longest, time)
		for lane := range lanes {
			b := &s.bins[lane][laneOf(s.lanes[from], s.lanes[to], lane)]
			b.time += time
			if b.units++; b.units > 1 {
				best[lane] = max(best[lane], b.time)
			}
		}
	})
	visit(func(from, to int32) {
		for lane := range lanes {
			s.bins[lane][laneOf(s.lanes[from], s.lanes[to], lane)] = bin{}
		}
	})
	if sampled <= 0 {
		return 0
	}
	inside := s.time[pos[len(pos)-1]] - s.time[pos[0]]
	around := [2]int64{s.time[pos[0]], s.time[len(s.time)-1] - s.time[pos[len(pos)-1]]}
	covered := float64(inside) / float64(whole(inside, around, longest))
	var score float64
	for lane := range lanes {
		share := float64(best[lane]) / float64(sampled) * covered
		score += s.lane[lane] * share * share
	}
	return score
}

// whole is the time that units should cover, in ns: the time from the first to the last start (inside), plus what is
// around it beyond one unit, which the capture may have cut.
func whole(inside int64, around [2]int64, longest int64) int64 {
	for _, rest := range around {
		inside += max(0, rest-longest)
	}
	return max(1, inside)
}

// idleBefore is the share of the idle time that is just before the positions shifted by skip, without the first. A
// pause counts at most twice the median one, so that a few long pauses do not suffice. It is 0 if pauses there are no
// longer than elsewhere.
func (l *line) idleBefore(pos []int32, skip int32) float64 {
	sum := func(most int64) float64 {
		var idle int64
		for _, p := range pos[1:] {
			idle += min(int64(l.idle[p+skip]), most)
		}
		return float64(idle) / float64(max(1, l.all))
	}
	share := sum(math.MaxInt64)
	if share < mostIdle {
		return share
	}
	pauses := lists.Map(pos[1:], func(p int32) int64 { return int64(l.idle[p+skip]) })
	if share = sum(2 * order.Median(pauses)); share*float64(len(l.seq)) < pauseRatio*float64(len(pos)) {
		return 0 // no longer than elsewhere
	}
	return share
}
