package gate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"
)

// clientOptions of a client. The zero value talks to GitHub without a token.
type clientOptions struct {
	Token     string            // goes to the API's host and to no other
	Transport http.RoundTripper // nil: http.DefaultTransport

	// Sleep waits between tries; nil: real time. Tests record what was asked for.
	Sleep func(ctx context.Context, d time.Duration) error
	// Now is the time that rate-limit resets are compared with; nil: time.Now.
	Now func() time.Time
	// Jitter is in [0, 1); nil: random.
	Jitter func() float64
	// Notice gets every wait and every skipped item, as one line without a newline; nil: they are dropped.
	Notice func(string)
}

// Client talks to the API of one repository. It is not for use by several goroutines at once.
type client struct {
	owner, repo string
	run         *Run
	token       string
	api         *github.Client
	graphql     string       // address of the GraphQL API
	tries       *tries       // when to ask again
	bare        *http.Client // for storage: never carries the token
	login       string       // of the token's owner; empty until it was asked for
}

// requestTimeout bounds one request, answer included.
const requestTimeout = 2 * time.Minute

// New makes a client for the repository of the run. An API URL that is not http(s), or holds credentials, is an error.
func newClient(run *Run, o clientOptions) (*client, error) {
	base, err := parseBase(strings.TrimSuffix(run.APIURL, "/"))
	if err != nil {
		return nil, fmt.Errorf("the API's address %w", err)
	}
	if !isRepository(run.Repository) {
		return nil, errors.New("the repository is not owner/name")
	}
	if strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New(
			"the token holds blanks, newlines or other characters that no token has: check how the secret was stored")
	}
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	t := &tries{sleep: o.Sleep, now: o.Now, jitter: o.Jitter, notice: o.Notice}
	c := &client{run: run, token: o.Token, tries: t, graphql: graphqlURL(base)}
	c.owner, c.repo, _ = strings.Cut(run.Repository, "/")
	c.api = github.NewClient(&http.Client{
		Transport:     &transport{next: o.Transport, tries: t, api: base, token: o.Token},
		CheckRedirect: sameOriginOnly(base),
	})
	base.Path += "/" // go-github resolves paths against it, and panics without the slash
	c.api.BaseURL = base
	c.bare = &http.Client{Transport: &transport{next: o.Transport, tries: t},
		CheckRedirect: storageRedirect(base.Scheme)}
	return c, nil
}

// graphqlURL is the GraphQL API beside a REST API: /graphql on GitHub's own, /api/graphql beside /api/v3 on Enterprise.
// It ignores GITHUB_GRAPHQL_URL, which still names GitHub's if somebody points GITHUB_API_URL elsewhere.
func graphqlURL(base *url.URL) string {
	u := *base
	u.Path = strings.TrimSuffix(u.Path, "/v3") + "/graphql"
	return u.String()
}

// sameOriginOnly follows a redirect of the API (a repository that was renamed) on its own host only, and never turns a
// write into a read.
func sameOriginOnly(base *url.URL) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		switch {
		case !sameOrigin(req.URL, base):
			return errors.New("GitHub's API answers with a redirect to another host")
		case req.Method != via[0].Method:
			return errors.New("GitHub's API answers a write with a redirect: was the repository renamed?")
		case len(via) > 5:
			return errors.New("GitHub's API redirects in circles")
		}
		return nil
	}
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host)
}

// storageRedirect allows only https redirects of a download if the API itself uses https.
func storageRedirect(scheme string) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if scheme == "https" && req.URL.Scheme != "https" || len(via) > 5 {
			return errors.New("the artifact's storage redirects too often, or away from https")
		}
		return nil
	}
}

// sleep waits in real time, or until the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
