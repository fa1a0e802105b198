package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-github/v62/github"

	"github.com/nsys-llm/explain/gate/gitfile"
)

// Errors of findPull, File and runArtifact; the text says more.
var (
	errNoPull    = errors.New("no open pull request")
	errHeadMoved = errors.New("the pull request has moved on")
	ErrNotFound  = gitfile.ErrNotFound
)

const needPulls = "pull-requests: read"

// pull reads a pull request as it is now.
func (c *client) pull(ctx context.Context, number int) (*Pull, error) {
	p, _, err := c.api.PullRequests.Get(ctx, c.owner, c.repo, number)
	if err != nil {
		return nil, c.trouble(fmt.Sprintf("read #%d", number), needPulls, err)
	}
	return livePull(p)
}

// livePull checks a pull request from the API as a payload is checked.
func livePull(p *github.PullRequest) (*Pull, error) {
	branch := func(b *github.PullRequestBranch) Branch {
		return Branch{b.GetSHA(), b.GetRef(), Repo{b.GetRepo().GetID(), b.GetRepo().GetFullName()}}
	}
	pull := &Pull{Number: p.GetNumber(), MergeSHA: p.GetMergeCommitSHA(), Head: branch(p.GetHead()), Base: branch(p.GetBase())}
	if err := pull.complete(0, Repo{}); err != nil {
		return nil, err
	}
	return pull, nil
}

// findPulls finds the open pull requests that a run was for, by head repository, branch and commit: the payload of
// workflow_run names none for forks. The error is errNoPull if there is none, errHeadMoved if its head is another
// commit by now. A number other than 0 picks one of several with the same head; it cannot pick any other.
func (c *client) findPulls(ctx context.Context, t Trigger, number int) ([]*Pull, error) {
	owner, _, ok := strings.Cut(t.HeadRepo.Name, "/")
	if !ok || t.HeadRef == "" || !IsCommit(t.HeadSHA) {
		return nil, fmt.Errorf("%w: the run names no head (was the fork deleted?)", errNoPull)
	}
	var match []*Pull
	moved := 0
	options := &github.PullRequestListOptions{State: "open", Head: owner + ":" + t.HeadRef,
		ListOptions: github.ListOptions{PerPage: perPage}}
	for n := 0; n < maxPages; n++ {
		list, resp, err := c.api.PullRequests.List(ctx, c.owner, c.repo, options)
		if err != nil {
			return nil, c.trouble("list pull requests", needPulls, err)
		}
		for _, p := range list {
			pull, err := livePull(p)
			if err != nil || pull.Head.Ref != t.HeadRef || !pull.Head.Repo.is(t.HeadRepo) {
				continue
			}
			switch {
			case number != 0 && number != pull.Number:
			case pull.Head.SHA == t.HeadSHA:
				match = append(match, pull)
			default:
				moved = pull.Number
			}
		}
		if options.Page = resp.NextPage; options.Page == 0 {
			break
		}
	}
	if len(match) > 0 {
		return match, nil
	}
	if moved != 0 {
		return nil, fmt.Errorf("%w: the head of #%d is not %s any more, a newer run will comment", errHeadMoved, moved,
			ShortRef(t.HeadSHA))
	}
	return nil, fmt.Errorf("%w with head %s of %s", errNoPull, ShortRef(t.HeadSHA), oneLine(t.HeadRepo.Name, 200))
}

// setStatus sets the commit status of a head, since the check of a workflow_run is not on the pull request. Its text
// holds no name of a kernel or range; GitHub takes 140 characters. It returns why it could not, or "" if it could.
func (c *client) setStatus(ctx context.Context, sha string, s *github.RepoStatus) string {
	s.Context, s.Description = new(oneLine(s.GetContext(), 100)), new(oneLine(s.GetDescription(), 139))
	// Setting it twice does no harm.
	if _, _, err := c.api.Repositories.CreateStatus(repeatable(ctx), c.owner, c.repo, sha, s); err != nil {
		return c.trouble("set the status of "+ShortRef(sha), "statuses: write", err).Error()
	}
	return ""
}
