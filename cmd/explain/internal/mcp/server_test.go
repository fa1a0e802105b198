package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/comparison"
)

// source gives one report, with names that are hostile, and counts how often it is read.
type source struct{ reads int }

func (s *source) Report(_ context.Context, path string) (*report.Report, error) {
	s.reads++
	if strings.Contains(path, "other") {
		panic("no such kernel")
	}
	if strings.Contains(path, "broken") {
		return nil, errors.New("broken.sqlite: is not a database\x1b[31m")
	}
	idle := 0.25
	r := &report.Report{Trace: report.Provenance{Name: "a.sqlite"}, Unit: report.Unit{Kind: "none", Why: "nothing repeats"}}
	for i := range 300 {
		v := float64(i)
		r.Metrics = append(r.Metrics, report.Metric{ID: "kernel.total_time", Unit: report.Nanoseconds, Value: &v,
			Labels: report.Labels{"kernel": fmt.Sprintf("k%03d\x1b[2J%s", i, strings.Repeat("x", 200))}})
	}
	r.Metrics = append(r.Metrics, report.Metric{ID: "gpu.idle_ratio", Unit: report.Ratio, Value: &idle, Labels: report.Labels{"device": "0"}})
	table := report.Table{ID: "kernels", Title: "Kernels", TotalRows: 501, Others: true,
		Columns: []report.Column{{ID: "kernel_name", Title: "Kernel", Kind: "name"}, {ID: "total", Title: "Total", Kind: "int", Unit: "ns"}}}
	for i := range int64(500) {
		table.Rows = append(table.Rows, []report.Cell{report.S(fmt.Sprintf("kernel %d", i)), report.I(i)})
	}
	table.Rows = append(table.Rows, []report.Cell{report.S("others"), report.I(7)})
	r.Sections = []report.Section{{ID: "kernels", Status: report.OK, Tables: []report.Table{table}},
		{ID: "nvtx", Status: report.Unavailable, Reason: "the capture has no NVTX ranges"}}
	r.Findings = []report.Finding{{ID: "gpu_idle", Severity: report.High, Title: "The GPU is idle", Advice: []string{"Batch more."},
		Evidence: []report.MetricRef{{ID: "gpu.idle_ratio", Labels: report.Labels{"device": "0"}}}}}
	return r, nil
}

func (s *source) History(context.Context, string) ([]LevelChange, string, error) {
	return []LevelChange{{Number: "unit.time.p50", Commit: "c1", Ratio: 1.1, Worse: true, Open: true}}, "1 change", nil
}

func (s *source) Compare(context.Context, []string, []string, Focus) (*comparison.Comparison, error) {
	s.reads++
	return &comparison.Comparison{Verdict: comparison.Inconclusive, Cause: "Not comparable",
		Reasons: []comparison.Reason{{Code: comparison.NoUnit, Text: "no unit of work"}}}, nil
}

// ask sends lines to a server over a folder with some files and returns its answers by id.
func ask(t *testing.T, src Source, lines ...string) map[string]response {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"a.sqlite", "broken.sqlite", "b.nsys-rep", "sub/report.json", "other/report.json"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		text := "{}"
		if name == "sub/report.json" {
			text = `{"schema": "explain.report/1"}`
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(t.TempDir(), "secret.sqlite")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link.sqlite")); err != nil {
		t.Skip(err)
	}
	var out bytes.Buffer
	s := Server{Source: src, Root: dir, Version: "test"}
	if err := s.Serve(context.Background(), strings.NewReader(strings.Join(lines, "\n")), &out); err != nil {
		t.Fatal(err)
	}
	answers := map[string]response{}
	for d := json.NewDecoder(&out); d.More(); {
		var r response
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		answers[string(r.ID)] = r
	}
	return answers
}

// call is one request of a tool.
func call(id int, tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, arguments)
}

// content is the text of an answer and whether it is of an error.
func content(t *testing.T, r response) (string, bool) {
	t.Helper()
	b, err := json.Marshal(r.Result)
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Content []struct{ Type, Text string }
		IsError bool
	}
	if err := json.Unmarshal(b, &c); err != nil || len(c.Content) != 1 || c.Content[0].Type != "text" {
		t.Fatalf("%s: %v", b, err)
	}
	return c.Content[0].Text, c.IsError
}

