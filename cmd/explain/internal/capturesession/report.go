package capturesession

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/loadfile"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/present"
	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/output"
	"github.com/nsys-llm/explain/cmd/explain/internal/progress"
)

// besideTrace lists where a capture leaves evidence, its kind, and the flag of explain report for it.
var besideTrace = []struct{ name, kind, flag string }{
	{"ncu/raw.csv", analyze.EvidenceNCU, "--ncu"},
	{"logs/server.log", analyze.EvidenceServerLog, "--server-log"},
	{"evidence/metrics_after.prom", analyze.EvidencePrometheus, "--prometheus"},
	{"evidence/metrics_before.prom", analyze.EvidencePrometheus, "--prometheus"},
	{"evidence/load.json", "", "--evidence"},
	{"evidence/session", "", "--evidence"},
}

// reportCommand returns the explain report command that does what analyse does, with these flags for the evidence.
func (r *Options) reportCommand(dir string, evidence []string) []string {
	argv := append([]string{"explain", "report", filepath.Join(dir, "trace.sqlite")}, evidence...)
	argv = append(argv, given("--unit", r.Analysis.Unit, "--phase-map", r.Analysis.PhaseMap, "--kernel-map", r.Analysis.KernelMap)...)
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
	opt.Overhead = cmdenv.OverheadBeside(run.SQLite())
	for _, e := range besideTrace {
		path := filepath.Join(run.Dir, filepath.FromSlash(e.name))
		if analyze.IsEvidence(path) { // logs of other servers are no evidence
			opt.Evidence = append(opt.Evidence, analyze.Evidence{Path: path, Kind: e.kind})
		}
	}
	bar := progress.New(r.Env.Err, r.Want.Analysis.Quiet, r.Want.Analysis.Verbose)
	defer bar.Stop()
	opt.Progress = bar.Update
	res, err := analyze.Run(ctx, run.SQLite(), opt)
	if !errors.As(err, new(*analyze.InputError)) || len(opt.Evidence) == 0 {
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

// measureOverhead runs the load once more without the profiler and records what profiling cost. Its errors become
// notes, since the capture is complete without it.
func (r *Session) measureOverhead(run *capture.Run, job *capture.Job) {
	if !r.Want.Overhead || run.Interrupted || r.soft.Err() != nil {
		return
	}
	client, err := run.Unprofiled(job)
	var o *report.Overhead
	if err == nil {
		o, err = overheadOf(run.Dir, client)
	}
	if err == nil {
		err = atomicfile.File(filepath.Join(run.Dir, capture.OverheadFile), atomicfile.Any, func(w io.Writer) error {
			return json.NewEncoder(w).Encode(o)
		})
	}
	if err != nil {
		run.Note("the cost of profiling was not measured: " + err.Error())
		return
	}
	run.Note(present.OverheadText(o))
}

// overheadOf compares two loads: how long the user's client ran, else the requests that explain sent.
func overheadOf(dir string, client [2]time.Duration) (*report.Overhead, error) {
	of, sides := "client", [2]report.Summary{}
	for i, path := range []string{"evidence/load.json", capture.OverheadLoad} {
		if client[1] > 0 {
			sides[i] = report.Summary{N: 1, Mean: float64(client[i])}
			continue
		}
		of = "request"
		f, err := os.Open(filepath.Join(dir, filepath.FromSlash(path)))
		if err != nil {
			return nil, fmt.Errorf("a load has no result: %w", err)
		}
		res, err := loadfile.Read(f)
		f.Close()
		if err != nil || res.Latency.E2E == nil {
			return nil, errors.New("no request of a load succeeded")
		}
		sides[i] = res.Latency.E2E.Summary
	}
	o := report.NewOverhead(of, sides[0], sides[1])
	if o == nil {
		return nil, errors.New("a load took no time")
	}
	return o, nil
}

// plan prints what would be run.
func (r *Session) plan(programs [][]string) error {
	var text cmdenv.Lines
	add := func(lines ...string) {
		for _, line := range lines {
			text.Add("%s", line)
		}
	}
	if r.Unusable != "" {
		add("# " + r.Unusable + ": these are the commands for nsys " + r.Want.Nsys.Version)
	} else {
		add("# nsys " + r.Want.Nsys.Version)
	}
	port := 8000
	if r.Of != nil && r.Of.Port != 0 {
		port = r.Of.Port
	} else if r.Of != nil {
		add("# each port is replaced by a free one")
	}
	for side, program := range programs {
		dir := filepath.Join(r.Want.Out, r.Want.subfolder(side, 1))
		steps, err := capture.Plan(r.Want.job(program), port, dir)
		if err != nil {
			return err
		}
		add(steps...)
		if r.Want.Overhead {
			add("# the same load once more, without nsys")
		}
		var evidence []string
		if r.Of != nil {
			add(r.Of.plan(dir)...)
			evidence = r.Of.evidence(dir, len(r.Want.Window.Client) > 0)
		}
		if r.Want.NoReport {
			continue
		}
		if r.Of == nil && r.Want.Window.Triggered() {
			add("# with --server-log " + capture.Shell([]string{filepath.Join(dir, "logs", "server.log")}) +
				" where that is the log of an inference server:")
		}
		add(capture.Shell(r.Want.reportCommand(dir, evidence)))
	}
	if r.Want.Repeat > 1 {
		add(fmt.Sprintf("# all of it %d times", r.Want.Repeat))
	}
	if r.Want.Pair {
		add(capture.Shell(r.Want.diffCommand()))
	}
	return text.To(r.Env.Out)
}

// diffCommand is what compares the captures of a pair.
func (r *Options) diffCommand() []string {
	argv := []string{"explain", "diff", "--base", strings.Join(r.folders(0), ","), "--head",
		strings.Join(r.folders(1), ","), "--out", filepath.Join(r.Out, "comparison")}
	for _, rule := range r.Rules.FailOn {
		argv = append(argv, "--fail-on", rule)
	}
	return append(argv, given("--policy", r.Rules.Policy, "--noise", r.Rules.Noise)...)
}
