package diffdoc_test

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/diff/internal/difftest"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/diffdoc"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// Limits of a comment and of a step summary, in bytes.
const (
	commentLimit = 60_000
	summaryLimit = 900_000
)

// surroundings are options with something of everything.
func surroundings() diffdoc.CommentOptions {
	return diffdoc.CommentOptions{
		Title: "h100-decode",
		Notes: [][]doc.Span{{doc.Text("The label "), doc.Name("perf:accept"), doc.Text(" turns fail into warn.")}},
		Provenance: diffdoc.Provenance{
			BaseSHA: strings.Repeat("a1", 20), HeadSHA: strings.Repeat("b2", 20), Baseline: "artifact explain-baseline of run 7 (merge base)", Policy: "policy.yml at main",
			RunURL: "https://github.com/o/r/actions/runs/8", Artifact: "explain-report", PageURL: "https://github.com/o/r/actions/runs/9#artifacts", BaseRunURL: "https://github.com/o/r/actions/runs/6", Hardware: "2 × NVIDIA H100",
		},
		AcceptLabel: "perf:accept", Reproduce: "explain gate --base base.json --head head.json",
	}
}

// TestComment holds the comment to its golden file.
func TestComment(t *testing.T) {
	accepted := difftest.Regression()
	accepted.Overrides = []comparison.Override{{Label: "perf:accept", By: "alice", From: comparison.Fail, To: comparison.Warn}}
	accepted.Verdict = comparison.Warn
	accepted.Waivers = []comparison.WaiverUse{
		{Rule: "step", Ceiling: "20%", Expires: "2026-12-31", Issue: "#412", Reason: "fp8 rollout", Status: "applied", Gates: 1},
		{Rule: "kernels", Match: "gemm*", Expires: "2026-12-31", Reason: "@org/team knows", Status: "unused"},
	}
	golden(t, "accepted.comment.md", []byte(diffdoc.Comment(accepted, diffdoc.CommentOptions{}, commentLimit)))
	golden(t, "regression.comment.md", []byte(diffdoc.Comment(difftest.Regression(), surroundings(), commentLimit)))
	golden(t, "different.comment.md", []byte(diffdoc.Comment(difftest.Different(), diffdoc.CommentOptions{}, commentLimit)))
}

// The command that repeats a comparison is pasted into a shell: long paths stay whole.
func TestReproduceIsNotCut(t *testing.T) {
	o := surroundings()
	o.Reproduce = "explain gate --base /data/" + strings.Repeat("nightly/", 20) + "base.sqlite --head head.sqlite"
	if text := diffdoc.Comment(difftest.Regression(), o, commentLimit); !strings.Contains(text, "To reproduce: `"+o.Reproduce+"`") {
		t.Errorf("%s", text)
	}
}

// TestCombinedComment: the worst leg first, all of them in the table, one verdict.
func TestCombinedComment(t *testing.T) {
	calm := difftest.Regression()
	calm.Verdict, calm.Gates, calm.Answer = comparison.Pass, []comparison.Gate{}, comparison.Answer{Direction: comparison.Unchanged}
	calm.Counts.GatesChecked = 0
	calm.Fill()
	legs := []comparison.Leg{{Name: "a100", Comparison: calm}, {Name: "h100 | `x`", Comparison: difftest.Regression()}, {Name: "b200", Comparison: difftest.Different()}}
	golden(t, "combined.comment.md", []byte(diffdoc.CombinedComment(legs, surroundings(), commentLimit)))
	if v := diffdoc.Worst(legs).Verdict; v != comparison.Fail {
		t.Errorf("together: %s", v)
	}
	many := make([]comparison.Leg, 40)
	for i := range many {
		many[i] = comparison.Leg{Name: fmt.Sprintf("leg %d", i), Comparison: hostile()}
	}
	for _, limit := range []int{30, 300, 1500, 9000, commentLimit} {
		o := surroundings()
		page := diffdoc.CombinedComment(many, o, limit)
		if len(page) > limit || !strings.Contains(page, "FAIL") {
			t.Errorf("limit %d: %d bytes", limit, len(page))
		}
		literal(t, page, o.Provenance.RunURL, o.Provenance.BaseRunURL, o.Provenance.PageURL)
		wholeTables(t, page)
	}
}

