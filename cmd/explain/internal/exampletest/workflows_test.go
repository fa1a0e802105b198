package exampletest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
	"github.com/nsys-llm/explain/gate/gatetest"
)

// TestWorkflows runs the workflows of examples/ and of the README from end to end: act runs them without Docker, this
// checkout is the action, and package gatetest is GitHub. nsys is a script that "captures" the trace.sqlite of the commit that is
// checked out, so that base and head differ as the commits do. It runs where EXPLAIN_ACT names the program; .ci/e2e installs
// it and counts the scenarios.
func TestWorkflows(t *testing.T) {
	act := os.Getenv("EXPLAIN_ACT")
	if act == "" {
		t.Skip("EXPLAIN_ACT names no act: .ci/e2e installs it")
	}
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	serving := explaintest.Read(t, "../../../../testdata/serving.sqlite")
	slow := explaintest.Edited(t)["slow.sqlite"]
	l := &lab{act: act, root: root, tools: t.TempDir(), base: serving, slow: slow}
	l.stubs(t)
	slots := make(chan struct{}, runtime.NumCPU())
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			s.run(&bench{T: t, lab: l, dir: t.TempDir()})
		})
	}
}

// lab is what all scenarios share.
type lab struct {
	act, root  string
	action     string // folder of the action: its definition, and the program in place of the source
	tools      string // programs in front of PATH, and fakes for actions of others
	base, slow []byte // traces

	program string            // explain
	reports map[string][]byte // of traces, by name
	step    actionStep        // of the action, which runs the program
	inputs  map[string]string // of the action, with their defaults

	cost struct { // of the action's runs, in CPU time of the program and of what it runs
		sync.Mutex
		runs      int
		all, most time.Duration
	}
}

