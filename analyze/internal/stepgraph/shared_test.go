package stepgraph_test

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/stepgraph"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// capture is a capture with its graph.
type capture struct {
	*stepgraph.Graph
	trace  *trace.Trace
	calls  *timeline.Calls
	found  *workunit.Result
	units  *stepgraph.Units
	span   interval.Interval
	isComm []bool
}

// work is a piece of work by its number.
func (c *capture) work(piece int32) timeline.Work {
	d, i := c.Place(piece)
	return c.Timeline.Devices[d].Work(i)
}

func open(t *testing.T, path string) *capture {
	t.Helper()
	tr, err := trace.Open(context.Background(), path, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	c := &capture{trace: tr, calls: timeline.Join(tr)}
	var ok bool
	if c.span, ok = timeline.WorkSpan(tr); !ok {
		c.span = interval.Interval{}
	}
	kinds := make([]kernelname.Info, len(tr.Kernels.Names))
	c.isComm = make([]bool, len(kinds))
	for i, n := range tr.Kernels.Names {
		kinds[i] = kernelname.Classify(n.Name)
		c.isComm[i] = kinds[i].Comm
	}
	tl := timeline.New(tr, c.calls, c.span, c.isComm)
	c.Graph = stepgraph.New(tr, c.calls, tl)
	s := workunit.NewSearch(&workunit.Input{Trace: tr, Calls: c.calls, Timeline: tl, Kinds: kinds,
		Marked: func(uint32) bool { return false }})
	c.found = s.Find()
	c.units = c.UnitsOf(c.found)
	return c
}

func shared(t *testing.T) []string {
	t.Helper()
	list := append(longtest.Captures(t), longtest.Ranks(t)...)
	if len(list) == 0 {
		t.Skip("no shared traces beside the checkout")
	}
	return list
}

// median of a list, which it sorts.
func median(list []float64) float64 {
	slices.Sort(list)
	if len(list) == 0 {
		return 0
	}
	return list[len(list)/2]
}

// A replay without a change gives every unit the time that it took, to the ns. With typical latencies in place of those
// measured, the graph alone gives it within 1 %, in the middle of the captures.
func TestReplayOfWhatWas(t *testing.T) {
	var off []float64
	for _, path := range shared(t) {
		c := open(t, path)
		if c.found.Kind == workunit.KindNone {
			continue
		}
		same := c.Replay(c.span, c.units, &stepgraph.Change{})
		usual := c.Replay(c.span, c.units, &stepgraph.Change{Typical: true})
		var errs []float64
		timed := 0
		for i := range c.found.Units {
			u := &c.found.Units[i]
			if same[i] < 0 {
				continue
			}
			if timed++; same[i] != u.Time() {
				t.Errorf("%s: unit %d took %d, replayed %d", filepath.Base(path), i, u.Time(), same[i])
				break
			}
			if u.State == workunit.Kept && u.Time() > 0 {
				errs = append(errs, math.Abs(float64(usual[i]-u.Time()))/float64(u.Time()))
			}
		}
		if len(errs) == 0 {
			continue
		}
		m := median(errs)
		off = append(off, m)
		t.Logf("%-40s %5d units, typical latencies alone: %.3f %% off; %+v", filepath.Base(path), timed, 100*m, c.Found)
	}
	if m := median(off); m > 0.01 {
		t.Errorf("typical latencies alone are off by %.2f %%", 100*m)
	}
}

func (c *capture) mean(times []int64) float64 {
	sum, n := 0.0, 0
	for i := range c.found.Units {
		if u := &c.found.Units[i]; u.State == workunit.Kept && int(u.Group) == c.found.Primary && times[i] >= 0 {
			sum, n = sum+float64(times[i]), n+1
		}
	}
	return sum / float64(n)
}

func (c *capture) kernels(name string, factor float64) func(d *timeline.Device, i int) float64 {
	return func(d *timeline.Device, i int) float64 {
		if d.Kind(i) == timeline.KernelWork &&
			strings.HasPrefix(c.trace.Kernels.Names[c.trace.Kernels.Name(d.Row(i))].Name, name) {
			return factor
		}
		return 1
	}
}

func sharedTrace(t *testing.T, name string) string {
	for _, p := range shared(t) {
		if filepath.Base(p) == name+".sqlite" {
			return p
		}
	}
	t.Skip("no trace " + name)
	return ""
}

// The later capture of a pair is slower by what the host takes longer: a free host is worth no less.
func TestCeilingOfAPair(t *testing.T) {
	base, head := open(t, sharedTrace(t, "nsysai_mfu_2gpu_before")), open(t, sharedTrace(t, "nsysai_mfu_2gpu_after"))
	was := base.mean(base.Replay(base.span, base.units, &stepgraph.Change{}))
	is := head.mean(head.Replay(head.span, head.units, &stepgraph.Change{}))
	free := head.mean(head.Replay(head.span, head.units, &stepgraph.Change{HostFree: true}))
	t.Logf("base %.0f, head %.0f, head with a free host %.0f", was, is, free)
	if free > was {
		t.Errorf("the ceiling is a gain of %.0f, and %.0f was gained", is-free, is-was)
	}
}

// Fan2 takes 0.274 of its time in the later capture (766 of 2,794 ms), and everything else is alike: the replay of the
// earlier one with such a Fan2 takes what the later one did.
func TestReplayOfAFasterKernel(t *testing.T) {
	a, b := open(t, sharedTrace(t, "rodinia_report2_native")), open(t, sharedTrace(t, "rodinia_report3_native"))
	was := a.mean(a.Replay(a.span, a.units, &stepgraph.Change{}))
	is := b.mean(b.Replay(b.span, b.units, &stepgraph.Change{}))
	gone := a.mean(a.Replay(a.span, a.units, &stepgraph.Change{Work: a.kernels("Fan2", 0)}))
	fast := a.mean(a.Replay(a.span, a.units, &stepgraph.Change{Work: a.kernels("Fan2", 0.274)}))
	if gone > is {
		t.Errorf("without Fan2 %.0f, of %.0f; with a faster one it took %.0f", gone, was, is)
	}
	if math.Abs(fast-is) > 0.02*is {
		t.Errorf("replay with a faster Fan2: %.0f, it took %.0f", fast, is)
	}
}

// What lies on the host, its calls and latencies on the paths of steps is, to 10 points, what a replay without these gains;
// and no wait of a piece of work for its latency is more than a twentieth of a step.
func TestPathAgreesWithCeiling(t *testing.T) {
	for _, path := range shared(t) {
		c := open(t, path)
		if c.found.Kind == workunit.KindNone || c.found.Primary < 0 {
			continue
		}
		var list []int32
		for i := range c.found.Units {
			if c.found.Units[i].State == workunit.Kept && int(c.found.Units[i].Group) == c.found.Primary {
				list = append(list, int32(i))
			}
		}
		stretch := stepgraph.Stretch(c.found, list)
		was := c.Replay(stretch, c.units, &stepgraph.Change{})
		bare := c.Replay(stretch, c.units, &stepgraph.Change{HostFree: true, NoLatency: true})
		var total, host, gain float64
		for _, i := range list {
			u := &c.found.Units[i]
			if was[i] < 0 {
				continue
			}
			total, gain = total+float64(u.Time()), gain+float64(was[i]-bare[i])
			c.Walk(c.units.Next[i], u.Start, func(s *stepgraph.Step) {
				if s.Kind == stepgraph.Runs || s.Kind == stepgraph.Unexplained || s.Kind == stepgraph.Unknown {
					return
				}
				host += float64(s.End - s.Start)
				if (s.Kind == stepgraph.AfterCall || s.Kind == stepgraph.AfterWork) && s.End-s.Start > u.Time()/20 {
					t.Errorf("%s: a latency of %d in a unit of %d", filepath.Base(path), s.End-s.Start, u.Time())
				}
			})
		}
		if total == 0 {
			continue
		}
		if host, gain = host/total, gain/total; math.Abs(host-gain) > 0.1 {
			t.Errorf("%s: %.1f %% of the path on the host, without it %.1f %% are gained", filepath.Base(path), 100*host, 100*gain)
		}
	}
}
