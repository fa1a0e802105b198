package whatif

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/stepgraph"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

const us = 1_000

// loop is twelve steps of 1 ms. In each, in µs: A is launched 0–4 and runs 7–607, B is launched 6–10 and runs 608–908, the
// host waits 20–912 and goes on 88 later.
func loop() *tracetest.Builder {
	b := tracetest.New()
	th := b.Process(1, "loop").Thread(1, "")
	for i := range int64(12) {
		at := 1000*us + i*1000*us
		th.Launch("gemm_a", at, at+4*us, tracetest.Kernel{Start: at + 7*us, End: at + 607*us})
		th.Launch("norm_b", at+6*us, at+10*us, tracetest.Kernel{Start: at + 608*us, End: at + 908*us})
		th.StreamSynchronize(at+20*us, at+912*us, 0, 7)
	}
	return b
}

func TestCeilingsByHand(t *testing.T) {
	c := open(t, loop().WriteTB(t))
	if c.ceilings == nil || !c.ceilings.Fits {
		t.Fatalf("%+v", c.ceilings)
	}
	kinds := make([]kernelname.Info, len(c.trace.Kernels.Names))
	for i, n := range c.trace.Kernels.Names {
		kinds[i] = kernelname.Classify(n.Name)
	}
	in := Input{Trace: c.trace, Graph: c.graph, Kinds: kinds, Name: func(*timeline.Device, int32) string { return "" }}
	for _, x := range []struct {
		kind Kind
		text string
		us   float64
	}{
		// A starts 3 after the wait, which ends with B, and B 1 after A: 904.
		{HostFree, "", 96},
		// The GPU never waits: 600 + 1 + 300 + 1.
		{NoSync, "*Synchronize", 98},
		// The GPU does not wait for the launch of B.
		{Graph, "", 0},
		{Speedup, "kernel:gemm_a=2x", 300},
		{Speedup, "kernel:norm_b=4x", 225},
		// Of the 88 before A's launch the 2 that lie between two launches go with it: B is launched 86 to 92 after the wait,
		// starts 3 later and ends at 395; the wait ends 4 later.
		{Remove, "kernel:gemm_a", 601},
		// The wait, of A, begins at 14 without B's launch and what led to it. It ends at 611, and not at 912.
		{Remove, "kernel:norm_b", 301},
	} {
		change, err := Parse(x.kind, x.text)
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := in.Compile([]Change{change})
		if err != nil {
			t.Fatal(err)
		}
		if g := c.ceilings.Gain(compiled, true); math.Abs(g.Gain-x.us*us) > 1 || math.Abs(g.UpTo-x.us*us) > 1 || g.Time != 1000*us {
			t.Errorf("%s: %.1f µs, want %.0f: %+v", change.String(), g.Gain/us, x.us, g)
		}
	}
}

func TestParse(t *testing.T) {
	for _, x := range []struct {
		kind Kind
		text string
		err  string
	}{
		{Speedup, "kernel:a", "say by how much"}, {Speedup, "kernel:a=0x", "not a factor above 0"},
		{Speedup, "kernel:a=infx", "not a factor above 0"}, {Remove, "a", "say of what"}, {Remove, "kernel:", "is empty"},
		{Remove, "category:gem", "there is no category"}, {Overlap, "copies", "only comm"}, {NoSync, "", "is empty"},
	} {
		if _, err := Parse(x.kind, x.text); err == nil || !strings.Contains(err.Error(), x.err) {
			t.Errorf("--%s %s: %v, want %s", x.kind, x.text, err, x.err)
		}
	}
}

// On stream 7 A runs 0–600, B 600–900 of each 1000 µs; on stream 8 a copy runs 500–700. Calls take 10 µs each.
func facingOf(t *testing.T) *facing {
	t.Helper()
	b := tracetest.New()
	th := b.Process(1, "loop").Thread(1, "")
	for i := range int64(12) {
		at := 1000*us + i*1000*us
		th.Launch("gemm_a", at-20*us, at-10*us, tracetest.Kernel{Start: at, End: at + 600*us})
		th.Launch("norm_b", at-10*us, at, tracetest.Kernel{Start: at + 600*us, End: at + 900*us})
		th.Memcpy(at+10*us, at+20*us, tracetest.Memcpy{Place: tracetest.Place{Stream: 8}, Start: at + 500*us, End: at + 700*us,
			Bytes: 1 << 20, Kind: tracetest.HtoD, Src: tracetest.Pinned, Dst: tracetest.DeviceMemory})
	}
	c := open(t, b.WriteTB(t))
	return &facing{graph: c.graph, r: c.units, of: c.of, list: c.kept()}
}

