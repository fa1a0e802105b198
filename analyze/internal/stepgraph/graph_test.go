package stepgraph_test

import (
	"math/rand/v2"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/stepgraph"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

const us = 1_000

// every is the units that start at each piece of a stream's work whose number is a multiple of n.
func every(c *capture, n int) *stepgraph.Units {
	u := &stepgraph.Units{Of: make([]workunit.Members, len(c.Timeline.Devices))}
	for d := range c.Timeline.Devices {
		of := spill.NewIndexes(nil, c.Timeline.Devices[d].Len())
		for i := range of.Len() {
			if i%n == 0 {
				if last := len(u.First) - 1; i > 0 {
					u.Next[last] = c.Number(d, i)
				}
				u.First, u.Next = append(u.First, c.Number(d, i)), append(u.Next, trace.None)
			}
			of.Set(i, int32(len(u.First)-1))
		}
		u.Of[d] = workunit.NewMembers(of)
	}
	return u
}

// A queue of 200: launch i returns half a µs after kernel i-200 starts. Kernels take 10 µs, launches 2. The host is never what the
// GPU waits for, though its calls take as long as kernels: twice as fast, the kernels take half as long.
func TestLaunchesThatWaitForRoom(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	var starts []int64
	host, free := int64(0), int64(0)
	for i := range 2000 {
		from, to := host, host+2*us
		if i >= 200 {
			to = max(to, starts[i-200]+us/2)
		}
		start := max(to+3*us, free)
		starts, free = append(starts, start), start+10*us
		th.Launch("gemm", from, to, tracetest.Kernel{Start: start, End: free})
		host = to + us
	}
	c := open(t, b.WriteTB(t))
	if c.Found.Held < 1700 {
		t.Errorf("%d launches waited for room, want about 1800", c.Found.Held)
	}
	u := every(c, 100)
	times := c.Replay(c.span, u, &stepgraph.Change{Work: c.kernels("gemm", 0.5)})
	for i := 3; i < 19; i++ {
		if times[i] < 495*us || times[i] > 505*us {
			t.Errorf("100 kernels of half the time take %d", times[i])
		}
	}
	for i, ns := range c.Replay(c.span, u, &stepgraph.Change{HostFree: true})[3:19] {
		if ns < 995*us || ns > 1000*us {
			t.Errorf("unit %d of a free host takes %d", i, ns)
		}
	}
}

// Whatever a capture holds, a replay without a change gives every unit its time; a path from any piece of work leaves no
// time out and ends where it was told to; time without compute is all of it.
func TestAnyCaptureIsReplayed(t *testing.T) {
	for seed := range uint64(longtest.N(20, 60)) {
		c := open(t, anything(seed).WriteTB(t))
		u := every(c, 3)
		for i, ns := range c.Replay(c.span, u, &stepgraph.Change{}) {
			if u.Next[i] == trace.None {
				continue
			}
			if want := c.work(u.Next[i]).Start - c.work(u.First[i]).Start; ns != want && ns >= 0 {
				t.Errorf("seed %d: unit %d took %d, replayed %d", seed, i, want, ns)
			}
		}
		for _, change := range []stepgraph.Change{{HostFree: true}, {Graph: true}, {Overlap: true}, {Typical: true}, {NoWait: func(int32) bool { return true }}} {
			for i, ns := range c.Replay(c.span, u, &change) {
				if ns < 0 && u.Next[i] != trace.None && c.work(u.Next[i]).Start < c.span.End {
					t.Errorf("seed %d: %+v: unit %d is not timed", seed, change, i)
				}
			}
		}
		for d, device := range c.Timeline.Devices {
			for i := range device.Len() {
				at := device.Start(i)
				c.Walk(c.Number(d, i), c.span.Start, func(s *stepgraph.Step) {
					if s.End != at || s.Start >= s.End {
						t.Fatalf("seed %d: step %+v after %d", seed, *s, at)
					}
					at = s.Start
				})
				if at != c.span.Start {
					t.Fatalf("seed %d: the path ends at %d", seed, at)
				}
			}
			var sum int64
			at := c.span.Start
			c.Absent(d, func(_ stepgraph.Absence, start, end int64) {
				if start < at || end <= start {
					t.Fatalf("seed %d: %d to %d after %d", seed, start, end, at)
				}
				sum, at = sum+end-start, end
			})
			if want := c.span.Len() - device.Compute; sum != want {
				t.Errorf("seed %d: %d without compute, of %d", seed, sum, want)
			}
		}
	}
}

// anything is a capture of threads, streams and devices that do anything, possible or not: work that starts before its
// launch, overlaps on its stream, ends after who waited for it, has no length, no call or no process.
func anything(seed uint64) *tracetest.Builder {
	rng := rand.New(rand.NewPCG(seed, 1))
	b := tracetest.New(tracetest.Schema("3.25.0"))
	names := []string{"gemm", "norm", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"}
	for p := range 1 + rng.Int64N(2) {
		proc := b.Process(10+p, "p")
		for n := range 1 + rng.Int64N(3) {
			th := proc.Thread(10+10*p+n, "")
			now := rng.Int64N(50)
			for range 60 {
				now += rng.Int64N(30)
				from, to := now, now+rng.Int64N(20)
				place := tracetest.Place{Device: rng.Int64N(2), Stream: 7 + rng.Int64N(3)}
				start := max(0, to+rng.Int64N(40)-10)
				end := start + rng.Int64N(30)
				switch rng.IntN(9) {
				case 0, 1, 2:
					th.Launch(names[rng.IntN(3)], from, to, tracetest.Kernel{Place: place, Start: start, End: end})
				case 3:
					th.Memcpy(from, to, tracetest.Memcpy{Place: place, Start: start, End: end, Bytes: 9, Kind: tracetest.HtoD, Dst: tracetest.DeviceMemory})
				case 4:
					th.StreamSynchronize(from, to, place.Device, place.Stream)
				case 5:
					th.EventRecord(from, to, place.Device, place.Stream, 1+rng.Int64N(3))
				case 6:
					th.StreamWaitEvent(from, to, place.Device, place.Stream, 1+rng.Int64N(3))
				case 7:
					th.DeviceSynchronize(from, to, place.Device)
				case 8:
					place.Process, place.Correlation = proc, 100_000+rng.Int64N(9)
					b.Kernel(tracetest.Kernel{Place: place, Name: "norm", Start: start, End: end})
				}
				if rng.IntN(4) > 0 { // else the next call is within this one, or begins with it
					now = to
				}
			}
		}
	}
	return b
}
