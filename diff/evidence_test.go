package diff_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/policy"
)

// loggedServer is a synthetic vLLM server's log.
type loggedServer struct {
	maxLen     int     // max_model_len; 0: 4096
	model      string  // empty: x/y
	quant      string  // empty: None
	slow       float64 // of iterations, and of the throughput; 0: 1
	seed       int     // of the jitter
	plain      bool    // without iteration details
	batch      int     // requests; 0: 16
	iterations int     // 0: 120
}

// jitter is up to 1 % either way, by a rule.
func (s *loggedServer) jitter(i int, v float64) float64 {
	return v * (1 + float64((i*7919+s.seed*104729)%9-4)/400)
}

// write writes the log and analyses it.
func (s *loggedServer) report(tb testing.TB) *report.Report {
	tb.Helper()
	or := func(v, def int) int {
		if v == 0 {
			return def
		}
		return v
	}
	slow, model, quant := s.slow, s.model, s.quant
	if slow == 0 {
		slow = 1
	}
	if model == "" {
		model = "x/y"
	}
	if quant == "" {
		quant = "None"
	}
	n := or(s.maxLen, 4096)
	var b strings.Builder
	at := func(i int) string {
		return time.Date(2000, 3, 1, 10, 0, 10*i, 0, time.UTC).Format("01-02 15:04:05")
	}
	fmt.Fprintf(&b, "INFO %s [core.py:96] Initializing a V1 LLM engine (v0.15.0) with config: model='%s', dtype=torch.bfloat16, max_seq_len=%d, tensor_parallel_size=2, pipeline_parallel_size=1, quantization=%s\n", at(0), model, n, quant)
	fmt.Fprintf(&b, "INFO %s [kv_cache_utils.py:1] Available KV cache memory: 8.00 GiB\nINFO %s [kv_cache_utils.py:1] GPU KV cache size: 65,536 tokens\nINFO %s [kv_cache_utils.py:1] Maximum concurrency for %d tokens per request: %.2fx\n", at(0), at(0), at(0), n, 65536/float64(n))
	for i := range 40 {
		fmt.Fprintf(&b, "INFO %s [loggers.py:257] Engine 000: Avg prompt throughput: %.1f tokens/s, Avg generation throughput: %.1f tokens/s, Running: 16 reqs, Waiting: 0 reqs, GPU KV cache usage: 40.0%%, Prefix cache hit rate: 0.0%%\n",
			at(i+1), s.jitter(i, 2000/slow), s.jitter(i+3, 1000/slow))
	}
	if !s.plain {
		for i := range or(s.iterations, 120) {
			fmt.Fprintf(&b, "INFO %s [core.py:348] Iteration(%d): 0 context requests, 0 context tokens, %d generation requests, %d generation tokens, iteration elapsed time: %.2f ms\n", at(50), i, or(s.batch, 16), or(s.batch, 16), s.jitter(i, 10*slow))
		}
	}
	path := filepath.Join(tb.TempDir(), fmt.Sprintf("s%d.log", s.seed))
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		tb.Fatal(err)
	}
	res, err := analyze.Run(tb.Context(), path, analyze.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return res.Report
}

