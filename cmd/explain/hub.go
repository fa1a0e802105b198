package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/diff/comparison"
	diffrender "github.com/nsys-llm/explain/diff/render"
	"github.com/nsys-llm/explain/gate"
)

// hubFlags say how a command talks to GitHub.
type hubFlags struct {
	comment     string
	commentKey  string
	pull        int
	allowUnsafe bool
}

// commentModes of --comment, in the order of the help text.
var commentModes = []string{string(gate.Always), string(gate.OnChange), string(gate.OnFailure), string(gate.Never)}

func (f *hubFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.comment, "comment", string(gate.Always), "`WHEN` to comment on the pull request (GitHub Actions): "+strings.Join(commentModes, ", "))
	fl.StringVar(&f.commentKey, "comment-key", "", "`KEY` that tells several comments of one pull request apart (default: workflow and job)")
	fl.IntVar(&f.pull, "pull-request", 0, "`NUMBER` of the pull request to comment on, where the event names none")
	fl.BoolVar(&f.allowUnsafe, "allow-unsafe", false, "run on pull_request_target although the head is checked out")
	_ = cmd.RegisterFlagCompletionFunc("comment", cobra.FixedCompletions(commentModes, cobra.ShellCompDirectiveNoFileComp))
}

// hub is GitHub, as seen from a step of a workflow. A nil hub is any other place: nothing is fetched or posted.
type hub struct {
	run    *gate.Run
	client *gate.Client
	log    *gate.Log
	mode   gate.Mode
	key    string
	title  string     // of the comment; empty for the only one of its job
	number int        // of the pull request; 0 where there is none
	pull   *gate.Pull // nil where there is none, or GitHub does not show it
	token  bool
	err    func(string) // one line to the log
}

// openHub finds out where this runs. A head of strangers beside a token that can write is refused.
func openHub(ctx context.Context, w *world, f hubFlags) (*hub, error) {
	mode, err := gate.ParseMode(f.comment)
	if err != nil {
		return nil, usagef("--comment: %w", err)
	}
	if f.pull < 0 {
		return nil, usagef("--pull-request must be at least 1, got %d", f.pull)
	}
	run, err := gate.ReadRun(w.Getenv)
	switch {
	case errors.Is(err, gate.ErrNotInActions):
		return nil, nil
	case err != nil:
		return nil, err
	}
	h := &hub{run: run, log: gate.NewLog(w.Out, w.Getenv), mode: mode, key: f.commentKey, title: f.commentKey, number: f.pull}
	h.err = func(s string) { fmt.Fprintln(w.Err, gate.Defuse(clean(s))) }
	if err := run.CheckTrusted(); err != nil && !f.allowUnsafe {
		h.failed(usageError{err})
		return nil, usageError{err}
	}
	if h.number == 0 {
		h.number = run.Number
	}
	if h.key == "" {
		h.title = legName(w.Getenv("EXPLAIN_MATRIX"))
		h.key = strings.TrimSuffix(run.Workflow+"-"+run.Job+"-"+h.title, "-")
	}
	token := w.Getenv("GITHUB_TOKEN")
	if h.token = token != ""; h.token {
		if err := h.log.Mask(token); err != nil {
			return nil, err
		}
	}
	if h.client, err = gate.New(run, gate.Options{Token: token, Notice: h.err}); err != nil {
		h.failed(err)
		return nil, err
	}
	if h.pull = run.Pull; h.pull == nil && f.pull != 0 {
		if h.pull, err = h.client.Pull(ctx, f.pull); err != nil {
			h.err(fmt.Sprintf("pull request %d: %s", f.pull, err))
		}
	}
	return h, nil
}

// summaryLimit leaves room for what is said after the summary was written, in bytes.
const summaryLimit = gate.SummaryLimit - 8<<10

// baseCommit is the base of the pull request, where the event is about one.
func (h *hub) baseCommit() string {
	if h == nil || h.pull == nil {
		return ""
	}
	return h.pull.BaseSHA
}

