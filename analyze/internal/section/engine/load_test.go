package engine_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/loadfile"
	"github.com/nsys-llm/explain/analyze/report"
)

const loadMs = 1_000_000

// syntheticLoad is the load of testdata/evidence/load: 200 requests due every 10 ms. Request i has its first token after
// 20 + i%10 ms and then three gaps of 5 ms; each 50th answers HTTP 503 after 1 ms; request 100 is sent 8 ms late.
func syntheticLoad() *loadfile.Result {
	var records []loadfile.Record
	var gaps []int64
	for i := range int64(200) {
		due := i * 10 * loadMs
		c := loadfile.Record{Due: due, Sent: due, First: due + (20+i%10)*loadMs, Input: 30, Output: 4, ByUsage: true}
		c.Last = c.First + 15*loadMs
		c.End = c.Last
		switch {
		case i == 100:
			c.Sent += 8 * loadMs
		case i%50 == 49:
			c = loadfile.Record{Due: due, Sent: due, First: -1, Last: -1, End: due + loadMs, Input: -1, Output: -1, Failed: loadfile.HTTPStatus(503)}
		}
		if c.Failed == "" {
			gaps = append(gaps, 5*loadMs, 5*loadMs, 5*loadMs)
		}
		records = append(records, c)
	}
	rate, requests, ttft := 100.0, int64(200), int64(25*loadMs)
	w := loadfile.Workload{API: "completions", Stream: true, Prompts: "mixed", Fingerprint: "0123456789abcdef", Loop: "open", Rate: &rate, Requests: &requests, Warmup: 3, Timeout: 120e9, Temperature: 0.8}
	r := loadfile.Build(w, loadfile.SLO{TTFT: &ttft}, records, gaps)
	r.Describe("test", "org/model-8b")
	return r
}

