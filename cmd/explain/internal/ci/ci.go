// Package ci is the commands of CI: gate and its comment, policy, history, bisect, and what action.yml runs.
package ci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/bisectcmd"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/historycmd"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/diff/comparison"
	diffrender "github.com/nsys-llm/explain/diff/diffdoc"
	"github.com/nsys-llm/explain/gate"
)

// Commands are the commands in the order of the help, those that it does not list last.
func Commands(e *cmdenv.Env) []*cobra.Command {
	return []*cobra.Command{newGate(e), newPolicy(e), historycmd.New(e), bisectcmd.NewBisect(e), newAction(e), newCalibration(e, "calibrate")}
}

// ErrorCode returns the exit code of a command that ended in an error.
func ErrorCode(err error) int {
	switch {
	case errors.As(err, new(usage.Error)) || errors.Is(err, analyze.ErrOptions):
		return cmdenv.Usage
	case errors.As(err, new(gate.UnreadError)):
		return cmdenv.Inconclusive
	}
	return cmdenv.Input
}

// verdictOf returns the verdict that a command's error stands for.
func verdictOf(err error) comparison.Verdict {
	code := cmdenv.Exit(ErrorCode(err))
	switch {
	case err == nil:
		return comparison.Pass
	case errors.As(err, &code) && code == cmdenv.Fail:
		return comparison.Fail
	case code == cmdenv.Inconclusive:
		return comparison.Inconclusive
	}
	return comparison.Error
}

// githubFlags say how a command talks to GitHub.
type githubFlags struct {
	comment     string
	commentKey  string
	pull        int
	status      string
	reportURL   string
	allowUnsafe bool
	label       string   // label that accepts a verdict
	acceptBy    []string // who may set it
	exitOn      string
}

// exitLevels are the values of --exit-on, from the strictest; fail and error mean the same.
var exitLevels = []string{"warn", "inconclusive", "fail", "error", "never"}

// commentModes are the values of --comment, in the order of the help text.
var commentModes = []string{string(gate.Always), string(gate.OnChange), string(gate.OnFailure), string(gate.Never)}

func (f *githubFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.label, "override-label", "perf:accept",
		"this `LABEL` on the pull request turns fail and inconclusive into warn; empty: none does")
	fl.StringSliceVar(&f.acceptBy, "accept-by", nil,
		"`WHO` may set that label: a role, a login, @org/team or CODEOWNERS of the policy (default write)")
	fl.StringVar(&f.exitOn, "exit-on", "inconclusive",
		"fail on this `LEVEL` of verdict or a worse one: "+strings.Join(exitLevels, ", "))
	cmdenv.Complete(cmd, "exit-on", exitLevels)
	fl.StringVar(&f.comment, "comment", string(gate.Always),
		"`WHEN` to comment on the pull request (GitHub Actions): "+strings.Join(commentModes, ", "))
	fl.StringVar(&f.commentKey, "comment-key", "",
		"`KEY` that distinguishes several comments on one pull request (default: workflow and job)")
	fl.IntVar(&f.pull, "pull-request", 0, "`NUMBER` of the pull request to comment on, if the event names none")
	fl.StringVar(&f.status, "status", "",
		"also set a commit status of this `NAME` on the head (permission statuses: write)")
	fl.StringVar(&f.reportURL, "report-url", "",
		"link the comment to diff.html at this `URL` (default: the artifacts of the run)")
	fl.BoolVar(&f.allowUnsafe, "allow-unsafe", false, "run on pull_request_target although the head is checked out")
	cmdenv.Complete(cmd, "comment", commentModes)
}

