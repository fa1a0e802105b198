package ranks

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Chain is how long others wait because of one rank: the time that they wait in blocking communication, followed from
// call to call to the rank that waits for nobody, as Scalasca does for late senders and late roots.
type Chain struct {
	First  int     // member: where the waiting begins
	Waiter int     // member that waits longest because of it
	Time   int64   // ns that Waiter waits because of First
	Sum    float64 // ns that all members together wait because of First
	N, Of  int64   // calls of that kind in which it does (N), of those that both took part in (Of)
	Kind   string  // of the calls in which the waiter waits most
	In     string  // kind of the call in which it waits longest
	Number int     // number of that call among those of its kind, from 1; 0 in a sample
	At     int64   // when First began the call that others waited in, ns on its own capture's clock
	Hops   []int   // members between First and Waiter in that call, from First on
	Causes []Cause // what First did longer than the waiters, largest first
	Others []int   // other members that wait because of it, longest first
}

// surest is how many times the residual of the clocks a wait must last to be reported.
const surest = 3

// SameHost is the largest error, in ns, between the starts of two sessions on one host.
const SameHost = 10_000

// wait is the time that a member spends in a call before the member that it waits for begins its own.
type wait struct {
	member, peer int32
	call, other  int32 // their calls
	time         int64 // ns
	from, to     int32 // indexes into shares
}

// share is the part of a wait caused by one activity of one member.
type share struct {
	member int32
	act    int32 // index into study.acts; -1 unknown
	time   float64
	via    int32 // wait from which it was passed on; -1: none
}

const maxShares = 6 // of a wait

// maxFollowed is how many calls in collectives are followed at most. If there are more, every second, third, …
// collective is followed, the same ones on all ranks, and weighted accordingly.
const maxFollowed = 1 << 20

// back is how many calls are searched backwards for one in which two members took part together.
const back = 64

// matching is which calls match, and who waits for whom in them.
type matching struct {
	*Aligned
	op    [][]int32 // by member and call: number of its match; -1 none
	named [][]bool  // by member and call: it names its root or other side
	waits []wait
	ops   int32
	every int64 // one in so many collectives is followed
}

// chains follows waits to where they begin.
type chains struct {
	m     *matching
	study *study
	at    [][]int32 // by member and call: index into waits; -1 does not wait
	// shares holds the shares of all waits; transfer is the act for the time that calls of a member's kinds take.
	shares   []share
	transfer [][]int
	// Scratch space for resolving a wait.
	doneBy  []int64 // by act
	touched []int
	passed  []int32 // waits of the peer
	list    []share
}

// match finds the calls that match: the collectives of the sets, and the calls between them by root, peer or order.
func match(a *Aligned, sets []Set) *matching {
	x := &matching{Aligned: a}
	calls := lists.Sum(sets, func(s Set) int { return s.Len() * len(s.Members) })
	x.every = int64(calls/maxFollowed + 1)
	x.waits = make([]wait, 0, calls/int(x.every))
	for i := range x.Members {
		n := len(x.Members[i].Calls)
		x.op, x.named = append(x.op, slices.Repeat([]int32{-1}, n)), append(x.named, make([]bool, n))
	}
	for i := range sets {
		x.together(&sets[i])
	}
	collectives := x.ops
	x.recorded()
	x.byEnds()
	(&epochs{m: x, device: false}).match(collectives)
	(&epochs{m: x, device: true}).match(collectives)
	lists.Sort(x.waits, func(a, b wait) int {
		return cmp.Compare(x.Start(int(a.peer), a.other), x.Start(int(b.peer), b.other))
	})
	return x
}

