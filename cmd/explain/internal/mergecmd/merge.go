// Package mergecmd is explain partial and explain merge: captures of one run, analysed one by one, made one report.
package mergecmd

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/merge"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/fetch"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/output"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

// NewMerge is explain merge.
func NewMerge(e *cmdenv.Env) *cobra.Command {
	var f Run
	cmd := &cobra.Command{
		Use:    "merge FILE…",
		Short:  "Make one report of the captures of one run",
		Hidden: true, // explain report does it of several captures
		Long: `merge makes one report of what all captures of a run say together: counts and times added up,
percentiles over all events, the slowest step, and above all who waits for whom ("explain doc ranks").
It is a report like any other: explain diff and gate take it on either side.

FILES are partials that "explain partial" wrote, traces, which are analysed on the way, folders of
either, or https:// addresses of partials and traces. If a trace is gone, name the folder of its
report, or its report.json: counts and times stay exact, percentiles and what the ranks did in
collectives become unknown.

The same captures give the same bytes, in whatever order and by whatever tree of merges: --out
NAME.partial writes a partial of them all, to be merged further.

The rank of a process comes from MPI, from the environment of its launcher or from NCCL. --rank takes
it from the names of files, by the first group of a REGEX, if nothing else says it.`,
		Example: `  explain merge parts/ --out report/
  explain merge 'ranks/*.sqlite' --rank 'rank(\d+)' --out report/
  explain merge node0/*.partial --out node0.partial
  explain merge parts/ --role 'prefill=prefill' --role '^decode=decode' --out report/
  explain diff base/report.json head/report.json     of two merged runs`,
		Args: cmdenv.Args(1, cmdenv.Any, "name the partials of one run: explain merge parts/ --out report/"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.Report(cmd, e, args) },
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.Out, "out", "o", "",
		"write the report into this `DIR`, or one partial into this file NAME.partial")
	cmdenv.FormatFlag(cmd, &f.Format, output.Formats)
	cmdenv.Force(fl, &f.Force)
	RegisterRanks(fl, &f.Rank, &f.Roles)
	fl.IntVar(&f.Top, "top", 30, "rows of ranked tables, `N` at most")
	f.Analysis.Register(cmd)
	_ = cmd.MarkFlagDirname("out")
	return cmd
}

// Run is the input of explain merge, and of explain report with several captures.
type Run struct {
	Analysis    cmdenv.AnalysisFlags
	Out, Format string
	Rank        string   // REGEX
	Roles       []string // REGEX=NAME
	Top         int      // rows of ranked tables
	Force       bool     // replace files that explain did not write
	Apart       bool     // the captures must be of different ranks; else two sides of a comparison are probably meant
}

// RegisterRanks adds the flags that assign captures of a run to ranks.
func RegisterRanks(fl *pflag.FlagSet, rank *string, roles *[]string) {
	fl.StringVar(rank, "rank", "", "read the rank from the names of captures: the first group of `REGEX`")
	fl.StringArrayVar(roles, "role", nil, "for each `REGEX=NAME`, name the ranks whose captures match: prefill, decode, …")
}

// options turns flags into the options of a merged report.
func (f *Run) options(e *cmdenv.Env) (opt merge.Options, err error) {
	opt = merge.Options{Version: e.Version, Rules: analyze.MergeRules(), Top: f.Top}
	if f.Top < 1 {
		return opt, usage.Errorf("--top must be at least 1, got %d", f.Top)
	}
	if err := cmdenv.Format(cmp.Or(f.Format, "text"), output.Formats); err != nil {
		return opt, err
	}
	if f.Rank != "" {
		if opt.Rank, err = regexp.Compile(f.Rank); err != nil {
			return opt, usage.Errorf("--rank %q is not a regular expression: %w", f.Rank, err)
		}
		if opt.Rank.NumSubexp() < 1 {
			return opt, usage.Errorf(`--rank %q has no group around the number: write e.g. 'rank(\d+)'`, f.Rank)
		}
	}
	for _, r := range f.Roles {
		at := strings.LastIndexByte(r, '=')
		if at <= 0 || at == len(r)-1 {
			return opt, usage.Errorf("--role %q is not REGEX=NAME", r)
		}
		of, err := regexp.Compile(r[:at])
		if err != nil {
			return opt, usage.Errorf("--role %q is not a regular expression: %w", r[:at], err)
		}
		opt.Roles = append(opt.Roles, merge.Role{Name: r[at+1:], Of: of})
	}
	return opt, nil
}

// Report writes and prints the report of a run, or the union of its partials.
func (f *Run) Report(cmd *cobra.Command, e *cmdenv.Env, args []string) error {
	if strings.HasSuffix(f.Out, ".partial") {
		return f.union(cmd.Context(), e, args)
	}
	if err := output.Check(f.Out); err != nil {
		return err
	}
	r, err := f.Merged(cmd.Context(), e, args)
	if err != nil {
		return err
	}
	res := &analyze.Result{Report: r}
	if f.Out != "" {
		if err := output.WriteOver(cmd.Context(), f.Out, output.Report(res), f.Force); err != nil {
			return err
		}
	}
	if f.Analysis.Quiet && f.Format == "" {
		return nil
	}
	return output.Print(e.Out, res, f.Format, f.Out, e.Terminal())
}

