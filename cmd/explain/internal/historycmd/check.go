package historycmd

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/output"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/gate/gitfile"
	"github.com/nsys-llm/explain/gate/history"
)

// Subcommands of explain history that look for changes: check and page.

// checkFlags select what to check, and where to look up the commits between two runs.
type checkFlags struct {
	storeFlags
	metrics    []string
	least      string
	checkout   string
	codeowners string
}

func (f *checkFlags) register(e *cmdenv.Env, cmd *cobra.Command) {
	fl := cmd.Flags()
	f.storeFlags.register(e, fl)
	fl.StringArrayVar(&f.metrics, "metric", nil, "follow this `METRIC`, see list COMMIT (repeatable; default "+history.StepTime+")")
	fl.StringVar(&f.least, "least", "2%", "report changes of a level of this `SHARE` or more")
	fl.StringVar(&f.checkout, "checkout", ".", "a git checkout in this `DIR`, which has the commits between two runs")
	fl.StringVar(&f.codeowners, "codeowners", "", "a CODEOWNERS `FILE` that says whom to ask")
	_ = cmd.MarkFlagDirname("checkout")
}

// check finds the changes and the commits that caused them.
func (f *checkFlags) check(cmd *cobra.Command, e *cmdenv.Env, s *history.Store) (*history.Checks, error) {
	o := history.CheckOptions{Filter: f.filter(), Metrics: f.metrics}
	var err error
	if o.Least, err = cmdenv.Share(f.least); err != nil {
		return nil, usage.Errorf("--least %s: a share such as 2%%", f.least)
	}
	if o.Today, err = e.Today(); err != nil {
		return nil, err
	}
	owners := ""
	if f.codeowners != "" {
		b, err := input.ReadText(f.codeowners)
		if err != nil {
			return nil, usage.Errorf("--codeowners: %w", err)
		}
		owners = string(b)
	}
	c, err := s.Check(cmd.Context(), o)
	if err != nil {
		return nil, err
	}
	if err := f.known(cmd, s); err != nil {
		return nil, err
	}
	c.Tool.Version = e.Version
	for _, x := range c.Changes {
		list, err := gitfile.Log(cmd.Context(), f.checkout, x.Before.Commit, x.After.Commit)
		if err != nil { // no checkout, or a shallow one: the change is listed without commits
			continue
		}
		var files []string
		for _, l := range list {
			x.Commits = append(x.Commits, history.Commit{SHA: l.SHA, Subject: l.Subject})
			files = append(files, l.Files...)
		}
		x.Owners = append(x.Owners, gitfile.Owners(owners, files)...)
	}
	return c, nil
}

// known refuses a metric that no run of the history has; a history without runs knows none and refuses none.
func (f *checkFlags) known(cmd *cobra.Command, s *history.Store) error {
	kept, err := history.MetricsOf(cmd.Context(), s)
	if err != nil || len(kept) == 0 {
		return err
	}
	for _, m := range f.metrics {
		if m != "unit.time" && !slices.Contains(kept, m) {
			return usage.Errorf("--metric %s: no run of this history has it; it keeps %s", m, strings.Join(kept, ", "))
		}
	}
	return nil
}

func newCheck(e *cmdenv.Env) *cobra.Command {
	var f checkFlags
	format := "text"
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Find the commits at which a number changed, and say why",
		Long: `check looks for changes of level in each series: a metric of a workload over the nights of a branch.
For each change it says how large it is, since which commit, where it comes from (kernels, host,
counts: a diff of the nights around it), which commits lie between, and whom to ask. A change for the
worse stays open until it is gone or somebody accepts it ("explain history ack").

How it decides, and how often it is wrong: explain doc change-points.

Exit codes: 0 nothing is open, 1 something is, 2 wrong usage, 3 the store cannot be read, 4 every series
has too few nights to show a change of 5 %.`,
		Example: `  explain history check --store history.db --branch main --codeowners .github/CODEOWNERS
  explain history check --store history.db --metric unit.gpu_idle.mean --metric serve.ttft.p99`,
		Args: cmdenv.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.with(cmd, history.Read, func(s *history.Store) error {
				c, err := f.check(cmd, e, s)
				if err != nil {
					return err
				}
				if format == "json" {
					err = cmdenv.JSON(e.Out, c)
				} else {
					err = render.Terminal(e.Out, history.CheckPage(c), render.TerminalOptions{Color: e.Coloured()})
				}
				return errors.Join(err, checkCode(c))
			})
		},
	}
	f.register(e, cmd)
	cmdenv.Choice(cmd, &format, "format", "print this `FORMAT`", []string{"text", "json"})
	return cmd
}

// checkCode returns the exit code of a check, as an error.
func checkCode(c *history.Checks) error {
	if c.Open > 0 {
		return cmdenv.Exit(cmdenv.Fail)
	}
	if slices.ContainsFunc(c.Series, func(x *history.Checked) bool { return x.Enough && !x.Blind }) {
		return nil
	}
	return cmdenv.Exit(cmdenv.Inconclusive)
}

func newPage(e *cmdenv.Env) *cobra.Command {
	var f checkFlags
	var out, link string
	cmd := &cobra.Command{
		Use:   "page",
		Short: "Draw the history as one page that needs no network",
		Long: `page writes index.html into a folder: each series over its nights, with the band of its noise, the
changes, their causes, the borders of environments and what is known about the noise. --link makes each
of the newest nights a link to where its report lies; "explain history list COMMIT --out" writes a report
that the store keeps.`,
		Example: `  explain history page --store history.db --branch main --out history/`,
		Args:    cmdenv.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return usage.Errorf("name the folder: --out history/")
			}
			if err := output.Check(out); err != nil {
				return err
			}
			return f.with(cmd, history.Read, func(s *history.Store) error {
				c, err := f.check(cmd, e, s)
				if err != nil {
					return err
				}
				return writePage(cmd, e, c, out, link)
			})
		},
	}
	f.register(e, cmd)
	cmd.Flags().StringVarP(&out, "out", "o", "", "write index.html and check.json into this `DIR`")
	cmd.Flags().StringVar(&link, "link", "", "link each capture to this `URL`, in which {commit}, {key} and {name} are filled in")
	_ = cmd.MarkFlagDirname("out")
	return cmd
}

func writePage(cmd *cobra.Command, e *cmdenv.Env, c *history.Checks, out, link string) error {
	var linked func(r *history.Run) string
	if link != "" {
		linked = func(r *history.Run) string {
			return strings.NewReplacer("{commit}", r.Commit, "{key}", r.Key, "{name}", url.PathEscape(r.Name)).Replace(link)
		}
	}
	d := c.Page(linked)
	files := []output.File{
		{Name: "index.html", Write: func(w io.Writer) error { return render.HTML(w, d, "explain: history") }},
		{Name: "check.json", Write: func(w io.Writer) error { return cmdenv.JSON(w, c) }},
	}
	if err := output.Write(cmd.Context(), out, files); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.Out, "Wrote %s: index.html, check.json\n", render.Visible(out))
	return err
}
