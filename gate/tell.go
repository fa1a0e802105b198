package gate

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/diff/comparison"
)

// SummaryRoom is the size in bytes of the text that Tell puts into a step's summary. It leaves room for a later line on
// a comment that could not be posted.
const SummaryRoom = summaryLimit - 8<<10

// Result is what a gate tells GitHub.
type Result struct {
	Comparison *comparison.Comparison
	ExitCode   int
	Folder     string // that the files were written to; empty: none
	Base       struct {
		SHA    string // commit that was measured; empty if unknown
		Source string
	}
	// Comment and Summary render the text in at most limit bytes.
	Comment, Summary func(limit int) string
}

// Tell sets the outputs of the step, writes its summary and one annotation, and updates the comment.
func (s *Session) Tell(ctx context.Context, r *Result) {
	c := r.Comparison
	regressed, improved, unsettled := c.Classes()
	for _, o := range [][2]string{
		{"regressions", strconv.Itoa(regressed)}, {"improvements", strconv.Itoa(improved)},
		{"inconclusive", strconv.Itoa(unsettled)},
		{"comparison-json", s.inWorkspace(r.Folder, "comparison.json")},
		{"comment-markdown", s.inWorkspace(r.Folder, "comment.md")},
		{"report-dir", s.inWorkspace(r.Folder, "reports")},
		{"baseline-sha", r.Base.SHA}, {"baseline-source", r.Base.Source},
	} {
		s.output(o[0], o[1])
	}
	s.verdict(c.Verdict, r.ExitCode)
	s.summary(r.Summary(SummaryRoom))
	s.annotate(c)
	s.post(ctx, commentOn(c, r.Comment))
	s.status(ctx, c.Verdict)
}

// TellError says in the summary, the comment and the status that nothing was judged: those of an earlier run would
// otherwise stay, and describe another commit. body renders the text in at most limit bytes.
func (s *Session) TellError(ctx context.Context, verdict comparison.Verdict, body func(limit int) string) {
	if ctx.Err() != nil || s.client == nil {
		return
	}
	s.summary(body(SummaryRoom))
	s.post(ctx, comment{Verdict: verdict, Changed: true, Body: body})
	s.status(ctx, verdict)
}

// Fail sets the outputs of a step that judged nothing, and annotates it with the error.
func (s *Session) Fail(verdict comparison.Verdict, exitCode int, err error) {
	s.verdict(verdict, exitCode)
	s.log.Annotate(failureLevel, "explain: "+string(verdict), err.Error())
}

// verdict sets the outputs for the verdict and the exit code. If several pull requests have one head, the worst counts.
func (s *Session) verdict(v comparison.Verdict, exitCode int) {
	if s.worst == "" || comparison.Rank(v) > comparison.Rank(s.worst) {
		s.output("verdict", string(v))
		s.output("exit-code", strconv.Itoa(exitCode))
	}
}

// Comment writes a text about a comparison into the summary and the pull request, and sets the output verdict and the
// status. body renders the text in at most limit bytes.
func (s *Session) Comment(ctx context.Context, c *comparison.Comparison, body func(limit int) string) {
	s.output("verdict", string(c.Verdict))
	s.summary(body(SummaryRoom))
	s.post(ctx, commentOn(c, body))
	s.status(ctx, c.Verdict)
}

// status sets the commit status of the head if one was asked for. If several pull requests have that head, the worst
// counts.
func (s *Session) status(ctx context.Context, v comparison.Verdict) {
	if s.worst != "" && comparison.Rank(v) <= comparison.Rank(s.worst) {
		return
	}
	s.worst = v
	state := map[comparison.Verdict]string{comparison.Pass: "success", comparison.Warn: "success",
		comparison.Error: "error"}[v]
	s.setStatus(ctx, cmp.Or(state, "failure"), string(v)+s.against())
}

