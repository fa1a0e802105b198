package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/diff/render"
	"github.com/nsys-llm/explain/gate"
)

// baseline is what the head is compared with, and where that came from.
type baseline struct {
	inputs  []input
	reports []*report.Report
	source  string
	sha     string // that was measured, where known
	notes   [][]doc.Span
}

// around is what stands around a comparison with this baseline in a comment.
func (b *baseline) around(s *gate.Session) render.CommentOptions {
	o := provenance(s)
	o.Provenance.Baseline, o.Provenance.BaseSHA = b.source, b.sha
	if b.sha == "" && len(b.inputs) > 0 {
		o.Provenance.BaseSHA = baseCommit(s)
	}
	return o
}

// baseline finds the base: the files that were named, else an artifact of the base branch, else a checked-in file.
func (f *gateFlags) baseline(ctx context.Context, s *gate.Session) (baseline, error) {
	if len(f.base) > 0 {
		inputs, err := findCaptures("--base", f.base)
		return baseline{inputs: inputs, source: "files of this job"}, err
	}
	why := "no --base was given"
	if f.baselineArtifact != "" {
		b, err := f.artifact(ctx, s)
		var none *gate.NoBaseline
		if err == nil || !errors.As(err, &none) {
			return b, err
		}
		why = none.Reason
	}
	if f.baselineFile != "" {
		if exists(f.baselineFile) {
			inputs, err := findCaptures("--baseline-file", []string{f.baselineFile})
			b := baseline{inputs: inputs, source: "file " + filepath.ToSlash(f.baselineFile)}
			if f.baselineArtifact != "" {
				b.notes = [][]doc.Span{{doc.Text("No artifact to compare with: " + why +
					". Compared with a checked-in file instead.")}}
			}
			return b, err
		}
		why += "; there is no file " + filepath.ToSlash(f.baselineFile)
	}
	return baseline{notes: [][]doc.Span{{doc.Text("No baseline (first run): " + why +
		". Only budgets are judged.")}}}, nil
}

// readBaseline takes the reports out of an artifact's files, and leaves everything else alone.
func readBaseline(files []gate.File) ([]*report.Report, error) {
	var list []*report.Report
	for _, f := range files {
		r, err := report.Read(bytes.NewReader(f.Data))
		if err != nil {
			if strings.HasSuffix(f.Name, "report.json") {
				return nil, fmt.Errorf("%s: %w", clean(f.Name), err)
			}
			continue // summary.json and the like
		}
		list = append(list, r)
	}
	return list, nil
}

// artifact takes the base from an artifact of the base branch.
func (f *gateFlags) artifact(ctx context.Context, s *gate.Session) (baseline, error) {
	if s == nil {
		return baseline{}, usagef(
			"--baseline-artifact finds an artifact in GitHub Actions, and this is not one of its jobs: " +
				"name the files with --base")
	}
	branch := cmp.Or(f.baselineBranch, s.BaseBranch())
	if branch == "" {
		return baseline{}, usagef("the event %s has no base branch: name one with --baseline-branch", s.Run.Event)
	}
	found, err := s.Baseline(ctx, f.baselineArtifact, branch)
	if err != nil {
		return baseline{}, err
	}
	reports, err := readBaseline(found.Files)
	switch {
	case err != nil:
		return baseline{}, fmt.Errorf("%s: %w", found.Source, err)
	case len(reports) == 0:
		return baseline{}, &gate.NoBaseline{Reason: found.Source + " holds no report.json"}
	}
	b := baseline{reports: reports, source: found.Source, sha: found.SHA}
	for _, warning := range found.Warnings {
		b.notes = append(b.notes, []doc.Span{doc.Text("Baseline: " + warning)})
	}
	return b, nil
}
