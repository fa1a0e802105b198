package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/render"
	"github.com/nsys-llm/explain/gate"
)

func newComment(e *env) *cobra.Command {
	var f commentFlags
	cmd := &cobra.Command{
		Use:   "comment [--merge] [COMPARISON …]",
		Short: "Write the comment for comparisons that were made elsewhere, and post it in GitHub Actions",
		Long: `comment writes the comment of a pull request from comparison.json, as gate does: the JSON is
validated and the markdown is made here.

With COMPARISON files it combines several with --merge, the jobs of a matrix say: the worst verdict,
a row for each, each one folded. It prints the markdown, or writes comment.md into --out; in GitHub
Actions it posts it.

Without files it is the half of the fork pattern that may write: in a workflow_run job it takes
comparison.json from the artifact of the run that has finished, finds the pull request by head
commit and repository, refuses where the head has moved on, and posts. It needs no checkout. The
numbers were made by code of the pull request, and the comment says so.

The exit code is 0 whatever the verdict is: gate has judged already.`,
		Example: `  explain comment gate/comparison.json > comment.md
  explain comment --merge legs/*/comparison.json --comment-key all`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), e, args) },
	}
	f.register(cmd)
	return cmd
}

// commentFlags are the flags of explain comment.
type commentFlags struct {
	github   githubFlags
	merge    bool
	files    []string
	artifact string
	status   string
	label    string
	out      string
}

func (f *commentFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.BoolVar(&f.merge, "merge", false, "combine several comparisons in one comment")
	fl.StringArrayVar(&f.files, "comparison", nil, "`FILES` as the arguments name them: repeatable, commas, globs")
	fl.StringVar(&f.artifact, "artifact", "explain", "the artifact of this `NAME` holds comparison.json (workflow_run)")
	fl.StringVar(&f.status, "status", "", "also set a commit status of this `NAME` on the head (workflow_run)")
	fl.StringVar(&f.label, "override-label", "perf:accept",
		"this `LABEL` on the pull request turns fail into warn (workflow_run); empty: none does")
	fl.StringVarP(&f.out, "out", "o", "", "write comment.md into this `DIR` instead of printing it")
	f.github.register(cmd)
	_ = cmd.MarkFlagDirname("out")
}

func (f *commentFlags) run(ctx context.Context, e *env, args []string) error {
	if f.out != "" {
		if err := checkOut(f.out); err != nil {
			return err
		}
	}
	args = append(args, f.files...)
	session, err := f.github.session(ctx, e)
	if err != nil {
		return err
	}
	if len(args) > 0 || f.merge {
		err = f.named(ctx, e, session, args)
	} else {
		err = f.triggered(ctx, e, session)
	}
	if err != nil && session != nil {
		session.Fail(errorCode(err), err)
	}
	return err
}

// named comments on comparisons of this checkout.
func (f *commentFlags) named(ctx context.Context, e *env, s *gate.Session, args []string) error {
	if len(args) == 0 {
		return usagef("--merge combines comparison.json files: name them")
	}
	paths, err := expand("comment", args)
	if err != nil {
		return err
	}
	if len(paths) > 1 && !f.merge {
		return usagef("%d comparisons: combine them with --merge", len(paths))
	}
	var legs []render.Leg
	for _, p := range paths {
		b, err := readLimited(p)
		if err != nil {
			return err
		}
		leg, err := readLeg(filepath.ToSlash(p), b)
		if err != nil {
			return err
		}
		legs = append(legs, leg)
	}
	text := commentText(legs, f.merge, provenance(s))
	if err := f.write(ctx, e, s, text); err != nil {
		return err
	}
	if s != nil {
		s.Comment(ctx, s.Number, render.Worst(legs), text)
	}
	return nil
}

// commentText is one comparison as gate would comment on it, or several combined.
func commentText(legs []render.Leg, merge bool, o render.CommentOptions) func(limit int) string {
	return func(limit int) string {
		o.Limit = limit
		if len(legs) == 1 && !merge {
			return render.Comment(legs[0].Comparison, o)
		}
		return render.CombinedComment(legs, o)
	}
}

// write leaves the markdown where it was asked for.
func (f *commentFlags) write(ctx context.Context, e *env, s *gate.Session, text func(int) string) error {
	write := func(to io.Writer) error {
		_, err := io.WriteString(to, text(gate.CommentLimit))
		return err
	}
	switch {
	case f.out != "":
		return writeFolder(ctx, f.out, []file{{"comment.md", write}})
	case s == nil:
		return write(e.Out)
	}
	return nil
}

// triggered comments on what the run left behind that triggered this one.
func (f *commentFlags) triggered(ctx context.Context, e *env, s *gate.Session) error {
	switch {
	case s == nil:
		return usagef("name comparison.json files; without any, comment runs in a workflow_run job of GitHub Actions")
	case s.Run.Trigger == nil:
		return usagef("the event is %s: name comparison.json files, or run this on workflow_run", s.Run.Event)
	}
	pull, found, err := s.Finished(ctx, f.artifact)
	if err != nil || pull == nil {
		return err
	}
	var legs []render.Leg
	for _, a := range found {
		leg, err := readLeg(a.Name, a.Data)
		if err != nil {
			return err
		}
		leg.Comparison.Withdraw() // who accepts what is for the pull request to say, not for its code
		s.Override(ctx, pull.Number, leg.Comparison, f.label)
		legs = append(legs, leg)
	}
	o := provenance(s)
	o.Title, o.Provenance.Artifact = f.github.commentKey, f.artifact
	if pull.Fork {
		o.Notes = append(o.Notes, []doc.Span{doc.Text(
			"Reported by a run of the fork's own code: explain made this comment, and did not measure the numbers.")})
	}
	text := commentText(legs, f.merge || len(legs) > 1, o)
	if err := f.write(ctx, e, s, text); err != nil {
		return err
	}
	all := render.Worst(legs)
	s.Comment(ctx, pull.Number, all, text)
	s.TellTrigger(ctx, all, f.status)
	return nil
}

// readLeg reads a comparison that may have been written by anybody.
func readLeg(name string, b []byte) (render.Leg, error) {
	c, err := comparison.Read(bytes.NewReader(b))
	if err != nil {
		return render.Leg{}, fmt.Errorf("%s: %w", name, err)
	}
	title := strings.TrimSuffix(path.Base(name), ".json")
	if dir := path.Base(path.Dir(name)); title == "comparison" && dir != "." && dir != "/" {
		title = dir
	}
	return render.Leg{Title: title, Comparison: c}, nil
}
