package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestMiddle(t *testing.T) {
	for _, c := range []struct {
		list []int64
		want int64
	}{
		{[]int64{7}, 7},
		{[]int64{9, 4}, 6}, // 6.5
		{[]int64{5, 1, 3}, 3},
		{[]int64{8, 2, 4, 6}, 5},
		{[]int64{0, 0, 0, 0, 9}, 0},
		{[]int64{math.MaxInt64, math.MinInt64, 0}, 0},
	} {
		if got := Middle(slices.Clone(c.list)); got != c.want {
			t.Errorf("the median of %v is %d, want %d", c.list, got, c.want)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		list := make([]int64, 1+random.IntN(60))
		for i := range list {
			list[i] = random.Int64N(1 + random.Int64N(100))
		}
		sorted := slices.Clone(list)
		slices.Sort(sorted)
		n := len(sorted)
		want := sorted[(n-1)/2] + (sorted[n/2]-sorted[(n-1)/2])/2
		if got := Middle(list); got != want {
			t.Fatalf("the median of %v is %d, want %d", sorted, got, want)
		}
	}
}
