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
)

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
	ranks   []rank
	members []ranks.Member
	of      []int // by member: its rank
	aligned *ranks.Aligned
	result  *ranks.Result
	sets    []ranks.Set
	chains  []chain
	alone   []int // ranks none of whose collectives could be matched
	world   int64 // -1 unknown
}

// slack is how far apart, in ns, the windows of two captures of one run may be, because clocks of hosts differ.
const slack = int64(time.Minute)

// check refuses captures that are not of one run.
func (f *fold) check() error {
	type owner struct {
		capture int
		pid     int64
	}
	f.rankProfiles()
	owners := map[int64]owner{}
	world, first := int64(-1), 0
	var twice []int64 // numbers within communicators that several ranks have
	for at, c := range f.captures {
		for _, t := range c.tracks {
			if t.World >= 0 && world >= 0 && t.World != world && t.From != "nccl" {
				return &RunError{fmt.Sprintf("%s is of a run of %d ranks and %s of one of %d: merge the captures of one run",
					f.captures[first].Name, world, c.Name, t.World)}
			}
			if t.World >= 0 && t.From != "nccl" && world < 0 {
				world, first = t.World, at
			}
			if t.Rank < 0 {
				continue
			}
			o, known := owners[t.Rank]
			switch {
			case !known:
				owners[t.Rank] = owner{at, t.PID}
			case o == owner{at, t.PID}:
			case t.From == "nccl":
				twice = append(twice, t.Rank)
			default:
				return &RunError{fmt.Sprintf("rank %d is there twice, in %s and in %s: name one capture of each rank",
					t.Rank, f.captures[o.capture].Name, c.Name)}
			}
		}
	}
	for _, c := range f.captures { // the largest communicator of a capture need not be the run's
		for _, t := range c.tracks {
			if len(twice) > 0 && t.From == "nccl" {
				t.Rank, t.World, t.From = -1, -1, ""
			}
		}
	}
	if len(twice) > 0 {
		f.warnings = append(f.warnings, report.Warning{Code: "rank_unknown", Section: "ranks",
			Text: "NCCL gives several processes the same rank, so ranks are unknown. --rank REGEX reads them from file names: its first group is the rank."})
	}
	if err := f.sameOtherwise(); err != nil {
		return err
	}
	return f.oneTime()
}

// oneTime refuses captures whose windows lie apart.
func (f *fold) oneTime() error {
	a := -1
	for at, c := range f.captures {
		if c.Session == 0 || c.window.Length == 0 {
			continue
		}
		if a < 0 {
			a = at
			continue
		}
		b := f.captures[a]
		gap := max(c.Session+c.window.Start-(b.Session+b.window.End), b.Session+b.window.Start-(c.Session+c.window.End))
		if gap > slack {
			return &RunError{fmt.Sprintf("%s and %s are of different runs: one was captured %s after the other had ended; merge the captures of one run, and compare runs with explain diff",
				b.Name, c.Name, time.Duration(gap).Round(time.Second))}
		}
	}
	return nil
}

