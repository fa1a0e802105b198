package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

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
	Key    string // tells several comments of one pull request apart; empty: workflow, job and its values of the matrix
	Number int    // of the pull request to comment on, where the event names none; 0: none
}

// Session is what one step of a workflow does at GitHub, from the event that started it to the outputs that it leaves.
// The order is Open, Connect, then whatever the command needs, and Tell, or Fail and TellError, at the end.
//
// Nothing that a session tells can fail: what GitHub refuses is said in the log and the summary, and the verdict
// stands.
type Session struct {
	Run    *Run
	Number int    // of the pull request; 0 where there is none
	Pull   *Pull  // nil where there is none, or GitHub does not show it
	Title  string // of the comment; empty for the only one of its job

	o      SessionOptions
	client *client
	log    *stepLog
	key    string
	token  bool
}

// Open reads what started the workflow, and asks nothing of GitHub yet. Outside of GitHub Actions the error is
// [ErrNotInActions].
func Open(o SessionOptions) (*Session, error) {
	run, err := readRun(o.Getenv)
	if err != nil {
		return nil, err
	}
	s := &Session{Run: run, Number: o.Number, Title: o.Key, o: o, key: o.Key, log: newStepLog(o.Out, o.Getenv)}
	if s.Number == 0 {
		s.Number = run.Number
	}
	if s.key == "" {
		s.Title = legName(o.Getenv("EXPLAIN_MATRIX"))
		s.key = strings.TrimSuffix(run.Workflow+"-"+run.Job+"-"+s.Title, "-")
	}
	return s, nil
}

// legName tells the jobs of a matrix apart: its values in the order of their names. matrix is JSON, null outside of
// one.
func legName(matrix string) string {
	var values map[string]json.RawMessage
	if json.Unmarshal([]byte(matrix), &values) != nil {
		return ""
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts = append(parts, strings.Trim(string(values[name]), `"`))
	}
	return strings.Join(parts, ", ")
}

// Connect takes the token of the environment, which the runner hides from here on, and looks up the pull request that
// the options name. Call [Run.CheckTrusted] before it.
func (s *Session) Connect(ctx context.Context) error {
	token := s.o.Getenv("GITHUB_TOKEN")
	s.token = token != ""
	if err := s.log.Mask(token); err != nil {
		return err
	}
	var err error
	if s.client, err = newClient(s.Run, clientOptions{Token: token, Notice: s.o.Say}); err != nil {
		return err
	}
	if s.Pull = s.Run.Pull; s.Pull == nil && s.o.Number != 0 {
		if s.Pull, err = s.client.pull(ctx, s.o.Number); err != nil {
			s.o.Say(fmt.Sprintf("pull request %d: %s", s.o.Number, err))
		}
	}
	return nil
}

// BaseSHA is the commit at the base of the pull request; empty where the event is about none.
func (s *Session) BaseSHA() string {
	if s.Pull == nil {
		return ""
	}
	return s.Pull.BaseSHA
}

// BaseBranch is the branch to compare with: the base of the pull request, or the one that was pushed to. It is empty
// where the event has neither.
func (s *Session) BaseBranch() string {
	switch {
	case s.Pull != nil:
		return s.Pull.BaseRef
	case s.Run.Push != nil:
		return s.Run.Push.Ref
	}
	return ""
}

// Baseline finds the artifact of a branch that is nearest to the head: see [client.Baseline].
func (s *Session) Baseline(ctx context.Context, artifact, branch string) (*Baseline, error) {
	return s.client.baseline(ctx, baselineQuery{Artifact: artifact, Branch: branch, HeadSHA: s.Run.HeadSHA()})
}

// File reads a file of the repository at a ref, of at most limit bytes. name is a path as the step sees it. The error
// is [ErrNotFound] where the ref has no such file.
func (s *Session) File(ctx context.Context, name, ref string, limit int) ([]byte, error) {
	full, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(s.Run.Workspace, full)
	if err != nil || strings.HasPrefix(rel, "..") {
		return nil, fmt.Errorf("%s is not in the checkout", name)
	}
	return s.client.file(ctx, filepath.ToSlash(rel), ref, limit)
}

// Override accepts a failure where the label is on the pull request now. An empty label accepts nothing.
func (s *Session) Override(ctx context.Context, number int, c *comparison.Comparison, label string) {
	if label == "" || number == 0 || !s.token || c.Verdict != comparison.Fail {
		return
	}
	switch l, err := s.client.label(ctx, number, label); {
	case err != nil:
		s.o.Say("the label " + label + " could not be looked up: " + err.Error())
	case l != nil:
		c.Accept(l.Name, l.By)
	}
}

// Finished fetches what the run left that triggered this one: its pull request, and the comparison.json files of an
// artifact, which the author of a fork may have written. The pull request is nil where there is nothing to comment on;
// the log says why. The event must be workflow_run.
func (s *Session) Finished(ctx context.Context, artifact string) (*Pull, []File, error) {
	t := s.Run.Trigger
	if t.Event != "pull_request" {
		s.o.Say("the run that has finished was for " + t.Event + ", not for a pull request: nothing to comment on")
		return nil, nil, nil
	}
	pull, err := s.client.findPull(ctx, *t, s.o.Number)
	if errors.Is(err, errNoPull) || errors.Is(err, errHeadMoved) { // no mistake of anybody: a newer run will comment
		s.o.Say("nothing is posted: " + err.Error())
		s.log.Annotate(noticeLevel, "explain: comment", "nothing is posted: "+err.Error())
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	files, err := s.client.runArtifact(ctx, t.RunID, artifact)
	if err != nil {
		return nil, nil, fmt.Errorf("artifact %s of run %d: %w", artifact, t.RunID, err)
	}
	files = slices.DeleteFunc(files, func(f File) bool { return path.Base(f.Name) != "comparison.json" })
	if len(files) == 0 {
		return nil, nil, fmt.Errorf("artifact %s of run %d holds no comparison.json", artifact, t.RunID)
	}
	return pull, files, nil
}

// Say writes a line to the log of the step.
func (s *Session) Say(line string) { s.o.Say(line) }
