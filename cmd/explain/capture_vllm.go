package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/load"
)

// Modes of explain capture vllm.
const (
	modeQuick = "quick"
	modeFull  = "full"
	modeMoE   = "moe"
	modeDeep  = "deep"
	modeLight = "light"
)

var captureModes = []string{modeQuick, modeFull, modeMoE, modeDeep, modeLight}

func newCaptureServer(e *env) *cobra.Command {
	var s serverFlags
	cmd := &cobra.Command{
		Use:   "vllm --model MODEL [flags] [-- ARGUMENT…]",
		Short: "Start a vLLM or SGLang server, send load, record it and report",
		Long: `vllm starts an inference server under nsys, waits until it is healthy, warms it up, and records
exactly while the measured requests are sent. Then it stops the server, exports and analyses the
trace. The server's log, its /metrics before and after, and what the load measured are evidence for
the report. Arguments after -- go to the server.

Modes:

  quick    the trace (default)
  full     also Nsight Compute on the kernels with most time: the server is started again, without
           CUDA graphs. First inside the NVTX ranges of the steps; where no kernel is measured there,
           again everywhere
  moe      also expert tracking: the server is started again with profilemate's sitecustomize.py
           (--profiler-path, or the one on PYTHONPATH)
  deep     full, with the use of GPU memory
  light    as little overhead as possible: no OS calls, CUDA graphs as a whole

MODEL, DTYPE and VLLM_VENV (a virtual environment that holds the engine) are taken from the
environment where no flag says otherwise; the API key of a server from VLLM_API_KEY, or from
--api-key among its arguments.`,
		Example: `  explain capture vllm --model meta-llama/Llama-2-7b-hf --mode quick
  explain capture vllm --model Qwen/Qwen2.5-0.5B-Instruct --load-mode decode --concurrency 16 --num-requests 200 --out run/
  explain capture vllm --model MODEL --mode full --out run/ -- --tensor-parallel-size 2
  explain capture vllm --engine sglang --model MODEL --client 'python my_load.py'
  explain capture vllm --model MODEL --dry-run`,
		Args: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); len(args) > 0 && dash != 0 {
				return usagef("what is %q? Arguments for the server stand after --, and everything else is a flag",
					args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return s.run(cmd, e, args) },
	}
	s.register(cmd, "artifacts/RUN_ID")
	return cmd
}

// serverFlags are the flags of explain capture vllm.
type serverFlags struct {
	captureFlags
	model, dtype, engine string
	mode                 string
	port                 int
	extra                []string
	venv                 string

	requests, concurrency, warmups int
	rate                           float64
	loadMode                       string
	dataset                        string
	seed                           uint64
	key                            string

	withNCU  bool
	ncu      string
	ncuTop   int
	ncuSet   string
	ncuNVTX  string
	profiler string

	ncuVersion string
}

func (s *serverFlags) register(cmd *cobra.Command, out string) {
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&s.model, "model", "", "serve this `MODEL` (default $MODEL)")
	fl.StringVar(&s.mode, "mode", modeQuick, "how much to measure, a `MODE`: "+strings.Join(captureModes, ", "))
	fl.StringVar(&s.engine, "engine", capture.VLLM, "start this `ENGINE`: vllm or sglang")
	fl.StringVar(&s.dtype, "dtype", "", "data `TYPE` of the weights (default $DTYPE, else as the engine decides)")
	fl.IntVar(&s.port, "port", 0, "`PORT` of the server (default: a free one)")
	fl.IntVar(&s.requests, "num-requests", 50, "record `N` requests")
	fl.IntVar(&s.concurrency, "concurrency", 8, "keep `N` requests in flight")
	fl.Float64Var(&s.rate, "rate", 0, "send `R` requests per second at random times, instead of --concurrency")
	fl.StringVar(&s.loadMode, "load-mode", "",
		"what is asked: `MODE` is prefill (long prompts), decode (long answers) or mixed (default mixed)")
	fl.StringVar(&s.dataset, "dataset", "", "send the prompts in this `FILE`, see explain load")
	fl.Uint64Var(&s.seed, "seed", 1, "`NUMBER` from which arrival times and random prompts are drawn")
	fl.IntVar(&s.warmups, "warmup-requests", 10, "send `N` requests before the recording")
	fl.BoolVar(&s.withNCU, "with-ncu", false, "measure kernels with Nsight Compute in any mode")
	fl.StringVar(&s.ncu, "ncu", "", "run this `PROGRAM` (default: $NCU, else ncu)")
	fl.IntVar(&s.ncuTop, "ncu-kernels", 5, "measure the `N` kernels with most time")
	fl.StringVar(&s.ncuSet, "ncu-set", "full", "measure this `SET` of Nsight Compute's sections")
	fl.StringVar(&s.ncuNVTX, "nvtx-include", "",
		"measure inside these NVTX `RANGES` only, as ncu takes them (default: the steps of the server; none: everywhere)")
	fl.StringVar(&s.profiler, "profiler-path", "",
		"track experts with the sitecustomize.py in this `DIR` of profilemate")
	s.captureFlags.register(cmd, out)
	_ = cmd.MarkFlagDirname("profiler-path")
	completeFlag(cmd, "mode", captureModes)
	completeFlag(cmd, "engine", []string{capture.VLLM, capture.SGLang})
}

