package ranks

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// three ranks of one host and two collectives, worked out by hand:
//
//	rank 0:  100..200           400..500
//	rank 1:  130..200           410..500
//	rank 2:     190..200      380..500
//
// Of the first, rank 2 comes last, 60 ns after the middle one and 60 after the one before it; it takes 10 ns, which is the
// transfer. Of the second, rank 1 comes last, 10 ns after the middle one, rank 0.
func three() []Member {
	times := [][2][2]int64{{{100, 200}, {400, 500}}, {{130, 200}, {410, 500}}, {{190, 200}, {380, 500}}}
	gemm := [][2]int64{{50, 200}, {60, 150}, {120, 180}} // of the time before each collective
	var list []Member
	for i, calls := range times {
		t := &Track{Rank: int64(i), World: 3, Kinds: []string{"Barrier"}, Acts: []string{"compute", "host"}}
		before := int64(0)
		for k, c := range calls {
			gap := c[0] - before
			t.Add(Call{Start: c[0], End: c[1], Comm: -1},
				[]Part{{0, gemm[i][k]}, {1, gap - gemm[i][k]}})
			before = c[1]
		}
		list = append(list, Member{Track: t, Host: "one"})
	}
	return list
}

func TestStudy(t *testing.T) {
	members := three()
	sets, alone := matched(members)
	if len(sets) != 1 || len(alone) != 0 {
		t.Fatalf("%d sets, alone %v", len(sets), alone)
	}
	r := Study(Align(members, sets), sets)
	want := []Rank{
		{N: 2, Time: 200, Wait: 90 + 10, Transfer: 10 + 90},
		{N: 2, Time: 160, Wait: 60 + 0, Transfer: 10 + 90, Last: 1, Late: 10, Blame: 10, Worst: 10, Told: 1,
			Causes: []Cause{{"host", 60 - 0}, {"compute", 150 - 190}}},
		{N: 2, Time: 130, Wait: 0 + 30, Transfer: 10 + 90, Last: 1, Late: 60, Blame: 60, Worst: 60, Told: 1,
			Causes: []Cause{{"compute", 120 - 55}, {"host", 70 - 60}}},
	}
	if !reflect.DeepEqual(r.Ranks, want) {
		t.Errorf("\n%+v\nwant\n%+v", r.Ranks, want)
	}
	if slowest(r) != 2 || r.Collectives != 2 || r.Unmatched != 0 || r.SpreadP99 != 0 || r.Compared != 2 {
		t.Errorf("%+v", r)
	}
	// Two columns: rank 2 was 60 ns late in the first and early in the second.
	if len(r.Heat) != 3 || r.Heat[2][0] != 60 || r.Heat[2][1] != 0 || r.Heat[1][1] != 10 {
		t.Errorf("heat %v", r.Heat)
	}
}

// A rank whose collectives are of other kinds is matched with nobody.
func TestOtherKindsStayAlone(t *testing.T) {
	members := three()
	members[1].Kinds = []string{"AllReduce"}
	sets, alone := matched(members)
	if len(sets) != 1 || !slices.Equal(sets[0].Members, []int{0, 2}) || !slices.Equal(alone, []int{1}) {
		t.Errorf("%+v, alone %v", sets, alone)
	}
}

// Two groups that run the same collectives at other times are two sets.
func TestGroupsOfOneShape(t *testing.T) {
	members := append(three(), three()...)
	for i := 3; i < 6; i++ {
		members[i].Shift = 1_000
	}
	sets, alone := matched(members)
	if len(sets) != 2 || !slices.Equal(sets[1].Members, []int{3, 4, 5}) || len(alone) != 0 {
		t.Errorf("%+v, alone %v", sets, alone)
	}
}

