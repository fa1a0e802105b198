package timeline_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// layOut makes the timeline of a trace in which no kernel communicates.
func layOut(x *trace.Trace, window interval.Interval) *timeline.Timeline {
	return timeline.New(x, timeline.Join(x), window, make([]bool, len(x.Kernels.Names)))
}

// gapsOf are the gaps of a device.
func gapsOf(d *timeline.Device) (list []timeline.Gap) {
	d.Visit(nil, &timeline.Visitor{Gap: func(g *timeline.Gap) { list = append(list, *g) }})
	return list
}

// The gap is 100 to 200: kernel a ends it at the left, kernel b, launched by the call, at the right.
func TestGapSplitting(t *testing.T) {
	type call struct {
		name       string
		start, end int64
	}
	none := call{}
	for _, c := range []struct {
		name   string
		launch call
		before []call // on the launching thread
		other  []call // on another one
		want   [timeline.Causes]int64
	}{
		{"host code, then the launch", call{"", 150, 170}, nil, nil, [5]int64{0, 50, 20, 30, 0}},
		{"launched long before", call{"", 20, 30}, nil, nil, [5]int64{0, 0, 0, 100, 0}},
		{"launch ends with the gap's start", call{"", 80, 100}, nil, nil, [5]int64{0, 0, 0, 100, 0}},
		{"launch began before the gap", call{"", 80, 130}, nil, nil, [5]int64{0, 0, 30, 70, 0}},
		{"launch ends after the work began", call{"", 150, 250}, nil, nil, [5]int64{0, 50, 50, 0, 0}},
		{"launch spans the gap", call{"", 50, 250}, nil, nil, [5]int64{0, 0, 100, 0, 0}},
		{"launch after the work began: clocks disagree", call{"", 210, 220}, nil, nil, [5]int64{0, 100, 0, 0, 0}},
		{"no call", none, nil, nil, [5]int64{0, 0, 0, 0, 100}},
		{"blocked from before the gap", call{"", 160, 170}, []call{{"cudaStreamSynchronize_v3020", 50, 140}}, nil, [5]int64{40, 20, 10, 30, 0}},
		{"blocked twice", call{"", 160, 170}, []call{{"cudaEventSynchronize_v3020", 110, 120}, {"cudaDeviceSynchronize_v3020", 130, 150}}, nil, [5]int64{30, 30, 10, 30, 0}},
		{"a synchronous copy blocks", call{"", 160, 170}, []call{{"cudaMemcpy_v3020", 100, 160}}, nil, [5]int64{60, 0, 10, 30, 0}},
		{"an asynchronous one does not", call{"", 160, 170}, []call{{"cudaMemcpyAsync_v3020", 100, 160}}, nil, [5]int64{0, 60, 10, 30, 0}},
		{"waiting for an event on the GPU does not", call{"", 160, 170}, []call{{"cudaStreamWaitEvent_v3020", 100, 160}}, nil, [5]int64{0, 60, 10, 30, 0}},
		{"blocking after the launch is not its cause", call{"", 110, 120}, []call{{"cudaStreamSynchronize_v3020", 120, 300}}, nil, [5]int64{0, 10, 10, 80, 0}},
		{"another thread's blocking is not its cause", call{"", 160, 170}, nil, []call{{"cudaStreamSynchronize_v3020", 50, 300}}, [5]int64{0, 60, 10, 30, 0}},
	} {
		b, th := one()
		th.Launch("a", 0, 1, tracetest.Kernel{Start: 0, End: 100})
		k := tracetest.Kernel{Start: 200, End: 300}
		if c.launch == none {
			k.Name, k.Process, k.Correlation = "b", th.Process(), 999
			b.Kernel(k)
		} else {
			th.Launch("b", c.launch.start, c.launch.end, k)
		}
		for _, s := range c.before {
			th.Call(s.name, s.start, s.end)
		}
		other := th.Process().Thread(101, "")
		for _, s := range c.other {
			other.Call(s.name, s.start, s.end)
		}
		tl := layOut(open(t, b), interval.Interval{Start: 0, End: 300})
		gaps := gapsOf(tl.Devices[0])
		if len(gaps) != 1 || gaps[0].Start != 100 || gaps[0].End != 200 || gaps[0].Prev != 0 || gaps[0].Next != 1 {
			t.Errorf("%s: gaps %+v", c.name, gaps)
			continue
		}
		if gaps[0].Cause != c.want {
			t.Errorf("%s: causes %v, want %v", c.name, gaps[0].Cause, c.want)
		}
	}
}

// Two pieces of work end the gap at once: the lower correlation id decides.
func TestTheLowerCorrelationEndsTheGap(t *testing.T) {
	b, th := one()
	th.Launch("a", 0, 1, tracetest.Kernel{Start: 0, End: 100})
	th.Launch("first", 120, 130, tracetest.Kernel{Place: tracetest.Place{Stream: 13}, Start: 200, End: 210})
	th.Memset(150, 160, tracetest.Memset{Start: 200, End: 300, Bytes: 1})
	tl := layOut(open(t, b), interval.Interval{Start: 0, End: 300})
	g := gapsOf(tl.Devices[0])[0]
	if g.Cause != [5]int64{0, 20, 10, 70, 0} || tl.Devices[0].Work(int(g.Next)).Kind != timeline.KernelWork {
		t.Errorf("%+v", g)
	}
}

