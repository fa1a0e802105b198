package gate

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// actions is an environment of GitHub Actions with that payload.
func actions(t testing.TB, event, payload string, change map[string]string) func(string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "event.json")
	if err := os.WriteFile(file, []byte(payload), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "octo/llm", "GITHUB_EVENT_NAME": event, "GITHUB_EVENT_PATH": file, "GITHUB_SHA": sha("d"),
		"GITHUB_RUN_ID": "500", "GITHUB_RUN_ATTEMPT": "2", "GITHUB_WORKFLOW": "Perf", "GITHUB_JOB": "gate", "GITHUB_REF": "refs/heads/main"}
	for k, v := range change {
		env[k] = v
	}
	return func(name string) string { return env[name] }
}

func TestReadRun(t *testing.T) {
	base := Run{APIURL: "https://api.github.com", ServerURL: "https://github.com", Repository: "octo/llm", Workflow: "Perf", Job: "gate", SHA: sha("d"), Ref: "refs/heads/main", ID: 500, Attempt: 2}
	a, b, c, d := sha("a"), sha("b"), sha("c"), sha("d")
	for name, tc := range map[string]struct {
		event, payload string
		env            map[string]string
		want           func(*Run)
		head           string
		stamp          stamp
	}{
		"pull_request": {
			event: "pull_request",
			payload: `{"action":"labeled","number":7,"pull_request":{"number":7,"merge_commit_sha":"` + c + `","head":{"sha":"` + a + `","ref":"x","repo":{"id":1,"full_name":"octo/llm"}},
				"base":{"sha":"` + b + `","ref":"main","repo":{"id":1,"full_name":"octo/llm"}}},"repository":{"id":1,"full_name":"octo/llm"}}`,
			want: func(r *Run) {
				r.Action, r.Number, r.Pull = "labeled", 7, &Pull{7, Branch{a, "x", Repo{1, "octo/llm"}}, Branch{b, "main", Repo{1, "octo/llm"}}, c, false}
			},
			head: a, stamp: stamp{a, 500, 2},
		},
		"of_a_fork": {
			event:   "pull_request",
			payload: `{"pull_request":{"number":7,"head":{"sha":"` + a + `","ref":"main","repo":{"id":2,"full_name":"mallory/llm"}},"base":{"sha":"` + b + `","ref":"main","repo":{"id":1,"full_name":"octo/llm"}}}}`,
			want: func(r *Run) {
				r.Number, r.Pull = 7, &Pull{7, Branch{a, "main", Repo{2, "mallory/llm"}}, Branch{b, "main", Repo{1, "octo/llm"}}, "", true}
			},
			head: a, stamp: stamp{a, 500, 2},
		},
		"of_a_deleted_fork": {
			event:   "pull_request_target",
			payload: `{"number":7,"pull_request":{"head":{"sha":"` + a + `","ref":"main","repo":null},"base":{"sha":"` + b + `","ref":"main"}},"repository":{"id":1,"full_name":"octo/llm"}}`,
			want: func(r *Run) {
				r.Number, r.Pull = 7, &Pull{7, Branch{a, "main", Repo{}}, Branch{b, "main", Repo{}}, "", true}
			},
			head: a, stamp: stamp{a, 500, 2},
		},
		"workflow_run": {
			event:   "workflow_run",
			payload: `{"action":"completed","workflow_run":{"id":400,"run_attempt":3,"event":"pull_request","head_sha":"` + a + `","head_branch":"main","head_repository":{"id":2,"full_name":"mallory/llm"},"conclusion":"failure","pull_requests":[]}}`,
			want: func(r *Run) {
				r.Action, r.Trigger = "completed", &Trigger{400, 3, "pull_request", a, "main", Repo{2, "mallory/llm"}}
			},
			head: a, stamp: stamp{a, 400, 3},
		},
		"workflow_run_of_the_repository": {
			event:   "workflow_run",
			payload: `{"workflow_run":{"id":400,"head_sha":"` + a + `","pull_requests":[{"number":7},{"number":8}]}}`,
			want:    func(r *Run) { r.Trigger = &Trigger{RunID: 400, Attempt: 1, HeadSHA: a} },
			head:    a, stamp: stamp{a, 400, 1},
		},
		"push": {
			event:   "push",
			payload: `{"ref":"refs/heads/release/1","before":"` + b + `","after":"` + d + `"}`,
			want:    func(r *Run) { r.Push = &Push{Before: b, After: d, Ref: "release/1"} },
			head:    d, stamp: stamp{d, 500, 2},
		},
		"push_of_a_new_branch": {
			event:   "push",
			payload: `{"ref":"refs/heads/new","before":"0000000000000000000000000000000000000000","after":"` + d + `"}`,
			want:    func(r *Run) { r.Push = &Push{After: d, Ref: "new"} },
			head:    d, stamp: stamp{d, 500, 2},
		},
		"merge_group": {
			event:   "merge_group",
			payload: `{"merge_group":{"head_sha":"` + a + `","base_sha":"` + b + `","base_ref":"refs/heads/main"}}`,
			want:    func(r *Run) { r.Push = &Push{Before: b, After: a, Ref: "main"} },
			head:    a, stamp: stamp{a, 500, 2},
		},
		"comment_on_a_pull_request": {
			event:   "issue_comment",
			payload: `{"action":"created","issue":{"number":7,"pull_request":{"url":"x"}}}`,
			want:    func(r *Run) { r.Action, r.Number = "created", 7 },
			stamp:   stamp{"", 500, 2},
		},
		"comment_on_an_issue": {
			event: "issue_comment", payload: `{"issue":{"number":7}}`, want: func(*Run) {}, head: d, stamp: stamp{d, 500, 2},
		},
		"by_hand": {
			event: "workflow_dispatch", payload: `{"inputs":{"pull":"7"}}`, want: func(*Run) {}, head: d, stamp: stamp{d, 500, 2},
		},
		"number_in_the_ref": {
			event: "pull_request_review", payload: `{}`, env: map[string]string{"GITHUB_REF": "refs/pull/12/merge", "GITHUB_RUN_ATTEMPT": ""},
			want:  func(r *Run) { r.Number, r.Ref, r.Attempt = 12, "refs/pull/12/merge", 1 },
			stamp: stamp{"", 500, 1},
		},
		"enterprise": {
			event: "push", payload: `{}`, env: map[string]string{"GITHUB_API_URL": "https://ghe.example.com/api/v3/", "GITHUB_SERVER_URL": "https://ghe.example.com/"},
			want: func(r *Run) { r.APIURL, r.ServerURL = "https://ghe.example.com/api/v3", "https://ghe.example.com" },
			head: d, stamp: stamp{d, 500, 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readRun(actions(t, tc.event, tc.payload, tc.env))
			if err != nil {
				t.Fatal(err)
			}
			want := base
			want.Event = tc.event
			tc.want(&want)
			if d := cmp.Diff(&want, got, cmp.AllowUnexported(Run{})); d != "" {
				t.Error(d)
			}
			if got.HeadSHA() != tc.head || got.stamp() != tc.stamp {
				t.Errorf("head %s, stamp %+v", got.HeadSHA(), got.stamp())
			}
			if url := got.URL(); !strings.HasPrefix(url, got.ServerURL+"/octo/llm/actions/runs/") {
				t.Errorf("address %s", url)
			}
		})
	}
}

