package ci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/crash"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/output"
	"github.com/nsys-llm/explain/cmd/explain/internal/rulesfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	diffrender "github.com/nsys-llm/explain/diff/diffdoc"
	"github.com/nsys-llm/explain/gate"
)

func newGate(e *cmdenv.Env) *cobra.Command {
	var f gateFlags
	cmd := &cobra.Command{
		Use:        "gate --head FILES [--base FILES] [--policy FILE]",
		SuggestFor: []string{"check", "judge", "budget"},
		Short:      "Judge a change by a policy, on any CI; in GitHub Actions also comment on the change",
		Long: `gate compares two sides as diff does, judges them by a policy, and writes files for a CI system:

  comparison.json   the comparison with its verdict, see "explain doc schema comparison"
  diff.html         the same for a browser, in one file
  comment.md        the same for a pull request, at most 60,000 bytes
  summary.md        the same at greater length
  gate.junit.xml    a test case for each gate
  reports/          a report of each capture of the head, to keep as the next baseline
  base/             the reports of the base

FILES are traces, reports or folders that "explain --out" wrote; separated by commas, repeated, or
globs. Without a baseline only budgets are judged. If the policy has rules on changes too, the verdict is
then a warning at best: on the first run, before there can be a baseline, or if none was named and a
budget was judged. Else, as when the named baseline is missing, it is inconclusive (on_missing_baseline
in the policy changes that).

For a pull request, a merge queue or a push on GitHub, a merge request on GitLab, and a pull request on
Jenkins or Buildkite, gate reads the policy, noise floors, a checked-in baseline and the phase map from
the base commit, so a change cannot alter its judge. If one cannot be read there, the exit code is 4.
New files take effect after the merge. Elsewhere, name the base with --policy-ref.

On workflow_run, for pull requests from forks, it judges the reports that the finished run left. It
needs no checkout and trusts only the numbers; the comment says so.

In GitHub Actions it also sets outputs, writes the step summary and at most three annotations, and
updates one comment on the pull request, in this order, before it exits. The token is read from
GITHUB_TOKEN. If GitHub refuses the comment, the verdict stays the same.

Exit codes: 0 pass or warn, 1 fail, 2 wrong usage or policy file, 3 input that cannot be analysed, 4
inconclusive.`,
		Example: `  explain gate --base base.sqlite --head head.sqlite --out gate/
  explain gate --base 'base-*.json' --head 'head-*.json' --policy policy.yml --out gate/
  explain gate --base base.sqlite --head head.sqlite --fail-on 'unit.time.p50:+3%,+200us'
  explain gate --head head.sqlite --fail-on 'unit.time.p50{phase=decode}:<=2.5ms' --out gate/`,
		Args: cmdenv.Args(0, 0, "gate takes its sides by flags: explain gate --base BASE --head HEAD, for budgets --head alone"),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, e) },
	}
	f.register(cmd)
	cmd.AddCommand(newComment(e))
	return cmd
}

// defaultArtifact is the name of the artifact with a run's reports if --artifact is not given.
const defaultArtifact = "explain"

type gateFlags struct {
	analysis         cmdenv.AnalysisFlags
	github           githubFlags
	base, head       []string
	rules            rulesfile.Flags
	policyRef        string
	phase            string
	batch            int64
	baselineArtifact string
	baselineBranch   string
	baselineFile     string
	historyArtifact  string
	baseCommit       string
	artifact         string
	format           string
	out              string

	pins gate.Pins // fixes the files that decide, in the version that was read
}

func (f *gateFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.base, "base", nil, "`FILES` of the base (repeatable, commas, globs)")
	fl.StringArrayVar(&f.head, "head", nil, "`FILES` of the head")
	f.rules.Register(cmd)
	fl.StringVar(&f.policyRef, "policy-ref", "",
		"read policy, noise, checked-in baseline and phase map at this `REF`; head: the files here (default for a change: its base)")
	fl.StringVar(&f.phase, "phase", "",
		"compare units of this `PHASE` (prefill, decode, …; default: the policy's, or the one with most time)")
	fl.Int64Var(&f.batch, "batch", 0, "compare units of this batch size `N`")
	fl.StringVar(&f.baselineArtifact, "baseline-artifact", "",
		"without --base: take the base from the artifact of this `NAME` on the base branch (GitHub Actions)")
	fl.StringVar(&f.baselineBranch, "baseline-branch", "",
		"the `BRANCH` that --baseline-artifact comes from (default: the pull request's base)")
	fl.StringVar(&f.baselineFile, "baseline-file", "",
		"if there is no other base, use this checked-in report `FILE`, if it exists")
	fl.StringVar(&f.historyArtifact, "history-artifact", "",
		"take the history from the artifact of this `NAME` of a run on the base branch (GitHub Actions)")
	fl.StringVar(&f.baseCommit, "base-commit", "", "the `COMMIT` that --base was measured at, for the comment to name")
	fl.StringVar(&f.artifact, "artifact", defaultArtifact,
		"without --head: judge the reports in the artifact of this `NAME`, of the run that has finished (workflow_run) or the newest of this head")
	fl.StringVarP(&f.out, "out", "o", "", "write the files into this `DIR`")
	cmdenv.FormatFlag(cmd, &f.format, output.ComparisonFormats)
	f.analysis.Register(cmd)
	f.github.register(cmd)
	_ = cmd.MarkFlagDirname("out")
}

