package gate

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// ErrNotInActions says that this process is not a step of a GitHub Actions workflow.
var ErrNotInActions = errors.New(
	"not in GitHub Actions (GITHUB_ACTIONS is not true): pass the files of both sides, nothing is fetched or posted")

// Run is the workflow run that this process is a step of.
type Run struct {
	// GITHUB_API_URL, without a trailing slash: https://api.github.com, https://ghe.example.com/api/v3,
	// http://127.0.0.1:8080
	APIURL     string
	ServerURL  string // GITHUB_SERVER_URL
	Repository string // owner/name
	Event      string // pull_request, push, workflow_run, …
	Action     string // opened, synchronize, labeled, …; empty if the event has none
	Workflow   string // its name, free text of the repository's owner
	// WorkflowFile is the workflow's file, such as gate.yml, by which GitHub lists its runs; for a reusable workflow that
	// of the caller. It is empty if the runner does not say.
	WorkflowFile string
	Job          string // its id
	Step         string // its id, if somebody gave it one
	Workspace    string // folder of the checkout
	SHA          string // GITHUB_SHA: the merge commit on pull_request, not the head
	Ref          string // GITHUB_REF
	ID           int64
	Attempt      int

	Number  int      // of the pull request the event is about; 0 if there is none
	Pull    *Pull    // from the payload; nil if that has only a number
	Trigger *Trigger // on workflow_run: the run that has finished
	Push    *Push    // on push and merge_group

	DefaultBranch string // of the repository; empty if the payload has none
}

// Pull is a pull request at one moment.
type Pull struct {
	Number   int    `json:"number"`
	Head     Branch `json:"head"`
	Base     Branch `json:"base"`             // as it was at that moment, not the merge base
	MergeSHA string `json:"merge_commit_sha"` // test merge commit; empty while GitHub has not made one
	Fork     bool   `json:"-"`                // the head is another repository, or one that was deleted
}

// Branch is one side of a pull request.
type Branch struct {
	SHA  string `json:"sha"`  // of its newest commit
	Ref  string `json:"ref"`  // its name; of a head free text of its author
	Repo Repo   `json:"repo"` // empty when the fork was deleted
}

// Repo is a repository; the zero value is an unknown one.
type Repo struct {
	ID   int64  `json:"id"`
	Name string `json:"full_name"` // owner/name
}

// Trigger is the run that started a workflow_run.
type Trigger struct {
	RunID    int64  `json:"id"`
	Attempt  int    `json:"run_attempt"`
	Event    string `json:"event"` // event of that run: the fork pattern wants pull_request
	HeadSHA  string `json:"head_sha"`
	HeadRef  string `json:"head_branch"`
	HeadRepo Repo   `json:"head_repository"`
}

// Push is what the payload of a push or of a merge group says.
type Push struct {
	Before string // tip before it; empty for a new branch
	After  string
	Ref    string // branch name, without refs/heads/
	Queued int    // the pull request that a merge group ends with; 0 on push
}

// stamp says which run made the numbers of a comment. A comment never goes back to an older one.
type stamp struct {
	HeadSHA string // empty if unknown
	RunID   int64
	Attempt int
}

// readRun reads the GITHUB_* variables and the payload of the event. Outside of GitHub Actions the error is
// [ErrNotInActions]; if a variable or payload is not what GitHub writes, the error names it. We do not use the Context
// of go-githubactions: it checks none of these, and decodes a payload of any size into a map.
func readRun(getenv func(string) string) (*Run, error) {
	if getenv("GITHUB_ACTIONS") != "true" {
		return nil, ErrNotInActions
	}
	r := &Run{
		APIURL:     cmp.Or(strings.TrimSuffix(getenv("GITHUB_API_URL"), "/"), "https://api.github.com"),
		ServerURL:  cmp.Or(strings.TrimSuffix(getenv("GITHUB_SERVER_URL"), "/"), "https://github.com"),
		Repository: getenv("GITHUB_REPOSITORY"), Event: getenv("GITHUB_EVENT_NAME"),
		Workflow: getenv("GITHUB_WORKFLOW"),
		Job:      getenv("GITHUB_JOB"), Workspace: getenv("GITHUB_WORKSPACE"), SHA: getenv("GITHUB_SHA"),
		Step: stepID(getenv("GITHUB_ACTION")),
		Ref:  getenv("GITHUB_REF"), WorkflowFile: workflowFile(getenv("GITHUB_WORKFLOW_REF")),
	}
	for name, value := range map[string]string{"GITHUB_API_URL": r.APIURL, "GITHUB_SERVER_URL": r.ServerURL} {
		if _, err := parseBase(value); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if !isRepository(r.Repository) {
		return nil, errors.New("GITHUB_REPOSITORY is not owner/name")
	}
	if r.SHA != "" && !IsCommit(r.SHA) {
		return nil, errors.New("GITHUB_SHA is not a commit")
	}
	var err error
	if r.ID, err = strconv.ParseInt(getenv("GITHUB_RUN_ID"), 10, 64); err != nil || r.ID < 1 {
		return nil, errors.New("GITHUB_RUN_ID is not a positive number")
	}
	if r.Attempt, err = strconv.Atoi(cmp.Or(getenv("GITHUB_RUN_ATTEMPT"), "1")); err != nil || r.Attempt < 1 {
		return nil, errors.New("GITHUB_RUN_ATTEMPT is not a positive number")
	}
	if name := getenv("GITHUB_EVENT_PATH"); name != "" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("GITHUB_EVENT_PATH: %w", err)
		}
		defer f.Close()
		if err := r.readEvent(f); err != nil {
			return nil, fmt.Errorf("payload of the event %s: %w", oneLine(r.Event, 40), err)
		}
	}
	if m := pullRef().FindStringSubmatch(r.Ref); r.Number == 0 && m != nil {
		r.Number, _ = strconv.Atoi(m[1]) // a number of at most nine digits
	}
	return r, nil
}