// What changes are worth without a replay, by hand. A step is 1 ms from A to A, 100 µs of it idle.
func TestFaceValues(t *testing.T) {
	f := facingOf(t)
	if len(f.list) < 8 {
		t.Fatalf("%d units", len(f.list))
	}
	kernel := func(name string, factor float64) *stepgraph.Change {
		names := f.graph.Trace().Kernels.Names
		return &stepgraph.Change{Work: func(d *timeline.Device, i int) float64 {
			if d.Kind(i) == timeline.KernelWork && names[f.graph.Trace().Kernels.Name(d.Row(i))].Name == name {
				return factor
			}
			return 1
		}}
	}
	for _, x := range []struct {
		what   string
		change *stepgraph.Change
		us     int64
	}{
		{"A alone runs for 500", kernel("gemm_a", 0), 500},
		{"half of that", kernel("gemm_a", 0.5), 250},
		{"B alone runs for 200", kernel("norm_b", 0), 200},
		{"A and B without the copy's 200", &stepgraph.Change{Work: func(d *timeline.Device, i int) float64 {
			if d.Kind(i) == timeline.KernelWork {
				return 0
			}
			return 1
		}}, 700},
		{"all that runs at half speed more", &stepgraph.Change{Work: func(*timeline.Device, int) float64 { return 0.5 }}, 450},
		{"all idle time", &stepgraph.Change{HostFree: true}, 100},
		{"the two launches", &stepgraph.Change{Graph: true}, 20},
		{"half of three calls", &stepgraph.Change{Call: func(int32) float64 { return 0.5 }}, 15},
		{"nothing communicates", &stepgraph.Change{Overlap: true}, 0},
		{"no more than the step", &stepgraph.Change{HostFree: true, Work: func(*timeline.Device, int) float64 { return 0 }}, 1000},
	} {
		times := f.times(x.change)
		for _, u := range f.list {
			if f.of.Next[u] != trace.None && f.r.Units[u].Time()-times[u] != x.us*us {
				t.Errorf("%s: %d of %d, want %d µs", x.what, f.r.Units[u].Time()-times[u], f.r.Units[u].Time(), x.us)
				break
			}
		}
	}
	// 10 % of a step is idle: a replay may say less.
	times := slices.Repeat([]int64{1000 * us}, len(f.r.Units))
	if f.bound(times, kernel("gemm_a", 0)); slices.Min(times) != 1000*us {
		t.Errorf("bound to %d", slices.Min(times))
	}
}

// 1 % of each step of 1,010 µs is idle, and A alone runs for 600: a replay that says that A gains nothing is not believed,
// one that says that it gains 700 is.
func TestHardlyIdle(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "loop").Thread(1, "")
	for i := range int64(12) {
		at := 1000*us + i*1010*us
		th.Launch("gemm_a", at-20*us, at-10*us, tracetest.Kernel{Start: at, End: at + 600*us})
		th.Launch("norm_b", at-10*us, at, tracetest.Kernel{Start: at + 600*us, End: at + 1000*us})
	}
	c := open(t, b.WriteTB(t))
	f := &facing{graph: c.graph, r: c.units, of: c.of, list: c.kept()}
	for said, want := range map[int64]int64{1010: 410, 310: 310} {
		times := slices.Repeat([]int64{said * us}, len(c.units.Units))
		f.bound(times, c.scaled("gemm_a", 0))
		if got := times[f.list[0]]; got != want*us {
			t.Errorf("%d of a step is left, want %d µs", got, want)
		}
	}
}

