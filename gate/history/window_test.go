package history_test

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/policy"
	"github.com/nsys-llm/explain/gate/history"
	"github.com/nsys-llm/explain/gate/history/historytest"
)

func window(t *testing.T, s *history.Store, head *report.Report) *history.Window {
	t.Helper()
	w, err := history.NewWindow(context.Background(), s, "team/server", "main", head)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestNoiseOfRuns: 24 runs with noise of 1 %, one of them odd, after a step of 20 %. The floor is that of 1 %: the median
// deviation gives the standard deviation to 1/√(2·0.37·19), some 27 %.
func TestNoiseOfRuns(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "h.db"))
	nights(t, s, 30, func(i int) historytest.Capture {
		c := historytest.Capture{Noise: 0.01, Steps: 4}
		if i >= 10 {
			c.Level = 1.2
		}
		if i == 25 {
			c.Level = 1.5
		}
		return c
	})
	head := historytest.Report(t, historytest.Capture{Seed: 99})
	noise, text, err := window(t, s, head).Noise(context.Background())
	if err != nil || noise == nil {
		t.Fatalf("%s: %v", text, err)
	}
	if text != "noise: from 20 runs, 2026-05-16 to 2026-06-04" {
		t.Errorf("%q", text)
	}
	m := noise.Find("unit.time", report.Labels{})
	if m == nil || m.Noise < 0.005 || m.Noise > 0.016 {
		t.Errorf("noise %+v, want about 0.01", m)
	}
	if m := noise.Find("unit.time.p50", report.Labels{}); m == nil || m.Floor < 0.012 || m.Floor > 0.045 {
		t.Errorf("floor %v", m)
	}
	// another machine: nothing is known of it
	none, text, err := window(t, s, historytest.Report(t, historytest.Capture{Seed: 98, Machine: 7})).Noise(context.Background())
	if err != nil || none != nil || !strings.Contains(text, "0 runs at the present level in this environment, and 5 are needed") {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := history.NewWindow(context.Background(), s, "team/server", "main", historytest.Report(t, historytest.Capture{Seed: 97, GPU: "NVIDIA H200"})); err == nil ||
		!strings.Contains(err.Error(), `gpu is "NVIDIA H100 80GB HBM3" and "NVIDIA H200"`) {
		t.Errorf("another workload: %v", err)
	}
}

func TestBaseIsAWindow(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "h.db"))
	nights(t, s, 20, func(i int) historytest.Capture {
		c := historytest.Capture{Noise: 0.004, Steps: 4}
		if i == 12 {
			c.Level = 1.1
		}
		return c
	})
	w := window(t, s, historytest.Report(t, historytest.Capture{Seed: 99}))
	for commit, want := range map[string]struct {
		exact bool
		notes string
	}{
		historytest.Commit(19): {true, "from the median of its window of 20 runs."},
		historytest.Commit(12): {true, "it may be an odd run"},
		historytest.Commit(2):  {true, "The baseline is 17 days older than the newest run of the branch."},
		historytest.Commit(70): {false, "The history has no run of the base 0000000000; compared with 0000000000 of 2026-05-25."},
	} {
		b := w.Base(commit)
		if b.Exact != want.exact || len(b.Runs) != 1 || !strings.Contains(strings.Join(b.Notes, " "), want.notes) {
			t.Errorf("%s: %+v; want %+v", commit, b, want)
		}
	}
	if line := w.Line(); !strings.HasPrefix(line, "unit.time.p50 of decode/32: ") || !strings.HasSuffix(line, "(+0.1 %, 20 nights)") && !strings.Contains(line, "20 nights") ||
		strings.Count(line, "█") != 1 {
		t.Errorf("%s", line)
	}
}