// long is the regression with n kernels, gates and residues more.
func long(n int) *comparison.Comparison {
	c := difftest.Regression()
	for i := range n {
		name := fmt.Sprintf("kernel_%d", i)
		c.Kernels = append(c.Kernels, comparison.Kernel{BaseName: &name, HeadName: &name, PairedBy: "exact", Base: difftest.Num(1e3), Head: difftest.Num(2e3), Delta: 1e3, PerCallEffect: 1e3, Ratio: difftest.Num(2), BaseCount: difftest.Num(1), HeadCount: difftest.Num(1), Class: comparison.Regressed})
		c.Gates = append(c.Gates, comparison.Gate{Rule: "kernels", Metric: "kernel.time_per_unit", Labels: report.Labels{"kernel": name}, Level: comparison.LevelWarn, Class: comparison.Regressed, Verdict: comparison.Warn, Reason: "slower: " + name})
		c.Residue = append(c.Residue, comparison.Residue{Field: "field_" + strconv.Itoa(i), Base: "a", Head: "b"})
	}
	return c
}

// TestCommentFits at every limit, and is whole at every limit: the folded parts are closed, each row has as many cells as its
// table has columns, rows kept and rows left out add up, and the verdict is always there.
func TestCommentFits(t *testing.T) {
	const kernels = 2000
	c := long(kernels)
	stages := map[string]bool{}
	for _, limit := range []int{20, 60, 150, 400, 1000, 2500, 5000, 7000, 9000, 12_000, 30_000, commentLimit, 120_000, summaryLimit} {
		o := surroundings()
		page := diffdoc.Comment(c, o, limit)
		if len(page) > limit {
			t.Errorf("limit %d: %d bytes", limit, len(page))
		}
		if !strings.Contains(page, "FAIL") {
			t.Errorf("limit %d: no verdict in %q", limit, page)
		}
		if open, closed := strings.Count(page, "\n<details>\n"), strings.Count(page, "\n</details>\n"); open != closed {
			t.Errorf("limit %d: %d details opened, %d closed", limit, open, closed)
		}
		wholeTables(t, page)
		left := 0
		_, table, _ := strings.Cut(page, "<summary>Kernels<")
		table, _, _ = strings.Cut(table, "</details>")
		for _, line := range strings.Split(table, "\n") {
			if i := strings.Index(line, " rows left out"); i > 0 {
				n, err := strconv.Atoi(strings.ReplaceAll(strings.Trim(line[:i], "| "), ",", ""))
				if err != nil {
					t.Fatal(err)
				}
				left = max(left, n)
			}
		}
		switch {
		case left > 0:
			stages["cut"] = true
			if shown := strings.Count(table, "\n| `"); shown < 3 || shown > 12 || shown+left != kernels+3 {
				t.Errorf("limit %d: %d rows shown, %d left out, of %d", limit, shown, left, kernels+3)
			}
		case strings.Contains(page, " gates checked: "):
			stages["unfolded"] = true
		default:
			stages["headline"] = true
		}
	}
	if page := diffdoc.Comment(difftest.Regression(), surroundings(), commentLimit); !strings.Contains(page, "<summary>Every metric") || strings.Contains(page, " left out") {
		t.Errorf("a comment that fits is not whole:\n%s", page)
	}
	for _, s := range []string{"cut", "unfolded", "headline"} {
		if !stages[s] {
			t.Errorf("no limit gave a comment that is %s", s)
		}
	}
}

