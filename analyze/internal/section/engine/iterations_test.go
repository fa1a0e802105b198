package engine_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

// The example has eight iterations: prefill 40 ms; decode 10, 12, 14 and 12; mixed 60 and 80; idle 0.02.
func TestIterations(t *testing.T) {
	r := analyseLog(t, exampleLog)
	sectiontest.Metric(t, r, 8, "serve.iterations")
	sectiontest.Metric(t, r, 4, "serve.iterations", "type", "decode")
	sectiontest.Metric(t, r, 1, "serve.iterations", "type", "idle")
	sectiontest.Metric(t, r, 13e6, "serve.iteration_time") // between 12 and 14
	sectiontest.Metric(t, r, 80e6, "serve.iteration_time_max")
	sectiontest.Metric(t, r, 12e6, "serve.iteration_time", "type", "decode")
	sectiontest.Metric(t, r, 70e6, "serve.iteration_time", "type", "mixed")
	sectiontest.Metric(t, r, 40e6, "serve.iteration_time", "type", "prefill")
	sectiontest.Metric(t, r, 140/228.02, "serve.iteration_time_share", "type", "mixed")
	sectiontest.Metric(t, r, 550, "serve.context_tokens")
	sectiontest.Metric(t, r, 450, "serve.context_tokens", "type", "mixed")
	sectiontest.Metric(t, r, 11, "serve.generation_tokens")
	sectiontest.Metric(t, r, 2, "serve.iteration_tokens") // of 1, 2, 2, 2, 100, 202, 252
	if !hasFinding(r, "prefill_slows_decode") || hasFinding(r, "iteration_stall") {
		t.Errorf("findings %v", r.Findings)
	}
}

// Units: both mixed iterations have 202 and 252 tokens, so up to 256; three decode iterations have two requests. The first
// decode iteration and the prefill occur once, the idle one is no work.
func TestIterationsAreUnits(t *testing.T) {
	r := analyseLog(t, exampleLog)
	sectiontest.Metric(t, r, 70e6, "unit.time")
	sectiontest.Metric(t, r, 2, "unit.count")
	sectiontest.Metric(t, r, 12e6, "unit.time", "phase", "decode")
	sectiontest.Metric(t, r, 3, "unit.count", "phase", "decode", "batch", "2")
	sectiontest.Metric(t, r, 70e6, "unit.time", "phase", "mixed", "tokens", "256")
	u := r.Unit
	if u.Kind != "iteration" || len(u.Groups) != 2 || u.Groups[0].Phase != "mixed" || *u.Groups[0].Tokens != 256 || u.Groups[1].Phase != "decode" || *u.Groups[1].Batch != 2 || u.Groups[1].Count != 3 || u.Trimmed.Other != 2 {
		t.Errorf("unit %+v", u)
	}
	withTrace := sectiontest.AnalyseFile(t, "../../../../testdata/tiny.sqlite", analyze.Options{Evidence: []analyze.Evidence{{Path: exampleLog}}}).Report
	if withTrace.Unit.Kind == "iteration" || withTrace.Find("serve.iteration_time", nil) == nil {
		t.Errorf("with a trace the unit is the trace's: %+v", withTrace.Unit)
	}
}

// The first units of a kind are slow while things warm up, and are left out as in traces.
func TestIterationsWarmUp(t *testing.T) {
	var lines []string
	for i, ms := range []float64{90, 10, 11, 10, 9, 10, 11, 10} {
		lines = append(lines, fmt.Sprintf("INFO 03-01 10:00:00 [core.py:348] Iteration(%d): 0 context requests, 0 context tokens, 4 generation requests, 4 generation tokens, iteration elapsed time: %.2f ms", i, ms))
	}
	r := logOf(t, lines...)
	sectiontest.Metric(t, r, 8, "serve.iterations")
	sectiontest.Metric(t, r, 7, "unit.count")
	sectiontest.Metric(t, r, 10e6, "unit.time")
	if m := r.Find("serve.iteration_time", nil).Summary; m.Max != 90e6 {
		t.Errorf("statistics over all iterations: %+v", m)
	}
	if r.Unit.Trimmed.Warmup != 1 {
		t.Errorf("trimmed %+v", r.Unit.Trimmed)
	}
}

// The numbers of facts/vllm-logs.md.
func TestIterationsOfTheRealLog(t *testing.T) {
	r := sharedLog(t, "vllm_0.15.0_server.log")
	sectiontest.Metric(t, r, 7241, "serve.iterations")
	for typ, n := range map[string]float64{"decode": 6759, "mixed": 477, "prefill": 2, "idle": 3} {
		sectiontest.Metric(t, r, n, "serve.iterations", "type", typ)
	}
	sectiontest.Metric(t, r, 2534186, "serve.context_tokens")
	sectiontest.Metric(t, r, 713567, "serve.generation_tokens")
	s := sectiontest.SectionOf(t, r, "iterations")
	for _, c := range []struct {
		row, column string
		want, scale float64
	}{
		{"all", "mean", 12.60, 1e6}, {"all", "p50", 9.62, 1e6}, {"all", "min", 0.02, 1e6}, {"all", "max", 893.02, 1e6}, {"all", "std", 22.88, 1e6},
		{"all", "context_requests", 643, 1}, {"all", "generation_requests", 713567, 1}, {"all", "max_context_tokens", 8191, 1}, {"all", "max_generation_tokens", 128, 1},
		{"decode", "share", 93.34, 0.01}, {"decode", "mean", 8.46, 1e6}, {"decode", "mean_generation_tokens", 97.40, 1},
		{"mixed", "share", 6.59, 0.01}, {"mixed", "mean", 71.08, 1e6}, {"mixed", "mean_context_tokens", 5308.09, 1}, {"mixed", "mean_generation_tokens", 115.86, 1},
		{"prefill", "mean", 78.11, 1e6},
	} {
		v, _ := cellOf(t, s, "iteration_types", c.row, c.column).Num()
		if got := math.Round(v/c.scale*100) / 100; got != c.want {
			t.Errorf("%s of %s: %v, want %v", c.column, c.row, got, c.want)
		}
	}
}

// iterations.csv has a row per iteration under the documented columns.
func TestIterationsTable(t *testing.T) {
	res, err := analyze.Run(t.Context(), exampleLog, analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	list := attached(t, res, "iterations.csv")
	if len(list.Rows) != 8 || list.TotalRows != 8 {
		t.Fatalf("%d rows", len(list.Rows))
	}
	row := list.Rows[4] // Iteration(4)
	stamp, _ := row[1].Str()
	typ, _ := row[8].Str()
	elapsed, _ := row[6].Int()
	line, _ := row[7].Int()
	if stamp != "03-01 10:00:03" || typ != "mixed" || elapsed != 60e6 || line != 35 {
		t.Errorf("row %v", row)
	}
}

func attached(tb testing.TB, res *analyze.Result, file string) *report.Table {
	tb.Helper()
	for i := range res.Details {
		if res.Details[i].File == file {
			return &res.Details[i]
		}
	}
	tb.Fatalf("no %s", file)
	return nil
}
