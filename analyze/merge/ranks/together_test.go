package ranks

import "testing"

// Ranks 0 and 1 exchange data for 300 µs in each of ten calls, which end 1 µs apart; rank 2 takes as long in other time,
// rank 3 ends with them after a third of the time.
func TestTogether(t *testing.T) {
	tracks := []struct{ start, took int64 }{{0, 300_000}, {2_000, 299_000}, {500_000, 300_000}, {200_000, 100_000}}
	run := func(list ...int) *Aligned {
		a := &Aligned{Clocks: []Clock{{Known: true}}}
		for _, i := range list {
			c := &Track{Kinds: []string{SendRecv}, Device: -1}
			for k := range int64(10) {
				start := k*1_000_000 + tracks[i].start
				c.Add(Call{Start: start, End: start + tracks[i].took, Comm: -1}, nil)
			}
			a.Members = append(a.Members, Member{Track: c})
		}
		return a
	}
	a := run(0, 1, 2, 3)
	for m, want := range []int{1, 0, -1, -1} {
		if with, ok := a.Together(m, SendRecv); with != want || ok != (want >= 0) {
			t.Errorf("rank %d is with %d, %v", m, with, ok)
		}
	}
	if with, ok := a.Together(0, Wait); ok {
		t.Errorf("rank 0 is with %d in calls that it never made", with)
	}
	if with, ok := run(0, 1, 1).Together(0, SendRecv); ok {
		t.Errorf("of two others that end with it, rank 0 is with %d", with)
	}
	a.Clocks[0].Known = false
	if with, ok := a.Together(0, SendRecv); ok {
		t.Errorf("without a known clock, rank 0 is with %d", with)
	}
}
