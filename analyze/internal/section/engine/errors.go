package engine

import (
	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/serverlog"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var Errors = kit.Section{
	ID: "errors", Title: "Errors of the server", Evidence: []file.Kind{file.ServerLog},
	Derivation: "Records at level error or critical, and tracebacks, by what they say. The records of one " +
		"process that follow each other, or were written in the same second, are one error: a traceback is one, " +
		"however many lines it has. Errors after the server was told to stop (SIGTERM, SIGINT, a drain) are counted " +
		"apart: its parts end one after another, and log that. Their text is not shown: it holds paths " +
		"and what clients sent.",
	Findings: []kit.FindingDef{
		{ID: "server_errors", Title: "The log holds errors"},
		{ID: "never_ready", Title: "The log ends before the server was ready", Failure: true},
	},
	Metrics: []report.MetricDef{
		kit.NoisyCount("serve.errors", report.Lower, report.Leave,
			"errors in the log, by class: out_of_memory, kv_cache_too_small, cuda, communication, engine_dead, "+
				"process_died, timeout, model_load, other").By("", "class"),
		kit.NoisyCount("serve.error_lines", report.Lower, report.Leave, "lines of the log that belong to errors"),
		kit.NoisyCount("serve.errors_after_stop", report.None, report.Leave,
			"errors after the server was told to stop, which are in no class"),
	},
	Tables: []report.Table{
		{ID: "server_errors", Title: "Errors by class", File: "server_errors.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("class", "Class"),
			kit.CountCol("count", "Errors"),
		}},
	},
	Run: serverErrors,
}

// errorFindings explain the classes of errors, in the order of the classes.
var errorFindings = [serverlog.Classes]struct {
	failure       bool
	title, advice string
}{
	{true, "The server ran out of GPU memory",
		"Leave more memory free (vLLM: a smaller --gpu-memory-utilization; SGLang: a smaller --mem-fraction-static), let fewer tokens run at once (vLLM: --max-num-batched-tokens, --max-num-seqs; SGLang: --chunked-prefill-size, --max-running-requests), or use more GPUs. Check whether another process uses the GPU."},
	{true, "The KV cache does not fit the longest request",
		"Lower the limit on the length of a request" + kit.SetRequestLength + ", give the server more memory" + kit.SetKVMemory + ", or use a smaller type for the KV cache (--kv-cache-dtype fp8)."},
	{true, "CUDA reported errors",
		"Look at the first of them in the log: later ones follow from it. CUDA_LAUNCH_BLOCKING=1 names the call."},
	{true, "Communication between GPUs failed", "Look at the first of them in the log; NCCL_DEBUG=INFO says more."},
	{true, "The engine died",
		"Look in the log for what came before it: this error only says that the engine is gone. Whatever the log says after it is not about serving."},
	{true, "A process of the server died",
		"Look for what came before it: no line of the log asks the server to stop. An exit code of -9 is mostly the system, which was out of memory."},
	{false, "Something timed out",
		"Look at what the log says before it: a long compilation or a rank that hangs are usual causes."},
	{true, "The model could not be loaded as asked", "Check the name of the model and that its files are complete."},
	{false, "The log holds errors", "Look for lines at level ERROR in it."},
}

func serverErrors(in *kit.Input, out *kit.Output) {
	e := &in.Evidence.Log.Events
	out.FromEvidence(file.ServerLog, int(e.Lines), "ERROR", "CRITICAL", "Traceback")
	all := lists.Total(e.Count[:])
	out.Int("serve.errors", nil, all).N = all
	out.Int("serve.error_lines", nil, e.Lines)
	if e.AfterStop > 0 {
		out.Int("serve.errors_after_stop", nil, e.AfterStop).N = e.AfterStop
		out.Note("Errors after the server was told to stop are in no class and no finding.")
	}
	t := out.Table("server_errors")
	for c, n := range e.Count {
		if n == 0 {
			continue
		}
		l := kit.Labels("class", serverlog.ClassNames[c])
		out.Int("serve.errors", l, n).N = n
		t.Row(kit.Text("class", serverlog.ClassNames[c]), kit.Int("count", n))
		f := &errorFindings[c]
		out.FindAs("server_errors", f.title, []report.MetricRef{{ID: "serve.errors", Labels: l}}, f.advice).Fails(f.failure)
	}
	t.Add()
	starts := in.Evidence.Log.Starts
	last := starts[len(starts)-1]
	switch ends := last.Ends(); {
	case ends == "" || all > 0: // what broke is a finding already
	case last.Stopped:
		out.FindAs("never_ready", "The server was stopped before it was ready (the last step in its log: "+ends+")",
			kit.Refs("serve.errors"),
			"It was stopped before it had time to start: loading, compiling and capturing graphs can take many minutes. Wait "+
				"for /health.")
	default:
		out.FindAs("never_ready", "The log ends before the server was ready (its last step: "+ends+")",
			kit.Refs("serve.errors"),
			"Nothing in it says why: the log was copied too early, or the process was killed from outside (kubectl describe pod and dmesg name the killer, mostly a lack of memory).")
	}
}
