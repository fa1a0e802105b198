package exampletest

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
	"github.com/nsys-llm/explain/gate/gatetest"
)

// TestWorkflowsThrice runs the workflows of the README and of examples/github three times on a runner that keeps its
// workspaces and has no Go, with a capture that fails in the middle: the first verdict and the last are the same, and the
// one between judges nothing. explain comes from a release.
func TestWorkflowsThrice(t *testing.T) {
	act := os.Getenv("EXPLAIN_ACT")
	if act == "" {
		t.Skip("EXPLAIN_ACT names no act: .ci/e2e installs it")
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("the release that is made here is for amd64")
	}
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{act: act, root: root, tools: t.TempDir(), base: explaintest.Read(t, "../../../../testdata/serving.sqlite"), slow: explaintest.Edited(t)["slow.sqlite"]}
	l.stubs(t)
	released := explaintest.Read(t, filepath.Join(l.tools, "logged"))
	explaintest.Put(t, filepath.Join(l.action, ".explain-releases"), fmt.Appendf(nil, "v1.0.0 linux amd64 %x\n", sha256.Sum256(released)), 0o644)
	for name, script := range map[string]string{
		"nsys": `case "$1 ${!#}" in "profile true" | *--help) ;; profile*) [ ! -e "$E2E_COUNT.fails" ] || exit 1 ;; esac
exec '` + filepath.Join(l.tools, "bin/nsys") + `' "$@"`,
		// One that is served at a time writes its profile where it was told to; nothing is served where measuring fails.
		"curl": `case "$*" in
*/stop_profile) read -r from to < "$E2E_COUNT.served"; cp "$from" "$to/host_1.pt.trace.json.gz" ;;
*localhost:8000/*) [ -e "$E2E_COUNT.served" ] ;;
*) while [ "$1" != --output ]; do shift; done; cp '` + filepath.Join(l.tools, "logged") + `' "$2" ;;
esac`,
		"python3": `mkdir -p "$4/bin"
printf '%s\n' '#!/bin/sh' 'mkdir -p "${0%/*}/lib"; cp "$3/trace.sqlite" "${0%/*}/lib/"' > "$4/bin/pip"
printf '%s\n' '#!/bin/sh' '[ ! -e "$E2E_COUNT.fails" ] || exit 1' 'echo "$PWD/${0%/*}/lib/trace.sqlite $VLLM_TORCH_PROFILER_DIR" > "$E2E_COUNT.served"' 'exec sleep 60' > "$4/bin/vllm"
chmod +x "$4/bin/pip" "$4/bin/vllm"`,
		"explain": `exec '` + filepath.Join(l.tools, "logged") + `' "$@"`, // which enterprise.yml has on its runner
	} {
		explaintest.Put(t, filepath.Join(l.tools, "runner", name), []byte("#!/usr/bin/env bash\nset -eu\n"+script+"\n"), 0o755)
	}
	path := []string{filepath.Join(l.tools, "runner")}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if _, err := os.Stat(filepath.Join(dir, "go")); err != nil {
			path = append(path, dir)
		}
	}
	slots := make(chan struct{}, runtime.NumCPU())
	for _, c := range []struct {
		name, workflow, event, payload string
		passes                         bool   // it only measures, or has nothing to compare with
		want                           string // of the comment; empty: there is none
		leaves                         string // what the artifact of a run that measured holds
	}{
		{"the README's", readmeWorkflow(t), "pull_request", gatetest.PullEvent, false, `❌ \*\*FAIL\*\* \+11`, ""},
		{"enterprise", "enterprise.yml", "pull_request", gatetest.PullEvent, false, `❌ \*\*FAIL\*\* \+11`, ""},
		{"one job", "gpu-runner.yml", "pull_request", gatetest.PullEvent, false, `❌ \*\*FAIL\*\* \+11`, ""},
		{"matrix", "matrix.yml", "pull_request", gatetest.PullEvent, false, "❌ `all`: \\*\\*FAIL\\*\\* 2 failed of 2", ""},
		{"fork, which only measures", "fork-gate.yml", "pull_request", forkEvent, true, "", "explain-reports/*/*/report.json"},
		{"profiles of PyTorch, which it only measures", "pytorch.yml", "pull_request", forkEvent, true, "", "explain-reports/*/*/report.json"},
		{"ranks of a night", "partials.yml", "workflow_dispatch", cronEvent, true, "", "report/report.json"},
		{"the base's artifact", "artifact-baseline.yml", "push", pushEvent, true, "", "explain-baseline/*/report.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			b := &bench{T: t, lab: l, dir: t.TempDir(), path: strings.Join(path, string(os.PathListSeparator)), kept: t.TempDir()}
			const policy = "version: 1\npreset: llm-serving\n"
			b.github(func(sc *gatetest.Scenario) {
				sc.Files = []gatetest.File{at(".github/explain.yml", gatetest.BaseSHA, policy)}
			})
			workflow := c.workflow
			switch workflow {
			case "matrix.yml":
				workflow = b.matrix()
			case "gpu-runner.yml": // the stand-in for nsys records no ranges of NVTX
				workflow = strings.Replace(b.example(workflow), "--nvtx 'measured@*' ", "", 1)
			default:
				if strings.HasSuffix(workflow, ".yml") {
					workflow = b.example(workflow)
				}
			}
			base, head := b.base, b.slow
			if c.workflow == "pytorch.yml" {
				base, head = packed(t, explaintest.TorchProfile(24, 1)), packed(t, explaintest.TorchProfile(24, 1.3))
			}
			ranks := fleet(t, t.TempDir(), 3)
			fails := filepath.Join(b.dir, "captured.fails")
			var left []string // by a run
			for i := range 3 {
				b.secret = ranks
				if i == 1 {
					b.secret = strings.Replace(ranks, "rank1", "gone", 1)
				}
				b.repository(workflow, base, head, map[string]string{".github/explain.yml": policy})
				if err := os.RemoveAll(b.artifacts()); err != nil { // they are a run's own
					t.Fatal(err)
				}
				if i == 1 {
					explaintest.Put(t, fails, nil, 0o644)
				} else if err := os.RemoveAll(fails); err != nil {
					t.Fatal(err)
				}
				ok, log := b.run(c.event, c.payload)
				if want := c.passes && i != 1; ok != want {
					t.Errorf("run %d succeeds: %t, want %t:\n%s", i+1, ok, want, log)
				}
				found, err := filepath.Glob(filepath.Join(b.artifacts(), c.leaves))
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case c.leaves == "":
				case c.workflow == "partials.yml": // a rank that is missing leaves a report that differs
					report := string(explaintest.Read(t, found[0]))
					if i == 2 && (report != left[0] || report == left[1]) || i == 1 && !strings.Contains(report, `"ranks"`) {
						t.Errorf("run %d leaves another report", i+1)
					}
					left = append(left, report)
				case i == 1 && len(found) > 0, i == 0 && len(found) == 0, i == 2 && len(found) != len(left):
					t.Errorf("run %d leaves %q, the first %q", i+1, found, left)
				case i == 0:
					left = found
				}
				if all := strings.Join(b.comments(), "\n"); c.want != "" && i != 1 {
					b.want(all, c.want)
				} else if c.want != "" {
					b.want(all, `🛑 .*\*\*ERROR\*\*`)
				}
			}
		})
	}
}

