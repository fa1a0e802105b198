package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/nsys-llm/explain/analyze/report"
)

// TestActionReadsEveryInput: every input of action.yml reaches a command as one word, an empty one as none, and each flag that
// the inputs become exists.
func TestActionReadsEveryInput(t *testing.T) {
	var file struct {
		Inputs map[string]struct{ Default string } `yaml:"inputs"`
	}
	b, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, &file); err != nil || len(file.Inputs) < 30 {
		t.Fatalf("%d inputs, %v", len(file.Inputs), err)
	}
	in := actionInputs{"command": "gate", "allow-unsafe": "true"}
	elsewhere := []string{"command", "github-token", "working-directory", "binary", "version", "release-url", "expect", "allow-unsafe"}
	for name := range file.Inputs {
		if !slices.Contains(elsewhere, name) {
			in[name] = "'$(" + name + ")' \"*"
		}
	}
	in["baseline"] = "a b.json\r\n\n  \n$(touch pwned)*.json"
	args := strings.Join(in.args(), "\x00") + "\x00"
	for name, value := range in {
		if !slices.Contains(elsewhere, name) && name != "baseline" && !strings.Contains(args, "="+value+"\x00") {
			t.Errorf("the input %s is in no flag", name)
		}
	}
	if !strings.Contains(args, "\x00--base=a b.json\x00--base=$(touch pwned)*.json\x00") || !strings.Contains(args, "\x00--allow-unsafe\x00") {
		t.Errorf("%q", args)
	}
	for _, command := range []string{"gate", "comment"} {
		in["command"], in["expect"] = command, "a,b"
		words, flags := []string{"gate"}, in.args()[1:]
		if command == "comment" {
			words, flags = []string{"gate", "comment"}, flags[1:]
		}
		cmd, _, err := newRoot(&env{Getenv: os.Getenv}).Find(words)
		if err != nil || cmd.Name() != command {
			t.Fatal(cmd.Name(), err)
		}
		for _, arg := range flags {
			name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
			if cmd.Flags().Lookup(name) == nil {
				t.Errorf("%s has no flag %s", command, name)
			}
		}
	}
	if got := (actionInputs{"command": "gate", "exit-on": "warn", "fail-on": "error"}).args(); !slices.Equal(got, []string{"gate", "--exit-on=warn", "--exit-on=error", "--override-label="}) {
		t.Errorf("%q", got)
	}
}

// action runs the action's program with inputs, in a folder, as a step of run 41.
func action(t *testing.T, inputs string) (code int, said string) {
	t.Helper()
	var out bytes.Buffer
	vars := map[string]string{"INPUTS": inputs, "GITHUB_ACTIONS": "true", "GITHUB_RUN_ID": "41", "GITHUB_RUN_ATTEMPT": "2"}
	code = run(context.Background(), []string{"action"}, &env{In: strings.NewReader(""), Out: &out, Err: &out, Getenv: func(name string) string { return vars[name] }})
	return code, out.String()
}

// TestActionReports: the folder holds the reports of this run alone, each says whose it is, and what explain did not write stays.
func TestActionReports(t *testing.T) {
	trace, err := filepath.Abs("../../testdata/base.sqlite")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	b, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"base-1.sqlite", "head-1.sqlite", "head-2.sqlite"} {
		put(t, name, b, 0o644)
	}
	three := `{"command": "report", "out": "reports", "baseline": "base-*.sqlite", "candidate": "head-1.sqlite\nhead-2.sqlite"}`
	list := func() []string {
		found, _ := filepath.Glob("reports/*/*/report.json")
		return found
	}
	if code, said := action(t, three); code != 0 || len(list()) != 3 {
		t.Fatalf("%d, %q: %s", code, list(), said)
	}
	f, err := os.Open("reports/head/2-head-2/report.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if r, err := report.Read(f); err != nil || r.Trace.Run == nil || *r.Trace.Run != (report.MeasuredBy{ID: 41, Attempt: 2}) {
		t.Errorf("%v, %+v", err, r.Trace.Run)
	}
	two := strings.Replace(three, `\nhead-2.sqlite`, "", 1)
	if code, said := action(t, two); code != 0 || len(list()) != 2 {
		t.Errorf("%d, %q: %s", code, list(), said)
	}
	if code, said := action(t, strings.Replace(three, "head-2", "gone-*", 1)); code != exitInput || !strings.Contains(said, "::error title=explain::no capture of the head is where the input says") {
		t.Errorf("%d: %s", code, said)
	}
	if code, said := action(t, three); code != 0 || len(list()) != 3 { // after the error
		t.Errorf("%d, %q: %s", code, list(), said)
	}
	put(t, "reports/head/mine.txt", []byte("x"), 0o644)
	if code, said := action(t, three); code != exitUsage || !strings.Contains(said, "explain did not write it") {
		t.Errorf("%d: %s", code, said)
	}
}
