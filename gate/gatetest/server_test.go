package gatetest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// ask sends one request to a server and returns status and body.
func ask(t *testing.T, s http.Handler, method, target, token, body string) (int, string, http.Header) {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	b, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(b), w.Header()
}

func TestReadScenario(t *testing.T) {
	s, err := ReadScenario(strings.NewReader(`{"repository":"a/b","pulls":[{"number":1,"labels":[{"name":"x"}]}],"steps":[{"add_labels":{"1":"y"},"status":503,"done":true}]}`))
	if err != nil || s.Pulls[0].Labels[0].Name != "x" || s.Steps[0].AddLabels[1] != "y" || !s.Steps[0].Done {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := ReadScenario(strings.NewReader(`{"pull":[]}`)); err == nil || !strings.Contains(err.Error(), `"pull"`) {
		t.Errorf("error %v", err)
	}
}

// TestHurts: the server refuses what GitHub refuses.
func TestHurts(t *testing.T) {
	s := New(Scenario{Token: "t", Denied: []string{"contents: read"}, PageSize: 1, Comments: []Comment{{Number: 1, Body: "a"}, {Number: 1, Body: "b"}}})
	comments := "/repos/octo/llm/issues/1/comments"
	for _, c := range []struct {
		method, target, token, body string
		want                        int
	}{
		{"GET", comments, "", "", 401}, {"GET", comments, "wrong", "", 401}, {"GET", comments, "t", "", 200},
		{"GET", "/repos/octo/other/issues/1/comments", "t", "", 404}, {"GET", "/repos/octo/llm/commits", "t", "", 403},
		{"POST", comments, "t", `{"body":"` + strings.Repeat("é", maxComment) + `"}`, 201}, {"POST", comments, "t", `{"body":"` + strings.Repeat("é", maxComment+1) + `"}`, 422},
		{"POST", comments, "t", `{}`, 400}, {"DELETE", "/repos/octo/llm/issues/comments/99", "t", "", 404}, {"GET", "/user", "t", "", 403},
		{"GET", "/_storage/1?sig=secret-signature", "", "", 404}, {"GET", "/_storage/1?sig=secret-signature", "t", "", 400},
	} {
		if got, body, _ := ask(t, s, c.method, c.target, c.token, c.body); got != c.want {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.target, got, body, c.want)
		}
	}
	_, _, h := ask(t, s, "GET", comments+"?per_page=100", "t", "")
	if l := h.Get("Link"); !strings.Contains(l, `page=2&per_page=100>; rel="next"`) || !strings.Contains(l, `page=3&per_page=100>; rel="last"`) {
		t.Errorf("link %q", l)
	}
}

// TestHeld: a test reads what was asked, and what the server holds then.
func TestHeld(t *testing.T) {
	s := New(Scenario{})
	ask(t, s, "POST", "/repos/octo/llm/issues/1/comments", "t", `{"body":"hello"}`)
	ask(t, s, "POST", "/repos/octo/llm/statuses/abc", "t", `{"state":"success","context":"explain"}`)
	if got, want := s.Transcript(), "POST /repos/octo/llm/issues/1/comments → 201\n    hello\nPOST /repos/octo/llm/statuses/abc → 201\n    success explain\n"; got != want {
		t.Errorf("transcript %q, want %q", got, want)
	}
	if got := s.Comments(); !slices.Equal(got, []Comment{{1000, 1, User{"github-actions[bot]", "Bot"}, "hello"}}) {
		t.Errorf("comments %+v", got)
	}
	if got := s.Statuses(); !slices.Equal(got, []CommitStatus{{"abc", "success", "explain", "", ""}}) {
		t.Errorf("statuses %+v", got)
	}
}
