package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nsys-llm/explain/analyze/loadfile"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/secret"
)

// client sends requests to one server over HTTP/1.1. Each request in flight has a connection, which the next request
// reuses. It uses no proxy, since only the server is to be measured.
type client struct {
	http   *http.Client
	base   string // without /v1
	path   string // of completions
	header http.Header
	key    string // of the API; empty: none
	sign   func() // called whenever the server sent something
}

const (
	connectTimeout = 10 * time.Second // of a connection to come up
	// idleTimeout is how long a connection waits for its next request. It is shorter than the 5 s after which vLLM and
	// SGLang close one: a request on a connection that is just being closed would count as a failure of the server.
	idleTimeout = 3 * time.Second
)

func newClient(base string, opt *Options) *client {
	dial := dialer(opt.dial)
	if dial == nil {
		dial = (&net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
	c := &client{base: base, key: opt.APIKey, path: "/v1/completions", sign: func() {}, header: http.Header{
		"Content-Type": {"application/json"}, "User-Agent": {"explain-load"},
	}}
	if opt.Chat {
		c.path = "/v1/chat/completions"
	}
	if opt.APIKey != "" {
		c.header.Set("Authorization", "Bearer "+opt.APIKey)
	}
	c.http = &http.Client{
		Transport: &http.Transport{
			DialContext: dial.timed, TLSHandshakeTimeout: connectTimeout,
			TLSClientConfig:    &tls.Config{RootCAs: opt.Trust, InsecureSkipVerify: opt.Insecure}, // as the user asked
			TLSNextProto:       map[string]func(string, *tls.Conn) http.RoundTripper{},
			DisableCompression: true, MaxIdleConns: maxConcurrency, MaxIdleConnsPerHost: maxConcurrency, IdleConnTimeout: idleTimeout,
			MaxResponseHeaderBytes: 1 << 20, ReadBufferSize: 8 << 10, WriteBufferSize: 8 << 10,
		},
		// The key and the prompt are for this server alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

type outcome struct {
	first, last, end time.Time // first and last token, end of the answer; zero: none
	events           int64     // with text
	input, output    int64     // tokens by the server's own count; -1: not stated
	failed           string    // kind of failure
	detail           string    // what exactly went wrong, for a person at a terminal only: it may quote the server
	gaps             []int64   // between tokens, ns
}

// do sends one request and reads its whole answer.
func (c *client) do(ctx context.Context, timeout time.Duration, body []byte) (o outcome) {
	o.input, o.output = -1, -1
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	var conn *arrival // every connection is one, see timed
	ctx = httptrace.WithClientTrace(ctx,
		&httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { conn = arrivalOf(info.Conn) }})
	res, err := c.send(ctx, http.MethodPost, c.path, bytes.NewReader(body))
	if err != nil {
		return o.broken(ctx, err, loadfile.Reset)
	}
	defer res.Body.Close()
	c.sign()
	if res.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(res.Body, 4<<10))
		return o.fail(loadfile.HTTPStatus(res.StatusCode), c.quoted(said))
	}
	if kind := res.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		return o.fail(loadfile.BadStream, "a stream was asked for, and the answer has another type")
	}
	return c.streamed(ctx, o, res.Body, conn)
}

// send sends one request; the caller closes the body of the answer.
func (c *client) send(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	req.Header = c.header
	return c.http.Do(req)
}

// errTimeout is the cause of a request that exceeded its time limit.
var errTimeout = errors.New("timeout")