// TestCreepFailsAtTheThirdMerge: six merges of +2 % each, against 5 % since the release. 1.02³ is 6.1 %.
func TestCreepFailsAtTheThirdMerge(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "h.db"))
	ctx := context.Background()
	of := func(merges int, seed uint64) *report.Report {
		return historytest.Report(t, historytest.Capture{Seed: seed, Steps: 6, Level: math.Pow(1.02, float64(merges)), Noise: 0.0005})
	}
	p := night(0)
	p.Tags = []string{"v1.4.0"}
	base := of(0, 1)
	add(t, s, p, base)
	p5 := 0.05
	for merge := 1; merge <= 6; merge++ {
		head := of(merge, uint64(merge+1))
		pol := policy.Default()
		pol.Rules = append(pol.Rules, policy.Rule{ID: "creep", Metric: "unit.time.p50", Labels: report.Labels{}, Level: comparison.LevelError,
			Max: &p5, LimitUnit: report.Ratio, Since: "v1.4.0"})
		if err := history.Spent(ctx, s, "team/server", "main", head, historytest.Commit(merge-1), pol.Rules, nil); err != nil {
			t.Fatal(err)
		}
		c, err := diff.Compare([]*report.Report{base}, []*report.Report{head}, diff.Options{Policy: pol})
		if err != nil {
			t.Fatal(err)
		}
		want := comparison.Pass
		if merge >= 3 {
			want = comparison.Fail
		}
		for i := range c.Gates {
			g := &c.Gates[i]
			if g.Rule != "creep" {
				if g.Verdict == comparison.Fail {
					t.Errorf("merge %d: %s fails of its own: %s", merge, g.Rule, g.Reason)
				}
				continue
			}
			if g.Verdict != want || g.Ratio == nil || math.Abs(*g.Ratio-math.Pow(1.02, float64(merge))) > 0.004 {
				t.Errorf("merge %d: %s, %s", merge, g.Verdict, g.Reason)
			}
			if merge == 3 && !strings.Contains(g.Reason, "before: 0000000000 +") {
				t.Errorf("nobody is named: %s", g.Reason)
			}
			if merge == 6 && !strings.Contains(g.Reason, "the time before is known to ±0.") {
				t.Errorf("creep counts as noise: %s", g.Reason)
			}
		}
		if want == comparison.Fail != (c.Verdict == comparison.Fail) {
			t.Errorf("merge %d: %s", merge, c.Verdict)
		}
		add(t, s, night(merge), head) // merged all the same
		base = head
	}
	// who changes nothing does not fail for what others used up
	head := of(6, 50)
	pol := policy.Default()
	pol.Rules = []policy.Rule{{ID: "creep", Metric: "unit.time.p50", Labels: report.Labels{}, Level: comparison.LevelError, Max: &p5, LimitUnit: report.Ratio, Since: "v9"}}
	c, err := diff.Compare([]*report.Report{base}, []*report.Report{head}, diff.Options{Policy: pol})
	if err != nil || c.Verdict != comparison.Inconclusive || !strings.Contains(c.Gates[0].Reason, "name it with --history") {
		t.Errorf("without a history: %s %s %v", c.Verdict, c.Gates[0].Reason, err)
	}
	if err := history.Spent(ctx, s, "team/server", "main", head, "", pol.Rules, nil); err != nil || !strings.Contains(pol.Rules[0].Spent[policy.SpentOnNothing].Why, "no such commit: v9") {
		t.Errorf("%+v %v", pol.Rules[0].Spent, err)
	}
	pol.Rules[0].Since = "v1.4.0"
	faster := of(6, 51)
	fast := historytest.Report(t, historytest.Capture{Seed: 52, Steps: 6, Level: 1.12, Noise: 0.0005})
	if err := history.Spent(ctx, s, "team/server", "main", fast, "", pol.Rules, nil); err != nil {
		t.Fatal(err)
	}
	c, err = diff.Compare([]*report.Report{faster}, []*report.Report{fast}, diff.Options{Policy: pol})
	if err != nil || c.Verdict != comparison.Warn || !strings.Contains(c.Gates[0].Reason, "was used up before") {
		t.Errorf("%s %s %v", c.Verdict, c.Gates[0].Reason, err)
	}
}