func (s *Session) setStatus(ctx context.Context, state, text string) {
	sha := s.HeadSHA()
	if s.o.Status == "" || !s.token || sha == "" {
		return
	}
	if why := s.client.setStatus(ctx, commitStatus{SHA: sha, State: state, Context: s.o.Status, Text: "explain: " + text, URL: s.Run.URL()}); why != "" {
		s.o.Say("status: " + why)
	}
}

// against names the base of a verdict: two pull requests with one head have two bases.
func (s *Session) against() string {
	if s.Pull == nil {
		return ""
	}
	return fmt.Sprintf(" on #%d against %s at %s", s.Number, oneLine(s.Pull.BaseRef, 40), short(s.Pull.BaseSHA))
}

// Pending sets the head's commit status, if one was asked for, to pending: an earlier status may come from another base
// or policy.
func (s *Session) Pending(ctx context.Context) { s.setStatus(ctx, "pending", "being judged") }

// commentOn is a comment on a comparison.
func commentOn(c *comparison.Comparison, body func(int) string) comment {
	regressed, improved, unsettled := c.Classes()
	return comment{Verdict: c.Verdict, Changed: regressed+improved+unsettled > 0 || len(c.Structure) > 0, Body: body}
}

// inWorkspace is the path of a file in a folder, relative to the workspace, for later steps; empty without a folder.
func (s *Session) inWorkspace(folder, name string) string {
	if folder == "" {
		return ""
	}
	path := filepath.Join(folder, name)
	if full, err := filepath.Abs(path); err == nil {
		path = full
		rel, err := filepath.Rel(s.Run.Workspace, full)
		if err == nil && s.Run.Workspace != "" && !strings.HasPrefix(rel, "..") {
			path = rel
		}
	}
	return filepath.ToSlash(path)
}

// stamp of the numbers. It knows the head even if the event names a pull request by number only.
func (s *Session) stamp() stamp {
	st := s.Run.stamp()
	st.HeadSHA = s.HeadSHA()
	if s.measured != 0 { // the gate of that run may still be to come, and counts as new as this
		st.RunID, st.Attempt = s.measured, 1
	}
	return st
}

// Measures is the run whose measurements are judged: this one, or on workflow_run the one that has finished.
func (s *Session) Measures() int64 { return s.stamp().RunID }

// annotate writes the verdict and how much was checked in one line: numbers and ids of metrics, no name of a capture.
func (s *Session) annotate(c *comparison.Comparison) {
	level := failureLevel
	switch c.Verdict {
	case comparison.Pass:
		level = noticeLevel
	case comparison.Warn, comparison.Inconclusive:
		level = warningLevel
	case comparison.Fail, comparison.Error:
	}
	s.log.Annotate(level, "explain: "+string(c.Verdict), s.o.OneLine(c))
}

// post updates the comment, and says in the log and the summary if it could not.
func (s *Session) post(ctx context.Context, w comment) {
	if s.Number == 0 || s.o.Mode == Never {
		return
	}
	why := "no token: set GITHUB_TOKEN for this step (env: GITHUB_TOKEN: ${{ github.token }})"
	if s.token {
		w.Key, w.Mode, w.Stamp = s.key, s.o.Mode, s.stamp()
		posted := s.client.upsert(ctx, s.Number, w)
		if posted.ID != 0 {
			s.output("comment-id", strconv.FormatInt(posted.ID, 10))
			s.output("comment-url", posted.URL)
		}
		s.o.Say("comment: " + strings.TrimSuffix(string(posted.Action)+" "+posted.URL, " "))
		why = posted.Reason
	}
	if why == "" {
		return
	}
	s.o.Say("comment: " + why)
	s.log.Annotate(noticeLevel, "explain: comment", why)
	s.summary("\n" + s.o.Paragraph("Comment: "+why))
}

func (s *Session) output(name, value string) {
	if err := s.log.Output(name, value); err != nil {
		s.o.Say("output " + name + ": " + err.Error())
	}
}

func (s *Session) summary(markdown string) {
	if err := s.log.Summary(markdown); err != nil {
		s.o.Say("summary: " + err.Error())
	}
}