func (f *gateFlags) run(cmd *cobra.Command, e *cmdenv.Env) error {
	ctx := cmd.Context()
	session, err := f.github.session(ctx, e, f.out)
	if err != nil {
		return f.failed(ctx, e, session, err)
	}
	pulls, err := f.due(cmd, session)
	if err != nil {
		return f.failed(ctx, e, session, err)
	}
	for i, pull := range pulls { // several if pull requests share a head: each is judged against its own base
		one := *f
		if i > 0 && f.out != "" {
			one.out = filepath.Join(f.out, fmt.Sprintf("pull-%d", pull.Number))
		}
		if pull != nil {
			session.Of.On(pull)
		}
		if got := one.once(cmd, e, session); err == nil || comparison.Rank(verdictOf(got)) > comparison.Rank(verdictOf(err)) {
			err = got
		}
	}
	return err
}

// once judges one pull request, or only the budgets if there is none.
func (f *gateFlags) once(cmd *cobra.Command, e *cmdenv.Env, s *gate.Session) error {
	res, err := f.said(cmd, e, s)
	if err != nil {
		return f.failed(cmd.Context(), e, s, err)
	}
	if err := f.print(e, res.c, s != nil); err != nil {
		return err
	}
	return cmdenv.Exited(f.github.exitCode(res.c.Verdict))
}

// said judges, writes the files and posts the result to GitHub. A panic becomes an error and is reported like one.
func (f *gateFlags) said(cmd *cobra.Command, e *cmdenv.Env, s *gate.Session) (res *judged, err error) {
	defer crash.Caught(cmd.CommandPath(), &err)
	if err = f.check(cmd); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "explain-gate-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if res, err = f.judge(cmd, e, s, dir); err != nil {
		return nil, err
	}
	if f.out != "" {
		err = f.write(cmd.Context(), res.files())
	}
	if err == nil && s != nil {
		told := &gate.Result{Comparison: res.c, ExitCode: f.github.exitCode(res.c.Verdict), Folder: f.out,
			BaseSHA: res.base.sha, BaseSource: res.base.source, Comment: res.markdown, Summary: res.summary}
		s.Tell(cmd.Context(), told)
	}
	return res, err
}

// due returns the pull requests to judge; a nil entry means a judgement without one. The list is empty if the
// triggering run has not finished, or had no pull request; the log says why.
func (f *gateFlags) due(cmd *cobra.Command, s *gate.Session) ([]*gate.Pull, error) {
	if s == nil {
		return []*gate.Pull{nil}, nil
	}
	if err := s.Claim(commandLine(cmd)); err != nil {
		return nil, usage.Error{Err: err}
	}
	s.Pending(cmd.Context())
	switch {
	case s.Of.Run.Trigger == nil:
		return []*gate.Pull{s.Of.Pull}, nil
	case s.Of.Run.Action == "requested" || s.Of.Run.Action == "in_progress":
		return nil, nil // still being measured: pending is all there is to report
	}
	return s.Finished(cmd.Context())
}

// commandLine returns the given flags with their values, which identify what this step judges.
func commandLine(cmd *cobra.Command) string {
	var b strings.Builder
	cmd.Flags().Visit(func(f *pflag.Flag) { fmt.Fprintf(&b, "--%s=%q\n", f.Name, f.Value) })
	return b.String()
}

