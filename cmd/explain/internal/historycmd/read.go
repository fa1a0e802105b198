package historycmd

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/gate/history"
)

// Subcommand explain history list, which only reads.

// listFlags are the flags of explain history list.
type listFlags struct {
	storeFlags
	limit       int
	format, out string
	force       bool
}

func newList(e *cmdenv.Env) *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "list [COMMIT]",
		Short: "List the newest runs, the numbers of a commit, or every number for other tools",
		Long: `list prints the newest runs with their workloads. With a COMMIT (a commit, the beginning of one, or a
tag) it prints the numbers of each of its runs, and --out writes its kept reports into a folder, where
diff and gate can read them.

--format ndjson and csv write one line for each number of each run, the oldest run first, into --out
or to standard output. DuckDB, ClickHouse, BigQuery and Spark read both; for Parquet:
duckdb -c "COPY (FROM 'history.ndjson') TO 'history.parquet'".`,
		Example: `  explain history list --store history.db --branch main --limit 50
  explain history list v1.4.0 --store history.db --out then/
  explain history list --store history.db --format ndjson --out history.ndjson`,
		Args: cmdenv.Args(0, 1, "one commit at a time"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, e, args) },
	}
	f.register(e, cmd.Flags())
	cmd.Flags().IntVar(&f.limit, "limit", 30, "the newest `N` runs, without a commit and as text or json")
	f.format = "text"
	cmdenv.Choice(cmd, &f.format, "format", "print this `FORMAT`", []string{"text", "json", "ndjson", "csv"})
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "write the reports of the commit into this `FOLDER`, or the lines into this file")
	cmdenv.Force(cmd.Flags(), &f.force)
	return cmd
}

func (f *listFlags) run(cmd *cobra.Command, e *cmdenv.Env, args []string) error {
	lines := f.format == "ndjson" || f.format == "csv"
	switch {
	case f.limit < 1:
		return usage.Errorf("--limit must be at least 1, got %d", f.limit)
	case f.out != "" && len(args) == 0 && !lines:
		return usage.Errorf("--out needs a commit, whose reports it writes, or --format ndjson or csv")
	}
	filter := f.filter()
	if len(args) > 0 {
		if filter.Commit = args[0]; filter.Commit == "" {
			return usage.Errorf("name a commit, the beginning of one, or a tag")
		}
	}
	over := atomicfile.Over{Begins: map[string]string{"ndjson": `{"repository":`, "csv": "repository,branch,commit,"}[f.format], Force: f.force}
	if f.out != "" && lines {
		if err := atomicfile.Check(f.out, over); err != nil {
			return err
		}
	}
	return f.with(cmd, history.Read, func(s *history.Store) error {
		switch {
		case lines && f.out != "":
			return atomicfile.File(f.out, over, func(w io.Writer) error { return exportPoints(cmd, s, filter, f.format, w) })
		case lines:
			return exportPoints(cmd, s, filter, f.format, e.Out)
		case filter.Commit != "":
			return f.numbers(cmd, e, s, filter)
		}
		filter.Limit = f.limit
		return f.runs(cmd, e, s, filter)
	})
}

func (f *listFlags) runs(cmd *cobra.Command, e *cmdenv.Env, s *history.Store, filter history.Filter) error {
	runs, err := s.Runs(cmd.Context(), filter)
	if err != nil {
		return err
	}
	workloads, err := s.Workloads(cmd.Context())
	if err != nil {
		return err
	}
	if f.format == "json" {
		return cmdenv.JSON(e.Out, struct {
			Schema    string                      `json:"schema"`
			Workloads map[string]history.Workload `json:"workloads"`
			Runs      []history.Run               `json:"runs"`
		}{"explain.history.runs/1", workloads, append([]history.Run{}, runs...)})
	}
	return render.Terminal(e.Out, runsPage(runs, workloads), e.Terminal())
}

// numbers prints the numbers of each run of a commit.
func (f *listFlags) numbers(cmd *cobra.Command, e *cmdenv.Env, s *history.Store, filter history.Filter) error {
	runs, err := s.Runs(cmd.Context(), filter)
	if err != nil {
		return err
	}
	if f.out != "" {
		if err := f.writeReports(cmd, s, runs); err != nil {
			return err
		}
	}
	points := []history.Point{}
	if err := s.Points(cmd.Context(), filter, func(p *history.Point) error {
		points = append(points, *p)
		return nil
	}); err != nil {
		return err
	}
	if f.format == "json" {
		return cmdenv.JSON(e.Out, struct {
			Schema string          `json:"schema"`
			Runs   []history.Run   `json:"runs"`
			Points []history.Point `json:"points"`
		}{"explain.history.points/1", append([]history.Run{}, runs...), points})
	}
	return render.Terminal(e.Out, pointsPage(runs, points), e.Terminal())
}

