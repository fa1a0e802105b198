package kit

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

func numbers(s stat.Sample) (list []int64) {
	for i := range s.Len() {
		list = append(list, s.At(i))
	}
	return list
}

// Events 2 to 9 by their number's last bit, 5 left out; one value that needs more than 32 bits changes nothing.
func TestGather(t *testing.T) {
	for _, large := range []int64{70, math.MaxUint32 + 7} {
		value := func(i int) int64 {
			if i == 7 {
				return large
			}
			return int64(10 * (12 - i))
		}
		g := Gather(nil, 3, 2, 10, func(i int) int32 {
			if i == 5 {
				return -1
			}
			return int32(i % 2)
		}, value).Sort()
		if got := numbers(g.Of(0)); !slices.Equal(got, []int64{40, 60, 80, 100}) { // 8, 6, 4, 2
			t.Errorf("even: %v", got)
		}
		want := []int64{30, 90, large} // 9, 3, 7
		slices.Sort(want)
		if got := numbers(g.Of(1)); !slices.Equal(got, want) {
			t.Errorf("odd: %v", got)
		}
		if g.Keys() != 3 || g.Of(2).Len() != 0 {
			t.Errorf("%d keys, %v", g.Keys(), numbers(g.Of(2)))
		}
		list := g.Rank(func(a, b int) int { return cmp.Compare(a, b) })
		if len(list) != 2 || list[0].Total < list[1].Total || list[0].Count+list[1].Count != 7 {
			t.Errorf("ranked: %+v", list)
		}
		all := stat.Summarize(slices.Concat(numbers(g.Of(0)), numbers(g.Of(1))))
		if got := g.Together([]int{0, 1, 2}).Summary(); *got != *all {
			t.Errorf("together: %+v", *got)
		}
		if got := g.Everything().Summary(); *got != *all {
			t.Errorf("everything: %+v", *got)
		}
	}
}

// A tiny kernel takes at most 5 µs, one under 5 µs less: of 1, 5000, 5001 and 30000 ns two are tiny, one is under 5 µs and
// three are under 10 µs.
// Keys on both sides of what 16 bits hold, the first that does not fit in the middle.
func TestGatherManyKeys(t *testing.T) {
	keys := []int32{3, math.MaxUint16 - 1, -1, math.MaxUint16, 3, 70_000, -1}
	g := Gather(nil, 0, 0, len(keys), func(i int) int32 { return keys[i] }, func(i int) int64 { return int64(10 * i) })
	for key, want := range map[int][]int64{3: {0, 40}, math.MaxUint16 - 1: {10}, math.MaxUint16: {30}, 70_000: {50}, 4: nil} {
		if got := numbers(g.Of(key)); !slices.Equal(got, want) {
			t.Errorf("key %d: %v, want %v", key, got, want)
		}
	}
}

func TestStatsOf(t *testing.T) {
	d := statsOf(stat.Merged{stat.Narrow([]uint32{1, 5000, 5001, 30000})})
	if d.Count != 4 || d.Total != 40002 || d.Tiny != 2 || d.tinyTotal != 5001 || d.Under != [3]int64{1, 3, 3} || d.Summary.Max != 30000 {
		t.Errorf("%+v", d)
	}
}

// The longest events are those that sorting all of them gives, the earlier of equal ones.
func TestLongest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		durs := make([]int64, rng.IntN(300))
		for i := range durs {
			durs[i] = rng.Int64N(1 + rng.Int64N(40))
		}
		n := 1 + rng.IntN(60)
		want := make([]int, len(durs))
		for i := range want {
			want[i] = i
		}
		dur := func(i int) int64 { return durs[i] }
		slices.SortStableFunc(want, func(a, b int) int { return cmp.Compare(dur(b), dur(a)) })
		want = want[:min(n, len(want))]
		if got := (&Options{DetailRows: n}).LongestFirst(0, len(durs), dur); !slices.Equal(got, want) {
			t.Fatalf("%d of %v: %v, want %v", n, durs, got, want)
		}
	}
}

// Pairs and combinations are numbered in order of first appearance, however many there are.
func TestNumberingOfPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var p lists.Numbering[Pair]
	narrow, wide := NewCombos(50, 30), NewCombos(1<<20, 1<<20) // narrow: some seconds are beyond
	seen := map[Pair]int32{}
	for range 20_000 {
		x := Pair{rng.Int32N(50), rng.Int32N(70)}
		want, ok := seen[x]
		if !ok {
			want = int32(len(seen))
			seen[x] = want
		}
		if a, b, c := p.Of(x), narrow.Of(x.A, x.B), wide.Of(x.A, x.B); a != want || b != want || c != want {
			t.Fatalf("%v is %d, %d and %d, want %d", x, a, b, c, want)
		}
		if p.Keys[want] != x || narrow.Keys[want] != x {
			t.Fatalf("number %d is %v", want, p.Keys[want])
		}
	}
	if n := new(lists.Numbering[Pair]).Of(Pair{-1, -1}); n != 0 {
		t.Errorf("the first pair is number %d", n)
	}
}

// What panics once is raised for everyone who asks, and what works is worked out once.
func TestOnce(t *testing.T) {
	in := &Input{}
	calls := 0
	for range 3 {
		if v := Once(in, "good", func() int { calls++; return 7 }); v != 7 || calls != 1 {
			t.Errorf("value %d after %d calls", v, calls)
		}
		func() {
			defer func() {
				if p := recover(); p != "no" {
					t.Errorf("recovered %v", p)
				}
			}()
			Once(in, "bad", func() int { panic("no") })
		}()
	}
}
