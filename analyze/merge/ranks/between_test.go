package ranks

import "testing"

// without leaves out the n-th call of a kind of a track.
func without(t *Track, kind string, n int) {
	for i := range t.Calls {
		if t.Kinds[t.Calls[i].Kind] != kind {
			continue
		}
		if n--; n == 0 {
			t.Calls = append(t.Calls[:i:i], t.Calls[i+1:]...)
			return
		}
	}
}

// Rank 0 copies before 40 broadcasts, or 40 sends, between two barriers; calls name nobody. One that is missing on the other
// side, in the middle, costs that call: in all others the wait is told.
func TestAMissingCallThatNamesNobodyCostsThatCall(t *testing.T) {
	for _, x := range []struct {
		kind string
		size int
		play func(p *play)
	}{
		{Broadcast, 3, func(p *play) { p.broadcast(0) }},
		{Recv, 2, func(p *play) { p.send(0, 1) }},
	} {
		p := newPlay(1, x.size, false)
		p.all("Barrier")
		for range 40 {
			p.do(0, actCopy, 300_000)
			for r := 1; r < x.size; r++ {
				p.do(r, actCode, 20_000)
			}
			x.play(p)
		}
		p.all("Barrier")
		without(p.tracks[1], x.kind, 15)
		_, r := first(p.members(x.size))
		if len(r.Chains) == 0 || r.Chains[0].First != 0 {
			t.Errorf("%s: %+v", x.kind, r.Chains)
			continue
		}
		waits := float64(39+40*(x.size-2)) * 266_000
		if c := r.Chains[0]; c.Sum < waits || c.Of < 39 || c.Kind != x.kind {
			t.Errorf("%s: %+v, want %.0f ns of waiting or more", x.kind, c, waits)
		}
	}
}

// Three ranks send in a ring, ten times between two collectives; one send of one stretch is missing. The waits of the other nine,
// and of all other stretches, are told.
func TestAMissingSendOfAStretchCostsThatSend(t *testing.T) {
	sum := func(drop bool) float64 {
		p := newPlay(2, 3, false)
		for range 20 {
			for range 10 {
				p.do(0, actCopy, 300_000+p.rng.Int64N(200_000))
				p.do(1, actCode, 20_000)
				p.do(2, actCode, 20_000)
				p.send(0, 1)
				p.do(1, actCode, 30_000)
				p.send(1, 2)
			}
			p.all("AllReduce")
		}
		if drop {
			without(p.tracks[1], Recv, 43)
		}
		_, r := first(p.members(3))
		if len(r.Chains) == 0 || r.Chains[0].First != 0 {
			t.Fatalf("%+v", r.Chains)
		}
		return r.Chains[0].Sum
	}
	all, one := sum(false), sum(true)
	if lost := (all - one) / (all / 200); lost < 0 || lost > 1.5 {
		t.Errorf("a missing call of 200 costs %.1f of them (%.0f and %.0f ns)", lost, all, one)
	}
}