// waiting is a source whose reports take until they are cancelled.
type waiting struct {
	source
	began chan struct{}
}

func (w *waiting) Report(ctx context.Context, path string) (*report.Report, error) {
	if strings.Contains(path, "broken") {
		Progress(ctx, "reading")
		Progress(ctx, "reading")
		Progress(ctx, "cutting")
		close(w.began)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return w.source.Report(ctx, path)
}

// TestCancelAndProgress: a question that is cancelled is never answered, and the server answers others meanwhile and after
// it. Each stage is told once, to who asked for it.
func TestCancelAndProgress(t *testing.T) {
	w := &waiting{began: make(chan struct{})}
	in, feed := io.Pipe()
	var out bytes.Buffer
	dir := t.TempDir()
	for _, name := range []string{"a.sqlite", "broken.sqlite"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := Server{Source: w, Root: dir, Version: "test"}
	done := make(chan error)
	go func() { done <- s.Serve(context.Background(), in, &out) }()
	line := func(text string) {
		if _, err := io.WriteString(feed, text+"\n"); err != nil {
			t.Error(err)
		}
	}
	line(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"report","arguments":{"file":"broken.sqlite"},"_meta":{"progressToken":"p"}}}`)
	<-w.began
	line(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	line(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	line(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	line(call(3, "report", `{"file":"a.sqlite"}`))
	feed.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for part, want := range map[string]int{`"id":1`: 0, `"id":2`: 1, `"id":3`: 1, `"progressToken":"p"`: 2,
		`"message":"reading","progress":1`: 1, `"message":"cutting","progress":2`: 1} {
		if n := strings.Count(text, part); n != want {
			t.Errorf("%d times %s, want %d, in\n%.2000s", n, part, want, text)
		}
	}
}

// TestStructuredAnswers: each answer is in structuredContent what its text is, with the fields that its schema requires.
func TestStructuredAnswers(t *testing.T) {
	for id, r := range ask(t, &source{}, call(1, "report", `{"file":"a.sqlite"}`), call(2, "metrics", `{"file":"a.sqlite","id":"share of idle time"}`),
		call(3, "doc", `{"name":"straggler"}`)) {
		text, _ := content(t, r)
		b, err := json.Marshal(r.Result)
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			StructuredContent map[string]any
		}
		var same map[string]any
		if json.Unmarshal(b, &c) != nil || json.Unmarshal([]byte(text), &same) != nil || !reflect.DeepEqual(c.StructuredContent, same) {
			t.Errorf("answer %s: %s", id, b)
		}
		if same["unknown"] == nil || same["next"] == nil {
			t.Errorf("answer %s: %s", id, text)
		}
		if id == "3" && !strings.Contains(text, "rank_straggler") {
			t.Errorf("%s", text)
		}
	}
}

// answered gives a comparison with an answer.
type answered struct{ source }

func (*answered) History(context.Context, string) ([]LevelChange, string, error) {
	return []LevelChange{{Number: "unit.time.p50", Commit: "c1", Ratio: 1.1, Worse: true, Open: true}}, "1 change", nil
}

func (*answered) Compare(context.Context, []string, []string, Focus) (*comparison.Comparison, error) {
	return &comparison.Comparison{Verdict: comparison.Fail, Comparable: true, Answer: comparison.Answer{Rows: []comparison.AnswerRow{
		{Delta: 131500, Part: "idle", What: "GPU waits", Where: "before #60\x1b[2J", With: []string{"new blocking call cudaStreamSynchronize, 0 → 1"}},
	}}}, nil
}

// asked keeps what was asked to be compared; the server answers calls side by side.
type asked struct {
	source
	mu sync.Mutex
	of []Focus
}

func (a *asked) Compare(_ context.Context, _, _ []string, focus Focus) (*comparison.Comparison, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of = append(a.of, focus)
	return &comparison.Comparison{Verdict: comparison.Pass, Study: &comparison.Study{Fields: []comparison.StudyField{{Name: "gpu", Base: "A100", Head: "H100"}}}}, nil
}

// TestCompareTakesTheFlagsOfDiff: phase, GPU and study reach the comparison, are kept for the next call, and make another
// comparison than without them; a field that no study is of is an error which lists them.
func TestCompareTakesTheFlagsOfDiff(t *testing.T) {
	a := &asked{}
	const sides = `"base":"a.sqlite","head":"sub/report.json"`
	answers := ask(t, a, call(1, "compare", `{`+sides+`}`), call(2, "compare", `{`+sides+`,"phase":"prefill","device":0,"study":["gpu"]}`),
		call(3, "changes", `{`+sides+`,"phase":"prefill","device":0,"study":"gpu","part":"kernels"}`), call(4, "compare", `{`+sides+`,"study":"colour"}`))
	slices.SortFunc(a.of, func(x, y Focus) int { return cmp.Compare(x.Phase, y.Phase) })
	zero := int64(0)
	if want := []Focus{{}, {"prefill", &zero, paths{"gpu"}}}; !reflect.DeepEqual(a.of, want) {
		t.Errorf("%+v, want %+v", a.of, want)
	}
	text, failed := content(t, answers["2"])
	if want := `"arguments":{"base":["a.sqlite"],"device":0,"head":["sub/report.json"],"part":"kernels","phase":"prefill","study":["gpu"]}`; failed ||
		!strings.Contains(text, want) || !strings.Contains(text, `"study":"gpu`) || !strings.Contains(text, "A100") {
		t.Errorf("%v %s, want %s", failed, text, want)
	}
	if text, failed := content(t, answers["4"]); !failed || !strings.Contains(text, "a study is of batch, engine, work, gpu") {
		t.Errorf("%v %s", failed, text)
	}
}

