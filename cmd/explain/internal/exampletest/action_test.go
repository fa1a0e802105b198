package exampletest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/nsys-llm/explain/cmd/explain/internal/docs"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// actionFile is the part of action.yml that tests look at.
type actionFile struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Inputs      map[string]struct {
		Description string  `yaml:"description"`
		Default     *string `yaml:"default"`
		Required    bool    `yaml:"required"`
	} `yaml:"inputs"`
	Outputs map[string]struct {
		Description string `yaml:"description"`
		Value       string `yaml:"value"`
	} `yaml:"outputs"`
	Runs struct {
		Using string       `yaml:"using"`
		Steps []actionStep `yaml:"steps"`
	} `yaml:"runs"`
}

type actionStep struct {
	ID               string            `yaml:"id"`
	Name             string            `yaml:"name"`
	Uses             string            `yaml:"uses"`
	Shell            string            `yaml:"shell"`
	Run              string            `yaml:"run"`
	WorkingDirectory string            `yaml:"working-directory"`
	Env              map[string]string `yaml:"env"`
}

func readAction(t *testing.T) actionFile {
	t.Helper()
	var a actionFile
	if err := yaml.Unmarshal(explaintest.Read(t, "../../../../action.yml"), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestActionIsSafe lints action.yml: actionlint does not. A value that is pasted into a script can be a script; through the
// environment it is text. Actions of others inside it would be code that nobody here has read.
func TestActionIsSafe(t *testing.T) {
	a := readAction(t)
	if a.Runs.Using != "composite" || len(a.Runs.Steps) == 0 || a.Name == "" || a.Description == "" {
		t.Fatalf("not a composite action with steps: %+v", a.Runs)
	}
	input := regexp.MustCompile(`\$\{\{\s*inputs\.([a-z-]+)\s*\}\}`)
	used := map[string]bool{}
	for _, s := range a.Runs.Steps {
		if s.Uses != "" {
			t.Errorf("step %s uses %s", s.ID, s.Uses)
		}
		if s.Shell != "bash" || s.ID == "" || s.Name == "" {
			t.Errorf("step %q: shell %q, name %q", s.ID, s.Shell, s.Name)
		}
		if strings.Contains(s.Run, "${{") {
			t.Errorf("step %s pastes an expression into its script", s.ID)
		}
		if !strings.HasPrefix(s.Run, "set -euo pipefail\n") {
			t.Errorf("step %s goes on after an error", s.ID)
		}
		for name, value := range s.Env {
			if !regexp.MustCompile(`\b`+name+`\b`).MatchString(s.Run) && name != "GITHUB_TOKEN" && name != "EXPLAIN_MATRIX" && name != "INPUTS" {
				t.Errorf("step %s sets %s and does not use it", s.ID, name)
			}
			if value == "${{ toJSON(inputs) }}" { // TestActionReadsEveryInput
				for in := range a.Inputs {
					used[in] = true
				}
			}
			for _, m := range input.FindAllStringSubmatch(value, -1) {
				used[m[1]] = true
			}
		}
		for _, m := range input.FindAllStringSubmatch(s.WorkingDirectory, -1) {
			used[m[1]] = true
		}
	}
	kebab := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	for name, in := range a.Inputs {
		if !used[name] || in.Description == "" || in.Default == nil || !kebab.MatchString(name) {
			t.Errorf("input %s: used %t, described %q, default given %t", name, used[name], in.Description, in.Default != nil)
		}
		delete(used, name)
	}
	for name := range used {
		t.Errorf("%s is used and no input", name)
	}
	for name, out := range a.Outputs {
		step := map[bool]string{true: "install", false: "explain"}[name == "program"]
		if out.Description == "" || out.Value != "${{ steps."+step+".outputs."+name+" }}" || !kebab.MatchString(name) {
			t.Errorf("output %s: %+v", name, out)
		}
	}
}

// TestActionScriptsAreSound: shellcheck finds nothing to say, where it is installed.
func TestActionScriptsAreSound(t *testing.T) {
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Skip("no shellcheck")
	}
	for _, s := range readAction(t).Runs.Steps {
		path := filepath.Join(t.TempDir(), s.ID+".sh")
		explaintest.Put(t, path, []byte("#!/usr/bin/env bash\n"+s.Run), 0o644)
		if out, err := exec.Command("shellcheck", path).CombinedOutput(); err != nil {
			t.Errorf("%s", out)
		}
	}
	if out, err := exec.Command("shellcheck", "-x", "-P", "../../../../.ci", "../../../../.ci/run", "../../../../.ci/e2e", "../../../../.ci/release", "../../../../.ci/install.sh", "../../../../.ci/tools.sh").CombinedOutput(); err != nil {
		t.Errorf("%s", out)
	}
}

// TestPageListsTheAction: the tables of the page on the gate are action.yml's inputs and outputs, in words and in order of
// the file.
func TestPageListsTheAction(t *testing.T) {
	a := readAction(t)
	gate, _ := docs.ByName("gate")
	page := gate.Text
	for _, row := range actionRows(t, a) {
		if !strings.Contains(page, row+"\n") {
			t.Errorf("the page lacks the row\n%s", row)
		}
	}
	listed := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| ").FindAllStringSubmatch(actionTables(page), -1)
	if len(listed) != len(a.Inputs)+len(a.Outputs) {
		t.Errorf("the page lists %d inputs and outputs, action.yml has %d", len(listed), len(a.Inputs)+len(a.Outputs))
	}
}

// actionTables is the part of the page that lists inputs and outputs.
func actionTables(page string) string {
	_, page, _ = strings.Cut(page, "## Inputs\n")
	return page
}

// actionRows are the rows of the page's tables.
func actionRows(t *testing.T, a actionFile) []string {
	t.Helper()
	var rows []string
	for name, in := range a.Inputs {
		value := ""
		if *in.Default != "" {
			value = "`" + *in.Default + "`"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |", name, value, in.Description))
	}
	for name, out := range a.Outputs {
		rows = append(rows, fmt.Sprintf("| `%s` | %s |", name, out.Description))
	}
	slices.Sort(rows)
	return rows
}

// TestActionInstalls: a release is used where its checksum is the one that the action holds, and nothing of it is run
// otherwise; without a release there must be Go, and an error says so.
func TestActionInstalls(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("downloads a file for linux")
	}
	for _, tool := range []string{"bash", "curl", "sha256sum"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("no " + tool)
		}
	}
	const release = "#!/bin/sh\necho released\n" // sha256sum of it:
	const sum = "4da189d90e07cff2e187998d545d201d8cb7fe95efac557c72f1b545b7b2c9b9"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v9.9.9/explain_v9.9.9_linux_"+runtime.GOARCH && r.URL.Path != "/v9.9.9/explain_v9.9.9_windows_amd64.exe" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, release)
	}))
	defer server.Close()
	step := readAction(t).Runs.Steps[0]
	install := func(releases string, env ...string) (program, out string, err error) {
		dir := t.TempDir()
		explaintest.Put(t, filepath.Join(dir, "source/.explain-releases"), []byte(releases), 0o644)
		explaintest.Put(t, filepath.Join(dir, "source/go.mod"), explaintest.Read(t, "../../../../go.mod"), 0o644)
		explaintest.Put(t, filepath.Join(dir, "out.txt"), nil, 0o644)
		cmd := exec.Command("bash", "-c", step.Run)
		cmd.Dir = dir
		cmd.Env = append([]string{"PATH=" + pathWithout(t, "go"), "BINARY=", "VERSION=", "FOLDER=.", "HOME=" + dir, "SOURCE=" + filepath.Join(dir, "source"), "RUNNER_TEMP=" + dir, "GITHUB_OUTPUT=" + filepath.Join(dir, "out.txt"), "RELEASE_URL=" + server.URL}, env...)
		b, err := cmd.CombinedOutput()
		_, program, _ = strings.Cut(strings.TrimSpace(string(explaintest.Read(t, filepath.Join(dir, "out.txt")))), "program=")
		return program, string(b), err
	}
	line := func(version, sum string) string {
		return "# comment\n" + version + " windows amd64 0000\n" + version + " linux " + runtime.GOARCH + " " + sum + "\n"
	}
	program, out, err := install(line("v9.9.9", sum))
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if said, err := exec.Command(program).Output(); err != nil || string(said) != "released\n" {
		t.Errorf("%v: %q", err, said)
	}
	program, out, err = install(line("v9.9.9", strings.Repeat("0", 64)))
	if _, stat := os.Stat(program); err == nil || stat == nil || !strings.Contains(out, "does not have the checksum") {
		t.Errorf("a release with another checksum: %v: %s", err, out)
	}
	for name, releases := range map[string]string{"none": "# none\n", "gone": line("v1.0.0", sum)} {
		if _, out, err = install(releases); err == nil || !strings.Contains(out, "run actions/setup-go with go-version 1.26 or newer before this action") {
			t.Errorf("%s: no release and no Go: %v: %s", name, err, out)
		}
	}
	if _, out, err = install("# none\n", "VERSION=v9.9.9"); err == nil || !strings.Contains(out, "holds no checksum of the release") {
		t.Errorf("a version that is not known: %v: %s", err, out)
	}
	if program, out, err = install("# none\n", "BINARY=bash"); err != nil || !strings.HasSuffix(program, "/bash") {
		t.Errorf("%q, %v: %s", program, err, out)
	}
	if _, out, _ = install(line("v1.0.0", sum)); !strings.Contains(out, "::warning title=explain::explain v1.0.0 could not be downloaded") {
		t.Errorf("a mirror that lacks the release: %s", out)
	}
	fake := func(name, script string) string { // a program in front of PATH
		dir := t.TempDir()
		explaintest.Put(t, filepath.Join(dir, name), []byte("#!/bin/bash\n"+script), 0o755)
		return "PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH")
	}
	old := fake("go", `case "$1" in env) echo go1.22.1 ;; *) echo "go.mod requires go >= 1.26.0" >&2; exit 1 ;; esac`)
	if _, out, err = install("# none\n", old); err == nil || !strings.Contains(out, "by go1.22.1: it needs Go 1.26 or newer") {
		t.Errorf("a Go that is too old: %v: %s", err, out)
	}
	homeless := fake("go", `[ -d "$HOME" ] || exit 9; printf '%s\n' "$@" > "$RUNNER_TEMP/args"`)
	if _, out, err = install("# none\n", homeless, "HOME="); err != nil {
		t.Errorf("no home: %v: %s", err, out)
	}
	windows := fake("uname", `case "$1" in -s) echo MINGW64_NT-10.0 ;; *) echo x86_64 ;; esac`)
	if program, out, err = install("v9.9.9 windows amd64 "+sum+"\n", windows); err != nil || !strings.HasSuffix(program, "/explain.exe") {
		t.Errorf("%q on Windows: %v: %s", program, err, out)
	}
	sub := t.TempDir()
	explaintest.Put(t, filepath.Join(sub, "explain"), []byte("#!/bin/bash\n"), 0o755)
	if program, out, err = install("# none\n", "BINARY=./explain", "FOLDER="+sub); err != nil || filepath.Clean(program) != filepath.Join(sub, "explain") {
		t.Errorf("a path from working-directory: %q, %v: %s", program, err, out)
	}
	if _, out, err = install("# none\n", "BINARY=no-such-program"); err == nil || !strings.Contains(out, "names no program") {
		t.Errorf("%v: %s", err, out)
	}
}

