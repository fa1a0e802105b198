package exampletest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
	"github.com/nsys-llm/explain/gate/gatetest"
)

// TestSteps runs the action as steps of a job: its own script in bash, the program as a process, and package gatetest as
// GitHub; each twice in its workspace; some of them, or all with -args -long. What a workflow around it does is TestWorkflows'.
func TestSteps(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("steps are scripts for bash")
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	l := &lab{tools: t.TempDir()}
	l.steps(t)
	t.Cleanup(func() { // that is what a verdict costs a runner that has explain; not asserted, since machines differ
		t.Logf("the action: %d runs, %.2f s of CPU each, %.2f s at most", l.cost.runs, (l.cost.all / time.Duration(max(l.cost.runs, 1))).Seconds(), l.cost.most.Seconds())
	})
	for _, s := range longtest.Some(steps(), 6) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			b := &bench{T: t, lab: l, dir: t.TempDir()}
			for range 2 { // in one workspace, as on a runner that keeps it; GitHub begins anew
				b.github(nil)
				s.run(b)
			}
		})
	}
}

// steps builds the program, and has it make the reports that the steps compare: slow is the base with 60 µs more in every
// step, again the base recorded once more.
func (l *lab) steps(t *testing.T) {
	t.Helper()
	l.program = explaintest.Program(t)
	l.reports = map[string][]byte{}
	traces := explaintest.Edited(t)
	traces["base.sqlite"] = explaintest.Read(t, "../../../../testdata/serving.sqlite")
	for _, name := range []string{"base", "slow", "again", "more", "worse"} {
		trace := filepath.Join(t.TempDir(), name+".sqlite")
		explaintest.Put(t, trace, traces[name+".sqlite"], 0o644)
		out := filepath.Join(t.TempDir(), name)
		if said, err := exec.Command(l.program, trace, "--quiet", "--out", out).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		l.reports[name] = explaintest.Read(t, filepath.Join(out, "report.json"))
	}
	script := readAction(t)
	l.step = script.Runs.Steps[1]
	l.inputs = map[string]string{}
	for name, in := range script.Inputs {
		l.inputs[name] = *in.Default
	}
}

// file puts a file into the workspace.
func (b *bench) file(name string, content []byte) {
	explaintest.Put(b.T, filepath.Join(b.workspace(), name), content, 0o644)
}

func (b *bench) workspace() string { return filepath.Join(b.dir, "repo") }

// gate is the action as a step: the event with its payload, inputs and more of the environment as NAME=VALUE. It returns the
// exit code and what was printed. A run after another has the next id.
func (b *bench) gate(event, payload string, inputs map[string]string, env ...string) (code int, said string) {
	b.Helper()
	b.runs++
	for name, content := range b.reports {
		b.file(name+".json", content)
	}
	in := maps.Clone(b.inputs)
	in["baseline"], in["candidate"], in["github-token"] = "base.json", "slow.json", "ghs_e2e_token"
	maps.Copy(in, inputs)
	events := filepath.Join(b.dir, "event.json")
	explaintest.Put(b.T, events, []byte(payload), 0o644)
	output := filepath.Join(b.dir, fmt.Sprintf("outputs%d", b.runs))
	b.summaryFile = filepath.Join(b.dir, fmt.Sprintf("summary%d", b.runs))
	cmd := exec.Command("bash", "-c", b.step.Run)
	cmd.Dir = filepath.Join(b.workspace(), in["working-directory"])
	cmd.Env = append(os.Environ(), "GITHUB_ACTIONS=true", "GITHUB_API_URL="+b.url+b.prefix, "GITHUB_SERVER_URL=https://github.com", "GITHUB_REPOSITORY=octo/llm",
		"GITHUB_WORKSPACE="+b.workspace(), "GITHUB_WORKFLOW=performance", "GITHUB_WORKFLOW_REF=octo/llm/.github/workflows/gate.yml@refs/heads/main", "GITHUB_JOB=gate",
		fmt.Sprintf("GITHUB_RUN_ID=%d", 1000+b.runs), "GITHUB_RUN_ATTEMPT=1", "GITHUB_EVENT_NAME="+event, "GITHUB_EVENT_PATH="+events, "RUNNER_TEMP="+b.dir,
		"GITHUB_OUTPUT="+output, "GITHUB_STEP_SUMMARY="+b.summaryFile)
	values, err := json.Marshal(in)
	if err != nil {
		b.Fatal(err)
	}
	for name := range b.step.Env {
		cmd.Env = append(cmd.Env, name+"="+map[string]string{"EXPLAIN": b.program, "EXPLAIN_MATRIX": "null", "INPUTS": string(values),
			"GITHUB_TOKEN": in["github-token"]}[name])
	}
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.Fatal(err)
	}
	cost := &b.cost
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	cost.Lock()
	cost.runs, cost.all, cost.most = cost.runs+1, cost.all+cpu, max(cost.most, cpu)
	cost.Unlock()
	text := string(out)
	if strings.Contains(strings.ReplaceAll(text, "::add-mask::ghs_e2e_token", ""), "ghs_e2e_token") {
		b.Error("the log holds the token")
	}
	b.Cleanup(func() {
		if b.Failed() {
			b.Logf("%s: exit %d\n%s\n%s", event, cmd.ProcessState.ExitCode(), text, b.server.Transcript())
		}
	})
	b.outputs = ""
	if o, err := os.ReadFile(output); err == nil {
		b.outputs = string(o)
	}
	return cmd.ProcessState.ExitCode(), text
}

