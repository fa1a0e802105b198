package gatetest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Server is the API of one repository, as an [http.Handler].
type Server struct {
	mu       sync.Mutex
	state    Scenario
	seen     []int // how many requests each step has matched
	requests []Request
	statuses []CommitStatus
	nextID   int64
	routes   *http.ServeMux
}

// Request is a request that came in, and how it was answered.
type Request struct {
	Method string
	Target string // path with query
	Token  bool   // it carried one
	Body   string
	Status int
}

// CommitStatus is a status that was set.
type CommitStatus struct {
	SHA         string `json:"sha"`
	State       string `json:"state"`
	Context     string `json:"context"`
	Description string `json:"description"`
	TargetURL   string `json:"target_url"`
}

// New makes a server with that state.
func New(sc Scenario) *Server {
	sc.fill()
	s := &Server{state: sc, seen: make([]int, len(sc.Steps)), nextID: 1000}
	s.state.Comments = nil
	for _, c := range sc.Comments {
		s.addComment(c)
	}
	s.state.Checks = slices.Clone(sc.Checks)
	s.routes = s.api()
	return s
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	token := r.Header.Get("Authorization")
	got := Request{Method: r.Method, Target: r.URL.RequestURI(), Token: token != "", Body: string(body)}
	answer := httptest.NewRecorder()
	switch step := s.step(r); {
	case strings.HasPrefix(r.URL.Path, "/_storage/") || token != "" &&
		(s.state.Token == "" || token == "Bearer "+s.state.Token):
		if step == nil || step.Status == 0 || step.Done {
			s.routes.ServeHTTP(answer, r)
		}
		if step != nil && step.Status != 0 {
			answer = httptest.NewRecorder()
			for k, v := range step.Header {
				answer.Header().Set(k, v)
			}
			answer.WriteHeader(step.Status)
			answer.WriteString(step.Body)
		}
	default:
		fail(answer, http.StatusUnauthorized, "Bad credentials")
	}
	got.Status = answer.Code
	s.requests = append(s.requests, got)
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	w.Write(answer.Body.Bytes()) // the other end may be gone, which is its own affair
}

// step is the step that a request meets, after what it changes has changed; nil where there is none.
func (s *Server) step(r *http.Request) *Step {
	for i := range s.state.Steps {
		st := &s.state.Steps[i]
		match, err := path.Match(st.Path, strings.TrimPrefix(r.URL.Path, s.state.Prefix))
		if st.Method != "" && st.Method != r.Method || st.Path != "" && (!match || err != nil) {
			continue
		}
		s.seen[i]++
		if n := s.seen[i] - st.After; n < 1 || n > max(st.Times, 1) {
			continue
		}
		for _, c := range st.AddComments {
			s.addComment(c)
		}
		s.state.Comments = slices.DeleteFunc(s.state.Comments,
			func(c Comment) bool { return slices.Contains(st.DeleteComments, c.ID) })
		for i := range s.state.Pulls {
			p := &s.state.Pulls[i]
			if l := st.AddLabels[p.Number]; l != "" {
				p.Labels = append(p.Labels, Label{Name: l, By: "maintainer"})
			}
			if sha := st.MoveHeads[p.Number]; sha != "" {
				p.HeadSHA = sha
			}
		}
		return st
	}
	return nil
}

// addComment stores a comment; its id is the next one where it has none.
func (s *Server) addComment(c Comment) Comment {
	c.ID = cmp.Or(c.ID, s.nextID)
	s.nextID = max(s.nextID, c.ID+1)
	c.Author = cmp.Or(c.Author, s.state.User)
	s.state.Comments = append(s.state.Comments, c)
	return c
}

// Requests are the requests so far.
func (s *Server) Requests() []Request { return copyOf(s, &s.requests) }

// Comments are the comments that stand now, oldest first.
func (s *Server) Comments() []Comment { return copyOf(s, &s.state.Comments) }

// Statuses are the commit statuses that were set, in order.
func (s *Server) Statuses() []CommitStatus { return copyOf(s, &s.statuses) }

// Checks are the check runs that stand now.
func (s *Server) Checks() []Check { return copyOf(s, &s.state.Checks) }

// copyOf copies a list that requests may change.
func copyOf[T any](s *Server, list *[]T) []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(*list)
}

// Change lets something happen between two requests.
func (s *Server) Change(what func(*Scenario)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what(&s.state)
	s.state.fill()
}

// Transcript is what was asked, one request a line, with the text of comments below: to compare with a file. A token is
// not in it, only where one was sent to the storage.
func (s *Server) Transcript() string {
	var b strings.Builder
	for _, r := range s.Requests() {
		b.WriteString(r.Method + " " + r.Target + " → " + strconv.Itoa(r.Status))
		if strings.HasPrefix(r.Target, "/_storage/") && r.Token {
			b.WriteString(" WITH A TOKEN")
		}
		b.WriteString("\n")
		var sent struct{ Body, State, Context, Description, Query string }
		if r.Body == "" || json.Unmarshal([]byte(r.Body), &sent) != nil {
			continue
		}
		text := sent.Body
		if text == "" {
			text = strings.TrimSpace(sent.Query + sent.State + " " + sent.Context + " " + sent.Description)
		}
		if len(text) > 400 {
			text = text[:60] + "… (" + strconv.Itoa(len(text)) + " bytes) …" + text[len(text)-140:]
		}
		for _, line := range strings.Split(text, "\n") {
			b.WriteString(strings.TrimRight("    "+line, " ") + "\n")
		}
	}
	return b.String()
}
