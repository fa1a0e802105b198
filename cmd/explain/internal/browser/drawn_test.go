package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
	"github.com/nsys-llm/explain/diff/comparison"
)

// TestDrawnMarksAreTheNumbers parses every mark of every chart back, on four reports, or twelve with -long.
func TestDrawnMarksAreTheNumbers(t *testing.T) {
	t.Parallel()
	list := []string{explaintest.Testdata("serving.sqlite"), explaintest.Testdata("graph_hidden.sqlite"),
		explaintest.Testdata("twoprocs.sqlite"), explaintest.Shared("traces", "nsysai_mfu_2gpu_before.sqlite")}
	if longtest.On() {
		list = append(list, explaintest.Testdata("serving_graph.sqlite"), explaintest.Testdata("hostile.sqlite"), explaintest.Testdata("oldest.sqlite"))
		for _, name := range []string{"nsysai_h100_2gpu_1s", "cs336_hoponga_exp2024_2", "cs336zx_2_7B_nvtx", "sglang_baseline_report", "rodinia_report2_native"} {
			list = append(list, explaintest.Shared("traces", name+".sqlite"))
		}
	}
	for i, trace := range list {
		t.Run(explaintest.TraceName(trace), func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(trace); err != nil {
				t.Skip("the trace is not here: ", err)
			}
			var args []string
			if i == 0 {
				args = []string{"--evidence", explaintest.Testdata("evidence")}
			}
			file, r := pageOf(t, trace, args...)
			ctx, _ := open(t, file, true)
			seen(t, ctx, "light", 1440)
			charts := map[string]report.Chart{}
			for k := range r.Sections {
				for _, c := range r.Sections[k].Charts {
					charts[c.ID] = c
				}
			}
			n := checkMarks(t, ctx, filepath.Base(trace), charts)
			figures, marks := checkSteps(t, ctx, r.Unit.Steps)
			t.Logf("%d marks, and %d in %d figures of steps", n, marks, figures)
			if n == 0 {
				t.Error("nothing is drawn")
			}
		})
	}
}

// TestDrawnMarksOfComparisons parses every mark of every chart back, on two comparisons, or six with -long.
func TestDrawnMarksOfComparisons(t *testing.T) {
	t.Parallel()
	pairs := [][2]string{{explaintest.Testdata("serving.sqlite"), explaintest.Testdata("serving_graph.sqlite")}}
	for i, p := range [][2]string{{"nsysai_mfu_2gpu_before", "nsysai_mfu_2gpu_after"}, {"cs336zx_2_7B", "cs336zx_2_7B_clean"},
		{"rodinia_report2_native", "rodinia_report3_native"}, {"cs336zx_2_7B_nvtx", "cs336zx_2_7B"}, {"cs336zx_2_7B", "fuser_h200_report1"}} {
		if i > 0 && !longtest.On() {
			break
		}
		pairs = append(pairs, [2]string{explaintest.Shared("traces", p[0]+".sqlite"), explaintest.Shared("traces", p[1]+".sqlite")})
	}
	check := func(t *testing.T, file string, c *comparison.Comparison) {
		ctx, _ := open(t, file, true)
		seen(t, ctx, "light", 1440)
		n := checkMarks(t, ctx, "diff.html", nil)
		t.Logf("%d marks, %d in the figure of the step, %d boxes of its flame", n, checkStepOfChange(t, ctx, c),
			checkFlameOfChange(t, ctx, c))
	}
	t.Run("scaled", func(t *testing.T) {
		file, c := comparisonOf(t, explaintest.Testdata("serving.sqlite"))
		check(t, file, c)
	})
	for _, p := range pairs {
		t.Run(explaintest.TraceName(p[0])+" "+explaintest.TraceName(p[1]), func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(p[0]); err != nil {
				t.Skip("the trace is not here: ", err)
			}
			file, c := comparisonPage(t, p[0], p[1])
			check(t, file, c)
		})
	}
}
