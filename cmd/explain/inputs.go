package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/limit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/policy"
)

// analysisFlags say how traces are analysed where a command takes traces and reports alike.
type analysisFlags struct {
	unit, window   string
	from, to       time.Duration
	steady         bool
	phaseMap       string
	kernelMap      string
	memory         memoryFlag
	quiet, verbose bool
	policyUnit     string         // that the policy asks for, where --unit says nothing
	given          *pflag.FlagSet // the command's; nil where there is no command line
}

// register adds the flags to a command that takes traces and reports: they are about the traces.
func (f *analysisFlags) register(cmd *cobra.Command) { f.registerFor(cmd, " (traces only)") }

// registerFor adds the flags; where they hold ends the help of those that are about traces.
func (f *analysisFlags) registerFor(cmd *cobra.Command, where string) {
	fl := cmd.Flags()
	f.given = fl
	fl.StringVar(&f.unit, "unit", "",
		"one step of the work: nvtx:`REGEX`, kernel:REGEX, graph or none (default: found automatically)"+where)
	fl.StringVar(&f.window, "window", "",
		"analyse from the first to the last NVTX range that matches: nvtx:`REGEX`"+where)
	fl.DurationVar(&f.from, "from", 0, "analyse from this `TIME` after the first GPU work, 1.5s or 200ms"+where)
	fl.DurationVar(&f.to, "to", 0, "analyse up to this `TIME` after the first GPU work"+where)
	fl.BoolVar(&f.steady, "steady", false, "analyse from the first to the last steady step"+where)
	fl.StringVar(&f.phaseMap, "phase-map", "",
		"map NVTX ranges to phases by a JSON `FILE`: {\"prefill\": [\"prompt\", \"re:^ctx\"], …}"+where)
	fl.StringVar(&f.kernelMap, "kernel-map", "", kernelMapHelp+where)
	f.memory.register(fl)
	quiet := "print nothing but errors"
	if fl.Lookup("format") != nil {
		quiet += ", and what --format asks for"
	}
	fl.BoolVarP(&f.quiet, "quiet", "q", false, quiet)
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "say on standard error what is being done")
	_ = cmd.MarkFlagFilename("phase-map", "json")
	_ = cmd.MarkFlagFilename("kernel-map", "yml", "yaml", "csv")
}

// changed reports whether a flag stands on the command line.
func (f *analysisFlags) changed(name string) bool { return f.given != nil && f.given.Changed(name) }

// options are those of the analyses of which as many as traces says run at once.
func (f *analysisFlags) options(e *env, traces int) (analyze.Options, error) {
	opt := analyze.Options{Version: versionText(), Unit: f.unit, Getenv: e.Getenv}
	if f.unit == "" {
		opt.Unit = f.policyUnit
	}
	if f.quiet && f.verbose {
		return opt, usagef("--quiet and --verbose exclude each other")
	}
	var err error
	if opt.Window.NVTX, err = windowRange(f.window); err != nil {
		return opt, err
	}
	if f.changed("from") {
		opt.Window.From = &f.from
	}
	if f.changed("to") {
		opt.Window.To = &f.to
	}
	opt.Window.Steady = f.steady
	if opt.Phases, err = readMap(f.phaseMap, "phase map", analyze.ParsePhaseMap); err != nil {
		return opt, err
	}
	if opt.Kernels, err = readMap(f.kernelMap, "kernel map", analyze.ParseKernelMap); err != nil {
		return opt, err
	}
	return opt, f.memory.apply(&opt, traces)
}

// windowRange is the expression of --window nvtx:REGEX; empty where the flag is.
func windowRange(window string) (string, error) {
	expr, ok := strings.CutPrefix(window, "nvtx:")
	if window != "" && (!ok || expr == "") {
		return "", usagef("--window %s: expected nvtx:REGEX", window)
	}
	return expr, nil
}

const kernelMapHelp = "say the category of kernels by a YAML or CSV `FILE`: \"my_router: moe_route\", \"re:^acme_: gemm\""

// readMap reads the file of a flag such as --phase-map; nil where there is none.
func readMap[M any](path, what string, parse func(name string, text []byte) (*M, error)) (*M, error) {
	if path == "" {
		return nil, nil
	}
	text, err := readLimited(path)
	if err != nil {
		return nil, usagef("%s: %w", what, err)
	}
	return parse(filepath.Base(path), text)
}

// follow takes the unit of work from a policy where --unit says none, and tells the policy where it does: the flag
// wins.
func (f *analysisFlags) follow(p *policy.Policy) *policy.Policy {
	switch {
	case p == nil:
		return nil
	case f.unit == "":
		f.policyUnit = p.Unit
		return p
	}
	told := *p
	told.Unit = strings.TrimPrefix(f.unit, "auto")
	return &told
}

