package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/output"
	"github.com/nsys-llm/explain/gate/gatetest"
)

// gated is what a step of a workflow leaves behind.
type gated struct {
	code                             int
	stdout, stderr, outputs, summary string
	comments                         []string
	dir                              string // of --out
}

// gateInActions runs explain gate as a step for pull request 7.
func gateInActions(t testing.TB, server *gatetest.Server, args ...string) gated {
	t.Helper()
	return gateWith(t, server, nil, args...)
}

// gateWith does with variables that are computed, by name.
func gateWith(t testing.TB, server *gatetest.Server, computed map[string]func() string, args ...string) gated {
	t.Helper()
	listener := httptest.NewServer(server)
	defer listener.Close()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(path("event.json"), []byte(gatetest.PullEvent), 0o644); err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{
		"GITHUB_ACTIONS": "true", "GITHUB_API_URL": listener.URL, "GITHUB_REPOSITORY": "octo/llm", "GITHUB_WORKSPACE": dir, "GITHUB_WORKFLOW": "performance", "GITHUB_JOB": "gate",
		"GITHUB_RUN_ID": "1000", "GITHUB_TOKEN": "ghs_secret", "GITHUB_EVENT_NAME": "pull_request", "GITHUB_EVENT_PATH": path("event.json"),
		"GITHUB_OUTPUT": path("outputs"), "GITHUB_STEP_SUMMARY": path("summary"),
	}
	var out, errs bytes.Buffer
	g := gated{dir: path("gate")}
	g.code = run(context.Background(), append([]string{"gate", "--out", g.dir}, args...), &env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(k string) string {
		if f := computed[k]; f != nil {
			return f()
		}
		return variables[k]
	}})
	g.stdout, g.stderr = out.String(), errs.String()
	for name, to := range map[string]*string{"outputs": &g.outputs, "summary": &g.summary} {
		b, err := os.ReadFile(path(name))
		if err != nil {
			t.Fatalf("%v; exit %d: %s", err, g.code, g.stderr)
		}
		*to = string(b)
	}
	for _, c := range server.Comments() {
		g.comments = append(g.comments, c.Body)
	}
	return g
}

func pullServer() *gatetest.Server {
	return gatetest.New(gatetest.Scenario{Pulls: []gatetest.Pull{{Number: 7, HeadSHA: gatetest.HeadSHA, HeadRef: "feature", BaseSHA: gatetest.BaseSHA}}})
}

// hostileTraces are two traces full of names that try to be more than names, and kernels that differ.
func hostileTraces(t *testing.T) (base, head string) {
	t.Helper()
	base = tracetest.Hostile().WriteTB(t)
	head = filepath.Join(t.TempDir(), "::set-output name=verdict::pass `x` <b>.sqlite")
	all := func(string) bool { return true }
	if err := tracetest.Rewrite(base, head, tracetest.ScaleKernels(all, 1.5)); err != nil {
		t.Fatal(err)
	}
	return base, head
}

// TestGateOutputsItsExitCode: where there is no verdict, later steps read the code with which the step ends.
func TestGateOutputsItsExitCode(t *testing.T) {
	tiny := "../../testdata/tiny.sqlite"
	for want, args := range map[int][]string{
		exitUsage: {"--head", tiny, "--unit", "nvtx:("}, // refused by the analysis, not by the flags
		exitInput: {"--head", "no-such.sqlite"},
	} {
		g := gateInActions(t, pullServer(), args...)
		if g.code != want || !regexp.MustCompile(fmt.Sprintf(`exit-code<<\S+\n%d\n`, want)).MatchString(g.outputs) {
			t.Errorf("%v: exit %d, want %d; outputs:\n%s", args, g.code, want, g.outputs)
		}
	}
}

