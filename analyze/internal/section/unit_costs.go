package section

import (
	"slices"
	"sort"

	"github.com/nsys-llm/explain/analyze/internal/attrib"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
)

// unitCost is what one unit of work took.
type unitCost struct {
	time, busy, idle                  int64
	compute, exposedComm, exposedCopy int64
	cause                             [attrib.Causes]int64
	launches, kernels                 int64
}

// unitCosts works out every unit of the capture, by index into Units. Times are of the device between the unit's start and
// end; launches and kernels are those of the work that belongs to it.
func unitCosts(in *Input) []unitCost {
	x := in.Units
	costs := make([]unitCost, len(x.Units))
	for i := range x.Units {
		u, c := &x.Units[i], &costs[i]
		d := &x.Timeline.Devices[u.Index]
		c.time = u.Time()
		c.busy = d.Busy.Within(u.Start, u.End)
		c.idle = c.time - c.busy
		c.compute = d.Compute.Within(u.Start, u.End)
		c.exposedComm = d.ExposedComm.Within(u.Start, u.End)
		c.exposedCopy = d.ExposedCopy.Within(u.Start, u.End)
		gaps := d.Gaps
		for g := sort.Search(len(gaps), func(i int) bool { return gaps[i].End > u.Start }); g < len(gaps) && gaps[g].Start < u.End; g++ {
			clipCauses(&gaps[g], u.Start, u.End, &c.cause)
		}
	}
	countLaunches(in, costs)
	return costs
}

// clipCauses adds the part of a gap's causes within [lo, hi). A unit starts with work, so gaps are cut only where work
// without length stands in them; the causes are then laid out in their order.
func clipCauses(g *attrib.Gap, lo, hi int64, sum *[attrib.Causes]int64) {
	at := g.Start
	for c, ns := range g.Cause {
		sum[c] += max(0, min(at+ns, hi)-max(at, lo))
		at += ns
	}
}

// countLaunches counts kernels and the launches they came from: the kernels of one CUDA graph launch share a correlation
// id and are one.
func countLaunches(in *Input, costs []unitCost) {
	type launch struct {
		proc int32
		corr int64
	}
	x := in.Units
	lastOf := make([]int32, in.Trace.API.Len()) // the unit for which a call was last counted, plus one
	orphans := map[launch]int32{}               // the same for launches whose call the capture lacks
	for d := range x.Of {
		work := x.Timeline.Devices[d].Work
		for i, u := range x.Of[d] {
			w := &work[i]
			if u == trace.None || w.Kind != attrib.KernelWork && w.Kind != attrib.GraphWork {
				continue
			}
			c := &costs[u]
			if w.Kind == attrib.KernelWork {
				c.kernels++
			}
			switch {
			case w.Call != trace.None:
				if lastOf[w.Call] != u+1 {
					lastOf[w.Call] = u + 1
					c.launches++
				}
			case w.Corr < 0:
				c.launches++
			default:
				k := launch{x.Units[u].Proc, w.Corr}
				if orphans[k] != u+1 {
					orphans[k] = u + 1
					c.launches++
				}
			}
		}
	}
}

// unitSet is the kept units of one group on one device, in order.
type unitSet struct {
	group, device int32
	units         []int32
	p50           float64
}

// unitSets are the kept units by group and device; slowest is, by group, the set with the longest median time.
func unitSets(in *Input) (sets []unitSet, slowest []int) {
	x := in.Units
	type key struct{ group, device int32 }
	index := map[key]int{}
	for i := range x.Units {
		u := &x.Units[i]
		if u.State != workunit.Kept || u.Group < 0 {
			continue
		}
		k := key{u.Group, u.Device}
		at, ok := index[k]
		if !ok {
			at = len(sets)
			index[k] = at
			sets = append(sets, unitSet{group: u.Group, device: u.Device})
		}
		sets[at].units = append(sets[at].units, int32(i))
	}
	slowest = make([]int, len(x.Groups))
	for g := range slowest {
		slowest[g] = -1
	}
	for i := range sets {
		s := &sets[i]
		times := make([]int64, len(s.units))
		for k, u := range s.units {
			times[k] = x.Units[u].Time()
		}
		slices.Sort(times)
		s.p50 = percentile50(times)
		if best := slowest[s.group]; best < 0 || s.p50 > sets[best].p50 {
			slowest[s.group] = i
		}
	}
	return sets, slowest
}

func percentile50(sorted []int64) float64 {
	n := len(sorted)
	if n%2 == 1 {
		return float64(sorted[n/2])
	}
	return (float64(sorted[n/2-1]) + float64(sorted[n/2])) / 2
}