// Clocks whose ends do not fit stay apart; who came last then goes by who took least.
func TestNoClock(t *testing.T) {
	members := three()
	for i := range members {
		for k := range members[i].Calls {
			members[i].Calls[k].Start *= maxResidual
			members[i].Calls[k].End *= maxResidual
		}
	}
	members[2].Host = "other"
	members[2].Calls[1].Start += 10 * maxResidual
	members[2].Calls[1].End += 10 * maxResidual
	sets := Match(members)
	a := Align(members, sets)
	if a.Clocks[1].Known {
		t.Fatalf("%+v", a.Clocks[1])
	}
	r := Study(a, sets)
	if r.Compared != 0 || r.Ranks[2].Last != 1 || r.Ranks[2].Blame != 60*maxResidual || r.Ranks[2].Wait != 30*maxResidual {
		t.Errorf("%+v", r.Ranks[2])
	}
}

// Whatever the calls: waiting and transfer add up to the time in collectives, the most patient member never waits less
// than nothing, and what is written is read back.
func TestStudyCloses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(t, "calls")
		var members []Member
		for i := range rapid.IntRange(1, 6).Draw(t, "ranks") {
			tr := &Track{Rank: int64(i), World: -1, PID: 5, Device: rapid.Int64Range(-1, 3).Draw(t, "device"), From: "flag",
				Kinds: []string{"AllReduce", "Barrier"}, Comms: []string{"a"}, Acts: []string{"x", "y"}}
			at := rapid.Int64Range(-1000, 1000).Draw(t, "from")
			for k := range n {
				c := Call{Kind: int32(k % 2), Comm: -1, Start: at + rapid.Int64Range(-50, 100).Draw(t, "gap")}
				if rapid.Bool().Draw(t, "payload") {
					c.Comm = 0
				}
				c.End = c.Start + rapid.Int64Range(0, 100).Draw(t, "dur")
				at = c.End
				tr.Add(c, []Part{{int32(k % 2), rapid.Int64Range(0, 9).Draw(t, "part")}}[:k%2])
			}
			members = append(members, Member{Track: tr, Host: rapid.SampledFrom([]string{"", "h", "i"}).Draw(t, "host")})
		}
		sets, alone := matched(members)
		r := Study(Align(members, sets), sets)
		last := int64(0)
		for i := range r.Ranks {
			x := &r.Ranks[i]
			last += x.Last
			if x.Time != x.Wait+x.Transfer || x.Wait < 0 || x.Late < 0 || x.Blame < 0 {
				t.Fatalf("%+v", x)
			}
			if slices.Contains(alone, i) && x.N > 0 {
				t.Fatalf("rank %d is alone and took part in %d", i, x.N)
			}
		}
		if last != r.Collectives {
			t.Fatalf("somebody comes last in %d of %d", last, r.Collectives)
		}
		for _, h := range r.Heat {
			for _, v := range h {
				if v < 0 || math.IsInf(v, 0) {
					t.Fatalf("heat %v", h)
				}
			}
		}
		for i := range members {
			b, err := json.Marshal(members[i].Track)
			if err != nil {
				t.Fatal(err)
			}
			var back Track
			if err := json.Unmarshal(b, &back); err != nil {
				t.Fatalf("%v: %s", err, b)
			}
			again, err := json.Marshal(&back)
			if err != nil || string(again) != string(b) {
				t.Fatalf("%v\n%s\n%s", err, b, again)
			}
		}
	})
}

// Text of a track that nobody wrote is an error, never a panic.
func FuzzTrack(f *testing.F) {
	b, err := json.Marshal(three()[0].Track)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var tr Track
		if json.Unmarshal(b, &tr) != nil {
			return
		}
		members := []Member{{Track: &tr, Host: "a"}, {Track: &tr, Host: "b"}}
		sets := Match(members)
		Study(Align(members, sets), sets)
	})
}

// slowest is the member that the others waited for longest; -1 where nobody waited.
func slowest(r *Result) int {
	best := -1
	for i := range r.Ranks {
		if b := r.Ranks[i].Blame; b > 0 && (best < 0 || b > r.Ranks[best].Blame) {
			best = i
		}
	}
	return best
}

// matched are the sets of members, and the members that are in none.
func matched(members []Member) (sets []Set, alone []int) {
	sets = Match(members)
	return sets, lists.Where(len(members), func(m int) bool {
		return !slices.ContainsFunc(sets, func(s Set) bool { return slices.Contains(s.Members, m) })
	})
}