func (s *serverFlags) measures() bool {
	return s.withNCU || s.mode == modeFull || s.mode == modeDeep
}

func (s *serverFlags) run(cmd *cobra.Command, e *env, args []string) error {
	s.extra, s.venv, s.key = args, e.Getenv("VLLM_VENV"), e.Getenv("VLLM_API_KEY")
	if key := argument(args, "--api-key"); key != "" {
		s.key = key
	}
	s.model, s.dtype = cmp.Or(s.model, e.Getenv("MODEL")), cmp.Or(s.dtype, e.Getenv("DTYPE"))
	s.ncu = cmp.Or(s.ncu, e.Getenv("NCU"), "ncu")
	if err := s.check(); err != nil {
		return err
	}
	s.applyMode(cmd)
	if s.mode == modeMoE || s.profiler != "" { // before a GPU has worked for it
		var err error
		if s.profiler, err = capture.Profiler(s.profiler, e.Getenv("PYTHONPATH")); err != nil {
			return usageError{Err: err}
		}
	}
	r, err := s.prepare(cmd, e)
	if err != nil {
		return err
	}
	r.server = s
	if s.measures() && !s.dryRun {
		if s.ncu, err = capture.FindNCU(s.ncu); err != nil {
			return err
		}
		s.ncuVersion = capture.NCUVersion(cmd.Context(), s.ncu)
	}
	if s.mode == modeMoE && s.profiler == "" {
		r.say("Note: no experts are tracked: name the folder of profilemate, which holds sitecustomize.py, with --profiler-path or in PYTHONPATH")
	}
	return r.all([][]string{nil})
}

// check finds wrong usage before any work.
func (s *serverFlags) check() error {
	switch {
	case s.model == "":
		return usagef("name the model: --model MODEL, or the variable MODEL")
	case !slices.Contains(captureModes, s.mode):
		return usagef("--mode %s is unknown; it is one of %s", s.mode, strings.Join(captureModes, ", "))
	case s.engine != capture.VLLM && s.engine != capture.SGLang:
		return usagef("--engine %s is unknown; it is vllm or sglang", s.engine)
	case s.port < 0 || s.port > 65535:
		return usagef("--port is between 1 and 65535, got %d", s.port)
	case s.requests < 1 || s.warmups < 0 || s.concurrency < 1:
		return usagef("--num-requests and --concurrency are at least 1, --warmup-requests at least 0")
	case !(s.rate >= 0):
		return usagef("--rate cannot be negative")
	case s.loadMode != "" && s.dataset != "":
		return usagef("--load-mode and --dataset exclude each other: each says what the requests are")
	case s.loadMode != "" && !slices.Contains([]string{"prefill", "decode", "mixed"}, s.loadMode):
		return usagef("--load-mode %s is unknown; it is prefill, decode or mixed", s.loadMode)
	case s.measures() && s.noReport:
		return usagef("Nsight Compute measures the kernels that the report finds: leave out --no-report, or measure nothing with it")
	case s.ncuTop < 1 || s.ncuTop > 50:
		return usagef("--ncu-kernels is between 1 and 50, got %d", s.ncuTop)
	}
	return nil
}

// applyMode sets what a mode means for flags that were not given.
func (s *serverFlags) applyMode(cmd *cobra.Command) {
	switch s.mode {
	case modeLight:
		if !cmd.Flags().Changed("trace") {
			s.trace = "cuda,nvtx"
		}
		if !cmd.Flags().Changed("graph-trace") {
			s.graphs = "graph"
		}
	case modeDeep:
		s.memory = true
	}
}

func (s *serverFlags) server() *capture.Server {
	return &capture.Server{Engine: s.engine, Model: s.model, DType: s.dtype, Port: s.port, Extra: s.extra, Venv: s.venv}
}