// packed is a file as gzip packs it.
func packed(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// fleet records a run of n ranks into a folder, and returns the paths of the captures, one in each line.
func fleet(t *testing.T, dir string, n int) string {
	t.Helper()
	var manifest strings.Builder
	for _, r := range (tracetest.Fleet{Ranks: n, Steps: 4, Jitter: 20_000, Slow: 2, SlowBy: 0.5, SlowSteps: 1}).Run() {
		path := filepath.Join(dir, fmt.Sprintf("rank%d.sqlite", r.Rank))
		if err := r.Build(tracetest.Schema("3.25.0")).Write(path); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&manifest, path)
	}
	return manifest.String()
}

// keeping is a workflow whose jobs begin with the workspace that the run before left, as a runner of one's own does.
func (b *bench) keeping(workflow string) string {
	if b.kept == "" {
		return workflow
	}
	var doc yaml.MapSlice
	if err := yaml.UnmarshalWithOptions([]byte(workflow), &doc, yaml.UseOrderedMap()); err != nil {
		b.Fatal(err)
	}
	step := func(run string) any {
		return map[string]any{"if": "always()", "shell": "bash", "env": map[string]string{"LEG": "${{ toJSON(matrix) }}"},
			"run": `k="$E2E_KEPT/$GITHUB_JOB-$(printf %s "$LEG" | tr -cd a-z0-9)"; mkdir -p "$k"; ` + run}
	}
	for _, top := range doc {
		jobs, _ := top.Value.(yaml.MapSlice)
		if top.Key != "jobs" {
			continue
		}
		for _, job := range jobs {
			for k, field := range job.Value.(yaml.MapSlice) {
				if steps, ok := field.Value.([]any); ok && field.Key == "steps" {
					steps = append([]any{step(`cp -a "$k/." .`)}, steps...)
					job.Value.(yaml.MapSlice)[k].Value = append(steps, step(`rm -rf "$k"; cp -a . "$k"`))
				}
			}
		}
	}
	out, err := yaml.Marshal(doc)
	if err != nil {
		b.Fatal(err)
	}
	return string(out)
}