func TestReadRunRefuses(t *testing.T) {
	if _, err := readRun(func(string) string { return "" }); !errors.Is(err, ErrNotInActions) {
		t.Errorf("error %v", err)
	}
	pull := `{"pull_request":{"number":7,"head":{"sha":"HEAD"}}}`
	for _, tc := range []struct {
		payload string
		env     map[string]string
		want    string
	}{
		{`{}`, map[string]string{"GITHUB_REPOSITORY": "octo/llm/../../user"}, "GITHUB_REPOSITORY"},
		{`{}`, map[string]string{"GITHUB_REPOSITORY": "octo/.."}, "GITHUB_REPOSITORY"},
		{`{}`, map[string]string{"GITHUB_REPOSITORY": ""}, "GITHUB_REPOSITORY"},
		{`{}`, map[string]string{"GITHUB_SHA": "main"}, "GITHUB_SHA"},
		{`{}`, map[string]string{"GITHUB_RUN_ID": "-1"}, "GITHUB_RUN_ID"},
		{`{}`, map[string]string{"GITHUB_RUN_ATTEMPT": "x"}, "GITHUB_RUN_ATTEMPT"},
		{`{}`, map[string]string{"GITHUB_API_URL": "https://user:hunter2@api.example"}, "GITHUB_API_URL: must not hold credentials"},
		{`{}`, map[string]string{"GITHUB_API_URL": "file:///etc"}, "GITHUB_API_URL: is not an http"},
		{`{}`, map[string]string{"GITHUB_EVENT_PATH": filepath.Join(t.TempDir(), "none")}, "GITHUB_EVENT_PATH"},
		{`[]`, nil, "payload of the event pull_request: is not the JSON"},
		{`{`, nil, "is not the JSON"},
		{pull, nil, "something that is not a commit"},
		{`{"pull_request":{}}`, nil, "has no number"},
		{`{"pull_request":{"number":7,"head":{"repo":{"full_name":"a/b/c"}}}}`, nil, "not owner/name"},
		{`{"workflow_run":{"head_sha":"x"}}`, nil, "no id"},
		{`{"workflow_run":{"id":1,"head_sha":"x"}}`, nil, "not a commit"},
		{`{"after":"x"}`, nil, "not a commit"},
		{`{"issue":{"number":-1,"pull_request":{}}}`, nil, "no number"},
	} {
		_, err := readRun(actions(t, "pull_request", tc.payload, tc.env))
		if err == nil || !contains(err.Error(), tc.want) || contains(err.Error(), "hunter2") {
			t.Errorf("%s %v: error %v, want %q", tc.payload, tc.env, err, tc.want)
		}
	}
}

