package ranks

import (
	"slices"
	"strconv"
	"strings"
)

// Member is a track with the host whose clock its times are on.
type Member struct {
	*Track
	Host  string // of one clock; empty: a clock of its own
	Shift int64  // ns that are added to its times: when its session began, since the first one's

	clock int
}

// Set is the matched collectives of some ranks: the n-th of each is one collective.
type Set struct {
	Comm    string    // communicator; empty where they were matched by their order
	Members []int     // places of tracks
	Calls   [][]int32 // by member: the place of its n-th call
}

// Len is the number of collectives.
func (s *Set) Len() int { return len(s.Calls[0]) }

// overlapping is the share of collectives in which two ranks must be at the same time for their order to be believed.
const overlapping = 0.95

// Match finds the collectives that ranks took part in together: by communicator and sequence number where both say
// them, else the n-th of each rank where their kinds follow each other alike and 95 % overlap in time. What is left are
// tracks that nothing could be matched of.
func Match(members []Member) (sets []Set, alone []int) {
	numberClocks(members)
	matched := make([]bool, len(members))
	add := func(s Set) {
		for _, m := range s.Members {
			matched[m] = true
		}
		sets = append(sets, s)
	}
	for _, s := range byCommunicator(members) {
		add(s)
	}
	for _, bucket := range byOrder(members) {
		for _, s := range together(members, bucket) {
			add(s)
		}
	}
	for i, ok := range matched {
		if !ok {
			alone = append(alone, i)
		}
	}
	return sets, alone
}

// numberClocks gives members of one host one clock.
func numberClocks(members []Member) {
	hosts := map[string]int{}
	n := 0
	for i := range members {
		m := &members[i]
		at, ok := hosts[m.Host]
		if m.Host == "" || !ok {
			at = n
			n++
		}
		if m.Host != "" {
			hosts[m.Host] = at
		}
		m.clock = at
	}
}

// byCommunicator matches calls that name their communicator and their number in it.
func byCommunicator(members []Member) []Set {
	type place struct {
		member int
		calls  map[int64]int32 // by number
	}
	comms := map[string][]place{}
	for i := range members {
		t := members[i].Track
		own := make([]map[int64]int32, len(t.Comms))
		for k := range t.Calls {
			c := &t.Calls[k]
			if c.Comm < 0 || c.Seq < 0 {
				continue
			}
			if own[c.Comm] == nil {
				own[c.Comm] = map[int64]int32{}
			}
			if _, again := own[c.Comm][c.Seq]; !again {
				own[c.Comm][c.Seq] = int32(k)
			}
		}
		for c, calls := range own {
			if calls != nil {
				comms[t.Comms[c]] = append(comms[t.Comms[c]], place{i, calls})
			}
		}
	}
	names := make([]string, 0, len(comms))
	for name := range comms {
		names = append(names, name)
	}
	slices.Sort(names)
	var sets []Set
	for _, name := range names {
		list := comms[name]
		if len(list) < 2 {
			continue
		}
		var numbers []int64 // that all have
		for seq := range list[0].calls {
			if !slices.ContainsFunc(list[1:], func(p place) bool { _, ok := p.calls[seq]; return !ok }) {
				numbers = append(numbers, seq)
			}
		}
		if len(numbers) == 0 {
			continue
		}
		slices.Sort(numbers)
		s := Set{Comm: name}
		for _, p := range list {
			calls := make([]int32, len(numbers))
			for n, seq := range numbers {
				calls[n] = p.calls[seq]
			}
			s.Members, s.Calls = append(s.Members, p.member), append(s.Calls, calls)
		}
		sets = append(sets, s)
	}
	return sets
}

// byOrder are the members whose calls without communicator follow each other alike, two or more, with the places of
// these calls.
func byOrder(members []Member) [][]ordered {
	buckets := map[string][]ordered{}
	var keys []string
	for i := range members {
		t := members[i].Track
		var key strings.Builder
		o := ordered{member: i}
		for k := range t.Calls {
			if c := &t.Calls[k]; c.Comm < 0 || c.Seq < 0 {
				o.calls = append(o.calls, int32(k))
				key.WriteString(t.Kinds[c.Kind])
				key.WriteByte(' ')
			}
		}
		if len(o.calls) == 0 {
			continue
		}
		// The host's calls and those of devices are different collectives.
		text := strconv.FormatBool(t.Device < 0) + key.String()
		if buckets[text] == nil {
			keys = append(keys, text)
		}
		buckets[text] = append(buckets[text], o)
	}
	var list [][]ordered
	for _, k := range keys {
		if len(buckets[k]) > 1 {
			list = append(list, buckets[k])
		}
	}
	return list
}

type ordered struct {
	member int
	calls  []int32
}

// maxSeeds bounds how many groups are looked for among ranks whose collectives follow each other alike.
const maxSeeds = 256

// together are the groups of ranks whose n-th collectives overlap in time.
func together(members []Member, list []ordered) []Set {
	var sets []Set
	for seeds := 0; len(list) > 1 && seeds < maxSeeds; seeds++ {
		s := Set{Members: []int{list[0].member}, Calls: [][]int32{list[0].calls}}
		var rest []ordered
		for _, o := range list[1:] {
			if meet(&members[s.Members[0]], s.Calls[0], &members[o.member], o.calls) {
				s.Members, s.Calls = append(s.Members, o.member), append(s.Calls, o.calls)
			} else {
				rest = append(rest, o)
			}
		}
		if len(s.Members) > 1 {
			sets = append(sets, s)
		}
		list = rest
	}
	return sets
}

// meet reports whether the n-th collectives of two ranks overlap in time, after their clocks were put together where
// they are two.
func meet(a *Member, as []int32, b *Member, bs []int32) bool {
	line := Line{}
	if a.clock != b.clock {
		points := make([]point, len(as))
		for n := range as {
			points[n] = point{a.end(as[n]), b.end(bs[n]) - a.end(as[n])}
		}
		line = fit(points)
	}
	both := 0
	for n := range as {
		back := line.At(a.end(as[n]))
		if max(a.start(as[n]), b.start(bs[n])-back) < min(a.end(as[n]), b.end(bs[n])-back) {
			both++
		}
	}
	return float64(both) >= overlapping*float64(len(as))
}

// start and end of a call, on the clock of the host.
func (m *Member) start(call int32) int64 { return m.Calls[call].Start + m.Shift }
func (m *Member) end(call int32) int64   { return m.Calls[call].End + m.Shift }

// Kind is the kind of collective n of a set.
func (s *Set) Kind(members []Member, n int) string {
	t := members[s.Members[0]].Track
	return t.Kinds[t.Calls[s.Calls[0][n]].Kind]
}