// Kinds of input, by content.
const (
	traceInput   = "trace"
	reportInput  = "report"
	summaryInput = "summary" // profilemate's summary.json
)

// input is one file to compare.
type input struct {
	path string
	kind string
}

// findInput finds out what a path is. A folder is the report that explain --out wrote into it, or one of evidence.
func findInput(path string) (input, error) {
	in := input{path: path, kind: traceInput}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		in.path = filepath.Join(path, "report.json")
		if _, err := os.Stat(in.path); err != nil {
			if analyze.HoldsEvidence(path) {
				return input{path: path, kind: traceInput}, nil
			}
			return in, fmt.Errorf("%s is a folder without report.json; name a trace, a report.json, or a folder that explain --out wrote", path)
		}
	}
	f, err := os.Open(in.path)
	if err != nil { // analyze says what is wrong with it
		return in, nil
	}
	defer f.Close()
	head, err := bufio.NewReaderSize(f, 512).Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return in, nil
	}
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(head) == 0 || head[0] != '{' {
		return in, nil
	}
	in.kind, err = jsonKind(in.path)
	return in, err
}

// findInputs are the inputs that a list of file names, globs and lists separated by commas names. A glob that matches
// nothing is an error: a side must not get smaller in silence.
func findInputs(flag string, names []string) ([]input, error) {
	paths, err := expand(flag, names)
	if err != nil {
		return nil, err
	}
	var list []input
	for _, p := range paths {
		in, err := findInput(p)
		if err != nil {
			return nil, err
		}
		list = append(list, in)
	}
	return list, nil
}

// findCaptures are inputs as findInputs has them, of which none holds totals only.
func findCaptures(flag string, names []string) ([]input, error) {
	list, err := findInputs(flag, names)
	for _, in := range list {
		if in.kind == summaryInput {
			return nil, usagef("%s: %s is a summary.json, which holds totals: name the trace or its report.json",
				flag, in.path)
		}
	}
	return list, err
}

