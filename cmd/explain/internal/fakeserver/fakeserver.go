// Package fakeserver is a server for tests that speaks OpenAI's completions API by a script: it answers when the script
// says, and fails as the script says. It computes nothing. Tests use it inside a bubble without time, in a process, or
// as a process of its own in the place of vLLM ([Main]).
package fakeserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Faults of a completion request. Besides these, http_NNN answers with that status.
const (
	Reset      = "reset"       // the connection is reset before an answer
	Hang       = "hang"        // no answer, until the client gives up
	Stall      = "stall"       // half of the answer, then nothing until the client gives up
	Cut        = "cut"         // half of the answer, then the connection breaks
	Short      = "short"       // half of the answer, then a proper end of the stream
	Garbage    = "garbage"     // a stream of bytes that are not events
	NotJSON    = "not_json"    // a stream of events that are not JSON
	HTML       = "html"        // a page instead of a stream
	ErrorEvent = "error_event" // an error in the middle of the stream
	Abort      = "abort"       // half of the answer, then the server gives it up
	Empty      = "empty"       // a whole answer without text
	Die        = "die"         // the process ends; see OnDie
)

// Script is what a server does.
type Script struct {
	Model        string
	TTFT, Gap    time.Duration // from a request to its first token, from token to token
	Tokens       int           // of each answer; 0: what the request asks for
	PerEvent     int           // tokens in each event; 0: one
	NoUsage      bool          // the server does not count tokens
	NoDone       bool          // the stream ends without [DONE], as some servers' do
	HealthyAfter time.Duration // until /health answers 200; negative: never
	NoHealth     bool          // there is no /health
	NoModels     bool          // there is no /v1/models
	NoMetrics    bool          // there is no /metrics
	Key          string        // wanted as a bearer token

	Fault string // of each Every-th completion request, from the After-th on (both count from 1; 0 is 1)
	Every int
	After int

	// Plan, if set, says for each completion request, counted from 0, when its tokens come and how it fails.
	Plan func(i int) Plan
	// OnDie is what the fault die does.
	OnDie func()
}

// Plan is what happens to one request.
type Plan struct {
	TTFT  time.Duration
	Gaps  []time.Duration // one fewer than tokens
	Fault string
}

// Server is the fake server.
type Server struct {
	script  Script
	mux     *http.ServeMux
	begun   time.Time
	count   atomic.Int64
	running atomic.Int64

	mu             sync.Mutex
	prompt, tokens int64
	success        int64
	bodies         []Asked
}

