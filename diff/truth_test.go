package diff_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/diffdoc"
)

// sharedTrace is the path of a real capture, which is not part of the repository.
func sharedTrace(tb testing.TB, name string) string {
	tb.Helper()
	path := filepath.Join("..", "..", "shared", "traces", name+".sqlite")
	if _, err := os.Stat(path); err != nil {
		tb.Skipf("the real capture %s is not here; the truths of shared/expected/diffs.md are checked where it is", name)
	}
	return path
}

// realReports analyses captures once per test.
func realReports(tb testing.TB) func(name string) *report.Report {
	known := map[string]*report.Report{}
	return func(name string) *report.Report {
		if known[name] == nil {
			known[name] = reportOfFile(tb, sharedTrace(tb, name), analyze.Options{})
		}
		return known[name]
	}
}

// truth is a row of shared/expected/diffs.md, in both directions.
type truth struct {
	base, head  string
	comparable  bool
	reason      comparison.Code  // of a side that cannot be compared, or of what could not
	class, back comparison.Class // of unit.time.p50; empty where there is no such row
	ratio       float64          // of the mean unit.time; 0: not checked
	verdict     comparison.Verdict
	backVerdict comparison.Verdict
	cause       []string // parts of the sentence, forwards
}

func truths() []truth {
	return []truth{
		{"cs336_hoponga_exp2023_4", "cs336_hoponga_exp2024_2", true, "", comparison.Same, comparison.Same, 1, comparison.Inconclusive, comparison.Inconclusive, []string{"No change: every number"}},
		{"mordred_native_old_b", "mordred_exp2023_4", true, comparison.NoUnit, "", "", 0, comparison.Inconclusive, comparison.Inconclusive, []string{"No change: every number"}},
		// 17.53 → 19.95 ms mean: +13.83 %.
		{"nsysai_mfu_2gpu_before", "nsysai_mfu_2gpu_after", true, "", comparison.Regressed, comparison.Improved, 1.1383, comparison.Fail, comparison.Pass, []string{"+13.8 % slower, 17.53 → 19.95 ms per step, mean: +2.736 ms GPU idle, host slower", "cudaMemsetAsync +423.8 µs per unit", "cudaLaunchKernel +315.7 µs per unit (+38", "GPU compute unchanged"}},
		{"cs336zx_2_7B", "cs336zx_2_7B_clean", true, "", comparison.Same, comparison.Same, 1, comparison.Pass, comparison.Pass, []string{"No change"}},
		{"cs336zx_2_7B", "cs336zx_2_7B_nvtx", true, "", comparison.Same, comparison.Same, 1, comparison.Pass, comparison.Pass, []string{"No change"}},
		// Busy 839.09 → 781.13 ms: -6.91 %.
		{"cs336zx_2_7B_clean", "cs336zx_2_7B_compile_cudagraph", true, comparison.GraphCaptureMismatch, comparison.Improved, comparison.Regressed, 0.9288, comparison.Pass, comparison.Fail, []string{"% faster", "GPU busy -6.9 %", "CUDA graphs hide kernels"}},
		// 701.5 → 206.1 µs: -70.6 %.
		{"rodinia_report2_native", "rodinia_report3_native", true, "", comparison.Improved, comparison.Regressed, 0.2938, comparison.Pass, comparison.Fail, []string{"% faster", "Fan2 -72.6 %", "block 4×4 → 16×16"}},
		{"fuser_h200_report1", "fuser_h200_report2", false, comparison.NoUnit, "", "", 0, comparison.Inconclusive, comparison.Inconclusive, []string{"Not comparable", "no unit of work"}},
		{"nsysai_h100_2gpu_1s", "nsysai_mfu_2gpu_before", false, comparison.DifferentWork, comparison.Unsettled, comparison.Unsettled, 0, comparison.Inconclusive, comparison.Inconclusive, []string{"Not comparable", "only 31 % of a unit's compute time is in kernels common to both sides", ": different work; base runs"}},
		{"nsysai_mfu_2gpu_before", "alpa_r1_memcpy_nokernel", false, comparison.EmptySide, "", "", 0, comparison.Inconclusive, comparison.Inconclusive, []string{"Not comparable", "holds no kernels"}},
		{"nsysai_mfu_2gpu_before", "weatherbench_2025_5", false, comparison.EmptySide, "", "", 0, comparison.Inconclusive, comparison.Inconclusive, []string{"Not comparable"}},
		{"nsysai_mfu_2gpu_before", "pycnv_2023_4_1_nocuda", false, comparison.EmptySide, "", "", 0, comparison.Inconclusive, comparison.Inconclusive, []string{"Not comparable"}},
		{"cs336zx_2_7B", "sglang_baseline_report", false, comparison.NoUnit, "", "", 0, comparison.Inconclusive, comparison.Inconclusive, []string{"Not comparable", "--unit kernel:"}},
	}
}