// TestNewRefuses: what would go into an address or a header is checked before there is one.
func TestNewRefuses(t *testing.T) {
	for _, tc := range []struct{ api, repository, token, want string }{
		{"https://x:y@api.example", "octo/llm", "", "credentials"},
		{"api.example", "octo/llm", "", "not an http"},
		{"https://api.example", "octo/llm?x=", "", "owner/name"},
		{"https://api.example", "octo/llm", "ghs_secret\nX-Evil: 1", "the token holds"},
	} {
		_, err := newClient(&Run{APIURL: tc.api, Repository: tc.repository}, tc.token, nil, &tries{})
		if err == nil || !contains(err.Error(), tc.want) || contains(err.Error(), "ghs_") || contains(err.Error(), "x:y") {
			t.Errorf("%+v: error %v", tc, err)
		}
	}
}

// FuzzEvent: any payload gives a run whose commits and numbers are what GitHub writes, or an error.
func FuzzEvent(f *testing.F) {
	f.Add([]byte(`{"action":"opened","number":7,"pull_request":{"number":7,"head":{"sha":"` + sha("a") + `","repo":{"id":1,"full_name":"octo/llm"}},"base":{"sha":"` + sha("b") + `"}}}`))
	f.Add([]byte(`{"workflow_run":{"id":4,"head_sha":"` + sha("a") + `","head_repository":{"full_name":"m/l"}}}`))
	f.Add([]byte(`{"after":"` + sha("a") + `","before":"0000","ref":"refs/heads/x"}`))
	f.Add([]byte(`{"issue":{"number":1,"pull_request":{}},"merge_group":{"head_sha":""}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := &Run{Repository: "octo/llm", ID: 1, Attempt: 1, ServerURL: "https://github.com"}
		if r.readEvent(strings.NewReader(string(b))) != nil {
			return
		}
		if h := r.HeadSHA(); h != "" && !IsCommit(h) {
			t.Errorf("head %q", h)
		}
		if r.Number < 0 || r.Pull != nil && (r.Pull.Number != r.Number || r.Pull.Head.Repo.Name != "" && !isRepository(r.Pull.Head.Repo.Name)) {
			t.Errorf("%+v", r)
		}
		if m := (marker{key: "k", stamp: r.stamp()}).String(); strings.ContainsAny(m, "\r\n") {
			t.Errorf("marker %q", m)
		}
	})
}
