package ranks

import (
	"cmp"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// address is how a call names a member: by its rank in a communicator, or in the run if it names none.
type address struct {
	device bool
	comm   string
	rank   int64
}

const several = -1 // more than one member has the address

// directory finds the members that calls name.
type directory struct {
	at    map[address]int
	known map[address]bool // by communicator, as rank 0: whether its ranks are known
}

// newDirectory collects the ranks that tracks state. If no track states its rank in a communicator, ranks follow the
// order of the run, as frameworks number them, unless calls name more ranks than were captured.
func newDirectory(members []Member) *directory {
	d := &directory{at: map[address]int{}, known: map[address]bool{}}
	in, named := map[address][]int{}, map[address]int64{}
	for m := range members {
		t := members[m].Track
		device := t.Device >= 0
		d.add(address{device, "", t.Rank}, m)
		for c, name := range t.Comms {
			a := address{device, name, t.local(int32(c))}
			d.add(a, m)
			a.rank = 0
			in[a] = append(in[a], m)
		}
		for i := range t.Calls {
			if c := &t.Calls[i]; c.Comm >= 0 {
				a := address{device, t.Comms[c.Comm], 0}
				named[a] = max(named[a], int64(c.Peer), int64(c.Source))
			}
		}
	}
	for a, list := range in {
		if !d.known[a] && named[a] > 0 && named[a] <= int64(len(list)) {
			d.inOrder(a, list, members)
		}
	}
	return d
}

func (d *directory) add(a address, m int) {
	if a.rank < 0 {
		return
	}
	if old, taken := d.at[a]; taken && old != m {
		m = several
	}
	d.at[a] = m
	d.known[address{a.device, a.comm, 0}] = true
}

func (d *directory) inOrder(a address, list []int, members []Member) {
	lists.Sort(list, func(x, y int) int { return cmp.Compare(members[x].Rank, members[y].Rank) })
	for k, m := range list {
		if members[m].Rank < 0 || k > 0 && members[m].Rank == members[list[k-1]].Rank {
			return
		}
	}
	for k, m := range list {
		d.add(address{a.device, a.comm, int64(k)}, m)
	}
}

// side returns the member that another's call names by a rank plus 1; -1 if it was not captured. known is false if
// nothing says which member that is.
func (d *directory) side(m *Member, comm, rank int32) (member int, known bool) {
	a := address{m.Device >= 0, "", 0}
	if comm >= 0 {
		a.comm = m.Comms[comm]
	}
	if rank == 0 || !d.known[a] || comm < 0 && a.device { // NCCL only numbers ranks within a communicator
		return -1, false
	}
	a.rank = int64(rank) - 1
	at, ok := d.at[a]
	switch {
	case !ok:
		return -1, true
	case at == several:
		return -1, false
	}
	return at, true
}

// channel identifies calls that match: sends from one member to another and their receives, or calls with one root.
type channel struct {
	comm string
	kind string // Send, or that of calls with a root
	one  int    // who sends, or the root
	to   int    // who receives; -1 for calls with a root
	tag  int32
}

// partner is a call of a member, which another call may wait for.
type partner struct{ member, call int32 }

// channels are the calls that name their root or their other side, by channel and member, in the order of channels.
// Those of skip are left out; named is called for those whose other side is known.
func channels(members []Member, skip func(m, call int) bool, named func(m, call int)) (calls map[channel]map[int][]int32, order []channel) {
	d := newDirectory(members)
	calls = map[channel]map[int][]int32{}
	put := func(c channel, m int, call int) {
		if calls[c] == nil {
			calls[c] = map[int][]int32{}
			order = append(order, c)
		}
		calls[c][m] = append(calls[c][m], int32(call))
	}
	anyTag := map[channel]bool{} // without their tags
	for _, ask := range []bool{true, false} {
		for m := range members {
			t := members[m].Track
			for i := range t.Calls {
				call := &t.Calls[i]
				if call.Peer == 0 && call.Source == 0 || skip(m, i) {
					continue
				}
				kind := members[m].kind(int32(i))
				for _, way := range ways(kind, call) {
					other, known := d.side(&members[m], call.Comm, way.rank)
					if known {
						named(m, i)
					}
					if other < 0 {
						continue
					}
					c := channel{kind: way.kind, one: other, to: m, tag: call.Tag}
					if way.out {
						c.one, c.to = m, other
					}
					if _, ok := rooted[kind]; ok {
						c.one, c.to, c.tag = other, -1, 0
					}
					if call.Comm >= 0 {
						c.comm = t.Comms[call.Comm]
					}
					plain := c
					plain.tag = 0
					switch {
					case ask:
						anyTag[plain] = anyTag[plain] || c.tag == 0
					case anyTag[plain]:
						put(plain, m, i)
					default:
						put(c, m, i)
					}
				}
			}
		}
	}
	return calls, order
}

// recorded matches the calls that name their root or their other side: those of one channel by order, or by time if
// some are missing, so that a missing call costs only its own match.
func (x *matching) recorded() {
	calls, order := channels(x.Members, func(m, call int) bool { return x.op[m][call] >= 0 || !x.Clock(m).Known },
		func(m, call int) { x.named[m][call] = true })
	latest := map[partner]partner{}
	for _, c := range order {
		x.channel(c, calls[c], latest)
	}
	for m := range x.Members {
		for i := range int32(len(x.Members[m].Calls)) {
			if p, ok := latest[partner{int32(m), i}]; ok {
				x.add(m, i, int(p.member), p.call)
			}
		}
	}
}

// way is one other side that a call names.
type way struct {
	kind string // of the channel
	rank int32  // plus 1
	out  bool   // to it, not from it
}

func ways(kind string, c *Call) []way {
	switch kind {
	case Send:
		return []way{{Send, c.Peer, true}}
	case Recv:
		return []way{{Send, c.Peer, false}}
	case SendRecv:
		return []way{{Send, c.Peer, true}, {Send, c.Source, false}}
	}
	if _, ok := rooted[kind]; ok {
		return []way{{kind, c.Peer, false}}
	}
	return nil
}

// channel matches the calls of one channel. For each call it keeps the other side that came last.
func (x *matching) channel(c channel, calls map[int][]int32, latest map[partner]partner) {
	waits := func(m int, call int32, peer int, other int32) {
		if x.End(m, call) < x.Start(peer, other)-x.off(m, peer) {
			return
		}
		at := partner{int32(m), call}
		if old, ok := latest[at]; !ok || x.Start(int(old.member), old.call) < x.Start(peer, other) {
			latest[at] = partner{int32(peer), other}
		}
	}
	for m := range x.Members {
		if m == c.one || len(calls[m]) == 0 || len(calls[c.one]) == 0 {
			continue
		}
		from, to := c.one, m
		if c.to < 0 && !rooted[c.kind] { // the root of a reduce waits for the others
			from, to = m, c.one
		}
		for _, p := range x.pairs(from, calls[from], to, calls[to]) {
			a, b := calls[from][p[0]], calls[to][p[1]]
			if from == c.one {
				x.link(from, a, to, b)
			} else {
				x.link(to, b, from, a)
			}
			waits(to, b, from, a)
			if c.to >= 0 {
				waits(from, a, to, b)
			}
		}
	}
}

// pairs matches the calls of two members, where those of the second cannot end before those of the first begin: by
// order if none is missing, else those that overlap.
func (x *matching) pairs(from int, a []int32, to int, b []int32) [][2]int {
	if len(a) == len(b) && x.Members[from].Total == nil && x.Members[to].Total == nil {
		list, wrong := make([][2]int, len(a)), 0
		for i := range a {
			list[i] = [2]int{i, i}
			if x.End(to, b[i]) < x.Start(from, a[i])-surest*x.off(from, to) {
				wrong++
			}
		}
		if float64(wrong) <= (1-overlapping)*float64(len(a)) {
			return list
		}
	}
	return meeting(len(a), len(b), func(i, k int) (bool, int64) {
		meet := max(x.Start(from, a[i]), x.Start(to, b[k])) < min(x.End(from, a[i]), x.End(to, b[k]))
		return meet, x.End(to, b[k]) - x.End(from, a[i])
	})
}

// meeting pairs the indexes of two lists that are sorted by time: entries that overlap and end nearest to each other.
// of returns whether two overlap, and by how much the second ends later, in ns.
func meeting(n, m int, of func(i, k int) (overlap bool, later int64)) (list [][2]int) {
	far := func(i, k int) int64 {
		_, later := of(i, k)
		return abs(later)
	}
	for i, k := 0, 0; i < n && k < m; {
		overlap, later := of(i, k)
		switch d := abs(later); {
		case overlap && (i+1 == n || d <= far(i+1, k)) && (k+1 == m || d <= far(i, k+1)):
			list = append(list, [2]int{i, k})
			i, k = i+1, k+1
		case later > 0:
			i++
		default:
			k++
		}
	}
	return list
}

const (
	// waited: a kernel waited if it took this many times as long as the shortest tenth of the member's kernels.
	waited = 2
	// paired is the share of the kernels that waited whose other side must be found, for any to be believed.
	paired = 0.8
	// within is the smallest tolerance, in ns, for the ends of the two sides of a transfer, however exact the clocks
	// are.
	within = 30_000
)

// byEnds adds the waits of point-to-point kernels without a recorded peer. The two sides of a transfer end together,
// and the one that waited did so for the one that came last.
func (x *matching) byEnds() {
	type kernel struct {
		partner
		start, end int64
		waited     bool
	}
	var list []kernel
	for m := range x.Members {
		t := x.Members[m].Track
		if t.Device < 0 || !x.Clock(m).Known {
			continue
		}
		var took []int64
		first := len(list)
		for i := range t.Calls {
			if x.Members[m].kind(int32(i)) == SendRecv && x.op[m][i] < 0 && !x.named[m][i] {
				list = append(list, kernel{partner{int32(m), int32(i)}, x.Start(m, int32(i)), x.End(m, int32(i)), false})
				took = append(took, t.Calls[i].End-t.Calls[i].Start)
			}
		}
		if len(took) == 0 {
			continue
		}
		slices.Sort(took)
		for k := range list[first:] {
			kernel := &list[first+k]
			kernel.waited = kernel.end-kernel.start > waited*took[len(took)/10]
		}
	}
	lists.Sort(list, func(a, b kernel) int { return cmp.Compare(a.end, b.end) })
	var found [][2]partner // who waited, and who came last
	all := 0
	for i := range list {
		k := &list[i]
		if !k.waited {
			continue
		}
		all++
		best, come := (*kernel)(nil), k.start
		for _, step := range []int{-1, 1} {
			for o := i + step; o >= 0 && o < len(list) && o-i <= back && i-o <= back; o += step {
				other := &list[o]
				off := max(within, surest*x.off(int(k.member), int(other.member)))
				if abs(other.end-k.end) > off {
					break
				}
				if other.member != k.member && other.start > come && other.start <= k.end {
					best, come = other, other.start
				}
			}
		}
		if best != nil {
			found = append(found, [2]partner{k.partner, best.partner})
		}
	}
	if float64(len(found)) < math.Max(leastWaits, paired*float64(all)) {
		return
	}
	for _, p := range found {
		a, b := p[0], p[1]
		x.link(int(b.member), b.call, int(a.member), a.call)
		x.add(int(a.member), a.call, int(b.member), b.call)
	}
}
