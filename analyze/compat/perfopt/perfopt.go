// Package perfopt reads the folder that a run of llm-perf-opt writes: timings and dimensions, the environment, the
// configuration, tables of operators and kernels, and the list of profiled regions. Formats: CodeGandee/llm-perf-opt,
// src/llm_perf_opt/runners and profiling.
package perfopt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// Kind is what the report calls this evidence: metrics.json, env.json, inputs.yaml, ….
const Kind file.Kind = "llm-perf-opt"

// Data is the content of a run of llm-perf-opt.
type Data struct {
	Run       *Run   // of metrics.json, or of stakeholder_summary.md if that is missing
	Packages  string // of env.json, with their versions: torch 2.6.0, transformers 4.46.3
	GPU       string // as the device names itself; empty if not stated
	CUDA      string // version that PyTorch was built for
	Model     string // of config.yaml
	DType     string // bfloat16, float16, float32, …
	Context   int64  // tokens at which config.yaml fixes the context of decode; 0: it does not
	Inputs    int64  // images or commands of inputs.yaml
	Operators []Operator
	Kernels   []Kernel
	Regions   []Region

	contextMode string // of the first config.yaml that states it: auto, fixed or max
	runs        int    // files that state timings
	summary     *Run
	damaged     []string
}

// form is one kind of file.
type form struct {
	name string
	is   func(head []byte) bool
	read func(d *Data, in *file.Input, b []byte)
}

// forms in the order in which a file is compared with them. A report that only repeats other files is recognised, and
// nothing is taken from it.
var forms = []form{
	{"metrics.json", keyed(jsonKeys, func(k keys) bool {
		return k["aggregates"] && (k["mfu_model_level"] || k["mfu_per_stage"] || k["model_dims"] || k["peak_tflops"])
	}), (*Data).readMetrics},
	{"env.json", keyed(jsonKeys, func(k keys) bool {
		return k["gpu"] && (k["cuda"] || k["torch"]) && len(k) <= 16
	}), (*Data).readEnv},
	{"ncu/regions/report.json", keyed(jsonKeys, func(k keys) bool { return k["regions"] && k["scope"] }),
		(*Data).readRegions},
	{"inputs.yaml", keyed(topKeys, func(k keys) bool { return k["count"] && (k["inputs"] || k["images"]) }),
		(*Data).readInputs},
	{"config.yaml", keyed(topKeys, func(k keys) bool {
		return k["model"] && (k["infer"] || k["pipeline"] || k["dataset"] && k["device"]) ||
			k["runner"] && k["stage1_runner"]
	}), (*Data).readConfig},
	{"operators.md", columns("op_name", "total_time_ms", "calls"), (*Data).readOperators},
	{"kernels.md", columns("kernel_name", "total_ms", "calls"), (*Data).readKernels},
	{"stakeholder_summary.md", titled("Stakeholder Summary"), (*Data).readSummary},
	{"report.md", titled("Deep Profiling Report", "Stage 1 Profiling Report", "Stage 2 Profiling Report",
		"Nsight Compute – NVTX Regions", "Run Assumptions"), (*Data).readNothing},
}

// keys of an object, at its top level.
type keys map[string]bool

// keyed recognises an object by its keys.
func keyed(of func(head []byte) keys, is func(keys) bool) func([]byte) bool {
	return func(head []byte) bool { return is(of(head)) }
}

// titled recognises a page by its first heading.
func titled(titles ...string) func([]byte) bool {
	return func(head []byte) bool {
		line, _, _ := bytes.Cut(bytes.TrimLeft(head, " \t\r\n"), []byte("\n"))
		text, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("# "))
		return slices.ContainsFunc(titles, func(t string) bool { return ok && string(text) == t })
	}
}

func formOf(head []byte) *form {
	return lists.Find(forms, func(f *form) bool { return f.is(head) })
}

