package ranks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// pipeline is a run of stages of some ranks each: micro-batches go down the stages, one kernel receives from the stage
// before and one sends to the next, and the ranks of a stage reduce together. One rank computes longer. Kernels name
// their peers, or not; transfers are buffered, so that a sender leaves before a receiver comes, or not.
type pipeline struct {
	stages, width, batches int
	slow                   int
	named, buffered        bool
}

func (p pipeline) run(seed uint64) []Member {
	rng := rand.New(rand.NewPCG(seed, 3))
	n := p.stages * p.width
	now, ended := make([]int64, n), make([]int64, n)
	free := make([]int64, n) // when the message before was taken
	var list []Member
	for r := range n {
		t := &Track{Rank: int64(r), World: int64(n), Device: int64(r % 8), Kinds: []string{SendRecv}, Acts: []string{"compute"}}
		if p.named {
			t.Kinds = []string{Send, Recv}
		}
		list = append(list, Member{Track: t, Host: "a", Shift: int64(r % 8)})
		now[r] = 1_000_000
	}
	call := func(r int, kind int32, comm string, local, peer int, end int64) {
		t := list[r].Track
		c := Call{Start: now[r], End: max(end, now[r]+1_000), Kind: kind, Comm: -1}
		if comm != "" {
			c.Comm = t.Communicator(comm, int64(local))
			c.Peer = int32(peer) + 1
		}
		var parts []Part
		if len(t.Calls) > 0 && now[r] > ended[r] {
			parts = []Part{{0, now[r] - ended[r]}}
		}
		t.Add(c, parts)
		now[r], ended[r] = c.End, c.End
	}
	for range p.batches {
		for s := range p.stages {
			if s > 0 {
				for w := range p.width {
					from, to := (s-1)*p.width+w, s*p.width+w
					sent := now[from]
					came := max(sent, now[to])
					end := came + 12_000 + rng.Int64N(500)
					left := end
					if p.buffered {
						left = max(sent, free[from]) + 9_000
					}
					comm := fmt.Sprintf("pp%d", w)
					if p.named {
						call(from, 0, comm, s-1, s, left)
						call(to, 1, comm, s, s-1, end)
					} else {
						call(from, 0, "", 0, -1, left)
						call(to, 0, "", 0, -1, end)
					}
					free[from] = came
				}
			}
			last := int64(0)
			for w := range p.width {
				r := s*p.width + w
				now[r] += 400_000 + rng.Int64N(5_000)
				if r == p.slow {
					now[r] += 250_000
				}
				last = max(last, now[r])
			}
			if p.width == 1 {
				continue
			}
			for w := range p.width {
				t := list[s*p.width+w].Track
				kind := lists.Place[int32](&t.Kinds, "AllReduce")
				call(s*p.width+w, kind, fmt.Sprintf("tp%d", s), w, -1, last+8_000+rng.Int64N(300))
			}
		}
	}
	return list
}

// first is with which rank the waiting begins; -1 nobody.
func first(members []Member) (int, *Result) {
	sets := Match(members)
	r := Study(Align(members, sets), sets)
	if len(r.Chains) == 0 {
		return -1, r
	}
	return int(members[r.Chains[0].First].Rank), r
}

// The slow stage of a pipeline is named, whether kernels say their peers or not, with and without groups of several ranks
// in a stage, where transfers are buffered and where not. The first stage waits for nobody.
func TestASlowStageIsNamed(t *testing.T) {
	right, n := 0, 0
	seeds := 2
	if longtest.On() {
		seeds = 20
	}
	for seed := range seeds {
		for _, width := range []int{1, 4} {
			for slow := range 4 * width {
				for flags := range 4 {
					p := pipeline{stages: 4, width: width, batches: 24, slow: slow, named: flags&1 > 0, buffered: flags&2 > 0}
					if slow/width == 3 && p.buffered {
						continue // the last stage holds up nobody who may run ahead
					}
					n++
					got, r := first(p.run(uint64(seed)))
					ok := got == slow && r.Chains[0].Causes[0].Act == "compute"
					if ok {
						right++
					} else {
						t.Logf("%+v, seed %d: rank %d, %+v", p, seed, got, r.Chains[:min(2, len(r.Chains))])
					}
				}
			}
		}
	}
	if float64(right) < 0.95*float64(n) {
		t.Errorf("%d of %d right", right, n)
	}
	t.Logf("right: %d of %d", right, n)
}

