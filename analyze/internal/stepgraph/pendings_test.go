package stepgraph

import (
	"math/rand/v2"
	"testing"
)

// Whatever is pushed comes out by time, and all of it does.
func TestPendingsComeByTime(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var h pendings
		held := map[int64]int{} // by time
		for i := range int32(1 + random.IntN(40)) {
			at := random.Int64N(12)
			h.push(pending{at, i, i})
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
			if got := h.pop(); got.at != least {
				t.Fatalf("the next one is of %d, want %d", got.at, least)
			}
			held[least]--
		}
		last := int64(-1)
		for len(h) > 0 {
			x := h.pop()
			if x.at < last {
				t.Fatalf("%d comes after %d", x.at, last)
			}
			last = x.at
			held[x.at]--
		}
		for at, n := range held {
			if n != 0 {
				t.Fatalf("%d of time %d are left", n, at)
			}
		}
	}
}
