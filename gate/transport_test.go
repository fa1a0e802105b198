package gate

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-github/v62/github"

	"github.com/nsys-llm/explain/gate/gatetest"
)

// answers is a transport that answers from a list, and keeps what it was asked.
type answers struct {
	list  []*http.Response
	asked []*http.Request
	sent  []string
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(b)
	}
	a.asked, a.sent = append(a.asked, r), append(a.sent, body)
	if len(a.list) == 0 {
		return nil, errors.New("connection refused")
	}
	next := a.list[0]
	a.list = a.list[1:]
	return next, nil
}

func reply(status int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

// clientOf is a client of https://api.example that is answered from a list and never waits.
func clientOf(t *testing.T, a http.RoundTripper, waits *[]time.Duration) *client {
	t.Helper()
	c, err := newClient(&Run{APIURL: "https://api.example", Repository: "octo/llm", ID: 1}, token, a, &tries{jitter: func() float64 { return 0 }, notice: func(string) {},
		now:   func() time.Time { return time.Unix(1_800_000_000, 0) },
		sleep: func(_ context.Context, d time.Duration) error { *waits = append(*waits, d); return nil }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestWaits holds every kind of "later" to the wait it asks for.
func TestWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		first *http.Response
		want  time.Duration // 0: not tried again
	}{
		"server error":                     {reply(500, ""), 500 * time.Millisecond},
		"server error that states a time":  {reply(503, "", "Retry-After", "20"), 20 * time.Second},
		"as a date":                        {reply(503, "", "Retry-After", time.Unix(1_800_000_009, 0).UTC().Format(http.TimeFormat)), 9 * time.Second},
		"a date that has passed":           {reply(503, "", "Retry-After", time.Unix(1_700_000_000, 0).UTC().Format(http.TimeFormat)), 500 * time.Millisecond},
		"a time that is none":              {reply(503, "", "Retry-After", "soon"), 500 * time.Millisecond},
		"not implemented":                  {reply(501, ""), 0},
		"429 without a time":               {reply(429, ""), time.Minute},
		"429 of one minute":                {reply(429, "", "Retry-After", "60"), time.Minute},
		"429 of more":                      {reply(429, "", "Retry-After", "61"), 0},
		"429 of zero":                      {reply(429, "", "Retry-After", "0"), 500 * time.Millisecond},
		"403 of a permission":              {reply(403, `{"message":"Resource not accessible by integration"}`), 0},
		"403 with rate headers to spare":   {reply(403, `{}`, "X-RateLimit-Remaining", "4999", "X-RateLimit-Reset", "1800000005"), 0},
		"403 that states a time":           {reply(403, `{}`, "Retry-After", "5"), 5 * time.Second},
		"403 with the abuse documentation": {reply(403, `{"documentation_url":"https://docs.github.com/rest#abuse-rate-limits"}`), time.Minute},
		"primary limit":                    {reply(403, `{}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1800000030"), 30 * time.Second},
		"primary limit as 429":             {reply(429, `{}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1800000030"), 30 * time.Second},
		"primary limit without a reset":    {reply(403, `{}`, "X-RateLimit-Remaining", "0"), time.Minute},
		"primary limit of an hour":         {reply(403, `{}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1800003600"), 0},
		"not found":                        {reply(404, ""), 0},
	} {
		a := &answers{list: []*http.Response{tc.first, reply(200, `{"number":7}`)}}
		var waits []time.Duration
		_, err := clientOf(t, a, &waits).pull(context.Background(), 7)
		again := len(a.asked) == 2
		if again != (tc.want != 0) || again && (err != nil || len(waits) != 1 || waits[0] != tc.want) {
			t.Errorf("%s: asked %d times, waits %v, error %v", name, len(a.asked), waits, err)
		}
	}
}

// TestJitter: a wait is half to one and a half of its step, or up to a second over what GitHub asks for.
func TestJitter(t *testing.T) {
	for _, j := range []float64{0, 0.25, 0.999} {
		var got []time.Duration
		tr := &tries{jitter: func() float64 { return j }, notice: func(string) {}, sleep: func(_ context.Context, d time.Duration) error { got = append(got, d); return nil }}
		for try := 1; try <= maxTries; try++ {
			if again := tr.wait(context.Background(), &refusal{status: 500}, try); again != (try < maxTries) {
				t.Errorf("try %d: %t", try, again)
			}
		}
		tr.wait(context.Background(), &refusal{status: 429, asked: 7 * time.Second}, 1)
		s := float64(time.Second)
		want := []time.Duration{time.Duration((0.5 + j) * s), time.Duration((0.5 + j) * 2 * s), time.Duration((7 + j) * s)}
		for i := range want {
			if len(got) != 3 || (got[i]-want[i]).Abs() > time.Microsecond {
				t.Errorf("jitter %g: %v, want %v", j, got, want)
			}
		}
	}
}

// TestWritesAreSentWhole: the second try of an edit carries the whole body again.
func TestWritesAreSentWhole(t *testing.T) {
	a := &answers{list: []*http.Response{reply(502, ""), reply(200, `{"id":6}`)}}
	var waits []time.Duration
	u := &upsert{c: clientOf(t, a, &waits), number: 7, want: comment{Body: func(int) string { return "new" }}, marker: marker{key: "gate", stamp: stamp{}}, limit: CommentLimit}
	if p, _ := u.edit(context.Background(), found{id: 6}); p.Action != commentUpdated || len(a.sent) != 2 || a.sent[0] != a.sent[1] || !contains(a.sent[1], "new") {
		t.Errorf("%+v after %q", p, a.sent)
	}
}

// TestLostConnection: a request without an answer is sent again, a create only after a look at the list.
func TestLostConnection(t *testing.T) {
	a := &answers{}
	var waits []time.Duration
	c := clientOf(t, a, &waits)
	_, err := c.pull(context.Background(), 7)
	if err == nil || len(a.asked) != maxTries || err.Error() != "cannot read #7: no answer: connection refused" {
		t.Errorf("asked %d times, error %v", len(a.asked), err)
	}
	a = &answers{list: []*http.Response{reply(200, `[]`)}}
	p := clientOf(t, a, &waits).upsert(context.Background(), 7, comment{Mode: Always, Body: func(int) string { return "x" }})
	var methods []string
	for _, r := range a.asked {
		methods = append(methods, r.Method)
	}
	if p.Action != commentRefused || strings.Join(methods, " ") != "GET POST GET GET GET" {
		t.Errorf("%+v after %v", p, methods)
	}
}

// TestTokenStaysHome: the token goes to the API's host and to no other, on no way around.
func TestTokenStaysHome(t *testing.T) {
	a := &answers{list: []*http.Response{
		reply(301, "", "Location", "https://api.example/repositories/1/pulls/7"), reply(200, `{"number":7}`), // renamed
		reply(301, "", "Location", "https://evil.example/pulls/7"),
		reply(301, "", "Location", "http://api.example/pulls/7"),
		reply(302, "", "Location", "https://storage.example/zip?sig=1"), reply(307, "", "Location", "https://storage2.example/zip"), reply(404, ""),
		reply(301, "", "Location", "https://evil.example/zip"), reply(200, ""), // GitHub moves an artifact: followed, without the token
		reply(302, "", "Location", "http://storage.example/zip"),
	}}
	var waits []time.Duration
	c := clientOf(t, a, &waits)
	if _, err := c.pull(context.Background(), 7); err != nil {
		t.Error(err)
	}
	for range 2 {
		if _, err := c.pull(context.Background(), 7); err == nil || !contains(err.Error(), "another host") {
			t.Errorf("error %v", err)
		}
	}
	art := &github.Artifact{ID: github.Int64(5)}
	for _, want := range []string{"no longer", "GitHub says 200", "not https"} {
		if _, err := c.download(context.Background(), art); err == nil || !contains(err.Error(), want) || contains(err.Error(), "sig=") {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if len(a.list) != 0 {
		t.Errorf("%d answers are left", len(a.list))
	}
	for _, r := range a.asked {
		if home := r.URL.Host == "api.example" && r.URL.Scheme == "https"; home != (r.Header.Get("Authorization") == "Bearer "+token) {
			t.Errorf("%s: authorization %q", r.URL, r.Header.Get("Authorization"))
		}
	}
}

// TestRedirectedWrite: a redirect never turns a write into a read that looks like success.
func TestRedirectedWrite(t *testing.T) {
	a := &answers{list: []*http.Response{reply(200, `[]`), reply(301, "", "Location", "https://api.example/repositories/1/issues/7/comments")}}
	var waits []time.Duration
	p := clientOf(t, a, &waits).upsert(context.Background(), 7, comment{Mode: Always, Body: func(int) string { return "x" }})
	if p.Action != commentRefused || !contains(p.Reason, "was the repository renamed?") {
		t.Errorf("%+v", p)
	}
}

// TestLongAnswer: an answer without end is cut off.
func TestLongAnswer(t *testing.T) {
	a := &answers{list: []*http.Response{{StatusCode: 200, Body: io.NopCloser(zeros{})}}}
	resp, err := (&transport{next: a}).once(httptest.NewRequest(http.MethodGet, "https://api.example", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); err == nil || n > maxAnswer {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// zeros never end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// TestRealTransport: with nothing injected, a client works over a real connection, and a lost one heals.
func TestRealTransport(t *testing.T) {
	srv := httptest.NewServer(gatetest.New(gatetest.Scenario{Token: token, Pulls: []gatetest.Pull{{Number: 7, HeadSHA: sha("a")}}}))
	defer srv.Close()
	run := pullRun()
	run.APIURL = srv.URL
	c, err := newClient(run, token, &dropFirst{}, &tries{jitter: func() float64 { return 0 }, notice: func(string) {}, now: time.Now, sleep: func(ctx context.Context, _ time.Duration) error { return sleep(ctx, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := c.pull(context.Background(), 7); err != nil || p.Head.SHA != sha("a") {
		t.Errorf("%+v, %v", p, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.pull(ctx, 7); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if err := sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