func (c *client) streamed(ctx context.Context, o outcome, r io.Reader, conn *arrival) outcome {
	in := newEvents(r, make([]byte, 8<<10), func() time.Time {
		c.sign()
		return conn.last()
	})
	finished := false
	for {
		data, err := in.next()
		switch {
		case errors.Is(err, io.EOF) && finished:
			o.end = in.at
			return o.answered()
		case errors.Is(err, io.EOF):
			return o.fail(loadfile.CutStream, "the stream ended before the answer did")
		case errors.Is(err, errNotSSE):
			return o.fail(loadfile.BadStream, err.Error())
		case err != nil:
			return o.broken(ctx, err, loadfile.CutStream)
		}
		if bytes.Equal(bytes.TrimSpace(data), done) {
			o.end = in.at
			_, _ = io.CopyN(io.Discard, r, 4<<10) // so that the connection can be used again
			return o.answered()
		}
		e, ok := parseEvent(data)
		switch {
		case !ok:
			return o.fail(loadfile.BadStream, "an event of the stream is not a JSON object")
		case e.failed:
			return o.fail(loadfile.ServerError, c.quoted(data))
		}
		finished = finished || e.finished
		if e.output >= 0 {
			o.input, o.output = e.input, e.output
		}
		if !e.token {
			continue
		}
		if o.events++; o.events == 1 {
			o.first = in.at
		} else {
			o.gaps = append(o.gaps, int64(in.at.Sub(o.last)))
		}
		o.last = in.at
	}
}

// answered marks a request as completely answered.
func (o outcome) answered() outcome {
	if o.events == 0 {
		return o.fail(loadfile.NoOutput, "the answer has no text")
	}
	return o
}

func (o outcome) fail(kind, detail string) outcome {
	o.failed, o.detail, o.end = kind, detail, time.Now()
	return o
}

// broken returns the outcome of a request whose connection failed or that timed out; begun is the kind of failure for a
// broken connection.
func (o outcome) broken(ctx context.Context, err error, begun string) outcome {
	if wrapped, ok := errors.AsType[*url.Error](err); ok { // its text is the address
		err = wrapped.Err
	}
	var op *net.OpError
	switch {
	case errors.Is(context.Cause(ctx), errTimeout):
		return o.fail(loadfile.Timeout, "no whole answer in time")
	case ctx.Err() != nil:
		return o.fail(loadfile.Cancelled, "")
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.EADDRNOTAVAIL):
		return o.fail(loadfile.ClientLimit,
			"this machine cannot open more connections; raise ulimit -n or lower the load")
	case errors.As(err, &op) && op.Op == "dial":
		return o.fail(loadfile.Connect, op.Err.Error())
	case isBroken(err):
		return o.fail(begun, "the connection broke")
	case begun == loadfile.CutStream:
		return o.fail(loadfile.BadStream, "the answer cannot be read")
	case strings.Contains(err.Error(), "malformed HTTP"), strings.Contains(err.Error(), "server gave HTTP response"):
		return o.fail(loadfile.BadStream, "the server does not speak HTTP, or https where http was expected")
	case isTLS(err):
		return o.fail(loadfile.Connect, "the server's certificate was refused: "+certificateRemedy)
	}
	return o.fail(loadfile.Other, "the request failed")
}

func isBroken(err error) bool {
	ends := []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE,
		syscall.ECONNABORTED}
	return slices.ContainsFunc(ends, func(e error) bool { return errors.Is(err, e) }) ||
		strings.Contains(err.Error(), "server closed idle connection") ||
		strings.Contains(err.Error(), "transport connection broken")
}

func isTLS(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(tls.RecordHeaderError))
}

// certificateRemedy ends a sentence about a certificate that this machine does not trust.
const certificateRemedy = "name the authority's certificate with --cacert, or do not check it with --insecure"

// maxQuote bounds the quoted text of a server.
const maxQuote = 200

// quoted returns what a server said, cut where it is long. It may repeat the key, which goes before the cut: half a key
// would not be recognised.
func (c *client) quoted(b []byte) string {
	text := strings.TrimSpace(string(b))
	if c.key != "" {
		text = strings.ReplaceAll(text, c.key, secret.Redacted)
	}
	if len(text) > maxQuote {
		return text[:maxQuote] + "…"
	}
	return text
}

// arrival is a connection that records when bytes last arrived at its socket. net/http passes them on through a buffer
// and another goroutine, so a body is read later than its bytes arrive.
type arrival struct {
	net.Conn
	at atomic.Pointer[time.Time] // nil: none yet
}