// stubs writes what stands in for GPUs, for the network and for the actions of others. go is a script as well, that hands out
// what was built once, since a link for each scenario would take most of the time; one scenario builds for real.
func (l *lab) stubs(t *testing.T) {
	t.Helper()
	built := explaintest.Program(t)
	l.action = filepath.Join(l.tools, "action") // act copies it for each step: without the tests that is faster
	for _, name := range []string{"action.yml", ".explain-releases", "go.mod"} {
		explaintest.Put(t, filepath.Join(l.action, name), explaintest.Read(t, filepath.Join(l.root, name)), 0o644)
	}
	explaintest.Put(t, filepath.Join(l.tools, "nothing.sqlite"), explaintest.Read(t, explaintest.Testdata("base.sqlite")), 0o644)
	for name, script := range map[string]string{
		// As nsys 2022 to 2024 do: no folder is made, what is there is not replaced unless asked, and what could not be written where it
		// should lies elsewhere, with exit 0.
		"bin/nsys": `case "$1" in
--version) echo "NVIDIA Nsight Systems version 2024.5.1.113-245134619542v0" ;;
*) [ "${2:-}" != --help ] || { echo "  --help"; exit 0; } ;;
esac
case "$1" in
profile)
  command="${!#}" force=false to=""
  while [ $# -gt 0 ]; do
    case "$1" in
    --force-overwrite=true | -f=true) force=true ;;
    --force-overwrite | -f) force="$2" ;;
    -o) to="$2.nsys-rep" ;;
    --output=*) to="${1#--output=}.nsys-rep" ;;
    esac
    shift
  done
  [ "$command" != false ] || exit 1
  from=trace.sqlite
  case "$command" in "cd base "*) from=base/trace.sqlite ;; "cd head "*) from=head/trace.sqlite ;; esac
  [ "$command" != true ] || { cp "${0%/*}/../nothing.sqlite" "$to"; exit 0; } # the doctor's
  if [ ! -d "$(dirname "$to")" ]; then
    echo "Failed to create '$to': No such file or directory." >&2
    cp "$from" "$(mktemp -d)/nsys-report.nsys-rep"
    exit 0
  fi
  if [ -e "$to" ] && [ "$force" != true ]; then
    echo "$to already exists, use --force-overwrite to overwrite" >&2
    exit 1
  fi
  n=$(($(cat "$E2E_COUNT" 2>/dev/null || echo 0) + 1))
  echo "$n" > "$E2E_COUNT"
  cp "$from" "$to"
  E2E_SESSION="$to" E2E_SESSION_LATER="$n" "$E2E_PROGRAM" ;;
export)
  report="${!#}"
  while [ $# -gt 1 ]; do
    case "$1" in --output) to="$2" ;; --output=*) to="${1#--output=}" ;; esac
    shift
  done
  cp "$report" "$to" ;;
esac`,
		"bin/go": `while [ "$1" != -o ]; do shift; done; cp "` + filepath.Join(l.tools, "logged") + `" "$2"`,
		// act loses the last lines of a short step now and then: what explain says is kept in a file as well.
		"logged": `code=0; "` + built + `" "$@" > "$RUNNER_TEMP/said" 2>&1 || code=$?
cat "$RUNNER_TEMP/said"; cat "$RUNNER_TEMP/said" >> "$E2E_LOG"; exit $code`,
	} {
		explaintest.Put(t, filepath.Join(l.tools, name), []byte("#!/usr/bin/env bash\nset -eu\n"+script+"\n"), 0o755)
	}
	action := func(name, inputs, script string) {
		explaintest.Put(t, filepath.Join(l.tools, name, "action.yml"), []byte("name: "+name+"\ndescription: stands in\ninputs: {"+inputs+"}\nruns:\n  using: composite\n  steps:\n    - shell: bash\n      env: {NAME: \"${{ inputs.name }}\", FROM: \"${{ inputs.path }}\", PATTERN: \"${{ inputs.pattern }}\", REPOSITORY: \"${{ inputs.repository }}\", MERGED: \"${{ inputs.merge-multiple }}\"}\n      run: |\n        set -eu\n        "+strings.ReplaceAll(script, "\n", "\n        ")+"\n"), 0o644)
	}
	action("checkout", "fetch-depth: {default: 1}, ref: {default: ''}, path: {default: ''}, persist-credentials: {default: true}, name: {default: ''}, pattern: {default: ''}, repository: {default: ''}, submodules: {default: false}, lfs: {default: false}",
		`[ -n "$FROM" ] || exit 0
rm -rf "$FROM"
if [ "$REPOSITORY" = nsys-llm/explain ]; then cp -r "$E2E_ACTION" "$FROM"; else git clone -q . "$FROM"; fi`)
	action("setup-go", "go-version: {default: ''}, cache: {default: true}, name: {default: ''}, path: {default: ''}, pattern: {default: ''}", "true")
	action("upload-artifact", "name: {default: ''}, path: {default: ''}, pattern: {default: ''}, retention-days: {default: 1}, overwrite: {default: false}", `shopt -s globstar nullglob
to="$E2E_ARTIFACTS/$NAME"
root="${FROM%%[*]*}" root="${root%/*}"
if [ -d "$FROM" ]; then mkdir -p "$to"; cp -r "$FROM"/. "$to/"; exit 0; fi
if [ -f "$FROM" ]; then mkdir -p "$to"; cp "$FROM" "$to/"; exit 0; fi
for f in $FROM; do
  rel="${f#"$root"/}"
  mkdir -p "$to/$(dirname "$rel")"
  cp "$f" "$to/$rel"
done
[ -d "$to" ]`)
	action("download-artifact", "name: {default: ''}, path: {default: '.'}, pattern: {default: ''}, merge-multiple: {default: false}", `mkdir -p "$FROM"
if [ -n "$NAME" ]; then cp -r "$E2E_ARTIFACTS/$NAME"/. "$FROM/"; elif [ "$MERGED" = true ]; then for a in "$E2E_ARTIFACTS"/$PATTERN; do cp -r "$a"/. "$FROM/"; done; else cp -r "$E2E_ARTIFACTS"/$PATTERN "$FROM/"; fi`)
}

// bench is one scenario at work: a repository of a user, a GitHub, and a place for artifacts.
type bench struct {
	*testing.T
	*lab
	dir    string
	server *gatetest.Server
	url    string
	runs   int
	build  bool   // by the real go, from the action's own source
	path   string // PATH of the runner; empty: that of the tests behind the stand-ins
	secret string // EXPLAIN_MANIFEST
	kept   string // folder of workspaces that jobs keep for those after them; empty: each begins with an empty one

	prefix      string // of the API's paths
	outputs     string // of the last step
	summaryFile string // of the last step
}

// github begins a GitHub with pull request 7, and what a scenario adds.
func (b *bench) github(add func(*gatetest.Scenario)) {
	sc := gatetest.Scenario{
		Token: "ghs_e2e_token",
		Pulls: []gatetest.Pull{{Number: 7, HeadSHA: gatetest.HeadSHA, HeadRef: "feature", BaseSHA: gatetest.BaseSHA}},
	}
	if add != nil {
		add(&sc)
	}
	b.server = gatetest.New(sc)
	listener := httptest.NewServer(b.server)
	b.Cleanup(listener.Close)
	b.url = listener.URL
}