func compareReports(tb testing.TB, base, head []*report.Report, opt diff.Options) *comparison.Comparison {
	tb.Helper()
	c, err := diff.Compare(base, head, opt)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func one(r *report.Report) []*report.Report { return []*report.Report{r} }

func rowOf(tb testing.TB, c *comparison.Comparison, metric string) *comparison.Row {
	tb.Helper()
	for i := range c.Primary {
		if c.Primary[i].Metric == metric {
			return &c.Primary[i]
		}
	}
	tb.Fatalf("no row %s in %v", metric, c.Primary)
	return nil
}

// Two runs of one server pass; a server that takes 20 % longer for each iteration fails, by its iterations and by its
// throughput. The other way round the same numbers are better.
func TestEvidenceOfLogs(t *testing.T) {
	base, same, slow := (&loggedServer{seed: 1}).report(t), (&loggedServer{seed: 2}).report(t), (&loggedServer{seed: 3, slow: 1.2}).report(t)
	c := compareReports(t, one(base), one(same), diff.Options{})
	if c.Verdict != comparison.Pass || !c.Comparable || c.Depth != comparison.DepthEvidence || c.Counts.GatesChecked != 5 { // step, mean, tail, generation, prompt
		t.Errorf("two runs of one server: %s, %d gates, %v", c.Verdict, c.Counts.GatesChecked, c.Gates)
	}
	if r := rowOf(t, c, "unit.time.p50"); r.Class != comparison.Same || !r.Unreplicated {
		t.Errorf("unit.time.p50: %+v", r)
	}
	c = compareReports(t, one(base), one(slow), diff.Options{})
	if c.Verdict != comparison.Fail || !strings.HasPrefix(c.Cause, "+20.0 % slower, 10 → 12 ms, median; worse: unit.time.p50 +20") {
		t.Errorf("a slower server: %s, %s", c.Verdict, c.Cause)
	}
	for metric, want := range map[string]float64{"unit.time.p50": 1.2, "unit.time.mean": 1.2, "serve.generation_throughput.p50": 1 / 1.2} {
		r := rowOf(t, c, metric)
		if r.Class != comparison.Regressed || math.Abs(*r.Ratio-want) > 0.01 || r.Interval == nil {
			t.Errorf("%s: %+v", metric, r)
		}
	}
	if c.Unit.Kind != "iteration" || c.Unit.Phase != "decode" || *c.Unit.Batch != 16 || c.Unit.BaseN != 120 {
		t.Errorf("unit %+v", c.Unit)
	}
	if r := rowOf(t, c, "serve.kv_cache_tokens"); r.Class != comparison.Same || r.Unreplicated {
		t.Errorf("the cache is the same: %+v", r)
	}
	back := compareReports(t, one(slow), one(base), diff.Options{})
	if back.Verdict != comparison.Pass || !strings.HasPrefix(back.Cause, "-16.7 % faster, 12 → 10 ms, median; better: ") {
		t.Errorf("the other way round: %s, %s", back.Verdict, back.Cause)
	}
	a, b := rowOf(t, c, "serve.generation_throughput.p50").Interval, rowOf(t, back, "serve.generation_throughput.p50").Interval
	if math.Abs(a.Low*b.High-1) > 1e-9 || math.Abs(a.High*b.Low-1) > 1e-9 {
		t.Errorf("swapping the sides does not invert the interval: %+v, %+v", a, b)
	}
}

// Without iteration details what the server logs every few seconds decides.
func TestEvidenceWithoutIterations(t *testing.T) {
	base, slow := (&loggedServer{seed: 1, plain: true}).report(t), (&loggedServer{seed: 3, slow: 1.2, plain: true}).report(t)
	c := compareReports(t, one(base), one(slow), diff.Options{})
	if c.Verdict != comparison.Fail || rowOf(t, c, "serve.generation_throughput.p50").Class != comparison.Regressed || c.Unit.Kind == "iteration" {
		t.Errorf("%s, %+v", c.Verdict, c.Primary)
	}
}

// What makes two servers differ is never passed over: the numbers are shown, and nothing is concluded from them.
func TestEvidenceOfDifferentServers(t *testing.T) {
	base := (&loggedServer{seed: 1}).report(t)
	for name, c := range map[string]struct {
		head *loggedServer
		want string
	}{
		"max_model_len": {&loggedServer{seed: 2, maxLen: 8192}, "max_model_len differs: 4096 on one side, 8192 on the other"},
		"model":         {&loggedServer{seed: 2, model: "x/z"}, "the model differs"},
		"quantization":  {&loggedServer{seed: 2, quant: "fp8"}, ""}, // one side does not say: unknown differs from nothing
	} {
		got := compareReports(t, one(base), one(c.head.report(t)), diff.Options{})
		if c.want == "" {
			if !got.Comparable {
				t.Errorf("%s: %v", name, got.Reasons)
			}
			continue
		}
		if got.Comparable || got.Verdict != comparison.Inconclusive || got.Reasons[0].Code != comparison.EnvironmentMismatch || !strings.Contains(got.Reasons[0].Text, c.want) || len(got.Primary) < 5 {
			t.Errorf("%s: %s, %v, %d rows", name, got.Verdict, got.Reasons, len(got.Primary))
		}
		for _, r := range got.Primary {
			if r.Class != comparison.Unsettled {
				t.Errorf("%s: %s is %s", name, r.Metric, r.Class)
			}
		}
	}
	fp8, awq := (&loggedServer{seed: 1, quant: "fp8"}).report(t), (&loggedServer{seed: 2, quant: "awq"}).report(t)
	if c := compareReports(t, one(fp8), one(awq), diff.Options{}); c.Comparable {
		t.Error("quantizations differ, and the sides are comparable")
	}
}

// printedPolicy is the policy in the page about evidence, as a reader would copy it.
func printedPolicy(t *testing.T) *policy.Policy {
	t.Helper()
	page, err := os.ReadFile("../analyze/internal/evidence/evidence.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(page), "```yaml\n")
	text, _, ok2 := strings.Cut("\n"+text, "```")
	if !ok || !ok2 {
		t.Fatal("the page prints no policy")
	}
	known := analyze.Metrics()
	p, err := policy.Read(strings.NewReader(strings.ReplaceAll(text, "\n  ", "\n")), known)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return p
}

// The study of max_model_len compares servers that differ in it alone: a policy says so, and memory is compared too.
func TestEvidenceOfTheMaxModelLenStudy(t *testing.T) {
	rules := printedPolicy(t)
	c := compareReports(t, one((&loggedServer{seed: 1}).report(t)), one((&loggedServer{seed: 2, maxLen: 8192}).report(t)), diff.Options{Policy: rules})
	if !c.Comparable || c.Verdict != comparison.Pass {
		t.Errorf("%s, %v", c.Verdict, c.Reasons)
	}
	// 8 GiB over 16 and over 8 requests.
	if r := rowOf(t, c, "serve.kv_bytes_per_request"); *r.Base != 512<<20 || *r.Head != 1<<30 || r.Class != comparison.Regressed {
		t.Errorf("%+v", r)
	}
	if r := rowOf(t, c, "serve.kv_bytes_per_token"); r.Class != comparison.Same || *r.Base != 131072 {
		t.Errorf("%+v", r)
	}
	found := false
	for _, r := range c.Residue {
		found = found || r.Field == "max_model_len" && r.Soft
	}
	if !found {
		t.Errorf("residue %v", c.Residue)
	}
}

// Iterations of other batch sizes are other work: they are not compared, what else was measured is.
func TestEvidenceOfOtherIterations(t *testing.T) {
	c := compareReports(t, one((&loggedServer{seed: 1}).report(t)), one((&loggedServer{seed: 2, batch: 8}).report(t)), diff.Options{})
	if !c.Comparable || len(c.Reasons) != 1 || c.Reasons[0].Code != comparison.DifferentWork || rowOf(t, c, "serve.generation_throughput.p50").Class != comparison.Same {
		t.Errorf("%v, %v", c.Reasons, c.Primary)
	}
	for _, r := range c.Primary {
		if strings.HasPrefix(r.Metric, "unit.") {
			t.Errorf("iterations of 16 requests were compared to some of 8: %+v", r)
		}
	}
}

// Several logs of each side are tested against what differs between logs of one side.
func TestEvidenceOfSeveralLogs(t *testing.T) {
	side := func(slow float64, seeds ...int) []*report.Report {
		var list []*report.Report
		for _, s := range seeds {
			list = append(list, (&loggedServer{seed: s, slow: slow * (1 + float64(s%3)/500)}).report(t))
		}
		return list
	}
	c := compareReports(t, side(1, 1, 2, 3), side(1.2, 4, 5, 6), diff.Options{})
	if r := rowOf(t, c, "unit.time.p50"); c.Verdict != comparison.Fail || r.Class != comparison.Regressed || r.Unreplicated || r.Test == nil {
		t.Errorf("%s, %+v", c.Verdict, r)
	}
	if r := rowOf(t, c, "serve.generation_throughput.p50"); r.Class != comparison.Regressed || r.Unreplicated {
		t.Errorf("%+v", r)
	}
	c = compareReports(t, side(1, 1, 2, 3), side(1, 4, 5, 6), diff.Options{})
	if c.Verdict != comparison.Pass {
		t.Errorf("%s: %s", c.Verdict, c.Cause)
	}
}

// A percentile of one run has no interval: it may look worse and settles nothing, while the mean of the same requests does.
func TestEvidenceOfPercentiles(t *testing.T) {
	latency := func(mean, p99 float64) *report.Report {
		r := *(&loggedServer{seed: 1, plain: true}).report(t)
		v := mean
		r.Metrics = []report.Metric{{ID: "serve.ttft", Labels: report.Labels{}, Value: &v, Unit: report.Nanoseconds, Better: report.Lower, Assume: report.Noisy, N: 400, Lifecycle: report.Stable,
			Summary: &report.Summary{N: 400, Min: mean / 2, P50: mean, P90: mean * 1.2, P99: p99, Max: p99, Mean: mean, Stddev: mean / 10}, Source: report.Source{Tables: []string{"load"}, Columns: []string{}}}}
		return &r
	}
	c := compareReports(t, one(latency(100e6, 150e6)), one(latency(100e6, 300e6)), diff.Options{})
	if r := rowOf(t, c, "serve.ttft.p99"); r.Class != comparison.Unsettled || c.Verdict != comparison.Pass {
		t.Errorf("%s, %+v", c.Verdict, r)
	}
	// Where the median alone is known, it is compared.
	median := func(v float64) *report.Report {
		r := latency(v, v)
		r.Metrics[0].Summary, r.Metrics[0].Scale = nil, report.Event
		return r
	}
	c = compareReports(t, one(median(100e6)), one(median(150e6)), diff.Options{})
	if r := rowOf(t, c, "serve.ttft.p50"); comparison.Value(r.Ratio) != 1.5 || strings.Contains(c.Cause, "no change") {
		t.Errorf("%q, %+v", c.Cause, r)
	}
	// 20 % more, with a standard error of 0.5 % on each side.
	c = compareReports(t, one(latency(100e6, 150e6)), one(latency(120e6, 150e6)), diff.Options{})
	if r := rowOf(t, c, "serve.ttft.mean"); r.Class != comparison.Regressed || r.Interval == nil || r.Interval.Low < 1.18 || r.Interval.High > 1.22 || c.Verdict != comparison.Fail {
		t.Errorf("%s, %+v", c.Verdict, r)
	}
}

// A log and a trace measure different things, and so do a log and counters of kernels.
func TestEvidenceOfOtherKinds(t *testing.T) {
	log := (&loggedServer{seed: 1}).report(t)
	res, err := analyze.Run(t.Context(), "../testdata/tiny.sqlite", analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := compareReports(t, one(res.Report), one(log), diff.Options{})
	if c.Comparable || c.Reasons[0].Code != comparison.EmptySide || !strings.Contains(c.Reasons[0].Text, "evidence without a trace") {
		t.Errorf("%v", c.Reasons)
	}
	other := *log
	other.Evidence = []report.EvidenceFile{{Kind: "ncu-csv"}}
	c = compareReports(t, one(log), one(&other), diff.Options{})
	if !strings.Contains(fmt.Sprint(c.Reasons), "base is server-log and head is ncu-csv") && !c.Identical {
		t.Errorf("%v", c.Reasons)
	}
	empty := *log
	empty.Metrics, empty.Sections = []report.Metric{}, []report.Section{}
	c = compareReports(t, one(log), one(&empty), diff.Options{})
	if c.Comparable || c.Reasons[0].Code != comparison.MissingMetric || c.Verdict == comparison.Pass {
		t.Errorf("%v, %s", c.Reasons, c.Verdict)
	}
}

// The rules name metrics that exist, in directions that are theirs.
func TestEvidenceRulesAreValid(t *testing.T) {
	known := analyze.Metrics()
	var rules []policy.Rule
	for _, r := range policy.Default().ForEvidence().Rules {
		if err := r.Validate(); err != nil {
			t.Errorf("%s: %v", r.ID, err)
		}
		if !strings.HasPrefix(r.Metric, "serve.ttft") && !strings.HasPrefix(r.Metric, "serve.tpot") && !strings.HasPrefix(r.Metric, "serve.e2e") { // of the reader of Prometheus dumps
			rules = append(rules, r)
		}
	}
	if err := policy.Check(rules, known); err != nil {
		t.Error(err)
	}
}

// The exports of one report by two versions of Nsight Compute are the same; a kernel that takes longer is named.
func TestEvidenceOfNCU(t *testing.T) {
	list, err := filepath.Glob("../testdata/evidence/ncu/*.csv")
	if err != nil || len(list) == 0 {
		t.Skip("no example of Nsight Compute")
	}
	res, err := analyze.Run(t.Context(), list[0], analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := compareReports(t, one(res.Report), one(res.Report), diff.Options{})
	if c.Verdict != comparison.Pass || !c.Identical || len(c.Primary) == 0 {
		t.Errorf("%s, %v", c.Verdict, c.Primary)
	}
}
