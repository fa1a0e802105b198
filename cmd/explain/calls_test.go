package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
)

// TestActionsFlagsExist: every flag that the script of the action can pass is one of the command's.
func TestActionsFlagsExist(t *testing.T) {
	var action struct {
		Runs struct {
			Steps []struct{ Run string }
		}
	}
	if err := yaml.Unmarshal(read(t, "../../action.yml"), &action); err != nil || len(action.Runs.Steps) < 2 {
		t.Fatalf("%v: %+v", err, action)
	}
	step := action.Runs.Steps[1]
	var w env
	w.Getenv = os.Getenv
	for name, words := range map[string][]string{"gate": {"gate"}, "comment": {"gate", "comment"}} {
		cmd, _, err := newRoot(&w).Find(words)
		if err != nil {
			t.Fatal(err)
		}
		_, script, _ := strings.Cut(step.Run, "  "+name+")\n")
		script, _, _ = strings.Cut(script, ";;")
		common, _, _ := strings.Cut(step.Run, "case \"$COMMAND\"")
		for _, m := range regexp.MustCompile(`(?:one|lines|args\+=\() ?--([a-z-]+)`).FindAllStringSubmatch(common+script, -1) {
			if cmd.Flags().Lookup(m[1]) == nil {
				t.Errorf("explain %s has no flag --%s", name, m[1])
			}
		}
	}
}

// TestOtherHomes: what the examples of other CI systems call exists, with these flags.
func TestOtherHomes(t *testing.T) {
	call := regexp.MustCompile(`explain gate ([^|&\n]+)`)
	for _, file := range []string{"gitlab/.gitlab-ci.yml", "jenkins/Jenkinsfile", "buildkite/pipeline.yml"} {
		calls := call.FindAllStringSubmatch(string(read(t, filepath.Join("../../examples", file))), -1)
		if len(calls) != 1 {
			t.Errorf("%s calls explain gate %d times", file, len(calls))
		}
		for _, c := range calls {
			gate, _, err := newRoot(&env{Getenv: os.Getenv}).Find([]string{"gate"})
			if err != nil {
				t.Fatal(err)
			}
			if err := gate.ParseFlags(strings.Fields(strings.NewReplacer("'", "", `"`, "", ")", "").Replace(c[1]))); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// TestRunbookCalls: what the runbook and the examples call exists, with these flags, and its links lead somewhere.
func TestRunbookCalls(t *testing.T) {
	calls := 0
	for _, file := range []string{"docs/capture.md", "github/gpu-runner.yml", "kubernetes/job.yaml", "slurm/capture.sbatch", "slurm/ranks.sbatch", "slurm/merge.sbatch"} {
		text := strings.ReplaceAll(string(read(t, filepath.Join("../../examples", file))), "\\\n", " ")
		for _, m := range regexp.MustCompile(`(?m)^[^#\n]*(?:\bexplain|"\$EXPLAIN") ((?:capture|diff|calibrate|report) [^|\n#]+)`).FindAllStringSubmatch(text, -1) {
			line := regexp.MustCompile(`\$\(\([^)]*\)\)`).ReplaceAllString(strings.TrimSuffix(strings.TrimSpace(m[1]), "&"), "1")
			args, err := capture.Words(strings.TrimRight(line, "`']"))
			if err != nil {
				args, err = capture.Words(line)
			}
			if err != nil {
				t.Errorf("%s: %s: %v", file, line, err)
				continue
			}
			root := newRoot(&env{Getenv: os.Getenv})
			cmd, rest, err := root.Find(args)
			if err != nil || cmd == root {
				continue // words in a sentence
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Errorf("%s: explain %s: %v", file, m[1], err)
			}
			calls++
		}
	}
	if calls < 12 {
		t.Errorf("found only %d calls", calls)
	}
}
