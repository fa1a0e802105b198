package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-github/v62/github"
)

// File is a file out of an artifact, or of the repository.
type File struct {
	Name string // slash-separated path in the artifact: free text of whoever uploaded it
	Data []byte
}

// Baseline is what to compare with.
type Baseline struct {
	Files    []File // the .json files of the artifact, by name
	SHA      string // commit that was measured
	RunID    int64
	Source   string   // "artifact explain-baseline of run 123 at abc1234 (merge base)"
	Warnings []string // not the merge base, artifacts that could not be used, …: one line each
}

// NoBaseline is the error where GitHub has nothing to compare with: budgets are judged and it is a first run. A baseline
// that is there and cannot be had (a permission is missing, GitHub has trouble, no artifact can be read) is another error:
// a gate that takes it for a first run would pass for ever.
type NoBaseline struct{ Reason string }

func (e *NoBaseline) Error() string { return "no baseline: " + e.Reason }

// BaselineQuery says which artifact is wanted.
type BaselineQuery struct {
	Artifact string // its name
	Branch   string // it must come from a run on this branch of this repository, never of a fork
	HeadSHA  string // the commit under test: artifacts of it are no baseline
}

const (
	needArtifacts = "actions: read"
	maxAncestors  = 50
	// maxArtifactPages bounds the search for an artifact: the newest 1,000 with that name.
	maxArtifactPages = 10
	// maxAttempts bounds how many artifacts are tried, where one after the other cannot be used.
	maxAttempts = 5
)

// trustedEvents are the events whose runs measure what is on the branch. A run of another event can be on the branch by
// name and have measured somebody else's commit: issue_comment, workflow_run and pull_request_target run there too.
var trustedEvents = []string{"push", "schedule", "workflow_dispatch"}

// candidate is an artifact that may be the baseline.
type candidate struct {
	artifact *github.Artifact
	distance int // 0 merge base, 1 its nearest ancestor of 50, …; maxAncestors+1 where it is none of them
}

// Baseline finds the artifact that is nearest to the head: of the merge base, else of its nearest ancestor among 50, else
// the newest on the branch, with a warning. Artifacts that cannot be used are passed over, with a warning each. The error
// is *NoBaseline where there is none.
func (c *Client) Baseline(ctx context.Context, q BaselineQuery) (*Baseline, error) {
	if q.Artifact == "" || q.Branch == "" {
		return nil, &NoBaseline{"no artifact or no base branch is named"}
	}
	b := &Baseline{}
	mergeBase := ""
	if q.HeadSHA != "" {
		var err error
		if mergeBase, err = c.mergeBase(ctx, q); err != nil {
			if stop := asLimited(err) != nil || errors.Is(err, context.Canceled); stop {
				return nil, c.trouble("find the merge base", "contents: read", err)
			}
			b.Warnings = append(b.Warnings, c.trouble("find the merge base", "contents: read", err).Error())
		}
	}
	all, cut, err := c.onBranch(ctx, q, mergeBase)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		none := fmt.Sprintf("no artifact %s from a run on %s of this repository", oneLine(q.Artifact, 80), oneLine(q.Branch, 80))
		if cut {
			none += fmt.Sprintf(" among the newest %d of that name", maxArtifactPages*perPage)
		}
		return nil, &NoBaseline{none}
	}
	if mergeBase != "" && all[0].distance != 0 {
		if err := c.rank(ctx, all, mergeBase); err != nil {
			b.Warnings = append(b.Warnings, err.Error())
		}
	}
	for i, cand := range all {
		if i == maxAttempts {
			break
		}
		files, err := c.use(ctx, cand.artifact)
		var unusable *unusable
		if errors.As(err, &unusable) {
			b.Warnings = append(b.Warnings, unusable.Error())
			continue
		}
		if err != nil {
			return nil, err
		}
		run := cand.artifact.GetWorkflowRun()
		b.Files, b.SHA, b.RunID = files, run.GetHeadSHA(), run.GetID()
		b.Source = fmt.Sprintf("artifact %s of run %d at %s (%s)", oneLine(q.Artifact, 80), b.RunID, short(b.SHA), cand.nearness(mergeBase, q))
		if cand.distance > maxAncestors {
			b.Warnings = append(b.Warnings, fmt.Sprintf("the baseline is the newest of %s and not of the merge base: what else was merged there counts as this change's", oneLine(q.Branch, 80)))
		}
		return b, nil
	}
	return nil, &Trouble{Doing: "use any artifact " + oneLine(q.Artifact, 80), Said: strings.Join(b.Warnings, "; ")}
}

