package diff_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest/mutant"
)

// TestTwoChangesHaveTwoCauses makes two changes at once in a loop of 547 µs of kernels a step: five layers of a norm of
// 5, a gemm of 30, an attention of 20, another gemm of 40 and an activation of 10 µs, and 22 µs beside. Each has a row
// of its sign and, to a tenth, its size, worked out by hand, both ways; kernels fused at equal time have none.
func TestTwoChangesHaveTwoCauses(t *testing.T) {
	t.Parallel()
	s, all := shortSubjects(t)[0], mutant.On{}
	const norm, gemm, flash = "rms_norm_kernel", "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT", "flash_fwd_kernel"
	const others = "all other kernels"
	scale := func(name string, by float64) mutant.Edit { return mutant.ScaleKernels(all, name, by) }
	fuse, extra := mutant.Fuse(all, norm, gemm, 1), mutant.Extra(all, 1, loggingKernel, 40_000)
	for _, x := range []struct {
		edits []mutant.Edit
		want  map[string]float64 // µs a step, by what a row says
	}{
		{[]mutant.Edit{scale(gemm, 1.5), scale(flash, 0.6)}, map[string]float64{gemm: 75, flash: -40}},
		{[]mutant.Edit{scale(gemm, 1.5), mutant.Stall(all, 60_000)}, map[string]float64{gemm: 75, "GPU idle": 60}},
		{[]mutant.Edit{scale(flash, 0.6), extra}, map[string]float64{flash: -40, "logging_probe": 40}},
		{[]mutant.Edit{scale("", 1.12), extra}, map[string]float64{others: 65.6, "logging_probe": 40}},
		{[]mutant.Edit{scale("", 0.93), extra}, map[string]float64{others: -38.3, "logging_probe": 40}},
		{[]mutant.Edit{scale("", 1.12), scale(gemm, 1.5)}, map[string]float64{others: 47.6, gemm: 102}},
		{[]mutant.Edit{fuse, mutant.Stall(all, 60_000)}, map[string]float64{"GPU idle": 60}},
		{[]mutant.Edit{scale(flash, 1.5), fuse}, map[string]float64{flash: 50}},
	} {
		head := s.head(t, fmt.Sprint(x.edits[0].Name, x.edits[1].Name), x.edits)
		for _, way := range []float64{1, -1} {
			base := s.base[0]
			if way < 0 {
				base, head = head, base
			}
			c := tried(t, x.edits[0].Name, base, head)
			for what, us := range x.want {
				found := false
				for i := range c.Answer.Rows {
					r := &c.Answer.Rows[i]
					found = found || strings.Contains(r.What, what) && math.Abs(r.Delta/1000-way*us) <= math.Abs(us)/10
				}
				if !found || strings.Contains(c.Cause, "µs kernel fused_") {
					t.Errorf("%s and %s: no row of %s %+g µs: %s", x.edits[0].Name, x.edits[1].Name, what, way*us, c.Cause)
				}
			}
		}
	}
}
