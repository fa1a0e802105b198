package diff_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
)

// windows of a capture, as shares of the time from its first CUDA call or kernel to its last. The last are for -long.
var windows = []struct {
	name     string
	from, to float64
}{
	{"whole", 0, 1}, {"first half", 0, 0.5}, {"second half", 0.5, 1}, {"middle", 0.2, 0.8}, {"uneven", 0.37, 0.91},
	{"tail", 0.1, 1}, {"head", 0, 0.9}, {"second quarter", 0.25, 0.5}, {"third quarter", 0.5, 0.75},
}

// windowed are the real captures, and those of ranks, which work on a large and a small problem by turns.
func windowed(t *testing.T) []string { return append(longtest.Captures(t), longtest.Ranks(t)...) }

// Windows of one run are one program: none of them fails against another, whatever the window cut off. With -long it is
// asked of all real captures.
func TestWindowsOfARunNeverFail(t *testing.T) {
	t.Parallel()
	paths := append(windowed(t), servingTrace, filepath.Join("..", "testdata", "serving_graph.sqlite"))
	compared, decided := 0, 0
	for _, path := range paths {
		reports := map[string]*report.Report{}
		for _, w := range windows[:longtest.N(5, len(windows))] {
			to := filepath.Join(t.TempDir(), w.name+".sqlite")
			if tracetest.Window(t, path, to, w.from, w.to) {
				reports[w.name] = reportOfFile(t, to, analyze.Options{})
			}
		}
		if len(reports) == 0 {
			continue
		}
		pairs := [][2]string{{"first half", "second half"}, {"second quarter", "third quarter"}, {"middle", "uneven"}}
		for _, w := range windows[1:] {
			pairs = append(pairs, [2]string{"whole", w.name})
		}
		for _, pair := range pairs {
			if reports[pair[0]] == nil || reports[pair[1]] == nil {
				continue
			}
			for _, p := range [][2]string{pair, {pair[1], pair[0]}} {
				c := compareReports(t, one(reports[p[0]]), one(reports[p[1]]), diff.Options{})
				compared++
				switch c.Verdict {
				case comparison.Fail, comparison.Error:
					t.Errorf("%s, %s → %s: %s: %s", filepath.Base(path), p[0], p[1], c.Verdict, c.Cause)
				case comparison.Pass:
					decided++
				case comparison.Warn, comparison.Inconclusive:
				}
			}
		}
	}
	if t.Logf("%d comparisons, %d passed", compared, decided); decided == 0 {
		t.Error("none passed")
	}
}

// phases are the captures of programs whose steps change along the run, so that windows of it differ.
var phases = map[string]string{
	"rodinia_report2_native": "a ramp of 4,095 steps", "rodinia_report3_native": "a ramp of 4,095 steps",
	"cs336zx_2_7B_nvtx": "a first pass that warms up", "cs336_tianshi_a": "steps of 86 to 100 ms, then 94 to 132",
}

// Windows that begin and end at any time, also in the middle of a step, whose units may start at another kernel: of
// those of steady runs 1 % at most fail against each other. With -long it is asked of all captures.
func TestWindowsAtAnyTime(t *testing.T) {
	t.Parallel()
	paths := append(windowed(t), servingTrace, filepath.Join("..", "testdata", "serving_graph.sqlite"))
	compared, failed := 0, 0
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".sqlite")
		rng := rand.New(rand.NewPCG(uint64(len(name)), 7))
		var reports []*report.Report
		for i := range longtest.N(4, 12) {
			length := 0.2 + 0.8*rng.Float64()
			from := (1 - length) * rng.Float64()
			to := filepath.Join(t.TempDir(), fmt.Sprint(i, ".sqlite"))
			if tracetest.Window(t, path, to, from, from+length) {
				reports = append(reports, reportOfFile(t, to, analyze.Options{}))
			}
		}
		for i, base := range reports {
			for k, head := range reports {
				if i == k {
					continue
				}
				c := compareReports(t, one(base), one(head), diff.Options{})
				bad := c.Verdict == comparison.Fail || c.Verdict == comparison.Error
				if why := phases[name]; why != "" {
					if bad {
						t.Logf("%s, which is %s: %s", name, why, failing(c))
					}
					continue
				}
				if compared++; bad {
					failed++
					t.Logf("%s, window %d → %d: %s: %s", name, i, k, c.Cause, failing(c))
				}
			}
		}
	}
	if t.Logf("%d of %d comparisons fail", failed, compared); 100*failed > compared {
		t.Error("more than 1 %")
	}
}
