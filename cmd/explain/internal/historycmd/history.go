// Package historycmd implements explain history, and the history flags of diff and gate.
package historycmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/policy"
	"github.com/nsys-llm/explain/gate/gitfile"
	"github.com/nsys-llm/explain/gate/history"
)

// New returns explain history with its subcommands.
func New(e *cmdenv.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Keep past runs: noise, slow creep, the commit at which a step got slower and why",
		Long: `history keeps the reports of past runs, and answers from them what two captures cannot: how much runs
differ when nothing changed, at which commit a number changed and why, and what is left of a budget
that counts from a release.

The store is a SQLite file, or PostgreSQL by URL (--store postgres://USER@HOST/DATABASE). In CI
without a database keep the file in an artifact, a cache or a branch of its own; "explain history
merge" combines copies that have diverged.

Exit codes: 0 done, 1 check found a change for the worse, 2 wrong usage, 3 input or store that cannot
be read, 4 check has too few nights in every series to show a change of 5 %.`,
		Example: `  explain history add run-*/report.json --store history.db --commit "$(git rev-parse HEAD)"
  explain history list --store history.db
  explain history check --store history.db
  explain history page --store history.db --out history/
  explain history merge other.db --store history.db`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage.Errorf("%q is not a command of history; it is one of add, list, prune, ack, merge, check, page", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAdd(e), newList(e), newPrune(e), newAck(e), newMerge(e), newCheck(e), newPage(e))
	return cmd
}

// storeFlags select a store and runs in it.
type storeFlags struct {
	store, repository, branch, workload string
}

func (f *storeFlags) registerStore(fl *pflag.FlagSet) {
	fl.StringVar(&f.store, "store", "", "the history: a SQLite `FILE`, or the URL of a PostgreSQL database")
}

func (f *storeFlags) register(e *cmdenv.Env, fl *pflag.FlagSet) {
	f.registerStore(fl)
	fl.StringVar(&f.repository, "repository", e.Getenv("GITHUB_REPOSITORY"), "only this `REPOSITORY` (default: GITHUB_REPOSITORY, else any)")
	fl.StringVar(&f.branch, "branch", "", "only this `BRANCH` (default: any)")
	fl.StringVar(&f.workload, "workload", "", "only this workload, by the `ID` that list prints")
}

func (f *storeFlags) filter() history.Filter {
	return history.Filter{Repository: f.repository, Branch: f.branch, Workload: f.workload}
}

// with runs a command with the store that --store names.
func (f *storeFlags) with(cmd *cobra.Command, mode history.Mode, do func(s *history.Store) error) error {
	if f.store == "" {
		return usage.Errorf("name the history: --store history.db, or --store postgres://USER@HOST/DATABASE")
	}
	return history.With(cmd.Context(), f.store, mode, do)
}