// follow follows all waiting to its origin.
func (st *study) follow(sets []Set) *chains {
	x := &chains{m: match(st.Aligned, sets), study: st}
	st.Every = x.m.every
	for i := range st.Members {
		x.at = append(x.at, slices.Repeat([]int32{-1}, len(st.Members[i].Calls)))
		transfer := lists.Map(st.Members[i].Kinds, func(kind string) int { return st.act(Transfer + kind) })
		x.transfer = append(x.transfer, transfer)
	}
	x.doneBy = make([]int64, len(st.acts.Keys))
	x.shares = make([]share, 0, len(x.m.waits))
	for i := range x.m.waits {
		w := &x.m.waits[i]
		x.at[w.member][w.call] = int32(i)
	}
	for i := range x.m.waits {
		x.resolve(&x.m.waits[i])
	}
	return x
}

// took is how long a member was in a call beyond its wait for others there, in ns.
func (x *chains) took(m int, call int32) int64 {
	c := &x.m.Members[m].Calls[call]
	if at := x.at[m][call]; at >= 0 {
		return c.End - c.Start - x.m.waits[at].time
	}
	return c.End - c.Start
}

// off is the largest clock error between two members, in ns.
func (x *matching) off(a, b int) int64 {
	m, o := &x.Members[a], &x.Members[b]
	switch {
	case m.Clock != o.Clock:
		return int64(math.Max(x.Clocks[m.Clock].P99, x.Clocks[o.Clock].P99))
	case m.Shift == o.Shift:
		return 0
	}
	return SameHost
}

// add records that a member waits for a peer, if it does: until the peer begins or the call returns, less the time in
// which the member also computes.
func (x *matching) add(m int, call int32, peer int, other int32) {
	start, come := x.Start(m, call), x.Start(peer, other)
	if end := x.End(m, call); end < come-x.off(m, peer) {
		return // the call ended before the peer began
	} else if time := min(come, end) - start - x.Members[m].Calls[call].Hidden; time > 0 {
		x.waits = append(x.waits, wait{member: int32(m), peer: int32(peer), call: call, other: other, time: time})
	}
}

// together adds the waits of the collectives of a set: all wait for the last.
func (x *matching) together(s *Set) {
	if slices.ContainsFunc(s.Members, func(m int) bool { return !x.Clock(m).Known }) {
		return
	}
	for n := range s.Len() {
		last := 0
		for k, m := range s.Members {
			if s.Calls[k][n] < 0 {
				continue
			}
			x.op[m][s.Calls[k][n]] = x.ops
			if x.Start(m, s.Calls[k][n]) > x.Start(s.Members[last], s.Calls[last][n]) {
				last = k
			}
		}
		x.ops++
		for k, m := range s.Members {
			if k != last && s.Calls[k][n] >= 0 && int64(n)%x.every == 0 {
				x.add(m, s.Calls[k][n], s.Members[last], s.Calls[last][n])
			}
		}
	}
}

// link gives two calls one match, unless they have some.
func (x *matching) link(m int, call int32, peer int, other int32) {
	one, two := &x.op[m][call], &x.op[peer][other]
	if *one < 0 {
		*one = x.ops
		x.ops++
	}
	if *two < 0 {
		*two = *one
	}
}

// Transfer begins the acts for the time that calls took once everybody had begun.
const Transfer = "transfer in "

// doing adds ns to an act; ns may be negative.
func (x *chains) doing(act int, ns int64) {
	if x.doneBy[act] == 0 {
		x.touched = append(x.touched, act)
	}
	x.doneBy[act] += ns
}

// between adds up what a member did after one call and before another: its own activities, the time that calls took,
// and waits, whose sum is returned. If handOn is set, the waits are collected in x.passed.
func (x *chains) between(m int, from, to int32, sign int64, handOn bool) (waited int64) {
	t := x.m.Members[m].Track
	for c := from + 1; c <= to; c++ {
		for _, p := range t.Parts(int(c)) {
			x.doing(x.study.actOf[m][p.Act], sign*p.Time)
		}
		if c == to {
			break
		}
		if at := x.at[m][c]; at >= 0 {
			waited += x.m.waits[at].time
			if handOn {
				x.passed = append(x.passed, at)
			}
		}
		x.doing(x.transfer[m][t.Calls[c].Kind], sign*x.took(m, c))
	}
	return waited
}

