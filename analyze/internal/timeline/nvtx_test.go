package timeline_test

import (
	"math/rand/v2"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

var always = interval.Interval{Start: -1 << 60, End: 1 << 60}

// Sums of runs of calls give each range what looking at every pair of a call and a range gives, also where start/end
// ranges do not nest and where calls of a thread overlap.
func TestInclusiveTimeAgainstLooking(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		b, n := tracetest.New(), 0
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
				th.StartEnd(rangeName(n), start, start+rng.Int64N(200))
				n++
			}
		}
		x := open(t, b)
		calls, contexts := timeline.Join(x), timeline.NewContexts(x)
		got := timeline.Attribute(x, calls, contexts, always)
		type sums struct{ incl, pairs, self, selfs int64 }
		want := make([]sums, len(x.Ranges.Names))
		var pairs int64
		for i, call := range calls.Kernel {
			innermost := true
			contexts.Walk(call, func(name int32) bool {
				want[name].incl += x.Kernels.Dur(i)
				want[name].pairs++
				pairs++
				if innermost {
					want[name].self += x.Kernels.Dur(i)
					want[name].selfs++
				}
				innermost = false
				return true
			})
		}
		for _, r := range got.Ranges {
			if sum := (sums{r.Inclusive, r.Pairs, r.Self, r.SelfCount}); sum != want[r.Name] {
				t.Fatalf("seed %d: range %s: %+v, want %+v", seed, x.Ranges.Names[r.Name].Text, sum, want[r.Name])
			}
			want[r.Name] = sums{}
		}
		for name, left := range want {
			if left != (sums{}) {
				t.Fatalf("seed %d: range %s is missing", seed, x.Ranges.Names[name].Text)
			}
		}
		if pairsOf(got) != pairs {
			t.Errorf("seed %d: %d pairs, want %d", seed, pairsOf(got), pairs)
		}
		even := func(name int32) bool { return name%4 == 0 }
		nearest := contexts.Nearest(even)
		for call := range x.API.Len() {
			want := trace.None
			contexts.Walk(int32(call), func(name int32) bool {
				if even(name) {
					want = name
				}
				return want == trace.None
			})
			if name := nearest.Of(int32(call)); name != want {
				t.Fatalf("seed %d: call %d: nearest is %d, want %d", seed, call, name, want)
			}
		}
	}
}

// Ten thousand ranges open at once, as of requests in flight: call i is inside min(i+1, n/2) of them.
func TestManyOpenRanges(t *testing.T) {
	b, th := one()
	const n = 20_000
	for i := range int64(n) {
		th.StartEnd("request", 100*i, 100*i+100*n/2)
		th.Launch("k", 100*i+1, 100*i+5, tracetest.Kernel{Start: 100*i + 10, End: 100*i + 20})
	}
	x := open(t, b)
	calls, contexts := timeline.Join(x), timeline.NewContexts(x)
	got := timeline.Attribute(x, calls, contexts, always)
	nearest := contexts.Nearest(func(int32) bool { return false })
	for call := range x.API.Len() {
		if nearest.Of(int32(call)) != trace.None {
			t.Fatal("nothing has the property")
		}
	}
	const pairs = n/2*(n/2+1)/2 + n/2*n/2
	if pairsOf(got) != pairs || got.Ranges[0].Inclusive != 10*pairs || got.AttributedCount != n {
		t.Errorf("%d pairs, want %d; %d kernels are attributed", pairsOf(got), pairs, got.AttributedCount)
	}
}

// pairsOf is how many pairs there are of a kernel and a range around it.
func pairsOf(x *timeline.NVTX) (sum int64) {
	for i := range x.Ranges {
		sum += x.Ranges[i].Pairs
	}
	return sum
}
