package guide

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/mcp"
	"github.com/nsys-llm/explain/cmd/explain/internal/mergecmd"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/gate/history"
)

func newMCP(e *cmdenv.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "mcp [DIR]",
		Short: "Answer agents' questions about captures (Model Context Protocol)",
		Long: `mcp is a Model Context Protocol server on standard input and output. Its tools only read, and only
files below DIR, by default the current folder: they list captures, say where the time of one goes,
what changed between two or over the nights of a history and why, and what a name means. If something
cannot be known, the answer says why. Answers have at most 12,000 bytes.

explain doc agents has the configurations of well-known agents.`,
		Example: "  explain mcp\n  explain mcp captures/",
		Args:    cmdenv.Args(0, 1, "one folder at a time: explain mcp DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := lists.Nth(args, 0, ".")
			if info, err := os.Stat(root); err != nil || !info.IsDir() {
				return usage.Errorf("%s is not a folder", root)
			}
			s := mcp.Server{Source: captures{e}, Root: root, Version: e.Version}
			return s.Serve(cmd.Context(), e.In, e.Out)
		},
	}
}

// captures reads the files that agents ask about.
type captures struct{ e *cmdenv.Env }

func (c captures) Report(ctx context.Context, path string) (*report.Report, error) {
	if run := input.RunIn(path); len(run) > 0 {
		mcp.Progress(ctx, "reading the captures of a run")
		of := mergecmd.Run{Analysis: cmdenv.AnalysisFlags{Quiet: true}, Top: 30, Apart: true}
		return of.Merged(ctx, c.e, run)
	}
	mcp.Progress(ctx, "reading "+filepath.Base(path))
	in, err := input.Find(path)
	if err != nil {
		return nil, err
	}
	list, err := (&cmdenv.AnalysisFlags{Quiet: true}).Reports(ctx, c.e, []input.File{in})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

func (c captures) History(ctx context.Context, path string) (changes []mcp.LevelChange, said string, err error) {
	day, err := c.e.Today()
	if err != nil {
		return nil, "", err
	}
	var checks *history.Checks
	if err = history.With(ctx, path, history.Read, func(s *history.Store) error {
		checks, err = s.Check(ctx, history.CheckOptions{Today: day})
		return err
	}); err != nil {
		return nil, "", err
	}
	changes = lists.Map(checks.Changes, func(f *history.Found) mcp.LevelChange {
		return mcp.LevelChange{Number: f.Of(), Commit: f.After.Commit, Since: f.After.Time.Format(time.RFC3339),
			Ratio: f.Ratio, Worse: f.Worse, Open: f.Open, Cause: f.Cause, Rows: f.Rows, Bisect: f.Bisect}
	})
	var text strings.Builder
	err = render.Terminal(&text, history.CheckPage(checks), render.TerminalOptions{})
	return changes, text.String(), err
}

func (c captures) Compare(ctx context.Context, base, head []string, focus mcp.Focus) (*comparison.Comparison, error) {
	mcp.Progress(ctx, "reading both sides")
	all, err := input.FindAll("compare", slices.Concat(base, head))
	if err != nil {
		return nil, err
	}
	reports, err := (&cmdenv.AnalysisFlags{Quiet: true}).Reports(ctx, c.e, all)
	if err != nil {
		return nil, err
	}
	mcp.Progress(ctx, "comparing")
	day, err := c.e.Today()
	if err != nil {
		return nil, err
	}
	reports = input.Named(all, reports)
	return diff.Compare(reports[:len(base)], reports[len(base):],
		diff.Options{Version: c.e.Version, Today: day, Top: diff.DefaultTop,
			Phase: focus.Phase, Device: focus.Device, Study: focus.Study})
}
