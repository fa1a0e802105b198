package merge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/merge/ranks"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

type process struct {
	capture int
	pid     int64
}

// rank is one process of the run.
type rank struct {
	label   string // its number, or the name of its capture and its pid
	number  int64  // -1 unknown
	capture int
	pid     int64
	role    string
	host    int // number of its clock
	sum     ranks.Rank
	steps   []stepTime
	step    *report.Summary // of the steps; nil unknown
	device  deviceKey       // of the steps
	bubble  *int64          // ns in which only point-to-point kernels run; nil unknown
	experts *int64          // ns in kernels of experts; nil unknown
}

// runFold is what the ranks of a run state together.
type runFold struct {
	ranks   []*rank
	members []ranks.Member
	of      []int // by member: its rank
	aligned *ranks.Aligned
	result  *ranks.Result
	chains  []chain
	alone   []int // ranks none of whose collectives could be matched
	world   int64 // -1 unknown
}

// slack is how far apart, in ns, the windows of two captures of one run may be, because clocks of hosts differ.
const slack = int64(time.Minute)

// check refuses captures that are not of one run.
func (list captures) check(warnings *[]report.Warning) error {
	list.rankProfiles()
	owners := map[int64]process{} // by rank
	world, first := int64(-1), 0
	twice := false // several ranks have one number within communicators
	for at, c := range list {
		for _, t := range c.tracks {
			if t.World >= 0 && t.From != "nccl" {
				if world >= 0 && t.World != world {
					return &RunError{fmt.Sprintf("%s belongs to a run of %d ranks and %s to one of %d: merge the captures of one run",
						list[first].Name, world, c.Name, t.World)}
				}
				if world < 0 {
					world, first = t.World, at
				}
			}
			if t.Rank < 0 {
				continue
			}
			me := process{at, t.PID}
			o, known := owners[t.Rank]
			switch {
			case !known:
				owners[t.Rank] = me
			case o == me:
			case t.From == "nccl":
				twice = true
			default:
				return &RunError{fmt.Sprintf("rank %d is there twice, in %s and in %s: name one capture of each rank",
					t.Rank, list[o.capture].Name, c.Name)}
			}
		}
	}
	if twice {
		for _, c := range list { // the largest communicator of a capture need not be the run's
			for _, t := range c.tracks {
				if t.From == "nccl" {
					t.Rank, t.World, t.From = -1, -1, ""
				}
			}
		}
		*warnings = append(*warnings, report.Warning{Code: "rank_unknown", Section: "ranks",
			Text: "NCCL gives several processes the same rank, so ranks are unknown. --rank REGEX reads them from file names: its first group is the rank."})
	}
	if err := list.sameOtherwise(); err != nil {
		return err
	}
	list.sameGPUs(warnings)
	return list.oneTime()
}

// sameGPUs warns of captures with different models of GPU: most are not of one run.
func (list captures) sameGPUs(warnings *[]report.Warning) {
	var first *captureFold
	for _, c := range list {
		if len(c.environ.GPUs) == 0 || c.environ.GPUs[0].Name == nil {
			continue
		}
		first = cmp.Or(first, c)
		if a, b := *first.environ.GPUs[0].Name, *c.environ.GPUs[0].Name; a != b {
			*warnings = slices.Insert(*warnings, 0, report.Warning{Code: "mixed_gpus", Section: "ranks",
				Text: fmt.Sprintf("Different models of GPU, so hardly one run: report each capture on its own, or compare with "+
					"explain diff. %s ran on %s, %s on %s.", first.Name, a, c.Name, b)})
			return
		}
	}
}

// oneTime refuses captures whose windows lie apart.
func (list captures) oneTime() error {
	var b *captureFold
	for _, c := range list {
		switch {
		case c.Session == 0 || c.window.Length == 0:
			continue
		case b == nil:
			b = c
		}
		gap := max(c.Session+c.window.Start-(b.Session+b.window.End), b.Session+b.window.Start-(c.Session+c.window.End))
		if gap > slack {
			return &RunError{fmt.Sprintf("%s and %s belong to different runs: one was captured %s after the other had ended; merge the captures of one run, and compare runs with explain diff",
				b.Name, c.Name, time.Duration(gap).Round(time.Second))}
		}
	}
	return nil
}