// union writes one partial of all that there are.
func (f *Run) union(ctx context.Context, e *cmdenv.Env, args []string) error {
	over := overPartial(f.Force)
	if err := atomicfile.Check(f.Out, over); err != nil {
		return err
	}
	sources, err := f.sources(ctx, e, args)
	if err == nil {
		err = atomicfile.File(f.Out, over, func(w io.Writer) error { return merge.Union(ctx, w, sources) })
	}
	if err == nil && !f.Analysis.Quiet && !atomicfile.Stdout(f.Out) {
		_, err = fmt.Fprintf(e.Out, "Wrote %s\n", render.Visible(f.Out))
	}
	return err
}

// Merged returns the report of a run from partials, traces, folders of either, and reports.
func (f *Run) Merged(ctx context.Context, e *cmdenv.Env, args []string) (*report.Report, error) {
	opt, err := f.options(e)
	if err != nil {
		return nil, err
	}
	sources, err := f.sources(ctx, e, args)
	if err != nil {
		return nil, err
	}
	return merge.Report(ctx, sources, opt)
}

// sources returns the partials in files and folders; it analyses traces, also those in folders, one after the other.
func (f *Run) sources(ctx context.Context, e *cmdenv.Env, args []string) ([]merge.Source, error) {
	paths, err := input.Expand("merge", args)
	if err != nil {
		return nil, err
	}
	opt, err := f.Analysis.Options(e, 1)
	if err != nil {
		return nil, err
	}
	cmdenv.HoldMemory(paths...)
	var list []merge.Source
	known := make([][]int64, 0, len(paths)) // ranks in each that is no partial
	for i := 0; i < len(paths); i++ {
		path := paths[i]
		remote := fetch.Remote(path) // a folder that is named like an address does not stand in for it
		if info, err := os.Stat(path); err == nil && info.IsDir() && !remote {
			found := input.RunIn(path)
			if found == nil {
				names, _ := fs.Glob(os.DirFS(path), "*.partial")
				found = lists.Map(names, func(name string) string { return filepath.Join(path, name) })
			}
			if len(found) > 0 {
				paths = slices.Replace(paths, i, i+1, found...)
				i--
				continue
			}
			trace, _ := output.TraceIn(path)
			if trace == path {
				trace = filepath.Join(path, "report.json")
			}
			if !input.Exists(trace) {
				const text = "%s is a folder without partials, traces or a report: name what explain partial wrote"
				return nil, fmt.Errorf(text, path)
			}
			path = trace
		}
		if strings.HasSuffix(fetch.Name(path), ".partial") || !remote && readPartial(path, false) == nil {
			if err := f.Analysis.Refuse(fetch.Shown(path), "partial", "explain partial TRACE"); err != nil {
				return nil, err
			}
			if remote {
				b, err := fetched(ctx, path, e.In)
				if err != nil {
					return nil, err
				}
				list = append(list, held(path, b))
				continue
			}
			list = append(list, merge.Source{Name: path, Open: func() (io.ReadCloser, error) { return os.Open(path) }})
			continue
		}
		c, err := f.capture(ctx, e, path, opt)
		if err != nil {
			return nil, err
		}
		var ranks []int64
		for _, t := range c.Tracks {
			if t.Rank >= 0 {
				ranks = append(ranks, t.Rank)
			}
		}
		known = append(known, ranks)
		b, err := c.Partial()
		if err != nil {
			return nil, err
		}
		list = append(list, held(path, b))
	}
	if f.Apart && f.Rank == "" && len(list) == 2 && len(known) == 2 && (len(known[0]) == 0 || len(known[1]) == 0 || slices.Equal(known[0], known[1])) {
		a, b := render.Visible(fetch.Shown(paths[0])), render.Visible(fetch.Shown(paths[1]))
		return nil, usage.Errorf("%s and %s do not say that they are two ranks of one run: to compare them, run explain diff %s %s; if they are of one run, --rank REGEX reads ranks from their names", a, b, a, b)
	}
	return list, nil
}

// held is a partial that is in memory.
func held(path string, partial []byte) merge.Source {
	return merge.Source{Name: fetch.Shown(path),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(partial)), nil }}
}

// fetched is what an address holds.
func fetched(ctx context.Context, address string, stdin io.Reader) ([]byte, error) {
	name, remove, err := fetch.File(ctx, address, stdin)
	if err != nil {
		return nil, err
	}
	defer remove()
	return os.ReadFile(name)
}

// capture is what a report.json says of its capture, or what the analysis of a trace says.
func (f *Run) capture(
	ctx context.Context, e *cmdenv.Env, path string, opt analyze.Options,
) (*merge.Capture, error) {
	if fetch.Remote(path) || !strings.EqualFold(filepath.Ext(path), ".json") || analyze.IsProfile(path) {
		return digest(ctx, e, path, opt, &f.Analysis)
	}
	r, err := input.ReadReport(path)
	if err == nil {
		err = f.Analysis.Refuse(path, "report", "explain TRACE")
	}
	if err != nil {
		return nil, err
	}
	return analyze.OfReport(path, r)
}
