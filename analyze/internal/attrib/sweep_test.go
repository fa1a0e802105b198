package attrib_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/attrib"
	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// What one pass over the work gives is what the algebra of intervals gives: classes, gaps, sums up to any moment, and what
// ran on any device.
func TestSweepAgainstAlgebra(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 2))
		b, th := one()
		names := []string{"gemm", "ncclKernel"}
		for range rng.IntN(60) {
			at := rng.Int64N(400)
			k := tracetest.Place{Device: rng.Int64N(2), Stream: 7 + rng.Int64N(3)}
			start := 20 + rng.Int64N(400)
			end := start + rng.Int64N(40)/(1+rng.Int64N(4))
			switch rng.IntN(3) {
			case 0:
				th.Memset(at, at+rng.Int64N(10), tracetest.Memset{Place: k, Start: start, End: end, Bytes: 1})
			default:
				th.Launch(names[rng.IntN(2)], at, at+rng.Int64N(10), tracetest.Kernel{Place: k, Start: start, End: end})
			}
		}
		if seed%2 == 0 {
			th.Call("cudaStreamSynchronize_v3020", 100, 180)
		}
		x := open(t, b)
		isComm := make([]bool, len(x.Kernels.Names))
		for n := range isComm {
			isComm[n] = x.Kernels.Names[n].Name == "ncclKernel"
		}
		window := interval.Interval{Start: rng.Int64N(60), End: 300 + rng.Int64N(200)}
		tl := attrib.NewTimeline(x, attrib.Join(x), window, isComm)
		var all interval.Set
		for i := range tl.Devices {
			d := &tl.Devices[i]
			var sets [attrib.Idle]interval.Set
			var kernels interval.Set
			for k := range d.Len() {
				w := d.Work(k)
				if k > 0 && w.Start < d.Start(k-1) || w.Start != d.Start(k) || w.End != d.End(k) || w.Kind != d.Kind(k) || w.Class != d.Class(k) || int(w.Row) != d.Row(k) || w.Call != d.Call(k) {
					t.Fatalf("seed %d: work %d is %+v", seed, k, w)
				}
				start, end := max(w.Start, window.Start), min(w.End, window.End)
				sets[w.Class].Add(start, end)
				if w.Kind == attrib.KernelWork {
					kernels.Add(start, end)
				}
			}
			compute := sets[attrib.Compute]
			comm := interval.Subtract(sets[attrib.Comm], compute)
			copies := interval.Subtract(sets[attrib.Copy], interval.Union(compute, sets[attrib.Comm]))
			busy := interval.Union(interval.Union(compute, sets[attrib.Comm]), sets[attrib.Copy])
			all = interval.Union(all, busy)
			if d.Compute != compute.Len() || d.ExposedComm != comm.Len() || d.ExposedCopy != copies.Len() || d.Idle != window.Len()-busy.Len() ||
				d.Comm != sets[attrib.Comm].Len() || d.Copies != sets[attrib.Copy].Len() || d.Kernels != kernels.Len() || !slices.Equal(d.CommExposed, comm) {
				t.Fatalf("seed %d: device %+v", seed, *d)
			}
			var holes interval.Set
			gaps := gapsOf(d)
			for _, g := range gaps {
				holes = append(holes, g.Interval)
				if sum(g.Cause[:]) != g.Len() {
					t.Fatalf("seed %d: causes of %+v", seed, g)
				}
			}
			if want := busy.Gaps(window.Start, window.End); !slices.Equal(holes, want) || d.GapCount != len(want) {
				t.Fatalf("seed %d: gaps %v, want %v", seed, holes, want)
			}
			moments := []int64{window.Start - 5, window.Start, window.End, window.End + 5}
			for range 20 {
				moments = append(moments, window.Start+rng.Int64N(window.Len()))
			}
			slices.Sort(moments)
			for k, got := range d.Sweep(nil, moments) {
				at := moments[k]
				in := min(max(at, window.Start), window.End) - window.Start
				if got.Compute != compute.Within(window.Start, at) || got.ExposedComm != comm.Within(window.Start, at) || got.ExposedCopy != copies.Within(window.Start, at) ||
					got.Idle != in-busy.Within(window.Start, at) || sum(got.Cause[:]) != got.Idle {
					t.Fatalf("seed %d: up to %d: %+v", seed, at, got)
				}
				var causes [attrib.Causes]int64
				for _, g := range gaps {
					from := g.Start
					for c, ns := range g.Cause {
						causes[c] += max(0, min(from+ns, at)-from)
						from += ns
					}
				}
				if got.Cause != causes {
					t.Fatalf("seed %d: up to %d: causes %v, want %v", seed, at, got.Cause, causes)
				}
			}
		}
		var together interval.Set
		tl.Together(func(start, end int64) { together = append(together, interval.Interval{Start: start, End: end}) })
		if !slices.Equal(together, all) {
			t.Fatalf("seed %d: together %v, want %v", seed, together, all)
		}
	}
}

func sum(list []int64) (s int64) {
	for _, v := range list {
		s += v
	}
	return s
}
