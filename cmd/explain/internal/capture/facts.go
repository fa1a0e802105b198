package capture

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// Facts is the content of the files about a capture. They contain nothing else: the environment of the process is never
// copied.
type Facts struct {
	*Job
	RunID   string
	Version string // of explain
	When    time.Time
	NCU     string        // version line; empty: not used
	Config  yaml.MapSlice // every option with its resolved value
	Load    yaml.MapSlice // load that was sent; empty: explain sent none
}

// shownVariables are the environment variables that env.json may show.
var shownVariables = []string{
	"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE", "DTYPE", "MODEL",
	"NCCL_ALGO", "NCCL_NVLS_ENABLE", "NCCL_P2P_DISABLE", "NCCL_PROTO", "OMP_NUM_THREADS", "PYTORCH_CUDA_ALLOC_CONF",
	"RUN_ID", "SLURM_ARRAY_TASK_ID", "SLURM_JOB_ID", "SLURM_PROCID", "TORCH_CUDA_ARCH_LIST", "VLLM_ATTENTION_BACKEND",
	"VLLM_NVTX_SCOPES_FOR_PROFILING", "VLLM_USE_V1", "VLLM_WORKER_MULTIPROC_METHOD",
}

// safe matches the values of versions, models, devices and small settings. All others are left out.
var safe = pattern.New(`^[A-Za-z0-9][A-Za-z0-9 ._+:,/()=-]{0,99}$`)

func safeValue(s string) string {
	s = strings.TrimSpace(s)
	if !safe().MatchString(s) || RedactText(s) != s || strings.Contains(s, "://") {
		return ""
	}
	return s
}

// machine is the content of env.json. Unknown values are null.
type machine struct {
	GPU          *string           `json:"gpu"` // llm-perf-opt's four keys come first
	CUDA         *string           `json:"cuda"`
	Torch        *string           `json:"torch"`
	Transformers *string           `json:"transformers"`
	GPUCount     *int              `json:"gpu_count"`
	Driver       *string           `json:"driver"`
	VLLM         *string           `json:"vllm"`
	SGLang       *string           `json:"sglang"`
	Python       *string           `json:"python"`
	Nsys         *string           `json:"nsys"`
	NCU          *string           `json:"ncu"`
	Explain      *string           `json:"explain"`
	OS           *string           `json:"os"`
	Variables    map[string]string `json:"variables"`
}

func known(s string) *string { return report.Stated(safeValue(s)) }

// askLimit bounds each program that is asked about the machine.
const askLimit = 20 * time.Second