// Is reports whether a file that starts with head is of this kind, whatever its name.
func Is(_ string, head []byte) bool { return formOf(head) != nil }

// maxBytes bounds a file: the longest real one, a list of inputs, has a few hundred kilobytes.
const maxBytes = 8 << 20

// Read reads the files, in their order. Anomalies are counted in their tallies and listed in Warnings; an error is
// about a file that cannot be read at all.
func Read(ctx context.Context, files []file.Input) (*Data, error) {
	d := &Data{}
	if err := file.Each(ctx, files, d.read); err != nil {
		return nil, err
	}
	d.Run = cmp.Or(d.Run, d.summary)
	return d, nil
}

func (d *Data) read(in *file.Input, r io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil || len(b) > maxBytes {
		d.damaged = append(d.damaged, in.Name)
		b = b[:min(len(b), maxBytes)]
	}
	f := formOf(b[:min(len(b), file.HeadBytes)])
	if f == nil { // it changed while it was read
		in.Tally.Records, in.Tally.Unknown = 1, 1
		return nil
	}
	in.Tally.Format = f.name
	f.read(d, in, b)
	return nil
}

// readNothing is for pages that repeat other files.
func (d *Data) readNothing(in *file.Input, b []byte) {
	in.Tally.Records = int64(bytes.Count(b, []byte("\n")))
	in.Tally.Known = in.Tally.Records
}

// bad counts a file whose form is known but that cannot be read.
func (d *Data) bad(in *file.Input) {
	in.Tally.Records, in.Tally.Unknown = in.Tally.Records+1, in.Tally.Unknown+1
	d.damaged = append(d.damaged, in.Name)
}

// Warnings are the facts that limit trust in the numbers.
func (d *Data) Warnings() []report.Warning {
	var list report.Warnings
	list.If(len(d.damaged) > 0, "perfopt_damaged",
		"The file is damaged or too long, and was left out or read in part: %s.", file.Some(d.damaged, 3))
	list.If(d.runs > 1, "perfopt_runs",
		"The evidence holds the timings of %d runs of llm-perf-opt; the first one is shown. Name the folder of "+
			"one run.", d.runs)
	return list
}

