package gate

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/diff/comparison"
)

// SummaryRoom is the size in bytes of the text that Tell puts into a step's summary: what is said after it, of a
// comment that could not be posted, still fits.
const SummaryRoom = summaryLimit - 8<<10

// Result is what a gate tells GitHub.
type Result struct {
	Comparison *comparison.Comparison
	ExitCode   int
	Folder     string // that the files were written to; empty: none
	Base       struct {
		SHA    string // commit that was measured; empty where unknown
		Source string
	}
	// Comment and Summary render the text in at most limit bytes.
	Comment, Summary func(limit int) string
}

// Tell sets the outputs of the step, writes its summary and one annotation, and brings the comment up to date.
func (s *Session) Tell(ctx context.Context, r *Result) {
	c := r.Comparison
	regressed, improved, unsettled := c.Classes()
	for _, o := range [][2]string{
		{"verdict", string(c.Verdict)}, {"exit-code", strconv.Itoa(r.ExitCode)},
		{"regressions", strconv.Itoa(regressed)}, {"improvements", strconv.Itoa(improved)},
		{"inconclusive", strconv.Itoa(unsettled)},
		{"comparison-json", s.inWorkspace(r.Folder, "comparison.json")},
		{"comment-markdown", s.inWorkspace(r.Folder, "comment.md")},
		{"report-dir", s.inWorkspace(r.Folder, "reports")},
		{"baseline-sha", r.Base.SHA}, {"baseline-source", r.Base.Source},
	} {
		s.output(o[0], o[1])
	}
	s.summary(r.Summary(SummaryRoom))
	s.annotate(c)
	s.post(ctx, s.Number, commentOn(c, r.Comment))
}

// TellError says in the summary and the comment that there is no verdict: a comment of an earlier run would go on
// saying what was true of another commit. body renders the text in at most limit bytes.
func (s *Session) TellError(ctx context.Context, body func(limit int) string) {
	if ctx.Err() != nil {
		return
	}
	s.summary(body(SummaryRoom))
	s.post(ctx, s.Number, comment{Verdict: comparison.Error, Changed: true, Body: body})
}

// Fail sets the outputs of a step that came to no verdict, and annotates it with the error.
func (s *Session) Fail(exitCode int, err error) {
	s.output("verdict", string(comparison.Error))
	s.output("exit-code", strconv.Itoa(exitCode))
	s.log.Annotate(failureLevel, "explain: error", err.Error())
}

// Comment puts a text about a comparison into the summary and on a pull request, which may be another than the event's;
// number 0 is none. body renders the text in at most limit bytes.
func (s *Session) Comment(ctx context.Context, number int, c *comparison.Comparison, body func(limit int) string) {
	s.summary(body(SummaryRoom))
	s.post(ctx, number, commentOn(c, body))
}

// TellTrigger sets, for a step on workflow_run, the output verdict and, where status is not empty, the commit status of
// that name on the head of the run that has finished.
func (s *Session) TellTrigger(ctx context.Context, c *comparison.Comparison, status string) {
	s.output("verdict", string(c.Verdict))
	if status == "" {
		return
	}
	why := s.client.setStatus(ctx, commitStatus{
		SHA: s.Run.Trigger.HeadSHA, OK: c.Verdict == comparison.Pass || c.Verdict == comparison.Warn,
		Context: status, Text: "explain: " + string(c.Verdict), URL: s.Run.URL(),
	})
	if why != "" {
		s.o.Say("status: " + why)
	}
}

// commentOn is a comment on a comparison.
func commentOn(c *comparison.Comparison, body func(int) string) comment {
	regressed, improved, unsettled := c.Classes()
	return comment{Verdict: c.Verdict, Changed: regressed+improved+unsettled > 0 || len(c.Structure) > 0, Body: body}
}

// inWorkspace is the path of a file in a folder as later steps name it, from the workspace; empty without a folder.
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

// annotate says the verdict in one line, and how much was checked: numbers and ids of metrics, no name of a capture.
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

// post brings the comment up to date, and says in the log and the summary where it could not.
func (s *Session) post(ctx context.Context, number int, w comment) {
	if number == 0 || s.o.Mode == Never {
		return
	}
	why := "no token: set GITHUB_TOKEN for this step (env: GITHUB_TOKEN: ${{ github.token }})"
	if s.token {
		w.Key, w.Mode, w.Stamp = s.key, s.o.Mode, s.Run.stamp()
		posted := s.client.upsert(ctx, number, w)
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