// study combines the ranks of the run.
func (f *fold) study() *runFold {
	x := &runFold{world: -1}
	base := int64(math.MaxInt64)
	for _, c := range f.captures {
		if c.Session > 0 {
			base = min(base, c.Session)
		}
	}
	type key struct {
		capture int
		pid     int64
	}
	at := map[key]int{}
	for i, c := range f.captures {
		for _, t := range c.tracks {
			k := key{i, t.PID}
			n, ok := at[k]
			if !ok {
				n = len(x.ranks)
				at[k] = n
				x.ranks = append(x.ranks, rank{number: -1, capture: i, pid: t.PID, role: c.role})
			}
			x.ranks[n].number = max(x.ranks[n].number, t.Rank)
			x.world = max(x.world, t.World)
			m := ranks.Member{Track: t, Host: c.Host}
			if c.Session > 0 {
				m.Shift = c.Session - base
			} else {
				m.Host = "" // nothing ties its clock to another's
			}
			x.members, x.of = append(x.members, m), append(x.of, n)
		}
	}
	x.sortMembers()
	var alone []int
	x.sets, alone = ranks.Match(x.members)
	for _, m := range alone {
		if at := x.of[m]; len(x.members[m].Calls) > 0 && !slices.Contains(x.alone, at) {
			x.alone = append(x.alone, at)
		}
	}
	x.aligned = ranks.Align(x.members, x.sets)
	x.result = ranks.Study(x.aligned, x.sets)
	for i := range x.ranks {
		r := &x.ranks[i]
		r.label = strconv.FormatInt(r.number, 10)
		if r.number < 0 {
			r.label = f.captures[r.capture].Name + ":" + strconv.FormatInt(r.pid, 10)
		}
	}
	x.distinguish()
	for m := range x.result.Ranks {
		x.ranks[x.of[m]].sum = plus(x.ranks[x.of[m]].sum, x.result.Ranks[m])
	}
	for m := range x.members {
		c := x.aligned.Clock(m)
		for k := range x.aligned.Clocks {
			if &x.aligned.Clocks[k] == c {
				x.ranks[x.of[m]].host = k
			}
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
			if at := x.of[m]; !slices.Contains(out, at) {
				out = append(out, at)
			}
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

// sortMembers sorts members by rank, unknown ones last, so that the first clock is that of the first rank.
func (x *runFold) sortMembers() {
	order := make([]int, len(x.ranks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(uint64(x.ranks[a].number), uint64(x.ranks[b].number)), cmp.Compare(a, b))
	})
	place := make([]int, len(order))
	sorted := make([]rank, len(order))
	for to, from := range order {
		place[from], sorted[to] = to, x.ranks[from]
	}
	x.ranks = sorted
	for m := range x.of {
		x.of[m] = place[x.of[m]]
	}
	members := make([]int, len(x.of))
	for i := range members {
		members[i] = i
	}
	slices.SortStableFunc(members, func(a, b int) int { return cmp.Compare(x.of[a], x.of[b]) })
	list, of := make([]ranks.Member, len(members)), make([]int, len(members))
	for to, from := range members {
		list[to], of[to] = x.members[from], x.of[from]
	}
	x.members, x.of = list, of
}

// distinguish makes labels differ if files share a name.
func (x *runFold) distinguish() {
	taken := map[string]bool{}
	for i := range x.ranks {
		label := x.ranks[i].label
		for n := 2; taken[x.ranks[i].label]; n++ {
			x.ranks[i].label = label + " #" + strconv.Itoa(n)
		}
		taken[x.ranks[i].label] = true
	}
}

// plus adds up what a rank did on several devices and with MPI.
func plus(a, b ranks.Rank) ranks.Rank {
	sum := ranks.Rank{N: a.N + b.N, Time: a.Time + b.Time, Wait: a.Wait + b.Wait, Transfer: a.Transfer + b.Transfer,
		Last: a.Last + b.Last, Late: a.Late + b.Late, Blame: a.Blame + b.Blame, Worst: max(a.Worst, b.Worst), Told: a.Told +
			b.Told,
		Causes: slices.Clone(a.Causes)}
	for _, c := range b.Causes {
		if at := slices.IndexFunc(sum.Causes, func(o ranks.Cause) bool { return o.Act == c.Act }); at >= 0 {
			sum.Causes[at].Time += c.Time
		} else {
			sum.Causes = append(sum.Causes, c)
		}
	}
	slices.SortStableFunc(sum.Causes, func(a, b ranks.Cause) int { return cmp.Compare(b.Time, a.Time) })
	return sum
}

// stepTime is one step of a rank.
type stepTime struct{ number, ns int64 }

// steps finds the steps of each rank: the kept units of its main kinds, on the device where they take most time.
func (f *fold) steps(x *runFold) {
	for i := range x.ranks {
		r := &x.ranks[i]
		c := f.captures[r.capture]
		type place struct{ device, group int64 }
		times := map[place]int64{}
		best := place{-1, -1}
		for _, p := range c.units {
			if p.Process != r.pid && p.Process >= 0 || p.State != 0 || p.Group < 0 || !c.unit.Groups[p.Group].Main {
				continue
			}
			at := place{p.Device, p.Group}
			if times[at] += p.Duration; best.device < 0 || times[at] > times[best] {
				best = at
			}
		}
		for _, p := range c.units {
			if (p.Process == r.pid || p.Process < 0) && p.State == 0 && (place{p.Device, p.Group}) == best {
				r.steps = append(r.steps, stepTime{p.Number, p.Duration})
				r.device = deviceKey{r.capture, p.Device}
			}
		}
		var list []int64
		for _, s := range r.steps {
			list = append(list, s.ns)
		}
		r.step = stat.Summarize(list)
	}
	if f.sampled {
		f.sampledSteps(x)
	}
}

// sampledSteps gives each rank that has a capture of its own the median of its main steps.
func (f *fold) sampledSteps(x *runFold) {
	alone := x.onlyRanks()
	for at := range x.ranks {
		c := f.captures[x.ranks[at].capture]
		if !alone[x.ranks[at].capture] {
			continue
		}
		for i := range c.unit.Groups {
			if g := &c.unit.Groups[i]; g.Main {
				if s, ok := c.own.Steps[g.ID]; ok {
					x.ranks[at].step = &report.Summary{N: g.Count, P50: s.P50, Mean: s.Mean}
				}
				if g.Device != nil {
					x.ranks[at].device = deviceKey{x.ranks[at].capture, *g.Device}
				}
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
	for i := range x.ranks {
		if len(x.ranks[i].steps) != n {
			return nil, nil, nil
		}
	}
	list := make([]int64, len(x.ranks))
	for k := range n {
		slowest := 0
		for i := range x.ranks {
			list[i] = x.ranks[i].steps[k].ns
			if list[i] > x.ranks[slowest].steps[k].ns {
				slowest = i
			}
		}
		times, who = append(times, x.ranks[slowest].steps[k].ns), append(who, slowest)
		slices.Sort(list)
		middles = append(middles, list[(len(list)-1)/2])
	}
	return times, middles, who
}

// onlyRanks returns the captures that hold a single rank.
func (x *runFold) onlyRanks() map[int]bool {
	n := map[int]int{}
	for i := range x.ranks {
		n[x.ranks[i].capture]++
	}
	only := map[int]bool{}
	for c, k := range n {
		only[c] = k == 1
	}
	return only
}