// resolve splits a wait by what the peer did longer than the waiter since both left a common call: its own activities,
// and its own waits, whose shares are handed on.
func (x *chains) resolve(w *wait) {
	m, d := int(w.member), int(w.peer)
	i, j := x.common(m, w.call, d, w.other)
	x.list, x.passed, x.touched = x.list[:0], x.passed[:0], x.touched[:0]
	var all float64
	if i >= 0 {
		waited := x.between(d, j, w.other, 1, true) - x.between(m, i, w.call, -1, false)
		if waited > 0 {
			sum := lists.Sum(x.passed, func(at int32) int64 { return x.m.waits[at].time })
			for _, at := range x.passed {
				x.handOn(at, float64(waited)/float64(sum))
			}
			all += float64(waited)
		}
		if later := x.m.End(d, j) - x.m.End(m, i); later > 0 { // it left their common call later
			if at := x.at[d][j]; at >= 0 {
				handed := min(later, x.m.waits[at].time)
				x.handOn(at, float64(handed)/float64(x.m.waits[at].time))
				later, all = later-handed, all+float64(handed)
			}
			x.doing(x.transfer[d][x.m.Members[d].Calls[j].Kind], later)
		}
		for _, act := range x.touched {
			if ns := x.doneBy[act]; ns > 0 {
				x.list = append(x.list, share{w.peer, int32(act), float64(ns), -1})
				all += float64(ns)
			}
			x.doneBy[act] = 0
		}
	}
	if rest := float64(w.time) - all; rest > 0 { // this part of the peer's time is unexplained
		x.list = append(x.list, share{w.peer, -1, rest, -1})
		all += rest
	}
	if len(x.list) > 1 {
		lists.Sort(x.list, func(a, b share) int {
			return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.member, b.member), cmp.Compare(a.act, b.act))
		})
	}
	w.from = int32(len(x.shares))
	for _, s := range x.list[:min(len(x.list), maxShares)] {
		if s.time *= float64(w.time) / all; s.member != w.member && s.time >= 1 { // no member delays itself
			x.shares = append(x.shares, s)
		}
	}
	w.to = int32(len(x.shares))
}

// handOn passes part of the shares of a wait to the one that is being resolved.
func (x *chains) handOn(at int32, part float64) {
	for _, s := range x.of(&x.m.waits[at]) {
		x.list = append(x.list, share{s.member, s.act, s.time * part, at})
	}
}

func (x *chains) of(w *wait) []share { return x.shares[w.from:w.to] }

// common returns the last calls, before two given ones, in which two members took part together; -1 if none is near.
func (x *chains) common(m int, call int32, d int, other int32) (i, j int32) {
	for n := call - 1; n >= 0 && n >= call-back && !x.m.Members[m].Calls[n+1].Left; n-- {
		op := x.m.op[m][n]
		if op < 0 {
			continue
		}
		for k := other - 1; k >= 0 && k >= other-back && !x.m.Members[d].Calls[k+1].Left; k-- {
			if x.m.op[d][k] == op {
				return n, k
			}
		}
	}
	return -1, -1
}

// dueKind is how long a rank waits because of another in calls of one kind.
type dueKind struct {
	kind int32 // index into the waiter's Kinds
	time float64
	n    float64
}

// counts is how many calls a wait represents.
func (x *chains) counts(w *wait) float64 {
	m := &x.m.Members[w.member]
	if m.synchronises(int(w.call)) {
		return m.weight(int(w.call)) * float64(x.m.every)
	}
	return m.weight(int(w.call))
}