func runsPage(runs []history.Run, workloads map[string]history.Workload) doc.Document {
	var d doc.Document
	d.Add(doc.H(1, "runs", wording.Count(len(runs), "run")))
	var fields doc.Fields
	for _, id := range slices.Sorted(maps.Keys(workloads)) {
		if slices.ContainsFunc(runs, func(r history.Run) bool { return r.Workload == id }) {
			fields.Add(id, workloads[id].Spans())
		}
	}
	if len(fields.Items) == 0 {
		d.Add(doc.P("No run matches."))
		return d
	}
	d.Add(fields)
	t := doc.Table{ID: "runs", Columns: doc.Cols("Time", "Commit", "Branch", "Workload", "Environment", "Capture")}
	for _, r := range slices.Backward(runs) {
		t.Row(r.Time.Format("2006-01-02 15:04"), doc.Code(history.Short(r.Commit)), r.Branch, doc.Code(r.Workload),
			doc.Code(r.Epoch), doc.Name(r.Name))
	}
	d.Add(t)
	return d
}

// writeReports writes the kept reports of runs into a folder.
func (f *listFlags) writeReports(cmd *cobra.Command, s *history.Store, runs []history.Run) error {
	reports, err := s.Reports(cmd.Context(), runs)
	if err != nil {
		return err
	}
	for i, r := range reports {
		name := filepath.Join(f.out, runs[i].Commit+"-"+runs[i].Key[:8]+".json")
		if err := atomicfile.File(name, atomicfile.Over{Begins: `{"schema":"explain.report/`, Force: f.force}, func(w io.Writer) error { return report.Write(w, r) }); err != nil {
			return err
		}
	}
	return nil
}

// pointsPage shows the numbers of several runs side by side.
func pointsPage(runs []history.Run, points []history.Point) doc.Document {
	var d doc.Document
	for _, r := range runs {
		d.Add(doc.Heading{Level: 1, ID: r.Key,
			Spans: doc.Spans(r.Commit+", "+r.Time.Format("2006-01-02 15:04")+", "+r.Branch+", ", doc.Name(r.Name))})
		t := doc.Table{ID: "points", Columns: doc.Cols("Metric", "Of", ">Value", ">Reference")}
		for _, p := range points {
			if p.Origin != r.Origin {
				continue
			}
			of, beside := cmp.Or(p.Kind, strings.ReplaceAll(p.Labels.String(), ",", ", ")), "" // phase=decode, batch=32
			if p.Pinned != nil {
				beside = unit.Format(*p.Pinned, p.Unit)
			}
			t.Row(doc.Code(p.Metric), doc.Name(of), unit.Format(p.Value, p.Unit), beside)
		}
		d.Add(t)
	}
	return d
}

func exportPoints(cmd *cobra.Command, s *history.Store, filter history.Filter, format string, w io.Writer) error {
	if format == "ndjson" {
		lines := json.NewEncoder(w)
		return s.Points(cmd.Context(), filter, func(p *history.Point) error { return lines.Encode(p) })
	}
	c := csv.NewWriter(w)
	_ = c.Write([]string{"repository", "branch", "commit", "time", "workload", "epoch", "capture", "metric", "labels", "kind",
		"unit", "value", "pinned_commit", "pinned"}) // Error says what went wrong
	err := s.Points(cmd.Context(), filter, func(p *history.Point) error {
		number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
		commit, pinned := "", ""
		if p.Pinned != nil {
			commit, pinned = *p.PinnedCommit, number(*p.Pinned)
		}
		return c.Write([]string{p.Repository, p.Branch, p.Commit, p.Time.Format("2006-01-02T15:04:05Z"), p.Workload, p.Epoch,
			p.Capture, p.Metric,
			render.CSVName(p.Labels.String()), render.CSVName(p.Kind), p.Unit, number(p.Value), commit, pinned})
	})
	c.Flush()
	if err = cmp.Or(err, c.Error()); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}
