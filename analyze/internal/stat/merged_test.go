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

// 2, 4, 4 and 4, 5, 5, 7, 9 together are the textbook sample of mean 5 and population standard deviation 2; its percentiles
// are those of TestSummarize.
func TestMerged(t *testing.T) {
	both := stat.Merged{stat.Narrow([]uint32{2, 4, 4}), stat.Wide([]int64{4, 5, 5, 7, 9})}
	s := both.Summary()
	if s.N != 8 || s.Min != 2 || s.Max != 9 || s.P50 != 4.5 || s.Mean != 5 || s.Stddev != 2 || !near(s.P90, 7.6) || !near(s.P99, 8.86) {
		t.Errorf("%+v", *s)
	}
	if both.Len() != 8 || both.Sum() != 40 || both.Under(5) != 4 || both.SumUnder(5) != 14 {
		t.Errorf("%d numbers, sum %d, %d and %d under 5", both.Len(), both.Sum(), both.Under(5), both.SumUnder(5))
	}
	for _, none := range []stat.Merged{nil, {stat.Sample{}}, {stat.Sample{}, stat.Sample{}}} {
		if none.Len() != 0 || none.Summary() != nil || len(none.Histogram().Bins) != 0 {
			t.Errorf("%v is not empty", none)
		}
	}
}

// Samples together say what one sample of all their numbers says, whether they are few or many and whatever they range over.
func TestMergedIsOneSample(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	rapid.Check(t, func(t *rapid.T) {
		spread := rapid.SampledFrom([]int64{1, 3, 1000, 1 << 31, 1 << 62}).Draw(t, "spread")
		negative := rapid.Bool().Draw(t, "negative")
		var all []int64
		var parts stat.Merged
		for _, n := range rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 7, 3000}), 0, 4).Draw(t, "sizes") {
			list := make([]int64, n)
			for i := range list {
				if list[i] = rng.Int64N(spread); negative {
					list[i] -= spread / 2
				}
			}
			all = append(all, list...)
			var c stat.Sample
			for _, v := range list {
				c.Add(v)
			}
			s := c
			s.Sort(nil)
			parts = append(parts, s)
		}
		limit := rapid.Int64Range(-10, spread).Draw(t, "limit")
		want := stat.Summarize(all)
		one := stat.Wide(all)
		if got := parts.Summary(); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
		if !reflect.DeepEqual(parts.Histogram(), one.Histogram()) || parts.Sum() != one.Sum() || parts.Len() != len(all) ||
			parts.Under(limit) != one.Under(limit) || parts.SumUnder(limit) != one.Slice(0, one.Under(limit)).Sum() {
			t.Fatal("not the same")
		}
	})
}

// Mean and standard deviation do not depend on the order of the numbers, and are exact where they can be: of equal numbers the
// deviation is 0, however large they are, and the extremes of 64 bits are 2^63 - 1/2 away from their mean.
func TestMomentsAreExact(t *testing.T) {
	for _, v := range []int64{1, math.MaxUint32, 1 << 60, math.MaxInt64, math.MinInt64} {
		if s := stat.Summarize(slices.Repeat([]int64{v}, 4097)); s.Mean != float64(v) || s.Stddev != 0 {
			t.Errorf("of %d: mean %v, deviation %v", v, s.Mean, s.Stddev)
		}
	}
	if s := stat.Summarize([]int64{math.MinInt64, math.MaxInt64}); s.Mean != -0.5 || s.Stddev != 1<<63 {
		t.Errorf("extremes: mean %v, deviation %v", s.Mean, s.Stddev)
	}
	// 1e9 and 1e9+2: the squares differ by 4e9+4 of 1e18, which floating-point numbers do not hold
	if s := stat.Summarize([]int64{1e9, 1e9 + 2}); s.Mean != 1e9+1 || s.Stddev != 1 {
		t.Errorf("mean %v, deviation %v", s.Mean, s.Stddev)
	}
}