func writeLoad(t *testing.T, r *loadfile.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "load.json")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func loadReport(t *testing.T, r *loadfile.Result) *report.Report {
	t.Helper()
	res, err := analyze.Run(context.Background(), writeLoad(t, r), analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return res.Report
}

func TestLoadByHand(t *testing.T) {
	r := loadReport(t, syntheticLoad())
	kind := report.Labels{"kind": "http_503"}
	// 196 requests succeed: of each remainder i%10 there are 20, but 16 of the 9 (49, 99, 149 and 199 fail).
	// The last answer that ends is 198's, at 1980 + 28 + 15 ms.
	for _, c := range []struct {
		id     string
		labels report.Labels
		want   float64
	}{
		{"serve.ttft", nil, 24 * loadMs},
		{"serve.tpot", nil, 5 * loadMs},
		{"serve.itl", nil, 5 * loadMs},
		{"serve.e2e", nil, 39 * loadMs},
		{"load.window", nil, 2023 * loadMs},
		{"load.requests", nil, 200},
		{"load.failures", nil, 4},
		{"load.failures", kind, 4},
		{"load.failure_ratio", nil, 0.02},
		{"load.late_sends", nil, 1},
		{"load.send_delay", nil, 0},
		{"load.target_rate", nil, 100},
		{"load.request_rate", nil, 196 / 2.023},
		{"load.output_throughput", nil, 784 / 2.023},
		{"load.input_throughput", nil, 5880 / 2.023},
		{"load.output_tokens", nil, 784},
		{"load.input_tokens", nil, 5880},
		{"load.goodput_ratio", nil, 0.6}, // 20, 21, … 25 ms: six of ten remainders
		{"load.goodput", nil, 120 / 2.023},
	} {
		m := r.Find(c.id, c.labels)
		if m == nil || m.Value == nil || *m.Value < c.want*(1-1e-12) || *m.Value > c.want*(1+1e-12) {
			t.Errorf("%s{%s} = %+v, want %g", c.id, c.labels, m, c.want)
		}
	}
	if m := r.Find("serve.ttft", nil); m.N != 196 || m.Summary.P90 != 28*loadMs || m.Summary.Max != 29*loadMs || m.Histogram == nil {
		t.Errorf("%+v", m.Summary)
	}
	if m := r.Find("load.concurrency", nil); m != nil {
		t.Errorf("an open loop without a limit has a concurrency of %v", *m.Value)
	}
	if *r.Environment.Model != "org/model-8b" || r.Trace.Kind != "load" || r.Evidence[0].Records != 200 || r.Evidence[0].Understood != 200 {
		t.Errorf("%+v %+v", r.Trace, r.Evidence)
	}
	var found []string
	for _, f := range r.Findings {
		found = append(found, f.ID)
	}
	if !slices.Equal(found, []string{"load_failures", "load_goodput"}) {
		t.Errorf("findings %v", found)
	}
}

// warned lists the codes of a report's warnings.
func warned(r *report.Report) (codes []string) {
	for _, w := range r.Warnings {
		codes = append(codes, w.Code)
	}
	return codes
}

func TestLoadWarnings(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(r *loadfile.Result)
		want []string
	}{
		"nothing":   {func(*loadfile.Result) {}, nil},
		"cut":       {func(r *loadfile.Result) { r.Complete, r.Stopped = false, "server_gone" }, []string{"load_incomplete"}},
		"late":      {func(r *loadfile.Result) { r.Counts.Late = 3 }, []string{"late_sends"}},
		"events":    {func(r *loadfile.Result) { r.Tokens.CountedBy = "events" }, []string{"tokens_by_events"}},
		"clustered": {func(r *loadfile.Result) { *r.Tokens.Output = 1600 }, []string{"several_tokens_per_event"}},
		"one piece": {func(r *loadfile.Result) { r.Latency.ITL = nil }, []string{"several_tokens_per_event"}}, // 784 in 196
	} {
		r := syntheticLoad()
		c.edit(r)
		if got := warned(loadReport(t, r)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
	few := loadfile.Build(syntheticLoad().Workload, loadfile.SLO{}, []loadfile.Record{{First: 5, Last: 5, End: 5, Input: 1, Output: 1, ByUsage: true}}, nil)
	if got := warned(loadReport(t, few)); !slices.Equal(got, []string{"few_requests"}) {
		t.Errorf("few: %v", got)
	}
	none := loadReport(t, loadfile.Build(syntheticLoad().Workload, loadfile.SLO{}, []loadfile.Record{{First: -1, Last: -1, End: 5, Input: -1, Output: -1, Failed: loadfile.Connect}}, nil))
	if s := none.Sections[0]; s.ID != "load" || s.Status != report.Partial || none.Find("serve.ttft", nil) != nil {
		t.Errorf("none: %+v", s)
	}
}

// A load that was cut short says so, why, and what is missing in it.
func TestLoadCutShort(t *testing.T) {
	for stopped, want := range map[string]string{
		"interrupted": "The load is incomplete: the load was interrupted. 196 requests were answered. 7 in flight were cancelled and are left out: slow answers are missing more often than fast ones.",
		"server_gone": "The load is incomplete: the server stopped answering before the load was over. 196 requests were answered. 7 in flight were cancelled and are left out: slow answers are missing more often than fast ones.",
	} {
		l := syntheticLoad()
		l.Complete, l.Stopped, l.Counts.Cancelled, l.Counts.Sent = false, stopped, 7, l.Counts.Sent+7
		r := loadReport(t, l)
		if s := r.Sections[0]; len(r.Warnings) != 1 || r.Warnings[0].Text != want || s.Status != report.Partial || s.Reason == "" {
			t.Errorf("%s: %+v, %s: %s", stopped, r.Warnings, s.Status, s.Reason)
		}
	}
}

// A server that cannot keep up: in an open loop the queue grows with the load.
func TestLoadSaturated(t *testing.T) {
	var records []loadfile.Record
	for i := range int64(100) {
		due, end := i*10*loadMs, (i+1)*30*loadMs
		records = append(records, loadfile.Record{Due: due, Sent: due, First: end, Last: end, End: end, Input: 1, Output: 1, ByUsage: true})
	}
	r := loadReport(t, loadfile.Build(syntheticLoad().Workload, loadfile.SLO{}, records, nil))
	if !hasFinding(r, "load_saturated") || len(r.Findings) != 0 {
		t.Errorf("%+v", r.Findings)
	}
}

func TestSeveralLoads(t *testing.T) {
	a, b := writeLoad(t, syntheticLoad()), writeLoad(t, syntheticLoad())
	res, err := analyze.Run(context.Background(), "", analyze.Options{Evidence: []analyze.Evidence{{Path: a}, {Path: b}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := warned(res.Report); !slices.Equal(got, []string{"load_several"}) || len(res.Report.Evidence) != 2 {
		t.Errorf("%v", got)
	}
}

// A closed loop says how many requests were in flight.
func TestLoadConcurrency(t *testing.T) {
	l := syntheticLoad()
	n := int64(8)
	l.Workload.Loop, l.Workload.Rate, l.Workload.Concurrency = "closed", nil, &n
	r := loadReport(t, l)
	if m := r.Find("load.concurrency", nil); m == nil || *m.Value != 8 || r.Find("load.target_rate", nil) != nil {
		t.Errorf("%+v", m)
	}
	if !strings.Contains(strings.Join(r.Sections[0].Notes, " "), "Closed loop, 8 in flight") {
		t.Errorf("%q", r.Sections[0].Notes)
	}
}

var update = flag.Bool("update", false, "write the load of testdata/evidence anew")

// The load of testdata/evidence/load is the one above. -update writes it anew.
func TestLoadOfTestdata(t *testing.T) {
	path := filepath.FromSlash("../../../../testdata/evidence/load/load.json")
	var want bytes.Buffer
	if err := syntheticLoad().Write(&want); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not what syntheticLoad makes (%v)", path, err)
	}
}