func newAdd(e *cmdenv.Env) *cobra.Command {
	var f addFlags
	cmd := &cobra.Command{
		Use:   "add REPORT…",
		Short: "Keep captures of one commit",
		Long: `add keeps captures of one commit and one workload: reports, folders that "explain --out" wrote, or
traces. Adding the same capture twice changes nothing, and several writers may run at once. It keeps
what a comparison needs from each report, in at most 100 kB. A run is in
the history at the time at which it is added: to add past nights, name the time of each (--time).

The driver, CUDA, nsys, the operating system and the clocks are read from the captures, the server and
its release from its log. --environment names anything else, such as the container's image: if one of
these changes, check says how the level moved and gives the following nights their own baseline.

A machine that gets slower for all commits alike looks like a change. To tell the two apart, capture a
pinned reference commit on the same machine in the same hours: --ref names that commit and
--ref-report its captures. The history then follows the ratio of the two.`,
		Example: `  explain history add run-1 run-2 run-3 --store history.db --commit "$SHA" --branch main
  explain history add head --store history.db --commit "$SHA" --ref "$PINNED" --ref-report 'ref/*'
  explain history add run-1 --store history.db --commit "$SHA" --tag v1.4.0`,
		Args: cmdenv.Args(1, cmdenv.Any, "name the captures of the commit: explain history add REPORT… --store FILE --commit SHA"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, e, args) },
	}
	fl := cmd.Flags()
	f.registerStore(fl)
	fl.StringVar(&f.commit, "commit", "", "the commit that was captured: all 40 digits of its `SHA`")
	fl.StringVar(&f.branch, "branch", "main", "the `BRANCH` of the commit")
	fl.StringVar(&f.repository, "repository", e.Getenv("GITHUB_REPOSITORY"),
		"name of the `REPOSITORY` (default: GITHUB_REPOSITORY)")
	fl.StringVar(&f.at, "time", "", "the `TIME` of the run, its place in the history: 2026-01-31T22:00:00Z, "+
		"2026-01-31 or seconds since 1970 (default: now)")
	fl.StringVar(&f.workload, "workload", "", "a `NAME` for the workload, if the captures do not name it")
	fl.StringToStringVar(&f.beneath, "environment", nil,
		"facts that no capture states: `container=IMAGE`, engine=VERSION (repeatable, commas)")
	fl.StringArrayVar(&f.tags, "tag", nil, "a `NAME` for the commit, from which budgets count: v1.4.0 (repeatable)")
	fl.StringVar(&f.ref, "ref", "", "the `SHA` of the reference commit that was captured beside it")
	fl.StringArrayVar(&f.refReport, "ref-report", nil, "the `FILES` of that commit (repeatable, commas, globs)")
	f.analysis.Register(cmd)
	return cmd
}

// addFlags are the flags of explain history add.
type addFlags struct {
	storeFlags
	analysis  cmdenv.AnalysisFlags
	commit    string
	at        string
	tags      []string
	beneath   map[string]string
	ref       string
	refReport []string
}

func (f *addFlags) run(cmd *cobra.Command, e *cmdenv.Env, args []string) error {
	p := history.Place{
		Repository: f.repository, Branch: f.branch, Commit: strings.ToLower(f.commit), Workload: f.workload, Tags: f.tags, Environment: f.beneath,
	}
	if f.commit == "" {
		return usage.Errorf(`name the commit that was captured: --commit "$(git rev-parse HEAD)"`)
	}
	if (f.ref == "") != (len(f.refReport) == 0) {
		return usage.Errorf("--ref and --ref-report go together: the reference commit and its captures")
	}
	var err error
	if p.Time, err = momentFlag("time", f.at); err != nil {
		return err
	}
	var pinned *history.Pinned
	if f.ref != "" {
		pinned = &history.Pinned{Commit: strings.ToLower(f.ref)}
	}
	if err := p.Check(pinned, time.Now()); err != nil {
		return usage.Error{Err: err}
	}
	inputs, err := input.Captures("REPORT", args)
	if err != nil {
		return err
	}
	refs, err := input.Captures("--ref-report", f.refReport)
	if err != nil {
		return err
	}
	reports, err := f.analysis.Reports(cmd.Context(), e, slices.Concat(inputs, refs))
	if err != nil {
		return err
	}
	if pinned != nil {
		pinned.Reports = reports[len(inputs):]
	}
	return f.with(cmd, history.Create, func(s *history.Store) error {
		added, err := s.Add(cmd.Context(), p, reports[:len(inputs)], pinned, time.Now())
		if err != nil || f.analysis.Quiet {
			return err
		}
		text := fmt.Sprintf("%s: %s added", history.Short(p.Commit), wording.Count(added.Runs, "run"))
		if added.Known > 0 {
			text += fmt.Sprintf(", %d known already", added.Known)
		}
		if added.Pinned {
			text += ", beside " + history.Short(pinned.Commit)
		}
		if _, err = fmt.Fprintf(e.Out, "%s, to %s\n", text, render.Visible(s.Name())); err == nil && added.Near && added.Runs > 0 {
			_, err = fmt.Fprintln(e.Err, "Warning: the run before is of the same minute and of another commit: "+
				"to add runs of past nights, name the time of each with --time 2026-01-31")
		}
		return err
	})
}

