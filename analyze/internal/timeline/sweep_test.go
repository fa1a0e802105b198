package timeline_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// What one pass over the work gives is what looking at every nanosecond gives: classes, gaps, sums up to any moment, and
// what ran on any device.
func TestSweepAgainstLooking(t *testing.T) {
	for seed := range uint64(longtest.N(20, 60)) {
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
		tl := timeline.New(x, timeline.Join(x), window, isComm)
		const end = 600 // nothing lasts longer
		var all [end]bool
		for _, d := range tl.Devices {
			var runs [timeline.Idle][end]bool // by class and ns of the window
			var kernels [end]bool
			for k := range d.Len() {
				w := d.Work(k)
				if k > 0 && w.Start < d.Start(k-1) || w.Start != d.Start(k) || w.End != d.End(k) || w.Kind != d.Kind(k) || int(w.Row) != d.Row(k) || w.Call != d.Call(k) {
					t.Fatalf("seed %d: work %d is %+v", seed, k, w)
				}
				for at := max(w.Start, window.Start); at < min(w.End, window.End); at++ {
					runs[d.Class(k)][at] = true
					kernels[at] = kernels[at] || w.Kind == timeline.KernelWork
					all[at] = true
				}
			}
			gaps := gapsOf(d)
			// upTo is what a moment's sums must be, looked up ns by ns.
			upTo := func(moment int64) (want timeline.Times, comm, copies, kernelTime int64, exposed interval.Set) {
				for at := window.Start; at < min(moment, window.End); at++ {
					switch {
					case runs[timeline.Compute][at]:
						want.Compute++
					case runs[timeline.Comm][at]:
						want.ExposedComm++
						exposed.Add(at, at+1)
					case runs[timeline.Copy][at]:
						want.ExposedCopy++
					default:
						want.Idle++
						for _, g := range gaps {
							from := g.Start
							for c, ns := range g.Cause {
								if at >= from && at < from+ns {
									want.Cause[c]++
								}
								from += ns
							}
						}
					}
					for of, is := range map[*int64]bool{&comm: runs[timeline.Comm][at], &copies: runs[timeline.Copy][at], &kernelTime: kernels[at]} {
						if is {
							*of++
						}
					}
				}
				return want, comm, copies, kernelTime, exposed
			}
			want, comm, copies, kernelTime, exposed := upTo(window.End)
			if d.Times != want || d.Comm != comm || d.Copies != copies || d.Kernels != kernelTime || !slices.Equal(d.CommExposed, exposed) || sum(want.Cause[:]) != want.Idle {
				t.Fatalf("seed %d: device %+v, want %+v, %d, %d, %d, %v", seed, *d, want, comm, copies, kernelTime, exposed)
			}
			for k, g := range gaps {
				busy := false
				for at := g.Start; at < g.End; at++ {
					busy = busy || runs[timeline.Compute][at] || runs[timeline.Comm][at] || runs[timeline.Copy][at]
				}
				if busy || g.Len() <= 0 || sum(g.Cause[:]) != g.Len() || k > 0 && g.Start <= gaps[k-1].End {
					t.Fatalf("seed %d: gap %+v", seed, g)
				}
			}
			if d.GapCount != len(gaps) {
				t.Fatalf("seed %d: %d gaps, want %d", seed, d.GapCount, len(gaps))
			}
			moments := []int64{window.Start - 5, window.Start, window.End, window.End + 5}
			for range 20 {
				moments = append(moments, window.Start+rng.Int64N(window.Len()))
			}
			slices.Sort(moments)
			v := timeline.Visitor{Moments: moments}
			d.Visit(nil, &v)
			for k, got := range v.Times {
				if want, _, _, _, _ := upTo(moments[k]); got != want {
					t.Fatalf("seed %d: up to %d: %+v, want %+v", seed, moments[k], got, want)
				}
			}
		}
		var together, want interval.Set
		tl.Together(func(start, end int64) { together = append(together, interval.Interval{Start: start, End: end}) })
		for at, is := range all {
			if is {
				want.Add(int64(at), int64(at)+1)
			}
		}
		if !slices.Equal(together, want) {
			t.Fatalf("seed %d: together %v, want %v", seed, together, want)
		}
		last := int64(-1)
		n := 0
		tl.ByStart(func(d *timeline.Device, i int) {
			if d.Start(i) < last {
				t.Fatalf("seed %d: work that starts at %d comes after %d", seed, d.Start(i), last)
			}
			last = d.Start(i)
			n++
		})
		for i := range tl.Devices {
			n -= tl.Devices[i].Len()
		}
		if n != 0 {
			t.Fatalf("seed %d: %d pieces of work too many", seed, n)
		}
	}
}

func sum(list []int64) (s int64) {
	for _, v := range list {
		s += v
	}
	return s
}
