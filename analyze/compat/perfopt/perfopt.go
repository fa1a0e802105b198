// Package perfopt reads the folder that a run of llm-perf-opt writes: timings and dimensions, the environment, the
// configuration, tables of operators and kernels, and the list of profiled regions. Formats: CodeGandee/llm-perf-opt,
// src/llm_perf_opt/runners and profiling.
package perfopt

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// Kind is what the report calls this evidence: metrics.json, env.json, inputs.yaml, ….
const Kind file.Kind = "llm-perf-opt"

// Data is the content of a run of llm-perf-opt.
type Data struct {
	Run       *Run    // of metrics.json, or of stakeholder_summary.md if that is missing
	Packages  string  // of env.json, with their versions: torch 2.6.0, transformers 4.46.3
	GPU       string  // as the device names itself; empty if not stated
	CUDA      string  // version that PyTorch was built for
	Model     string  // of config.yaml
	DType     string  // bfloat16, float16, float32, …
	Context   Context // of config.yaml
	Inputs    int64   // images or commands of inputs.yaml
	Operators []Operator
	Kernels   []Kernel
	Regions   []Region

	runs    int // files that state timings
	summary *Run
	damaged []string
}

// form is one kind of file.
type form struct {
	name string
	is   func(name string, head []byte) bool
	read func(d *Data, in *file.Input, b []byte) error
}

// forms in the order in which a file is compared with them. A report that only repeats other files is recognised, and
// nothing is taken from it.
var forms = []form{
	{"metrics.json", isMetrics, (*Data).readMetrics},
	{"env.json", isEnv, (*Data).readEnv},
	{"ncu/regions/report.json", isRegions, (*Data).readRegions},
	{"inputs.yaml", isInputs, (*Data).readInputs},
	{"config.yaml", isConfig, (*Data).readConfig},
	{"operators.md", isOperators, (*Data).readOperators},
	{"kernels.md", isKernels, (*Data).readKernels},
	{"stakeholder_summary.md", titled("Stakeholder Summary"), (*Data).readSummary},
	{"report.md", titled("Deep Profiling Report", "Stage 1 Profiling Report", "Stage 2 Profiling Report",
		"Nsight Compute – NVTX Regions", "Run Assumptions"), (*Data).readNothing},
}

// titled recognises a page by its first heading.
func titled(titles ...string) func(string, []byte) bool {
	return func(_ string, head []byte) bool {
		line, _, _ := bytes.Cut(bytes.TrimLeft(head, " \t\r\n"), []byte("\n"))
		text, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("# "))
		return slices.ContainsFunc(titles, func(t string) bool { return ok && string(text) == t })
	}
}

func formOf(name string, head []byte) *form {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	for i := range forms {
		if forms[i].is(name, head) {
			return &forms[i]
		}
	}
	return nil
}

// Is reports whether a file that starts with head, and is named name, is of this kind.
func Is(name string, head []byte) bool { return formOf(name, head) != nil }

// maxBytes bounds a file: the longest real one, a list of inputs, has a few hundred kilobytes.
const maxBytes = 8 << 20

// Read reads the files, in their order. Anomalies are counted in their tallies and listed in Warnings; an error is
// about a file that cannot be read at all.
func Read(ctx context.Context, files []file.Input) (*Data, error) {
	d := &Data{}
	for i := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		in := &files[i]
		if err := d.read(in); err != nil {
			return nil, fmt.Errorf("%s: %w", in.Name, err)
		}
	}
	if d.Run == nil {
		d.Run = d.summary
	}
	return d, nil
}

func (d *Data) read(in *file.Input) error {
	r, err := in.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil || len(b) > maxBytes {
		d.damaged = append(d.damaged, in.Name)
		b = b[:min(len(b), maxBytes)]
	}
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	f := formOf(in.Name, b[:min(len(b), file.HeadBytes)])
	if f == nil { // it changed while it was read
		in.Tally.Records, in.Tally.Unknown = 1, 1
		return nil
	}
	in.Tally.Format = f.name
	return f.read(d, in, b)
}

// readNothing is for pages that repeat other files.
func (d *Data) readNothing(in *file.Input, b []byte) error {
	in.Tally.Records = int64(bytes.Count(b, []byte("\n")))
	in.Tally.Known = in.Tally.Records
	return nil
}

// bad counts a file whose form is known but that cannot be read.
func (d *Data) bad(in *file.Input) error {
	in.Tally.Records, in.Tally.Unknown = in.Tally.Records+1, in.Tally.Unknown+1
	d.damaged = append(d.damaged, in.Name)
	return nil
}

// Warnings are the facts that limit trust in the numbers.
func (d *Data) Warnings() []report.Warning {
	var list []report.Warning
	if len(d.damaged) > 0 {
		list = append(list, report.Warning{Code: "perfopt_damaged",
			Text: "The file is damaged or too long, and was left out or read in part: " + file.Some(d.damaged, 3) + "."})
	}
	if d.runs > 1 {
		list = append(list, report.Warning{Code: "perfopt_runs",
			Text: fmt.Sprintf("The evidence holds the timings of %d runs of llm-perf-opt; the first one is shown. Name the folder of one run.",
				d.runs)})
	}
	return list
}

// Environment fills in the fields of e that are empty and that the files state.
func (d *Data) Environment(e *report.Environment) {
	fill := func(to **string, value string) {
		if *to == nil && value != "" {
			*to = &value
		}
	}
	fill(&e.Model, d.Model)
	fill(&e.DType, d.DType)
	fill(&e.Packages, d.Packages)
	if len(e.GPUs) == 0 && d.GPU != "" {
		e.GPUs = append(e.GPUs, report.GPU{Device: 0, Name: &d.GPU})
		fill(&e.CUDA, d.CUDA)
	}
}

// Texts that may leave this package. Files of a run hold paths, command lines and names of people.
var (
	gpuName     = pattern.New(`^(?:NVIDIA|Tesla|GeForce|Quadro|GRID|Orin|Xavier)[A-Za-z0-9 ()./+-]{0,60}$`)
	version     = pattern.New(`^[0-9]{1,3}(?:\.[0-9]{1,4}){1,3}(?:(?:\.dev|rc|a|b|\.post)[0-9]{1,8})?(?:\+(?:cu|cpu|rocm|git)[0-9a-f.]{0,12})?$`)
	modelID     = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?$`)
	operatorRef = pattern.New(`^(?:(?:[A-Za-z_][A-Za-z0-9_]{0,40}::){1,4}[A-Za-z_][A-Za-z0-9_.]{0,60}|cu(?:da)?[A-Z][A-Za-z0-9_]{2,60}|Mem(?:cpy|set) [A-Za-z]{3,10}(?: \([A-Za-z]{3,9} -> [A-Za-z]{3,9}\))?|ProfilerStep[#*][0-9]{0,9})$`)
	regionPart  = pattern.New(`^(?:LLM@)?[A-Za-z][A-Za-z_]{0,31}[0-9]{0,3}$`)
)

// dtypes by the names that configurations use.
var dtypes = map[string]string{
	"bf16": "bfloat16", "bfloat16": "bfloat16", "torch.bfloat16": "bfloat16", "fp16": "float16", "float16": "float16",
	"half": "float16", "torch.float16": "float16",
	"fp32": "float32", "float32": "float32", "float": "float32", "torch.float32": "float32", "fp8": "fp8",
	"float8_e4m3fn": "fp8", "torch.float8_e4m3fn": "fp8",
}