// pathWithout is a folder with links to the programs that the script needs, and not to one of them.
func pathWithout(t *testing.T, leftOut string) string {
	t.Helper()
	dir := t.TempDir()
	for _, tool := range []string{"bash", "curl", "sha256sum", "uname", "tr", "mkdir", "grep", "rm", "chmod", "go"} {
		path, err := exec.LookPath(tool)
		if err != nil || tool == leftOut {
			continue
		}
		if err := os.Symlink(path, filepath.Join(dir, tool)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestReleasesAreChecksums holds .explain-releases to its format.
func TestReleasesAreChecksums(t *testing.T) {
	line := regexp.MustCompile(`^v\d+\.\d+\.\d+ (linux|darwin|windows) (amd64|arm64) [0-9a-f]{64}$`)
	for _, l := range strings.Split(strings.TrimSpace(string(explaintest.Read(t, "../../../../.explain-releases"))), "\n") {
		if !strings.HasPrefix(l, "#") && !line.MatchString(l) {
			t.Errorf("%q", l)
		}
	}
}

// readmeWorkflow is the workflow that the README tells newcomers to copy.
func readmeWorkflow(t *testing.T) string {
	t.Helper()
	_, block, found := strings.Cut(string(explaintest.Read(t, "../../../../README.md")), "```yaml\nname: Inference performance\n")
	block, _, closed := strings.Cut(block, "```")
	if !found || !closed {
		t.Fatal("the README has no workflow")
	}
	return "name: Inference performance\n" + block
}

// TestReadmeWorkflowIsShort: a newcomer copies at most 15 lines, and they are those of the example that runs.
func TestReadmeWorkflowIsShort(t *testing.T) {
	w := readmeWorkflow(t)
	if n := strings.Count(w, "\n"); n > 15 {
		t.Errorf("%d lines", n)
	}
	if w != string(explaintest.Read(t, "../../../../examples/github/same-runner.yml")) {
		t.Error("the README's workflow is not examples/github/same-runner.yml")
	}
	if gate, _ := docs.ByName("gate"); !strings.Contains(gate.Text, "```yaml\n"+w+"```") {
		t.Error("the workflow of the page on the gate is another one")
	}
}

// pinnedAction is an action of GitHub's own at one commit.
var pinnedAction = regexp.MustCompile(`^actions/[a-z-]+@[0-9a-f]{40}$`)

// callsExplain is a line of a script that runs explain, by its name or as a step before has installed it.
var callsExplain = regexp.MustCompile(`(?m)^\s*(explain|"?\$EXPLAIN"?) `)

// reusable are the inputs of the reusable workflow.
func reusable(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for name := range reusableInputs(t) {
		names[name] = true
	}
	return names
}

// workflowInput is an input of the reusable workflow.
type workflowInput struct {
	Description string      `yaml:"description"`
	Default     interface{} `yaml:"default"`
}

// TestPageListsTheWorkflow: the page on the gate has a row for each input of gate.yml that is not passed on to the action, in
// words and defaults of the file, and says how a runner is labelled.
func TestPageListsTheWorkflow(t *testing.T) {
	gate, _ := docs.ByName("gate")
	of, _, _ := strings.Cut(gate.Text, "## Inputs\n")
	_, of, _ = strings.Cut(of, "## Inputs of gate.yml\n")
	action := readAction(t)
	rows := 0
	for name, in := range reusableInputs(t) {
		if _, passed := action.Inputs[name]; passed && name != "command" && name != "working-directory" {
			continue
		}
		value := ""
		if text := fmt.Sprint(in.Default); in.Default != nil && text != "" {
			value = "`" + text + "`"
		}
		rows++
		if row := fmt.Sprintf("| `%s` | %s | %s |\n", name, value, in.Description); !strings.Contains(of, row) {
			t.Errorf("the page lacks the row\n%s", row)
		}
	}
	if listed := strings.Count(of, "\n| `"); listed != rows {
		t.Errorf("the page lists %d inputs, gate.yml has %d of its own", listed, rows)
	}
	if !strings.Contains(of, "`self-hosted` and `gpu`") {
		t.Error("the page does not say how to label a runner")
	}
}

func reusableInputs(t *testing.T) map[string]workflowInput {
	t.Helper()
	var w struct {
		On struct {
			Call struct {
				Inputs map[string]workflowInput `yaml:"inputs"`
			} `yaml:"workflow_call"`
		} `yaml:"on"`
	}
	if err := yaml.Unmarshal(explaintest.Read(t, "../../../../.github/workflows/gate.yml"), &w); err != nil || len(w.On.Call.Inputs) < 5 {
		t.Fatalf("%v: %v", w.On.Call.Inputs, err)
	}
	return w.On.Call.Inputs
}

// TestExampleWorkflows: their inputs are the action's, no expression of a stranger's text reaches a script, and nothing has
// more permissions than it needs.
func TestExampleWorkflows(t *testing.T) {
	a := readAction(t)
	files, err := filepath.Glob("../../../../examples/github/*.yml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%v, %v", files, err)
	}
	files = append(files, "../../../../.github/workflows/gate.yml")
	called := reusable(t)
	for _, file := range files {
		var w struct {
			Permissions map[string]string `yaml:"permissions"`
			Jobs        map[string]struct {
				Permissions map[string]string      `yaml:"permissions"`
				Uses        string                 `yaml:"uses"`
				With        map[string]interface{} `yaml:"with"`
				Timeout     interface{}            `yaml:"timeout-minutes"`
				Steps       []struct {
					Uses string            `yaml:"uses"`
					Run  string            `yaml:"run"`
					With map[string]string `yaml:"with"`
					Env  map[string]string `yaml:"env"`
				} `yaml:"steps"`
			} `yaml:"jobs"`
		}
		if err := yaml.Unmarshal(explaintest.Read(t, file), &w); err != nil {
			t.Fatal(err)
		}
		if w.Permissions == nil {
			t.Errorf("%s: permissions %v", file, w.Permissions)
		}
		for name, job := range w.Jobs {
			if p := job.Permissions["contents"] + w.Permissions["contents"]; p != "read" && p != "readread" {
				t.Errorf("%s: job %s may %s contents", file, name, p)
			}
			if job.Uses != "" {
				if job.Uses != "nsys-llm/explain/.github/workflows/gate.yml@v1" {
					t.Errorf("%s calls %s", file, job.Uses)
				}
				for in := range job.With {
					if !called[in] {
						t.Errorf("%s: the reusable workflow has no input %s", file, in)
					}
				}
				continue
			}
			if job.Timeout == nil {
				t.Errorf("%s: job %s has no time limit", file, name)
			}
			own, installed := 0, false
			for _, s := range job.Steps {
				if callsExplain.MatchString(s.Run) && (!installed || !strings.Contains(s.Env["EXPLAIN"], ".outputs.program }}")) {
					t.Errorf("%s: job %s calls explain, and no step before has installed it: %s", file, name, s.Run)
				}
				if strings.Contains(s.Run, "${{") {
					t.Errorf("%s: an expression in a script: %s", file, s.Run)
				}
				switch {
				case strings.HasPrefix(s.Uses, "nsys-llm/explain@"), s.Uses == "./.explain":
					installed = true
					if c := s.With["command"]; c != "doctor" && c != "install" {
						own++
					}
					for in := range s.With {
						if _, ok := a.Inputs[in]; !ok {
							t.Errorf("%s: the action has no input %s", file, in)
						}
					}
				case s.Uses != "" && !pinnedAction.MatchString(s.Uses):
					t.Errorf("%s uses %s", file, s.Uses)
				case strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["persist-credentials"] != "false":
					t.Errorf("%s: job %s leaves its token in the checkout", file, name)
				}
			}
			if own != 1 && filepath.Base(file) != "partials.yml" { // which has no gate
				t.Errorf("%s: job %s uses the action %d times", file, name, own)
			}
		}
	}
}
