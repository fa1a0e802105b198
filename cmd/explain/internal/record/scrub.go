package record

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/report/secret"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/progress"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

func newScrub(e *cmdenv.Env) *cobra.Command {
	names, out, force := "keep", "", false
	cmd := &cobra.Command{
		Use:   "scrub IN.sqlite OUT.sqlite",
		Short: "Write a copy of a capture that is safe to share",
		Long: `A capture holds the whole environment of the process, host and user names, command lines and
captured output. scrub copies only the tables, columns and metadata on a list, which is what explain
reads. The report of the copy has the same numbers, except those read from payloads and from events of
plugins, which can hold anything: power, NCCL's message sizes, Python's stacks. scrub names every table
and column that it leaves out. At the end it analyses IN and OUT, which takes longer than the copy, and
compares their numbers: if one differs, there is no OUT, and the exit code is 3. Numbers whose labels
--names hides are not compared; with other names, numbers that go by them can differ, and are listed.

"explain diff IN OUT" says that every number is equal, and exits with 4 (same_capture), since a copy is
no second capture; if --names hides names, it says PASS (one_session) and exits with 0.

Names of kernels, API calls, NVTX ranges, programs, GPUs, and of threads that wait for the GPU stay,
since reports are made of them; texts in them that look like an access token are replaced by [redacted],
and the UUIDs of GPUs by hashes.
Ranges and threads can have any name, and scrub warns if one looks like a token, an e-mail address or
a prompt. --names says how names are written:

  keep         as they are (default)
  hash         those of ranges and threads are replaced by letters: equal names stay equal, and
               cannot be read. Step markers of engines, PyTorch's own operators and words that
               reveal nothing stay, so a comparison of such copies decides as one of the captures
               would
  all          also those of kernels, host functions and functions of call chains. Of a kernel's
               name stay its category (gemm, attention, …), library, part of the model and
               collective, so that the times of these are the same; its precision and tile are
               gone, and what is found from them. NCCL's keep their names. In a comparison, kernels
               that replace others are then paired less often
  hash:REGEX   as hash or all, except names that match: 'hash:execute_context|forward|attn'
  all:REGEX

IN is never changed. OUT appears whole or not at all; a file that is there stays, unless --force is given.`,
		Example: "  explain scrub trace.sqlite shareable.sqlite\n" +
			"  explain scrub --names all trace.sqlite shareable.sqlite",
		Args: cmdenv.Args(1, 2, "name the capture and the copy: explain scrub IN.sqlite OUT.sqlite"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 2) == (out != "") {
				return usage.Errorf("name the capture and the copy, once: explain scrub IN.sqlite OUT.sqlite")
			}
			if len(args) == 2 {
				out = args[1]
			}
			return scrub(cmd, e, args[0], out, names, force)
		},
	}
	cmdenv.Force(cmd.Flags(), &force)
	cmd.Flags().StringVar(&names, "names", names,
		"hide names: `HOW` is keep, hash (ranges and threads), all (kernels too), hash:REGEX or all:REGEX")
	cmd.Flags().StringVarP(&out, "out", "o", "", "write the copy into this `FILE`, as OUT.sqlite does")
	cmdenv.Complete(cmd, "names", []string{"keep", "hash", "all"})
	return cmd
}

func scrub(cmd *cobra.Command, e *cmdenv.Env, in, out, names string, force bool) error {
	if err := input.Local(in); err != nil {
		return err
	}
	if from, err := os.Stat(in); err == nil {
		if to, err := os.Stat(out); err == nil && os.SameFile(from, to) {
			return usage.Errorf("%s is the capture itself: name another file", out)
		}
	}
	over := atomicfile.Over{Force: force}
	if err := atomicfile.Check(out, over); err != nil {
		return err
	}
	shown, how, err := shownNames(names)
	if err != nil {
		return err
	}
	bar := progress.New(e.Err, false, false)
	var done analyze.Scrubbed
	var proof string
	err = atomicfile.Path(out, over, func(name string) (err error) {
		opt := analyze.Options{Getenv: e.Getenv, Progress: bar.Update}
		if done, err = analyze.Scrub(cmd.Context(), in, name, shown, opt); err == nil {
			cmdenv.HoldMemory(in, name)
			proof, err = proven(cmd.Context(), in, name, shown, opt)
		}
		return err
	})
	bar.Stop()
	if err != nil {
		return input.AsTyped(err, in)
	}
	for _, kind := range []secret.Kind{secret.Token, secret.Email, secret.Prompt} {
		if n := done.Looks[kind]; n > 0 {
			held := map[bool]string{true: "looks", false: "look"}[n == 1]
			fmt.Fprintf(e.Err, "Note: %s of ranges or threads %s like %s: read them before you share the copy, or hide them with --names hash\n",
				wording.Count(n, "name"), held, kind.Article())
		}
	}
	if atomicfile.Stdout(out) {
		return nil
	}
	if _, err := fmt.Fprintf(e.Out, "Wrote %s: %s, %s; %s\n", render.Visible(out), wording.Count(done.Tables, "table"),
		wording.Count(done.Rows, "row"), render.Visible(how)); err != nil {
		return err
	}
	var d doc.Document
	d.Add(leftOut(&done), doc.P(proof))
	return render.Terminal(e.Out, d, render.TerminalOptions{Color: e.Coloured()})
}

