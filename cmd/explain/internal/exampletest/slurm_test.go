//go:build linux

package exampletest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// srun stands in for Slurm's: srun N COMMAND runs it N times, four at a time, each with its SLURM_PROCID. Those that KILL
// names, separated by blanks, are killed as soon as they have started.
const srun = `#!/bin/bash
n="$1"
shift
export COMMAND="$*"
task() {
  export SLURM_PROCID="$1"
  if [[ " ${KILL:-} " == *" $1 "* ]]; then
    $COMMAND &
    kill -9 "$!"
    wait "$!" 2>/dev/null
    exit 0
  fi
  exec $COMMAND
}
export -f task
seq 0 "$((n - 1))" | xargs -P 4 -I{} bash -c 'task {}'
`

var slurmRanks = flag.Int("ranks", 24, "ranks that TestRanksBySlurm runs; 200 take 40 s of two cores")

// TestMakeFleet writes the captures that .ci/engines analyses into $EXPLAIN_FLEET: $EXPLAIN_FLEET_RANKS ranks, of which
// rank 9 holds the others up.
func TestMakeFleet(t *testing.T) {
	dir := os.Getenv("EXPLAIN_FLEET")
	if dir == "" {
		t.Skip("nobody asks for a fleet ($EXPLAIN_FLEET)")
	}
	n, err := strconv.Atoi(os.Getenv("EXPLAIN_FLEET_RANKS"))
	if err != nil {
		t.Fatal(err)
	}
	fleet := tracetest.Fleet{Ranks: n, PerHost: 8, Steps: 4, Offset: 1e9, Drift: 50e-6, Jitter: 20_000, EndJitter: 2_000,
		Slow: 9, SlowBy: 0.5, SlowSteps: 1}.Run()
	for i := range fleet {
		if err := fleet[i].Build(tracetest.Schema("3.25.0")).Write(filepath.Join(dir, fmt.Sprintf("rank%d.sqlite", i))); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRanksBySlurm: many ranks by four workers of a stand-in for srun, with the scripts of the examples. Two workers are
// killed and a third leaves half a file; run again, everything is there, and the merged report is the one that a single
// process makes, byte for byte.
func TestRanksBySlurm(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed here")
	}
	n := *slurmRanks
	scripts, err := filepath.Abs("../../../../examples/slurm")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	fleet := tracetest.Fleet{Ranks: n, PerHost: 8, Steps: 4, Offset: 1e9, Drift: 50e-6, Jitter: 20_000, EndJitter: 2_000,
		Slow: 5, SlowBy: 0.5, SlowSteps: 1}.Run()
	var manifest strings.Builder
	for i := range fleet {
		name := fmt.Sprintf("rank%d.sqlite", i)
		if err := fleet[i].Build(tracetest.Schema("3.25.0")).Write(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&manifest, name)
	}
	files := map[string]string{"manifest.txt": manifest.String(), "srun": srun}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	do := func(env []string, args ...string) {
		t.Helper()
		c := explaintest.Process(t, dir, env)
		c.Path, c.Args = "/bin/bash", append([]string{"bash"}, args...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	count := fmt.Sprint(n)
	task := filepath.Join(scripts, "partials.sbatch")
	do([]string{"KILL=3 7"}, "srun", count, "bash", task)
	parts, err := filepath.Glob(filepath.Join(dir, "parts", "*.partial"))
	if err != nil || len(parts) != n-2 {
		t.Fatalf("%d partials of %d after two workers were killed", len(parts), n)
	}
	whole := explaintest.Read(t, parts[1])
	if err := os.WriteFile(parts[1], whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	do(nil, "srun", count, "bash", task)
	if !bytes.Equal(explaintest.Read(t, parts[1]), whole) {
		t.Error("the partial that was cut off was not made again")
	}
	do(nil, filepath.Join(scripts, "merge-partials.sbatch"))
	do([]string{"PARTS=manifest-in-one"}, "-c", "explain merge rank*.sqlite --out alone --quiet")
	if !bytes.Equal(explaintest.Read(t, filepath.Join(dir, "report", "report.json")), explaintest.Read(t, filepath.Join(dir, "alone", "report.json"))) {
		t.Error("the report of many workers is not the one of a single process")
	}
	if md := string(explaintest.Read(t, filepath.Join(dir, "report", "report.md"))); !regexp.MustCompile(`Rank 5 (arrives last in .* and )?holds up `).MatchString(md) {
		t.Error("the late rank is not named")
	}
}
