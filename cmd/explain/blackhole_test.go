//go:build linux

package main

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// TestBlackHoles: each of those that explain waits for takes what it is given and never answers. Every command ends, with the exit
// code of a tool that failed, and names the flag, the variable or the part of an address that allows more time.
func TestBlackHoles(t *testing.T) {
	t.Parallel()
	hole, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hole.Close() })
	at := hole.Addr().String()
	store := "postgres://me@" + at + "/x?sslmode=disable&connect_timeout=1"
	const limit = "EXPLAIN_TIMEOUT="
	wait := limit + "3s" // the stand-ins of nsys need some of it to begin
	program := []string{"--no-report", "--out", "out", "--", "true"}
	window := []string{"capture", "--no-report", "--out", "out", "--ready", "flag", "--duration", "100ms", "--grace", "1s", "--", "sh", "-c", "touch flag; sleep 60"}
	capture := func(args ...string) []string { return append(append([]string{"capture"}, args...), program...) }
	gate := []string{"gate", "--base", "base.sqlite", "--head", "base.sqlite", "--policy", "policy.yml", "--policy-ref", "main"}
	for _, x := range longtest.Some([]struct {
		name string
		args []string
		env  []string
		code int // 0: of a tool that failed
		says []string
	}{
		{name: "a database that is read", args: []string{"history", "list", "--store", store}, says: []string{"connect_timeout="}},
		{name: "a database that is written", args: []string{"history", "add", "base.sqlite", "--store", store, "--commit", strings.Repeat("a", 40)}, says: []string{"connect_timeout="}},
		{name: "a server of files", args: []string{"partial", "http://" + at + "/x.sqlite", "--out", "p.json"}, env: []string{wait}, says: []string{limit}},
		{name: "a server under load", args: []string{"load", "--url", "http://" + at, "--model", "m", "--num-requests", "1", "--health-timeout", "1s", "--timeout", "1s"}, says: []string{"--health-timeout"}},
		{name: "a program that is to be ready", args: append([]string{"capture", "--ready", "http://" + at, "--ready-timeout", "1s", "--duration", "1s", "--grace", "200ms", "--no-report", "--out", "out", "--"}, "sleep", "60"), says: []string{"--ready-timeout"}},
		{name: "nsys export of a report", args: []string{"report", "x.nsys-rep"}, env: []string{wait, "NSYS=hole"}, says: []string{"nsys export", limit}},
		{name: "nsys --version", args: capture("--nsys", "hole"), env: []string{wait}, says: []string{limit}},
		{name: "nsys export of a capture", args: capture(), env: []string{wait, "NSYS_STANDIN=fault=export_hang"}, says: []string{"nsys-export", limit, "out.failed"}},
		{name: "nsys start", args: window, env: []string{wait, "NSYS_STANDIN=fault=start_hang"}, says: []string{"nsys-start", limit}},
		{name: "nsys stop", args: window, env: []string{wait, "NSYS_STANDIN=fault=stop_hang"}, says: []string{"nsys-stop", limit}},
		{name: "the importer", args: capture(), env: []string{wait, "NSYS_STANDIN=fault=importer_hang"}, says: []string{"importer", limit, "out.failed"}},
		{name: "GitHub", args: []string{"gate", "comment", "comparison.json"}, env: []string{limit + "1s", "GITHUB_TOKEN=t", "GITHUB_API_URL=http://" + at, "GITHUB_ACTIONS=true",
			"GITHUB_REPOSITORY=o/r", "GITHUB_EVENT_NAME=pull_request", "GITHUB_EVENT_PATH=event.json", "GITHUB_RUN_ID=1", "GITHUB_RUN_ATTEMPT=1", "GITHUB_WORKFLOW_REF=o/r/.github/workflows/gate.yml@refs/heads/main", "GITHUB_SHA=" + strings.Repeat("a", 40)}, code: exitInconclusive, says: []string{limit}},
		{name: "git of a gate", args: gate, env: []string{wait, "PATH=bin:" + os.Getenv("PATH")}, code: exitInconclusive, says: []string{"git show-ref", limit}},
		{name: "git of a bisection", args: []string{"bisect", "--checkout", ".", "--good", "a", "--bad", "b", "--", "true"}, env: []string{wait, "PATH=bin:" + os.Getenv("PATH")}, says: []string{"git rev-parse", limit}},
	}, 3) {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range map[string]string{"base.sqlite": string(read(t, "../../testdata/base.sqlite")), "x.nsys-rep": "report", "policy.yml": "version: 1\n",
				"event.json": `{"pull_request":{"number":7,"head":{"sha":"` + strings.Repeat("a", 40) + `"},"base":{"sha":"` + strings.Repeat("b", 40) + `"}}}`} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Mkdir(filepath.Join(dir, ".git"), 0o700); err != nil { // a checkout
				t.Fatal(err)
			}
			for _, name := range []string{"hole", "bin/git"} { // a child of it holds the pipe
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				script := "#!/bin/sh\nsleep 300 &\necho $! >>'" + dir + "/asleep'\nwait\n"
				if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			t.Cleanup(func() { // a grandchild of explain, which it does not know
				asleep, _ := os.ReadFile(filepath.Join(dir, "asleep"))
				for _, text := range strings.Fields(string(asleep)) {
					if pid, err := strconv.Atoi(text); err == nil {
						_ = syscall.Kill(pid, syscall.SIGKILL)
					}
				}
			})
			for i, e := range x.env {
				x.env[i] = strings.NewReplacer("=hole", "="+dir+"/hole", "=bin:", "="+dir+"/bin:").Replace(e)
			}
			args := append([]string{}, x.args...)
			for i, a := range args {
				if a == "hole" {
					args[i] = filepath.Join(dir, a)
				}
			}
			if x.name == "GitHub" {
				if _, said := runHere(t, "diff", "../../testdata/base.sqlite", "../../testdata/base.sqlite", "--out", filepath.Join(dir, "d")); said == "" {
					t.Fatal("no comparison")
				}
				args[2] = filepath.Join(dir, "d", "comparison.json")
			}
			c := explaintest.Process(t, dir, x.env, args...)
			c.WaitDelay = 10 * time.Second
			watchdog := time.AfterFunc(3*time.Minute, func() { _ = c.Process.Kill() })
			defer watchdog.Stop()
			text, err := c.CombinedOutput()
			want := x.code
			if want == 0 {
				want = exitInput
			}
			if code := explaintest.Exit(t, err); code != want {
				t.Errorf("exit code %d, want %d", code, want)
			}
			for _, s := range x.says {
				if !strings.Contains(string(text), s) {
					t.Errorf("does not say %q:\n%s", s, text)
				}
			}
		})
	}
}