// failed reports everywhere that nothing was judged, so that no verdict of an earlier run is taken for this one. It
// returns the error that the command ends with.
func (f *gateFlags) failed(ctx context.Context, e *cmdenv.Env, s *gate.Session, err error) error {
	verdict, code := verdictOf(err), ErrorCode(err)
	o := f.github.provenance(s)
	if s != nil && verdict == comparison.Error && code == cmdenv.Input {
		o.Provenance.FailedJob, o.Provenance.FailedURL = s.FailedJob(ctx)
	}
	text := errorText(err, o)
	if f.out != "" && ctx.Err() == nil && output.Check(f.out) == nil {
		mark := comparison.NewError(e.Version, verdict, err.Error())
		werr := f.write(ctx, []output.File{
			output.FileOf("comparison.json", mark, comparison.Write), // marks our own folder
			{Name: "comment.md", Write: writeText(text, gate.CommentLimit)},
			{Name: "summary.md", Write: writeText(text, gate.SummaryRoom)},
			{Name: "gate.junit.xml",
				Write: func(w io.Writer) error { return diffrender.WriteJUnitError(w, verdict, err.Error()) }},
		})
		if werr != nil {
			err = fmt.Errorf("%w; %w", err, werr)
		}
	}
	return f.github.failed(ctx, e, s, text, err)
}

// write writes the files of --out and first removes those of an earlier run, so that no old report is taken for a new
// one.
func (f *gateFlags) write(ctx context.Context, files []output.File) error {
	ours, err := output.Ours(filepath.Join(f.out, "comparison.json"))
	if err != nil {
		return err
	}
	if ours {
		for _, old := range []string{"reports", "base"} {
			if _, err := output.RemoveReports(filepath.Join(f.out, old)); err != nil {
				return err
			}
		}
		if err := os.Remove(filepath.Join(f.out, "diff.html")); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return output.Write(ctx, f.out, files)
}

// writeText writes a text of at most limit bytes.
func writeText(text func(int) string, limit int) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text(limit))
		return err
	}
}

// check returns a usage error for flags that do not fit together, before any work.
func (f *gateFlags) check(cmd *cobra.Command) error {
	switch {
	case f.baseCommit != "" && !gate.IsCommit(f.baseCommit):
		return usage.Errorf("--base-commit is not a commit: 40 hexadecimal digits")
	case f.format != "" && !slices.Contains(output.ComparisonFormats, f.format):
		return usage.Errorf("--format %s is unknown; it is one of %s", f.format, strings.Join(output.ComparisonFormats, ", "))
	case cmd.Flags().Changed("batch") && f.batch < 1:
		return usage.Errorf("--batch must be at least 1, got %d", f.batch)
	case f.rules.Policy != "" && len(f.rules.FailOn) > 0:
		return usage.Errorf("--policy and --fail-on exclude each other")
	}
	return output.Check(f.out)
}

// judged is a comparison with its inputs and the options of the comment on it.
type judged struct {
	c       *comparison.Comparison
	base    baseline
	inputs  []input.File // of the head
	heads   []*analyze.Result
	options diffrender.CommentOptions
}