// TestHostileNamesThroughTheGate: in the comment, the summary, the annotations, the outputs and the log, names stay names.
func TestHostileNamesThroughTheGate(t *testing.T) {
	t.Parallel()
	base, head := hostileTraces(t)
	policy := filepath.Join(t.TempDir(), "policy.yml")
	put(t, policy, []byte("version: 1\nrules:\n  - {id: all, metric: kernel.time_per_unit, match: {glob: \"*\"}, level: error, regress: {rel: 1%}}\n  - {id: total, metric: unit.time.p50, regress: {rel: 1%}}\n"+
		"budgets:\n  - {id: kernels, metric: kernel.total_time, labels: {kernel: \"*\"}, max: 1ns, level: error}\n"), 0o644)
	for _, args := range [][]string{
		{"--base", base, "--head", head, "--policy", policy, "--policy-ref", "head"}, {"--head", head, "--policy", policy, "--policy-ref", "head"},
		{"--base", base, "--head", head, "--unit", "nvtx:.*"}, {"--base", base, "--head", head, "--comment-key", "`@org` <b> ::error::"},
	} {
		g := gateInActions(t, pullServer(), args...)
		if g.code == exitUsage || g.code == exitInput || len(g.comments) != 1 {
			t.Fatalf("%v: exit %d, %d comments: %s", args, g.code, len(g.comments), g.stderr)
		}
		pages := map[string]string{"summary": g.summary, "posted": g.comments[0], "comment.md": string(read(t, filepath.Join(g.dir, "comment.md"))), "summary.md": string(read(t, filepath.Join(g.dir, "summary.md")))}
		for name, page := range pages {
			literalMarkdown(t, name, page)
		}
		command := regexp.MustCompile(`^::(add-mask::ghs_secret|(error|warning|notice) title=explain%3A [a-z]+::.*)$`)
		for _, line := range strings.Split(g.stdout+g.stderr, "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "::") && !command.MatchString(line) || strings.Contains(line, "##[") {
				t.Errorf("the runner would obey %q", line)
			}
		}
		for _, name := range tracetest.HostileNames() {
			if len(name) < 3 {
				continue
			}
			for _, line := range strings.Split(g.stdout, "\n") {
				if strings.HasPrefix(line, "::") && strings.Contains(line, name) {
					t.Errorf("an annotation holds the name %q", name)
				}
			}
			if strings.Contains(g.outputs, name) {
				t.Errorf("an output holds the name %q", name)
			}
		}
		// NAME<<DELIMITER, one line, DELIMITER: an output of more lines could set others.
		lines := strings.Split(strings.TrimSuffix(g.outputs, "\n"), "\n")
		for i := 0; i < len(lines); i += 3 {
			name, delimiter, ok := strings.Cut(lines[i], "<<")
			if !ok || i+2 >= len(lines) || lines[i+2] != delimiter || !regexp.MustCompile(`^[a-z-]+$`).MatchString(name) {
				t.Fatalf("outputs, line %d: %q", i, lines[i:min(i+3, len(lines))])
			}
		}
	}
}

// TestAHostileErrorThroughTheGate: what is said of input that cannot be read is as literal as the names in it.
func TestAHostileErrorThroughTheGate(t *testing.T) {
	head := filepath.Join(t.TempDir(), "x\n::error::pwned\n<img src=x onerror=y> @org/all [a](b) https:##[error]z.sqlite")
	g := gateInActions(t, pullServer(), "--base", "../../testdata/tiny.sqlite", "--head", head)
	if g.code != exitInput || len(g.comments) != 1 || !strings.HasPrefix(g.comments[0], "### 🛑 **ERROR** nothing was judged\n") {
		t.Fatalf("exit %d, comments %q", g.code, g.comments)
	}
	literalMarkdown(t, "summary", g.summary)
	literalMarkdown(t, "comment", g.comments[0])
	for _, line := range strings.Split(g.stdout+g.stderr+g.outputs, "\n") {
		if strings.HasPrefix(line, "::error::") || strings.Contains(line, "##[") {
			t.Errorf("the runner would obey %q", line)
		}
	}
}

