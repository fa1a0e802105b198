package ranks

import (
	"testing"
)

// lockstep are ranks of one host that end 40 collectives at one time, in steps of 1 to 1.24 ms. The last rank comes
// last: it spends 5 µs in a collective, others 100 µs.
func lockstep(n int, device int64) []Member {
	var list []Member
	for rank := range n {
		t := &Track{Rank: int64(rank), World: int64(n), Device: device, Kinds: []string{"AllReduce"}}
		took, end := int64(100_000), int64(0)
		if rank == n-1 {
			took = 5_000
		}
		for k := range 40 {
			end += 1_000_000 + int64(k*7%13)*20_000
			t.Add(Call{Start: end - took, End: end, Comm: -1}, nil)
		}
		list = append(list, Member{Track: t, Host: "one", Shift: int64(rank)})
	}
	return list
}

// Whichever session states a wrong start, and by however much, the last rank stays the last, and the error is known.
func TestCorrect(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		for wrong := range n {
			for _, by := range []int64{1_120_000, -1_120_000, 2_240_000, 300_000, 60_000, -60_000, 1_000_000_000} {
				members := lockstep(n, -1)
				members[wrong].Shift += by
				sets := Match(members)
				if len(sets) != 1 || len(sets[0].Members) != n {
					t.Fatalf("%d ranks, %d by %d: sets %+v", n, wrong, by, sets)
				}
				r := Study(Align(members, sets), sets)
				if got := r.Ranks[n-1].Last; got != 40 {
					t.Errorf("%d ranks, %d by %d: the last is last %d times", n, wrong, by, got)
				}
				for i, m := range members {
					want := int64(0)
					if i == wrong || n == 2 {
						want = by
					}
					off := abs(m.Moved - want)
					if n == 2 && m.Moved != 0 { // either of two may be the wrong one
						off = abs(m.Moved) - abs(by)
					}
					if off > 5 && (n > 2 || m.Moved != 0) {
						t.Errorf("%d ranks, %d by %d: %d moved by %d", n, wrong, by, i, m.Moved)
					}
				}
			}
		}
	}
}

// Sessions that begin when they say, or nearly so, are not moved. Nor are ranks that follow others in lockstep, as a
// second stage does, nor one of two whose collectives nothing ties.
func TestCorrectLeavesAlone(t *testing.T) {
	later := func(list []Member, by int64, of ...int) []Member {
		for _, i := range of {
			list[i].Shift += by
		}
		return list
	}
	hostless := append(lockstep(1, -1), lockstep(1, -1)...)
	hostless[0].Host, hostless[1].Host = "", ""
	for name, members := range map[string][]Member{
		"as stated":       lockstep(5, -1),
		"25 µs":           later(lockstep(5, -1), 25_000, 1),
		"another stage":   later(lockstep(4, 0), 400_000, 2, 3),
		"two and two":     later(later(lockstep(5, -1), 400_000, 1, 3), 800_000, 2, 4),
		"two GPUs":        later(lockstep(2, 0), 400_000, 1),
		"half and half":   later(lockstep(4, -1), 400_000, 1, 3),
		"one of each":     later(later(lockstep(3, 0), 400_000, 1), 800_000, 2),
		"no host's clock": later(hostless, 400_000, 1),
	} {
		Match(members)
		for i, m := range members {
			if m.Moved != 0 {
				t.Errorf("%s: %d moved by %d", name, i, m.Moved)
			}
		}
	}
}