// judge makes the comparison and decides the verdict. Temporary files go to dir.
func (f *gateFlags) judge(cmd *cobra.Command, e *cmdenv.Env, s *gate.Session, dir string) (*judged, error) {
	ctx := cmd.Context()
	f.pins = gate.Pins{Session: s, Ref: f.policyRef, Getenv: e.Getenv}
	policy, source, err := f.readPolicy(ctx)
	if err != nil {
		return nil, err
	}
	opt := diff.Options{Version: e.Version, Phase: f.phase, Policy: f.analysis.Follow(policy)}
	if opt.Today, err = e.Today(); err != nil {
		return nil, err
	}
	if f.batch > 0 {
		opt.Batch = &f.batch
	}
	if opt.Rules, err = f.rules.Parsed(); err != nil {
		return nil, err
	}
	if opt.Noise, err = f.readNoise(ctx); err != nil {
		return nil, err
	}
	if err := f.pinMaps(ctx, dir); err != nil {
		return nil, err
	}
	if err := f.measured(ctx, s, dir); err != nil {
		return nil, err
	}
	headInputs, err := input.Captures("--head", f.head)
	if err != nil {
		return nil, err
	}
	base, err := f.baseline(ctx, s, dir)
	if err != nil {
		return nil, err
	}
	opt.NoBase = base.none
	results, err := f.analysis.Results(ctx, e, slices.Concat(base.inputs, headInputs), len(base.inputs))
	if err != nil {
		return nil, err
	}
	j := &judged{inputs: headInputs, heads: results[len(base.inputs):]}
	reports := lists.Map(results, func(r *analyze.Result) *report.Report { return r.Report })
	if err := f.madeHere(s, reports); err != nil {
		return nil, err
	}
	base.reports = append(base.reports, reports[:len(base.inputs)]...)
	heads := reports[len(base.inputs):]
	before, err := f.fromHistory(ctx, s, dir, heads[0], &base, &opt)
	if err != nil {
		return nil, err
	}
	if len(base.reports) == 0 {
		j.c, err = diff.JudgeBudgets(heads, opt)
	} else {
		j.c, err = diff.Compare(base.reports, heads, opt)
	}
	if err != nil {
		return nil, err
	}
	j.base = base
	j.options = f.github.provenance(s)
	at := &j.options.Provenance
	at.Baseline, at.BaseSHA, at.BaseRunURL = base.source, base.sha, base.run
	at.Hardware = hardware(heads)
	at.Policy = source
	j.options.AcceptLabel, j.options.Reproduce, j.options.Today = f.github.label, f.reproduce(s != nil, len(j.base.reports)), opt.Today
	if j.c.FirstRun() && policy.Changes() == 0 && f.baselineArtifact+f.baselineFile == "" {
		base.notes = nil // none was named, and nothing needs one
	}
	if added := f.pins.Added(); len(added) > 0 && !f.analysis.Quiet {
		fmt.Fprintf(e.Err, "Note: the base has no %s, so the defaults judge: new here, counts once merged\n", strings.Join(added, ", "))
	}
	notes := slices.Concat([]string{f.pins.Said()}, base.notes, before.Notes)
	if s != nil && s.Of.Run.Trigger != nil {
		at.Artifact = f.artifact
		notes = append(notes, "Measured by a run of the change's own code, judged here: only its numbers are trusted.")
	}
	for _, note := range notes {
		if note != "" {
			j.options.Notes = append(j.options.Notes, []doc.Span{doc.Text(note)})
		}
	}
	if s == nil {
		j.options.AcceptLabel = "" // labels exist on GitHub only
	} else {
		if now := s.Moved(ctx); now != "" {
			j.options.Notes = slices.Insert(j.options.Notes, 0,
				[]doc.Span{doc.Text("This is of "), doc.Code(gate.ShortRef(s.Of.HeadSHA())),
					doc.Text(". The head is "), doc.Code(gate.ShortRef(now)), doc.Text(" by now, which no run has judged yet.")})
		}
		if err := s.Accept(ctx, []comparison.Leg{{Comparison: j.c}}, f.github.acceptance(f.rules.Policy)); err != nil {
			s.Say("the verdict is not kept, so no label can accept it: " + err.Error())
			j.options.AcceptLabel = ""
		}
	}
	return j, nil
}

// files lists the files of --out.
func (j *judged) files() []output.File {
	var links diffrender.Links
	files := []output.File{
		output.FileOf("comparison.json", j.c, comparison.Write),
		{Name: "diff.html", Write: func(w io.Writer) error { return diffrender.WriteHTML(w, j.c, links) }},
		{Name: "comment.md", Write: writeText(j.markdown, gate.CommentLimit)},
		{Name: "summary.md", Write: writeText(j.summary, gate.SummaryRoom)},
		output.FileOf("gate.junit.xml", j.c, diffrender.WriteJUnit),
	}
	for i, r := range j.base.reports { // inputs to repeat the comparison
		files = append(files, output.FileOf(fmt.Sprintf("base/%d/report.json", i+1), r, report.Write))
	}
	names := map[string]bool{}
	for i, h := range j.heads {
		dir := "reports/" + output.Name(j.inputs[i].Path, names) + "/"
		if j.inputs[i].Kind == input.Report { // already a report: no full tables are left to write
			files = append(files, output.FileOf(dir+"report.json", h.Report, report.Write))
			continue
		}
		links.Head = cmp.Or(links.Head, dir+"report.html")
		for _, part := range output.Report(h) {
			files = append(files, output.File{Name: dir + part.Name, Write: part.Write})
		}
	}
	return files
}

// markdown returns the comment in at most limit bytes.
func (j *judged) markdown(limit int) string { return diffrender.Comment(j.c, j.options, limit) }

// summary returns the comment and its overflow in at most limit bytes: the whole comparison or, without a base, a
// breakdown of the head's time.
func (j *judged) summary(limit int) string {
	text := j.markdown(limit)
	add := func(write func(io.Writer) error) {
		var b strings.Builder
		if err := write(&b); err == nil && len(text)+1+b.Len() <= limit {
			text += "\n" + b.String()
		}
	}
	if !j.c.FirstRun() {
		add(func(w io.Writer) error {
			return render.Markdown(w, diffrender.Browser(j.c, diffrender.Links{}), render.MarkdownOptions{})
		})
		return text
	}
	for _, h := range j.heads {
		add(func(w io.Writer) error { return output.Comment(w, h.Report) })
	}
	return text
}
