package mergecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/merge"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/fetch"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/progress"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

// NewPartial is explain partial.
func NewPartial(e *cmdenv.Env) *cobra.Command {
	var f partialFlags
	cmd := &cobra.Command{
		Use:    "partial TRACE",
		Short:  "Analyse one of many captures, for explain merge",
		Hidden: true, // for jobs on many machines
		Long: `partial analyses one capture and writes what "explain merge" needs of it: some 100 kB, whatever the
size of the trace. The same capture gives the same bytes. A run of many ranks is analysed where its
captures lie, one process each, and only partials are moved.

TRACE is a file as for explain report, an https:// address (a presigned one of an object store), or -
for standard input. With --index it is line I of the manifest, counted from 0, so that any array job
can run it: SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX, an index of a matrix. --out is a folder then.

The partial appears whole or not at all. With --resume a partial that is already there is kept, so
a killed job can run again.`,
		Example: `  explain partial rank3.sqlite --out parts/rank3.partial
  explain partial --index "$SLURM_ARRAY_TASK_ID" --of manifest.txt --out parts/ --resume
  aws s3 cp s3://captures/rank3.sqlite - | explain partial - --name rank3.sqlite --out rank3.partial`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case f.index >= 0 && len(args) > 0:
				return usage.Errorf("--index takes the trace from the manifest: name none beside it")
			case f.index < 0 && len(args) != 1:
				return usage.Errorf("name one trace: explain partial TRACE --out FILE.partial")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, e, args) },
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.out, "out", "o", "", "write the partial into this `FILE`; with --index into this folder")
	fl.IntVar(&f.index, "index", -1, "analyse line `I` of the manifest, counted from 0")
	fl.StringVar(&f.of, "of", "", "the manifest: a `FILE` with one trace in each line; # begins a comment")
	cmdenv.Force(fl, &f.force)
	fl.BoolVar(&f.resume, "resume", false, "keep a partial that is there and whole")
	fl.StringVar(&f.name, "name", "", "call the capture `NAME`, if it comes from standard input")
	f.analysis.RegisterFor(cmd, "")
	_ = cmd.MarkFlagFilename("of", "txt")
	return cmd
}

type partialFlags struct {
	analysis      cmdenv.AnalysisFlags
	out, of, name string
	index         int
	resume, force bool
}

func (f *partialFlags) run(cmd *cobra.Command, e *cmdenv.Env, args []string) error {
	trace, out, err := f.place(args)
	if err != nil {
		return err
	}
	if f.resume && readPartial(out, true) == nil {
		if !f.analysis.Quiet {
			_, err = fmt.Fprintf(e.Out, "%s is there and whole: kept\n", render.Visible(out))
		}
		return err
	}
	over := overPartial(f.force || f.resume)
	if err := atomicfile.Check(out, over); err != nil {
		return err
	}
	opt, err := f.analysis.Options(e, 1)
	if err != nil {
		return err
	}
	cmdenv.HoldMemory(trace)
	c, err := digest(cmd.Context(), e, trace, opt, &f.analysis)
	if err != nil {
		return err
	}
	if f.name != "" {
		c.Name = f.name
	}
	b, err := c.Partial()
	if err != nil {
		return err
	}
	err = atomicfile.File(out, over, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
	if err == nil && !f.analysis.Quiet && !atomicfile.Stdout(out) {
		_, err = fmt.Fprintf(e.Out, "Wrote %s: %.1f kB; explain merge makes a report of such files\n",
			render.Visible(out), float64(len(b))/1000)
	}
	return err
}

// digest analyses a trace, and fetches it first if needed.
func digest(
	ctx context.Context, e *cmdenv.Env, trace string, opt analyze.Options, f *cmdenv.AnalysisFlags,
) (*merge.Capture, error) {
	path, remove, err := fetch.File(ctx, trace, e.In)
	if err != nil {
		return nil, err
	}
	defer remove()
	bar := progress.New(e.Err, f.Quiet, f.Verbose)
	defer bar.Stop()
	opt.Progress = bar.Update
	return analyze.Digest(ctx, path, opt)
}

// place returns the trace to analyse and the file to write.
func (f *partialFlags) place(args []string) (trace, out string, err error) {
	switch {
	case f.out == "":
		return "", "", usage.Errorf("--out is missing: say where the partial goes")
	case f.index < 0 && f.of != "":
		return "", "", usage.Errorf("--of names a manifest, and --index a line of it")
	case f.index < 0:
		return args[0], f.out, nil
	case f.of == "":
		return "", "", usage.Errorf("--index %d is a line of a manifest: name it with --of FILE", f.index)
	}
	list, err := readManifest(f.of)
	if err != nil {
		return "", "", err
	}
	if f.index >= len(list) {
		return "", "", usage.Errorf("--index %d: %s names %d traces, counted from 0", f.index, f.of, len(list))
	}
	return list[f.index], filepath.Join(f.out, fmt.Sprintf("%06d.partial", f.index)), nil
}

// readManifest returns the lines of a manifest without empty lines and comments.
func readManifest(path string) ([]string, error) {
	b, err := input.ReadText(path)
	if err != nil {
		return nil, usage.Errorf("--of: %w", err)
	}
	var list []string
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			list = append(list, line)
		}
	}
	if len(list) == 0 {
		return nil, usage.Errorf("--of %s names no trace", path)
	}
	return list, nil
}

// overPartial returns which existing file a partial may replace.
func overPartial(force bool) atomicfile.Over {
	return atomicfile.Over{Force: force, Own: func(path string) (bool, error) {
		err := readPartial(path, false)
		if errors.As(err, new(*fs.PathError)) {
			return false, err
		}
		return err == nil, nil
	}}
}

// readPartial returns an error if a file is no partial, of this version or another; if whole, all of it is read.
func readPartial(path string, whole bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := merge.NewReader(path, f)
	for n := 0; err == nil && whole; n++ {
		var h *merge.Head
		if h, err = r.Next(); err == nil && h == nil {
			if n == 0 {
				return errors.New("holds no capture")
			}
			return nil
		}
	}
	return err
}