// said returns the output of a program; empty if it is not installed, fails or is slow.
func said(ctx context.Context, argv ...string) string {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// packageVersions reads Python's package metadata, without importing the packages.
const packageVersions = `import importlib.metadata as m, json, platform
out = {"python": platform.python_version()}
for name in ("torch", "transformers", "vllm", "sglang"):
    try: out[name] = m.version(name)
    except Exception: pass
print(json.dumps(out))`

var cudaVersion = pattern.New(`CUDA Version:\s*([0-9.]+)`)

func (f *Facts) machine(ctx context.Context, getenv func(string) string) *machine {
	m := &machine{OS: known(runtime.GOOS + "/" + runtime.GOARCH), Explain: known(f.Version), NCU: known(f.NCU),
		Variables: map[string]string{}}
	if f.Nsys != nil {
		m.Nsys = known(f.Nsys.Version)
	}
	gpus := said(ctx, "nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
	if out := strings.TrimSpace(gpus); out != "" {
		lines := strings.Split(out, "\n")
		n := len(lines)
		name, driver, _ := strings.Cut(lines[0], ",")
		m.GPU, m.Driver, m.GPUCount = known(name), known(driver), &n
		if v := cudaVersion().FindStringSubmatch(said(ctx, "nvidia-smi")); v != nil {
			m.CUDA = known(v[1])
		}
	}
	python := "python3"
	if venv := getenv("VLLM_VENV"); venv != "" {
		python = filepath.Join(venv, "bin", "python")
	}
	var packages map[string]string
	if json.Unmarshal([]byte(said(ctx, python, "-c", packageVersions)), &packages) == nil {
		m.Torch, m.Transformers = known(packages["torch"]), known(packages["transformers"])
		m.VLLM, m.SGLang, m.Python = known(packages["vllm"]), known(packages["sglang"]), known(packages["python"])
	}
	for _, name := range shownVariables {
		if v := safeValue(getenv(name)); v != "" {
			m.Variables[name] = v
		}
	}
	return m
}

// NCUVersion returns the version of an ncu; empty if it does not print one.
func NCUVersion(ctx context.Context, path string) string {
	if m := versionText().FindStringSubmatch(said(ctx, path, "--version")); m != nil {
		return m[1]
	}
	return ""
}

// WriteFacts writes metadata.txt, env.json, inputs.yaml, config.yaml and cmd.txt.
func (r *Run) WriteFacts(ctx context.Context, f *Facts) error {
	m, commands := f.machine(ctx, r.getenv), r.book.copies()
	inputs, err := yaml.Marshal(f.inputs())
	if err != nil {
		return err
	}
	config, err := yaml.Marshal(f.Config)
	if err != nil {
		return err
	}
	err = writeJSON(filepath.Join(r.Dir, "env.json"), m, 0o644)
	for name, text := range map[string][]byte{
		"inputs.yaml": inputs, "config.yaml": config, "cmd.txt": f.commands(commands),
		"metadata.txt": f.metadata(m, commands, r),
	} {
		err = cmp.Or(err, os.WriteFile(filepath.Join(r.Dir, name), text, 0o644))
	}
	return DiskFull(r.Dir, err)
}

// inputs returns the workload in the form of llm-perf-opt: the command is the path of the only input.
func (f *Facts) inputs() yaml.MapSlice {
	one := yaml.MapSlice{{Key: "path", Value: Shell(f.Program)}}
	out := yaml.MapSlice{{Key: "count", Value: 1}, {Key: "inputs", Value: []yaml.MapSlice{one}}}
	if len(f.Load) > 0 {
		out = append(out, yaml.MapItem{Key: "load", Value: f.Load})
	}
	return out
}

// commands returns cmd.txt: the program, then each command that was run, in order.
func (f *Facts) commands(run []record) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# The program\n%s\n\n# What was run, in this order; secrets are replaced by %s\n",
		Shell(f.Program), Redacted)
	for _, rec := range run {
		fmt.Fprintf(&b, "%s\n", Shell(rec.Command))
	}
	return b.Bytes()
}

// metadata returns metadata.txt: one "key: value" a line.
func (f *Facts) metadata(m *machine, run []record, r *Run) []byte {
	var b bytes.Buffer
	line := func(key string, value *string) {
		fmt.Fprintf(&b, "%s: %s\n", key, report.ValueOr(value, "unknown"))
	}
	line("run_id", known(f.RunID))
	fmt.Fprintf(&b, "captured: %s\n", f.When.UTC().Format(time.RFC3339))
	line("explain", m.Explain)
	line("nsys", m.Nsys)
	if f.NCU != "" {
		line("ncu", m.NCU)
	}
	line("gpu", m.GPU)
	if m.GPUCount != nil {
		fmt.Fprintf(&b, "gpu_count: %d\n", *m.GPUCount)
	}
	line("driver", m.Driver)
	line("cuda", m.CUDA)
	line("vllm", m.VLLM)
	if f.Server != nil {
		line("engine", known(f.Server.Engine))
		line("model", known(f.Server.Model))
		line("dtype", known(f.Server.DType))
	}
	fmt.Fprintf(&b, "interrupted: %t\n", r.Interrupted)
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", RedactText(n))
	}
	b.WriteString("\n# Commands, with how each ended. trace.*, logs/ and evidence/ hold what the programs wrote, secrets included: do not publish them.\n")
	for _, rec := range run {
		how := "not started"
		switch {
		case rec.Signal != "":
			how = "signal " + rec.Signal
		case rec.ExitCode != nil:
			how = fmt.Sprintf("exit code %d", *rec.ExitCode)
		}
		fmt.Fprintf(&b, "%s (%s, %.1f s): %s\n", rec.Name, how, rec.Seconds, Shell(rec.Command))
	}
	return b.Bytes()
}

// NoteResumed adds to metadata.txt when a capture was resumed, and the notes of that.
func (r *Run) NoteResumed(when time.Time) error {
	f, err := os.OpenFile(filepath.Join(r.Dir, "metadata.txt"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("resumed: %s\n", when.UTC().Format(time.RFC3339))
	for _, n := range r.Notes {
		text += fmt.Sprintf("note: %s\n", RedactText(n))
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func (b *book) copies() []record {
	b.mu.Lock()
	defer b.mu.Unlock()
	return lists.Map(b.records, func(r *record) record { return *r })
}
