package record

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/capturesession"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
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
  explain capture vllm --model Qwen/Qwen2.5-0.5B-Instruct --concurrency 16 --out run/
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
	server  capturesession.Server
	load    requestFlags
	withNCU bool
}

func (f *serverFlags) register(cmd *cobra.Command, out string) {
	fl, s := cmd.Flags(), &f.server
	fl.StringVar(&s.Model, "model", "", "serve this `MODEL` (default $MODEL)")
	s.Mode, s.Engine = modeQuick, capture.VLLM
	cmdenv.Choice(cmd, &s.Mode, "mode", "how much to measure, a `MODE`", []string{modeQuick, modeFull, modeMoE, modeDeep, modeLight})
	cmdenv.Choice(cmd, &s.Engine, "engine", "start this `ENGINE`", []string{capture.VLLM, capture.SGLang})
	fl.StringVar(&s.DType, "dtype", "", "data `TYPE` of the weights (default $DTYPE, else as the engine decides)")
	fl.IntVar(&s.Port, "port", 0, "`PORT` of the server (default: a free one)")
	f.load.register(cmd)
	fl.BoolVar(&f.withNCU, "with-ncu", false, "measure kernels with Nsight Compute in any mode")
	fl.StringVar(&s.Kernels.NCU, "ncu", "", "run this `PROGRAM` (default: $NCU, else ncu)")
	fl.IntVar(&s.Top, "ncu-kernels", 5, "measure the `N` kernels with most time")
	fl.StringVar(&s.Kernels.Set, "ncu-set", "full", "measure this `SET` of Nsight Compute's sections")
	fl.StringVar(&s.Kernels.NVTX, "nvtx-include", "",
		"measure inside these NVTX `RANGES` only, as ncu takes them (default: the steps of the server; none: everywhere)")
	fl.StringVar(&s.Profiler, "profiler-path", "",
		"track experts with the sitecustomize.py in this `DIR` of profilemate")
	f.captureFlags.register(cmd, out)
	_ = cmd.MarkFlagDirname("profiler-path")
}

func (f *serverFlags) run(cmd *cobra.Command, e *cmdenv.Env, args []string) error {
	s := &f.server
	s.Extra, s.Venv = args, e.Getenv("VLLM_VENV")
	f.load.APIKey = cmp.Or(s.Argument("--api-key"), e.Getenv("VLLM_API_KEY"))
	s.Model, s.DType = cmp.Or(s.Model, e.Getenv("MODEL")), cmp.Or(s.DType, e.Getenv("DTYPE"))
	s.Kernels.NCU = cmp.Or(s.Kernels.NCU, e.Getenv("NCU"), "ncu")
	f.applyMode(cmd)
	err := f.check()
	if err == nil {
		err = f.load.complete(cmd)
	}
	if err != nil {
		return err
	}
	if s.Mode == modeMoE || s.Profiler != "" { // before any GPU time is spent
		if s.Profiler, err = capture.Profiler(s.Profiler, e.Getenv("PYTHONPATH")); err != nil {
			return usage.Error{Err: err}
		}
	}
	s.Load, f.Server = f.load.Options, &s.Server
	r, err := f.prepare(cmd, e)
	if err != nil {
		return err
	}
	if s.Measure && !f.DryRun {
		if s.Kernels.NCU, err = capture.FindNCU(s.Kernels.NCU); err != nil {
			return err
		}
		s.NCUVersion = capture.NCUVersion(cmd.Context(), s.Kernels.NCU)
	}
	if s.Mode == modeMoE && s.Profiler == "" {
		r.Say("Note: no experts are tracked: name the folder of profilemate, which holds sitecustomize.py, with --profiler-path or in PYTHONPATH")
	}
	r.Of = s
	return runCaptures(cmd, r, [][]string{nil})
}

// check returns a usage error for flags that do not fit together, before any work.
func (f *serverFlags) check() error {
	switch s := &f.server; {
	case s.Model == "":
		return usage.Errorf("name the model: --model MODEL, or the variable MODEL")
	case s.Port < 0 || s.Port > 65535:
		return usage.Errorf("--port is between 1 and 65535, got %d", s.Port)
	case s.Measure && f.NoReport:
		return usage.Errorf("Nsight Compute measures the kernels that the report finds: leave out --no-report, or measure nothing with it")
	case s.Top < 1 || s.Top > 50:
		return usage.Errorf("--ncu-kernels is between 1 and 50, got %d", s.Top)
	}
	return nil
}

// applyMode sets the flags that --mode implies and that were not given.
func (f *serverFlags) applyMode(cmd *cobra.Command) {
	mode := f.server.Mode
	f.server.Measure = f.withNCU || mode == modeFull || mode == modeDeep
	f.Trace.Memory = f.Trace.Memory || mode == modeDeep
	if mode == modeLight && !cmd.Flags().Changed("trace") {
		f.Trace.Kinds = "cuda,nvtx"
	}
	if mode == modeLight && !cmd.Flags().Changed("graph-trace") {
		f.Trace.Graphs = "graph"
	}
}
