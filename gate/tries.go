package gate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/nsys-llm/explain/analyze/limit"
)

const (
	maxTries = 3
	// maxWait is the longest wait that is worth it in a job. If GitHub asks for more, trying sooner would only prolong the
	// limit, so the request fails at once.
	maxWait = 60 * time.Second
	// unstatedWait is what GitHub's documentation asks for if a secondary limit states no time.
	unstatedWait = 60 * time.Second
)

// tries decides whether a request is sent again, and when.
type tries struct {
	sleep  func(context.Context, time.Duration) error
	now    func() time.Time
	jitter func() float64
	notice func(string)
}

// limited is an answer, or the lack of one, that means "later".
type limited struct {
	status int           // 0 if there was no answer
	asked  time.Duration // what GitHub asks to wait; 0: it does not say
	what   string
}

func (l *limited) Error() string {
	if l.status == 0 {
		return l.what
	}
	s := fmt.Sprintf("%s (%d)", l.what, l.status)
	if l.asked > maxWait {
		s += fmt.Sprintf(", GitHub asks to wait %s", l.asked.Round(time.Second))
	}
	return s
}

// later is why a request should be sent again; nil if the answer, good or bad, stands.
func (t *tries) later(resp *http.Response, err error) *limited {
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return nil
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = limit.Late("a request", limit.Wait(requestTimeout))
		}
		return &limited{what: "no answer: " + oneLine(errNetwork(err).Error(), 200)}
	}
	asked, stated := t.asked(resp)
	switch code := resp.StatusCode; {
	case code == http.StatusInternalServerError || code == http.StatusBadGateway ||
		code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout:
		return &limited{status: code, asked: asked, what: "GitHub has trouble"}
	case code != http.StatusForbidden && code != http.StatusTooManyRequests:
		return nil
	case resp.Header.Get("X-RateLimit-Remaining") == "0":
		return &limited{status: code, asked: asked, what: "the token's rate limit is used up"}
	default:
		_, secondary := message(resp)
		if code == http.StatusForbidden && !secondary && !stated {
			return nil // a permission is missing
		}
		if !stated {
			asked = unstatedWait
		}
		return &limited{status: code, asked: asked, what: "GitHub's secondary rate limit"}
	}
}

// asked is how long GitHub asks to wait: Retry-After, in seconds or as a date, else until the reset of a rate limit
// that is used up. stated says whether there was a Retry-After.
func (t *tries) asked(resp *http.Response) (d time.Duration, stated bool) {
	if h := resp.Header.Get("Retry-After"); h != "" {
		if s, err := strconv.ParseUint(h, 10, 31); err == nil {
			return time.Duration(s) * time.Second, true
		}
		if at, err := http.ParseTime(h); err == nil {
			return max(at.Sub(t.now()), 0), true
		}
	}
	if resp.Header.Get("X-RateLimit-Remaining") == "0" {
		if s, err := strconv.ParseInt(resp.Header.Get("X-RateLimit-Reset"), 10, 64); err == nil {
			return max(time.Unix(s, 0).Sub(t.now()), 0), false
		}
		return unstatedWait, false
	}
	return 0, false
}

// wait waits before the next try; false if there is none. It waits as long as GitHub asks, plus up to a second so that
// jobs that were refused together do not return together. If GitHub does not say, it waits 0.5 to 1.5 s, then twice
// that.
func (t *tries) wait(ctx context.Context, why *limited, try int) bool {
	if try >= maxTries || why.asked > maxWait {
		return false
	}
	d := time.Duration((0.5 + t.jitter()) * float64(time.Second<<(try-1)))
	if why.asked > 0 {
		d = why.asked + time.Duration(t.jitter()*float64(time.Second))
	}
	t.notice(fmt.Sprintf("%s; trying again in %s (try %d of %d)", why, d.Round(100*time.Millisecond), try+1, maxTries))
	return t.sleep(ctx, d) == nil
}
