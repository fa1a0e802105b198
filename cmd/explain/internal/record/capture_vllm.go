package record

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/capturesession"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/load"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
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

func newCaptureServer(e *cmdenv.Env) *cobra.Command {
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
           CUDA graphs. First inside the NVTX ranges of the steps; if no kernel is measured there,
           again everywhere
  moe      also expert tracking: the server is started again with profilemate's sitecustomize.py
           (--profiler-path, or the one on PYTHONPATH)
  deep     full, with the use of GPU memory
  light    as little overhead as possible: no OS calls, CUDA graphs as a whole

MODEL, DTYPE and VLLM_VENV (a virtual environment that holds the engine) are taken from the
environment if no flag says otherwise; the API key of a server from VLLM_API_KEY, or from
--api-key among its arguments.`,
		Example: `  explain capture vllm --model meta-llama/Llama-2-7b-hf --mode quick
  explain capture vllm --model Qwen/Qwen2.5-0.5B-Instruct --load-mode decode --concurrency 16 --num-requests 200 --out run/
  explain capture vllm --model MODEL --mode full --out run/ -- --tensor-parallel-size 2
  explain capture vllm --engine sglang --model MODEL --client 'python my_load.py'
  explain capture vllm --model MODEL --dry-run`,
		Args: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); len(args) > 0 && dash != 0 {
				return usage.Errorf("unexpected argument %q: arguments for the server go after --, everything else is a flag",
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
	capturesession.Server
	withNCU bool
}

func (s *serverFlags) register(cmd *cobra.Command, out string) {
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&s.Model, "model", "", "serve this `MODEL` (default $MODEL)")
	fl.StringVar(&s.Mode, "mode", modeQuick, "how much to measure, a `MODE`: "+strings.Join(captureModes, ", "))
	fl.StringVar(&s.Engine, "engine", capture.VLLM, "start this `ENGINE`: vllm or sglang")
	fl.StringVar(&s.DType, "dtype", "", "data `TYPE` of the weights (default $DTYPE, else as the engine decides)")
	fl.IntVar(&s.Port, "port", 0, "`PORT` of the server (default: a free one)")
	fl.IntVar(&s.Requests, "num-requests", load.DefaultRequests, "record `N` requests")
	fl.IntVar(&s.Concurrency, "concurrency", load.DefaultConcurrency, "keep `N` requests in flight")
	fl.Float64Var(&s.Rate, "rate", 0, "send `R` requests per second at random times, instead of --concurrency")
	fl.StringVar(&s.LoadMode, "load-mode", "",
		"the requests: `MODE` is prefill (long prompts), decode (long answers) or mixed (default mixed)")
	fl.StringVar(&s.Dataset, "dataset", "", "send the prompts in this `FILE`, see explain load")
	fl.Uint64Var(&s.Seed, "seed", load.DefaultSeed, "`NUMBER` from which arrival times and random prompts are drawn")
	fl.IntVar(&s.Warmups, "warmup-requests", load.DefaultWarmup, "send `N` requests before the recording")
	fl.BoolVar(&s.withNCU, "with-ncu", false, "measure kernels with Nsight Compute in any mode")
	fl.StringVar(&s.NCU, "ncu", "", "run this `PROGRAM` (default: $NCU, else ncu)")
	fl.IntVar(&s.NCUTop, "ncu-kernels", 5, "measure the `N` kernels with most time")
	fl.StringVar(&s.NCUSet, "ncu-set", "full", "measure this `SET` of Nsight Compute's sections")
	fl.StringVar(&s.NCUNVTX, "nvtx-include", "",
		"measure inside these NVTX `RANGES` only, as ncu takes them (default: the steps of the server; none: everywhere)")
	fl.StringVar(&s.Profiler, "profiler-path", "",
		"track experts with the sitecustomize.py in this `DIR` of profilemate")
	s.captureFlags.register(cmd, out)
	_ = cmd.MarkFlagDirname("profiler-path")
	cmdenv.Complete(cmd, "mode", captureModes)
	cmdenv.Complete(cmd, "engine", []string{capture.VLLM, capture.SGLang})
}

func (s *serverFlags) measures() bool {
	return s.withNCU || s.Mode == modeFull || s.Mode == modeDeep
}

func (s *serverFlags) run(cmd *cobra.Command, e *cmdenv.Env, args []string) error {
	s.Extra, s.Venv, s.Key = args, e.Getenv("VLLM_VENV"), e.Getenv("VLLM_API_KEY")
	if key := capturesession.Argument(args, "--api-key"); key != "" {
		s.Key = key
	}
	s.Model, s.DType = cmp.Or(s.Model, e.Getenv("MODEL")), cmp.Or(s.DType, e.Getenv("DTYPE"))
	s.NCU = cmp.Or(s.NCU, e.Getenv("NCU"), "ncu")
	if err := s.check(); err != nil {
		return err
	}
	s.applyMode(cmd)
	if s.Mode == modeMoE || s.Profiler != "" { // before any GPU time is spent
		var err error
		if s.Profiler, err = capture.Profiler(s.Profiler, e.Getenv("PYTHONPATH")); err != nil {
			return usage.Error{Err: err}
		}
	}
	s.Measure = s.measures()
	r, err := s.prepare(cmd, e)
	if err != nil {
		return err
	}
	if s.Measure && !s.DryRun {
		if s.NCU, err = capture.FindNCU(s.NCU); err != nil {
			return err
		}
		s.NCUVersion = capture.NCUVersion(cmd.Context(), s.NCU)
	}
	if s.Mode == modeMoE && s.Profiler == "" {
		r.Say("Note: no experts are tracked: name the folder of profilemate, which holds sitecustomize.py, with --profiler-path or in PYTHONPATH")
	}
	r.Server = &s.Server
	return runCaptures(cmd, r, [][]string{nil})
}

// check returns a usage error for flags that do not fit together, before any work.
func (s *serverFlags) check() error {
	switch {
	case s.Model == "":
		return usage.Errorf("name the model: --model MODEL, or the variable MODEL")
	case !slices.Contains(captureModes, s.Mode):
		return usage.Errorf("--mode %s is unknown; it is one of %s", s.Mode, strings.Join(captureModes, ", "))
	case s.Engine != capture.VLLM && s.Engine != capture.SGLang:
		return usage.Errorf("--engine %s is unknown; it is vllm or sglang", s.Engine)
	case s.Port < 0 || s.Port > 65535:
		return usage.Errorf("--port is between 1 and 65535, got %d", s.Port)
	case s.Requests < 1 || s.Warmups < 0 || s.Concurrency < 1:
		return usage.Errorf("--num-requests and --concurrency are at least 1, --warmup-requests at least 0")
	case !(s.Rate >= 0):
		return usage.Errorf("--rate cannot be negative")
	case s.LoadMode != "" && s.Dataset != "":
		return usage.Errorf("--load-mode and --dataset exclude each other: each says what the requests are")
	case s.LoadMode != "" && !slices.Contains([]string{"prefill", "decode", "mixed"}, s.LoadMode):
		return usage.Errorf("--load-mode %s is unknown; it is prefill, decode or mixed", s.LoadMode)
	case s.measures() && s.NoReport:
		return usage.Errorf("Nsight Compute measures the kernels that the report finds: leave out --no-report, or measure nothing with it")
	case s.NCUTop < 1 || s.NCUTop > 50:
		return usage.Errorf("--ncu-kernels is between 1 and 50, got %d", s.NCUTop)
	}
	return nil
}

// applyMode sets the flags that --mode implies and that were not given.
func (s *serverFlags) applyMode(cmd *cobra.Command) {
	switch s.Mode {
	case modeLight:
		if !cmd.Flags().Changed("trace") {
			s.Trace = "cuda,nvtx"
		}
		if !cmd.Flags().Changed("graph-trace") {
			s.Graphs = "graph"
		}
	case modeDeep:
		s.Memory = true
	}
}
