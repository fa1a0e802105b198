package gate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
)

// SessionOptions say how a step of a workflow talks to GitHub.
type SessionOptions struct {
	Getenv func(string) string // the environment of the step
	Out    io.Writer           // standard output of the step, where the runner reads commands
	Say    func(line string)   // writes a line to the log of the step; it may hold text of strangers
	// Paragraph writes a line of text as a paragraph of markdown. It escapes what strangers wrote.
	Paragraph func(text string) string
	// OneLine is the verdict's number in one line that holds no name out of a capture.
	OneLine func(c *comparison.Comparison) string

	Mode   Mode   // when to comment
	Key    string // tells several comments of one pull request apart; empty: workflow, job, its matrix, step and folder
	Folder string // that the step writes into; the usual one is not part of a key
	Number int    // of the pull request to comment on if the event names none; 0: none
	Status string // name of a commit status to set on the head; empty: none
}

// Session is what one step of a workflow does at GitHub, from the event that started it to the outputs that it leaves.
// The order is Open, Connect, then whatever the command needs, and Tell, or Fail and TellError, at the end.
//
// Telling a result never fails: the log and the summary say what GitHub refused, and the verdict stands.
type Session struct {
	Of    Subject // what is judged
	Title string  // of the comment; empty for the only one of its job

	o      SessionOptions
	client *client
	log    *stepLog
	key    string
	token  bool
	worst  comparison.Verdict // verdict told so far, over the pull requests with one head
}

// Open reads what started the workflow, without a request to GitHub. Outside of GitHub Actions the error is
// [ErrNotInActions].
func Open(o SessionOptions) (*Session, error) {
	run, err := readRun(o.Getenv)
	if err != nil {
		return nil, err
	}
	s := &Session{Of: Subject{Run: run, Number: cmp.Or(o.Number, run.Number)}, Title: o.Key, o: o, key: o.Key,
		log: newStepLog(o.Out, o.Getenv, o.Say)}
	if s.key == "" {
		s.Title = legName(o.Getenv("EXPLAIN_MATRIX"))
		parts := []string{run.Workflow, run.Job, s.Title, run.Step}
		if o.Folder != "explain" && o.Folder != "gate" {
			parts = append(parts, o.Folder)
		}
		s.key = strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "-")
	}
	return s, nil
}

// Claim reserves the comment and the folder of this step for its command line. If another step of the job has reserved
// one of them, this one would overwrite its findings: the error says what to name differently. A step that runs again
// with the same command line keeps its claim.
func (s *Session) Claim(commandLine string) error {
	temp := s.o.Getenv("RUNNER_TEMP")
	if temp == "" {
		return nil
	}
	job := sha256.Sum256([]byte(s.Of.Run.Job + s.o.Getenv("EXPLAIN_MATRIX")))
	own := fmt.Sprintf("%d.%d.%x %x", s.Of.Run.ID, s.Of.Run.Attempt, job, sha256.Sum256([]byte(commandLine)))
	for what, taken := range map[string]string{"comment-key": CleanKey(s.key), "out": CleanKey(s.o.Folder)} {
		name := filepath.Join(temp, "explain-"+what+"-"+taken)
		before, err := os.ReadFile(name)
		run, _, _ := strings.Cut(own, " ")
		if err == nil && strings.HasPrefix(string(before), run+" ") && string(before) != own {
			return fmt.Errorf("another step of this job has the same %s already, and would be overwritten: give each gate "+
				"of a job its own out and comment-key", what)
		}
		if err := os.WriteFile(name, []byte(own), 0o600); err != nil {
			return fmt.Errorf("RUNNER_TEMP: %w", err)
		}
	}
	return nil
}

// legName tells the jobs of a matrix apart: its values in the order of their names. matrix is JSON, or null outside of
// a matrix.
func legName(matrix string) string {
	var values map[string]json.RawMessage
	if json.Unmarshal([]byte(matrix), &values) != nil {
		return ""
	}
	value := func(name string) string { return strings.Trim(string(values[name]), `"`) }
	return strings.Join(lists.Map(slices.Sorted(maps.Keys(values)), value), ", ")
}

// Connect takes the token from the environment, asks the runner to hide it, and looks up the pull request that the
// options name. Call [Run.CheckTrusted] first.
func (s *Session) Connect(ctx context.Context) error {
	token := s.o.Getenv("GITHUB_TOKEN")
	s.token = token != ""
	if err := s.log.Mask(token); err != nil {
		return err
	}
	var err error
	again := &tries{sleep: sleep, now: time.Now, jitter: rand.Float64, notice: s.o.Say}
	if s.client, err = newClient(s.Of.Run, token, http.DefaultTransport, again); err != nil {
		return err
	}
	if s.Of.Pull = s.Of.Run.Pull; s.Of.Pull == nil && s.Of.Number != 0 {
		if s.Of.Pull, err = s.client.pull(ctx, s.Of.Number); err != nil {
			s.o.Say(fmt.Sprintf("pull request %d: %s", s.Of.Number, err))
		}
	}
	return nil
}

// Baseline finds the artifact of a branch that is nearest to the head: see [client.baseline]. If there is none, the
// error is [NoBaseline], which says whether there could have been one.
func (s *Session) Baseline(ctx context.Context, artifact, branch string) (*Baseline, error) {
	_, change := s.Of.Base()
	q := baselineQuery{Artifact: artifact, Branch: branch, HeadSHA: s.Of.HeadSHA(), Again: !change}
	return s.client.baseline(ctx, q)
}

