package ranks

import (
	"cmp"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Rank sums up the matched collectives of one member. Times are in ns; Time = Wait + Transfer exactly.
type Rank struct {
	N        int64 // collectives
	Time     int64 // from the start to the end of each, added up
	Wait     int64 // of Time: beyond the shortest time that any rank spent in the same collective
	Transfer int64 // of Time: the time of the rank that spent the least

	Last  int64 // collectives in which it came last
	Late  int64 // sum over collectives in which it came last: its start minus the median start
	Blame int64 // likewise: its start minus the next latest, which all others would not have waited without it
	Worst int64 // largest of the terms of Late
	Told  int64 // of Last: those for which it is known what this and other ranks did before
	// Causes are what it did longer than the mean of the other ranks before collectives in which it came last, largest
	// first; they add up to the extra time that it was busy between two collectives.
	Causes []Cause
}

// Cause is one activity on which a rank spent more time than others.
type Cause struct {
	Act  string
	Time float64 // ns in total; negative: less than others
}

// Result is the result of a study.
type Result struct {
	Ranks       []Rank // by member
	Collectives int64
	Unmatched   int64 // calls of members that are in no set
	// Spread is how far apart the ends of a collective are, in ns: the median and the 99th percentile, over collectives
	// between known clocks.
	SpreadP50, SpreadP99 int64
	Compared             int64   // collectives behind the spread
	Every                int64   // chains use all collectives (1), every second one (2), …
	Chains               []Chain // who makes whom wait, largest first
	Waited               float64 // ns that all members wait in the collectives that chains use
	// Heat is, by member and time bin of the run, the mean time, in ns, by which it came after the median member; 0 if
	// it came before, or took part in no collective.
	Heat [][]float64
	// Next is, by member, in how many of the collectives in which it came last another member came next to last.
	Next    []map[int]int64
	Buckets []int64
}

// heatColumns is the largest number of columns of a heat map.
const heatColumns = 100

// Study sums up the matched collectives. The last member of a collective is the one with the latest start on the common
// clock. If the clocks of a set are unknown, it is the one that spent the least time, because all are released
// together.
func Study(a *Aligned, sets []Set) *Result {
	r := &Result{Ranks: make([]Rank, len(a.Members))}
	st := &study{Aligned: a, Result: r}
	for i := range a.Members {
		st.actOf = append(st.actOf, lists.Map(a.Members[i].Acts, st.act))
		r.Next = append(r.Next, map[int]int64{})
	}
	st.layOut(sets)
	st.waits = st.follow(sets)
	for i := range sets {
		st.set(&sets[i])
	}
	st.finish()
	for i := range a.Members {
		all, _ := a.Members[i].Sampled()
		r.Unmatched += max(0, all-r.Ranks[i].N)
	}
	r.Chains = st.waits.sum()
	return r
}

type study struct {
	*Aligned
	*Result
	acts    lists.Numbering[string]
	actOf   [][]int // by member and index into its Acts
	waits   *chains
	spreads []int64
	first   int64     // start of the first collective, on the first clock
	step    int64     // ns per column of the heat map
	count   [][]int64 // collectives of the heat map, by member and column
}

func (st *study) act(name string) int { return int(st.acts.Of(name)) }

// layOut finds the time range that the heat map shows.
func (st *study) layOut(sets []Set) {
	first, last, most := int64(math.MaxInt64), int64(math.MinInt64), 0
	for i := range sets {
		s := &sets[i]
		most = max(most, s.Len())
		first = min(first, st.Start(s.Members[0], s.Calls[0][0]))
		last = max(last, st.Start(s.Members[0], s.Calls[0][s.Len()-1]))
	}
	if most == 0 {
		return
	}
	columns := int64(min(most, heatColumns))
	st.first, st.step = first, max(1, (last-first)/columns+1)
	for i := int64(0); i < columns; i++ {
		st.Buckets = append(st.Buckets, i*st.step)
	}
	for range st.Members {
		st.Heat, st.count = append(st.Heat, make([]float64, columns)), append(st.count, make([]int64, columns))
	}
}

func (st *study) set(s *Set) {
	known := !slices.ContainsFunc(s.Members, func(m int) bool { return !st.Clock(m).Known })
	there := make([]int, 0, len(s.Members)) // members that captured this collective
	starts, sorted := make([]int64, len(s.Members)), make([]int64, 0, len(s.Members))
	sums := make([]int64, len(st.acts.Keys))
	own, more := make([]Rank, len(s.Members)), make([]map[int]float64, len(s.Members)) // by act
	studied := 0
	for n := range s.Len() {
		there = there[:0]
		for k := range s.Members {
			if s.Calls[k][n] >= 0 {
				there = append(there, k)
			}
		}
		if len(there) < 2 || 2*len(there) < len(s.Members) { // too few to know who came last
			continue
		}
		studied++
		shortest := int64(math.MaxInt64)
		first, end := int64(math.MaxInt64), int64(math.MinInt64)
		sorted = sorted[:0]
		for _, k := range there {
			m := s.Members[k]
			c := &st.Members[m].Calls[s.Calls[k][n]]
			shortest = min(shortest, c.End-c.Start)
			starts[k] = -(c.End - c.Start) // the one that spends the least time starts last
			if known {
				starts[k] = st.Start(m, s.Calls[k][n])
				at := st.End(m, s.Calls[k][n])
				first, end = min(first, at), max(end, at)
			}
			sorted = append(sorted, starts[k])
		}
		if known {
			st.spreads = append(st.spreads, end-first)
		}
		slices.Sort(sorted)
		typical := sorted[(len(sorted)-1)/2]
		last := there[slices.IndexFunc(there, func(k int) bool { return starts[k] == sorted[len(sorted)-1] })]
		for _, k := range there {
			c, r := &st.Members[s.Members[k]].Calls[s.Calls[k][n]], &own[k]
			dur := c.End - c.Start
			r.N++
			r.Transfer += shortest
			r.Wait += dur - shortest
			st.warm(s, k, n, starts[k]-typical)
		}
		r := &own[last]
		late := starts[last] - typical
		r.Last++
		r.Late += late
		r.Worst = max(r.Worst, late)
		second := sorted[len(sorted)-2]
		r.Blame += starts[last] - second
		next := slices.IndexFunc(there, func(k int) bool { return k != last && starts[k] == second })
		st.Next[s.Members[last]][s.Members[there[next]]]++
		if more[last] == nil {
			more[last] = map[int]float64{}
		}
		if st.why(s, there, n, last, sums, more[last]) {
			r.Told++
		}
	}
	st.Collectives += scaled(int64(studied), st.weightOf(s, 0, own[0].N))
	for k := range own {
		for act, ns := range more[k] {
			own[k].Causes = append(own[k].Causes, Cause{st.acts.Keys[act], ns})
		}
		st.Ranks[s.Members[k]].Add(&own[k], st.weightOf(s, k, own[k].N))
	}
}

// weightOf is how many collectives each of the n matched ones of a member in a set represents.
func (st *study) weightOf(s *Set, k int, n int64) float64 {
	t := st.Members[s.Members[k]].Track
	if t.Total == nil || n == 0 {
		return 1
	}
	at := slices.IndexFunc(s.Calls[k], func(c int32) bool { return c >= 0 })
	return float64(t.Total[t.comm(int(s.Calls[k][at]))]) / float64(n)
}

func scaled(v int64, by float64) int64 {
	if by == 1 {
		return v
	}
	return int64(math.Round(float64(v) * by))
}

// Add adds the sums of collectives, each of which stands for so many.
func (r *Rank) Add(x *Rank, weight float64) {
	r.N += scaled(x.N, weight)
	r.Wait += scaled(x.Wait, weight)
	r.Transfer += scaled(x.Transfer, weight)
	r.Time = r.Wait + r.Transfer
	r.Last += scaled(x.Last, weight)
	r.Late += scaled(x.Late, weight)
	r.Blame += scaled(x.Blame, weight)
	r.Told += scaled(x.Told, weight)
	r.Worst = max(r.Worst, x.Worst)
	for _, c := range x.Causes {
		addCause(&r.Causes, c.Act, c.Time*weight)
	}
	largestFirst(r.Causes)
}

func largestFirst(list []Cause) {
	lists.Sort(list, func(a, b Cause) int { return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Act, b.Act)) })
}

