package gate

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runner is a step with empty files for its output and summary.
func runner(t *testing.T) (getenv func(string) string, out *bytes.Buffer, output, summary string) {
	t.Helper()
	dir := t.TempDir()
	output, summary = filepath.Join(dir, "output"), filepath.Join(dir, "summary")
	env := map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": output, "GITHUB_STEP_SUMMARY": summary}
	return func(k string) string { return env[k] }, &bytes.Buffer{}, output, summary
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(b)
}

func TestOutput(t *testing.T) {
	getenv, out, output, _ := runner(t)
	l := newStepLog(out, getenv, nil)
	for name, value := range map[string]string{"verdict": "fail", "report-json": "gate/comparison.json"} {
		if err := l.Output(name, value); err != nil {
			t.Error(err)
		}
	}
	before := read(t, output)
	if !contains(before, "verdict<<_GitHubActionsFileCommandDelimeter_\nfail\n_GitHubActionsFileCommandDelimeter_\n") {
		t.Errorf("file %q", before)
	}
	for _, bad := range [][2]string{
		{"verdict", "fail\n_GitHubActionsFileCommandDelimeter_\nverdict<<x\npass\nx"}, {"verdict", "a\rb"}, {"verdict", "a\x1b[31m"}, {"verdict", "\u202eb"}, {"verdict", "a\u2028b"},
		{"verdict", strings.Repeat("x", maxOutput+1)}, {"ver\ndict", "x"}, {"", "x"}, {"Verdict", "x"},
	} {
		if err := l.Output(bad[0], bad[1]); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
	if after := read(t, output); after != before || out.Len() != 0 {
		t.Errorf("refused values left %q, and %q on standard output", after[len(before):], out)
	}
}

func TestSummary(t *testing.T) {
	getenv, out, _, summary := runner(t)
	l := newStepLog(out, getenv, nil)
	if err := errors.Join(l.Summary("# one"), l.Summary("# two")); err != nil {
		t.Fatal(err)
	}
	if got := read(t, summary); got != "# one\n# two\n" {
		t.Errorf("summary %q", got)
	}
	if err := l.Summary(strings.Repeat("x", summaryLimit-5)); err == nil || !contains(err.Error(), "900000") {
		t.Errorf("error %v", err)
	}
	if got := read(t, summary); got != "# one\n# two\n" {
		t.Errorf("a refused summary left %q", got)
	}
}

// TestNoFiles: outside of GitHub there is nothing to write to; a file that cannot be written is an error, never a panic.
func TestNoFiles(t *testing.T) {
	var out bytes.Buffer
	l := newStepLog(&out, func(string) string { return "" }, nil)
	if err := errors.Join(l.Output("verdict", "pass"), l.Summary("text"), l.Mask("secret")); err != nil || l.Annotate(failureLevel, "a", "b") || out.Len() != 0 {
		t.Errorf("error %v, standard output %q", err, &out)
	}
	dir := t.TempDir()
	env := map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": dir, "GITHUB_STEP_SUMMARY": dir}
	l = newStepLog(failWriter{}, func(k string) string { return env[k] }, nil)
	for what, err := range map[string]error{"GITHUB_OUTPUT": l.Output("verdict", "pass"), "GITHUB_STEP_SUMMARY": l.Summary("text"), "runner": l.Mask("secret")} {
		if err == nil || !contains(err.Error(), what) || contains(err.Error(), "secret") {
			t.Errorf("%s: error %v", what, err)
		}
	}
	if l.Annotate(failureLevel, "a", "b") {
		t.Error("an annotation that could not be written was")
	}
}

type failWriter struct{}

func (failWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestAnnotate(t *testing.T) {
	getenv, out, _, _ := runner(t)
	l := newStepLog(out, getenv, nil)
	hostile := "evil\n::set-output name=verdict::pass\r\n%0A::error::\u202e" + strings.Repeat("y", 2000)
	for i, level := range []level{failureLevel, warningLevel, noticeLevel, failureLevel} {
		if wrote := l.Annotate(level, "explain: fail, 3 gates::x\n", hostile); wrote != (i < 3) {
			t.Errorf("annotation %d: %t", i, wrote)
		}
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines: %q", len(lines), out)
	}
	for i, level := range []string{"error", "warning", "notice"} {
		want := "::" + level + " title=explain%3A fail%2C 3 gates%3A%3Ax::evil ::set-output name=verdict::pass  %250A::error:: y"
		if !strings.HasPrefix(lines[i], want) || len(lines[i]) > 1200 {
			t.Errorf("line %q", lines[i])
		}
	}
}

func TestMask(t *testing.T) {
	getenv, out, _, _ := runner(t)
	if err := newStepLog(out, getenv, nil).Mask("ghs_secret"); err != nil || out.String() != "::add-mask::ghs_secret\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestDefuse(t *testing.T) {
	for in, want := range map[string]string{
		"":                                "",
		"plain\ntext\n":                   "plain\ntext\n",
		"::error::x":                      ": :error::x",
		"a\n \t::add-mask::y\r::x\r\n::z": "a\n \t: :add-mask::y\r: :x\r\n: :z",
		"at::launch(int)":                 "at::launch(int)",
		"see ##[error]x":                  "see ## [error]x",
		"\u00a0\ufeff::error::x":          "\u00a0\ufeff: :error::x",
		"::::":                            ": :::",
	} {
		if got := Defuse(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
