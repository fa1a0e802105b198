package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/nsys-llm/explain/analyze/limit"
)

// maxAnswer bounds an answer in bytes. That includes artifacts, which have a lower limit of their own.
const maxAnswer = 128 << 20

// transport adds the token, on the API's host only, and repeats a request if that is safe: GET, HEAD, PATCH and DELETE,
// and what [repeatable] marks. An answer that means "later" becomes a [limited] error, so that no caller needs a timer.
type transport struct {
	next  http.RoundTripper
	tries *tries
	api   *url.URL // nil: the token goes nowhere
	token string
}

type repeatableKey struct{}

// repeatable marks a POST that may be sent twice: a query, or one whose repetition changes nothing.
func repeatable(ctx context.Context) context.Context {
	return context.WithValue(ctx, repeatableKey{}, true)
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	again := ctx.Value(repeatableKey{}) != nil
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodDelete:
		again = true
	}
	for try := 1; ; try++ {
		resp, err := t.once(req)
		why := t.tries.later(resp, err)
		if why == nil || ctx.Err() != nil {
			return resp, err
		}
		if resp != nil {
			resp.Body.Close()
		}
		if !again || !t.tries.wait(ctx, why, try) {
			return nil, why
		}
	}
}

// once sends a copy of the request and its body.
func (t *transport) once(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), limit.Wait(requestTimeout))
	out := req.Clone(ctx)
	out.Header.Del("Authorization")
	if t.api != nil && t.token != "" && sameOrigin(req.URL, t.api) {
		out.Header.Set("Authorization", "Bearer "+t.token)
	}
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			cancel()
			return nil, err
		}
		out.Body = body
	}
	resp, err := t.next.RoundTrip(out)
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &answer{ReadCloser: resp.Body, left: maxAnswer, done: cancel}
	if resp.StatusCode >= 400 { // small; its text says what it means
		b, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
		resp.Body = io.NopCloser(bytes.NewReader(b))
	}
	return resp, nil
}

// answer is a body that ends in an error if it is too long, and stops its time limit when closed.
type answer struct {
	io.ReadCloser
	left int64
	done context.CancelFunc
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if a.left -= int64(n); a.left < 0 {
		return 0, fmt.Errorf("answer is larger than %d bytes", int64(maxAnswer))
	}
	return n, err
}

func (a *answer) Close() error {
	defer a.done()
	return a.ReadCloser.Close()
}

// message is the text of an error answer, and whether it names a secondary rate limit. The body stays readable.
func message(resp *http.Response) (body string, secondary bool) {
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", false
	}
	resp.Body = io.NopCloser(bytes.NewReader(b))
	body = strings.ToLower(string(b))
	return body, strings.Contains(body, "secondary rate limit") || strings.Contains(body, "secondary-rate-limits") ||
		strings.Contains(body, "abuse-rate-limits")
}

// errNetwork is an error of the network with all addresses removed.
func errNetwork(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
