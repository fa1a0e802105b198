package timeline_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/timeline"
)

// The device in front is always the one that is next, of equal ones the first, and each is asked once per step: the cost
// of many devices is not their square.
func TestQueue(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		left := make([][]int64, rng.IntN(40))
		type step struct {
			at     int64
			device int
		}
		var want []step
		for d := range left {
			for range rng.IntN(6) {
				left[d] = append(left[d], rng.Int64N(20))
			}
			slices.Sort(left[d])
			for _, at := range left[d] {
				want = append(want, step{at, d})
			}
		}
		slices.SortFunc(want, func(a, b step) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.device, b.device)) })
		asked := 0
		next := func(d int) (int64, bool) {
			asked++
			if len(left[d]) == 0 {
				return 0, false
			}
			return left[d][0], true
		}
		q := timeline.NewQueue(len(left), next)
		for n, w := range want {
			d := q.First()
			if d < 0 || (step{left[d][0], d}) != w {
				t.Fatalf("seed %d: step %d is of device %d, want %+v", seed, n, d, w)
			}
			left[d] = left[d][1:]
			q.Advance(next(d))
		}
		if q.First() != -1 || asked != len(left)+len(want) {
			t.Errorf("seed %d: device %d is left, and %d were asked for %d steps", seed, q.First(), asked, len(want))
		}
	}
}
