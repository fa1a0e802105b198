package main

import (
	"net/http/httptest"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/nsys-llm/explain/gate/gatetest"
)

// gitHubKey is where a script keeps its *gitHubServer.
type gitHubKey struct{}

type gitHubServer struct{ *gatetest.Server }

// startGitHub makes what follows in a script a step of a workflow:
//
//	github SCENARIO.json EVENT [PAYLOAD.json]
//
// A server that behaves like GitHub's API begins with the scenario; in its artifacts and files the text "@FILE" stands for what a file of
// the script holds. Outputs go to out.txt and the step summary to sum.md, both emptied.
func startGitHub(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: github SCENARIO EVENT [PAYLOAD]")
	}
	sc, err := gatetest.ReadScenario(strings.NewReader(ts.ReadFile(args[0])))
	ts.Check(err)
	for _, a := range sc.Artifacts {
		for name, text := range a.Files {
			if file, ok := strings.CutPrefix(text, "@"); ok {
				a.Files[name] = ts.ReadFile(file)
			}
		}
	}
	for i := range sc.Files {
		if file, ok := strings.CutPrefix(sc.Files[i].Text, "@"); ok {
			sc.Files[i].Text = ts.ReadFile(file)
		}
	}
	server := gatetest.New(sc)
	listener := httptest.NewServer(server)
	ts.Defer(listener.Close)
	ts.Setenv("GITHUB_ACTIONS", "true")
	ts.Setenv("GITHUB_API_URL", listener.URL+sc.Prefix)
	ts.Setenv("GITHUB_SERVER_URL", "https://github.com")
	ts.Setenv("GITHUB_REPOSITORY", "octo/llm")
	ts.Setenv("GITHUB_WORKSPACE", ts.Getenv("WORK"))
	ts.Setenv("GITHUB_WORKFLOW", "performance")
	ts.Setenv("GITHUB_JOB", "gate")
	ts.Setenv("GITHUB_WORKFLOW_REF", "octo/llm/.github/workflows/gate.yml@refs/heads/main")
	ts.Setenv("GITHUB_RUN_ID", "1000")
	ts.Setenv("GITHUB_RUN_ATTEMPT", "1")
	ts.Setenv("GITHUB_TOKEN", "ghs_secret")
	ts.Setenv("GITHUB_EVENT_NAME", args[1])
	ts.Setenv("GITHUB_EVENT_PATH", "")
	if len(args) > 2 {
		ts.Setenv("GITHUB_EVENT_PATH", ts.MkAbs(args[2]))
	}
	for variable, name := range map[string]string{"GITHUB_OUTPUT": "out.txt", "GITHUB_STEP_SUMMARY": "sum.md"} {
		ts.Check(os.WriteFile(ts.MkAbs(name), nil, 0o644))
		ts.Setenv(variable, ts.MkAbs(name))
	}
	ts.Value(gitHubKey{}).(*gitHubServer).Server = server
}

func gitHub(ts *testscript.TestScript) *gatetest.Server {
	s := ts.Value(gitHubKey{}).(*gitHubServer).Server
	if s == nil {
		ts.Fatalf("no server: github SCENARIO EVENT comes first")
	}
	return s
}

// gitHubTranscript writes what was asked of the server to a file: transcript FILE.
func gitHubTranscript(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(gitHub(ts).Transcript()), 0o644))
}

// gitHubComments writes the comments that stand on the server to a file: comments FILE.
func gitHubComments(ts *testscript.TestScript, neg bool, args []string) {
	var b strings.Builder
	for _, c := range gitHub(ts).Comments() {
		b.WriteString("--- comment by " + c.Author.Login + "\n" + c.Body + "\n")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()), 0o644))
}
