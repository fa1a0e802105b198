package breakdown

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// TestFusedKernelsAreOneCause: in two places of a step, norm of 20 and gemm of 50 become one kernel of 68, and a third
// gemm takes 75 instead of 50. That is 2 · (68 - 70) = -4 and +25, and not +96 of norm → fused and -75 of gemm. The way
// back is the opposite.
func TestFusedKernelsAreOneCause(t *testing.T) {
	steps := [2]*side.Sequence{
		sequence(0, position("norm", 0, 0, 0, 20), position("gemm", 20, 0, 0, 50), position("flash", 70, 0, 0, 10),
			position("gemm", 80, 0, 0, 50), position("flash", 130, 0, 0, 10), position("norm", 140, 0, 0, 20),
			position("gemm", 160, 0, 0, 50)),
		sequence(0, position("fused", 0, 0, 0, 68), position("flash", 68, 0, 0, 10), position("gemm", 78, 0, 0, 75),
			position("flash", 153, 0, 0, 10), position("fused", 163, 0, 0, 68)),
	}
	type kernel struct {
		names      [2]string
		time, runs [2]float64
	}
	kernels := []kernel{
		{[2]string{"norm", "fused"}, [2]float64{40, 136}, [2]float64{2, 2}},
		{[2]string{"gemm", "gemm"}, [2]float64{150, 75}, [2]float64{3, 1}},
		{[2]string{"flash", "flash"}, [2]float64{20, 20}, [2]float64{2, 2}},
	}
	for way, want := range map[int][]string{
		0: {"+25 kernel gemm +50.0 % at #3: 1 × 50 → 75 ns",
			"-4 2 kernels, gemm among them, replaced by fused at #0, #5: 2 × 70 → 68 ns"},
		1: {"-25 kernel gemm -33.3 % at #2: 1 × 75 → 50 ns",
			"+4 kernel fused replaced by 2 kernels, gemm among them at #0, #4: 2 × 68 → 70 ns"},
	} {
		c := &comparison.Comparison{}
		for _, k := range kernels {
			if way == 1 {
				slices.Reverse(k.names[:])
				slices.Reverse(k.time[:])
				slices.Reverse(k.runs[:])
			}
			d := k.time[1] - k.time[0]
			row := comparison.Kernel{BaseName: &k.names[0], HeadName: &k.names[1], Base: &k.time[0], Head: &k.time[1],
				BaseCount: &k.runs[0], HeadCount: &k.runs[1], Delta: d}
			c.Kernels = append(c.Kernels, row)
			c.Attribution.Rows = append(c.Attribution.Rows, comparison.AttributionRow{ID: kernelID(&row),
				Kind: comparison.KindKernel, Category: "gemm", Base: k.time[0], Head: k.time[1], Delta: d})
		}
		names := map[string]string{kernels[0].names[1-way]: kernels[0].names[way]}
		c.Step = stepBetween(t, steps[way], steps[1-way], names)
		x := &Parts{C: c, names: &kernelNames{base: &side.Side{}, head: &side.Side{}}}
		var got []string
		for _, r := range (&story{parts: x}).kernelRows(all) {
			if r.Delta != 0 {
				got = append(got, fmt.Sprintf("%+g %s %s: %s", r.Delta, r.What, r.Where, strings.Join(r.With, ", ")))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
