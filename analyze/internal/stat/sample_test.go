package stat_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nsys-llm/explain/analyze/internal/stat"
)

// Sorting by digits gives what sorting by comparison gives, for long lists of every range.
func TestSort(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for name, draw := range map[string]func() int64{
		"durations":        func() int64 { return 1000 + rng.Int64N(1<<20) },
		"few values":       func() int64 { return 7 * rng.Int64N(3) },
		"one value":        func() int64 { return 42 },
		"32 bits":          func() int64 { return rng.Int64N(1 << 32) },
		"negative ones":    func() int64 { return rng.Int64N(1<<40) - 1<<39 },
		"all of 64 bits":   func() int64 { return int64(rng.Uint64()) },
		"the two extremes": func() int64 { return []int64{math.MinInt64, math.MaxInt64}[rng.IntN(2)] },
	} {
		for _, n := range []int{0, 1, 5, 4095, 4096, 20_000} {
			wide := make([]int64, n)
			narrow := make([]uint32, n)
			for i := range wide {
				wide[i] = draw()
				narrow[i] = uint32(wide[i])
			}
			wantWide, wantNarrow := slices.Sorted(slices.Values(wide)), slices.Sorted(slices.Values(narrow))
			stat.Sort(wide)
			stat.SortIn(narrow, make([]uint32, n))
			if !slices.Equal(wide, wantWide) || !slices.Equal(narrow, wantNarrow) {
				t.Errorf("%s: %d numbers are not sorted", name, n)
			}
		}
	}
}

// A sample says the same of its numbers whether it holds them in 32 bits or in 64.
func TestSampleOfEitherWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Int64Range(0, math.MaxUint32), 0, 100).Draw(t, "list")
		narrow := make([]uint32, len(list))
		for i, v := range list {
			narrow[i] = uint32(v)
		}
		limit := rapid.Int64Range(-5, 1<<33).Draw(t, "limit")
		a, b := stat.Narrow(narrow), stat.Wide(slices.Clone(list))
		a.Sort(nil)
		b.Sort(nil)
		want := stat.Summarize(list)
		for _, s := range []stat.Sample{a, b} {
			under := 0
			var sum int64
			for i, v := range list { // sorted by Summarize
				sum += v
				if v < limit {
					under++
				}
				if s.At(i) != v {
					t.Fatalf("number %d is %d, want %d", i, s.At(i), v)
				}
			}
			if s.Len() != len(list) || s.Sum() != sum || s.Under(limit) != under || !reflect.DeepEqual(s.Summary(), want) || !reflect.DeepEqual(s.Histogram(), stat.Histogram(list)) {
				t.Fatalf("%d numbers, sum %d, %d under %d, %+v", s.Len(), s.Sum(), s.Under(limit), limit, s.Summary())
			}
			if len(list) > 1 && (s.Slice(1, len(list)).Sum() != sum-list[0] || s.Slice(1, 1).Len() != 0) {
				t.Fatal("slices do not add up")
			}
		}
	})
}

// Collected samples hold all numbers, and get wide with the first that needs it.
func TestCollect(t *testing.T) {
	numbers := func(s stat.Sample) (list []int64) {
		for i := range s.Len() {
			list = append(list, s.At(i))
		}
		return list
	}
	for _, list := range [][]int64{{1, 2, math.MaxUint32}, {1, 2, math.MaxUint32 + 1, 3}, {-1, 5}, nil} {
		c := stat.Narrow(make([]uint32, 2)[:0])
		for _, v := range list {
			c.Add(v)
		}
		if got := numbers(c); !slices.Equal(got, list) {
			t.Errorf("collected %v, want %v", got, list)
		}
	}
}
