package stepgraph_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/stepgraph"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// A thread launches a gemm of 6 ms and a norm of 1 ms, sleeps until 20 µs after the norm has ended, as a host function wakes
// it, and launches the next step 300 µs later. No CUDA call waits. What steps gain by a change is what they gain where the
// thread waits in cudaStreamSynchronize.
func TestThreadWokenByTheEndOfWork(t *testing.T) {
	write := func(called bool) *capture {
		b := tracetest.New()
		th := b.Process(1, "server").Thread(1, "main")
		now := int64(1_000_000)
		for range pairSteps {
			start := now + 4*us + pairLatency
			th.Launch("gemm", now, now+4*us, tracetest.Kernel{Start: start, End: start + 6000*us})
			th.Launch("norm", now+6*us, now+10*us, tracetest.Kernel{Start: start + 6001*us, End: start + 7001*us})
			from := now + 15*us
			if now = start + 7021*us; called {
				th.StreamSynchronize(from, now, 0, 7)
			} else {
				th.OSRT("sem_wait", from, now)
			}
			now += 300 * us
		}
		return open(t, b.WriteTB(t))
	}
	called, slept := write(true), write(false)
	if n := slept.Found.ByWork; n != pairSteps-1 || slept.Found.Outside != 0 {
		t.Errorf("%d waits for work and %d ns outside, want %d and 0", n, slept.Found.Outside, pairSteps-1)
	}
	for _, x := range pairChanges[:5] {
		a, b := called.gain(every(called, 2), x.of(called)), slept.gain(every(slept, 2), x.of(slept))
		if math.Abs(a-b) > 30*us {
			t.Errorf("%s: %.0f gained where a call waits, %.0f where the thread sleeps", x.name, a, b)
		}
	}
	var host int64
	u := every(slept, 2)
	slept.Walk(u.Next[9], slept.work(u.First[9]).Start, func(s *stepgraph.Step) {
		if s.Kind == stepgraph.OnHost {
			host += s.End - s.Start
		}
	})
	if host != 320*us {
		t.Errorf("%d ns of a step are on the host, want 320 µs", host)
	}
}

// A loader wakes its thread at any moment: that work ended just before says nothing, and the sleep is outside.
func TestSleepThatEndsByChanceAfterWork(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	b := tracetest.New()
	th := b.Process(1, "server").Thread(1, "main")
	other := b.Process(2, "other").Thread(2, "main")
	now, slept, busy := int64(1_000_000), int64(0), int64(1_000_000)
	for range 200 {
		start := now + 7*us
		th.Launch("gemm", now, now+4*us, tracetest.Kernel{Start: start, End: start + 500*us})
		from := now + 5*us
		now = from + 600*us + rng.Int64N(2000)*us
		th.OSRT("poll", from, now)
		slept += now - from
		now += 10 * us
		for ; busy < now; busy += 700 * us { // it waits for its own work, whatever the first does
			place := tracetest.Place{Device: 1}
			other.Launch("norm", busy, busy+4*us, tracetest.Kernel{Place: place, Start: busy + 8*us, End: busy + 500*us})
			other.StreamSynchronize(busy+10*us, busy+510*us, 1, 7)
		}
	}
	c := open(t, b.WriteTB(t))
	if f := &c.Found; f.ByWork != 0 || f.ByProcess != 0 || f.Outside < slept*9/10 || f.Outside > slept {
		t.Errorf("%+v, want all of %d ns outside", *f, slept)
	}
}

// workers are two processes with a GPU each, as those of a server: in a step each launches a gemm and a norm, the first waits for
// them, and a scheduler without CUDA calls tells both, 400 µs later, to go on. The second waits for nothing but the scheduler.
func workers(gemm int64, seen bool) *tracetest.Builder {
	b := tracetest.New()
	var list [2]*tracetest.Thread
	for i := range list {
		list[i] = b.Process(int64(10+i), "worker").Thread(int64(10+i), "main")
	}
	now := int64(1_000_000)
	for i := range int64(pairSteps) {
		var end int64
		for w, th := range list {
			place := tracetest.Place{Device: int64(w)}
			start := now + 7*us
			end = start + gemm + 1001*us
			th.Launch("gemm", now, now+4*us, tracetest.Kernel{Place: place, Start: start, End: start + gemm})
			th.Launch("norm", now+6*us, now+10*us, tracetest.Kernel{Place: place, Start: start + gemm + us, End: end})
		}
		list[0].StreamSynchronize(now+15*us, end+5*us, 0, 7)
		next := end + 405*us + i%3*us
		if seen {
			list[0].OSRT("poll", end+6*us, next-2*us)
			list[1].OSRT("read", now+12*us, next-2*us)
		}
		now = next
	}
	return b
}

// The steps of the second process become shorter by as much as its gemm does, though nothing of it waits for the GPU.
func TestProcessThatWaitsForAnother(t *testing.T) {
	for _, seen := range []bool{true, false} {
		c := open(t, workers(5000*us, seen).WriteTB(t))
		if n := c.Found.ByProcess; n != pairSteps-1 {
			t.Errorf("seen %v: %d waits for another process, want %d", seen, n, pairSteps-1)
		}
		u := every(c, 2)
		times := c.Replay(c.span, u, &stepgraph.Change{Work: c.kernels("gemm", 0.5)})
		for i, ns := range times {
			if d, _ := c.Place(u.First[i]); d == 1 && ns >= 0 && u.Next[i] != trace.None {
				was := c.work(u.Next[i]).Start - c.work(u.First[i]).Start
				if was-ns < 2490*us || was-ns > 2510*us {
					t.Errorf("seen %v: step %d of %d takes %d with a gemm that takes 2500 µs less", seen, i, was, ns)
				}
			}
		}
	}
}

// Waits for Python's lock are named by a range of --trace=python-gil, or by the stack of the call in which the thread sleeps.
func TestWaitsForPythonsLock(t *testing.T) {
	for _, how := range []string{"range", "stack"} {
		b := tracetest.New()
		p := b.Process(1, "server")
		main, output := p.Thread(1, "main"), p.Thread(2, "output")
		now := int64(1_000_000)
		for range 10 {
			start := now + 7*us
			main.Launch("gemm", now, now+4*us, tracetest.Kernel{Start: start, End: start + 500*us})
			output.StreamSynchronize(now+5*us, start+505*us, 0, 7)
			from := now + 6*us
			if now = start + 520*us; how == "range" {
				main.Range("Waiting for GIL", from, now)
			} else {
				b.OSRT(tracetest.OSRT{Thread: main, Name: "pthread_cond_timedwait", Start: from, End: now,
					Stack: []tracetest.Frame{{Function: "pthread_cond_timedwait", Module: "libc.so.6"}, {Function: "take_gil", Module: "python3.12"}}})
			}
			now += 10 * us
		}
		if f := open(t, b.WriteTB(t)).Found; f.Locked != 9 || f.Handed < 9 {
			t.Errorf("%s: %+v, want 9 waits for another thread, of all of them for the lock", how, f)
		}
	}
}