// session opens the session with GitHub; folder is --out. It is nil outside GitHub Actions. It refuses to run beside a
// write token if the checkout is untrusted code. On wrong usage it returns a session and the error, so that the error
// is posted in place of the last verdict.
func (f *githubFlags) session(ctx context.Context, e *cmdenv.Env, folder string) (*gate.Session, error) {
	mode, wrong := gate.ParseMode(f.comment)
	switch u, err := url.Parse(f.reportURL); {
	case wrong != nil:
		mode, wrong = gate.Always, usage.Errorf("--comment: %w", wrong)
	case !slices.Contains(exitLevels, f.exitOn):
		wrong = usage.Errorf("--exit-on %s is unknown; it is one of %s", f.exitOn, strings.Join(exitLevels, ", "))
	case f.pull < 0:
		wrong = usage.Errorf("--pull-request must be at least 1, got %d", f.pull)
	case f.reportURL != "" && (err != nil || u.Host == "" || u.User != nil ||
		u.Scheme != "https" && u.Scheme != "http"):
		wrong = usage.Errorf("--report-url is not an http or https address without credentials")
		f.reportURL = ""
	}
	s, err := gate.Open(gate.SessionOptions{
		Getenv: e.Getenv, Out: e.Out, Mode: mode, Key: f.commentKey, Number: max(f.pull, 0), Folder: folder,
		Status: f.status, Paragraph: paragraph, OneLine: diffrender.OneLine,
		Say: func(line string) { fmt.Fprintln(e.Err, gate.Defuse(render.Visible(line))) },
	})
	switch {
	case errors.Is(err, gate.ErrNotInActions):
		return nil, wrong
	case err != nil:
		return nil, err
	}
	if err = s.Of.Run.CheckTrusted(); err != nil && !f.allowUnsafe {
		err = usage.Error{Err: err}
	} else {
		err = s.Connect(ctx)
	}
	if err != nil {
		s.Fail(verdictOf(err), ErrorCode(err), err)
		return nil, err
	}
	return s, wrong
}

// exitCode returns the exit code of a verdict; --exit-on can make it milder or stricter.
func (f *githubFlags) exitCode(v comparison.Verdict) int {
	switch {
	case f.exitOn == "never", (f.exitOn == "error" || f.exitOn == "fail") && v == comparison.Inconclusive:
		return cmdenv.OK
	case f.exitOn == "warn" && v == comparison.Warn:
		return cmdenv.Fail
	}
	return cmdenv.VerdictCode(v)
}

// failed says everywhere that nothing was judged, with text in the comment and the summary, and returns the error that
// the command ends with: with --exit-on never it prints the error and returns nil.
func (f *githubFlags) failed(
	ctx context.Context, e *cmdenv.Env, s *gate.Session, text func(limit int) string, err error,
) error {
	if s != nil {
		s.Fail(verdictOf(err), ErrorCode(err), err)
		s.TellError(ctx, verdictOf(err), text)
	}
	if f.exitOn != "never" {
		return err
	}
	fmt.Fprintln(e.Err, "error: "+gate.Defuse(render.Visible(err.Error())))
	return nil
}

func errorText(err error, o diffrender.CommentOptions) func(limit int) string {
	return func(limit int) string {
		return diffrender.ErrorComment(verdictOf(err), err.Error(), o, limit)
	}
}

// acceptance returns who may accept a verdict, as the flags say; file is the policy.
func (f *githubFlags) acceptance(file string) gate.Acceptance {
	return gate.Acceptance{Label: f.label, By: f.acceptBy, File: file}
}

// paragraph returns a line of text as a paragraph of markdown.
func paragraph(text string) string {
	var b strings.Builder
	page := doc.Document{doc.P(text)}
	if err := render.Markdown(&b, page, render.MarkdownOptions{}); err != nil {
		return ""
	}
	return b.String()
}

// provenance returns the details of this run that a comment shows around the comparison.
func (f *githubFlags) provenance(s *gate.Session) diffrender.CommentOptions {
	at := diffrender.Provenance{PageURL: f.reportURL}
	if s == nil {
		return diffrender.CommentOptions{Provenance: at}
	}
	at.HeadSHA, at.RunURL = s.Of.HeadSHA(), s.Of.Run.URL()
	at.PageURL = cmp.Or(f.reportURL, s.Of.Run.RunURL(s.Of.Run.ID)+"#artifacts")
	return diffrender.CommentOptions{Title: s.Title, Provenance: at}
}
