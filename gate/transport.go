package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"github.com/nsys-llm/explain/analyze/limit"
)

const (
	// maxAnswer bounds an answer in bytes. That includes artifacts, which have a lower limit of their own.
	maxAnswer = 128 << 20
	maxTries  = 3
	// maxWait is the longest wait that is worth it in a job. If GitHub asks for more, trying sooner would only prolong the
	// limit, so the request fails at once.
	maxWait = 60 * time.Second
	// unstatedWait is what GitHub's documentation asks for if a secondary limit states no time.
	unstatedWait = 60 * time.Second
	// requestTimeout bounds one request, answer included.
	requestTimeout = 2 * time.Minute
)

// transport adds the token, on the API's host only, and repeats a request if that is safe: all but a POST,
// unless [repeatable] marks it. Every answer from 400 on becomes a [refusal], so that no caller needs a timer.
type transport struct {
	next  http.RoundTripper
	tries *tries
	api   *url.URL // nil: the token goes nowhere
	token string
}

// tries decides when a request is sent again.
type tries struct {
	sleep  func(context.Context, time.Duration) error
	now    func() time.Time // which resets of rate limits are compared with
	jitter func() float64   // in [0, 1)
	notice func(string)     // gets every wait and every skipped item, as one line without a newline
}

// refusal is an answer that refuses a request, or the lack of one.
type refusal struct {
	status int           // of HTTP; 0 if there was no answer
	said   string        // by GitHub or the network, in one line
	later  bool          // the same request may be answered later
	asked  time.Duration // what GitHub asks to wait; 0: it does not say
}

func (r *refusal) Error() string { return r.said }

// refused is the refusal in an error; the zero value if the error is another one.
func refused(err error) refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return *r
	}
	return refusal{}
}

type repeatableKey struct{}

// repeatable marks a POST that may be sent twice: a query, or one whose repetition changes nothing.
func repeatable(ctx context.Context) context.Context {
	return context.WithValue(ctx, repeatableKey{}, true)
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	again := req.Method != http.MethodPost || ctx.Value(repeatableKey{}) != nil
	for try := 1; ; try++ {
		resp, err := t.once(req)
		if err == nil || ctx.Err() != nil {
			return resp, err
		}
		if why := refused(err); !why.later || !again || !t.tries.wait(ctx, &why, try) {
			return nil, err
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
		out.Body, _ = req.GetBody() // it is in memory
	}
	resp, err := t.next.RoundTrip(out)
	if err != nil {
		cancel()
		return nil, unanswered(err)
	}
	resp.Body = &answer{limit.Limit{Bytes: maxAnswer}.Reader(resp.Body), resp.Body, cancel}
	if resp.StatusCode < 400 {
		return resp, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // small; it says what the answer means
	if err != nil {
		return nil, unanswered(err)
	}
	return nil, t.tries.refusal(resp, text)
}

// answer is a body that ends in an error if it is too long, and stops its time limit when closed.
type answer struct {
	io.Reader
	body io.Closer
	done context.CancelFunc
}

func (a *answer) Close() error {
	defer a.done()
	return a.body.Close()
}

// unanswered is the lack of an answer; the error of a context that somebody ended stays as it is.
func unanswered(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = limit.Late("a request", limit.Wait(requestTimeout))
	}
	return &refusal{said: "no answer: " + oneLine(errNetwork(err).Error(), 200), later: true}
}

// refusal reads an answer that refuses.
func (t *tries) refusal(resp *http.Response, text []byte) *refusal {
	r := &refusal{status: resp.StatusCode, later: true}
	said := strings.ToLower(string(text))
	secondary := strings.Contains(said, "secondary rate limit") || strings.Contains(said, "secondary-rate-limits") ||
		strings.Contains(said, "abuse-rate-limits")
	asked, stated := t.asked(resp.Header)
	switch code := r.status; {
	case code == http.StatusInternalServerError || code == http.StatusBadGateway ||
		code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout:
		r.said, r.asked = "GitHub has trouble", asked
	case code != http.StatusForbidden && code != http.StatusTooManyRequests ||
		code == http.StatusForbidden && !secondary && !stated && !usedUp(resp.Header): // a permission is missing
		var answer github.ErrorResponse
		if json.Unmarshal(text, &answer) != nil {
			answer = github.ErrorResponse{}
		}
		r.later, r.said = false, fmt.Sprintf("GitHub says %d %s", code, oneLine(answer.Message, 200))
		if len(answer.Errors) > 0 && answer.Errors[0].Message != "" {
			r.said += ": " + oneLine(answer.Errors[0].Message, 200)
		}
		return r
	case usedUp(resp.Header):
		r.said, r.asked = "the token's rate limit is used up", asked
	case stated:
		r.said, r.asked = "GitHub's secondary rate limit", asked
	default:
		r.said, r.asked = "GitHub's secondary rate limit", unstatedWait
	}
	r.said = fmt.Sprintf("%s (%d)", r.said, r.status)
	if r.asked > maxWait {
		r.said += fmt.Sprintf(", GitHub asks to wait %s", r.asked.Round(time.Second))
	}
	return r
}

func usedUp(h http.Header) bool { return h.Get("X-RateLimit-Remaining") == "0" }

// asked is how long GitHub asks to wait: Retry-After, in seconds or as a date, else until the reset of a rate limit
// that is used up. stated says whether there was a Retry-After.
func (t *tries) asked(h http.Header) (d time.Duration, stated bool) {
	after := h.Get("Retry-After")
	if s, err := strconv.ParseUint(after, 10, 31); err == nil {
		return time.Duration(s) * time.Second, true
	}
	if at, err := http.ParseTime(after); err == nil {
		return max(at.Sub(t.now()), 0), true
	}
	if !usedUp(h) {
		return 0, false
	}
	if s, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64); err == nil {
		return max(time.Unix(s, 0).Sub(t.now()), 0), false
	}
	return unstatedWait, false
}

// wait waits before the next try; false if there is none. It waits as long as GitHub asks, plus up to a second so that
// jobs that were refused together do not return together. If GitHub does not say, it waits 0.5 to 1.5 s, then twice
// that.
func (t *tries) wait(ctx context.Context, why *refusal, try int) bool {
	if try >= maxTries || why.asked > maxWait {
		return false
	}
	d := time.Duration((0.5 + t.jitter()) * float64(time.Second<<(try-1)))
	if why.asked > 0 {
		d = why.asked + time.Duration(t.jitter()*float64(time.Second))
	}
	shown := d.Round(100 * time.Millisecond)
	t.notice(fmt.Sprintf("%s; trying again in %s (try %d of %d)", why.said, shown, try+1, maxTries))
	return t.sleep(ctx, d) == nil
}

// sleep waits in real time, or until the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errNetwork is an error of the network with all addresses removed.
func errNetwork(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