// repository makes the user's repository: a base commit with one trace, on it a commit with another, and a workflow.
func (b *bench) repository(workflow string, base, head []byte, files map[string]string) {
	repo := filepath.Join(b.dir, "repo")
	if err := os.RemoveAll(repo); err != nil {
		b.Fatal(err)
	}
	git := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "init.defaultBranch=main"}, args...)...)
		cmd.Dir = repo
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	// A reusable workflow of another repository would be cloned from GitHub: it lies beside its caller instead.
	const called = "nsys-llm/explain/.github/workflows/gate.yml@v1"
	if strings.Contains(workflow, called) {
		workflow = strings.ReplaceAll(workflow, called, "./.github/workflows/reusable.yml")
		reusable := string(explaintest.Read(b.T, filepath.Join(b.root, ".github/workflows/gate.yml")))
		explaintest.Put(b.T, filepath.Join(repo, ".github/workflows/reusable.yml"), []byte(b.keeping(reusable)), 0o644)
	}
	workflow = b.keeping(workflow)
	explaintest.Put(b.T, filepath.Join(repo, ".github/workflows/gate.yml"), []byte(workflow), 0o644)
	explaintest.Put(b.T, filepath.Join(repo, "trace.sqlite"), base, 0o644)
	for name, text := range files {
		explaintest.Put(b.T, filepath.Join(repo, name), []byte(text), 0o644)
	}
	git("init", "-q")
	git("remote", "add", "origin", "https://github.com/octo/llm.git")
	git("add", "-A")
	git("commit", "-qm", "base")
	explaintest.Put(b.T, filepath.Join(repo, "trace.sqlite"), head, 0o644)
	git("add", "-A")
	git("commit", "-qm", "head", "--allow-empty")
}

// events that a workflow run begins with.
var (
	forkEvent = strings.Replace(strings.Replace(gatetest.PullEvent, `{"id": 1, "full_name": "octo/llm"}`, `{"id": 2, "full_name": "mallory/llm"}`, 1), "feature", "patch-1", 1)
	pushEvent = `{"ref": "refs/heads/main", "before": "` + strings.Repeat("0", 40) + `", "after": "` + gatetest.BaseSHA + `", "repository": {"id": 1, "full_name": "octo/llm"}}`
	doneEvent = `{"action": "completed", "workflow_run": {"id": 900, "run_attempt": 1, "event": "pull_request", "conclusion": "failure", "head_sha": "` + gatetest.HeadSHA + `",
		"head_branch": "patch-1", "head_repository": {"id": 2, "full_name": "mallory/llm"}, "pull_requests": []}, "repository": {"id": 1, "full_name": "octo/llm"}}`
)

// run runs the workflow for an event, and returns whether it succeeded and what explain printed.
func (b *bench) run(event, payload string) (ok bool, said string) {
	b.Helper()
	b.runs++
	path := filepath.Join(b.dir, "event.json")
	explaintest.Put(b.T, path, []byte(payload), 0o644)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // a loaded machine builds for minutes
	defer cancel()
	file := filepath.Join(b.dir, fmt.Sprintf("said%d", b.runs))
	explaintest.Put(b.T, file, nil, 0o644)
	action, path0 := b.action, filepath.Join(b.tools, "bin")
	if b.build {
		action, path0 = b.root, b.nsysOnly()
	}
	cmd := exec.CommandContext(ctx, b.act, event, "-e", path, "-P", "self-hosted=-self-hosted", "-P", "ubuntu-latest=-self-hosted",
		"--no-cache-server", "--artifact-server-addr", "127.0.0.1", "--cache-server-addr", "127.0.0.1", "--action-cache-path", filepath.Join(b.dir, "act"),
		"--env", "GITHUB_API_URL="+b.url, "--env", fmt.Sprintf("GITHUB_RUN_ID=%d", 1000+b.runs), "--env", "GITHUB_WORKFLOW_REF=octo/llm/.github/workflows/gate.yml@refs/heads/main", "-s", "GITHUB_TOKEN=ghs_e2e_token", "-s", "EXPLAIN_MANIFEST="+b.secret,
		"--env", "E2E_ARTIFACTS="+b.artifacts(), "--env", "E2E_LOG="+file, "--env", "E2E_ACTION="+action, "--env", "E2E_PROGRAM="+os.Args[0], "--env", "E2E_COUNT="+filepath.Join(b.dir, "captured"),
		"--env", "E2E_KEPT="+b.kept, "--local-repository", "nsys-llm/explain@v1="+action)
	for uses, name := range b.actionsUsed() {
		cmd.Args = append(cmd.Args, "--local-repository", uses+"="+filepath.Join(b.tools, name))
	}
	cmd.Dir = filepath.Join(b.dir, "repo")
	cmd.Env = append(os.Environ(), "PATH="+cmp.Or(b.path, path0+string(os.PathListSeparator)+os.Getenv("PATH")), "NO_COLOR=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if ctx.Err() != nil {
		b.Fatalf("act took too long:\n%s", out.String())
	}
	if strings.Contains(strings.ReplaceAll(out.String(), "::add-mask::", ""), "ghs_e2e_token") {
		b.Errorf("the log holds the token")
	}
	b.Cleanup(func() {
		if b.Failed() {
			b.Logf("act %s (%v):\n%s\n%s", event, err, out.String(), b.server.Transcript())
		}
	})
	return err == nil, string(explaintest.Read(b.T, file))
}

