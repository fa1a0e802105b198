package gate

import (
	"errors"
)

// ErrNotInActions says that this process is no step of a GitHub Actions workflow.
var ErrNotInActions = errors.New("not in GitHub Actions (GITHUB_ACTIONS is not true): pass the files of both sides, nothing is fetched or posted")

// Run is the workflow run that this process is a step of.
type Run struct {
	APIURL     string // GITHUB_API_URL, without a trailing slash: https://api.github.com, https://ghe.example.com/api/v3, http://127.0.0.1:8080
	ServerURL  string // GITHUB_SERVER_URL
	Repository string // owner/name
	Event      string // pull_request, push, workflow_run, …
	Action     string // opened, synchronize, labeled, …; empty where the event has none
	Workflow   string // its name, free text of the repository's owner
	Job        string // its id
	Workspace  string // folder of the checkout
	SHA        string // GITHUB_SHA: the merge commit on pull_request, not the head
	Ref        string // GITHUB_REF
	ID         int64
	Attempt    int

	Number  int      // of the pull request the event is about; 0 where there is none
	Pull    *Pull    // as the payload has it; nil where the payload has no more than a number
	Trigger *Trigger // on workflow_run: the run that has finished
	Push    *Push    // on push and merge_group
}

// Pull is a pull request at one moment.
type Pull struct {
	Number     int
	HeadSHA    string
	HeadRef    string // branch name: free text of its author
	HeadRepo   string // owner/name; empty when the fork was deleted
	HeadRepoID int64
	BaseSHA    string // tip of the base branch at that moment, not the merge base
	BaseRef    string
	MergeSHA   string // test merge commit; empty while GitHub has not made one
	Fork       bool   // the head is another repository, or one that was deleted
}

// Trigger is the run that started a workflow_run.
type Trigger struct {
	RunID      int64
	Attempt    int
	Event      string // event of that run: the fork pattern wants pull_request
	HeadSHA    string
	HeadRef    string
	HeadRepo   string // owner/name
	HeadRepoID int64
	Conclusion string // success, failure, …
	Numbers    []int  // its pull requests; GitHub leaves it empty for forks
}

// Push is what a push to a branch or a merge group brings.
type Push struct {
	Before string // tip before it; empty for a new branch
	After  string
	Ref    string // branch name, without refs/heads/
}

// Stamp says which run made the numbers of a comment. A comment never goes back to an older one.
type Stamp struct {
	HeadSHA string // empty where unknown
	RunID   int64
	Attempt int
}

// ReadRun reads the GITHUB_* variables and the payload of the event. Outside of GitHub Actions the error is
// [ErrNotInActions]; a variable or payload that is not what GitHub writes is an error that names it.
func ReadRun(getenv func(string) string) (*Run, error) { return nil, errors.New("not written yet") }

// Stamp of the numbers: of the triggering run on workflow_run, else of this one.
func (r *Run) Stamp() Stamp { return Stamp{} }

// HeadSHA is the commit that was measured: the pull request's head, the triggering run's, or the pushed one.
func (r *Run) HeadSHA() string { return "" }

// URL is the page of the run, for the footer of a comment.
func (r *Run) URL() string { return "" }

// CheckTrusted refuses pull_request_target with a checkout of the head: code of a stranger beside a token that can write.
// It looks at the workspace and the folders right below it. The error says what to do instead. It is nil for every other
// event, and where the checkout is the base branch's.
func (r *Run) CheckTrusted() error { return nil }
