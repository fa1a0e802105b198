package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-github/v62/github"
)

// client talks to the API of one repository. It is not for use by several goroutines at once.
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

// newClient makes a client for the repository of the run. The token goes to the API's host and to no other. An API URL
// that is not http(s), or holds credentials, is an error.
func newClient(run *Run, token string, next http.RoundTripper, t *tries) (*client, error) {
	base, err := parseBase(strings.TrimSuffix(run.APIURL, "/"))
	if err != nil {
		return nil, fmt.Errorf("the API's address %w", err)
	}
	if !isRepository(run.Repository) {
		return nil, errors.New("the repository is not owner/name")
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New(
			"the token holds blanks, newlines or other characters that no token has: check how the secret was stored")
	}
	c := &client{run: run, token: token, tries: t, graphql: graphqlURL(base)}
	c.owner, c.repo, _ = strings.Cut(run.Repository, "/")
	c.api = github.NewClient(&http.Client{
		Transport:     &transport{next: next, tries: t, api: base, token: token},
		CheckRedirect: sameOriginOnly(base),
	})
	base.Path += "/" // go-github resolves paths against it, and panics without the slash
	c.api.BaseURL = base
	c.bare = &http.Client{Transport: &transport{next: next, tries: t}, CheckRedirect: storageRedirect(base.Scheme)}
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

// trouble says what GitHub or the network refused, in one line that holds no token and no signed address; the error of
// an ended context stays as it is. permission is what the request needs, as a workflow writes it: the text names it if
// that is the likely reason.
func (c *client) trouble(doing, permission string, err error) error {
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	r := refused(err)
	r.said = cmp.Or(r.said, oneLine(errNetwork(err).Error(), 200))
	if c.token != "" {
		r.said = strings.ReplaceAll(r.said, c.token, "***")
	}
	r.said = strings.TrimSpace(r.said)
	// the job cannot change who may write to a locked conversation
	if remedy := c.remedy(r.status, permission); remedy != "" && !r.later && !strings.Contains(r.said, "is locked") {
		r.said += "; " + remedy
	}
	return fmt.Errorf("cannot %s: %s", doing, r.said)
}

// remedy says what to change if the token lacks a permission.
func (c *client) remedy(status int, permission string) string {
	write := strings.HasSuffix(permission, ": write")
	switch {
	case status == http.StatusUnauthorized && c.token == "":
		return "no token was given: pass ${{ github.token }}"
	case status == http.StatusUnauthorized:
		return "the token is not valid (any more)"
	case status != http.StatusForbidden && status != http.StatusNotFound:
		return ""
	case write && c.run.ofFork():
		return "the pull request comes from a fork, whose token can only read, whatever the workflow says: let a second workflow on workflow_run comment (explain gate comment)"
	case status == http.StatusNotFound && !write:
		return "it does not exist, or the job lacks `permissions: " + permission + "`"
	case permission != "":
		return "the job needs `permissions: " + permission + "`"
	}
	return ""
}

// ofFork says whether the token of this run is a fork's: read-only, whatever the workflow asks for.
func (r *Run) ofFork() bool {
	return r.Pull != nil && r.Pull.Fork && strings.HasPrefix(r.Event, "pull_request") &&
		r.Event != "pull_request_target"
}
