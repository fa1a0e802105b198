//go:build linux

package exampletest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// TestClusterScripts runs the examples for Slurm as Slurm would, with fakes for the server and nsys: one job, an array of two ranks,
// and what puts them together.
func TestClusterScripts(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed here")
	}
	scripts, err := filepath.Abs("../../../../examples/slurm")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	serving := explaintest.Testdata("serving.sqlite")
	job := func(want int, script string, env ...string) string {
		c := explaintest.Process(t, dir, append([]string{"MODEL=org/m", "NSYS_STANDIN=version=2023.4", "CAPTURE_ARGS=--num-requests 2 --warmup-requests 0 --quiet -- " + serving}, env...))
		c.Path, c.Args = "/bin/bash", []string{"bash", filepath.Join(scripts, script)}
		out, err := c.CombinedOutput()
		if code := explaintest.Exit(t, err); code != want {
			t.Fatalf("%s: exit code %d, want %d: %s", script, code, want, out)
		}
		return string(out)
	}
	job(0, "capture.sbatch", "RUN_ID=one", "SLURM_JOB_ID=7")
	job(0, "capture.sbatch", "RUN_ID=seed", "BATCH=2", "WARMUP_ITERS=1", "ITERS=3", "ENFORCE_EAGER=1", "CAPTURE_ARGS=")
	inputs := string(explaintest.Read(t, filepath.Join(dir, "artifacts", "seed", "inputs.yaml")))
	for _, want := range []string{"requests: 6\n", "concurrency: 2\n", "warmup_requests: 2\n", " --enforce-eager"} {
		if !strings.Contains(inputs, want) {
			t.Errorf("no %q in %s", want, inputs)
		}
	}
	job(0, "ranks.sbatch", "RUN_ID=many", "SLURM_ARRAY_TASK_ID=0")
	job(0, "ranks.sbatch", "RUN_ID=many", "SLURM_ARRAY_TASK_ID=1")
	job(1, "ranks.sbatch", "SLURM_ARRAY_TASK_ID=1", "RUN_ID=")
	job(3, "ranks.sbatch", "RUN_ID=many", "SLURM_ARRAY_TASK_ID=2", "STANDIN=start_fail=1")
	said := job(1, "merge.sbatch", "RUN_ID=many")
	if !strings.Contains(said, "2 ranks, 1 failed") || !strings.Contains(said, "rank-2 failed, its logs are in rank-2.failed") {
		t.Errorf("merge.sbatch says: %s", said)
	}
	for _, name := range []string{"one/report.json", "one/metadata.txt", "many/rank-0/report.json", "many/rank-1/trace.sqlite", "many/against-rank-0/rank-1/comparison.json"} {
		if _, err := os.Stat(filepath.Join(dir, "artifacts", name)); err != nil {
			t.Error(err)
		}
	}
}

// TestShellcheck holds the shell scripts of the repository to shellcheck, where it is installed.
func TestShellcheck(t *testing.T) {
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Skip("shellcheck is not installed here")
	}
	scripts, err := filepath.Glob("../../../../examples/slurm/*.sbatch")
	if err != nil || len(scripts) != 5 {
		t.Fatalf("%v, %v", scripts, err)
	}
	if out, err := exec.Command("shellcheck", scripts...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