// nearness says, in the description of a source, where the baseline stands.
func (c *candidate) nearness(mergeBase string, q BaselineQuery) string {
	from := "the merge base " + short(mergeBase)
	if mergeBase == q.HeadSHA { // a push to the branch itself
		from = "the head"
	}
	switch {
	case c.distance == 0:
		return "merge base"
	case c.distance == 1:
		return "1 commit before " + from
	case c.distance <= maxAncestors:
		return fmt.Sprintf("%d commits before %s", c.distance, from)
	}
	return "newest of " + oneLine(q.Branch, 80)
}

// mergeBase is where the head left the branch.
func (c *Client) mergeBase(ctx context.Context, q BaselineQuery) (string, error) {
	comparison, _, err := c.api.Repositories.CompareCommits(ctx, c.owner, c.repo, q.Branch, q.HeadSHA, &github.ListOptions{PerPage: 1})
	if err != nil {
		return "", err
	}
	sha := comparison.GetMergeBaseCommit().GetSHA()
	if !commit.MatchString(sha) {
		return "", errors.New("GitHub names none: the histories may be unrelated")
	}
	return sha, nil
}

// onBranch are the artifacts of the query's name that runs on its branch of this very repository left, newest first; just
// those of the merge base where there are some. cut says that the search ended before the list did.
func (c *Client) onBranch(ctx context.Context, q BaselineQuery, mergeBase string) (all []candidate, cut bool, err error) {
	page := 1
	for n := 0; page != 0; n++ {
		if n == maxArtifactPages {
			cut = true
			break
		}
		// The package has no filter by name.
		req, err := c.api.NewRequest(http.MethodGet, fmt.Sprintf("repos/%s/%s/actions/artifacts?name=%s&per_page=%d&page=%d", c.owner, c.repo, url.QueryEscape(q.Artifact), perPage, page), nil)
		if err != nil {
			return nil, false, c.trouble("list artifacts", needArtifacts, err)
		}
		var list github.ArtifactList
		resp, err := c.api.Do(ctx, req, &list)
		if err != nil {
			return nil, false, c.trouble("list artifacts", needArtifacts, err)
		}
		for _, a := range list.Artifacts {
			run := a.GetWorkflowRun()
			switch {
			case a.GetName() != q.Artifact || a.GetExpired() || run.GetHeadBranch() != q.Branch:
			case run.GetRepositoryID() == 0 || run.GetHeadRepositoryID() != run.GetRepositoryID(): // a fork's
			case run.GetID() == c.run.ID || run.GetHeadSHA() == q.HeadSHA:
			default:
				cand := candidate{a, maxAncestors + 1}
				if run.GetHeadSHA() == mergeBase {
					cand.distance = 0
				}
				all = append(all, cand)
			}
		}
		sortCandidates(all)
		if len(all) > 0 && all[0].distance == 0 {
			break
		}
		page = resp.NextPage
	}
	return all, cut, nil
}

// sortCandidates puts the nearest first and, among equals, the newest.
func sortCandidates(all []candidate) {
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(b.artifact.GetID(), a.artifact.GetID()))
	})
}

// rank sorts candidates by how far before the merge base they are.
func (c *Client) rank(ctx context.Context, all []candidate, mergeBase string) error {
	list, _, err := c.api.Repositories.ListCommits(ctx, c.owner, c.repo, &github.CommitsListOptions{SHA: mergeBase, ListOptions: github.ListOptions{PerPage: maxAncestors + 1}})
	if err != nil {
		return c.trouble("list the commits before the merge base", "contents: read", err)
	}
	distance := map[string]int{}
	for i, commit := range list {
		if i <= maxAncestors {
			distance[commit.GetSHA()] = i
		}
	}
	for i := range all {
		if d, ok := distance[all[i].artifact.GetWorkflowRun().GetHeadSHA()]; ok {
			all[i].distance = d
		}
	}
	sortCandidates(all)
	return nil
}

// use checks the run that left an artifact, and fetches it.
func (c *Client) use(ctx context.Context, a *github.Artifact) ([]File, error) {
	id := a.GetWorkflowRun().GetID()
	run, _, err := c.api.Actions.GetWorkflowRunByID(ctx, c.owner, c.repo, id)
	if status(err) == http.StatusNotFound {
		return nil, &unusable{a.GetID(), "its run is gone"}
	}
	if err != nil {
		return nil, c.trouble(fmt.Sprintf("read run %d", id), needArtifacts, err)
	}
	if !slices.Contains(trustedEvents, run.GetEvent()) {
		return nil, &unusable{a.GetID(), fmt.Sprintf("run %d was started by %s, not by one of %s", id, oneLine(run.GetEvent(), 40), strings.Join(trustedEvents, ", "))}
	}
	if run.GetHeadSHA() != a.GetWorkflowRun().GetHeadSHA() || run.GetHeadBranch() != a.GetWorkflowRun().GetHeadBranch() {
		return nil, &unusable{a.GetID(), fmt.Sprintf("run %d and its artifact name different commits", id)}
	}
	return c.download(ctx, a)
}
