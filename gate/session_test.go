package gate

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/gate/gatetest"
)

func TestLegNames(t *testing.T) {
	for matrix, want := range map[string]string{
		"": "", "null": "", "[1]": "", `{"gpu": "h100"}`: "h100", `{"tp": 8, "gpu": "a100"}`: "a100, 8",
	} {
		if got := legName(matrix); got != want {
			t.Errorf("%s: %q, want %q", matrix, got, want)
		}
	}
}

// sessionOf opens and connects a session on a pull request, with what it says in said and its outputs in the file of that
// name.
func sessionOf(t *testing.T, srv *gatetest.Server, o SessionOptions) (s *Session, said *strings.Builder, outputs string) {
	t.Helper()
	listener := httptest.NewServer(srv)
	t.Cleanup(listener.Close)
	dir := t.TempDir()
	event := filepath.Join(dir, "event.json")
	payload := fmt.Sprintf(`{"pull_request": {"number": 7, "head": {"sha": %q, "repo": {"id": 1}},
		"base": {"sha": %q, "ref": "main", "repo": {"id": 1}}}}`, sha("a"), sha("b"))
	if err := os.WriteFile(event, []byte(payload), 0o644); err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{
		"GITHUB_ACTIONS": "true", "GITHUB_API_URL": listener.URL, "GITHUB_REPOSITORY": "octo/llm", "GITHUB_RUN_ID": "500",
		"GITHUB_WORKFLOW": "performance", "GITHUB_JOB": "gate", "GITHUB_ACTION": "decode", "GITHUB_WORKSPACE": dir, "GITHUB_TOKEN": token,
		"GITHUB_EVENT_NAME": "pull_request", "GITHUB_EVENT_PATH": event, "EXPLAIN_MATRIX": `{"gpu": "h100"}`,
		"GITHUB_OUTPUT": filepath.Join(dir, "outputs"), "GITHUB_STEP_SUMMARY": filepath.Join(dir, "summary"),
	}
	said = new(strings.Builder)
	o.Getenv = func(name string) string { return variables[name] }
	o.Out, o.Say = said, func(line string) { said.WriteString(line + "\n") }
	o.Paragraph = func(text string) string { return text + "\n" }
	o.OneLine = func(c *comparison.Comparison) string { return string(c.Verdict) }
	s, err := Open(o)
	if err == nil {
		err = s.Connect(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, said, filepath.Join(dir, "outputs")
}

// TestSessionReadsThePullRequest: who is compared with what comes from the event, and one comment of each job of a matrix
// has a key of its own.
func TestSessionReadsThePullRequest(t *testing.T) {
	s, _, _ := sessionOf(t, gatetest.New(gatetest.Scenario{}), SessionOptions{Mode: Always, Folder: "prefill"})
	base, change := s.Of.Base()
	if s.Of.Number != 7 || base != sha("b") || !change || s.Of.BaseBranch() != "main" || s.Title != "h100" {
		t.Errorf("#%d, base %s of %s, title %q", s.Of.Number, base, s.Of.BaseBranch(), s.Title)
	}
	if s.key != "performance-gate-h100-decode-prefill" {
		t.Errorf("key %q", s.key)
	}
	if _, err := fileOf(context.Background(), s, "/elsewhere/policy.yml", "main"); err == nil ||
		!strings.Contains(err.Error(), "not in the checkout") {
		t.Errorf("a file outside of the checkout: %v", err)
	}
}

// TestSessionTells: outputs name files as later steps see them, from the workspace, and the comment goes to the pull
// request.
func TestSessionTells(t *testing.T) {
	srv := gatetest.New(gatetest.Scenario{})
	s, said, outputs := sessionOf(t, srv, SessionOptions{Mode: Always})
	text := func(int) string { return "step is slower" }
	r := &Result{Comparison: &comparison.Comparison{Verdict: comparison.Fail}, ExitCode: 1, Comment: text, Summary: text}
	r.Folder = filepath.Join(s.Of.Run.Workspace, "gate")
	s.Tell(context.Background(), r)
	b, err := os.ReadFile(outputs)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"verdict", "fail", "exit-code", "gate/comparison.json", "gate/reports", "comment-id"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("outputs lack %q:\n%s", want, b)
		}
	}
	if strings.Contains(string(b), s.Of.Run.Workspace) {
		t.Errorf("an output is not relative to the workspace:\n%s", b)
	}
	comments := srv.Comments()
	if len(comments) != 1 || !strings.HasPrefix(comments[0].Body, "step is slower") {
		t.Errorf("comments %+v", comments)
	}
	if !strings.Contains(said.String(), "::error title=explain%3A fail::") {
		t.Errorf("said %q", said)
	}
}

// TestSessionAsksNothing where no comment is wanted, or the event is not about a pull request.
func TestSessionAsksNothing(t *testing.T) {
	for _, mode := range []Mode{Never, Always} {
		srv := gatetest.New(gatetest.Scenario{})
		s, said, _ := sessionOf(t, srv, SessionOptions{Mode: mode})
		if mode == Always {
			s.Of.Number = 0
		}
		s.TellError(context.Background(), comparison.Error, func(int) string { return "no verdict" })
		if asked := srv.Requests(); len(asked) != 0 || strings.Contains(said.String(), "comment") {
			t.Errorf("%s: %+v, said %q", mode, asked, said)
		}
	}
}

// TestSessionSaysWhyItDoesNotComment: a permission that is missing stands in the log and the summary.
func TestSessionSaysWhyItDoesNotComment(t *testing.T) {
	denied := gatetest.New(gatetest.Scenario{Denied: []string{"pull-requests: write"}})
	s, said, outputs := sessionOf(t, denied, SessionOptions{Mode: Always})
	s.Fail(comparison.Error, 3, errors.New("no trace"))
	s.TellError(context.Background(), comparison.Error, func(int) string { return "no verdict" })
	summary, err := os.ReadFile(filepath.Join(filepath.Dir(outputs), "summary"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{said.String(), string(summary)} {
		if !strings.Contains(text, "the job needs `permissions: pull-requests: write`") {
			t.Errorf("the missing permission is not named:\n%s", text)
		}
	}
	if !strings.HasPrefix(string(summary), "no verdict") {
		t.Errorf("summary %q", summary)
	}
}
