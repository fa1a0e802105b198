package attrib_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/internal/attrib"
	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

var always = interval.Interval{Start: -1 << 60, End: 1 << 60}

// Sums of runs of calls give each range what looking at every pair of a call and a range gives, also where start/end
// ranges do not nest and where calls of a thread overlap.
func TestInclusiveTimeAgainstLooking(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		b := tracetest.New()
		p := b.Process(100, "p")
		threads := []*tracetest.Thread{p.Thread(1, ""), p.Thread(2, "")}
		for _, th := range threads {
			at := int64(0)
			for range 80 {
				at += rng.Int64N(8)
				end := at + rng.Int64N(6)
				th.Launch("k", at, end, tracetest.Kernel{Start: 10_000 + at, End: 10_000 + at + 1 + rng.Int64N(50)})
				if seed%3 > 0 || at == end { // else calls overlap
					at = end + 1
				}
			}
			for range 60 {
				start := rng.Int64N(at)
				th.StartEnd("r", start, start+rng.Int64N(200))
			}
		}
		x := open(t, b)
		calls, stacks := attrib.Join(x), attrib.NewStacks(x)
		got := attrib.Attribute(x, calls, stacks, always)
		incl, count := make([]int64, x.Ranges.Len()), make([]int32, x.Ranges.Len())
		var pairs int64
		for i, call := range calls.Kernel {
			stacks.Walk(call, func(r int32) bool {
				incl[r] += x.Kernels.Dur(i)
				count[r]++
				pairs++
				return true
			})
		}
		for r := range incl {
			if got.Inclusive[r] != incl[r] || got.InclCount[r] != count[r] {
				t.Fatalf("seed %d: range %d [%d,%d): %d ns of %d kernels, want %d of %d", seed, r, x.Ranges.Start(r), x.Ranges.End(r), got.Inclusive[r], got.InclCount[r], incl[r], count[r])
			}
		}
		if got.Pairs != pairs {
			t.Errorf("seed %d: %d pairs, want %d", seed, got.Pairs, pairs)
		}
		even := func(r int32) bool { return r%4 == 0 }
		nearest := stacks.Nearest(even)
		for call := range x.API.Len() {
			want := trace.None
			stacks.Walk(int32(call), func(r int32) bool {
				if even(r) {
					want = r
				}
				return want == trace.None
			})
			if r := nearest.Of(int32(call)); r != want {
				t.Fatalf("seed %d: call %d: nearest is %d, want %d", seed, call, r, want)
			}
		}
	}
}

// Ten thousand ranges open at once, as of requests in flight, must not cost ten thousand steps per kernel.
func TestManyOpenRanges(t *testing.T) {
	b, th := one()
	const n = 20_000
	for i := range int64(n) {
		th.StartEnd("request", 100*i, 100*i+100*n/2)
		th.Launch("k", 100*i+1, 100*i+5, tracetest.Kernel{Start: 100*i + 10, End: 100*i + 20})
	}
	x := open(t, b)
	calls, stacks := attrib.Join(x), attrib.NewStacks(x)
	start := time.Now()
	got := attrib.Attribute(x, calls, stacks, always)
	nearest := stacks.Nearest(func(int32) bool { return false })
	for call := range x.API.Len() {
		nearest.Of(int32(call))
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("took %v", took)
	}
	if got.Inclusive[0] != 10*n/2 || got.AttributedCount != n {
		t.Errorf("the first range holds %d ns, %d kernels are attributed", got.Inclusive[0], got.AttributedCount)
	}
}
