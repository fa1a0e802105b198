// Package load drives a server that speaks OpenAI's completions API, and measures what its clients see.
//
// A run has these phases, in order: wait until the server is healthy; ask for its model; send warm-up
// requests; send the measured ones when they are due (run.go, schedule.go), each read as it streams in (client.go,
// sse.go); compute (analyze/loadfile). Latency counts from the moment a request was due, so that a server
// that holds up the load cannot hide it. Failed requests are not retried.
package load

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

// Kinds of errors, for errors.Is.
var (
	ErrNotHealthy       = errors.New("not healthy")       // the server never was
	ErrNothingSucceeded = errors.New("nothing succeeded") // no request did
	ErrServerGone       = errors.New("server gone")       // it stopped answering while the load ran
	ErrInterrupted      = errors.New("interrupted")       // the cause of a context that the user ended
)

// failure is an error of one of the kinds above, with its own sentence.
type failure struct {
	kind error
	text string
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.kind }

func failf(kind error, format string, args ...any) error {
	return &failure{kind, fmt.Sprintf(format, args...)}
}

// Defaults of explain load and of explain capture vllm. URL, mode, temperature and the limit of a request are those of
// profilemate's send_test_requests.py.
const (
	DefaultURL           = "http://127.0.0.1:8000"
	DefaultMode          = "mixed"
	DefaultRequests      = 100
	DefaultConcurrency   = 8  // of a closed loop
	DefaultWarmup        = 10 // requests
	DefaultSeed          = 1
	DefaultTemperature   = 0.8
	DefaultTimeout       = 120 * time.Second
	DefaultHealthTimeout = 10 * time.Minute // a large model takes minutes to load
)

// Options of a run.
type Options struct {
	URL    string // http://127.0.0.1:8000; a trailing /v1 is accepted; empty: DefaultURL
	Model  string // empty: the first of /v1/models
	Chat   bool   // /v1/chat/completions instead of /v1/completions
	APIKey string // sent as a bearer token; never written

	Mode    string   // prefill, decode, mixed; empty: DefaultMode, or as Dataset or the token counts below say
	Dataset *Dataset // see ReadDataset
	// Approximate tokens of a synthetic prompt; output tokens to ask for. 0: as the mode or the dataset says
	PromptTokens, OutputTokens int
	Temperature                float64
	Seed                       uint64 // of arrivals and synthetic prompts

	Rate        float64       // requests due per second, at random times (open loop); 0: closed loop
	Concurrency int           // most requests in flight. 0: one in a closed loop, no limit in an open one
	Requests    int           // 0: as many as fit in Duration
	Duration    time.Duration // no request is sent later; 0: no limit
	Warmup      int           // requests before the measured ones

	Timeout       time.Duration // of one request; 0: DefaultTimeout
	HealthTimeout time.Duration // until the server is healthy; 0: do not wait
	SLO           SLO
	Trust         *x509.CertPool // authorities for the server's certificate; nil: those of this machine
	Insecure      bool           // do not check the server's certificate

	// called after the warm-up, right before the measured load; its error ends the run
	BeforeLoad func(ctx context.Context) error
	AfterLoad  func()         // called after the last answer, however the load ended
	Progress   func(Progress) // called about five times a second, from one goroutine
	Version    string         // version of explain

	dial func(ctx context.Context, network, addr string) (net.Conn, error) // for tests: replaces the network
}

// SLO holds the limits that a good request keeps; 0: none.
type SLO struct{ TTFT, TPOT, E2E time.Duration }

// Progress is the current state of a run.
type Progress struct {
	Stage                     string // wait, warm-up, load
	Sent, Done, Failed, Total int64  // requests; Total is 0 if unknown
	Elapsed                   time.Duration
}

// Upper limits of a run.
const (
	maxRate        = 100_000
	maxConcurrency = 10_000
	maxRequests    = 10_000_000
	maxTokens      = 1_000_000
)

// Check returns an error if a run with these options is impossible.
func (o Options) Check() error {
	_, err := o.fill()
	return err
}

// fill sets defaults for zero values, refuses invalid options and returns the server's base URL.
func (o *Options) fill() (base string, err error) {
	bad := func(format string, args ...any) (string, error) { return "", usage.Errorf(format, args...) }
	o.URL, o.Timeout = cmp.Or(o.URL, DefaultURL), cmp.Or(o.Timeout, DefaultTimeout)
	if base, err = baseURL(o.URL); err != nil {
		return "", err
	}
	switch {
	case o.Mode != "" && o.Dataset != nil, o.Mode != "" && o.PromptTokens > 0, o.Dataset != nil && o.PromptTokens > 0:
		return bad("a mode, a dataset and a number of prompt tokens exclude each other: each says what the prompts are")
	case o.Mode == "" && o.Dataset == nil && o.PromptTokens == 0:
		o.Mode = DefaultMode
	}
	switch {
	case o.Mode != "" && !slices.Contains(Modes, o.Mode):
		return bad("--load-mode %s is unknown; it is prefill, decode or mixed", o.Mode)
	case min(o.PromptTokens, o.OutputTokens) < 0 || max(o.PromptTokens, o.OutputTokens) > maxTokens:
		return bad("a number of tokens is between 1 and %d", maxTokens)
	case !(o.Rate >= 0 && o.Rate <= maxRate): // also refuses NaN
		return bad("a rate is between 0 and %d requests per second", maxRate)
	case o.Concurrency < 0 || o.Concurrency > maxConcurrency:
		return bad("a concurrency is between 1 and %d", maxConcurrency)
	case o.Requests < 0 || o.Requests > maxRequests:
		return bad("a number of requests is between 1 and %d", maxRequests)
	case o.Warmup < 0 || o.Warmup > maxRequests:
		return bad("a number of warm-up requests is between 0 and %d", maxRequests)
	case min(o.Duration, o.Timeout, o.HealthTimeout) < 0:
		return bad("a time is not negative")
	case min(o.SLO.TTFT, o.SLO.TPOT, o.SLO.E2E) < 0:
		return bad("a limit on a latency is not negative")
	case o.Requests == 0 && o.Duration == 0:
		return bad("a load without an end: give a number of requests or a duration")
	case !(o.Temperature >= 0 && o.Temperature <= math.MaxFloat32):
		return bad("a temperature is not negative")
	case strings.ContainsAny(o.APIKey, "\r\n\x00"):
		return bad("the API key has a line break")
	}
	if o.Rate == 0 && o.Concurrency == 0 {
		o.Concurrency = 1
	}
	return base, nil
}

// baseURL returns the address of a server without the path of its API.
func baseURL(text string) (string, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", usage.Errorf("the server's address is not one; it looks like %s", DefaultURL)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", usage.Errorf(
			"the server's address holds a user, a query or a fragment; a key comes from the environment, see --api-key-env")
	}
	path := strings.TrimRight(u.Path, "/")
	for _, asked := range []string{"/chat/completions", "/completions", "/models"} { // the end of an API call's address
		path = strings.TrimSuffix(path, "/v1"+asked)
	}
	return u.Scheme + "://" + u.Host + strings.TrimSuffix(path, "/v1"), nil
}
