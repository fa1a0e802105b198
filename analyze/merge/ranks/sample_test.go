package ranks

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest"
)

// A call that a capture lacks in the middle costs that call: the rank's other 199 are matched, on its host's clock and on
// one 40 ms apart, and the other ranks keep all 200.
func TestAMissingCallCostsThatCall(t *testing.T) {
	for _, perHost := range []int{4, 2} {
		members := fleetMembers(tracetest.Fleet{Ranks: 4, PerHost: perHost, Steps: 200, Jitter: 40_000, EndJitter: 1_000, Offset: 4e7, Seed: 3}.Run(), true)
		members[2].Calls = slices.Delete(members[2].Calls, 100, 101)
		sets, alone := matched(members)
		if len(sets) != 1 || len(alone) != 0 {
			t.Fatalf("%d on a host: %d sets, alone %v", perHost, len(sets), alone)
		}
		r := Study(Align(members, sets), sets)
		if r.Collectives != 200 || r.Unmatched != 0 || r.Ranks[2].N != 199 || r.Ranks[1].N != 200 {
			t.Errorf("%d on a host: %d collectives, %d unmatched, ranks %+v", perHost, r.Collectives, r.Unmatched, r.Ranks)
		}
	}
}

// A sample holds 64 collectives of each communicator, the same ones of each rank, in stretches of 16, and survives
// writing; a sample of it is itself.
func TestSample(t *testing.T) {
	track := func(comm string) *Track {
		t := &Track{Rank: 1, World: 2, Kinds: []string{"AllReduce", "Send"}, Comms: []string{comm, "few"}, Acts: []string{"a", "b", "c", "d", "e"}}
		now := int64(0)
		for i := range 1000 {
			c := Call{Start: now, End: now + 1000}
			switch {
			case i%10 == 3:
				c.Kind = 1
			case i%100 == 4:
				c.Comm = 1
			}
			t.Add(c, []Part{{0, 100}, {1, 5000}, {2, 400}, {3, 3000}, {4, 549}})
			now += 10_000
		}
		return t
	}
	s := track("many").Sample(0)
	count := map[string]int{}
	for i := range s.Calls {
		if s.synchronises(i) {
			count[s.Comms[s.Calls[i].Comm]]++
		}
	}
	if count["many"] != 64 || count["few"] != 10 {
		t.Errorf("%v", count)
	}
	if all, kept := s.Sampled(); all != 900 || kept != 74 || s.Total[slices.Index(s.Comms, "many")] != 890 {
		t.Errorf("%d of %d, %v", kept, all, s.Total)
	}
	first := slices.IndexFunc(s.Calls, func(c Call) bool {
		return c.Kind == int32(slices.Index(s.Kinds, "AllReduce")) && s.Comms[c.Comm] == "many"
	})
	if c := s.Calls[first]; c.Seq%16 != 0 {
		t.Errorf("a stretch begins with number %d", c.Seq)
	}
	for i := range s.Calls {
		parts := s.Parts(i)
		if len(parts) != 3 || parts[0].Time != 5000 || parts[1].Time != 3000 || parts[2].Time != 1000 || s.Acts[parts[2].Act] != "e" {
			t.Fatalf("%+v of %v", parts, s.Acts) // 549 + 400 + 100 in the last, in hundreds
		}
	}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back Track
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(&back, s) {
		t.Errorf("%v: %+v, want %+v", err, back, s)
	}
	if few := (&Track{Kinds: []string{"Barrier"}}); len(few.Sample(0).Calls) != 0 {
		t.Error("a track without calls has a sample with some")
	}
}

// Of samples of 64 in 1,200 collectives the same rank is named with the same lateness within 25 %, where captures begin
// together and clocks are up to a second apart, and where they begin 100 collectives apart and clocks are good to 0.1 ms.
func TestSamplesNameTheSameRank(t *testing.T) {
	for _, apart := range []bool{false, true} {
		fleet := tracetest.Fleet{Ranks: 32, PerHost: 8, Steps: 600, Layers: 2, Compute: 5_000_000, Jitter: 50_000, EndJitter: 3_000,
			Offset: 1e9, Drift: 20e-6, Slow: 11, SlowBy: 0.05, SlowSteps: 1, Seed: 5}
		if apart {
			fleet.Offset = 1e5
		}
		run := fleet.Run()
		members := fleetMembers(run, true)
		whole, samples := slices.Clone(members), slices.Clone(members)
		for i := range samples {
			tr := *members[i].Track
			if apart && i%3 == 1 {
				tr.Calls = tr.Calls[100:]
			}
			samples[i].Track = tr.Sample(run[i].Session)
		}
		study := func(m []Member) *Result {
			sets, alone := matched(m)
			if len(sets) != 1 || len(alone) > 0 {
				t.Fatalf("apart %v: %d sets, alone %v", apart, len(sets), alone)
			}
			return Study(Align(m, sets), sets)
		}
		a, b := study(whole), study(samples)
		if slowest(a) != 11 || slowest(b) != 11 {
			t.Errorf("apart %v: ranks %d and %d", apart, slowest(a), slowest(b))
		}
		if x, y := float64(a.Ranks[11].Blame), float64(b.Ranks[11].Blame); math.Abs(x/y-1) > 0.25 {
			t.Errorf("apart %v: it holds others up for %v, by samples %v", apart, x, y)
		}
		if !apart && b.Collectives != a.Collectives {
			t.Errorf("%d collectives, by samples %d", a.Collectives, b.Collectives)
		}
		t.Logf("apart %v: %d and %d collectives, %d left alone", apart, a.Collectives, b.Collectives, b.Unmatched)
	}
}