// file reads a file of the repository at a ref; path is meant in the working directory.
func (h *hub) file(ctx context.Context, path, ref string) ([]byte, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(h.run.Workspace, full)
	if err != nil || strings.HasPrefix(rel, "..") {
		return nil, fmt.Errorf("%s is not in the checkout", path)
	}
	return h.client.File(ctx, filepath.ToSlash(rel), ref, maxPolicy)
}

// artifactBaseline takes the base from an artifact of the base branch.
func (h *hub) artifactBaseline(ctx context.Context, artifact, branch string) (baseline, error) {
	if h == nil {
		return baseline{}, usagef("--baseline-artifact finds an artifact in GitHub Actions, and this is not one of its jobs: name the files with --base")
	}
	if branch == "" {
		switch {
		case h.pull != nil:
			branch = h.pull.BaseRef
		case h.run.Push != nil:
			branch = h.run.Push.Ref
		default:
			return baseline{}, usagef("the event %s has no base branch: name one with --baseline-branch", h.run.Event)
		}
	}
	found, err := h.client.Baseline(ctx, gate.BaselineQuery{Artifact: artifact, Branch: branch, HeadSHA: h.run.HeadSHA()})
	if err != nil {
		return baseline{}, err
	}
	reports, err := readBaseline(found.Files)
	switch {
	case err != nil:
		return baseline{}, fmt.Errorf("%s: %w", found.Source, err)
	case len(reports) == 0:
		return baseline{}, &gate.NoBaseline{Reason: found.Source + " holds no report.json"}
	}
	b := baseline{reports: reports, source: found.Source, sha: found.SHA}
	for _, warning := range found.Warnings {
		b.notes = append(b.notes, []doc.Span{doc.Text("Baseline: " + warning)})
	}
	return b, nil
}

// override accepts a failure where the label is on the pull request now.
func (h *hub) override(ctx context.Context, number int, c *comparison.Comparison, label string) {
	if label == "" || number == 0 || !h.token || c.Verdict != comparison.Fail {
		return
	}
	switch l, err := h.client.Label(ctx, number, label); {
	case err != nil:
		h.err("the label " + label + " could not be looked up: " + err.Error())
	case l != nil:
		c.Accept(l.Name, l.By)
	}
}

// options are what stands around the comparison in a comment.
func (h *hub) options(b baseline) diffrender.CommentOptions {
	o := diffrender.CommentOptions{Provenance: diffrender.Provenance{Baseline: b.source, BaseSHA: b.sha}}
	if h == nil {
		return o
	}
	o.Title = h.title
	o.Provenance.HeadSHA = h.run.HeadSHA()
	if b.sha == "" && len(b.inputs) > 0 {
		o.Provenance.BaseSHA = h.baseCommit()
	}
	o.Provenance.RunURL = h.run.URL()
	return o
}

// runURL is the page of a run of this repository.
func (h *hub) runURL(id int64) string {
	return h.run.ServerURL + "/" + h.run.Repository + "/actions/runs/" + strconv.FormatInt(id, 10)
}

// legName tells the jobs of a matrix apart: its values in the order of their names. matrix is JSON, null outside of one.
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

// tell tells GitHub: outputs, summary, annotations, comment. Nothing of it changes the verdict.
func (h *hub) tell(ctx context.Context, j *judged, out string, code int) {
	if h == nil {
		return
	}
	path := func(name string) string { return h.inWorkspace(out, name) }
	regressed, improved, unsettled := j.c.Classes()
	for _, o := range [][2]string{
		{"verdict", string(j.c.Verdict)}, {"exit-code", strconv.Itoa(code)},
		{"regressions", strconv.Itoa(regressed)}, {"improvements", strconv.Itoa(improved)}, {"inconclusive", strconv.Itoa(unsettled)},
		{"comparison-json", path("comparison.json")}, {"comment-markdown", path("comment.md")}, {"report-dir", path("reports")},
		{"baseline-sha", j.base.sha}, {"baseline-source", j.base.source},
	} {
		h.output(o[0], o[1])
	}
	h.summary(j.summary(summaryLimit))
	h.annotate(j.c)
	h.post(ctx, h.number, commentOn(j.c, j.markdown), gate.Comment{Stamp: h.run.Stamp()})
}