// expand turns names into paths: what exists is taken as it is, else split at commas, else a glob. What a glob matches is
// in the order of the names.
func expand(flag string, names []string) ([]string, error) {
	var list []string
	for _, name := range names {
		parts := []string{name}
		if !exists(name) {
			parts = strings.Split(name, ",")
		}
		for _, p := range parts {
			if p = strings.TrimSpace(p); p == "" {
				return nil, usagef("%s: a file name is empty", flag)
			}
			if exists(p) || !strings.ContainsAny(p, "*?[") {
				list = append(list, p)
				continue
			}
			found, err := filepath.Glob(p)
			if err != nil {
				return nil, usagef("%s %s: %w", flag, p, err)
			}
			if len(found) == 0 {
				return nil, fmt.Errorf("%s %s matches no file", flag, p)
			}
			list = append(list, found...)
		}
	}
	return list, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// jsonKind tells the JSON files apart that people may name.
func jsonKind(path string) (string, error) {
	b, err := readLimited(path)
	if err != nil {
		return "", err
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(b, &top); err != nil {
		return "", fmt.Errorf("%s is not valid JSON (%w); was it cut off?", path, err)
	}
	var schema string
	if raw, ok := top["schema"]; ok {
		if err := json.Unmarshal(raw, &schema); err != nil {
			schema = ""
		}
	}
	switch {
	case strings.HasPrefix(schema, "explain.report/"):
		return reportInput, nil
	case strings.HasPrefix(schema, "explain.load/"):
		return traceInput, nil // evidence, which is analysed like a trace
	case strings.HasPrefix(schema, "explain."):
		return "", fmt.Errorf("%s holds %s, not a report; name a trace or a report.json", path, schema)
	}
	for _, key := range []string{"prefill_decode", "top_kernels", "cuda_graphs"} {
		if _, ok := top[key]; ok {
			return summaryInput, nil
		}
	}
	if analyze.IsEvidence(path) {
		return traceInput, nil
	}
	return "", fmt.Errorf(
		"%s is neither a report of explain nor a summary.json of profilemate: it has no field \"schema\"", path)
}

// readLimited reads a file of text whole, without a byte order mark.
func readLimited(path string) ([]byte, error) {
	b, err := limit.Text.ReadFile(path)
	return bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")), err
}

// parallel is how many traces are analysed at a time: each is held in memory.
const parallel = 2

// reports reads or makes the reports of all inputs, in their order.
func (f *analysisFlags) reports(ctx context.Context, e *env, inputs []input) ([]*report.Report, error) {
	results, err := f.results(ctx, e, inputs, len(inputs))
	var list []*report.Report
	for _, r := range results {
		list = append(list, r.Report)
	}
	return list, err
}

// results are the reports of all inputs in their order, with the detail tables of those that were made here from
// traces, from the index whole on: these can be large.
func (f *analysisFlags) results(ctx context.Context, e *env, inputs []input, whole int) ([]*analyze.Result, error) {
	opt, err := f.options(e, parallel)
	if err != nil {
		return nil, err
	}
	if err := f.fits(inputs); err != nil {
		return nil, err
	}
	bar := newProgress(e, f.quiet, f.verbose)
	defer bar.stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	list, errs := make([]*analyze.Result, len(inputs)), make([]error, len(inputs))
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, in := range inputs {
		slots <- struct{}{}
		wg.Add(1)
		go func() {
			defer func() { <-slots; wg.Done() }()
			if list[i], errs[i] = readOne(ctx, in, opt, bar); errs[i] != nil {
				cancel()
			} else if i < whole {
				list[i].Details = nil
			}
		}()
	}
	wg.Wait()
	for _, err := range errs { // the first that was not caused by another
		if err != nil && !errors.Is(err, context.Canceled) {
			return nil, err
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return list, oneUnit(ctx, inputs, list, whole, opt, bar)
}

// named are the reports with the names that inputs go by in a comparison: the trace's own, or, where several inputs share
// it, the end of the path that tells them apart: run-1/trace.sqlite and run-9/trace.sqlite. The reports stay as they are.
func named(inputs []input, reports []*report.Report) []*report.Report {
	path := func(i int) string {
		if dir, file := filepath.Split(inputs[i].path); file == "report.json" { // which explain --out wrote
			return filepath.Join(dir, reports[i].Trace.Name)
		}
		return filepath.Clean(inputs[i].path)
	}
	list := slices.Clone(reports)
	for i, r := range reports {
		var same []string // other files of this name
		for k, o := range reports {
			if o.Trace.Name == r.Trace.Name && path(k) != path(i) {
				same = append(same, path(k))
			}
		}
		if len(same) > 0 {
			own := *r
			own.Trace.Name = apart(path(i), same)
			list[i] = &own
		}
	}
	return list
}

// apart is the shortest end of a path, in whole parts, that no other path ends with.
func apart(path string, others []string) string {
	parts := strings.Split(filepath.ToSlash(path), "/")
	for n := len(parts) - 1; n > 0; n-- {
		end := strings.Join(parts[n:], "/")
		if !slices.ContainsFunc(others, func(o string) bool {
			return strings.HasSuffix("/"+filepath.ToSlash(o), "/"+end)
		}) {
			return end
		}
	}
	return strings.TrimPrefix(strings.Join(parts, "/"), "/")
}

// oneUnit analyses traces once more whose reports cannot be cut where the units of the first start: there are more places
// than a report carries.
func oneUnit(
	ctx context.Context, inputs []input, list []*analyze.Result, whole int, opt analyze.Options, bar *progress,
) error {
	for _, r := range list {
		if opt.Anchor = r.Report.Unit.Used(); opt.Anchor != nil {
			break
		}
	}
	if opt.Anchor == nil {
		return nil
	}
	for i, in := range inputs {
		if in.kind != traceInput || !slices.Contains([]string{"kernel", "none"}, list[i].Report.Unit.Kind) {
			continue
		}
		if _, ok := list[i].Report.CutAt(opt.Anchor); ok {
			continue
		}
		again, err := readOne(ctx, in, opt, bar)
		if err != nil {
			return err
		}
		if list[i] = again; i < whole {
			again.Details = nil
		}
	}
	return nil
}

// fits refuses flags about traces where a report is made already.
func (f *analysisFlags) fits(inputs []input) error {
	for _, flag := range []string{"unit", "window", "from", "to", "steady", "phase-map", "kernel-map"} {
		for _, in := range inputs {
			if in.kind == reportInput && f.changed(flag) {
				return usagef("--%s says how a trace is analysed, and %s is a report already: make it again with explain TRACE --%s, or name the trace", flag, in.path, flag)
			}
		}
	}
	return nil
}

func readOne(ctx context.Context, in input, opt analyze.Options, bar *progress) (*analyze.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if in.kind == reportInput {
		b, err := readLimited(in.path)
		if err != nil {
			return nil, err
		}
		r, err := report.Read(bytes.NewReader(b))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", in.path, err)
		}
		return &analyze.Result{Report: r}, nil
	}
	opt.Progress = func(stage string, done int64) { bar.update(filepath.Base(in.path)+": "+stage, done) }
	opt.Overhead = overheadBeside(in.path)
	return analyze.Run(ctx, in.path, opt)
}