// momentFlag parses a moment; empty gives the zero time.
func momentFlag(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	if seconds, err := strconv.ParseUint(text, 10, 63); err == nil {
		return time.Unix(int64(seconds), 0).UTC(), nil
	}
	return time.Time{}, usage.Errorf("--%s %s: expected 2026-01-31T22:00:00Z, 2026-01-31 or seconds since 1970", flag, text)
}

func newAck(e *cmdenv.Env) *cobra.Command {
	var f storeFlags
	var reason, expires string
	cmd := &cobra.Command{
		Use:   "ack COMMIT",
		Short: "Accept the change at a commit until a day, with a reason",
		Long: `ack keeps that the change at a commit is known and accepted, why, and until when, like a waiver of a
policy. "explain history check" names it and does not fail for it until the day has passed.`,
		Example: `  explain history ack 3f2a91c --store history.db --reason 'fp8 rollout, #412' --expires 2026-12-31`,
		Args:    cmdenv.Args(1, 1, "name one commit: explain history ack COMMIT, or the beginning of it, or a tag"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" || expires == "" {
				return usage.Errorf("say why and until when: --reason 'fp8 rollout' --expires 2026-12-31")
			}
			today, err := e.Today()
			if err != nil {
				return err
			}
			if last, err := time.Parse(time.DateOnly, expires); err != nil || today.After(last) {
				return usage.Errorf("--expires %s: expected today or a later day, as 2026-12-31: this would accept nothing", expires)
			}
			return f.with(cmd, history.Read, func(s *history.Store) error {
				ack := history.Ack{Repository: f.repository, Commit: args[0], Reason: reason, Expires: expires}
				a, err := s.Acknowledge(cmd.Context(), ack)
				if err == nil {
					_, err = fmt.Fprintf(e.Out, "%s is accepted up to %s\n", history.Short(a.Commit), a.Expires)
				}
				return err
			})
		},
	}
	f.registerStore(cmd.Flags())
	cmd.Flags().StringVar(&f.repository, "repository", e.Getenv("GITHUB_REPOSITORY"), "only this `REPOSITORY` (default: GITHUB_REPOSITORY)")
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT`: why the change is accepted")
	cmd.Flags().StringVar(&expires, "expires", "", "the last `DAY` of the acceptance: 2026-12-31")
	return cmd
}

func newMerge(e *cmdenv.Env) *cobra.Command {
	var f storeFlags
	cmd := &cobra.Command{
		Use:   "merge OTHER…",
		Short: "Add everything that other stores hold",
		Long: `merge adds the runs, tags and acknowledgements of other stores. Merging twice changes nothing, and the
order does not matter, so copies that diverged in parallel jobs can be combined.`,
		Example: `  explain history merge night-a.db night-b.db --store history.db`,
		Args:    cmdenv.Args(1, cmdenv.Any, "name the stores to add: explain history merge OTHER.db --store history.db"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd, history.Create, func(s *history.Store) error {
				for _, place := range args {
					err := history.With(cmd.Context(), place, history.Read, func(from *history.Store) error {
						merged, err := s.Merge(cmd.Context(), from)
						if err == nil {
							_, err = fmt.Fprintf(e.Out, "%s: %s added, %d known already\n", render.Visible(from.Name()),
								wording.Count(merged.Runs, "run"), merged.Known)
						}
						return err
					})
					if err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	f.registerStore(cmd.Flags())
	return cmd
}

func newPrune(e *cmdenv.Env) *cobra.Command {
	var f storeFlags
	var before string
	var keep int
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove old runs",
		Long: `prune removes runs from before a day. The newest runs of each series stay, and so do commits with a tag