// tellError says in the summary and the comment that there is no verdict. A comment of an earlier run would go on saying what was
// true of another commit.
func (h *hub) tellError(ctx context.Context, err error) {
	if h == nil || ctx.Err() != nil {
		return
	}
	body := func(limit int) string {
		o := h.options(baseline{})
		o.Limit = limit
		return diffrender.ErrorComment(err.Error(), o)
	}
	h.summary(body(summaryLimit))
	h.post(ctx, h.number, said{verdict: comparison.Error, changed: true, body: body}, gate.Comment{Stamp: h.run.Stamp()})
}

// said is what a comment says.
type said struct {
	verdict comparison.Verdict
	changed bool
	body    func(limit int) string
}

// commentOn is what a comment says of a comparison.
func commentOn(c *comparison.Comparison, body func(int) string) said {
	regressed, improved, unsettled := c.Classes()
	return said{c.Verdict, regressed+improved+unsettled > 0 || len(c.Structure) > 0, body}
}

// inWorkspace is the path of a file of the folder out as later steps name it, from the workspace; empty without a folder.
func (h *hub) inWorkspace(out, name string) string {
	if out == "" {
		return ""
	}
	path := filepath.Join(out, name)
	if full, err := filepath.Abs(path); err == nil {
		path = full
		if rel, err := filepath.Rel(h.run.Workspace, full); err == nil && h.run.Workspace != "" && !strings.HasPrefix(rel, "..") {
			path = rel
		}
	}
	return filepath.ToSlash(path)
}

// annotate says the verdict in one line, and how much was checked: numbers and ids of metrics, no name of a capture.
func (h *hub) annotate(c *comparison.Comparison) {
	level := map[comparison.Verdict]gate.Level{comparison.Pass: gate.Notice, comparison.Warn: gate.Warning, comparison.Inconclusive: gate.Warning}[c.Verdict]
	if level == "" {
		level = gate.Failure
	}
	h.log.Annotate(level, "explain: "+string(c.Verdict), diffrender.OneLine(c))
}

// post brings the comment up to date, and says where it could not.
func (h *hub) post(ctx context.Context, number int, s said, w gate.Comment) {
	if number == 0 || h.mode == gate.Never {
		return
	}
	why := ""
	switch {
	case !h.token:
		why = "no token: set GITHUB_TOKEN for this step (env: GITHUB_TOKEN: ${{ github.token }})"
	default:
		w.Key, w.Mode, w.Verdict, w.Changed, w.Body = gate.CleanKey(h.key), h.mode, s.verdict, s.changed, s.body
		posted := h.client.Upsert(ctx, number, w)
		if posted.ID != 0 {
			h.output("comment-id", strconv.FormatInt(posted.ID, 10))
			h.output("comment-url", posted.URL)
		}
		h.err("comment: " + strings.TrimSuffix(string(posted.Action)+" "+posted.URL, " "))
		why = posted.Reason
	}
	if why == "" {
		return
	}
	h.err("comment: " + why)
	h.log.Annotate(gate.Notice, "explain: comment", why)
	var b strings.Builder
	if render.Markdown(&b, doc.Document{Blocks: []doc.Block{doc.P(doc.Text("Comment: " + why))}}, render.MarkdownOptions{}) == nil {
		h.summary("\n" + b.String())
	}
}

// failed tells that there is no verdict.
func (h *hub) failed(err error) {
	if h == nil {
		return
	}
	code := exitInput
	if errors.As(err, new(usageError)) {
		code = exitUsage
	}
	h.output("verdict", string(comparison.Error))
	h.output("exit-code", strconv.Itoa(code))
	h.log.Annotate(gate.Failure, "explain: error", err.Error())
}

func (h *hub) output(name, value string) {
	if err := h.log.Output(name, value); err != nil {
		h.err("output " + name + ": " + err.Error())
	}
}

func (h *hub) summary(markdown string) {
	if err := h.log.Summary(markdown); err != nil {
		h.err("summary: " + err.Error())
	}
}