func TestTruths(t *testing.T) {
	t.Parallel()
	sharedTrace(t, truths()[0].base) // skips here, where it may
	get := realReports(t)
	for _, w := range truths() {
		t.Run(w.base+" to "+w.head, func(t *testing.T) {
			base, head := get(w.base), get(w.head)
			there, back := diffOf(t, base, head, diff.Options{}), diffOf(t, head, base, diff.Options{})
			t.Log(there.Verdict, there.Cause)
			t.Log(back.Verdict, back.Cause)
			w.check(t, there, w.class, w.verdict, w.ratio)
			ratio := 0.0
			if w.ratio != 0 {
				ratio = 1 / w.ratio
			}
			w.check(t, back, w.back, w.backVerdict, ratio)
			says(t, there, w.cause...)
			mirrored(t, there, back)
		})
	}
}

func (w *truth) check(t *testing.T, c *comparison.Comparison, class comparison.Class, verdict comparison.Verdict, ratio float64) {
	t.Helper()
	if c.Comparable != w.comparable {
		t.Errorf("comparable %v: %v", c.Comparable, c.Reasons)
	}
	if w.reason != "" && (len(c.Reasons) == 0 || c.Reasons[0].Code != w.reason) {
		t.Errorf("reasons %v, want %s", c.Reasons, w.reason)
	}
	if verdict != "" && c.Verdict != verdict {
		t.Errorf("verdict %s, want %s: %+v", c.Verdict, verdict, c.Gates)
	}
	if c.Verdict == comparison.Fail && class != comparison.Regressed {
		t.Errorf("fails")
	}
	if class == "" {
		return
	}
	if r := primaryRow(t, c, "unit.time.p50"); r.Class != class {
		t.Errorf("unit.time.p50 is %s, want %s: %s", r.Class, class, r.Why)
	}
	if r := primaryRow(t, c, "unit.time.mean"); ratio != 0 && math.Abs(*r.Ratio-ratio) > 0.002*ratio {
		t.Errorf("unit.time.mean changes by %v, want %v", *r.Ratio, ratio)
	}
}

// No kernel is blamed for a slower host, and none for what CUDA graphs hide.
func TestNoKernelIsBlamed(t *testing.T) {
	t.Parallel()
	get := realReports(t)
	c := diffOf(t, get("nsysai_mfu_2gpu_before"), get("nsysai_mfu_2gpu_after"), diff.Options{})
	for i := range c.Kernels {
		if k := &c.Kernels[i]; k.Class == comparison.Regressed {
			t.Errorf("%s is blamed: %s", *k.BaseName, k.Why)
		}
	}
	if d := attributed(c, comparison.KindClass, comparison.ClassCompute); math.Abs(d) > 0.006*15e6 {
		t.Errorf("compute changes by %v ns, want 0.2 to 0.5 %%", d)
	}
	within(t, "idle", attributed(c, comparison.KindClass, comparison.ClassIdle), 2_735_815) // 3,969,605.8 - 1,233,790.7
	if c := diffOf(t, get("cs336zx_2_7B_clean"), get("cs336zx_2_7B_compile_cudagraph"), diff.Options{}); len(c.Kernels) > 0 || c.Depth != comparison.DepthUnit {
		t.Errorf("depth %s, %d kernels", c.Depth, len(c.Kernels))
	}
}

