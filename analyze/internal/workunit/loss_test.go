package workunit_test

import (
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Twelve steps of three kernels, 133 µs apart, of which the last is not closed. Events are missing from some of them.
func TestUnitsThatMissEvents(t *testing.T) {
	const lost = "cudaLaunchKernel_v7000"
	inside := func(i int64) int64 { return (1000+133*i)*us + 3*us } // between the launches of a step's first and second kernel
	every := func(from, to int64, name string) func(b *tracetest.Builder, th *tracetest.Thread) {
		return func(_ *tracetest.Builder, th *tracetest.Thread) {
			for i := from; i < to; i++ {
				th.Call(name, inside(i), inside(i)+us)
			}
		}
	}
	for name, c := range map[string]struct {
		spoil      func(b *tracetest.Builder, th *tracetest.Thread)
		cut        []int // besides the last
		incomplete int64
	}{
		"nothing is missing":  {func(*tracetest.Builder, *tracetest.Thread) {}, nil, 0},
		"a launch of step 5":  {every(5, 6, lost), []int{5}, 1},
		"launches of 3 steps": {every(2, 5, lost), []int{2, 3, 4}, 3},
		"launches of 7 of 12 steps are too many to leave out": {every(2, 9, lost), nil, 7},
		"a copy of no bytes in every step is a habit":         {every(0, 12, "cudaMemcpyAsync_v3020"), nil, 0},
		"a copy in one step is not":                           {every(6, 7, "cudaMemcpyAsync_v3020"), []int{6}, 1},
		"the call of a kernel of step 7": {func(b *tracetest.Builder, th *tracetest.Thread) {
			at := int64((1000+133*7)*us + 40*us)
			b.Kernel(tracetest.Kernel{Place: tracetest.Place{Process: th.Process(), Correlation: 1 << 20}, Name: "b", Start: at, End: at + us})
		}, []int{7}, 1},
		"before the first step": {func(_ *tracetest.Builder, th *tracetest.Thread) {
			step(th, 0, 500*us, "load")
			th.Call(lost, 510*us, 511*us)
			step(th, 0, 600*us, "load")
		}, nil, 0},
		"in another process": {func(b *tracetest.Builder, _ *tracetest.Thread) {
			th := b.Process(2, "other").Thread(1, "other")
			step(th, 1, 1300*us, "x")
			th.Call(lost, 1310*us, 1311*us)
			step(th, 1, 1400*us, "x")
		}, nil, 0},
	} {
		b := tracetest.New()
		th := b.Process(1, "python").Thread(1, "python")
		for i := range int64(12) {
			at := (1000 + 133*i) * us
			next := step(th, 0, at, "a", "b", "c")
			th.Range("step[DECODE bs=4]", at-10*us, next+10*us)
		}
		c.spoil(b, th)
		r := find(t, b.WriteTB(t), "")
		var cut []int
		for i := range r.Units[:11] {
			if r.Units[i].State == workunit.Cut {
				cut = append(cut, i)
			}
		}
		if n, of := r.Incomplete(); !slices.Equal(cut, c.cut) || n != c.incomplete || of != 12 {
			t.Errorf("%s: %v are cut and %d of %d incomplete, want %v and %d of 12", name, cut, n, of, c.cut, c.incomplete)
		}
	}
}