// Evidence finds the newest artifact of a name that a run on a branch left: evidence beside a baseline, such as a
// history.
func (s *Session) Evidence(ctx context.Context, artifact, branch string) (*Baseline, error) {
	return s.client.baseline(ctx, baselineQuery{Artifact: artifact, Branch: branch, Again: true})
}

// Moved is the present head of the pull request if that is not the measured one; empty if it is, or if GitHub does not
// say.
func (s *Session) Moved(ctx context.Context) string {
	if s.Of.Pull == nil || !s.token {
		return ""
	}
	now, err := s.client.pull(ctx, s.Of.Number)
	if err != nil || now.Head.SHA == s.Of.HeadSHA() {
		return ""
	}
	return now.Head.SHA
}

// NeverRan reports whether a branch has never run this workflow to its end, so that nobody can expect a baseline.
func (s *Session) NeverRan(ctx context.Context, branch string) (bool, error) {
	return s.client.neverRan(ctx, branch)
}

// Finished finds the pull requests of the run that triggered this one: several can have one head. If there is nothing
// to judge, it returns none and the log says why. The event must be workflow_run.
func (s *Session) Finished(ctx context.Context) ([]*Pull, error) {
	t := s.Of.Run.Trigger
	if t.Event != "pull_request" {
		s.o.Say("the run that has finished was for " + t.Event + ", not for a pull request: nothing to comment on")
		return nil, nil
	}
	pulls, err := s.client.findPulls(ctx, *t, s.o.Number)
	if errors.Is(err, errNoPull) || errors.Is(err, errHeadMoved) { // no error: a newer run will comment
		s.o.Say("nothing is posted: " + err.Error())
		s.log.Annotate(noticeLevel, "explain: comment", "nothing is posted: "+err.Error())
		return nil, nil
	}
	return pulls, err
}

// Measured fetches the report.json files of the run that triggered this one, or, if it left none, of the newest run of
// this pull request's head: a label changes nothing that is measured. The author of the change may have written them.
// It ignores the rest of the artifact, above all any comparison or verdict.
func (s *Session) Measured(ctx context.Context, artifact string) ([]File, error) {
	var run int64
	var files []File
	var err error
	if s.Of.Run.Trigger != nil {
		run = s.Of.Run.Trigger.RunID
		files, err = s.client.runArtifact(ctx, run, artifact)
	} else if run, files, err = s.client.headArtifact(ctx, s.Of.Pull, artifact); err == nil {
		s.Of.measured = run
	}
	if err != nil {
		return nil, fmt.Errorf("artifact %s of run %d: %w", artifact, run, err)
	}
	all := lists.Filter(files, func(f File) bool { return path.Base(f.Name) == "report.json" })
	files = lists.Filter(all, func(f File) bool { // no part of another report, in a folder below it
		return !slices.ContainsFunc(all, func(o File) bool {
			return path.Dir(o.Name) != "." && strings.HasPrefix(path.Dir(f.Name), path.Dir(o.Name)+"/")
		})
	})
	if len(files) == 0 {
		return nil, fmt.Errorf("artifact %s of run %d holds no report.json: a comparison that the change made itself is "+
			"not trusted", artifact, run)
	}
	return files, nil
}

// FailedJob is the first job of the measuring run that failed, and the URL of its log. Both are empty if none failed,
// or if GitHub does not say.
func (s *Session) FailedJob(ctx context.Context) (name, url string) {
	if !s.token {
		return "", ""
	}
	jobs, _, err := s.client.api.Actions.ListWorkflowJobs(ctx, s.client.owner, s.client.repo, s.Of.Measures(), &github.ListWorkflowJobsOptions{
		Filter: "latest", ListOptions: github.ListOptions{PerPage: perPage}})
	if err != nil {
		s.o.Say(s.client.trouble("list the jobs of the run", needArtifacts, err).Error())
		return "", ""
	}
	for _, j := range jobs.Jobs {
		if j.GetConclusion() == "failure" {
			return oneLine(j.GetName(), 80), j.GetHTMLURL()
		}
	}
	return "", ""
}

// Say writes a line to the log of the step.
func (s *Session) Say(line string) { s.o.Say(line) }

// Reads tries one request of each kind that a gate reads; the error names the permissions that the token lacks.
func Reads(ctx context.Context, s *Session) error {
	c, one := s.client, github.ListOptions{PerPage: 1}
	_, _, contents := c.api.Repositories.ListCommits(ctx, c.owner, c.repo, &github.CommitsListOptions{ListOptions: one})
	_, _, pulls := c.api.PullRequests.List(ctx, c.owner, c.repo, &github.PullRequestListOptions{ListOptions: one})
	_, _, runs := c.api.Actions.ListRepositoryWorkflowRuns(ctx, c.owner, c.repo, &github.ListWorkflowRunsOptions{ListOptions: one})
	_, _, checks := c.api.Checks.ListCheckRunsForRef(ctx, c.owner, c.repo, s.Of.Run.SHA, &github.ListCheckRunsOptions{ListOptions: one})
	var wrong []error
	for _, asked := range []struct {
		what, needs string
		err         error
	}{{"commits", "contents: read", contents}, {"pull requests", needPulls, pulls}, {"runs", needArtifacts, runs}, {"checks", "checks: read", checks}} {
		if asked.err != nil {
			wrong = append(wrong, c.trouble("list the "+asked.what, asked.needs, asked.err))
		}
	}
	return errors.Join(wrong...)
}