// Work without length neither ends nor splits a gap, and is no neighbour of one.
func TestWorkWithoutLengthIsNoNeighbour(t *testing.T) {
	b, th := one()
	th.Launch("a", 0, 1, tracetest.Kernel{Start: 0, End: 100})
	th.Launch("nothing", 10, 11, tracetest.Kernel{Start: 150, End: 150})
	th.Launch("nothing", 20, 21, tracetest.Kernel{Start: 200, End: 200})
	th.Launch("b", 120, 130, tracetest.Kernel{Start: 200, End: 300})
	x := open(t, b)
	d := layOut(x, interval.Interval{Start: 0, End: 300}).Devices[0]
	gaps := gapsOf(d)
	if len(gaps) != 1 {
		t.Fatalf("gaps %+v", gaps)
	}
	name := func(at int32) string { return x.Kernels.Names[x.Kernels.Name(d.Row(int(at)))].Name }
	if g := gaps[0]; name(g.Prev) != "a" || name(g.Next) != "b" || g.Cause != [5]int64{0, 20, 10, 70, 0} {
		t.Errorf("%+v between %s and %s", g, name(g.Prev), name(g.Next))
	}
}

// A narrowed window ends within the gap from 100 to 200, at 180 or 130: the call for the work after it, from 160 to 170,
// says what the cut gap waited for. What does not start after the window in earnest says nothing.
func TestGapCutByTheWindow(t *testing.T) {
	b, th := one()
	th.Launch("a", 0, 1, tracetest.Kernel{Start: 0, End: 100})
	th.Launch("nothing", 30, 31, tracetest.Kernel{Start: 190, End: 190})
	th.Launch("later", 172, 173, tracetest.Kernel{Start: 210, End: 220})
	th.Call("cudaStreamSynchronize_v3020", 90, 140)
	th.Launch("b", 160, 170, tracetest.Kernel{Start: 200, End: 300})
	x := open(t, b)
	for _, c := range []struct {
		end  int64
		want [timeline.Causes]int64
	}{
		{180, [5]int64{40, 20, 10, 10, 0}},
		{130, [5]int64{30, 0, 0, 0, 0}},
	} {
		d := layOut(x, interval.Interval{Start: 0, End: c.end}).Devices[0]
		gaps := gapsOf(d)
		if g := gaps[0]; len(gaps) != 1 || g.Next != trace.None || g.Cause != c.want {
			t.Errorf("to %d: %+v, want %v", c.end, gaps, c.want)
		}
	}
}

// The window's own ends: nothing comes after the last gap, and before the first there is nothing.
func TestGapsAtTheEnds(t *testing.T) {
	b, th := one()
	th.Launch("a", 20, 25, tracetest.Kernel{Start: 30, End: 60})
	d := layOut(open(t, b), interval.Interval{Start: 0, End: 100}).Devices[0]
	gaps := gapsOf(d)
	if len(gaps) != 2 || d.GapCount != 2 {
		t.Fatalf("gaps %+v", gaps)
	}
	if g := gaps[0]; g.Prev != trace.None || g.Next != 0 || g.Cause != [5]int64{0, 20, 5, 5, 0} {
		t.Errorf("first: %+v", g)
	}
	if g := gaps[1]; g.Prev != 0 || g.Next != trace.None || g.Cause != [5]int64{0, 0, 0, 0, 40} || g.Main() != timeline.CauseUnknown {
		t.Errorf("last: %+v", g)
	}
	if d.Idle != 70 {
		t.Errorf("idle %d", d.Idle)
	}
}

// The long kernel on stream 7 is the one that ended last before the gap, though another started later.
func TestThePreviousWorkEndedLast(t *testing.T) {
	b, th := one()
	th.Launch("long", 0, 1, tracetest.Kernel{Start: 0, End: 100})
	th.Launch("short", 2, 3, tracetest.Kernel{Place: tracetest.Place{Stream: 13}, Start: 50, End: 60})
	th.Launch("next", 4, 5, tracetest.Kernel{Start: 150, End: 160})
	d := layOut(open(t, b), interval.Interval{Start: 0, End: 160}).Devices[0]
	if g := gapsOf(d)[0]; g.Prev != 0 || g.Next != 2 {
		t.Errorf("%+v", g)
	}
}

// Where causes are equal the earlier one is the main cause.
func TestMainCause(t *testing.T) {
	g := timeline.Gap{Cause: [5]int64{10, 20, 20, 5, 0}}
	if g.Main() != timeline.CauseHost {
		t.Errorf("main cause %s", timeline.CauseNames[g.Main()])
	}
}

// Work across the window's edges is clipped; a device without work in it stays, idle.
func TestTimelineOfANarrowWindow(t *testing.T) {
	b, th := one()
	th.Launch("a", 0, 1, tracetest.Kernel{Start: 0, End: 100})
	th.Memset(2, 3, tracetest.Memset{Start: 140, End: 300, Bytes: 1})
	th.Launch("b", 4, 5, tracetest.Kernel{Place: tracetest.Place{Device: 1}, Start: 250, End: 260})
	tl := layOut(open(t, b), interval.Interval{Start: 50, End: 200})
	if len(tl.Devices) != 2 || tl.Devices[0].ID != 0 || tl.Devices[1].ID != 1 {
		t.Fatalf("devices %+v", tl.Devices)
	}
	d := tl.Devices[0]
	if d.Compute != 50 || d.ExposedCopy != 60 || d.Idle != 40 || d.Busy() != 110 || d.Kernels != 50 || d.KernelSpan != (interval.Interval{Start: 50, End: 100}) {
		t.Errorf("%+v", *d)
	}
	if d := tl.Devices[1]; d.Idle != 150 || d.Len() != 0 || d.Kernels != 0 {
		t.Errorf("device 1: %+v", *d)
	}
}

func TestNoWorkHasNoSpan(t *testing.T) {
	b, th := one()
	th.Range("x", 0, 10)
	if _, ok := timeline.WorkSpan(open(t, b)); ok {
		t.Error("there is no GPU work")
	}
}
