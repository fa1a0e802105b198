package timeline_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/timeline"
)

// The device in front is always the one that is next, of equal ones the first.
func TestQueue(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		left := make([][]int64, rng.IntN(40))
		type step struct {
			at     int64
			device int32
		}
		var want []step
		var q timeline.Queue[int]
		for d := range left {
			for range rng.IntN(6) {
				left[d] = append(left[d], rng.Int64N(20))
			}
			slices.Sort(left[d])
			for _, at := range left[d] {
				want = append(want, step{at, int32(d)})
			}
			if len(left[d]) > 0 {
				q.Push(timeline.Next[int]{At: left[d][0], Order: int32(d)})
			}
		}
		slices.SortFunc(want, func(a, b step) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.device, b.device)) })
		for n, w := range want {
			if len(q) == 0 || (step{q.At(), q[0].Order}) != w {
				t.Fatalf("seed %d: step %d is %v, want %+v", seed, n, q, w)
			}
			d, k := q[0].Order, q[0].What+1
			if k < len(left[d]) {
				q.Replace(timeline.Next[int]{At: left[d][k], Order: d, What: k})
			} else if q.Pop() != k-1 {
				t.Fatalf("seed %d: the wrong one of device %d is taken", seed, d)
			}
		}
		if len(q) > 0 {
			t.Errorf("seed %d: %v are left", seed, q)
		}
	}
}

// Whatever is pushed comes out by time, and all of it does.
func TestQueueComesByTime(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var q timeline.Queue[int64]
		held := map[int64]int{} // by time
		for range 1 + random.IntN(40) {
			at := random.Int64N(12)
			q.Push(timeline.Next[int64]{At: at, What: at})
			held[at]++
			if random.IntN(3) > 0 {
				continue
			}
			least := int64(99)
			for at, n := range held {
				if n > 0 {
					least = min(least, at)
				}
			}
			if got := q.Pop(); got != least {
				t.Fatalf("the next one is of %d, want %d", got, least)
			}
			held[least]--
		}
		last := int64(-1)
		for len(q) > 0 {
			at := q.Pop()
			if at < last {
				t.Fatalf("%d comes after %d", at, last)
			}
			last = at
			held[at]--
		}
		for at, n := range held {
			if n != 0 {
				t.Fatalf("%d of time %d are left", n, at)
			}
		}
	}
}