func (a *arrival) Read(b []byte) (int, error) {
	n, err := a.Conn.Read(b)
	if n > 0 {
		a.at.Store(new(time.Now()))
	}
	return n, err
}

// last returns when bytes last arrived.
func (a *arrival) last() time.Time { return report.ValueOr(a.at.Load(), time.Time{}) }

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// timed wraps dial so that each connection records its last read.
func (dial dialer) timed(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &arrival{Conn: c}, nil
}

// arrivalOf finds the arrival under a connection that may be encrypted; nil if there is none.
func arrivalOf(c net.Conn) *arrival {
	if encrypted, ok := c.(*tls.Conn); ok {
		c = encrypted.NetConn()
	}
	a, _ := c.(*arrival)
	return a
}

// Intervals and limits for health requests.
const (
	pollEvery   = 200 * time.Millisecond
	pollTimeout = 5 * time.Second // for one request
)

// waitHealthy waits until the server answers /health with 200. A server without /health is healthy once it lists its
// models.
func (c *client) waitHealthy(ctx context.Context, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	path, last := "/health", "it was not asked"
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return failf(ErrNotHealthy,
				"the server did not become healthy within %s: %s; start it, name its address with --url, "+
					"or wait longer with --health-timeout",
				timeout, last)
		}
		status, _, err := c.get(ctx, path, min(left, pollTimeout))
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrNotHealthy):
			return err
		case isFinal(err):
			return failf(ErrNotHealthy, "the server cannot be reached: %s", reason(err))
		case err != nil:
			last = reason(err)
		case status == http.StatusOK:
			return nil
		case status == http.StatusNotFound && path == "/health":
			path = "/v1/models"
			continue
		default:
			last = fmt.Sprintf("%s answers HTTP %d", path, status)
		}
		if !sleepUntil(ctx, time.Now().Add(min(pollEvery, max(time.Until(deadline), time.Millisecond)))) {
			return context.Cause(ctx)
		}
	}
}

// isFinal reports whether waiting for the server cannot help: its host name does not exist, or its certificate is not
// trusted.
func isFinal(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound || errors.As(err, new(*tls.CertificateVerificationError))
}

// reason describes why a request to the server failed.
func reason(err error) string {
	var op *net.OpError
	switch {
	case errors.As(err, new(*net.DNSError)):
		return "its host name is not known; look at --url"
	case errors.Is(err, context.DeadlineExceeded):
		return "it accepts connections and does not answer"
	case errors.As(err, &op) && op.Op == "dial":
		return "nothing accepts connections there"
	case isTLS(err):
		return "its certificate was refused; " + certificateRemedy
	}
	return "its answer is not HTTP, or it breaks the connection"
}

// get sends a GET request and reads its short answer. A server that wants a key is an error.
func (c *client) get(ctx context.Context, path string, timeout time.Duration) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	res, err := c.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden {
		return 0, nil, failf(ErrNotHealthy,
			"the server wants a key (HTTP %d for %s): name the environment variable that holds it with --api-key-env",
			res.StatusCode, path)
	}
	body, err = io.ReadAll(io.LimitReader(res.Body, 4<<20))
	return res.StatusCode, body, err
}

func (c *client) firstModel(ctx context.Context, timeout time.Duration) (string, error) {
	none := func(why string) (string, error) {
		return "", failf(ErrNotHealthy,
			"the server does not say which model it serves%s; name the model with --model", why)
	}
	status, body, err := c.get(ctx, "/v1/models", min(timeout, 2*pollTimeout))
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, ErrNotHealthy):
		return "", err
	case err != nil:
		return none(": " + reason(err))
	case status != http.StatusOK:
		return none(fmt.Sprintf(" (/v1/models answers HTTP %d)", status))
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil || len(list.Data) == 0 || list.Data[0].ID == "" {
		return none(" (/v1/models lists none)")
	}
	return list.Data[0].ID, nil
}
