package ranks

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/order"
)

// Kinds of blocking calls besides those of [Synchronising].
const (
	Broadcast = "Broadcast"
	Scatter   = "Scatter"
	Reduce    = "Reduce"
	Gather    = "Gather"
	Send      = "Send"
	Recv      = "Recv"
	SendRecv  = "SendRecv" // sends and receives at once
	Wait      = "Wait"     // for earlier non-blocking calls
)

// rooted are the kinds with a root: true if the others wait for the root, false if it waits for them.
var rooted = map[string]bool{Broadcast: true, Scatter: true, Reduce: false, Gather: false}

// epoch holds what members did between two matched collectives: calls in order; -1 if one is missing.
type epoch map[lane][]int32

// lane is the calls of one kind of a member.
type lane struct {
	member int
	kind   string
}

// call is a member's call of a slot; -1 if there is none.
func (e epoch) call(m int, s slot) int32 {
	if list := e[lane{m, s.kind}]; s.n < len(list) {
		return list[s.n]
	}
	return -1
}

// epochs matches the calls that name no rank and are not collectives of sets, those of the host's tracks or those of
// devices, and adds their waits: by kind and order within an epoch. A missing call leaves its place empty.
type epochs struct {
	m      *matching
	device bool
	two    bool // only two tracks have calls
	list   []epoch
}

func (x *epochs) match(collectives int32) {
	calls := func(m Member) bool { return m.Device >= 0 == x.device && len(m.Calls) > 0 }
	x.two = lists.Count(x.m.Members, calls) == 2
	x.collect(collectives)
	for _, e := range x.list {
		x.fill(e)
	}
	if !x.two {
		x.fillUsual()
	}
	of, order := slots(x.list)
	for _, s := range order {
		if _, ok := rooted[s.kind]; ok {
			x.rootedSlot(s, of[s])
		} else {
			x.peerSlot(s, of[s])
		}
	}
}

// collect groups the calls, in order.
func (x *epochs) collect(collectives int32) {
	at := map[int32]epoch{}
	for m := range x.m.Members {
		t := &x.m.Members[m]
		if t.Device >= 0 != x.device || !x.m.Clock(m).Known {
			continue
		}
		last := int32(-1)
		for c := range t.Calls {
			op := x.m.op[m][c]
			if op >= 0 && op < collectives {
				last = op
			}
			kind := t.kind(int32(c))
			if op >= 0 || x.m.named[m][c] || slices.Contains(Synchronising, kind) {
				continue
			}
			e := at[last]
			if e == nil {
				e = epoch{}
				at[last], x.list = e, append(x.list, e)
			}
			e[lane{m, kind}] = append(e[lane{m, kind}], int32(c))
		}
	}
}

// fill leaves places empty if members of an epoch lack calls: of calls with a root, those that other members have;
// between two members, those of the other side.
func (x *epochs) fill(e epoch) {
	most := map[string]int{} // member with most calls of a kind
	for l, calls := range e {
		o, ok := most[l.kind]
		if n := len(e[lane{o, l.kind}]); !ok || len(calls) > n || len(calls) == n && l.member < o {
			most[l.kind] = l.member
		}
	}
	for l, calls := range e {
		ref := lane{most[l.kind], l.kind}
		if _, ok := rooted[l.kind]; !ok {
			if !x.two {
				continue
			}
			ref.kind = other[l.kind]
			for o := range e {
				if o.member != l.member {
					ref.member = o.member
				}
			}
		}
		if to := e[ref]; ref.member != l.member && len(calls) < len(to) && !slices.Contains(to, -1) {
			e[l] = spread(len(to), calls, func(i int, call int32) int64 { return x.m.End(l.member, call) - x.m.End(ref.member, to[i]) })
		}
	}
}

// fillUsual leaves places empty if a member sends or receives less often in an epoch than it usually does: each call
// goes to the place where its usual peer ends.
func (x *epochs) fillUsual() {
	type often struct {
		lane
		n int
	}
	count, usual := map[often]int{}, map[lane]int{} // number of epochs with n calls; most frequent n
	for _, e := range x.list {
		for l, calls := range e {
			o := often{l, len(calls)}
			if count[o]++; count[o] > count[often{l, usual[l]}] {
				usual[l] = len(calls)
			}
		}
	}
	var peers map[slot]map[int]int
	for _, e := range x.list {
		for l, calls := range e {
			n := usual[l]
			if _, ok := rooted[l.kind]; ok || len(calls) >= n {
				continue
			}
			if peers == nil {
				peers = x.allPeers()
			}
			e[l] = spread(n, calls, func(i int, call int32) int64 {
				if peer, known := peers[slot{l.kind, i}][l.member]; known {
					if to := e.call(peer, slot{other[l.kind], i}); to >= 0 {
						return x.m.End(l.member, call) - x.m.End(peer, to)
					}
				}
				return math.MaxInt64 / 2
			})
		}
	}
}

// allPeers returns the known peers of members in all slots of sends and receives.
func (x *epochs) allPeers() map[slot]map[int]int {
	all := map[slot]map[int]int{}
	slots, _ := slots(x.list)
	for s, epochs := range slots {
		if _, ok := rooted[s.kind]; !ok {
			members, of, come := x.comings(s, epochs)
			all[s] = map[int]int{}
			for _, m := range members {
				if peer := x.peer(m, s, epochs, of[m], come); peer >= 0 {
					all[s][m] = peer
				}
			}
		}
	}
	return all
}