// study combines the ranks of the run. Ranks are sorted by number, unknown ones last, so that the first clock is that
// of the first rank.
func (f *fold) study() *runFold {
	x := &runFold{world: -1}
	base := int64(math.MaxInt64)
	found := map[process]*rank{}
	for i, c := range f.captures {
		if c.Session > 0 {
			base = min(base, c.Session)
		}
		for _, t := range c.tracks {
			k := process{i, t.PID}
			r := found[k]
			if r == nil {
				r = &rank{number: -1, capture: i, pid: t.PID, role: c.role}
				found[k], x.ranks = r, append(x.ranks, r)
			}
			r.number = max(r.number, t.Rank)
			x.world = max(x.world, t.World)
		}
	}
	lists.Sort(x.ranks, func(a, b *rank) int { return cmp.Compare(uint64(a.number), uint64(b.number)) })
	taken := map[string]bool{} // files may share a name
	for at, r := range x.ranks {
		c := f.captures[r.capture]
		r.label = strconv.FormatInt(r.number, 10)
		if r.number < 0 {
			r.label = c.Name + ":" + strconv.FormatInt(r.pid, 10)
		}
		r.label = unlike(taken, r.label)
		for _, t := range c.tracks {
			m := ranks.Member{Track: t} // nothing ties its clock to another's
			if c.Session > 0 {
				m.Host, m.Shift = c.Host, c.Session-base
			}
			if t.PID == r.pid {
				x.members, x.of = append(x.members, m), append(x.of, at)
			}
		}
	}
	sets := ranks.Match(x.members)
	x.aligned = ranks.Align(x.members, sets)
	x.result = ranks.Study(x.aligned, sets)
	for m, at := range x.of {
		x.ranks[at].sum.Add(&x.result.Ranks[m], 1)
		x.ranks[at].host = x.members[m].Clock
		if len(x.members[m].Calls) > 0 && x.result.Ranks[m].N == 0 {
			lists.Place[int32](&x.alone, at)
		}
	}
	f.steps(x)
	x.ofRanks()
	return x
}

// chain says which rank makes which other ranks wait.
type chain struct {
	ranks.Chain
	first, waiter int
	hops, others  []int
}

// ofRanks turns chains of members into chains of ranks. If a rank has several tracks, its first chain counts.
func (x *runFold) ofRanks() {
	list := func(members []int) (out []int) {
		for _, m := range members {
			lists.Place[int32](&out, x.of[m])
		}
		return out
	}
	seen := map[int]bool{}
	for _, c := range x.result.Chains {
		if at := x.of[c.First]; !seen[at] && at != x.of[c.Waiter] {
			seen[at] = true
			x.chains = append(x.chains, chain{c, at, x.of[c.Waiter], list(c.Hops), list(c.Others)})
		}
	}
}

// unlike takes a name, with a number added if it is taken already.
func unlike(taken map[string]bool, name string) string {
	own := name
	for n := 2; taken[own]; n++ {
		own = name + " #" + strconv.Itoa(n)
	}
	taken[own] = true
	return own
}

type stepTime struct{ number, ns int64 }

// steps finds the steps of each rank: the kept units of its main kinds, on the device where they take most time. Of a
// sampled run only the median of them is known, if a rank has a capture of its own.
func (f *fold) steps(x *runFold) {
	in := x.perCapture()
	for _, r := range x.ranks {
		c := f.captures[r.capture]
		type place struct{ device, group int64 }
		times := map[place][]stepTime{}
		sums := map[place]int64{}
		best := place{-1, -1}
		for _, p := range c.units {
			if p.Process != r.pid && p.Process >= 0 || p.State != 0 || p.Group < 0 || !c.unit.Groups[p.Group].Main {
				continue
			}
			at := place{p.Device, p.Group}
			times[at] = append(times[at], stepTime{p.Number, p.Duration})
			if sums[at] += p.Duration; best.device < 0 || sums[at] > sums[best] {
				best = at
			}
		}
		r.steps, r.device = times[best], deviceKey{r.capture, best.device}
		list := lists.Map(r.steps, func(s stepTime) int64 { return s.ns })
		r.step = stat.Summarize(list)
		if !f.sampled || in[r.capture] > 1 {
			continue
		}
		for _, g := range c.unit.Groups {
			if s, ok := c.own.Steps[g.ID]; ok && g.Main {
				r.step = &report.Summary{N: g.Count, P50: s.P50, Mean: s.Mean}
			}
			if g.Main && g.Device != nil {
				r.device.device = *g.Device
			}
		}
	}
}

// slowestSteps returns, for each step, the longest time over the ranks, the median time, and the slowest rank; nil
// unless all ranks have equally many steps.
func (x *runFold) slowestSteps() (times, middles []int64, who []int) {
	if len(x.ranks) < 2 || len(x.ranks[0].steps) == 0 {
		return nil, nil, nil
	}
	n := len(x.ranks[0].steps)
	if slices.ContainsFunc(x.ranks, func(r *rank) bool { return len(r.steps) != n }) {
		return nil, nil, nil
	}
	for k := range n {
		list := lists.Map(x.ranks, func(r *rank) int64 { return r.steps[k].ns })
		most := slices.Max(list)
		times, who = append(times, most), append(who, slices.Index(list, most))
		slices.Sort(list)
		middles = append(middles, list[(len(list)-1)/2])
	}
	return times, middles, who
}

// perCapture is how many ranks each capture holds.
func (x *runFold) perCapture() map[int]int {
	n := map[int]int{}
	for _, r := range x.ranks {
		n[r.capture]++
	}
	return n
}