// plan shows the runs of the server after the recording, on free ports. Which kernels are measured is known only then.
func (s *serverFlags) plan(dir string) (lines []string) {
	if s.profiler != "" {
		lines = append(lines,
			"# with PYTHONPATH="+s.profiler+" VLLM_ENABLE_PROFILING=1 in the environment, to track experts:",
			capture.Shell(s.server().Command(8002, false)))
	}
	if s.measures() {
		k := capture.Planned(s.ncuTop)
		k.NCU, k.Set, k.NVTX = s.ncu, s.ncuSet, s.ncuNVTX
		lines = append(lines,
			fmt.Sprintf("# measure the %d kernels with most time, in the NVTX ranges of the steps where there are some:", s.ncuTop),
			capture.Shell(append(k.Command(filepath.Join(dir, "ncu", "raw.csv")), s.server().Command(8001, true)...)))
	}
	return lines
}

// evidence are the files beside the trace that are evidence for its report, where the server has what they hold.
func (s *serverFlags) evidence() []string {
	names := []string{"logs/server.log", "evidence/metrics_after.prom", "evidence/metrics_before.prom"}
	if s.client == "" {
		names = append(names, "evidence/load.json")
	}
	if s.profiler != "" {
		names = append(names, "evidence/session")
	}
	if s.measures() {
		names = append(names, "ncu/raw.csv")
	}
	return names
}

// record is the whole of one capture of a server.
func (s *serverFlags) record(r *recording, run *capture.Run, job *capture.Job) (*analyze.Result, error) {
	server, send := s.server(), s.sender(r, run)
	if err := run.Serve(r.soft, r.hard, job, server, send); err != nil {
		return nil, err
	}
	r.measureOverhead(run, job)
	if s.profiler != "" && !run.Interrupted {
		if err := run.Track(r.soft, r.hard, job, server, s.profiler, send); err != nil {
			return nil, err
		}
	}
	if r.noReport {
		return nil, nil
	}
	if s.measures() && !run.Interrupted {
		if err := s.kernels(r, run, job, send); err != nil {
			return nil, err
		}
	}
	return r.report(run)
}

// markerPrefix is the constant beginning of the name of a unit, where capital N and M stand for numbers.
var markerPrefix = regexp.MustCompile(`^([a-z_]{3,}|[A-Z][A-Za-z]*[a-z]|[A-Z]{3,})`)

// kernels measures the kernels with most time.
func (s *serverFlags) kernels(r *recording, run *capture.Run, job *capture.Job, send capture.Sender) error {
	r.say("Finding the kernels with most time")
	res, err := r.analyse(r.hard, run)
	if err != nil {
		return err
	}
	k, ok := capture.ToMeasure(capture.Targets(res.Report), s.ncuTop)
	if !ok {
		return errors.New("the trace holds no kernels for Nsight Compute to measure: did the server run on the GPU?")
	}
	k.NCU, k.Set, k.NVTX = s.ncu, s.ncuSet, s.ncuNVTX
	switch u := res.Report.Unit; {
	case k.NVTX == "none":
		k.NVTX = ""
	case k.NVTX == "" && u.Kind == "nvtx":
		if prefix := markerPrefix.FindString(u.Name); prefix != "" {
			k.NVTX = "regex:" + prefix + ".*/"
		}
	}
	return run.MeasureKernels(r.soft, r.hard, job, s.server(), k, send)
}

// facts adds what is known of the server and the load.
func (s *serverFlags) facts(f *capture.Facts) {
	f.Server, f.NCU = s.server(), s.ncuVersion
	loadMode := s.loadMode
	if loadMode == "" && s.dataset == "" {
		loadMode = load.DefaultMode
	}
	f.Config = append(f.Config, yaml.MapSlice{
		{Key: "engine", Value: s.engine},
		{Key: "model", Value: capture.RedactText(s.model)},
		{Key: "dtype", Value: s.dtype},
		{Key: "mode", Value: s.mode},
		{Key: "port", Value: s.port},
		{Key: "server_arguments", Value: shell(s.extra)},
		{Key: "ncu", Value: s.measures()},
		{Key: "ncu_kernels", Value: s.ncuTop},
		{Key: "ncu_set", Value: s.ncuSet},
		{Key: "nvtx_include", Value: s.ncuNVTX},
		{Key: "expert_tracking", Value: s.profiler != ""},
	}...)
	if len(s.window.Client) > 0 {
		return
	}
	dataset := ""
	if s.dataset != "" {
		dataset = filepath.Base(s.dataset)
	}
	f.Load = yaml.MapSlice{
		{Key: "requests", Value: s.requests},
		{Key: "concurrency", Value: s.concurrency},
		{Key: "rate", Value: s.rate},
		{Key: "mode", Value: loadMode},
		{Key: "dataset", Value: dataset},
		{Key: "warmup_requests", Value: s.warmups},
		{Key: "seed", Value: s.seed},
	}
}