// stepID is the id that somebody gave the step. For other steps the runner invents one that changes as steps come and
// go: __run, __nsys-llm_explain_2. Inside the action it may name the action's own step.
func stepID(action string) string {
	if strings.HasPrefix(action, "__") || action == "explain" {
		return ""
	}
	return action
}

// workflowFile is the name of the file in octo/llm/.github/workflows/gate.yml@refs/heads/main.
func workflowFile(ref string) string {
	name, _, _ := strings.Cut(ref, "@")
	if name = path.Base(name); workflowName().MatchString(name) {
		return name
	}
	return ""
}

// What GitHub writes. Anything else is refused before it becomes part of a URL.
var (
	pullRef      = pattern.New(`^refs/pull/([0-9]{1,9})/(merge|head)$`)
	repository   = pattern.New(`^[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}$`)
	workflowName = pattern.New(`^[A-Za-z0-9._ -]{1,100}\.ya?ml$`)
)

// isRepository says whether s is owner/name as GitHub allows them, so that it cannot change the path of a URL.
func isRepository(s string) bool {
	owner, name, _ := strings.Cut(s, "/")
	return repository().MatchString(s) && strings.Trim(owner, ".") != "" && strings.Trim(name, ".") != ""
}

// parseBase parses the URL of an API or a server, without its last slash. Errors do not repeat it: it could hold a
// password.
func parseBase(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("is not an http or https address")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("must not hold credentials, a query or a fragment: pass the token separately")
	}
	return u, nil
}

// stamp is that of the run that made the numbers: on workflow_run the triggering run, else this one.
func (r *Run) stamp() stamp {
	if t := r.Trigger; t != nil {
		return stamp{HeadSHA: t.HeadSHA, RunID: t.RunID, Attempt: t.Attempt}
	}
	return stamp{HeadSHA: r.HeadSHA(), RunID: r.ID, Attempt: r.Attempt}
}

// HeadSHA is the commit that was measured: the pull request's head, the triggering run's, or the pushed one. It is
// empty if the event names a pull request by number only: the Pull of a [Session] has it.
func (r *Run) HeadSHA() string {
	switch {
	case r.Pull != nil:
		return r.Pull.Head.SHA
	case r.Trigger != nil:
		return r.Trigger.HeadSHA
	case r.Number != 0:
		return ""
	case r.Push != nil && r.Push.After != "":
		return r.Push.After
	}
	return r.SHA
}

// URL is the page of the run, for the footer of a comment.
func (r *Run) URL() string {
	return r.RunURL(r.stamp().RunID)
}

// RunURL is the page of another run of the repository.
func (r *Run) RunURL(id int64) string {
	return r.ServerURL + "/" + r.Repository + "/actions/runs/" + strconv.FormatInt(id, 10)
}

// newer says whether s was made by a later run than o: run ids of a repository only grow.
func (s stamp) newer(o stamp) bool {
	return s.RunID > o.RunID || s.RunID == o.RunID && s.Attempt > o.Attempt
}

// inWorkspace is the path of a file in a folder, relative to the workspace if it lies there, for later steps; empty
// without a folder.
func (r *Run) inWorkspace(folder, name string) string {
	if folder == "" {
		return ""
	}
	path := filepath.Join(folder, name)
	if rel, err := r.inCheckout(path); err == nil {
		return rel
	}
	full, _ := filepath.Abs(path) // fails only without a working directory
	return filepath.ToSlash(cmp.Or(full, path))
}
