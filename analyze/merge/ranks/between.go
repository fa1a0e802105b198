package ranks

import (
	"cmp"
	"math"
	"slices"
)

// Kinds of blocking calls beside those of Synchronising.
const (
	Broadcast = "Broadcast"
	Scatter   = "Scatter"
	Reduce    = "Reduce"
	Gather    = "Gather"
	Send      = "Send"
	Recv      = "Recv"
	SendRecv  = "SendRecv" // both at once
	Wait      = "Wait"     // for what was begun before
)

// rooted are the kinds in which one rank stands apart; true where the others wait for it, false where it waits for them.
var rooted = map[string]bool{Broadcast: true, Scatter: true, Reduce: false, Gather: false}

// epoch is what members did between two collectives that were matched.
type epoch map[int]map[string][]int32 // by member and kind: calls, in order

// slot is the n-th call of one kind in every epoch: who its root or peer is does not change from one to the next.
type slot struct {
	kind string
	n    int
}

// matchRest matches the calls between collectives, by kind and order within an epoch, so that a call that is missing
// costs this epoch alone, and adds their waits.
func (x *chains) matchRest() {
	for _, device := range []bool{false, true} {
		epochs := x.epochs(device)
		for s := range slots(epochs) {
			if _, ok := rooted[s.kind]; ok {
				x.rootedSlot(s, epochs)
			} else {
				x.peerSlot(s, epochs)
			}
		}
	}
}

// epochs of the host's tracks, or of those of devices, in their order.
func (x *chains) epochs(device bool) []epoch {
	at := map[int32]int{}
	var list []epoch
	for m := range x.Members {
		t := &x.Members[m]
		if t.Device >= 0 != device || !x.Clock(m).Known {
			continue
		}
		last := int32(-1)
		for c := range t.Calls {
			if op := x.op[m][c]; op >= 0 {
				last = op
				continue
			}
			kind := t.kind(int32(c))
			if slices.Contains(Synchronising, kind) {
				continue
			}
			k, ok := at[last]
			if !ok {
				k = len(list)
				at[last], list = k, append(list, epoch{})
			}
			if list[k][m] == nil {
				list[k][m] = map[string][]int32{}
			}
			list[k][m][kind] = append(list[k][m][kind], int32(c))
		}
	}
	return list
}

// slots of epochs, those with most epochs first.
func slots(epochs []epoch) func(yield func(slot) bool) {
	return func(yield func(slot) bool) {
		count := map[slot]int{}
		for _, e := range epochs {
			most := map[string]int{}
			for _, kinds := range e {
				for kind, calls := range kinds {
					most[kind] = max(most[kind], len(calls))
				}
			}
			for kind, n := range most {
				for k := range n {
					count[slot{kind, k}]++
				}
			}
		}
		list := make([]slot, 0, len(count))
		for s := range count {
			list = append(list, s)
		}
		slices.SortFunc(list, func(a, b slot) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.n, b.n)) })
		for _, s := range list {
			if !yield(s) {
				return
			}
		}
	}
}

// members of an epoch that have a call of the slot, in their order.
func (e epoch) members(s slot) []int {
	var list []int
	for m, kinds := range e {
		if len(kinds[s.kind]) > s.n {
			list = append(list, m)
		}
	}
	slices.Sort(list)
	return list
}

// even reports whether the members of an epoch have as many calls of a kind.
func (e epoch) even(kind string, members []int) bool {
	for _, m := range members {
		if len(e[m][kind]) != len(e[members[0]][kind]) {
			return false
		}
	}
	return true
}

// rootedSlot adds the waits of calls with a root: the recorded one, or else the member for whom nobody left before it
// came, and who spent least in the calls.
func (x *chains) rootedSlot(s slot, epochs []epoch) {
	var whole []epoch
	for _, e := range epochs {
		if list := e.members(s); len(list) > 1 && e.even(s.kind, list) {
			whole = append(whole, e)
		}
	}
	guess := x.root(s, whole)
	for _, e := range whole {
		list := e.members(s)
		root := guess
		if named := x.named(list[0], e[list[0]][s.kind][s.n], list); named >= 0 {
			root = named
		}
		last := -1
		for _, m := range list {
			x.op[m][e[m][s.kind][s.n]] = x.ops
			if m != root && (last < 0 || x.Start(m, e[m][s.kind][s.n]) > x.Start(last, e[last][s.kind][s.n])) {
				last = m
			}
		}
		x.ops++
		if root < 0 || !slices.Contains(list, root) {
			continue
		}
		if !rooted[s.kind] {
			x.add(root, e[root][s.kind][s.n], last, e[last][s.kind][s.n])
			continue
		}
		for _, m := range list {
			if m != root {
				x.add(m, e[m][s.kind][s.n], root, e[root][s.kind][s.n])
			}
		}
	}
}

// named is the member of a list that a call names as its root or its other side; -1 where it names none.
func (x *chains) named(m int, call int32, list []int) int {
	peer := x.Members[m].Calls[call].Peer
	if peer == 0 {
		return -1
	}
	at := slices.IndexFunc(list, func(o int) bool { return x.Members[o].Rank == int64(peer)-1 })
	if at < 0 {
		return -1
	}
	return list[at]
}