// code runs the action as gate does, and wants an exit code.
func (b *bench) code(want int, event, payload string, inputs map[string]string, env ...string) string {
	b.Helper()
	code, said := b.gate(event, payload, inputs, env...)
	if code != want {
		b.Errorf("exit %d, want %d", code, want)
	}
	return said
}

// Payloads and files of the scenarios.
var (
	cronEvent   = `{"repository": {"id": 1, "full_name": "octo/llm", "default_branch": "main"}}`
	branchEvent = strings.Replace(strings.Replace(pushEvent, "refs/heads/main", "refs/heads/feature", 1), `"full_name": "octo/llm"}`, `"full_name": "octo/llm", "default_branch": "main"}`, 1)
	queueEvent  = `{"action": "checks_requested", "merge_group": {"head_sha": "` + strings.Repeat("c", 40) + `", "head_ref": "refs/heads/gh-readonly-queue/main/pr-7-` + gatetest.BaseSHA + `",
		"base_sha": "` + gatetest.BaseSHA + `", "base_ref": "refs/heads/main"}, ` + cronEvent[1:]
)

const (
	strictRules = "version: 1\nrules:\n  - {id: step, metric: unit.time.p50, level: error, regress: {rel: 3%, abs: 10us}}\n"
	laxRules    = "version: 1\nrules:\n  - {id: step, metric: unit.time.p50, level: error, regress: {rel: 50%}}\n"
)

// at is a file of the repository at a commit or branch.
func at(path, ref, text string) gatetest.File { return gatetest.File{Path: path, Ref: ref, Text: text} }

// labelled is pull request 7 with a label that was set at a time.
func labelled(by, at string) func(*gatetest.Scenario) {
	return func(sc *gatetest.Scenario) {
		sc.Pulls[0].Labels = []gatetest.Label{{Name: "perf:accept", By: by, At: at}}
	}
}

// label sets the label now, on the pull request as it stands.
func (b *bench) label(by, at string) {
	b.server.Change(func(sc *gatetest.Scenario) {
		labelled(by, at)(sc)
		sc.Now = "2026-06-01T00:00:00Z"
	})
}

// measured is a main whose run 500 left a report in an artifact of that name.
func (b *bench) measured(name, branch string) func(*gatetest.Scenario) {
	return func(sc *gatetest.Scenario) {
		sc.Commits = []gatetest.Commit{{SHA: gatetest.BaseSHA}, {SHA: gatetest.HeadSHA, Parent: gatetest.BaseSHA}}
		sc.Branches = map[string]string{"main": gatetest.BaseSHA}
		sc.Runs = []gatetest.Run{{ID: 500, HeadSHA: gatetest.BaseSHA, HeadBranch: branch}}
		sc.Artifacts = []gatetest.Artifact{{ID: 5, Name: name, RunID: 500, Files: map[string]string{"base/report.json": string(b.reports["base"])}}}
	}
}

// forked is a finished run of a fork with files in its artifact; none: it left none.
func forked(files map[string]string) func(*gatetest.Scenario) {
	return func(sc *gatetest.Scenario) {
		sc.Pulls = []gatetest.Pull{{Number: 7, HeadSHA: gatetest.HeadSHA, HeadRef: "patch-1", HeadRepo: "mallory/llm", HeadRepoID: 2, BaseSHA: gatetest.BaseSHA}}
		sc.Runs = []gatetest.Run{{ID: 900, Event: "pull_request", HeadSHA: gatetest.HeadSHA, HeadBranch: "patch-1", HeadRepoID: 2}}
		if files != nil {
			sc.Artifacts = []gatetest.Artifact{{ID: 5, Name: "explain-reports", RunID: 900, Files: files}}
		}
	}
}

// pair is what measuring leaves of both sides.
func (b *bench) pair(base, head string) map[string]string {
	return map[string]string{"base/1-base/report.json": string(b.reports[base]), "head/1-head/report.json": string(b.reports[head])}
}

var noFiles = map[string]string{"baseline": "", "candidate": ""}
