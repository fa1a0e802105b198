package gate

import (
	"context"
	"strconv"
	"strings"

	"github.com/google/go-github/v62/github"

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
	BaseSHA    string // commit of the base that was measured; empty if unknown
	BaseSource string
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
		{"comparison-json", s.Of.Run.inWorkspace(r.Folder, "comparison.json")},
		{"comment-markdown", s.Of.Run.inWorkspace(r.Folder, "comment.md")},
		{"report-dir", s.Of.Run.inWorkspace(r.Folder, "reports")},
		{"baseline-sha", r.BaseSHA}, {"baseline-source", r.BaseSource},
	} {
		s.log.output(o[0], o[1])
	}
	s.verdict(c.Verdict, r.ExitCode)
	s.log.summary(r.Summary(SummaryRoom))
	// numbers and ids of metrics, no name of a capture
	s.log.Annotate(shown[c.Verdict].level, "explain: "+string(c.Verdict), s.o.OneLine(c))
	s.post(ctx, commentOn(c, r.Comment))
}

// TellError says in the summary, the comment and the status that nothing was judged: those of an earlier run would
// otherwise stay, and describe another commit. body renders the text in at most limit bytes.
func (s *Session) TellError(ctx context.Context, verdict comparison.Verdict, body func(limit int) string) {
	if ctx.Err() != nil || s.client == nil {
		return
	}
	s.log.summary(body(SummaryRoom))
	s.post(ctx, comment{Verdict: verdict, Changed: true, Body: body})
}

// Fail sets the outputs of a step that judged nothing, and annotates it with the error.
func (s *Session) Fail(verdict comparison.Verdict, exitCode int, err error) {
	s.verdict(verdict, exitCode)
	s.log.Annotate(failureLevel, "explain: "+string(verdict), err.Error())
}

// verdict sets the outputs for the verdict and the exit code. If several pull requests have one head, the worst counts.
func (s *Session) verdict(v comparison.Verdict, exitCode int) {
	if s.worst == "" || comparison.Rank(v) > comparison.Rank(s.worst) {
		s.log.output("verdict", string(v))
		s.log.output("exit-code", strconv.Itoa(exitCode))
	}
}

// Comment writes a text about a comparison into the summary and the pull request, and sets the output verdict and the
// status. body renders the text in at most limit bytes.
func (s *Session) Comment(ctx context.Context, c *comparison.Comparison, body func(limit int) string) {
	s.log.output("verdict", string(c.Verdict))
	s.log.summary(body(SummaryRoom))
	s.post(ctx, commentOn(c, body))
}

func commentOn(c *comparison.Comparison, body func(int) string) comment {
	regressed, improved, unsettled := c.Classes()
	return comment{Verdict: c.Verdict, Changed: regressed+improved+unsettled > 0 || len(c.Structure) > 0, Body: body}
}

// shown is how each verdict is shown: as an annotation, and as the state of a commit.
var shown = map[comparison.Verdict]struct {
	level level
	state string
}{
	comparison.Pass:         {noticeLevel, "success"},
	comparison.Warn:         {warningLevel, "success"},
	comparison.Fail:         {failureLevel, "failure"},
	comparison.Inconclusive: {warningLevel, "failure"},
	comparison.Error:        {failureLevel, "error"},
}

// post updates the comment, and sets the commit status of the head if one was asked for. If several pull requests have
// that head, the worst verdict counts.
func (s *Session) post(ctx context.Context, w comment) {
	s.comment(ctx, w)
	if s.worst == "" || comparison.Rank(w.Verdict) > comparison.Rank(s.worst) {
		s.worst = w.Verdict
		s.setStatus(ctx, shown[w.Verdict].state, string(w.Verdict)+s.Of.against())
	}
}

// Pending sets the head's commit status, if one was asked for, to pending: an earlier status may come from another base
// or policy.
func (s *Session) Pending(ctx context.Context) { s.setStatus(ctx, "pending", "being judged") }

func (s *Session) setStatus(ctx context.Context, state, text string) {
	sha := s.Of.HeadSHA()
	if s.o.Status == "" || !s.token || sha == "" {
		return
	}
	status := &github.RepoStatus{State: &state, Context: &s.o.Status, Description: new("explain: " + text), TargetURL: new(s.Of.Run.URL())}
	if why := s.client.setStatus(ctx, sha, status); why != "" {
		s.o.Say("status: " + why)
	}
}

// comment updates the comment, and says in the log and the summary if it could not.
func (s *Session) comment(ctx context.Context, w comment) {
	if s.Of.Number == 0 || s.o.Mode == Never {
		return
	}
	why := "no token: set GITHUB_TOKEN for this step (env: GITHUB_TOKEN: ${{ github.token }})"
	if s.token {
		w.Key, w.Mode, w.Stamp = s.key, s.o.Mode, s.Of.stamp()
		posted := s.client.upsert(ctx, s.Of.Number, w)
		if posted.ID != 0 {
			s.log.output("comment-id", strconv.FormatInt(posted.ID, 10))
			s.log.output("comment-url", posted.URL)
		}
		s.o.Say("comment: " + strings.TrimSuffix(string(posted.Action)+" "+posted.URL, " "))
		why = posted.Reason
	}
	if why == "" {
		return
	}
	s.o.Say("comment: " + why)
	s.log.Annotate(noticeLevel, "explain: comment", why)
	s.log.summary("\n" + s.o.Paragraph("Comment: "+why))
}
