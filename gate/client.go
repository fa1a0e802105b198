package gate

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Options of a client. The zero value talks to GitHub without a token.
type Options struct {
	Token     string            // goes to the API's host and to no other
	Transport http.RoundTripper // nil: http.DefaultTransport

	// Sleep waits between tries; nil: real time. Tests record what was asked for.
	Sleep func(ctx context.Context, d time.Duration) error
	// Now is the time that rate-limit resets are compared with; nil: time.Now.
	Now func() time.Time
	// Jitter is in [0, 1); nil: random.
	Jitter func() float64
	// Notice is told of every wait and of what was skipped, one line without a newline; nil: nobody is.
	Notice func(string)
}

// Client talks to the API of one repository.
type Client struct{}

// New makes a client for the repository of the run. An API URL that is not http(s), or holds credentials, is an error.
func New(run *Run, o Options) (*Client, error) { return nil, errors.New("not written yet") }
