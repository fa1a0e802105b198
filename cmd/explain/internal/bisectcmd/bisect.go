// Package bisectcmd makes as many captures as a question needs: which commit made a step slower (explain bisect), and
// whether the head of a pair is slower (explain capture --until-decided).
package bisectcmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/limit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/cmd/explain/internal/bisect"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/gate/gitfile"
	"github.com/nsys-llm/explain/gate/history"
)

// NewBisect returns explain bisect.
func NewBisect(e *cmdenv.Env) *cobra.Command {
	var f bisectFlags
	cmd := &cobra.Command{
		Use:   "bisect --good COMMIT --bad COMMIT -- CAPTURE COMMAND…",
		Short: "Find the commit that made the step slower, from noisy captures",
		Long: `bisect searches the commits between a good and a bad one (first parents) for the one that made the
step slower. For each capture it checks the commit out into a separate working tree, so yours stays
unchanged, and runs the command there: it must build, capture, and write a report, a trace or a folder
of "explain --out" to the path in the variable EXPLAIN_OUT.

It starts with the ends: if three or four captures of each do not differ, it stops, and says that
nothing changed and how small a change it would have missed. Captures are noisy: each one updates the
probability of every commit, and the next one is made where it is most informative, so doubtful
commits are captured again. A copy of an earlier capture ends the search. Odd captures count little,
each machine has its own level, and if many commits changed a little each, the answer says so. --history reuses the captures of a store. A commit
whose command fails is skipped, and so is one that runs another workload, for example with other flags.

The result is the commit, its probability, and the cause: what "explain diff" says about the captures
before and after that commit. --out keeps bisect.json and every report. Ctrl-C ends the search and
prints the result so far.

Exit codes: 0 found, 2 wrong usage, 3 the good or the bad commit cannot be captured, 4 not settled, or
nothing changed.`,
		Example: `  printf '%s\n' 'set -e' make 'explain capture --out "$EXPLAIN_OUT" -- python bench.py' > capture.sh
  explain bisect --good v1.4.0 --bad main -- sh "$PWD/capture.sh"
  explain bisect --good 3f2a91c --bad HEAD --noise 0.5% -- sh "$PWD/capture.sh"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || cmd.ArgsLenAtDash() != 0 {
				return usage.Errorf("name the command that captures after --: explain bisect --good A --bad B -- \"$PWD/capture.sh\"")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, e, args) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.good, "good", "", "a `COMMIT` that is fast")
	fl.StringVar(&f.bad, "bad", "", "a later `COMMIT` that is slow")
	fl.StringVar(&f.dir, "checkout", ".", "a git checkout in this `DIR`")
	fl.StringVar(&f.noise, "noise", "1%", "how much two captures of a commit differ, a `SHARE`, see explain policy init")
	fl.IntVar(&f.most, "max-captures", 0, "give up after `N` captures (default: 6 for each halving, 12 at least)")
	fl.StringVar(&f.store, "history", "", "start with the captures in this history, and add the new ones to it: a `FILE` or URL, see explain history")
	fl.StringVarP(&f.out, "out", "o", "", "keep bisect.json and the reports in this `DIR`")
	f.analysis.Register(cmd)
	_ = cmd.MarkFlagDirname("out")
	_ = cmd.MarkFlagDirname("checkout")
	return cmd
}

type bisectFlags struct {
	analysis       cmdenv.AnalysisFlags
	good, bad, dir string
	noise, out     string
	store          string
	most           int
}

// bisection is a running search.
type bisection struct {
	*bisectFlags
	cmd      *cobra.Command
	env      *cmdenv.Env
	commits  []gitfile.Commit // by number: the good one, then those after it up to the bad one
	last     int              // number of the bad one
	tree     string           // worktree in which commits are checked out
	scratch  string
	program  []string
	search   *bisect.Search
	log      []captured
	recalled int              // captures taken from the history
	unshared bool             // the history refused a capture
	of       string           // repository of the history's captures
	cell     history.Workload // of the first capture; all others must match it
	kind     string           // main kind of unit
}

// captured is one capture in bisect.json.
type captured struct {
	Number   int            `json:"number"` // of the commit: 0 is the good one
	Commit   string         `json:"commit"`
	Value    *float64       `json:"value"` // unit.time.p50, ns; null if the commit was skipped
	Skipped  string         `json:"skipped"`
	Recalled bool           `json:"recalled"` // it is of the history
	report   *report.Report // nil if it was skipped
}

func (f *bisectFlags) run(cmd *cobra.Command, e *cmdenv.Env, program []string) error {
	b, err := f.begin(cmd, e, program)
	if err != nil {
		return err
	}
	defer os.RemoveAll(b.scratch)
	if b.store != "" {
		if err := history.With(cmd.Context(), b.store, history.Read, b.recall); err != nil {
			return err
		}
	}
	b.announce()
	if err := b.git("worktree", "add", "--detach", "--quiet", b.tree, b.commits[0].SHA); err != nil {
		return err
	}
	defer func() { _ = b.git("worktree", "remove", "--force", b.tree) }()
	for b.search.Captures()-b.recalled < f.most && !b.search.Result().Settled {
		if err := b.capture(b.search.Next()); err != nil {
			if cmd.Context().Err() != nil && b.search.Captures() > 0 {
				return b.interrupted()
			}
			return err
		}
	}
	return b.answer()
}

// begin checks the flags and lists the commits.
func (f *bisectFlags) begin(cmd *cobra.Command, e *cmdenv.Env, program []string) (*bisection, error) {
	noise, err := cmdenv.Share(f.noise)
	switch {
	case f.good == "" || f.bad == "":
		return nil, usage.Errorf("name a commit that is fast and one that is slow: --good v1.4.0 --bad main")
	case err != nil:
		return nil, usage.Errorf("--noise %s: a share such as 1%%", f.noise)
	case f.most < 0:
		return nil, usage.Errorf("--max-captures must be at least 0, got %d", f.most)
	}
	if f.out != "" {
		if _, err := os.Stat(f.out); err == nil {
			return nil, usage.Errorf("--out %s is there already: name another folder", f.out)
		}
	}
	b := &bisection{bisectFlags: f, cmd: cmd, env: e, program: program}
	end := func(flag, name string) (string, error) {
		return gitfile.Resolve(cmd.Context(), f.dir, name,
			usage.Errorf("--%s %s is not a commit in the checkout %s: fetch it first", flag, name, f.dir))
	}
	good, err := end("good", f.good)
	if err != nil {
		return nil, err
	}
	bad, err := end("bad", f.bad)
	if err != nil {
		return nil, err
	}
	after, err := gitfile.FirstParents(cmd.Context(), f.dir, good, bad)
	if err != nil {
		return nil, err
	}
	b.commits, b.last = append([]gitfile.Commit{{SHA: good}}, after...), len(after)
	if b.last == 0 {
		return nil, usage.Errorf("%s is not behind %s: is it the other way round?", f.bad, f.good)
	}
	f.most = cmp.Or(f.most, max(12, 6*int(math.Ceil(math.Log2(float64(len(b.commits)))))))
	b.search = bisect.New(b.last, noise)
	b.scratch, err = os.MkdirTemp("", "explain-bisect-")
	b.tree = filepath.Join(b.scratch, "tree")
	return b, err
}

// recall loads the captures of the commits that the history has.
func (b *bisection) recall(s *history.Store) error {
	runs, err := s.Runs(b.cmd.Context(), history.Filter{})
	if err != nil {
		return err
	}
	numbers := map[string]int{}
	for i := range b.commits {
		numbers[b.commits[i].SHA] = i
	}
	b.of = b.env.Getenv("GITHUB_REPOSITORY")
	seen := map[string]bool{} // a capture may be in several branches
	for i := range runs {
		number, ok := numbers[runs[i].Commit]
		if !ok || seen[runs[i].Capture] {
			continue
		}
		seen[runs[i].Capture], b.of = true, runs[i].Repository
		r, err := s.Report(b.cmd.Context(), &runs[i])
		if err != nil {
			return err
		}
		value, err := b.value(r)
		if err != nil { // another workload or kind of step
			continue
		}
		b.log = append(b.log, captured{Number: number, Commit: runs[i].Commit, Value: &value, Recalled: true, report: r})
		if err := b.search.Add(number, value, history.EnvironmentOf(r)); err != nil {
			return err
		}
	}
	b.recalled = b.search.Captures()
	return nil
}

// announce prints, before the first capture, how many captures the search may take.
func (b *bisection) announce() {
	least, usual := bisect.Expected(b.last)
	text := fmt.Sprintf("%s to search after %s, up to %s: %d to %d captures, usually %d, if one of them is slower by five times the noise; %d to %d if none is",
		wording.Count(b.last, "commit"), b.short(0), b.short(b.last), min(least, b.most), b.most, min(usual, b.most),
		bisect.FewestEnds, bisect.MostEnds)
	if b.recalled > 0 {
		text += fmt.Sprintf("; %s from the history", wording.Count(b.recalled, "capture"))
	}
	b.say("%s", text)
}

func (b *bisection) short(number int) string { return history.Short(b.commits[number].SHA) }

// capture captures a commit, or skips it.
func (b *bisection) capture(number int) error {
	c := captured{Number: number, Commit: b.commits[number].SHA}
	began := time.Now()
	r, err := b.record(c.Commit)
	if err := b.cmd.Context().Err(); err != nil {
		return err
	}
	var value float64
	if err == nil {
		value, err = b.value(r)
	}
	if err != nil {
		c.Skipped = err.Error()
		b.log = append(b.log, c)
		if number == 0 || number == b.last {
			return fmt.Errorf("%s cannot be captured: %w", b.short(number), err)
		}
		b.say("%s: skipped: %s", b.short(number), c.Skipped)
		b.search.Skip(number)
		return nil
	}
	if i := twin(b.log, r); i >= 0 {
		return fmt.Errorf("the capture of %s is a copy of that of %s and proves nothing: the command has to record each time",
			b.short(number), b.short(b.log[i].Number))
	}
	c.Value, c.report = &value, r
	b.share(&c)
	b.log = append(b.log, c)
	if err := b.search.Add(number, value, history.EnvironmentOf(r)); err != nil {
		return err
	}
	b.say("%s (%d of %d): %s; %s", b.short(number), number, b.last, unit.Format(value, report.Nanoseconds),
		b.likely(b.search.Result()))
	if b.search.Captures() == b.recalled+1 {
		if took := time.Since(began); took >= time.Second {
			b.say("A capture takes %s: at most %s for all of them", took.Round(time.Second), (took * time.Duration(b.most)).Round(time.Second))
		}
	}
	return nil
}

// twin returns the index of a capture that the report is a copy of; -1 if it is none.
func twin(log []captured, r *report.Report) int {
	id := r.Capture.Content
	return slices.IndexFunc(log, func(c captured) bool {
		return c.report != nil && id != nil && c.report.Capture.Content != nil && *c.report.Capture.Content == *id
	})
}

// share adds a capture to the history, so that no other search makes it again. If the history refuses it, this search
// goes on.
func (b *bisection) share(c *captured) {
	if b.store == "" || b.unshared {
		return
	}
	ctx := b.cmd.Context()
	err := history.With(ctx, b.store, history.Read, func(s *history.Store) error {
		p := history.Place{Repository: b.of, Branch: history.BisectBranch, Commit: c.Commit}
		_, err := s.Add(ctx, p, []*report.Report{c.report}, nil, time.Now())
		return err
	})
	if err != nil {
		b.unshared = true
		b.say("The history does not get the captures: %v", err)
	}
}

// likely describes the most likely answer so far.
func (b *bisection) likely(r bisect.Result) string {
	switch {
	case b.search.Captures() < 2:
		return "one capture tells nothing yet"
	case r.Nothing():
		return "most likely nothing changed, " + unit.Percent(r.None)
	case r.Creeps():
		return "most likely several commits, " + unit.Percent(r.Several)
	case r.Named():
		commits := b.short(r.First)
		if r.First != r.Last {
			commits += " to " + b.short(r.Last)
		}
		return "most likely " + commits + ", " + unit.Percent(r.Probability)
	}
	return "no commit stands out yet"
}

func (b *bisection) say(format string, args ...any) {
	if !b.analysis.Quiet {
		fmt.Fprintln(b.env.Err, render.Visible(fmt.Sprintf(format, args...)))
	}
}

// record checks a commit out and runs the command on it.
func (b *bisection) record(commit string) (*report.Report, error) {
	tree := []string{"-C", b.tree}
	if err := b.git(append(tree, "checkout", "--detach", "--force", "--quiet", commit)...); err != nil {
		return nil, err
	}
	if err := b.git(append(tree, "clean", "-fdq")...); err != nil { // ignored files stay, since builds are slow
		return nil, err
	}
	out := filepath.Join(b.scratch, fmt.Sprintf("capture-%d", len(b.log)+1))
	c := exec.CommandContext(b.cmd.Context(), b.program[0], b.program[1:]...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) } // processes that it started get time to end
	c.WaitDelay = 10 * time.Second
	c.Dir = b.tree
	c.Env = append(os.Environ(), "EXPLAIN_OUT="+out, "EXPLAIN_COMMIT="+commit)
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	err := c.Run()
	switch program := b.program[0]; {
	case errors.Is(err, fs.ErrNotExist) && !filepath.IsAbs(program) && !input.Exists(filepath.Join(b.tree, program)):
		return nil, fmt.Errorf("%s is not in commit %s; give an absolute path or commit it", program, history.Short(commit))
	case err != nil:
		err = fmt.Errorf("%s: %w", capture.Shell(b.program), err)
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		if last := lines[len(lines)-1]; last != "" {
			err = fmt.Errorf("%w: %s", err, last)
		}
		return nil, err
	}
	for _, end := range []string{"", ".sqlite", ".nsys-rep"} { // as nsys export and nsys name them
		if input.Exists(out + end) {
			out += end
			break
		}
	}
	if !input.Exists(out) {
		return nil, errors.New("the command has to leave a report, a trace or a folder of explain --out at $EXPLAIN_OUT")
	}
	in, err := input.Captures("EXPLAIN_OUT", []string{out})
	if err != nil {
		return nil, err
	}
	reports, err := b.analysis.Reports(b.cmd.Context(), b.env, in)
	if err != nil {
		return nil, err
	}
	r := reports[0]
	r.Trace.Name = history.Short(commit) + "/" + fmt.Sprint(len(b.log)+1)
	return history.Keep(r), nil
}

// value returns the median step of the main kind, ns. It is an error if the workload differs from that of the first
// capture.
func (b *bisection) value(r *report.Report) (float64, error) {
	cell := history.WorkloadOf(r, "")
	if b.cell == nil {
		b.cell = cell
	}
	if d := b.cell.Differs(cell); d != "" {
		return 0, fmt.Errorf("another workload than the first capture: %s", d)
	}
	v, kind, err := mainStep(r, b.kind)
	b.kind = kind
	return v, err
}

func (b *bisection) git(args ...string) error {
	most := limit.Wait(10 * time.Minute) // a checkout may fetch objects that the clone lacks
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.cmd.Context()), most)
	defer cancel()
	c := exec.CommandContext(ctx, "git", args...)
	c.Dir, c.WaitDelay = b.dir, time.Second
	if out, err := c.CombinedOutput(); ctx.Err() != nil {
		return limit.Late("git "+args[0], most)
	} else if err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}

// kept returns the content of bisect.json so far.
func (b *bisection) kept(res bisect.Result) *kept {
	out := &kept{Schema: "explain.bisect/1", Settled: res.Settled, Result: res, Captures: b.log, Culprits: []string{}}
	for k := res.First; k <= res.Last && !res.Nothing() && !res.Creeps(); k++ {
		out.Culprits = append(out.Culprits, b.commits[k].SHA)
	}
	return out
}

// mainStep returns the median step of a kind of unit, ns; an empty kind means the report's main one.
func mainStep(r *report.Report, kind string) (float64, string, error) {
	kind = cmp.Or(kind, history.MainKind(r))
	for _, m := range report.NewIndex(r).Metrics("unit.time") {
		_, device := m.Labels["device"]
		if kind != "" && m.Group == kind && !device && m.Summary != nil {
			return m.Summary.P50, kind, nil
		}
	}
	if kind == "" {
		return 0, kind, errors.New("no step was found: " + r.Unit.Why)
	}
	return 0, kind, fmt.Errorf("no step of kind %q was found: do all captures do the same work? --unit says what a step is", kind)
}