// shownNames reads the value of --names; how says in words what it hides.
func shownNames(names string) (shown analyze.Shown, how string, err error) {
	mode, pattern, some := strings.Cut(names, ":")
	if mode == "keep" && !some {
		return shown, "names of kernels and ranges are as they were", nil
	}
	if mode != "hash" && mode != "all" {
		return shown, "", usage.Errorf("--names %q is not keep, hash (hide ranges and threads) or all (kernels too); "+
			"hash:REGEX and all:REGEX keep what matches", names)
	}
	var keep *regexp.Regexp
	if some {
		if keep, err = regexp.Compile(pattern); err != nil {
			return shown, "", usage.Errorf("--names %s: what follows %s: is no regular expression: %w", names,
				mode, err)
		}
	}
	shown.Personal, how = analyze.HideNames(keep), "names of ranges and threads are hidden"
	if mode == "all" {
		shown.Work, how = analyze.HideKernels(keep), "names of kernels, ranges, threads and functions are hidden"
	}
	if some {
		how += ", except those that match " + pattern
	}
	return shown, how, nil
}

// leftOut names the tables and columns of a capture that are not in its copy, and counts rows and texts.
func leftOut(done *analyze.Scrubbed) (l doc.List) {
	l.Add("Never copied: environments, host and user names, command lines, captured output")
	if len(done.LeftTables) > 0 {
		l.Add("Left out whole: " + strings.Join(done.LeftTables, ", "))
	}
	for _, table := range slices.Sorted(maps.Keys(done.LeftColumns)) {
		l.Add("Left out of " + table + ": " + strings.Join(done.LeftColumns[table], ", "))
	}
	rows := lists.Map(slices.Sorted(maps.Keys(done.LeftRows)), func(table string) string {
		return wording.Count(done.LeftRows[table], "row") + " of " + table
	})
	if len(rows) > 0 {
		l.Add("Left out of what was copied: " + strings.Join(rows, ", "))
	}
	if done.Redacted > 0 {
		l.Add("Redacted in " + wording.Count(done.Redacted, "text"))
	}
	return l
}

// proven analyses a capture and its copy, and says that their numbers are equal. It is an error if one differs, unless
// names are hidden: some numbers are found by what they say.
func proven(ctx context.Context, in, out string, shown analyze.Shown, opt analyze.Options) (string, error) {
	was, err := analyze.Run(ctx, in, opt)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "Not proven equal, since the capture cannot be analysed: " + err.Error(), nil
	}
	is, err := analyze.Run(ctx, out, opt)
	if err != nil {
		return "", err
	}
	equal, differ, lost := compared(was.Report, is.Report)
	if len(differ) > 0 && shown.Personal == nil {
		return "", errors.New("these numbers would differ: " + strings.Join(differ, ", "))
	}
	text := "Every number is equal: " + wording.Count(equal, "metric")
	if len(differ) > 0 {
		text = "Equal: " + wording.Count(equal, "metric") + ". Different, since hidden names say them: " +
			strings.Join(differ, ", ")
	}
	if len(lost) > 0 {
		text += ". Not in the copy, or under another name: " + strings.Join(lost, ", ")
	}
	return text + ".", nil
}

// compared counts the metrics of a capture that its copy has with the same value, and lists the ids of others.
func compared(was, is *report.Report) (equal int, differ, lost []string) {
	values := report.NewIndex(is)
	for _, m := range was.Metrics {
		switch n := values.Metric(m.ID, m.Labels); {
		case n == nil:
			lost = append(lost, m.ID)
		case (m.Value == nil) != (n.Value == nil) || m.Value != nil && *m.Value != *n.Value:
			differ = append(differ, m.ID)
		default:
			equal++
		}
	}
	slices.Sort(differ)
	slices.Sort(lost)
	return equal, slices.Compact(differ), slices.Compact(lost)
}