func TestARealTraceEqualsItself(t *testing.T) {
	paths := longtest.Captures(t)
	if len(paths) == 0 {
		t.Skip("the real captures are not here")
	}
	for _, path := range paths {
		r := reportOfFile(t, path, analyze.Options{})
		c := diffOf(t, r, r, diff.Options{})
		empty(t, c)
		if c.Verdict != comparison.Inconclusive || !c.Has(comparison.SameCapture) && r.Capture.Content != nil {
			t.Errorf("%s: verdict %s of one capture on both sides: %v", filepath.Base(path), c.Verdict, c.Reasons)
		}
		var a, b bytes.Buffer
		if err := comparison.Write(&a, c); err != nil {
			t.Fatal(err)
		}
		if err := comparison.Write(&b, diffOf(t, r, r, diff.Options{})); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("%s: not the same bytes twice", filepath.Base(path))
		}
	}
}

// Changes injected into a real capture: 746 kernels in each of 11 steps.
func TestInjectedIntoARealCapture(t *testing.T) {
	t.Parallel()
	path := sharedTrace(t, "cs336_hoponga_exp2024_2")
	base := reportOfFile(t, path, analyze.Options{})
	gemm := func(name string) bool { return strings.Contains(name, "xmma_gemm") }
	share := func(match func(name string) bool) float64 {
		var sum float64
		for i := range base.Metrics {
			if m := &base.Metrics[i]; m.ID == "kernel.time_per_unit" && len(m.Labels) == 1 && m.Labels["kernel"] != "" && match(m.Labels["kernel"]) {
				sum += m.Summary.Mean
			}
		}
		return sum
	}
	t.Run("family", func(t *testing.T) {
		c := diffOf(t, base, rewritten(t, path, tracetest.ScaleKernels(gemm, 1.08)), diff.Options{})
		t.Log(c.Cause)
		within(t, "change of the unit", c.Attribution.TotalDelta, 0.08*share(gemm))
		within(t, "change of gemm", attributed(c, comparison.KindCategory, "gemm"), 0.08*share(gemm))
		for i := range c.Kernels {
			k := &c.Kernels[i]
			switch {
			case k.BaseName == nil || k.HeadName == nil || k.PairedBy != comparison.ByExact:
				t.Errorf("a kernel is not paired: %+v", k)
			case gemm(*k.BaseName):
				within(t, "ratio of "+*k.BaseName, *k.Ratio, 1.08)
				if k.Class != comparison.Regressed {
					t.Errorf("%s is %s: %s", *k.BaseName, k.Class, k.Why)
				}
			case k.Class != comparison.Same:
				t.Errorf("%s is %s: %s", *k.BaseName, k.Class, k.Why)
			}
		}
		says(t, c, "gemm")
	})
	if !longtest.On() {
		return // every test of the synthetic engine makes the other edits
	}
	// All matrix products take half as long: four fifths of the compute time before, and nothing else changes.
	t.Run("category", func(t *testing.T) {
		products := func(name string) bool { return strings.Contains(name, "gemm") }
		c := diffOf(t, rewritten(t, path, tracetest.ScaleKernels(products, 2)), base, diff.Options{})
		says(t, c, "-20.98 ms gemm kernels -49.8 %") // one of the category has another name
	})
	t.Run("every kernel", func(t *testing.T) {
		all := func(string) bool { return true }
		c := diffOf(t, base, rewritten(t, path, tracetest.ScaleKernels(all, 1.04)), diff.Options{})
		t.Log(c.Cause)
		within(t, "change of the unit", c.Attribution.TotalDelta, 0.04*share(all))
		says(t, c, "all kernels slower, by 4.0 %")
	})
	t.Run("gap", func(t *testing.T) {
		var starts []int64
		for i := range base.Sections {
			for _, table := range base.Sections[i].Tables {
				for _, row := range table.Rows {
					if table.ID == "units" {
						start, _ := row[6].Int()
						starts = append(starts, start)
					}
				}
			}
		}
		c := diffOf(t, base, rewritten(t, path, tracetest.InsertGaps(3_000_000, starts...)), diff.Options{})
		t.Log(c.Cause)
		within(t, "change of the unit", c.Attribution.TotalDelta, 3_000_000)
		within(t, "change of idle", attributed(c, comparison.KindClass, comparison.ClassIdle), 3_000_000)
		says(t, c, "% slower, ", ": +3 ms GPU idle", "GPU compute unchanged")
	})
	t.Run("shift and rename", func(t *testing.T) {
		c := diffOf(t, base, rewritten(t, path, tracetest.ShiftTime(123_456_789)), diff.Options{})
		empty(t, c)
		if !c.Identical || c.Verdict != comparison.Inconclusive {
			t.Errorf("shifted: identical %v, verdict %s", c.Identical, c.Verdict)
		}
	})
}

