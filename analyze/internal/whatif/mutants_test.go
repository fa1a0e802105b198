package whatif

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/stepgraph"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/analyze/tracetest/mutant"
)

// capture is a capture with its units, its graph and its ceilings.
type capture struct {
	trace    *trace.Trace
	graph    *stepgraph.Graph
	units    *workunit.Result
	of       *stepgraph.Units
	ceilings *Ceilings // nil where there is no unit of work
}

func open(t *testing.T, path string) *capture {
	t.Helper()
	tr, err := trace.Open(context.Background(), path, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	c := &capture{trace: tr}
	calls := timeline.Join(tr)
	span, ok := timeline.WorkSpan(tr)
	if !ok {
		return c
	}
	kinds := make([]kernelname.Info, len(tr.Kernels.Names))
	comm := make([]bool, len(kinds))
	for i, n := range tr.Kernels.Names {
		kinds[i] = kernelname.Classify(n.Name)
		comm[i] = kinds[i].Comm
	}
	tl := timeline.New(tr, calls, span, comm)
	c.graph = stepgraph.New(tr, calls, tl)
	s := workunit.NewSearch(&workunit.Input{Trace: tr, Calls: calls, Timeline: tl, Kinds: kinds,
		Marked: func(uint32) bool { return false }})
	if c.units = s.Find(); c.units.Kind == workunit.KindNone || c.units.Primary < 0 {
		return c
	}
	c.of = c.graph.UnitsOf(c.units)
	c.ceilings = NewCeilings(c.graph, c.units)
	return c
}

// kept are the units that ceilings are of: those of the main kind.
func (c *capture) kept() []int32 {
	return slices.DeleteFunc(replayed(c.units), func(i int32) bool {
		return int(c.units.Units[i].Group) != c.units.Primary || c.of.Next[i] == trace.None
	})
}

// truth is what the units of the ceilings gain in a mutant, as a share of their time, on the device with most of it.
func (c *capture) truth(m *mutant.Mutant) (share float64, ok bool) {
	n := len(c.units.Timeline.Devices)
	was, is := make([]float64, n), make([]float64, n)
	for _, i := range c.kept() {
		at := func(piece int32) (int64, int64, bool) {
			d, k := c.graph.Place(piece)
			device := c.graph.Timeline.Devices[d]
			to, ok := m.Moved(int64(device.ID), device.Start(k))
			return device.Start(k), to, ok
		}
		d := c.units.Units[i].Index
		from, a, ok1 := at(c.of.First[i])
		to, b, ok2 := at(c.of.Next[i])
		if ok1 && ok2 {
			was[d], is[d] = was[d]+float64(to-from), is[d]+float64(b-a)
		}
	}
	for d := range was {
		if was[d] > 0 {
			share, ok = max(share, 1-is[d]/was[d]), true
		}
	}
	return share, ok
}

// share is the mean gain of units of the main kind by a change, as a share of their time.
func (c *capture) share(change *stepgraph.Change) float64 {
	g := c.ceilings.Gain(change, true)
	return g.Gain / g.Time
}

// families are the kernels by what they take, most first.
func (c *capture) families() (list []string) {
	sums := map[string]int64{}
	for _, device := range c.graph.Timeline.Devices {
		for i := range device.Len() {
			if device.Kind(i) == timeline.KernelWork && device.Class(i) == timeline.Compute {
				sums[c.family(device, i)] += device.End(i) - device.Start(i)
			}
		}
	}
	for name := range sums {
		list = append(list, name)
	}
	slices.SortFunc(list, func(a, b string) int {
		if sums[a] != sums[b] {
			return int(min(1, max(-1, sums[b]-sums[a])))
		}
		return strings.Compare(a, b)
	})
	return list
}

func (c *capture) family(d *timeline.Device, i int) string {
	return mutant.Short(c.trace.Kernels.Names[c.trace.Kernels.Name(d.Row(i))].Name)
}

// scaled makes the kernels of a family take a share of their time.
func (c *capture) scaled(family string, factor float64) *stepgraph.Change {
	return &stepgraph.Change{Work: func(d *timeline.Device, i int) float64 {
		if d.Kind(i) == timeline.KernelWork && c.family(d, i) == family {
			return factor
		}
		return 1
	}}
}

func (c *capture) unwaited(text string) *stepgraph.Change {
	return &stepgraph.Change{NoWait: func(call int32) bool {
		return strings.Contains(c.trace.API.Names[c.trace.API.Name(int(call))].Name, text)
	}}
}

// written is a change that is written into a capture, and as a replay has it.
type written struct {
	edit   mutant.Edit
	change *stepgraph.Change
	tight  bool // they are the same change
}

func (c *capture) changes(kernels int) (list []written) {
	free := &stepgraph.Change{HostFree: true}
	quick := &stepgraph.Change{Call: func(name int32) float64 {
		if strings.Contains(c.trace.API.Names[name].Name, "Launch") {
			return 0.001
		}
		return 1
	}}
	families := c.families()
	for _, f := range families[:min(kernels, len(families))] {
		list = append(list, written{mutant.Remove(mutant.On{}, f), c.scaled(f, 0), true},
			written{mutant.ScaleKernels(mutant.On{}, f, 0.5), c.scaled(f, 0.5), true})
	}
	return append(list, written{mutant.FreeHost(), free, true}, written{mutant.NoGap(mutant.On{}, 1e12), free, false},
		written{mutant.NoGap(mutant.On{}, 1e5), free, false}, written{mutant.Launches(mutant.On{}, 0.001), quick, true},
		written{mutant.NoWait("Synchronize"), c.unwaited("Synchronize"), true})
}

func shared(t *testing.T) []string {
	t.Helper()
	list, _ := filepath.Glob("../../../../shared/traces/*.sqlite")
	more, _ := filepath.Glob("../../../../shared/traces/ranks/*.sqlite")
	if list = append(list, more...); len(list) == 0 {
		t.Skip("no shared traces beside the checkout")
	}
	return list
}

// tally counts what changes gain and what their ceilings are.
type tally struct{ all, above, tight, wide int }

func (n *tally) add(t *testing.T, c *capture, name string, k written, head *mutant.Mutant) {
	truth, ok := c.truth(head)
	if !ok {
		return
	}
	ceiling := c.share(k.change)
	mark := ""
	if n.all++; truth > ceiling+0.002 {
		n.above++
		mark = "above"
	}
	if k.tight {
		if n.tight++; ceiling > truth+0.05 {
			n.wide++
			mark = "wide"
		}
	}
	if mark != "" || testing.Verbose() {
		t.Logf("%-34s %-56.56s gains %6.2f %%, ceiling %6.2f %% %s", name, k.edit.Name, 100*truth, 100*ceiling, mark)
	}
}

// Changes that are written into real captures gain no more than their ceilings (and 0.2 points of a step), in 99 of
// 100; and the ceilings are at most 5 points of a step above them, in 95 of 100. So it is with the captures as they
// are, with all calls of a process on one thread, and with those that wait for the GPU on another than those that
// launch.
func TestCeilingsOfMutants(t *testing.T) {
	kernels, threads := 2, []string{"", "Synchronize"}
	if longtest.On() {
		kernels = 40
	}
	few := []string{"hoponga_exp2023_4", "nsightful", "2_7B_clean"}
	var n tally
	for _, path := range shared(t) {
		among := longtest.On() || slices.ContainsFunc(few, func(name string) bool { return strings.Contains(path, name) })
		if !among {
			continue
		}
		c := open(t, path)
		if c.ceilings == nil || !c.ceilings.Fits {
			continue
		}
		m, err := mutant.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		_ = m.FindUnits() // truths are of the units of the product
		captures := []*capture{c}
		for _, of := range threads {
			if edited, err := m.Mutate(mutant.Threads(of)); err == nil {
				if x := open(t, edited.WriteTB(t)); x.ceilings != nil && x.ceilings.Fits {
					captures = append(captures, x)
				} else {
					t.Log(path, of, "unresolved")
				}
			}
		}
		for k, x := range c.changes(kernels) {
			head, err := m.Mutate(x.edit, mutant.Coupled())
			if err != nil {
				continue // nothing to change
			}
			for i, c := range captures {
				name := []string{"", "one thread: ", "two: "}[i] + strings.TrimSuffix(filepath.Base(path), ".sqlite")
				n.add(t, c, name, c.changes(kernels)[k], head)
			}
		}
	}
	t.Logf("%d of %d gains are above their ceiling, %d of %d ceilings more than 5 points above the gain", n.above, n.all, n.wide, n.tight)
	if n.above*100 > n.all || n.wide*20 > n.tight {
		t.Error("that is more than 1 and 5 in 100")
	}
}

// The ceilings of real captures are the same, to 2 points of a step, with all calls of a process on one thread and with those that
// wait for the GPU on a thread of their own: a thread that only waits is as good as none. Where a thread was made one with others
// that the capture had good reason to keep apart, the graph may not resolve the steps: then nothing is replayed.
func TestThreadsThatOnlyWait(t *testing.T) {
	for _, path := range longtest.Captures(t) {
		c, name := open(t, path), strings.TrimSuffix(filepath.Base(path), ".sqlite")
		if c.ceilings == nil || !c.ceilings.Fits {
			continue
		}
		m, err := mutant.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		_ = m.FindUnits()
		changes := []*stepgraph.Change{{HostFree: true}, {Graph: true}, c.unwaited("Synchronize")}
		for _, f := range c.families()[:min(3, len(c.families()))] {
			changes = append(changes, c.scaled(f, 0), c.scaled(f, 0.5))
		}
		for _, of := range []string{"", "Synchronize"} {
			edited, err := m.Mutate(mutant.Threads(of))
			if err != nil {
				t.Log(name, of, err)
				continue
			}
			x := open(t, edited.WriteTB(t))
			if x.ceilings == nil || !x.ceilings.Fits {
				t.Logf("%s, threads by %q: not resolved", name, of)
				continue
			}
			for k, change := range changes {
				was, is := c.share(change), x.share(change)
				if t.Logf("%s, threads by %q, change %d: %.2f %%, was %.2f %%", name, of, k, 100*is, 100*was); math.Abs(is-was) > 0.02 {
					t.Errorf("%s, threads by %q, change %d: %.2f %%, was %.2f %%", name, of, k, 100*is, 100*was)
				}
			}
		}
	}
}