// Of seven steps there is no interval, and the mean is what is gained up to. Of sixteen of 100 ns, of which every second
// gains 40, the mean is 20; drawn in blocks of four, each of which holds two of them, the share is always a fifth. Of sixteen of
// which the last four gain 80, a draw of four blocks may hold more of these: up to twice the mean of 20 and more, at most 80.
// Steps that were not replayed do not count, and a loss is no gain.
func TestUpTo(t *testing.T) {
	of := func(gains ...int64) Gained {
		r := &workunit.Result{}
		var units []int32
		var times []int64
		for i, gain := range gains {
			r.Units = append(r.Units, workunit.Unit{Start: int64(i) * 100, End: int64(i+1) * 100})
			units, times = append(units, int32(i)), append(times, 100-gain)
		}
		r.Units = append(r.Units, workunit.Unit{Start: 0, End: 1e9})
		return gainedBy(r, append(units, int32(len(gains))), append(times, -1))
	}
	if g := of(10, 10, 10, 10, 10, 10, 80); g.N != 7 || g.Interval != nil || g.Gain != 20 || g.UpTo != 20 {
		t.Errorf("seven: %+v", g)
	}
	if g := of(40, 0, 40, 0, 40, 0, 40, 0, 40, 0, 40, 0, 40, 0, 40, 0); g.Gain != 20 || g.UpTo != 20 || g.Interval[0] != 20 {
		t.Errorf("every second: %+v", g)
	}
	if g := of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 80, 80, 80, 80); g.Gain != 20 || g.UpTo < 40 || g.UpTo > 80 || g.Interval[0] != 0 {
		t.Errorf("the last four: %+v", g)
	}
	if g := of(-50, -50, -50); g.Gain != 0 || g.UpTo != 0 {
		t.Errorf("a loss: %+v", g)
	}
}

// Of 600 steps the first 500 take 1000 µs, 600 of them the kernel, and the others 500 and 100: the mean step is
// 917 µs, and a kernel that is twice as fast gains 258. The 256 in the middle would gain 300 of 1000.
func TestCeilingsOfStepsThatShrink(t *testing.T) {
	b, at := tracetest.New(), int64(1000*us)
	th := b.Process(1, "loop").Thread(1, "")
	for i := range 601 {
		kernel := int64(600 * us)
		if i >= 500 {
			kernel = 100 * us
		}
		th.Launch("gemm_a", at, at+4*us, tracetest.Kernel{Start: at + 7*us, End: at + 7*us + kernel})
		th.StreamSynchronize(at+20*us, at+11*us+kernel, 0, 7)
		at += 400*us + kernel
	}
	c := open(t, b.WriteTB(t))
	g := c.ceilings.Gain(c.scaled("gemm_a", 0.5), true)
	if g.N != 600 || math.Abs(g.Time-916_667) > 1 || math.Abs(g.Gain-258_333) > 1 {
		t.Errorf("%+v", g)
	}
}

// TestMostReplayed by hand: 256 units, or all that have 65,536 pieces of work; of units with 17,032 each as many as
// have 1,048,576, which are 61; and never fewer than 32.
func TestMostReplayed(t *testing.T) {
	for _, x := range []struct{ n, work, want int }{
		{1_000, 50_000, 1_310}, {1_000, 2_000_000, 256}, {439, 439 * 17_032, 61}, {1_000, 100_000_000, 32},
	} {
		if got := mostReplayed(x.n, x.work); got != x.want {
			t.Errorf("%d units of %d pieces: %d, want %d", x.n, x.work, got, x.want)
		}
	}
}

// Units of two processes on one device may overlap: work after a short one takes nothing from it.
func TestCoveredOfOverlappingUnits(t *testing.T) {
	f := facingOf(t)
	first := f.r.Units[f.list[0]].Start
	f.r = &workunit.Result{Units: []workunit.Unit{{Start: first, End: first + 4000*us}, {Start: first + 100*us, End: first + 300*us}}}
	f.list = []int32{0, 1}
	if got := f.covered(func(*timeline.Device, int) bool { return true }); !slices.Equal(got, []int64{4 * 900 * us, 200 * us}) {
		t.Errorf("covered %v", got)
	}
}