// wholeTables checks that every row of every table has the cells of its header.
func wholeTables(t *testing.T, page string) {
	t.Helper()
	source := []byte(page)
	err := ast.Walk(goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		table, ok := n.(*extast.Table)
		if !entering || !ok {
			return ast.WalkContinue, nil
		}
		for row := table.FirstChild(); row != nil; row = row.NextSibling() {
			if row.ChildCount() != len(table.Alignments) {
				t.Errorf("a row of %d cells in a table of %d columns", row.ChildCount(), len(table.Alignments))
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, line := range strings.Split(page, "\n") {
		if strings.HasPrefix(line, "|") && !strings.HasSuffix(line, "|") {
			t.Errorf("a row is cut: %s", line)
		}
	}
}

// TestHostileNamesStayNamesInTheComment, at every length and in everything that stands around the comparison.
func TestHostileNamesStayNamesInTheComment(t *testing.T) {
	c := hostile()
	for _, n := range hostileOptions() {
		for _, limit := range longtest.Some([]int{summaryLimit, 20_000, commentLimit, 8000, 3000, 700}, 3) {
			page := diffdoc.Comment(c, n, limit)
			if len(page) > limit {
				t.Errorf("%d bytes, limit %d", len(page), limit)
			}
			literal(t, page, n.Provenance.RunURL)
		}
	}
}

// hostileOptions have a hostile name wherever options hold text that is not explain's own.
func hostileOptions() []diffdoc.CommentOptions {
	var list []diffdoc.CommentOptions
	for _, n := range tracetest.HostileNames() {
		list = append(list, diffdoc.CommentOptions{Title: n, Notes: [][]doc.Span{{doc.Text("label "), doc.Name(n)}},
			AcceptLabel: n, Reproduce: n,
			Provenance: diffdoc.Provenance{BaseSHA: n, HeadSHA: n, Baseline: n, Policy: n, RunURL: n, BaseRunURL: n, PageURL: n, Artifact: n, Hardware: n}})
	}
	return list
}

// literal checks that a page, read as GitHub reads it, holds no HTML but folded parts, no image, no mention, and no link
// but the one that explain makes.
func literal(t *testing.T, page string, links ...string) {
	t.Helper()
	source := []byte(page)
	err := ast.Walk(goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.RawHTML, *ast.AutoLink, *ast.Image:
			t.Errorf("a name became %s", n.Kind())
		case *ast.Link:
			if u := string(n.Destination); u == "" || !slices.Contains(links, u) {
				t.Errorf("a name became a link to %q", n.Destination)
			}
		case *ast.HTMLBlock:
			for i := range n.Lines().Len() {
				line := n.Lines().At(i)
				if s := strings.TrimSpace(string(line.Value(source))); s != "<details>" && s != "</details>" && !strings.HasPrefix(s, "<summary>") {
					t.Errorf("HTML %q", s)
				}
			}
		case *ast.Text:
			if s := string(n.Segment.Value(source)); strings.Contains(s, "@org") && n.Parent().Kind() != ast.KindCodeSpan {
				t.Errorf("a mention: %q", s)
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Error(err)
	}
	for i, line := range strings.Split(page, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "::") {
			t.Errorf("line %d starts like a workflow command: %q", i+1, line)
		}
	}
}

// TestOneLineNamesNothing: it goes where a name could do harm.
func TestOneLineNamesNothing(t *testing.T) {
	if got, want := diffdoc.OneLine(difftest.Regression()), "+15.0 % slower, 10 → 11.5 ms, median; 7 gates checked, 2 failed, 3 warned"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := diffdoc.OneLine(difftest.Different()), "not comparable: different_work, environment_mismatch; 0 gates checked"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, n := range tracetest.HostileNames() {
		c := hostile()
		c.Primary[0].Metric, c.Answer.Metric, c.Gates[0].Metric, c.Gates[0].Reason, c.Gates[0].Rule, c.Base.Names[0] = n, n, n, n, n, n
		if line := diffdoc.OneLine(c); len(n) > 4 && strings.Contains(line, n) || strings.ContainsAny(line, "\n\r") || len(line) > 300 {
			t.Errorf("%q says %q", n, line)
		}
		c.Comparable, c.Reasons = false, []comparison.Reason{{Code: comparison.Code(n), Text: n}}
		if line := diffdoc.OneLine(c); len(n) > 4 && strings.Contains(line, n) || strings.ContainsAny(line, "\n\r") || len(line) > 300 {
			t.Errorf("%q says %q", n, line)
		}
	}
}

func TestClasses(t *testing.T) {
	c := difftest.Regression() // rows: two times and the launches regressed, idle unsettled; kernels: one regressed, one added, one the same
	if worse, better, unsettled := c.Classes(); worse != 4 || better != 0 || unsettled != 1 {
		t.Errorf("%d regressed, %d improved, %d unsettled", worse, better, unsettled)
	}
}

// TestACommentTrustsNoText: a comparison that somebody else wrote has hostile text wherever its contract allows text. Words of
// a kind, such as verdicts, are held to the contract when it is read.
func TestACommentTrustsNoText(t *testing.T) {
	for _, name := range tracetest.HostileNames() {
		c := difftest.Regression()
		c.Residue = append(c.Residue, comparison.Residue{})
		c.Reasons = append(c.Reasons, comparison.Reason{})
		c.Waivers = append(c.Waivers, comparison.WaiverUse{})
		c.Overrides = append(c.Overrides, comparison.Override{})
		spoil(reflect.ValueOf(c).Elem(), name)
		for _, comparable := range []bool{true, false} {
			c.Comparable = comparable
			for _, limit := range longtest.Some([]int{summaryLimit, commentLimit, 2000}, 2) {
				for _, page := range []string{
					diffdoc.Comment(c, diffdoc.CommentOptions{}, limit), diffdoc.CombinedComment([]comparison.Leg{{Name: name, Comparison: c}, {Comparison: c}}, diffdoc.CommentOptions{}, limit),
				} {
					if len(page) > limit {
						t.Errorf("%.20q: %d bytes, limit %d", name, len(page), limit)
					}
					literal(t, page)
					wholeTables(t, page)
				}
			}
		}
	}
}

// spoil sets every string in a value but those of types with a name, which are words of a kind.
func spoil(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() {
			v.SetString(text)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			spoil(v.Elem(), text)
		}
	case reflect.Slice:
		for i := range v.Len() {
			spoil(v.Index(i), text)
		}
	case reflect.Map:
		if v.Type() == reflect.TypeFor[report.Labels]() && !v.IsNil() {
			v.Set(reflect.ValueOf(report.Labels{text: text, "kernel": text}))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			spoil(v.Field(i), text)
		}
	default:
	}
}

// firstScreen is what stands before the first fold, and how many words that are.
func firstScreen(page string) (screen string, words int) {
	screen, _, _ = strings.Cut(page, "<details>")
	for _, w := range strings.FieldsFunc(screen, func(r rune) bool { return r == ' ' || r == '\n' || r == '|' }) {
		if strings.ContainsFunc(w, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			words++
		}
	}
	return screen, words
}

// TestTheFirstScreen has at most 120 words, whatever was compared, with everything that a reader needs to decide: symbol, verdict,
// change and unit in its first line, causes, the failed gate as the first row, what to do.
func TestTheFirstScreen(t *testing.T) {
	page := diffdoc.Comment(difftest.Regression(), surroundings(), commentLimit)
	screen, _ := firstScreen(page)
	for _, want := range []string{"### ❌ `h100-decode`: **FAIL** +15.0 % slower, 10 → 11.5 ms per decode step, batch 32, median\n", "**+1 ms** GPU waits before `#60` sample: new blocking call cudaStreamSynchronize",
		"| --- |\n| `step` `unit.time.p50` | 10 ms | 11.5 ms | +15.0 % | 3 % and 10 µs |", "the label `perf:accept`", "- {rule: [step, mean], ceiling: 15%, expires: YYYY-MM-DD, reason: say why}", "explain gate --base base.json --head head.json"} {
		if !strings.Contains(screen, want) {
			t.Errorf("no %q in\n%s", want, screen)
		}
	}
	for _, want := range []string{"`a1a1a1a` → `b2b2b2b` · ", "`2 × NVIDIA H100`", "2 failed"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	wordy := strings.Repeat("many words ", 40)
	for name, spoiled := range map[string]func(c *comparison.Comparison){
		"as it is": func(*comparison.Comparison) {},
		"causes": func(c *comparison.Comparison) {
			for i := range c.Answer.Rows {
				c.Answer.Rows[i].What, c.Answer.Rows[i].With = wordy, []string{wordy}
			}
		},
		"notes": func(c *comparison.Comparison) { c.Answer.Notes = []string{wordy, wordy} },
		"reasons": func(c *comparison.Comparison) {
			c.Reasons = append(c.Reasons, comparison.Reason{Code: comparison.Trend, Text: wordy})
		},
		"gates": func(c *comparison.Comparison) {
			for i := range 20 {
				g := c.Gates[0]
				g.Rule = fmt.Sprintf("rule %d", i)
				c.Gates = append(c.Gates, g)
			}
		},
	} {
		c, o := difftest.Regression(), surroundings()
		spoiled(c)
		for range 3 {
			o.Notes = append(o.Notes, []doc.Span{doc.Text(wordy)})
		}
		if screen, n := firstScreen(diffdoc.Comment(c, o, commentLimit)); n > 120 || !strings.Contains(screen, "**FAIL** +15.0 %") || !strings.Contains(screen, "`unit.time.p50`") {
			t.Errorf("%s: %d words:\n%s", name, n, screen)
		}
	}
	for _, want := range []string{"[diff.html in the artifacts](https://github.com/o/r/actions/runs/9#artifacts)",
		"[run](https://github.com/o/r/actions/runs/8)", "[run of the base](https://github.com/o/r/actions/runs/6)"} {
		if !strings.Contains(page, want) {
			t.Errorf("no link %s in\n%s", want, page)
		}
	}
	direct := surroundings()
	direct.Provenance.PageURL = "https://github.com/o/r/actions/runs/9/artifacts/5"
	if page := diffdoc.Comment(difftest.Regression(), direct, commentLimit); !strings.Contains(page, "[diff.html]("+direct.Provenance.PageURL+")") {
		t.Errorf("no link to the artifact in\n%s", page)
	}
	if page := diffdoc.ErrorComment(comparison.Error, "no capture", surroundings(), commentLimit); strings.Contains(page, "diff.html") {
		t.Errorf("a link to a comparison that was not made:\n%s", page)
	}
	failed := surroundings()
	failed.Provenance.FailedJob, failed.Provenance.FailedURL = "measure", "https://github.com/o/r/actions/runs/8/job/3"
	if page := diffdoc.ErrorComment(comparison.Error, "no capture", failed, commentLimit); !strings.Contains(page, "Measuring failed: [log of the job measure](https://github.com/o/r/actions/runs/8/job/3).") {
		t.Errorf("no link to the log:\n%s", page)
	}
}

// TestATypicalCommentIsShort: a reader scrolls past a page.
func TestATypicalCommentIsShort(t *testing.T) {
	if n := len(diffdoc.Comment(difftest.Regression(), surroundings(), commentLimit)); n > 8000 {
		t.Errorf("%d bytes", n)
	}
}

// In a comment a cause keeps what goes with it, which says what to look at, and loses its place first.
func TestCausesKeepTheirReason(t *testing.T) {
	row := comparison.AnswerRow{What: "GPU idle, host slower", Where: "(+1.292 ms before kernels #62-#80 in every step, +891.3 µs in 4 hiccups in 14 steps, up to 6.646 ms before kernel #38)",
		With: []string{"host time in cudaMemsetAsync +423.8 µs per unit (+784.1 % per call)", "host time in cudaLaunchKernel +315.7 µs per unit (+38.3 % per call)"}}
	for words, want := range map[int]string{
		99: row.Text(),
		46: row.What + " " + row.Where + ": " + row.With[0] + " …",
		29: row.What + ": " + row.With[0] + ", " + row.With[1],
		18: row.What + ": " + row.With[0] + " …",
		10: "GPU idle, host slower: host time in cudaMemsetAsync +423.8 µs …",
	} {
		if got := row.Brief(words); got != want {
			t.Errorf("%d words: %q, want %q", words, got, want)
		}
	}
	short := comparison.AnswerRow{What: "exposed communication", Where: "before #60 in every step of the capture"}
	if got := short.Brief(4); got != "exposed communication" {
		t.Errorf("%q", got)
	}
}

// The first of the failed gates is about the number in the title: here the mean changed more than the median.
func TestTheTitleIsTheFirstGate(t *testing.T) {
	c := difftest.Regression()
	for i := range c.Primary {
		if r := &c.Primary[i]; r.Metric == "unit.time.mean" {
			r.Head, r.Delta, r.Ratio = new(12e6), new(2e6), new(1.2)
		}
	}
	row, _ := c.Headline()
	_, table, _ := strings.Cut(diffdoc.Comment(c, surroundings(), commentLimit), "| --- | --: | --: | --: | --- |\n")
	first, _, _ := strings.Cut(table, "\n")
	if row == nil || row.Metric != "unit.time.mean" || !strings.Contains(first, "`unit.time.mean`") {
		t.Errorf("the title is of %v, the first gate %q", row, first)
	}
}
