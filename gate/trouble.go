package gate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-github/v62/github"
)

// trouble is what GitHub or the network refused. Its text is one line, holds no token and no signed address, and names
// the missing permission if that is the likely reason.
type trouble struct {
	Doing  string // "read the comments of #7"
	Status int    // of HTTP; 0 if there was no answer
	Said   string // GitHub's words, or the network's
	Remedy string // empty if there is none to name
}

func (e *trouble) Error() string {
	s := "cannot " + e.Doing + ": " + e.Said
	if e.Remedy != "" {
		s += "; " + e.Remedy
	}
	return s
}

// trouble turns an error of a request into a [trouble]; the error of an ended context stays as it is. permission is
// what the request needs, as a workflow writes it.
func (c *client) trouble(doing, permission string, err error) error {
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	t := &trouble{Doing: doing}
	var later *limited
	var answer *github.ErrorResponse
	switch {
	case errors.As(err, &later):
		t.Status, t.Said = later.status, later.Error()
	case errors.As(err, &answer) && answer.Response != nil:
		t.Status = answer.Response.StatusCode
		t.Said = fmt.Sprintf("GitHub says %d %s", t.Status, oneLine(answer.Message, 200))
		if len(answer.Errors) > 0 && answer.Errors[0].Message != "" {
			t.Said += ": " + oneLine(answer.Errors[0].Message, 200)
		}
	default:
		t.Said = oneLine(errNetwork(err).Error(), 200)
	}
	if c.token != "" {
		t.Said = strings.ReplaceAll(t.Said, c.token, "***")
	}
	t.Said = strings.TrimSpace(t.Said)
	// the job cannot change who may write to a locked conversation
	if later == nil && !strings.Contains(t.Said, "is locked") {
		t.Remedy = c.remedy(t.Status, permission)
	}
	return t
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
	case write && c.fromFork():
		return "the pull request comes from a fork, whose token can only read, whatever the workflow says: let a second workflow on workflow_run comment (explain gate comment)"
	case status == http.StatusNotFound && !write:
		return "it does not exist, or the job lacks `permissions: " + permission + "`"
	case permission != "":
		return "the job needs `permissions: " + permission + "`"
	}
	return ""
}

// fromFork says whether the token of this run is a fork's: read-only, whatever the workflow asks for.
func (c *client) fromFork() bool {
	return c.run.Pull != nil && c.run.Pull.Fork && strings.HasPrefix(c.run.Event, "pull_request") &&
		c.run.Event != "pull_request_target"
}

// status is the HTTP status of a request's error; 0 if there was no answer.
func status(err error) int {
	var later *limited
	var answer *github.ErrorResponse
	switch {
	case errors.As(err, &later):
		return later.status
	case errors.As(err, &answer) && answer.Response != nil:
		return answer.Response.StatusCode
	}
	return 0
}

// asLimited is the [limited] error inside an error; nil if there is none.
func asLimited(err error) *limited {
	var later *limited
	errors.As(err, &later)
	return later
}
