package diff_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
)

// rankFiles are reports of the captures of each rank of a run, by the names that they are given.
func rankFiles(t *testing.T, seed uint64, payload bool, device int64, names ...string) (list []*report.Report) {
	t.Helper()
	run := tracetest.Fleet{Ranks: len(names), Steps: 60, Jitter: 20_000, Seed: seed, NoPayload: !payload, SessionGaps: device > 0}.Run()
	for i, name := range names {
		b := tracetest.New(tracetest.Schema("3.25.0"))
		run[i].AddTo(b, int64(1000+100*int(seed)+i), device*int64(i))
		b.Row("TARGET_INFO_SESSION_START_TIME", tracetest.Row{"utcEpochNs": tracetest.Int(run[i].Session + 60_000_000_000*int64(seed)),
			"utcTime": tracetest.Text("2023-11-14T22:13:20"), "localTime": tracetest.Text("2023-11-14T22:13:20")})
		res, err := analyze.Run(context.Background(), b.WriteTB(t), analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		res.Report.Trace.Name = name
		list = append(list, res.Report)
	}
	return list
}

// TestRanksAreNoRepeats: captures of a side that are of two ranks of a run are refused, with the command that merges them;
// they share what happened in the run. If they only ran on two GPUs, a warning says so.
func TestRanksAreNoRepeats(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name    string
		payload bool
		device  int64
		files   []string
		refused bool
		says    string
	}{
		{"NCCL tells the ranks", true, 0, []string{"a.sqlite", "b.sqlite"}, true,
			"base: a.sqlite, b.sqlite are of the ranks 0, 1 of a run, not repeats of it: make one report of each run (explain report a.sqlite b.sqlite --out base/) and compare those"},
		{"names tell the ranks", false, 0, []string{"base.rank0.sqlite", "base.rank1.sqlite"}, true,
			"(explain report base.rank0.sqlite base.rank1.sqlite --rank 'rank[-_.=]?(\\d{1,6})' --out base/)"},
		{"two GPUs", false, 1, []string{"a.sqlite", "b.sqlite"}, false, "If they are ranks of one run: make one report"},
	} {
		t.Run(x.name, func(t *testing.T) {
			c, err := diff.Compare(rankFiles(t, 1, x.payload, x.device, x.files...), rankFiles(t, 2, x.payload, x.device, x.files...), diff.Options{})
			if err != nil {
				t.Fatal(err)
			}
			list := c.Warnings
			if x.refused {
				list = c.Reasons
			}
			if c.Comparable == x.refused || !strings.Contains(fmt.Sprint(list), x.says) || !strings.Contains(fmt.Sprint(list), string(comparison.OneRun)) {
				t.Errorf("comparable %v, %s: reasons %+v, warnings %+v", c.Comparable, c.Verdict, c.Reasons, c.Warnings)
			}
		})
	}
	// one rank a side, and repeats of one rank, are compared
	one := rankFiles(t, 1, true, 0, "a.sqlite", "b.sqlite")[:1]
	two := []*report.Report{rankFiles(t, 2, true, 0, "c.sqlite", "d.sqlite")[0], rankFiles(t, 3, true, 0, "e.sqlite", "f.sqlite")[0]}
	if c, err := diff.Compare(one, two, diff.Options{}); err != nil || !c.Comparable || strings.Contains(fmt.Sprint(c.Reasons, c.Warnings), string(comparison.OneRun)) {
		t.Errorf("%v, %+v, %+v", err, c.Reasons, c.Warnings)
	}
}

// TestRankInAFileName: the rank that a capture states counts, whatever its file name; a name says nothing if no GPU took
// part in no collective, or of several GPUs: a LoRA of rank 8 and one of rank 16 are no ranks of a run.
func TestRankInAFileName(t *testing.T) {
	t.Parallel()
	names := []string{"lora_rank8.sqlite", "lora_rank16.sqlite"}
	repeats := func(payload bool, change func(r *report.Report)) (list []*report.Report) {
		for i, name := range names {
			r := rankFiles(t, uint64(i+1), payload, 0, "a.sqlite", "b.sqlite")[0]
			r.Trace.Name = name
			change(r)
			list = append(list, r)
		}
		return list
	}
	for name, side := range map[string][]*report.Report{
		"the captures state that both are of rank 0": repeats(true, func(*report.Report) {}),
		"no collectives": repeats(false, func(r *report.Report) {
			r.Metrics = slices.DeleteFunc(r.Metrics, func(m report.Metric) bool { return m.ID == "gpu.comm_time" })
		}),
		"several GPUs": repeats(false, func(r *report.Report) {
			i := slices.IndexFunc(r.Metrics, func(m report.Metric) bool { return m.ID == "gpu.comm_time" })
			second := r.Metrics[i]
			second.Labels = report.Labels{"device": "5"}
			r.Metrics = append(r.Metrics, second)
		}),
	} {
		c, err := diff.Compare(side, side[:1], diff.Options{})
		if err != nil || strings.Contains(fmt.Sprint(c.Reasons, c.Warnings), string(comparison.OneRun)) {
			t.Errorf("%s: %v, %+v, %+v", name, err, c.Reasons, c.Warnings)
		}
	}
}
