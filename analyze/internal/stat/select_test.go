package stat_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nsys-llm/explain/analyze/internal/stat"
)

// A summary without sorting is the one of the sorted sample, to the bit, whatever the numbers are spread over.
func TestSummaryOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for name, draw := range map[string]func() uint32{
		"durations":        func() uint32 { return 1000 + rng.Uint32N(1<<20) },
		"few values":       func() uint32 { return 7 * rng.Uint32N(3) },
		"one value":        func() uint32 { return 42 },
		"32 bits":          rng.Uint32,
		"a long tail":      func() uint32 { return uint32(min(math.MaxUint32, math.Exp(8+3*rng.NormFloat64()))) },
		"the two extremes": func() uint32 { return rng.Uint32N(2) * math.MaxUint32 },
		"neighbours":       func() uint32 { return 1<<20 + rng.Uint32N(3) },
	} {
		for _, n := range []int{0, 1, 5, 4095, 4096, 4097, 20_000} {
			list := make([]uint32, n)
			for i := range list {
				list[i] = draw()
			}
			sorted := stat.Narrow(slices.Clone(list))
			sorted.Sort(nil)
			if diff := cmp.Diff(sorted.Summary(), stat.Narrow(list).SummaryOnce()); diff != "" {
				t.Errorf("%s, %d numbers (-sorted +selected):\n%s", name, n, diff)
			}
		}
	}
	// 1 to 5,000: the median is halfway between 2,500 and 2,501
	list := make([]uint32, 5000)
	for i := range list {
		list[i] = uint32(5000 - i)
	}
	if s := stat.Narrow(list).SummaryOnce(); s.P50 != 2500.5 || s.P90 != 4500.1 || s.Min != 1 || s.Max != 5000 || s.Mean != 2500.5 {
		t.Errorf("1 to 5000: %+v", *s)
	}
}

func BenchmarkSummaryOnce(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 3))
	list, room := make([]uint32, 1<<20), make([]uint32, 1<<20)
	for i := range list {
		list[i] = uint32(math.Exp(9 + 2*rng.NormFloat64()))
	}
	work := slices.Clone(list)
	b.Run("sorted", func(b *testing.B) {
		for b.Loop() {
			copy(work, list)
			s := stat.Narrow(work)
			s.Sort(room)
			s.Summary()
		}
	})
	b.Run("selected", func(b *testing.B) {
		for b.Loop() {
			copy(work, list)
			stat.Narrow(work).SummaryOnce()
		}
	})
}
