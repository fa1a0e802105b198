package diff_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/policy"
)

// dumpOf is the report of a dump of 1,000 requests that all took the same time, by a histogram with these edges.
func dumpOf(t *testing.T, family string, seconds float64, edges ...float64) *report.Report {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "# TYPE vllm:%s histogram\n", family)
	for _, edge := range edges {
		n := 0
		if edge >= seconds {
			n = 1000
		}
		fmt.Fprintf(&b, "vllm:%s_bucket{le=\"%v\"} %d\n", family, edge, n)
	}
	fmt.Fprintf(&b, "vllm:%[1]s_bucket{le=\"+Inf\"} 1000\nvllm:%[1]s_sum %[2]v\nvllm:%[1]s_count 1000\n", family, 1000*seconds)
	path := filepath.Join(t.TempDir(), "metrics.prom")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := analyze.Run(t.Context(), path, analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return res.Report
}

// The percentile of a histogram is interpolated in its bucket: with other edges it is another number of the same
// requests, so it says nothing, and a rule on it is inconclusive. Means are exact and compare.
func TestEvidenceOfOtherBuckets(t *testing.T) {
	const family = "time_to_first_token_seconds"
	rules := []string{"serve.ttft.p99:+10%", "serve.ttft.mean:+10%"}
	base := dumpOf(t, family, 0.15, 0.1, 0.2, 0.4)
	for name, c := range map[string]struct {
		head  *report.Report
		class comparison.Class
		want  comparison.Verdict
	}{
		"other edges":      {dumpOf(t, family, 0.15, 0.15, 0.25, 0.5), comparison.Unsettled, comparison.Inconclusive},
		"the same edges":   {dumpOf(t, family, 0.15, 0.1, 0.2, 0.4), comparison.Same, comparison.Pass},
		"a higher bucket":  {dumpOf(t, family, 0.3, 0.1, 0.2, 0.4), comparison.Regressed, comparison.Fail},
		"higher and other": {dumpOf(t, family, 0.3, 0.15, 0.25, 0.5), comparison.Unsettled, comparison.Fail}, // by the mean
	} {
		cmp := compareReports(t, one(base), one(c.head), diff.Options{Policy: failOn(t, rules...)})
		if r := rowOf(t, cmp, "serve.ttft.p99"); r.Class != c.class || cmp.Verdict != c.want {
			t.Errorf("%s: %s, %+v", name, cmp.Verdict, r)
		} else if c.class == comparison.Unsettled && (!strings.Contains(r.Why, "buckets") || r.Interval != nil) {
			t.Errorf("%s: %+v", name, r)
		}
		for _, g := range cmp.Gates {
			if strings.HasPrefix(g.Metric, "serve.ttft.p99") && (c.class == comparison.Unsettled) != (g.Verdict == comparison.Inconclusive) {
				t.Errorf("%s: %+v", name, g)
			}
		}
	}
}

// A number that is not settled is not one without a change.
func TestEvidenceNotSettledInAPass(t *testing.T) {
	const family = "time_to_first_token_seconds"
	c := compareReports(t, one(dumpOf(t, family, 0.15, 0.1, 0.2)), one(dumpOf(t, family, 0.15, 0.15, 0.3)), diff.Options{})
	if want := "no change beyond noise in 1 number; 2 not settled"; c.Verdict != comparison.Pass || !strings.Contains(c.Cause, want) {
		t.Errorf("%s %q, want %q", c.Verdict, c.Cause, want)
	}
}

// Versions of a server state a latency by other metrics, which measure something else: the time between tokens is not
// that of a request per token, however alike their names.
func TestEvidenceOfAnotherMetric(t *testing.T) {
	edges := []float64{0.1, 0.2, 0.4}
	old, now := dumpOf(t, "time_per_output_token_seconds", 0.15, edges...), dumpOf(t, "request_time_per_output_token_seconds", 0.3, edges...)
	c := compareReports(t, one(old), one(now), diff.Options{Policy: failOn(t, "serve.tpot.mean:+5%")})
	for _, metric := range []string{"serve.tpot.mean", "serve.tpot.p50"} {
		r := rowOf(t, c, metric)
		if r.Class != comparison.Unsettled || r.Code != comparison.DifferentWork || !strings.Contains(r.Why, "request_time_per_output_token_seconds") {
			t.Errorf("%+v", r)
		}
	}
	if c.Verdict != comparison.Inconclusive {
		t.Errorf("%s %v", c.Verdict, c.Gates)
	}
}

// What a client measured is not what the server did.
func TestEvidenceOfClientAndServer(t *testing.T) {
	const family = "time_to_first_token_seconds"
	server := dumpOf(t, family, 0.15, 0.1, 0.2, 0.4)
	both := *server
	both.Metrics = slices.Clone(server.Metrics)
	m := &both.Metrics[slices.IndexFunc(both.Metrics, func(m report.Metric) bool { return m.ID == "serve.ttft" && len(m.Labels) == 0 })]
	m.Source.Tables, m.Source.Columns = []string{"load"}, []string{"latency"}
	m.Value = new(*m.Value * 2)
	c := compareReports(t, one(server), one(&both), diff.Options{})
	if r := rowOf(t, c, "serve.ttft.mean"); r.Class != comparison.Unsettled || !strings.Contains(r.Why, "load") {
		t.Errorf("%+v", r)
	}
}

// failOn is a policy of these rules alone.
func failOn(t *testing.T, rules ...string) *policy.Policy {
	t.Helper()
	p := policy.Default()
	p.Rules = nil
	for _, text := range rules {
		r, err := policy.ParseFailOn(text)
		if err != nil {
			t.Fatal(err)
		}
		p.Rules = append(p.Rules, r)
	}
	return p
}