// root is the member that behaves as the root of a slot; -1 where none does in 95 % of the calls.
func (x *chains) root(s slot, epochs []epoch) int {
	fits, spent, n := map[int]int{}, map[int]int64{}, map[int]int{}
	for _, e := range epochs {
		list := e.members(s)
		for _, q := range list {
			c := e[q][s.kind][s.n]
			n[q]++
			spent[q] += x.End(q, c) - x.Start(q, c)
			fit := true
			for _, m := range list {
				o := e[m][s.kind][s.n]
				before := x.End(m, o) < x.Start(q, c)-surest*x.off(m, q) // the root of a broadcast has to be there
				if !rooted[s.kind] {
					before = x.End(q, c) < x.Start(m, o)-surest*x.off(m, q) // and everybody for that of a reduce
				}
				fit = fit && (m == q || !before)
			}
			if fit {
				fits[q]++
			}
		}
	}
	best := -1
	for q := range x.Members {
		if n[q] == 0 || float64(fits[q]) < overlapping*float64(n[q]) {
			continue
		}
		less := best >= 0 && float64(spent[q])/float64(n[q]) < float64(spent[best])/float64(n[best])
		if best < 0 || less == rooted[s.kind] { // that of a reduce spends most
			best = q
		}
	}
	return best
}

// other is the kind of call on the other side.
var other = map[string]string{Send: Recv, Recv: Send, SendRecv: SendRecv, Wait: Wait}

// peerSlot adds the waits of sends and receives: for the recorded peer, for the only other rank, or for the one by
// whose coming the calls end.
func (x *chains) peerSlot(s slot, epochs []epoch) {
	for _, m := range membersOf(epochs) {
		guess := -2 // not looked for
		for _, e := range epochs {
			if len(e[m][s.kind]) <= s.n {
				continue
			}
			call := e[m][s.kind][s.n]
			peer, to := x.counterpart(e, m, s, call)
			if peer < 0 && to < 0 {
				if guess == -2 {
					guess = x.peer(m, s, epochs)
				}
				if peer = guess; peer < 0 || len(e[peer][other[s.kind]]) <= s.n {
					continue
				}
				to = e[peer][other[s.kind]][s.n]
			}
			if peer < 0 {
				continue
			}
			if x.op[m][call] < 0 && x.op[peer][to] < 0 {
				x.op[m][call], x.op[peer][to] = x.ops, x.ops
				x.ops++
			}
			x.add(m, call, peer, to)
		}
	}
}

func membersOf(epochs []epoch) []int {
	var list []int
	for _, e := range epochs {
		for m := range e {
			if !slices.Contains(list, m) {
				list = append(list, m)
			}
		}
	}
	slices.Sort(list)
	return list
}

// counterpart is the call on the other side where the peer is recorded, or there is one other rank only; to is -1 where
// neither is known, and peer is -1 where the peer's call is missing.
func (x *chains) counterpart(e epoch, m int, s slot, call int32) (peer int, to int32) {
	back := other[s.kind]
	if rank := x.Members[m].Calls[call].Peer; rank > 0 && s.kind != SendRecv {
		before := 0 // calls to the same peer
		for _, c := range e[m][s.kind][:s.n] {
			if x.Members[m].Calls[c].Peer == rank {
				before++
			}
		}
		for o, kinds := range e {
			if x.Members[o].Rank != int64(rank)-1 {
				continue
			}
			for _, c := range kinds[back] {
				if p := x.Members[o].Calls[c].Peer; p == 0 || int64(p)-1 == x.Members[m].Rank {
					if before == 0 {
						return o, c
					}
					before--
				}
			}
		}
		return -1, 0
	}
	if x.tracks(x.Members[m].Device >= 0) == 2 {
		for o, kinds := range e {
			if o != m && len(kinds[back]) == len(e[m][s.kind]) {
				return o, kinds[back][s.n]
			}
		}
		return -1, 0
	}
	return -1, -1
}

// tracks counts the tracks of the host, or those of devices, that have calls.
func (x *chains) tracks(device bool) int {
	n := 0
	for m := range x.Members {
		if x.Members[m].Device >= 0 == device && len(x.Members[m].Calls) > 0 {
			n++
		}
	}
	return n
}

// leastWaits is in how many calls a peer has to be waited for to be believed.
const leastWaits = 5

// follows is the part of what the length of a call varies by that may be left once the coming of the peer is known.
const follows = 0.25

// deviation is the median distance from the median of a list, which it changes.
func deviation(list []float64) float64 {
	slices.Sort(list)
	middle := list[len(list)/2]
	for i := range list {
		list[i] = math.Abs(list[i] - middle)
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// peer is the member by whose coming the calls of a slot end, where it came later: never long before it, and the later
// it comes the later they end; -1 where there is none.
func (x *chains) peer(m int, s slot, epochs []epoch) int {
	best, least := -1, 0.0
	for _, q := range membersOf(epochs) {
		if q == m {
			continue
		}
		var after, spent []float64
		seen, early := 0, 0
		for _, e := range epochs {
			if len(e[m][s.kind]) <= s.n || len(e[q][other[s.kind]]) <= s.n {
				continue
			}
			c, o := e[m][s.kind][s.n], e[q][other[s.kind]][s.n]
			seen++
			come := x.Start(q, o)
			switch left := x.End(m, c); {
			case left < come-surest*x.off(m, q):
				early++
			case come > x.Start(m, c):
				after, spent = append(after, float64(left-come)), append(spent, float64(left-x.Start(m, c)))
			}
		}
		if len(after) < leastWaits || float64(early) > (1-overlapping)*float64(seen) {
			continue
		}
		if d := deviation(after); d <= follows*deviation(spent) && (best < 0 || d < least) {
			best, least = q, d
		}
	}
	return best
}