// spread puts each call at the nearest of n places, in order; later is the distance.
func spread(n int, calls []int32, later func(i int, call int32) int64) []int32 {
	list := slices.Repeat([]int32{-1}, n)
	for _, p := range meeting(n, len(calls), func(i, k int) (bool, int64) { return true, later(i, calls[k]) }) {
		list[p[0]] = calls[p[1]]
	}
	return list
}

// other is the kind of call on the other side of a transfer.
var other = map[string]string{Send: Recv, Recv: Send, SendRecv: SendRecv, Wait: Wait}

// coming is when a member began its call of the other side of a slot.
type coming struct {
	at     int64
	member int
}

// comings returns the members that have a slot, the indexes of their epochs, and who began the other side in each
// epoch, in order of time.
func (x *epochs) comings(s slot, epochs []epoch) (members []int, of map[int][]int, come [][]coming) {
	of = map[int][]int{}
	come = make([][]coming, len(epochs))
	to := slot{other[s.kind], s.n}
	for i, e := range epochs {
		for _, m := range e.members(s) {
			of[m] = append(of[m], i)
		}
		for _, m := range e.members(to) {
			come[i] = append(come[i], coming{x.m.Start(m, e.call(m, to)), m})
		}
		lists.Sort(come[i], func(a, b coming) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.member, b.member))
		})
	}
	return slices.Sorted(maps.Keys(of)), of, come
}

// peerSlot adds the waits of sends and receives: for the only other rank, or for the peer whose start ends the calls.
func (x *epochs) peerSlot(s slot, epochs []epoch) {
	members, of, come := x.comings(s, epochs)
	for _, m := range members {
		guess := -1
		if !x.two {
			guess = x.peer(m, s, epochs, of[m], come)
		}
		for _, i := range of[m] {
			e := epochs[i]
			call, peer := e.call(m, s), guess
			if x.two {
				peer = only(e, m, s)
			}
			to := e.call(peer, slot{other[s.kind], s.n})
			if to < 0 {
				continue
			}
			if x.m.op[m][call] < 0 && x.m.op[peer][to] < 0 {
				x.m.link(m, call, peer, to)
			}
			x.m.add(m, call, peer, to)
		}
	}
}

// only is the other one of two members if both sides have equally many calls; else -1.
func only(e epoch, m int, s slot) int {
	for o, calls := range e {
		if o.member != m && o.kind == other[s.kind] && len(calls) == len(e[lane{m, s.kind}]) {
			return o.member
		}
	}
	return -1
}

// leastWaits is in how many calls a member must have waited for a peer for that peer to be believed.
const leastWaits = 5

// follows is the share of the variation of a call's duration that may remain once the peer's start is known.
const follows = 0.25

// deviation is how far numbers lie from their median, by the median. It changes the list.
func deviation(list []float64) float64 {
	middle := order.Median(list)
	for i := range list {
		list[i] -= middle
	}
	return order.Spread(list)
}

// candidates is how many members are considered as the peer of a member.
const candidates = 32

// peer is the member whose start ends the calls of a slot: they never end long before it starts, and they end later the
// later it starts; -1 if there is none. Candidates are those that started last while the member was in its longest
// call.
func (x *epochs) peer(m int, s slot, epochs []epoch, of []int, come [][]coming) int {
	span := func(i int) (start, end int64) {
		c := epochs[i].call(m, s)
		return x.m.Start(m, c), x.m.End(m, c)
	}
	longest := slices.MaxFunc(of, func(a, b int) int {
		from, to := span(a)
		start, end := span(b)
		return cmp.Compare(to-from, end-start)
	})
	start, end := span(longest)
	room := int64(surest * max(SameHost, lists.Most(x.m.Clocks, func(c Clock) float64 { return c.P99 })))
	list := come[longest]
	after, _ := slices.BinarySearchFunc(list, end+room, func(c coming, t int64) int { return cmp.Compare(c.at, t) })
	best, least := -1, 0.0
	for k := after - 1; k >= max(0, after-candidates) && list[k].at > start-room; k-- {
		if q := list[k].member; q != m {
			if d, ok := x.ends(m, q, s, epochs, of); ok && (best < 0 || d < least || d == least && q < best) {
				best, least = q, d
			}
		}
	}
	return best
}

// ends returns how much the time varies from another member's start on the other side to the end of the member's call;
// ok is false if the other's start does not end the calls.
func (x *epochs) ends(m, q int, s slot, epochs []epoch, of []int) (varies float64, ok bool) {
	var after, spent []float64
	seen, early := 0, 0
	for _, i := range of {
		e := epochs[i]
		c, o := e.call(m, s), e.call(q, slot{other[s.kind], s.n})
		if o < 0 {
			continue
		}
		seen++
		come := x.m.Start(q, o)
		switch left := x.m.End(m, c); {
		case left < come-surest*x.m.off(m, q):
			early++
		case come > x.m.Start(m, c):
			after, spent = append(after, float64(left-come)), append(spent, float64(left-x.m.Start(m, c)))
		}
	}
	if len(after) < leastWaits || float64(early) > (1-overlapping)*float64(seen) {
		return 0, false
	}
	d := deviation(after)
	return d, d <= follows*deviation(spent)
}
