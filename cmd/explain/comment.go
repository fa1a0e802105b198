package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/diff/comparison"
	diffrender "github.com/nsys-llm/explain/diff/render"
	"github.com/nsys-llm/explain/gate"
)

func newComment(w *world) *cobra.Command {
	var f commentFlags
	cmd := &cobra.Command{
		Use:   "comment [--merge] [COMPARISON …]",
		Short: "Write the comment for comparisons that were made elsewhere, and post it in GitHub Actions",
		Long: `comment writes the comment of a pull request from comparison.json, as gate does: the JSON is validated and the markdown is made here.

With COMPARISON files it combines several with --merge, the jobs of a matrix say: the worst verdict, a row for each, each one
folded. It prints the markdown, or writes comment.md into --out; in GitHub Actions it posts it.

Without files it is the half of the fork pattern that may write: in a workflow_run job it takes comparison.json from the artifact of
the run that has finished, finds the pull request by head commit and repository, refuses where the head has moved on, and
posts. It needs no checkout. The numbers were made by code of the pull request, and the comment says so.

The exit code is 0 whatever the verdict is: gate has judged already.`,
		Example: `  explain comment gate/comparison.json > comment.md
  explain comment --merge legs/*/comparison.json --comment-key all`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), w, args) },
	}
	f.register(cmd)
	return cmd
}

// commentFlags are the flags of explain comment.
type commentFlags struct {
	hubFlags
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
	fl.StringVar(&f.label, "override-label", "perf:accept", "this `LABEL` on the pull request turns fail into warn (workflow_run); empty: none does")
	fl.StringVarP(&f.out, "out", "o", "", "write comment.md into this `DIR` instead of printing it")
	f.hubFlags.register(cmd)
	_ = cmd.MarkFlagDirname("out")
}

func (f *commentFlags) run(ctx context.Context, w *world, args []string) error {
	if f.out != "" {
		if err := checkOut(f.out); err != nil {
			return err
		}
	}
	args = append(args, f.files...)
	h, err := openHub(ctx, w, f.hubFlags)
	if err != nil {
		return err
	}
	if len(args) > 0 || f.merge {
		err = f.named(ctx, w, h, args)
	} else {
		err = f.triggered(ctx, w, h)
	}
	if err != nil {
		h.failed(err)
	}
	return err
}

// named comments on comparisons of this checkout.
func (f *commentFlags) named(ctx context.Context, w *world, h *hub, args []string) error {
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
	var legs []diffrender.Leg
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
	o := h.options(baseline{})
	render := f.render(legs, o)
	if err := f.write(ctx, w, h, render); err != nil {
		return err
	}
	if h != nil {
		h.summary(render(summaryLimit))
		h.post(ctx, h.number, commentOn(diffrender.Worst(legs), render), gate.Comment{Stamp: h.run.Stamp()})
	}
	return nil
}

// render is one comparison as gate would comment on it, or several combined.
func (f *commentFlags) render(legs []diffrender.Leg, o diffrender.CommentOptions) func(int) string {
	return func(limit int) string {
		o.Limit = limit
		if len(legs) == 1 && !f.merge {
			return diffrender.Comment(legs[0].Comparison, o)
		}
		return diffrender.CombinedComment(legs, o)
	}
}

// write leaves the markdown where it was asked for.
func (f *commentFlags) write(ctx context.Context, w *world, h *hub, render func(int) string) error {
	switch {
	case f.out != "":
		return writeFolder(ctx, f.out, []file{{"comment.md", func(w io.Writer) error {
			_, err := io.WriteString(w, render(gate.CommentLimit))
			return err
		}}})
	case h == nil:
		_, err := io.WriteString(w.Out, render(gate.CommentLimit))
		return err
	}
	return nil
}

// triggered comments on what the run left behind that triggered this one.
func (f *commentFlags) triggered(ctx context.Context, w *world, h *hub) error {
	switch {
	case h == nil:
		return usagef("name comparison.json files; without any, comment runs in a workflow_run job of GitHub Actions")
	case h.run.Trigger == nil:
		return usagef("the event is %s: name comparison.json files, or run this on workflow_run", h.run.Event)
	case h.run.Trigger.Event != "pull_request":
		h.err("the run that has finished was for " + h.run.Trigger.Event + ", not for a pull request: nothing to comment on")
		return nil
	}
	t := h.run.Trigger
	pull, err := h.client.FindPull(ctx, *t, f.pull)
	if errors.Is(err, gate.ErrNoPull) || errors.Is(err, gate.ErrHeadMoved) { // no mistake of anybody: a newer run has the say
		h.err("nothing is posted: " + err.Error())
		h.log.Annotate(gate.Notice, "explain: comment", "nothing is posted: "+err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	found, err := h.client.RunArtifact(ctx, t.RunID, f.artifact)
	if err != nil {
		return fmt.Errorf("artifact %s of run %d: %w", f.artifact, t.RunID, err)
	}
	var legs []diffrender.Leg
	for _, a := range found {
		if path.Base(a.Name) != "comparison.json" {
			continue
		}
		leg, err := readLeg(a.Name, a.Data)
		if err != nil {
			return err
		}
		leg.Comparison.Withdraw() // who accepts what is for the pull request to say, not for its code
		h.override(ctx, pull.Number, leg.Comparison, f.label)
		legs = append(legs, leg)
	}
	if len(legs) == 0 {
		return fmt.Errorf("artifact %s of run %d holds no comparison.json", f.artifact, t.RunID)
	}
	o := diffrender.CommentOptions{Title: f.commentKey, Provenance: diffrender.Provenance{HeadSHA: t.HeadSHA, RunURL: h.runURL(t.RunID), Artifact: f.artifact}}
	if pull.Fork {
		o.Notes = append(o.Notes, []doc.Span{doc.Text("Reported by a run of the fork's own code: explain made this comment, and did not measure the numbers.")})
	}
	render := f.render(legs, o)
	if len(legs) > 1 {
		render = (&commentFlags{merge: true}).render(legs, o)
	}
	if err := f.write(ctx, w, h, render); err != nil {
		return err
	}
	h.summary(render(summaryLimit))
	all := diffrender.Worst(legs)
	h.output("verdict", string(all.Verdict))
	h.post(ctx, pull.Number, commentOn(all, render), gate.Comment{Stamp: h.run.Stamp()})
	if f.status != "" {
		s := gate.Status{SHA: t.HeadSHA, OK: all.Verdict == comparison.Pass || all.Verdict == comparison.Warn, Context: f.status, Text: "explain: " + string(all.Verdict), URL: h.run.URL()}
		if why := h.client.Status(ctx, s); why != "" {
			h.err("status: " + why)
		}
	}
	return nil
}

// readLeg reads a comparison that may have been written by anybody.
func readLeg(name string, b []byte) (diffrender.Leg, error) {
	c, err := comparison.Read(bytes.NewReader(b))
	if err != nil {
		return diffrender.Leg{}, fmt.Errorf("%s: %w", name, err)
	}
	title := strings.TrimSuffix(path.Base(name), ".json")
	if dir := path.Base(path.Dir(name)); title == "comparison" && dir != "." && dir != "/" {
		title = dir
	}
	return diffrender.Leg{Title: title, Comparison: c}, nil
}