// literalMarkdown checks a page as GitHub reads it: no HTML but folded parts and explain's marker, no image, no mention, no link but
// the one to the run.
func literalMarkdown(t *testing.T, name, page string) {
	t.Helper()
	source := []byte(page)
	err := ast.Walk(goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.RawHTML, *ast.AutoLink, *ast.Image:
			t.Errorf("%s: a name became %s", name, n.Kind())
		case *ast.Link:
			if strings.TrimSuffix(string(n.Destination), "#artifacts") != "https://github.com/octo/llm/actions/runs/1000" {
				t.Errorf("%s: a name became a link to %q", name, n.Destination)
			}
		case *ast.HTMLBlock:
			for i := range n.Lines().Len() {
				line := n.Lines().At(i)
				s := strings.TrimSpace(string(line.Value(source)))
				if s != "<details>" && s != "</details>" && !strings.HasPrefix(s, "<summary>") && !strings.HasPrefix(s, "<!-- explain:v1:key=") {
					t.Errorf("%s: HTML %q", name, s)
				}
			}
		case *ast.Text:
			if s := string(n.Segment.Value(source)); strings.Contains(s, "@org") && n.Parent().Kind() != ast.KindCodeSpan {
				t.Errorf("%s: a mention: %q", name, s)
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, r := range page {
		if unicode.IsControl(r) && r != '\n' || unicode.Is(unicode.Bidi_Control, r) {
			t.Errorf("%s holds %U", name, r)
			break
		}
	}
}

// TestTheGateKeepsSecrets plants secrets in both sides and looks for them in everything that gate writes, prints and posts.
func TestTheGateKeepsSecrets(t *testing.T) {
	t.Parallel()
	b := tracetest.ServingGraphMode()
	planted := b.Canaries(func(table, column string) string { return fmt.Sprintf("SECRET-%s-%s-hunter2", table, column) })
	path := b.WriteTB(t)
	server := pullServer()
	g := gateInActions(t, server, "--base", "../../testdata/serving.sqlite", "--head", path, "--verbose")
	all := map[string]string{"stdout": strings.ReplaceAll(g.stdout, "::add-mask::ghs_secret", ""), "stderr": g.stderr, "outputs": g.outputs, "summary": g.summary, "requests": server.Transcript(), "comments": strings.Join(g.comments, "\n")}
	err := filepath.WalkDir(g.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all[path] = string(read(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range all {
		if strings.Contains(content, "hunter2") || strings.Contains(content, "ghs_secret") {
			t.Errorf("%s leaks a secret", name)
		}
		for _, c := range planted {
			if strings.Contains(content, c.Text) {
				t.Errorf("%s leaks the text of %s.%s", name, c.Table, c.Column)
			}
		}
	}
}

// TestTheRealPairReadsAsItShould: two captures of one training job, of which the second has a slower host.
func TestTheRealPairReadsAsItShould(t *testing.T) {
	t.Parallel()
	const traces = "../../../shared/traces"
	base, head := filepath.Join(traces, "nsysai_mfu_2gpu_before.sqlite"), filepath.Join(traces, "nsysai_mfu_2gpu_after.sqlite")
	if !input.Exists(base) || !input.Exists(head) {
		t.Skip("the real captures are not here")
	}
	g := gateInActions(t, pullServer(), "--base", base, "--head", head)
	if g.code != exitFail || len(g.comments) != 1 {
		t.Fatalf("exit %d, %d comments", g.code, len(g.comments))
	}
	for _, want := range []string{`^### ❌ \*\*FAIL\*\* \+13\.8 % slower`, `\*\*\+2\.736 ms\*\* GPU idle, host slower: host time in cudaMemsetAsync .*`, `GPU compute unchanged `, "`ncclDevKernel_SendRecv`", "`cudaMemsetAsync`", `unreplicated: one capture on a side`} {
		if !regexp.MustCompile("(?m)" + want).MatchString(g.comments[0]) {
			t.Errorf("no %q in\n%s", want, g.comments[0])
		}
	}
	if n := len(g.comments[0]); n > 10<<10 {
		t.Errorf("%d bytes", n)
	}
}

// TestAPanicIsSaidEverywhere: in the comment of the pull request, the files, the step's status and the exit code.
func TestAPanicIsSaidEverywhere(t *testing.T) {
	g := gateWith(t, pullServer(), map[string]func() string{"SOURCE_DATE_EPOCH": func() string { panic("no clock") }},
		"--policy-ref", "head", "--base", "../../testdata/tiny.sqlite", "--head", "../../testdata/tiny.sqlite")
	const want = "internal error in explain gate, please report: no clock"
	if g.code != exitInput || !strings.Contains(g.stderr, want) || strings.Contains(g.stderr, "goroutine") {
		t.Errorf("exit %d: %s", g.code, g.stderr)
	}
	if !strings.Contains(g.outputs, "\nerror\n") || !strings.Contains(g.outputs, "\n3\n") {
		t.Errorf("outputs: %s", g.outputs)
	}
	file, err := os.ReadFile(filepath.Join(g.dir, "comment.md"))
	if err != nil || len(g.comments) != 1 {
		t.Fatalf("%d comments, %v", len(g.comments), err)
	}
	for name, text := range map[string]string{"comment": g.comments[0], "comment.md": string(file), "summary": g.summary} {
		if !strings.Contains(text, want) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestAPanicIsOneSentence in any command.
func TestAPanicIsOneSentence(t *testing.T) {
	var errs bytes.Buffer
	code := run(context.Background(), []string{"diff", "../../testdata/tiny.sqlite", "../../testdata/tiny.sqlite"},
		&env{Out: brokenWriter{}, Err: &errs, Getenv: func(string) string { return "" }})
	if text := errs.String(); code != exitInput || strings.Count(text, "\n") != 1 ||
		!strings.HasPrefix(text, "explain: internal error in explain diff, please report: written to (") {
		t.Errorf("exit %d: %s", code, text)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { panic("written to") }

// TestAnInterruptedGateLeavesNothing.
func TestAnInterruptedGateLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	parent := t.TempDir()
	code := run(ctx, []string{"gate", "--base", "../../testdata/tiny.sqlite", "--head", "../../testdata/tiny.sqlite", "--out", filepath.Join(parent, "out")}, &env{Out: io.Discard, Err: io.Discard, Getenv: func(string) string { return "" }})
	if left, err := os.ReadDir(parent); code != exitInput || err != nil || len(left) > 0 {
		t.Errorf("exit %d, left %v (%v)", code, left, err)
	}
}

func TestReportNames(t *testing.T) {
	taken := map[string]bool{}
	for _, c := range [][2]string{
		{"a/head.sqlite", "head"}, {"b/head.sqlite.zst", "head-2"}, {"Head.nsys-rep", "Head-3"}, {"x/report.json", "x"}, {"report.json", "report"}, {"../..", "capture"},
		{"ü $(sh).sqlite", "___sh_"}, {strings.Repeat("n", 90), strings.Repeat("n", 60)}, {strings.Repeat("n", 91), strings.Repeat("n", 60) + "-2"},
	} {
		if got := output.Name(c[0], taken); got != c[1] && c[0] != "ü $(sh).sqlite" || strings.ContainsAny(got, "$( ü") {
			t.Errorf("%s: %s, want %s", c[0], got, c[1])
		}
	}
}

// BenchmarkGate: gate and comment for two reports of 2 MB, the largest that explain makes, with a GitHub that answers at
// once. The bound is 2 s.
func BenchmarkGate(b *testing.B) {
	path := largeReport(b, 2<<20)
	b.ReportAllocs()
	for b.Loop() {
		if g := gateInActions(b, pullServer(), "--base", path, "--head", path); g.code != exitOK {
			b.Fatalf("exit %d: %s", g.code, g.stderr)
		}
	}
}

// largeReport is the report of the serving trace with more kernels, until it has that many bytes.
func largeReport(tb testing.TB, size int) string {
	tb.Helper()
	in, err := os.Open("../../examples/serving/report.json")
	if err != nil {
		tb.Fatal(err)
	}
	defer in.Close()
	r, err := report.Read(in)
	if err != nil {
		tb.Fatal(err)
	}
	var out bytes.Buffer
	for more := r.Metrics; out.Len() < size; {
		for _, m := range more {
			if k, ok := m.Labels["kernel"]; ok && m.ID != "" {
				m.Labels = report.Labels{"kernel": fmt.Sprintf("%s_%d", k, len(r.Metrics))}
				for label, value := range more[0].Labels {
					m.Labels[label] = value
				}
				r.Metrics = append(r.Metrics, m)
			}
		}
		out.Reset()
		if err := report.Write(&out, r); err != nil {
			tb.Fatal(err)
		}
	}
	path := filepath.Join(tb.TempDir(), "report.json")
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		tb.Fatal(err)
	}
	return path
}