// The comment of a real pair stays below 10 KiB, and what is not folded below 2: it begins with the verdict and its cause.
func TestTheCommentOfARealPairIsShort(t *testing.T) {
	get := realReports(t)
	text := diffdoc.Comment(diffOf(t, get("nsysai_mfu_2gpu_before"), get("nsysai_mfu_2gpu_after"), diff.Options{}), diffdoc.CommentOptions{}, 60_000)
	first, _, _ := strings.Cut(text, "<details>")
	if len(text) > 10<<10 || len(first) > 2<<10 || !strings.HasPrefix(text, "### ❌ **FAIL** +13.8 %") {
		t.Errorf("%d bytes, %d of them before the folded parts: %s", len(text), len(first), text[:min(len(text), 100)])
	}
}

// TestStepsOfTwoKinds: half of the steps take 8 to 20 ms and every other one 235, so that a median between them is no size.
// The pair is judged, told and attributed by the mean, in both orders: 153.8 → 117.0 ms, by the host's wait in poll.
func TestStepsOfTwoKinds(t *testing.T) {
	t.Parallel()
	base, head := sharedReport(t, "aip_baseline_nvtx"), sharedReport(t, "aip_opt1")
	if base == nil || head == nil {
		t.Skip("the shared captures are not there")
	}
	for _, way := range []struct {
		base, head *report.Report
		ratio      float64
		fails      bool
		says       string
	}{{base, head, 117.0 / 153.8, false, "-24.0 % faster"}, {head, base, 153.8 / 117.0, true, "+31.6 % slower"}} {
		c := diffOf(t, way.base, way.head, diff.Options{})
		if row := c.Row("unit.time.mean"); row == nil || math.Abs(*row.Ratio-way.ratio) > 0.015 {
			t.Errorf("mean: %+v", row)
		}
		if (c.Verdict == comparison.Fail) != way.fails || c.Verdict == comparison.Inconclusive {
			t.Errorf("%s: %s", c.Verdict, failing(c))
		}
		says(t, c, way.says, "poll inside enumerate(DataLoader)", "GPU compute unchanged")
		for i := range c.Gates {
			if g := &c.Gates[i]; g.CountsAs == comparison.Fail && !strings.HasPrefix(g.Metric, "unit.time") && !strings.HasPrefix(g.Metric, "work.time") {
				t.Errorf("fails by %s: %s", g.Metric, g.Reason)
			}
		}
	}
}

// A graph of 900 µs and one of 781 ms hide their kernels, and the kernels beside them are others.
func TestGraphsOfOtherWork(t *testing.T) {
	real := reportOfFile(t, sharedTrace(t, "cs336zx_2_7B_compile_cudagraph"), analyze.Options{})
	small := reportOfFile(t, filepath.Join("..", "testdata", "graph_hidden.sqlite"), analyze.Options{})
	for _, p := range [][2]*report.Report{{small, real}, {real, small}} {
		if c := diffOf(t, p[0], p[1], diff.Options{}); c.Comparable || c.Verdict != comparison.Inconclusive || !c.Has(comparison.DifferentWork) {
			t.Errorf("%s: %s", c.Verdict, c.Cause)
		}
	}
}
