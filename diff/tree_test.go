package diff_test

import (
	"math"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/stacks"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
)

// moreIn is the change of the boxes of a tree that some condition finds.
func moreIn(s *comparison.Step, found func(b *comparison.StepBox) bool) (sum float64) {
	for i := range s.Tree {
		if found(&s.Tree[i]) {
			sum += s.Tree[i].Head - s.Tree[i].Base
		}
	}
	return sum
}

// TestTreeOfAChange: of 20 µs that kernel 2 is slower and 30 µs that the host stalls before kernel 3, on the slower device,
// the tree has the one in the kernel's box and the other in the idle time of the host, both inside the step's marker;
// and its whole is the unit's change.
func TestTreeOfAChange(t *testing.T) {
	base := stepTrace(t, stepChange{})
	head := stepTrace(t, stepChange{slower: 20_000, stall: 30_000})
	c, err := diff.Compare([]*report.Report{base}, []*report.Report{head}, diff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Step
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6 {
			t.Errorf("%s changed by %v, want %v", what, got, want)
		}
	}
	near("the step", moreIn(s, func(b *comparison.StepBox) bool { return b.Kind == stacks.Step }), s.Delta)
	near("the unit", s.Delta, c.Attribution.TotalDelta)
	near("kernel2", moreIn(s, func(b *comparison.StepBox) bool { return b.Kind == stacks.Kernel && s.NameOf(b.Name) == "kernel2" }), 20_000)
	near("other kernels", moreIn(s, func(b *comparison.StepBox) bool { return b.Kind == stacks.Kernel && s.NameOf(b.Name) != "kernel2" }), 0)
	near("idle time", moreIn(s, func(b *comparison.StepBox) bool { return b.Kind == stacks.Idle }), 30_000)
	near("the marker", moreIn(s, func(b *comparison.StepBox) bool { return b.Kind == stacks.Range }), 50_000)
}

// TestTreesClose: on real pairs every box is the sum of those in it (Validate), the first is the unit's change to the ns,
// and kernels and idle time are what the attribution has.
func TestTreesClose(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{{"nsysai_mfu_2gpu_before", "nsysai_mfu_2gpu_after"}, {"cs336zx_2_7B", "cs336zx_2_7B_clean"},
		{"rodinia_report2_native", "rodinia_report3_native"}} {
		base := reportOfFile(t, sharedTrace(t, pair[0]), analyze.Options{})
		head := reportOfFile(t, sharedTrace(t, pair[1]), analyze.Options{})
		c, err := diff.Compare([]*report.Report{base}, []*report.Report{head}, diff.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
		s := c.Step
		if s == nil || len(s.Tree) < 5 || len(s.Tree) > comparison.MaxStepBoxes {
			t.Fatalf("%s: no tree", pair[0])
		}
		holds := map[int]bool{}
		for i := range s.Tree {
			holds[s.Tree[i].Parent] = true
		}
		leaves := 0.0
		for i := range s.Tree {
			if !holds[i] {
				leaves += s.Tree[i].Head - s.Tree[i].Base
			}
		}
		if math.Abs(leaves-s.Delta) > 1 || math.Abs(s.Delta-c.Attribution.TotalDelta) > 1 {
			t.Errorf("%s: leaves sum to %v, the unit changed by %v", pair[0], leaves, s.Delta)
		}
	}
}

// TestOneDeviceAtATime: the comparison of the device that was named is of it, and of another there is none.
func TestOneDeviceAtATime(t *testing.T) {
	base, head := stepTrace(t, stepChange{}), stepTrace(t, stepChange{stall: 30_000, streams: true})
	for device, unit := range map[int64]float64{0: 8*11_000 + 5_000, 1: 8*16_000 + 5_000} {
		c, err := diff.Compare([]*report.Report{base}, []*report.Report{head}, diff.Options{Device: &device})
		if err != nil {
			t.Fatal(err)
		}
		if c.Step == nil || c.Step.Device != device || c.Step.Base != unit || c.Row("unit.time.mean") == nil ||
			*c.Row("unit.time.mean").Base != unit {
			t.Errorf("GPU %d: %+v", device, c.Step)
		}
		streams := map[int]bool{}
		for i := range c.Step.Rows {
			streams[c.Step.Rows[i].Stream] = true
		}
		if len(streams) != 1 { // the base runs all on one
			t.Errorf("GPU %d: streams %v", device, streams)
		}
	}
	none := int64(5)
	c, err := diff.Compare([]*report.Report{base}, []*report.Report{head}, diff.Options{Device: &none})
	if err != nil {
		t.Fatal(err)
	}
	if c.Comparable || c.Step != nil || c.Reasons[0].Code != comparison.NoUnit {
		t.Errorf("GPU 5: %v, %v", c.Comparable, c.Reasons)
	}
}

// TestKernelsHaveIntervals: an interval is around the change that the row shows.
func TestKernelsHaveIntervals(t *testing.T) {
	t.Parallel()
	c := slowed(t)
	n := 0
	for i := range c.Kernels {
		k := &c.Kernels[i]
		if x := k.Interval; x != nil {
			n++
			if x.Low > *k.Ratio+1e-9 || x.High < *k.Ratio-1e-9 || x.Level <= 0 || x.Level > 1 {
				t.Errorf("%v: %g in %+v", *k.BaseShort, *k.Ratio, x)
			}
		}
	}
	if n == 0 {
		t.Error("no kernel has an interval")
	}
}
