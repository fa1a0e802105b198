package ci

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/gate"
)

// What an error says of the change: an exit code, and a verdict.
func TestWhatErrorsMean(t *testing.T) {
	for _, x := range []struct {
		err     error
		code    int
		verdict comparison.Verdict
	}{
		{usage.Errorf("wrong"), cmdenv.Usage, comparison.Error},
		{fmt.Errorf("options: %w", analyze.ErrOptions), cmdenv.Usage, comparison.Error},
		{fmt.Errorf("policy: %w", gate.UnreadError{Err: io.EOF}), cmdenv.Inconclusive, comparison.Inconclusive},
		{io.EOF, cmdenv.Input, comparison.Error},
	} {
		if code, verdict := ErrorCode(x.err), verdictOf(x.err); code != x.code || verdict != x.verdict {
			t.Errorf("%v: %d %s, want %d %s", x.err, code, verdict, x.code, x.verdict)
		}
	}
	for code, want := range map[cmdenv.Exit]comparison.Verdict{cmdenv.Fail: comparison.Fail, cmdenv.Inconclusive: comparison.Inconclusive} {
		if got := verdictOf(code); got != want {
			t.Errorf("exit %d is %s, want %s", code, got, want)
		}
	}
	if verdictOf(nil) != comparison.Pass || cmdenv.Exited(0) != nil || !errors.Is(cmdenv.Exited(4), cmdenv.Exit(4)) {
		t.Errorf("%s, %v, %v", verdictOf(nil), cmdenv.Exited(0), cmdenv.Exited(4))
	}
}

// --exit-on moves the exit code of a verdict: fail and error let what is inconclusive pass, warn fails on a warning.
func TestExitOn(t *testing.T) {
	for level, want := range map[string][4]int{ // of warn, inconclusive, fail, error
		"warn": {1, 4, 1, 3}, "inconclusive": {0, 4, 1, 3}, "fail": {0, 0, 1, 3}, "error": {0, 0, 1, 3}, "never": {0, 0, 0, 0},
	} {
		f := githubFlags{exitOn: level}
		for i, v := range []comparison.Verdict{comparison.Warn, comparison.Inconclusive, comparison.Fail, comparison.Error} {
			if got := f.exitCode(v); got != want[i] {
				t.Errorf("--exit-on %s, %s: %d, want %d", level, v, got, want[i])
			}
		}
	}
}

// A leg stands for the longest of the expected names that it ends in: explain-long-decode is no decode. A list may have
// blanks after its commas, and one at its end.
func TestLegsAndTheirNames(t *testing.T) {
	legs := []comparison.Leg{{Name: "explain-long-decode"}, {Name: "prefill"}, {Name: "extra"}}
	missing := nameLegs(legs, []string{"decode", " long-decode", "prefill ", ""})
	if len(missing) != 1 || missing[0].Name != "decode" || missing[0].Comparison.Verdict != comparison.Error {
		t.Errorf("%+v", missing)
	}
	for i, want := range []string{"long-decode", "prefill", "extra"} {
		if legs[i].Name != want {
			t.Errorf("%s, want %s", legs[i].Name, want)
		}
	}
}

// A shell reads the command that repeats a comparison as it was given.
func TestReproduce(t *testing.T) {
	f := gateFlags{base: []string{"a.json"}, head: []string{"it's b.json"}, phase: "decode"}
	f.rules.FailOn, f.rules.Past.Store = []string{"unit.time.p50:+3%"}, "nights.db"
	if got, want := f.reproduce(false, 1), `explain gate --base a.json --head 'it'\''s b.json' --fail-on 'unit.time.p50:+3%' --history nights.db --phase decode`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got, want := f.reproduce(true, 0), `explain gate --head 'reports/*/report.json' --fail-on 'unit.time.p50:+3%' --phase decode`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	var given gateFlags
	cmd := &cobra.Command{}
	given.register(cmd)
	args := []string{"--head", "a.sqlite", "--baseline-file", "b.json", "--batch", "16", "--from", "5ms", "--steady", "--phase-map", "p.json", "--history", "n.db", "--history-branch", "dev"}
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	one := given
	one.analysis.PhaseMap = "pinned/p.json" // as of the base, in a folder that is removed
	if got, want := one.reproduce(false, 1), "explain gate --baseline-file b.json --head a.sqlite --history n.db --history-branch dev --from 5ms --phase-map p.json --steady --batch 16"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got, want := one.reproduce(true, 1), "explain gate --base 'base/*/report.json' --head 'reports/*/report.json' --batch 16"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	f.rules.Past.Store = "postgres://ci:secret@db/nights?password=secret&sslmode=disable"
	if got := f.reproduce(false, 1); !strings.Contains(got, " --history 'postgres://ci@db/nights?sslmode=disable' ") {
		t.Errorf("the password of the history is shown: %s", got)
	}
}