// sum makes one chain for each rank that others wait for, ending at the member that waits longest. Waits shorter than
// three times the clock error are left out. Largest first.
func (x *chains) sum() (list []Chain) {
	caused := make([][]int32, len(x.m.Members)) // by member: the waits that it causes a part of
	for i := range x.m.waits {
		w := &x.m.waits[i]
		if w.time < surest*x.m.off(int(w.member), int(w.peer)) {
			continue
		}
		x.study.Waited += float64(w.time) * x.counts(w)
		for _, s := range x.of(w) {
			if list := &caused[s.member]; len(*list) == 0 || (*list)[len(*list)-1] != int32(i) {
				*list = append(*list, int32(i))
			}
		}
	}
	for first, waits := range caused {
		if len(waits) > 0 {
			list = append(list, x.chain(int32(first), waits))
		}
	}
	lists.Sort(list, func(a, b Chain) int { return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.First, b.First)) })
	return list
}

// chain sums up the waits that a member causes a part of.
func (x *chains) chain(first int32, waits []int32) Chain {
	times := map[int32]float64{} // by waiter
	for _, i := range waits {
		w := &x.m.waits[i]
		for _, s := range x.of(w) {
			if s.member == first {
				times[w.member] += s.time * x.counts(w)
			}
		}
	}
	waiters := slices.SortedFunc(maps.Keys(times), func(a, b int32) int {
		return cmp.Or(cmp.Compare(times[b], times[a]), cmp.Compare(a, b))
	})
	c := Chain{First: int(first), Waiter: int(waiters[0]), Time: int64(math.Round(times[waiters[0]]))}
	for k, m := range waiters {
		if c.Sum += times[m]; k > 0 && times[m]*2 >= float64(c.Time) {
			c.Others = append(c.Others, int(m))
		}
	}
	x.explain(&c, lists.Filter(waits, func(i int32) bool { return x.m.waits[i].member == waiters[0] }))
	return c
}

// explain says in which calls the waiter waits because of the first rank of a chain, and why.
func (x *chains) explain(c *Chain, waits []int32) {
	m := &x.m.Members[c.Waiter]
	var kinds []dueKind
	var w *wait // the longest
	longest := -1.0
	for _, i := range waits {
		at := &x.m.waits[i]
		time, counts := 0.0, x.counts(at)
		for _, s := range x.of(at) {
			if int(s.member) != c.First {
				continue
			}
			act := ""
			if s.act >= 0 {
				act = x.study.acts.Keys[s.act]
			}
			addCause(&c.Causes, act, s.time*counts)
			time += s.time
		}
		kind := m.Calls[at.call].Kind
		of := lists.Entry(&kinds, func(o dueKind) bool { return o.kind == kind }, dueKind{kind: kind})
		of.time += time * counts
		if 2*time >= float64(at.time) {
			of.n += counts
		}
		if time > longest {
			longest, w = time, at
		}
	}
	largestFirst(c.Causes)
	most := slices.MaxFunc(kinds, func(a, b dueKind) int { return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(b.kind, a.kind)) })
	of := 0.0
	for call := range m.Calls {
		if m.Calls[call].Kind == most.kind && (x.m.op[c.Waiter][call] >= 0 || x.at[c.Waiter][call] >= 0) {
			of += m.weight(call) // all of them, followed or not
		}
		if m.Total == nil && m.Calls[call].Kind == m.Calls[w.call].Kind && call <= int(w.call) {
			c.Number++
		}
	}
	c.Of = int64(math.Round(of))
	c.Kind, c.N, c.In = m.Kinds[most.kind], min(int64(math.Round(most.n)), c.Of), m.kind(w.call)
	x.origin(c, w)
}

// origin goes from the longest wait of a chain back to the first one.
func (x *chains) origin(c *Chain, w *wait) {
	for len(c.Hops) < back {
		c.At = x.m.Members[w.peer].Calls[w.other].Start
		at := slices.IndexFunc(x.of(w), func(s share) bool { return int(s.member) == c.First })
		if at < 0 || x.of(w)[at].via < 0 {
			break
		}
		if int32(c.First) != w.peer {
			c.Hops = append(c.Hops, int(w.peer))
		}
		w = &x.m.waits[x.of(w)[at].via] // an earlier one
	}
	slices.Reverse(c.Hops)
}
