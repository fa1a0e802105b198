package gate

import (
	"context"
	"errors"
	"time"
)

// Errors of FindPull and File; the text says more.
var (
	ErrNoPull    = errors.New("no open pull request")
	ErrHeadMoved = errors.New("the pull request has moved on")
	ErrNotFound  = errors.New("not found")
)

// Pull reads a pull request as it is now.
func (c *Client) Pull(ctx context.Context, number int) (*Pull, error) {
	return nil, errors.New("not written yet")
}

// FindPull finds the open pull request that a run was for, by head repository, branch and commit: the payload of
// workflow_run names none for forks. The error is ErrNoPull where there is none, ErrHeadMoved where its head is another
// commit by now. number, when not 0, picks one of several with the same head; it cannot pick any other.
func (c *Client) FindPull(ctx context.Context, t Trigger, number int) (*Pull, error) {
	return nil, errors.New("not written yet")
}

// Label is a label that is on a pull request now.
type Label struct {
	Name string
	By   string    // login of who put it there last; empty where GitHub does not say
	At   time.Time // zero where GitHub does not say
}

// Label reads, live, whether a label is on the pull request: the payload of a re-run is as old as its first attempt. It
// is nil where the label is not there. Names compare as GitHub compares them, without case.
func (c *Client) Label(ctx context.Context, number int, name string) (*Label, error) {
	return nil, errors.New("not written yet")
}

// File reads a file of the repository at a ref, of at most limit bytes. The error is ErrNotFound where there is none.
func (c *Client) File(ctx context.Context, path, ref string, limit int) ([]byte, error) {
	return nil, errors.New("not written yet")
}

// Status sets the commit status of a head, for workflow_run, whose own check is not on the pull request. It returns why
// it could not, or "" when it could.
func (c *Client) Status(ctx context.Context, s Status) string { return "not written yet" }

// Status of a commit.
type Status struct {
	SHA     string
	OK      bool   // success, else failure
	Context string // name of the check, "explain" say
	Text    string // at most 140 characters, no kernel or range name
	URL     string
}