func addCause(list *[]Cause, act string, ns float64) {
	lists.Entry(list, func(c Cause) bool { return c.Act == act }, Cause{Act: act}).Time += ns
}

// warm adds lateness to the heat map.
func (st *study) warm(s *Set, k, n int, late int64) {
	m := s.Members[k]
	at := (st.Start(s.Members[0], s.Calls[0][n]) - st.first) / st.step
	if at < 0 || at >= int64(len(st.Buckets)) {
		return
	}
	st.Heat[m][at] += float64(late)
	st.count[m][at]++
}

// why adds what the last rank did longer than the mean of the others since the collective before; false if that is
// unknown.
func (st *study) why(s *Set, there []int, n, last int, sums []int64, more map[int]float64) bool {
	clear(sums)
	others := int64(0)
	for _, k := range there {
		if k != last && st.since(s.Members[k], s.Calls[k][n], func(act int, ns int64) { sums[act] += ns }) {
			others++
		}
	}
	own := map[int]int64{}
	if others == 0 || !st.since(s.Members[last], s.Calls[last][n], func(act int, ns int64) { own[act] += ns }) {
		return false
	}
	for act, ns := range own {
		more[act] += float64(ns)
	}
	for act, sum := range sums {
		if sum != 0 {
			more[act] -= float64(sum) / float64(others)
		}
	}
	return true
}

// since tells add what a member did since the collective before a call; false if that is unknown. Other calls count
// without the waits in them, which chains follow; where the clock is unknown, so are the waits, and no call counts.
func (st *study) since(m int, call int32, add func(act int, ns int64)) (known bool) {
	t := st.Members[m].Track
	from := call
	for from > 0 && !t.Calls[from].Left && !t.synchronises(int(from-1)) {
		from--
	}
	for c := from; c <= call; c++ {
		for _, p := range t.Parts(int(c)) {
			add(st.actOf[m][p.Act], p.Time)
			known = true
		}
		if c < call && st.Clock(m).Known {
			add(st.waits.transfer[m][t.Calls[c].Kind], st.waits.took(m, c))
		}
	}
	return known
}

func (st *study) finish() {
	slices.Sort(st.spreads)
	if n := len(st.spreads); n > 0 {
		st.Compared = int64(n)
		st.SpreadP50, st.SpreadP99 = st.spreads[n/2], st.spreads[n*99/100]
	}
	for m, sums := range st.Heat {
		for k, n := range st.count[m] {
			sums[k] = max(0, sums[k]/float64(max(1, n)))
		}
	}
}