// Environment fills in the fields of e that are empty and that the files state.
func (d *Data) Environment(e *report.Environment) {
	e.Model = cmp.Or(e.Model, report.Stated(d.Model))
	e.DType = cmp.Or(e.DType, report.Stated(d.DType))
	e.Packages = cmp.Or(e.Packages, report.Stated(d.Packages))
	if len(e.GPUs) == 0 && d.GPU != "" {
		e.GPUs = append(e.GPUs, report.GPU{Device: 0, Name: &d.GPU})
		e.CUDA = cmp.Or(e.CUDA, report.Stated(d.CUDA))
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

func (d *Data) readEnv(in *file.Input, b []byte) {
	var m map[string]json.RawMessage
	if json.Unmarshal(b, &m) != nil {
		d.bad(in)
		return
	}
	in.Tally.Records++
	text := func(key string, form *regexp.Regexp) string {
		var s string
		if raw, ok := m[key]; !ok || json.Unmarshal(raw, &s) != nil || !form.MatchString(s) {
			return ""
		}
		return s
	}
	gpu := text("gpu", gpuName())
	cuda := text("cuda", version())
	var packages []string
	for _, key := range []string{"torch", "transformers"} {
		if v := text(key, version()); v != "" {
			packages = append(packages, key+" "+v)
		}
	}
	in.Tally.Took(gpu != "" || cuda != "" || len(packages) > 0)
	d.GPU = cmp.Or(d.GPU, gpu)
	if d.Packages == "" && d.CUDA == "" {
		d.Packages, d.CUDA = strings.Join(packages, ", "), cuda
	}
}

// topKeys are the keys at the left margin of a YAML mapping of which only the start was read.
func topKeys(head []byte) keys {
	found := keys{}
	for _, line := range bytes.Split(head, []byte("\n")) {
		if m := topKey().FindSubmatch(line); m != nil {
			found[string(m[1])] = true
		}
	}
	return found
}

var topKey = pattern.New(`^([A-Za-z_][A-Za-z0-9_]{0,40}):(?:\s|$)`)

var inputCount = pattern.New(`^count: ([0-9]{1,9})\s*$`)

// readInputs takes only the number of inputs: the rest are paths and command lines.
func (d *Data) readInputs(in *file.Input, b []byte) {
	for _, line := range bytes.Split(bytes.TrimRight(b, "\n"), []byte("\n")) {
		in.Tally.Records++
		m := inputCount().FindSubmatch(line)
		if in.Tally.Took(m != nil); m != nil && d.Inputs == 0 {
			d.Inputs, _ = strconv.ParseInt(string(m[1]), 10, 64) // of nine digits at most
		}
	}
}

// Bounds of a configuration, so that no file can make the parser hang: real ones have 3 kB and nest six deep.
const (
	maxConfig = 256 << 10
	maxDepth  = 32
)

// shallow reports whether a YAML text nests little enough to be parsed, and has no anchors, with which a few lines
// could expand without limit.
func shallow(b []byte) bool {
	if len(b) > maxConfig {
		return false
	}
	depth := 0
	for _, c := range b {
		switch c {
		case '[', '{':
			if depth++; depth > maxDepth {
				return false
			}
		case ']', '}':
			depth = max(depth-1, 0)
		}
	}
	for _, line := range bytes.Split(b, []byte("\n")) {
		indent := len(line) - len(bytes.TrimLeft(line, " "))
		rest := line[indent:]
		for n := 0; bytes.HasPrefix(rest, []byte("- ")) || bytes.HasPrefix(rest, []byte("? ")); n++ {
			if rest = bytes.TrimLeft(rest[2:], " "); n > 4 {
				return false
			}
		}
		if indent > 4*maxDepth || bytes.Contains(line, []byte(": &")) || bytes.Contains(line, []byte(": *")) ||
			bytes.HasPrefix(rest, []byte("&")) || bytes.HasPrefix(rest, []byte("*")) {
			return false
		}
	}
	return true
}

func (d *Data) readConfig(in *file.Input, b []byte) {
	var top map[string]any
	if !shallow(b) || yaml.Unmarshal(b, &top) != nil {
		d.bad(in)
		return
	}
	in.Tally.Records++
	understood := false
	model, _ := top["model"].(map[string]any)
	text := func(key string) string {
		s, _ := model[key].(string)
		return s
	}
	if name := modelName(text("name"), text("path")); name != "" && d.Model == "" {
		d.Model, understood = name, true
	}
	if t := dtypes[strings.ToLower(text("dtype"))]; t != "" && d.DType == "" {
		d.DType, understood = t, true
	}
	if infer, ok := top["infer"].(map[string]any); ok && d.contextMode == "" {
		switch mode, _ := infer["context_len_mode"].(string); mode {
		case "auto", "fixed", "max":
			d.contextMode, understood = mode, true
		}
		if n, ok := infer["context_len_fixed"].(uint64); ok && n < 1<<30 && d.contextMode == "fixed" {
			d.Context = int64(n)
		}
	}
	in.Tally.Took(understood)
}

var hubFolder = pattern.New(`/models--([A-Za-z0-9._-]{1,60})--([A-Za-z0-9._-]{1,90})/`)

// modelName is the name of the model in the configuration, or the last part of its path: never a user's folder.
func modelName(name, where string) string {
	if modelID().MatchString(name) {
		return name
	}
	if m := hubFolder().FindStringSubmatch(where); m != nil {
		return m[1] + "/" + m[2]
	}
	if base := path.Base(strings.TrimRight(where, "/")); where != "" && modelID().MatchString(base) && base != "." {
		return base
	}
	return ""
}
