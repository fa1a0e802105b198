package gate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/limit"
	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// maxPayload bounds the payload of an event in bytes; GitHub sends none over 25 MB.
const maxPayload = 32 << 20

// payload is the part of an event that matters here. The rest is not read: go-github's types for events refuse a
// payload whose shape differs anywhere (the repository of a push has other types than that of a pull request), which
// would stop a gate for a field that it does not need.
type payload struct {
	Action      string `json:"action"`
	Number      int    `json:"number"`
	Ref         string `json:"ref"`
	Before      string `json:"before"`
	After       string `json:"after"`
	PullRequest *Pull  `json:"pull_request"`
	Repository  struct {
		Repo
		DefaultBranch string `json:"default_branch"`
	} `json:"repository"`
	Issue *struct {
		Number      int              `json:"number"`
		PullRequest *json.RawMessage `json:"pull_request"`
	} `json:"issue"`
	MergeGroup *struct {
		HeadSHA string `json:"head_sha"`
		HeadRef string `json:"head_ref"`
		BaseSHA string `json:"base_sha"`
		BaseRef string `json:"base_ref"`
	} `json:"merge_group"`
	WorkflowRun *Trigger `json:"workflow_run"`
}

// readEvent fills in what the payload of the event says. Missing fields stay empty; the others must be what GitHub
// writes.
func (r *Run) readEvent(from io.Reader) error {
	b, err := io.ReadAll(limit.Limit{Bytes: maxPayload}.Reader(from))
	if err != nil {
		return err
	}
	var p payload
	if err := json.Unmarshal(b, &p); err != nil {
		return fmt.Errorf("is not the JSON that GitHub writes: %w", err)
	}
	r.Action, r.DefaultBranch = p.Action, p.Repository.DefaultBranch
	if t := p.WorkflowRun; t != nil {
		t.Attempt = cmp.Or(t.Attempt, 1)
		if t.RunID < 1 || t.Attempt < 1 {
			return errors.New("workflow_run has no id")
		}
		r.Trigger = t
		return errors.Join(validCommits("workflow_run.head_sha", t.HeadSHA),
			validRepo("workflow_run.head_repository", t.HeadRepo.Name))
	}
	if r.Pull = p.PullRequest; r.Pull != nil {
		err := r.Pull.complete(p.Number, p.Repository.Repo)
		r.Number = r.Pull.Number
		return err
	}
	if i := p.Issue; i != nil && i.PullRequest != nil {
		if r.Number = i.Number; i.Number < 1 {
			return errors.New("issue has no number")
		}
		return nil
	}
	if m := p.MergeGroup; m != nil {
		r.Push = &Push{Before: m.BaseSHA, After: m.HeadSHA, Ref: strings.TrimPrefix(m.BaseRef, "refs/heads/")}
		if n := queueRef().FindStringSubmatch(m.HeadRef); n != nil {
			r.Push.Queued, _ = strconv.Atoi(n[1]) // a number of at most nine digits
		}
		return validCommits("merge_group", m.BaseSHA, m.HeadSHA)
	}
	if p.After != "" {
		r.Push = &Push{Before: p.Before, After: p.After, Ref: strings.TrimPrefix(p.Ref, "refs/heads/")}
		if strings.Trim(p.Before, "0") == "" { // a new branch has zeros before it
			r.Push.Before = ""
		}
		return validCommits("push", r.Push.Before, r.Push.After)
	}
	return nil
}

// queueRef is the branch of a merge queue; the number is that of the last pull request in the group.
var queueRef = pattern.New(`^refs/heads/gh-readonly-queue/.+/pr-([0-9]{1,9})-[0-9a-f]+$`)

// complete fills in what a payload leaves out, by the number and the repository of the event, and checks the rest.
func (p *Pull) complete(number int, repo Repo) error {
	p.Number, p.Fork = cmp.Or(p.Number, number), !p.Head.Repo.is(cmp.Or(p.Base.Repo, repo))
	if p.Number < 1 {
		return errors.New("pull_request has no number")
	}
	return errors.Join(validCommits("pull_request", p.Head.SHA, p.Base.SHA, p.MergeSHA),
		validRepo("pull_request.head.repo", p.Head.Repo.Name))
}

// is compares two repositories by id if both have one, else by name. Unknown repositories are never the same.
func (r Repo) is(other Repo) bool {
	if r.ID != 0 && other.ID != 0 {
		return r.ID == other.ID
	}
	return r.Name != "" && strings.EqualFold(r.Name, other.Name)
}

func validCommits(what string, commits ...string) error {
	for _, c := range commits {
		if c != "" && !IsCommit(c) {
			return fmt.Errorf("%s holds something that is not a commit", what)
		}
	}
	return nil
}

func validRepo(what, name string) error {
	if name != "" && !isRepository(name) {
		return fmt.Errorf("%s is not owner/name", what)
	}
	return nil
}
