package capturesession

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"slices"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/output"
)

// besideTrace lists where a capture leaves evidence: patterns of files, their flag of explain report, and their kind.
var besideTrace = []struct{ pattern, flag, kind string }{
	{"ncu/raw.csv", "--ncu", analyze.EvidenceNCU},
	{"logs/server.log", "--server-log", analyze.EvidenceServerLog},
	{"evidence/*.prom", "--prometheus", analyze.EvidencePrometheus},
	{"evidence/*.json", "--evidence", ""},
	{"evidence/session", "--evidence", ""},
}

// reportCommand returns the explain report command that does what analyse does, with these files of evidence.
func (r *Options) reportCommand(dir string, evidence []string) []string {
	argv := []string{"explain", "report", filepath.Join(dir, "trace.sqlite")}
	for _, b := range besideTrace {
		for _, name := range evidence {
			if ok, err := path.Match(b.pattern, name); ok && err == nil {
				argv = append(argv, b.flag, filepath.Join(dir, filepath.FromSlash(name)))
			}
		}
	}
	argv = append(argv, given("--unit", r.Unit, "--phase-map", r.PhaseMap, "--kernel-map", r.KernelMap)...)
	return append(argv, "--out", dir)
}

// given are those flags of a list, each followed by its value, that have one.
func given(flags ...string) (argv []string) {
	for flag := range slices.Chunk(flags, 2) {
		if flag[1] != "" {
			argv = append(argv, flag...)
		}
	}
	return argv
}

// analyse makes the report of a capture with the evidence beside it, as explain report does.
func (r *Session) analyse(ctx context.Context, run *capture.Run) (*analyze.Result, error) {
	opt := r.Analysis
	opt.Overhead = OverheadBeside(run.SQLite())
	for _, e := range besideTrace {
		found, err := filepath.Glob(filepath.Join(run.Dir, filepath.FromSlash(e.pattern)))
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			if analyze.IsEvidence(path) { // logs of other servers are no evidence
				opt.Evidence = append(opt.Evidence, analyze.Evidence{Path: path, Kind: e.kind})
			}
		}
	}
	update, stop := r.Progress()
	defer stop()
	opt.Progress = update
	res, err := analyze.Run(ctx, run.SQLite(), opt)
	var input *analyze.InputError
	if !errors.As(err, &input) || len(opt.Evidence) == 0 {
		return res, err
	}
	// A report with less evidence is better than none: leave out one piece of it, then all.
	all := opt.Evidence
	for i := 0; i <= len(all); i++ {
		what := "the evidence beside it"
		opt.Evidence = nil
		if i < len(all) {
			what = filepath.Base(all[i].Path)
			opt.Evidence = slices.Delete(slices.Clone(all), i, i+1)
		}
		if less, e := analyze.Run(ctx, run.SQLite(), opt); e == nil {
			run.Note("the report leaves out " + what + ": " + err.Error())
			return less, nil
		}
	}
	return nil, err
}

// report analyses a capture and writes the report beside its trace.
func (r *Session) report(run *capture.Run) (*analyze.Result, error) {
	r.Say("Analysing")
	res, err := r.analyse(r.hard, run)
	if err != nil {
		return nil, err
	}
	return res, output.Write(r.hard, run.Dir, output.Report(res))
}

// facts returns what is written about a capture.
func (r *Session) facts(job *capture.Job) *capture.Facts {
	f := &capture.Facts{Job: job, RunID: r.ID, Version: r.Analysis.Version, When: r.Began, Config: r.Config}
	if r.Of != nil {
		f.NCU = r.Of.NCUVersion
		if len(r.Want.Window.Client) == 0 {
			f.Load = r.Of.sent()
		}
	}
	return f
}