and those that are acknowledged.`,
		Example: `  explain history prune --store history.db --before 2025-12-31 --keep 60`,
		Args:    cmdenv.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := momentFlag("before", before)
			switch {
			case err != nil:
				return err
			case at.IsZero():
				return usage.Errorf("name the day before which runs are removed: --before 2025-12-31")
			case keep < 0:
				return usage.Errorf("--keep must be at least 0, got %d", keep)
			}
			return f.with(cmd, history.Read, func(s *history.Store) error {
				n, err := s.Prune(cmd.Context(), at, keep)
				if err == nil {
					_, err = fmt.Fprintf(e.Out, "%s removed\n", wording.Count(n, "run"))
				}
				return err
			})
		},
	}
	f.registerStore(cmd.Flags())
	cmd.Flags().StringVar(&before, "before", "", "remove runs from before this `DAY`: 2025-12-31")
	cmd.Flags().IntVar(&keep, "keep", 60, "keep the newest `N` commits of each branch and workload, however old")
	return cmd
}

// What diff and gate take from a history: noise floors, a base, what was spent of budgets, the newest runs in a line.

// Flags name the history that a comparison is judged by.
type Flags struct {
	Store              string // empty for none
	branch, repository string
}

// Register adds the flags to a command.
func (f *Flags) Register(fl *pflag.FlagSet) {
	fl.StringVar(&f.Store, "history", "",
		"take noise floors and the spent part of budgets (since) from this history, a `FILE` or URL, "+
			"see explain history")
	fl.StringVar(&f.branch, "history-branch", "main", "the `BRANCH` whose runs count, with --history")
	fl.StringVar(&f.repository, "history-repository", "",
		"the `REPOSITORY` whose runs count, with --history (default: any)")
}

// Name returns the history as people may read it, without a password.
func (f *Flags) Name() string { return history.Name(f.Store) }

// IsFile reports whether the history is a file, and not a database elsewhere.
func (f *Flags) IsFile() bool { return history.IsFile(f.Store) }

// Said is what a comparison takes from a history.
type Said struct {
	Notes []string // for people
	Base  []*report.Report
	Exact bool // Base is of the requested commit
}

// Apply adds to the options of a comparison what the history knows. base is the commit that head is compared with,
// empty if unknown; want asks for its reports.
func (f *Flags) Apply(
	ctx context.Context, head *report.Report, base string, want bool, opt *diff.Options,
) (*Said, error) {
	p := &Said{}
	if f.Store == "" {
		return p, nil
	}
	if _, err := os.Stat(f.Store); errors.Is(err, os.ErrNotExist) && f.IsFile() {
		p.Notes = append(p.Notes, "History: "+f.Store+" does not exist yet, so it is not used.")
		return p, nil
	}
	opt.Policy = cmp.Or(opt.Policy, policy.Default())
	resolve := func(name string) (string, error) {
		return gitfile.Known(ctx, ".", name, fmt.Errorf("neither the history nor the checkout knows %s: "+
			"fetch its tag, or name it with explain history add --tag", name))
	}
	return p, history.With(ctx, f.Store, history.Read, func(s *history.Store) error {
		if err := history.Spent(ctx, s, f.repository, f.branch, head, base, opt.Policy.Rules, resolve); err != nil {
			return err
		}
		w, err := history.NewWindow(ctx, s, f.repository, f.branch, head)
		if err != nil {
			p.Notes = append(p.Notes, "History: "+err.Error()+".")
			return nil
		}
		if opt.Noise == nil {
			noise, text, err := w.Noise(ctx)
			if err != nil {
				return err
			}
			opt.Noise = noise
			p.Notes = append(p.Notes, "History, "+text+".")
		}
		p.Notes = append(p.Notes, w.Line())
		if !want {
			return nil
		}
		b := w.Base(base)
		p.Notes, p.Exact = append(p.Notes, b.Notes...), b.Exact
		p.Base, err = s.Reports(ctx, b.Runs)
		return err
	})
}