// TestAComparisonStandsAlone: what a file or a history cannot follow is an error, not an answer to another question.
func TestAComparisonStandsAlone(t *testing.T) {
	for _, more := range []string{`"phase":"prefill"`, `"device":0`, `"study":"gpu"`, `"base":"a.sqlite"`, `"head":["a.sqlite"]`} {
		got := ask(t, &source{}, call(1, "compare", `{"file":"sub/report.json",`+more+`}`), call(2, "compare", `{"history":"a.sqlite",`+more+`}`),
			call(3, "changes", `{"file":"sub/report.json","part":"kernels",`+more+`}`), call(4, "compare", `{"history":"a.sqlite","file":"sub/report.json"}`))
		for id, want := range map[string]string{"1": "name it alone, or base and head", "2": "name it alone", "3": "name it alone, or base and head", "4": "name it alone"} {
			if text, failed := content(t, got[id]); !failed || !strings.Contains(text, want) {
				t.Errorf("%s, question %s: %v %s", more, id, failed, text)
			}
		}
	}
	empty := ask(t, &source{}, call(1, "compare", `{"history":"a.sqlite","file":"","base":"","head":[],"phase":"","device":null,"study":[]}`))
	if text, failed := content(t, empty["1"]); failed || !strings.Contains(text, "unit.time.p50") {
		t.Errorf("arguments that say nothing: %v %s", failed, text)
	}
}

// judged answers every comparison with one, of so many captures a side.
type judged struct {
	answered
	comparison comparison.Comparison
}

func (j *judged) Compare(context.Context, []string, []string, Focus) (*comparison.Comparison, error) {
	return &j.comparison, nil
}

