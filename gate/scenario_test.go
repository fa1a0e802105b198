package gate

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/gate/gatetest"
)

var update = flag.Bool("update", false, "write the expectations of testdata again")

const token = "ghs_secretsecretsecret"

// sha is a commit of one letter.
func sha(letter string) string { return strings.Repeat(letter, 40) }

// stage is one scenario: a server, a client of it, and what happened.
type stage struct {
	t       *testing.T
	srv     *gatetest.Server
	run     *Run
	client  *client
	out     strings.Builder
	waits   []string
	notices []string
}

// pullRun is a run of pull request 7 of the repository itself.
func pullRun() *Run {
	return &Run{Repository: "octo/llm", Event: "pull_request", ID: 500, Attempt: 1, Number: 7, WorkflowFile: "gate.yml", SHA: sha("d"), ServerURL: "https://github.example",
		Pull: &Pull{Number: 7, Head: Branch{sha("a"), "faster", Repo{1, "octo/llm"}}, Base: Branch{SHA: sha("b"), Ref: "main"}}}
}

// forkRun is the same of a fork.
func forkRun() *Run {
	r := pullRun()
	r.Pull.Head.Repo, r.Pull.Fork = Repo{666, "mallory/llm"}, true
	return r
}

// open starts a scenario. No wait takes real time, and jitter is always one half.
func open(t *testing.T, run *Run, s gatetest.Scenario) *stage {
	t.Helper()
	st := &stage{t: t, srv: gatetest.New(s), run: run}
	server := httptest.NewServer(st.srv)
	t.Cleanup(server.Close)
	run.APIURL = server.URL + s.Prefix
	var err error
	st.client, err = newClient(run, token, http.DefaultTransport, &tries{
		sleep:  func(_ context.Context, d time.Duration) error { st.waits = append(st.waits, d.String()); return nil },
		now:    func() time.Time { return time.Unix(1_800_000_000, 0) },
		jitter: func() float64 { return 0.5 },
		notice: func(s string) { st.notices = append(st.notices, s) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func (s *stage) say(format string, args ...interface{}) { fmt.Fprintf(&s.out, format+"\n", args...) }

// upsert posts a comment and notes what became of it.
func (s *stage) upsert(w comment) posted {
	s.t.Helper()
	p := s.client.upsert(context.Background(), 7, w)
	s.say("%s comment %d %s", p.Action, p.ID, p.URL)
	if p.Reason != "" {
		s.say("reason: %s", p.Reason)
	}
	return p
}

// failing is a comment of a failed gate.
func failing(run *Run, text string) comment {
	return comment{Key: "gate", Mode: Always, Verdict: comparison.Fail, Changed: true, Stamp: run.stamp(), Body: func(int) string { return text }}
}

// signed is a comment of ours as an earlier run left it.
func signed(text string, run int64, attempt int, head string) string {
	return marker{key: "gate", stamp: stamp{head, run, attempt}}.sign(text)
}

func (s *stage) err(err error) {
	s.t.Helper()
	if err == nil {
		s.t.Error("no error")
	}
	s.say("error: %v", err)
}

// golden compares everything that happened with the file that has the test's name.
func (s *stage) golden() {
	s.t.Helper()
	text := s.out.String()
	section := func(title, content string) {
		if content != "" {
			text += "\n# " + title + "\n" + content
		}
	}
	section("notices", lines(s.notices))
	section("waits", lines(s.waits))
	section("requests", s.srv.Transcript())
	comments := ""
	for _, c := range s.srv.Comments() {
		body := c.Body
		if len(body) > 400 {
			body = body[:60] + "…" + body[len(body)-140:]
		}
		comments += fmt.Sprintf("%d by %s\n    %s\n", c.ID, c.Author.Login, strings.ReplaceAll(body, "\n", "\n    "))
	}
	section("comments that stand", comments)
	for _, st := range s.srv.Statuses() {
		section("status", fmt.Sprintf("%+v\n", st))
	}
	if strings.Contains(text, token) || strings.Contains(text, "WITH A TOKEN") || strings.Contains(s.out.String()+lines(s.notices), "sig=") {
		s.t.Errorf("a secret is out:\n%s", text)
	}
	trimmed := strings.Split(text, "\n")
	for i := range trimmed {
		trimmed[i] = strings.TrimRight(trimmed[i], " ")
	}
	text = strings.Join(trimmed, "\n")
	file := filepath.Join("testdata", filepath.FromSlash(strings.TrimPrefix(s.t.Name(), "Test"))+".golden")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	if d := cmp.Diff(string(want), text); d != "" {
		s.t.Errorf("%s (run with -update to accept):\n%s", file, d)
	}
}

func lines(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, "\n") + "\n"
}

// dropFirst loses the connection of the first request.
type dropFirst struct{ dropped bool }

func (d *dropFirst) RoundTrip(r *http.Request) (*http.Response, error) {
	if !d.dropped {
		d.dropped = true
		return nil, errors.New("connection reset by peer")
	}
	return http.DefaultTransport.RoundTrip(r)
}