// A send that one capture lacks in the middle costs that send alone: each of the other 19 is matched.
func TestAMissingSendCostsThatSend(t *testing.T) {
	members := pipeline{stages: 2, width: 1, batches: 20, slow: 0, named: true}.run(1)
	whole, _ := study20(members)
	members = pipeline{stages: 2, width: 1, batches: 20, slow: 0, named: true}.run(1)
	members[0].Calls = slices.Delete(members[0].Calls, 10, 11)
	less, _ := study20(members)
	if whole != 20 || less != 19 {
		t.Errorf("%d and %d of 20", whole, less)
	}
}

// study20 counts the receives that were matched.
func study20(members []Member) (n int, c Chain) {
	_, r := first(members)
	if len(r.Chains) == 0 {
		return 0, c
	}
	return int(r.Chains[0].N), r.Chains[0]
}

// By hand: NCCL's broadcast in a communicator of ranks 2 and 5 of a run, whose rank 0 is rank 2. Rank 5 waits from 1000 to
// 1400 for the root, which computes 400 ns longer since both left a reduce together. That it computes for 150 ns of these
// itself costs nothing.
func TestARootIsARankOfItsCommunicator(t *testing.T) {
	for _, named := range []bool{true, false} { // by order where no track says its rank in the communicator
		two := &Track{Rank: 2, World: 8, Device: 0, Kinds: []string{"AllReduce", Broadcast}, Acts: []string{"compute"}}
		five := &Track{Rank: 5, World: 8, Device: 0, Kinds: []string{"AllReduce", Broadcast}, Acts: []string{"compute"}}
		for local, t := range []*Track{two, five} {
			if t.Comms = []string{"c"}; named {
				t.Communicator("c", int64(local))
			}
		}
		add := func(t *Track, kind int32, start, end, hidden int64, peer int32, parts ...Part) {
			t.Add(Call{Start: start, End: end, Hidden: hidden, Kind: kind, Peer: peer}, parts)
		}
		for _, t := range []*Track{two, five} {
			add(t, 0, 400, 500, 0, 0)
		}
		add(two, 1, 1400, 1420, 0, 1, Part{0, 900})
		add(five, 1, 1000, 1430, 150, 1, Part{0, 500})
		for _, t := range []*Track{two, five} {
			add(t, 0, 1500, 1600, 0, 0, Part{0, 70})
		}
		members := []Member{{Track: two, Host: "a"}, {Track: five, Host: "a"}}
		_, r := first(members)
		if len(r.Chains) != 1 {
			t.Fatalf("named %v: %+v", named, r.Chains)
		}
		c := r.Chains[0]
		if c.First != 0 || c.Waiter != 1 || c.Time != 250 || c.Kind != Broadcast || c.Causes[0] != (Cause{"compute", 250}) {
			t.Errorf("named %v: %+v", named, c)
		}
	}
}

// Tags tell two streams of messages between the same two ranks apart: those of tag 2 are received in another order than
// they were sent in with those of tag 1. By hand: rank 0 sends tag 1 at 100 and tag 2 at 900; rank 1 receives tag 2 from
// 300 on and then tag 1, which is there.
func TestTagsTellMessagesApart(t *testing.T) {
	zero := &Track{Rank: 0, World: 2, Device: -1, Kinds: []string{Send, Recv}, Acts: []string{"code"}}
	one := &Track{Rank: 1, World: 2, Device: -1, Kinds: []string{Send, Recv}, Acts: []string{"code"}}
	add := func(t *Track, kind int32, start, end int64, peer, tag int32) {
		var parts []Part
		if n := len(t.Calls); n > 0 {
			parts = []Part{{0, start - t.Calls[n-1].End}}
		}
		t.Add(Call{Start: start, End: end, Kind: kind, Comm: -1, Peer: peer, Tag: tag}, parts)
	}
	add(zero, 0, 100, 110, 2, 2)
	add(zero, 0, 900, 910, 2, 3)
	add(one, 1, 300, 920, 1, 3)
	add(one, 1, 930, 935, 1, 2)
	_, r := first([]Member{{Track: zero, Host: "a"}, {Track: one, Host: "a"}})
	if len(r.Chains) != 1 || r.Chains[0].First != 0 || r.Chains[0].Time != 600 || r.Chains[0].N != 1 {
		t.Errorf("%+v", r.Chains)
	}
}