// Asked is a completion request as the server got it.
type Asked struct {
	Model       string          `json:"model"`
	Prompt      string          `json:"prompt"`
	Messages    json.RawMessage `json:"messages"`
	MaxTokens   int             `json:"max_tokens"`
	Temperature float64         `json:"temperature"`
	Stream      bool            `json:"stream"`
	IgnoreEOS   bool            `json:"ignore_eos"`
	Options     struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// New makes a server that follows the script from now on.
func New(s Script) *Server {
	s.Model = cmp.Or(s.Model, "fake")
	srv := &Server{script: s, mux: http.NewServeMux(), begun: time.Now()}
	srv.mux.HandleFunc("POST /v1/completions", srv.complete)
	srv.mux.HandleFunc("POST /v1/chat/completions", srv.complete)
	if !s.NoHealth {
		srv.mux.HandleFunc("GET /health", srv.health)
	}
	if !s.NoModels {
		srv.mux.HandleFunc("GET /v1/models", srv.models)
	}
	if !s.NoMetrics {
		srv.mux.HandleFunc("GET /metrics", srv.metrics)
	}
	return srv
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.script.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.script.Key {
		http.Error(w, "no key", http.StatusUnauthorized)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// Asked lists the first completion requests, in the order in which they came.
func (s *Server) Asked() []Asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Asked{}, s.bodies...)
}

// Completions is how many completion requests came.
func (s *Server) Completions() int { return int(s.count.Load()) }

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if after := s.script.HealthyAfter; after < 0 || time.Since(s.begun) < after {
		http.Error(w, "starting", http.StatusServiceUnavailable)
	}
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"object":"list","data":[{"id":%q,"object":"model","owned_by":"fake"}]}`, s.script.Model)
}

func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	label := fmt.Sprintf("{engine=\"0\",model_name=%q}", s.script.Model)
	for _, m := range []struct {
		name, kind string
		value      int64
	}{
		{"vllm:num_requests_running", "gauge", s.running.Load()}, {"vllm:num_requests_waiting", "gauge", 0},
		{"vllm:prompt_tokens_total", "counter", s.prompt}, {"vllm:generation_tokens_total", "counter", s.tokens},
	} {
		fmt.Fprintf(w, "# HELP %s Fake.\n# TYPE %s %s\n%s%s %d.0\n", m.name, m.name, m.kind, m.name, label, m.value)
	}
	fmt.Fprintf(w,
		"# HELP vllm:request_success_total Fake.\n# TYPE vllm:request_success_total counter\nvllm:request_success_total{engine=\"0\",finished_reason=\"length\",model_name=%q} %d.0\n",
		s.script.Model, s.success)
}

// plan of the i-th completion request.
func (s *Server) plan(i int, asked *Asked) Plan {
	if s.script.Plan != nil {
		return s.script.Plan(i)
	}
	n := cmp.Or(s.script.Tokens, max(1, asked.MaxTokens))
	p := Plan{TTFT: s.script.TTFT, Gaps: make([]time.Duration, n-1)}
	for k := range p.Gaps {
		p.Gaps[k] = s.script.Gap
	}
	if nth := i + 1; s.script.Fault != "" && nth >= s.script.After && nth%max(1, s.script.Every) == 0 {
		p.Fault = s.script.Fault
	}
	return p
}

// maxAsked is how many requests are kept for Asked.
const maxAsked = 1000

func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	i := int(s.count.Add(1)) - 1
	s.running.Add(1)
	defer s.running.Add(-1)
	asked := Asked{}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, `{"error":{"message":"not JSON"}}`, http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	if len(s.bodies) < maxAsked {
		s.bodies = append(s.bodies, asked)
	}
	s.mu.Unlock()
	a := &answer{s: s, w: w, r: r, asked: &asked, plan: s.plan(i, &asked), arrived: arrived,
		chat: strings.HasPrefix(r.URL.Path, "/v1/chat")}
	if !a.faulty() {
		a.stream()
	}
}

// wrongAnswers are the content type and the body of answers that are none, by their faults.
var wrongAnswers = map[string][2]string{
	Garbage: {"text/event-stream", "\x00\x01\x02 not an event\n\xff\xfe\n\n"},
	NotJSON: {"text/event-stream", "data: {\"choices\": [\n\n"},
	HTML:    {"text/html", "<html>It works!</html>"},
}

// faulty does what a fault does before any answer, and reports whether that was all.
func (a *answer) faulty() bool {
	w := a.w
	status, isStatus := strings.CutPrefix(a.plan.Fault, "http_")
	wrong, isWrong := wrongAnswers[a.plan.Fault]
	switch {
	case isStatus:
		n, err := strconv.Atoi(status)
		if err != nil {
			n = http.StatusInternalServerError
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(n)
		fmt.Fprint(w, `{"error":{"message":"the script says so","code":`+status+`}}`)
	case a.plan.Fault == Reset:
		a.reset()
	case a.plan.Fault == Hang:
		<-a.r.Context().Done()
	case isWrong:
		w.Header().Set("Content-Type", wrong[0])
		fmt.Fprint(w, wrong[1])
	case a.plan.Fault == Die:
		if a.s.script.OnDie != nil {
			a.s.script.OnDie()
		}
		a.reset()
	default:
		return false
	}
	return true
}

// reset breaks the connection without a proper end.
func (a *answer) reset() {
	conn, _, err := http.NewResponseController(a.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}