// TestWhatAVerdictLeavesUnknown: one capture a side is said and is unknown noise; a pass without a known limit is unknown
// too, and a failed comparison has none. Ratios have their intervals.
func TestWhatAVerdictLeavesUnknown(t *testing.T) {
	value, limit := 1.118, 0.061
	row := comparison.Row{Metric: "unit.time.p50", Ratio: &value, Class: comparison.Regressed,
		Interval: &comparison.Interval{Low: 1.116, High: 1.119, Level: 0.9}}
	for _, c := range []struct {
		verdict    comparison.Verdict
		captures   int
		resolution *float64
		has, lacks []string
	}{
		{comparison.Fail, 1, nil, []string{`"unreplicated":true`, `"code":"unreplicated"`,
			`"interval":{"low":1.116,"high":1.119,"level":0.9}`}, []string{smallest}},
		{comparison.Pass, 1, nil, []string{`"` + smallest + `":null`, `{"what":"` + smallest + `","code":"nothing_matched"`}, nil},
		{comparison.Pass, 3, &limit, []string{`"captures":{"base":3,"head":3,"unreplicated":false}`, `"` + smallest + `":0.061`,
			`"unknown":[]`}, nil},
	} {
		source := &judged{comparison: comparison.Comparison{Verdict: c.verdict, Comparable: true, Primary: []comparison.Row{row},
			Resolution: c.resolution}}
		source.comparison.Base.Captures, source.comparison.Head.Captures = c.captures, c.captures
		text, failed := content(t, ask(t, source, call(1, "compare", `{"base":"a.sqlite","head":"a.sqlite"}`))["1"])
		for _, want := range c.has {
			if failed || !strings.Contains(text, want) {
				t.Errorf("no %s in %s", want, text)
			}
		}
		for _, not := range c.lacks {
			if strings.Contains(text, not) {
				t.Errorf("%s in %s", not, text)
			}
		}
	}
}

// TestCausesAreTheAnswersRows: compare gives the rows of the comparison's answer, and no sentence of its own.
func TestCausesAreTheAnswersRows(t *testing.T) {
	text, failed := content(t, ask(t, &answered{}, call(1, "compare", `{"base":"a.sqlite","head":"a.sqlite"}`))["1"])
	var got struct {
		Causes []struct {
			Delta             float64 `json:"delta_ns_per_unit"`
			Part, What, Where string
			With              []string
		}
	}
	if err := json.Unmarshal([]byte(text), &got); failed || err != nil || len(got.Causes) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	if c := got.Causes[0]; c.Delta != 131500 || c.Part != "idle" || c.What != "GPU waits" || !strings.HasPrefix(c.Where, "before #60") ||
		strings.ContainsRune(c.Where, 0x1b) || len(c.With) != 1 || c.With[0] != "new blocking call cudaStreamSynchronize, 0 → 1" {
		t.Errorf("%+v", c)
	}
}

// TestAPanicIsAnAnswer: the server answers the next question.
func TestAPanicIsAnAnswer(t *testing.T) {
	got := ask(t, &source{}, call(1, "report", `{"file":"other/report.json"}`), call(2, "report", `{"file":"a.sqlite"}`))
	text, failed := content(t, got["1"])
	if want := "internal error in tool report, please report: no such kernel (mcp/server_test.go:"; !failed || !strings.Contains(text, want) {
		t.Errorf("failed %v: %s", failed, text)
	}
	if text, failed := content(t, got["2"]); failed {
		t.Errorf("the next answer: %s", text)
	}
}