// actionsUsed are the actions of others that our workflows use, as they are pinned, with the stand-in for each.
func (b *bench) actionsUsed() map[string]string {
	files, err := filepath.Glob(filepath.Join(b.root, "examples/github/*.yml"))
	if err != nil {
		b.Fatal(err)
	}
	used := map[string]string{}
	for _, f := range append(files, filepath.Join(b.root, ".github/workflows/gate.yml")) {
		for _, m := range regexp.MustCompile(`uses: (actions/([a-z-]+)@[0-9a-z]+)`).FindAllStringSubmatch(string(explaintest.Read(b.T, f)), -1) {
			used[m[1]] = m[2]
		}
	}
	return used
}

// nsysOnly is a folder of programs with nsys and without go.
func (b *bench) nsysOnly() string {
	dir := filepath.Join(b.dir, "bin")
	explaintest.Put(b.T, filepath.Join(dir, "nsys"), explaintest.Read(b.T, filepath.Join(b.tools, "bin/nsys")), 0o755)
	explaintest.Put(b.T, filepath.Join(b.dir, "nothing.sqlite"), b.base, 0o644) // what it records for the doctor
	return dir
}

func (b *bench) artifacts() string { return filepath.Join(b.dir, "artifacts") }

// comments are the texts of the comments on the pull request that our token wrote.
func (b *bench) comments() []string {
	var list []string
	for _, c := range b.server.Comments() {
		if c.Author.Login == "github-actions[bot]" {
			list = append(list, c.Body)
		}
	}
	return list
}

// one is the only comment.
func (b *bench) one() string {
	b.Helper()
	list := b.comments()
	if len(list) != 1 {
		b.Fatalf("%d comments, want one", len(list))
	}
	return list[0]
}

func (b *bench) want(text string, patterns ...string) {
	b.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile("(?m)" + p).MatchString(text) {
			b.Errorf("no %q in:\n%s", p, text)
		}
	}
}

// artifact is what a run uploaded, as GitHub keeps it.
func (b *bench) artifact(id, run int64, name string) gatetest.Artifact {
	b.Helper()
	a := gatetest.Artifact{ID: id, Name: name, RunID: run, Files: map[string]string{}}
	dir := filepath.Join(b.artifacts(), name)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		a.Files[filepath.ToSlash(rel)] = string(explaintest.Read(b.T, path))
		return err
	})
	if err != nil || len(a.Files) == 0 {
		b.Fatalf("artifact %s: %v", name, err)
	}
	return a
}

// marker of a comment, as explain writes it.
func marker(key, head string, run int) string {
	return fmt.Sprintf("<!-- explain:v1:key=%s head=%s run=%d attempt=1 -->", key, head, run)
}

// example is a workflow of examples/github.
func (b *bench) example(name string) string {
	b.Helper()
	return string(explaintest.Read(b.T, filepath.Join(b.root, "examples/github", name)))
}

// answer makes a request of a method and path fail once, or times.
func answer(method, path string, status, times int, header map[string]string, body string) gatetest.Step {
	return gatetest.Step{Method: method, Path: path, Status: status, Times: times, Header: header, Body: body}
}

// quoted is a JSON message of GitHub's.
func quoted(message string) string {
	b, err := json.Marshal(map[string]string{"message": message})
	if err != nil {
		panic(err) // a map of strings has a form in JSON
	}
	return string(b)
}
