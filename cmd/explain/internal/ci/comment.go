package ci

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/output"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/diffdoc"
	"github.com/nsys-llm/explain/gate"
)

// newComment returns explain gate comment.
func newComment(e *cmdenv.Env) *cobra.Command {
	var f commentFlags
	cmd := &cobra.Command{
		Use:   "comment [--merge] COMPARISON …",
		Short: "Write the comment for comparisons made elsewhere, and post it in GitHub Actions",
		Long: `gate comment writes the comment for a pull request from comparison.json, as gate does, after it has
validated the JSON. It prints the markdown, or writes comment.md into --out; in GitHub Actions it
posts the comment.

With --merge it combines several comparisons, for example those of a matrix: the worst verdict, a row
for each, and the rest folded. --expect names them: if one is missing because its job failed, the
comment shows an error and the exit code is 3, so an incomplete matrix cannot pass.

For pull requests from forks, use gate on workflow_run: it judges the measurements, while gate comment
would repeat what the fork's own code claims.

In GitHub Actions the exit code is that of the worst verdict, as --exit-on says. Elsewhere it is 0
unless --exit-on is given, since gate has judged already.`,
		Example: `  explain gate comment gate/comparison.json > comment.md
  explain gate comment --merge legs/*/comparison.json --expect a100,h100 --comment-key all`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.judges = cmd.Flags().Changed("exit-on")
			return f.run(cmd.Context(), e, args)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.merge, "merge", false, "combine several comparisons in one comment")
	fl.StringSliceVar(&f.expect, "expect", nil,
		"`NAMES` of the comparisons that --merge must find, as their folders are called or end in after a dash: "+
			"a100,h100")
	fl.StringArrayVar(&f.files, "comparison", nil, "`FILES` as the arguments name them: repeatable, commas, globs")
	fl.StringVarP(&f.out, "out", "o", "", "write comment.md into this `DIR` instead of printing it")
	f.github.register(cmd)
	_ = cmd.MarkFlagDirname("out")
	return cmd
}

// commentFlags are the flags of explain gate comment.
type commentFlags struct {
	github githubFlags
	merge  bool
	expect []string
	files  []string
	out    string
	judges bool // --exit-on was given: the exit code is that of the verdict on any CI
}

func (f *commentFlags) run(ctx context.Context, e *cmdenv.Env, args []string) error {
	session, err := f.github.session(ctx, e, f.out)
	if err == nil {
		err = output.Check(f.out)
	}
	if err == nil {
		err = f.comment(ctx, e, session, append(args, f.files...))
	}
	if err != nil && !errors.As(err, new(cmdenv.Exit)) && session != nil {
		return f.github.failed(ctx, e, session, errorText(err, f.github.provenance(session)), err)
	}
	return err
}

// comment reads the comparisons and posts a comment on them.
func (f *commentFlags) comment(ctx context.Context, e *cmdenv.Env, s *gate.Session, args []string) error {
	switch {
	case s != nil && s.Of.Run.Trigger != nil:
		return usage.Errorf("on workflow_run explain trusts nothing that a change says about itself: use explain gate, " +
			"which judges " +
			"the reports of its run")
	case len(args) == 0:
		return usage.Errorf("name comparison.json files")
	case len(f.expect) > 0 && !f.merge:
		return usage.Errorf("--expect goes with --merge")
	}
	paths, err := input.Expand("comment", args)
	if err != nil && len(f.expect) == 0 {
		return err
	}
	if len(paths) > 1 && !f.merge {
		return usage.Errorf("%d comparisons: combine them with --merge", len(paths))
	}
	var legs []comparison.Leg
	for _, p := range paths {
		b, err := input.ReadText(p)
		if err != nil {
			return err
		}
		leg, err := readLeg(filepath.ToSlash(p), b)
		if err != nil {
			return err
		}
		if s != nil {
			leg.Comparison.Withdraw() // acceptance is decided on the pull request, not in the file
		}
		legs = append(legs, leg)
	}
	missing := nameLegs(legs, f.expect)
	legs = append(legs, missing...)
	if s != nil {
		if err := s.Accept(ctx, legs, f.github.acceptance("")); err != nil {
			s.Say("the verdict is not kept, so no label can accept it: " + err.Error())
		}
	}
	o := f.github.provenance(s)
	text := func(limit int) string { // on one as gate writes it, on several combined
		if len(legs) != 1 || f.merge {
			return diffdoc.CombinedComment(legs, o, limit)
		}
		return diffdoc.Comment(legs[0].Comparison, o, limit)
	}
	if err := f.write(ctx, e, s, text); err != nil {
		return err
	}
	if s != nil {
		s.Comment(ctx, diffdoc.Worst(legs), text)
	}
	switch code := f.github.exitCode(diffdoc.Worst(legs).Verdict); {
	case len(missing) > 0 && f.github.exitOn != "never":
		return cmdenv.Exit(cmdenv.Input)
	case (s != nil || f.judges) && code != cmdenv.OK:
		return cmdenv.Exit(code)
	}
	return nil
}

// nameLegs gives each comparison the name that it stands for: the longest of expect that its own is, or ends in after a
// dash. It returns an error comparison for each name that none stands for. Blanks around names do not count.
func nameLegs(legs []comparison.Leg, expect []string) (missing []comparison.Leg) {
	expect = lists.Filter(lists.Map(expect, strings.TrimSpace), func(name string) bool { return name != "" })
	for i := range legs {
		best := ""
		for _, name := range expect {
			if strings.HasSuffix("-"+legs[i].Name, "-"+name) && len(name) > len(best) {
				best = name
			}
		}
		legs[i].Name = cmp.Or(best, legs[i].Name)
	}
	for _, name := range expect {
		if !slices.ContainsFunc(legs, func(l comparison.Leg) bool { return l.Name == name }) {
			c := &comparison.Comparison{Verdict: comparison.Error,
				Answer: comparison.Answer{Notes: []string{"it left no comparison: its job failed or never ran"}}}
			missing = append(missing, comparison.Leg{Name: name, Comparison: c})
		}
	}
	return missing
}

// write writes the comment to comment.md in --out; without --out, and outside GitHub Actions, to standard output.
func (f *commentFlags) write(ctx context.Context, e *cmdenv.Env, s *gate.Session, text func(int) string) error {
	write := writeText(text, gate.CommentLimit)
	switch {
	case f.out != "":
		if err := atomicfile.Check(filepath.Join(f.out, "comment.md"), atomicfile.Over{Begins: "### "}); err != nil {
			return err
		}
		return output.Write(ctx, f.out, []output.File{{Name: "comment.md", Write: write}})
	case s == nil:
		return write(e.Out)
	}
	return nil
}

// readLeg reads a comparison from an untrusted file.
func readLeg(name string, b []byte) (comparison.Leg, error) {
	c, err := comparison.Read(bytes.NewReader(b))
	if err != nil {
		return comparison.Leg{}, fmt.Errorf("%s: %w", name, err)
	}
	if c.Study != nil {
		return comparison.Leg{}, fmt.Errorf("%s is a study of %s, whose sides differ on purpose: it has no verdict, so it judges no change", name, c.Study.About())
	}
	title := strings.TrimSuffix(path.Base(name), ".json")
	if dir := path.Base(path.Dir(name)); title == "comparison" && dir != "." && dir != "/" {
		title = dir
	}
	return comparison.Leg{Name: title, Comparison: c}, nil
}