func TestProtocol(t *testing.T) {
	long := `{"jsonrpc":"2.0","id":9,"method":"` + strings.Repeat("x", maxRequest) + `"}`
	got := ask(t, &source{},
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05"}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		``,
		`{"jsonrpc":"2.0","id":"two","method":"initialize","params":{"protocolVersion":"1999-01-01"}}`,
		`{"jsonrpc":"2.0","id":3,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":5,"method":"resources/list"}`,
		long,
		`{"jsonrpc":"1.0","id":6,"method":"ping"}`,
		call(7, "delete", "{}"), call(8, "report", `{"file":"a.sqlite","path":"b"}`), call(10, "report", `{}`), call(11, "report", `{"file":7}`), call(12, "report", `[]`))
	for id, want := range map[string]string{
		"1": `"protocolVersion":"2024-11-05"`, `"two"`: `"protocolVersion":"` + protocols[0] + `"`, "3": `"result":{}`, "4": `"readOnlyHint":true`,
		"5": `"code":-32601`, "null": `"code":-32600`, "6": `"code":-32600`, "7": "there is no tool", "8": "has no argument", "10": "needs the argument file",
		"11": "of another type", "12": "arguments are a JSON object",
	} {
		r, ok := got[id]
		b, err := json.Marshal(r)
		if !ok || err != nil || !strings.Contains(string(b), want) {
			t.Errorf("answer to %s is %s, want %s", id, b, want)
		}
	}
	if len(got) != 12 {
		t.Errorf("%d answers", len(got))
	}
	broken := ask(t, &source{}, `{"jsonrpc"`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if broken["null"].Error == nil || broken["null"].Error.Code != codeParse || broken["1"].Error != nil {
		t.Errorf("%+v", broken)
	}
}

func TestFilesStayInside(t *testing.T) {
	src := &source{}
	got := ask(t, src, call(1, "files", "{}"), call(2, "report", `{"file":"link.sqlite"}`), call(3, "report", `{"file":"../../etc/passwd"}`),
		call(4, "report", `{"file":"/etc/passwd"}`), call(5, "report", `{"file":"b.nsys-rep"}`), call(6, "report", `{"file":"broken.sqlite"}`),
		call(7, "compare", `{"base":"a.sqlite","head":["link.sqlite"]}`), call(8, "report", `{"file":""}`))
	text, failed := content(t, got["1"])
	if failed || !strings.HasPrefix(text, `{"captures":["a.sqlite","broken.sqlite","link.sqlite"],"reports":["sub/report.json"],"comparisons":[]`) {
		t.Errorf("%s", text)
	}
	for id, want := range map[string]string{"2": "outside of the folder", "3": "", "4": "outside of the folder", "5": "nsys export", "6": "is not a database",
		"7": "outside of the folder", "8": "a file name is empty"} {
		text, failed := content(t, got[id])
		if !failed || !strings.Contains(text, want) || strings.ContainsRune(text, 0x1b) {
			t.Errorf("%s: %q (%v), want %s", id, text, failed, want)
		}
	}
	if src.reads != 1 {
		t.Errorf("%d files were read, one was to be", src.reads)
	}
}

// TestAnswersAreBounded: no answer is too long, each is valid JSON with what is unknown and what is next, escape characters
// are visible, and what was left out is counted.
func TestAnswersAreBounded(t *testing.T) {
	src := &source{}
	got := ask(t, src, call(1, "report", `{"file":"a.sqlite"}`), call(2, "metrics", `{"file":"a.sqlite","id":"kernel.","limit":200}`),
		call(3, "table", `{"file":"a.sqlite","table":"kernels","limit":5000,"sort":"total"}`), call(4, "table", `{"file":"a.sqlite","table":"kernels","match":"KERNEL 49"}`),
		call(5, "doc", `{"name":"statistics"}`), call(6, "doc", `{}`), call(7, "doc", `{"name":"nonsense"}`), call(8, "metrics", `{"file":"a.sqlite","id":"nvtx.coverage"}`),
		call(9, "table", `{"file":"a.sqlite","table":"nvtx"}`), call(10, "compare", `{"base":"a.sqlite","head":"a.sqlite"}`), call(11, "metrics", `{"file":"a.sqlite","id":"gpu.idle_ratio"}`))
	type answer struct {
		Metrics []value
		Rows    []struct {
			Key   string
			Cells []any
		}
		RowsLeftOut    int `json:"rows_left_out"`
		MetricsLeftOut int `json:"metrics_left_out"`
		Unknown        []Unknown
		Next           []Next
		Others         []any `json:"all_other_rows"`
	}
	answers := map[string]answer{}
	for id, r := range got {
		text, failed := content(t, r)
		var a answer
		if err := json.Unmarshal([]byte(text), &a); err != nil || failed || len(text) > MaxAnswer || strings.ContainsRune(text, 0x1b) || a.Unknown == nil || a.Next == nil {
			t.Errorf("answer %s, %d bytes, failed %v, %v: %.300s", id, len(text), failed, err, text)
		}
		answers[id] = a
	}
	if a := answers["2"]; len(a.Metrics)+a.MetricsLeftOut != 300 || len(a.Metrics) < 20 || *number64(a.Metrics[0].Value) != 299 {
		t.Errorf("%d metrics and %d left out", len(a.Metrics), a.MetricsLeftOut)
	}
	if a := answers["3"]; len(a.Rows)+a.RowsLeftOut != 500 || len(a.Rows) < 100 || a.Rows[0].Key != "kernel 499" || len(a.Others) != 2 {
		t.Errorf("%d rows and %d left out, %v", len(a.Rows), a.RowsLeftOut, a.Others)
	}
	if a := answers["4"]; len(a.Rows) != 11 { // 49 and 490 to 499
		t.Errorf("%+v", a.Rows)
	}
	for id, code := range map[string]string{"1": "unavailable", "7": "no_such_name", "8": "unavailable", "9": "unavailable", "10": "no_unit"} {
		if a := answers[id]; len(a.Unknown) == 0 || a.Unknown[0].Code != code || a.Unknown[0].Why == "" {
			t.Errorf("answer %s: %+v, want %s", id, a.Unknown, code)
		}
	}
	if a := answers["11"]; len(a.Metrics) != 1 || a.Metrics[0].Key != "gpu.idle_ratio{device=0}" || *number64(a.Metrics[0].Value) != 0.25 || len(a.Unknown) != 0 {
		t.Errorf("%+v", a)
	}
	if src.reads != 2 {
		t.Errorf("%d reads: a report is read once", src.reads)
	}
}

// wide is a source whose report is of a run of 600 ranks, with a table whose columns alone are longer than an answer.
type wide struct{ source }

func (w *wide) Report(ctx context.Context, path string) (*report.Report, error) {
	r, err := w.source.Report(ctx, path)
	gpu := "NVIDIA H100 80GB HBM3"
	for i := range 600 {
		r.Environment.GPUs = append(r.Environment.GPUs, report.GPU{Device: i, Name: &gpu})
	}
	r.Sections[0].Tables[0].Columns[0].Title = strings.Repeat("x", MaxAnswer)
	return r, err
}

// TestFactsAreBounded: facts that are not rows of a list keep an answer within its bound too.
func TestFactsAreBounded(t *testing.T) {
	got := ask(t, &wide{}, call(1, "report", `{"file":"a.sqlite"}`), call(2, "table", `{"file":"a.sqlite","table":"kernels"}`))
	for id, want := range map[string]string{"1": `"gpus_left_out":`, "2": `"code":"too_long"`} {
		if text, failed := content(t, got[id]); failed || len(text) > MaxAnswer || !strings.Contains(text, want) {
			t.Errorf("answer %s, %d bytes, failed %v: %.300s", id, len(text), failed, text)
		}
	}
}

func number64(v any) *float64 {
	f, ok := v.(float64)
	if !ok {
		f = -1
	}
	return &f
}

func TestShort(t *testing.T) {
	third, whole, tiny := 1.0/3, 2395438.0, 1e-9
	for in, want := range map[*float64]string{&third: "0.3333333", &whole: "2395438", &tiny: "1e-9", nil: "null"} {
		if got := string(encode(short(in))); got != want {
			t.Errorf("%v: %s, want %s", in, got, want)
		}
	}
}

// TestPair: the call that the tool files suggests compares a base with its head, not two captures that happen to come first.
func TestPair(t *testing.T) {
	for _, c := range []struct{ captures, want string }{
		{"a.sqlite b.sqlite", "a.sqlite b.sqlite"},
		{"base.sqlite graph.sqlite head.sqlite", "base.sqlite head.sqlite"},
		{"a.sqlite base/1.sqlite head/2.sqlite", "a.sqlite base/1.sqlite"},
		{"a.sqlite x/base-1.sqlite x/head-1.sqlite", "x/base-1.sqlite x/head-1.sqlite"},
	} {
		if base, head := pair(strings.Fields(c.captures)); base+" "+head != c.want {
			t.Errorf("of %s: %s %s, want %s", c.captures, base, head, c.want)
		}
	}
}
