package gate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-github/v62/github"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// File is a file from an artifact or from the repository.
type File struct {
	Name string // slash-separated path in the artifact: free text from the job that uploaded it
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

// NoBaseline is the error if GitHub has nothing to compare with. If a baseline exists and cannot be read (a permission
// is missing, GitHub has trouble, every artifact is damaged), the error is another one.
type NoBaseline struct {
	Reason string
	// NeverRan says that the branch has never run the workflow, so nobody could have made a baseline. Otherwise it has
	// another name, has expired or was deleted.
	NeverRan bool
}

func (e *NoBaseline) Error() string { return "no baseline: " + e.Reason }

// baselineQuery says which artifact is wanted.
type baselineQuery struct {
	Artifact string // its name
	Branch   string // it must come from a run on this branch of this repository, never of a fork
	HeadSHA  string // the commit under test: its own artifacts cannot be the baseline
	Again    bool   // but those of another run of it can: a schedule measures the branch once more and judges no change
}

const (
	needArtifacts = "actions: read"
	maxAncestors  = 50
	// maxArtifactPages bounds the search for an artifact: the newest 1,000 with that name.
	maxArtifactPages = 10
	// maxAttempts bounds how many unusable artifacts are tried.
	maxAttempts = 5
)

// trustedEvents are the events whose runs measure what is on the branch. A run of another event can name the branch and
// have measured somebody else's commit: issue_comment, workflow_run and pull_request_target run there too.
var trustedEvents = []string{"push", "schedule", "workflow_dispatch", "repository_dispatch"}

const notAncestor = maxAncestors + 1

// search is one call of Baseline.
type search struct {
	c         *client
	q         baselineQuery
	mergeBase string // empty if unknown
	result    Baseline
	tried     int
	damaged   bool               // an artifact that could be trusted could not be read
	others    []*github.Artifact // not of the merge base, and not tried yet
	expired   []string           // runs whose artifact has expired
	elsewhere []string           // other branches of the repository that have an artifact of that name
	page      int                // the next page of the list, from 1; 0: none
	// ancestors are the places of commits in GitHub's list from the merge base backwards: 0 is the merge base, 1 to 50 are
	// the commits before it.
	ancestors map[string]int
}

// baseline finds the artifact that is nearest to the head: that of the merge base, else of its nearest ancestor among
// 50, else the newest on the branch, with a warning. It skips artifacts that it cannot use, with a warning each. The
// error is *NoBaseline if there is none.
func (c *client) baseline(ctx context.Context, q baselineQuery) (*Baseline, error) {
	if q.Artifact == "" || q.Branch == "" {
		return nil, &NoBaseline{Reason: "no artifact or no base branch is named"}
	}
	s := &search{c: c, q: q, page: 1, ancestors: map[string]int{}}
	if q.HeadSHA != "" {
		var err error
		if s.mergeBase, err = mergeBase(ctx, c, q); err != nil {
			why := c.trouble("find the merge base", "contents: read", err)
			if refused(err).later || errors.Is(err, context.Canceled) {
				return nil, why
			}
			s.warn(why.Error())
		} else {
			s.ancestors[s.mergeBase] = 0
		}
	}
	// The list has the newest first. Artifacts of the merge base are tried in that order.
	for s.page != 0 && s.page <= maxArtifactPages && (s.mergeBase != "" || len(s.others) == 0) {
		some, err := s.next(ctx)
		if err != nil {
			return nil, err
		}
		if found, err := s.first(ctx, some); found || err != nil {
			return &s.result, err
		}
	}
	cut := s.page != 0 && len(s.others) == 0
	if s.mergeBase != "" && len(s.others) > 0 {
		if err := s.rank(ctx); err != nil {
			s.warn(err.Error())
		}
	}
	if found, err := s.first(ctx, s.others); found || err != nil {
		return &s.result, err
	}
	warnings := strings.Join(s.result.Warnings, "; ")
	if s.damaged {
		return nil, fmt.Errorf("cannot use any artifact %s: %s", oneLine(q.Artifact, 80), warnings)
	}
	none := fmt.Sprintf("no artifact %s from a run on %s of this repository", oneLine(q.Artifact, 80),
		oneLine(q.Branch, 80))
	if cut {
		none += fmt.Sprintf(" among the newest %d of that name", maxArtifactPages*perPage)
	}
	if n := len(s.expired); n > 0 {
		none += fmt.Sprintf("; %d of that name expired, the newest of run %s", n, s.expired[0])
	}
	if warnings != "" {
		none += " (" + warnings + ")"
	}
	if len(s.elsewhere) > 0 {
		none += "; there is one of that name from " + strings.Join(s.elsewhere, ", ") +
			": was the branch renamed? baseline-branch names another"
	}
	return s.none(ctx, none, len(s.expired)+len(s.elsewhere) > 0)
}

// none is the error that there is no baseline: it says what exists instead, and whether there could be one.
func (s *search) none(ctx context.Context, why string, had bool) (*Baseline, error) {
	e := &NoBaseline{Reason: why}
	if !had {
		var err error
		if e.NeverRan, err = s.c.neverRan(ctx, s.q.Branch); err != nil {
			return nil, err
		}
		if e.NeverRan {
			e.Reason += "; the workflow has never run there: its first run on " + oneLine(s.q.Branch, 80) +
				" makes the baseline"
			return nil, e
		}
	}
	names, err := s.artifactNames(ctx)
	switch {
	case err != nil:
		return nil, err
	case len(names) == 0:
		e.Reason += "; runs on that branch left no artifact at all"
	default:
		e.Reason += "; what runs on that branch left: " + strings.Join(names, ", ")
	}
	return nil, e
}

// maxNames bounds how many artifacts are named if none is the one that was asked for.
const maxNames = 8

// artifactNames are the sorted names among the newest artifacts that the branch of this repository, not of a fork,
// left.
func (s *search) artifactNames(ctx context.Context) ([]string, error) {
	list, _, err := s.c.api.Actions.ListArtifacts(ctx, s.c.owner, s.c.repo, &github.ListOptions{PerPage: perPage})
	if err != nil {
		return nil, s.c.trouble("list artifacts", needArtifacts, err)
	}
	var names []string
	for _, a := range list.Artifacts {
		name := oneLine(a.GetName(), 80)
		if run := a.GetWorkflowRun(); run.GetHeadBranch() == s.q.Branch && ofRepository(run) && !a.GetExpired() &&
			!slices.Contains(names, name) && len(names) < maxNames {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// ofRepository reports whether a run measured a branch of the repository itself, not of a fork.
func ofRepository(run *github.ArtifactWorkflowRun) bool {
	return run.GetRepositoryID() != 0 && run.GetHeadRepositoryID() == run.GetRepositoryID()
}

// mostListed is how many runs of a branch GitHub lists; older ones are left out.
const mostListed = 1000

// neverRan reports whether a branch of this repository has never run this workflow to its end, by a trusted event.
func (c *client) neverRan(ctx context.Context, branch string) (bool, error) {
	if c.run.WorkflowFile == "" || branch == "" {
		return false, nil // the runner does not say which workflow this is: never assume a first run
	}
	page := &github.ListWorkflowRunsOptions{Branch: branch, Status: "completed", ListOptions: github.ListOptions{PerPage: perPage}}
	seen := 0
	for n := 0; n < maxPages; n++ { // runs of forks whose branch has that name may come first
		list, resp, err := c.api.Actions.ListWorkflowRunsByFileName(ctx, c.owner, c.repo, c.run.WorkflowFile, page)
		if refused(err).status == http.StatusNotFound {
			return true, nil // the workflow is new with this change
		}
		if err != nil {
			return false, c.trouble("list the runs of "+c.run.WorkflowFile, needArtifacts, err)
		}
		if slices.ContainsFunc(list.WorkflowRuns, func(run *github.WorkflowRun) bool {
			return slices.Contains(trustedEvents, run.GetEvent()) && run.GetHeadBranch() == branch &&
				run.GetHeadRepository().GetID() == run.GetRepository().GetID() && run.GetID() != c.run.ID
		}) {
			return false, nil
		}
		seen += len(list.WorkflowRuns)
		if page.Page = resp.NextPage; page.Page == 0 {
			return seen < mostListed, nil
		}
	}
	return false, nil // not known
}

func (s *search) warn(text string) { s.result.Warnings = append(s.result.Warnings, text) }

// first fills in the result from the first candidate that can be used; found is false if there is none.
func (s *search) first(ctx context.Context, all []*github.Artifact) (found bool, err error) {
	for _, a := range all {
		if s.tried++; s.tried > maxAttempts {
			return false, nil
		}
		files, event, err := use(ctx, s.c, a)
		if no, ok := errors.AsType[*unusable](err); ok {
			s.warn(no.Error())
			s.damaged = s.damaged || !no.untrusted
			continue
		}
		if err != nil {
			return false, err
		}
		run, distance := a.GetWorkflowRun(), s.distance(a)
		s.result.Files, s.result.SHA, s.result.RunID = files, run.GetHeadSHA(), run.GetID()
		s.result.Source = fmt.Sprintf("artifact %s of run %d (%s) at %s (%s), sha256 %s", oneLine(s.q.Artifact, 80),
			run.GetID(), event, ShortRef(run.GetHeadSHA()), s.nearness(distance), fingerprint(files))
		if distance == notAncestor {
			s.warn(fmt.Sprintf("the baseline is the newest of %s and not of the merge base: other changes merged there count as this change's", oneLine(s.q.Branch, 80)))
		}
		return true, nil
	}
	return false, nil
}

// fingerprint is the start of a hash over names and contents. It tells two baselines apart.
func fingerprint(files []File) string {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%s\x00%d\x00", f.Name, len(f.Data))
		h.Write(f.Data)
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// nearness describes where the baseline stands relative to the head: "merge base", "2 commits before the merge base
// abc1234", "newest of main".
func (s *search) nearness(distance int) string {
	from := "the merge base " + ShortRef(s.mergeBase)
	if s.mergeBase == s.q.HeadSHA { // a push to the branch itself
		from = "the head"
	}
	switch distance {
	case notAncestor:
		return "newest of " + oneLine(s.q.Branch, 80)
	case 0:
		return "merge base"
	case 1:
		return "1 commit before " + from
	}
	return fmt.Sprintf("%d commits before %s", distance, from)
}

// mergeBase is the commit at which the head left the branch.
func mergeBase(ctx context.Context, c *client, q baselineQuery) (string, error) {
	comparison, _, err := c.api.Repositories.CompareCommits(ctx, c.owner, c.repo, q.Branch, q.HeadSHA,
		&github.ListOptions{PerPage: 1})
	if err != nil {
		return "", err
	}
	sha := comparison.GetMergeBaseCommit().GetSHA()
	if !IsCommit(sha) {
		return "", errors.New("GitHub names none: the histories may be unrelated")
	}
	return sha, nil
}

// next reads a page of the list. It returns the artifacts of the merge base, newest first, and keeps the others that a
// run on the branch of this repository, not of a fork, left.
func (s *search) next(ctx context.Context) (atMergeBase []*github.Artifact, err error) {
	// The package has no filter by name.
	address := fmt.Sprintf("repos/%s/%s/actions/artifacts?name=%s&per_page=%d&page=%d", s.c.owner, s.c.repo,
		url.QueryEscape(s.q.Artifact), perPage, s.page)
	var list github.ArtifactList
	req, err := s.c.api.NewRequest(http.MethodGet, address, nil)
	if err == nil {
		var resp *github.Response
		if resp, err = s.c.api.Do(ctx, req, &list); err == nil {
			s.page = resp.NextPage
		}
	}
	if err != nil {
		return nil, s.c.trouble("list artifacts", needArtifacts, err)
	}
	for _, a := range list.Artifacts {
		run := a.GetWorkflowRun()
		switch {
		case a.GetName() != s.q.Artifact || !ofRepository(run):
		case run.GetHeadBranch() != s.q.Branch:
			b := oneLine(run.GetHeadBranch(), 80)
			own := s.c.run.Pull != nil && run.GetHeadBranch() == s.c.run.Pull.Head.Ref
			if !own && len(s.elsewhere) < maxNames && !slices.Contains(s.elsewhere, b) {
				s.elsewhere = append(s.elsewhere, b)
			}
		case a.GetExpired():
			s.expired = append(s.expired, fmt.Sprintf("%d at %s", run.GetID(), ShortRef(run.GetHeadSHA())))
		case run.GetID() == s.c.run.ID || run.GetHeadSHA() == s.q.HeadSHA && !s.q.Again:
		case s.mergeBase != "" && run.GetHeadSHA() == s.mergeBase:
			atMergeBase = append(atMergeBase, a)
		default:
			s.others = append(s.others, a)
		}
	}
	s.sort(atMergeBase)
	s.sort(s.others)
	return atMergeBase, nil
}

// sort puts the nearest first and, among equals, the newest.
func (s *search) sort(all []*github.Artifact) {
	lists.Sort(all, func(a, b *github.Artifact) int {
		return cmp.Or(cmp.Compare(s.distance(a), s.distance(b)), cmp.Compare(b.GetID(), a.GetID()))
	})
}

// distance is how many commits an artifact's commit is before the merge base.
func (s *search) distance(a *github.Artifact) int {
	if n, ok := s.ancestors[a.GetWorkflowRun().GetHeadSHA()]; ok {
		return n
	}
	return notAncestor
}

// rank sorts the other artifacts by how many commits they are before the merge base.
func (s *search) rank(ctx context.Context) error {
	list, _, err := s.c.api.Repositories.ListCommits(ctx, s.c.owner, s.c.repo,
		&github.CommitsListOptions{SHA: s.mergeBase, ListOptions: github.ListOptions{PerPage: maxAncestors + 1}})
	if err != nil {
		return s.c.trouble("list the commits before the merge base", "contents: read", err)
	}
	for i, commit := range list[:min(len(list), maxAncestors+1)] {
		s.ancestors[commit.GetSHA()] = i
	}
	s.sort(s.others)
	return nil
}

// use checks the run that left an artifact, and fetches it; event is what started that run.
func use(ctx context.Context, c *client, a *github.Artifact) (files []File, event string, err error) {
	id := a.GetWorkflowRun().GetID()
	run, _, err := c.api.Actions.GetWorkflowRunByID(ctx, c.owner, c.repo, id)
	if refused(err).status == http.StatusNotFound {
		return nil, "", &unusable{id: a.GetID(), why: "its run is gone", untrusted: true}
	}
	if err != nil {
		return nil, "", c.trouble(fmt.Sprintf("read run %d", id), needArtifacts, err)
	}
	if !slices.Contains(trustedEvents, run.GetEvent()) {
		return nil, "", &unusable{id: a.GetID(), untrusted: true,
			why: fmt.Sprintf("run %d was started by %s, not by one of %s", id, oneLine(run.GetEvent(), 40),
				strings.Join(trustedEvents, ", "))}
	}
	if run.GetHeadSHA() != a.GetWorkflowRun().GetHeadSHA() ||
		run.GetHeadBranch() != a.GetWorkflowRun().GetHeadBranch() {
		return nil, "", &unusable{id: a.GetID(), untrusted: true,
			why: fmt.Sprintf("run %d and its artifact name different commits", id)}
	}
	files, err = c.download(ctx, a)
	return files, run.GetEvent(), err
}
