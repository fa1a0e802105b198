package engine_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

// The example's engine runs out of memory: five lines, one of another process in between, all in one second. The server's own
// error a second later says no more than that something failed.
func TestServerErrors(t *testing.T) {
	r := analyseLog(t, exampleLog)
	sectiontest.Metric(t, r, 2, "serve.errors")
	sectiontest.Metric(t, r, 1, "serve.errors", "class", "out_of_memory")
	sectiontest.Metric(t, r, 1, "serve.errors", "class", "other")
	sectiontest.Metric(t, r, 5, "serve.error_lines")
	if len(r.Findings) == 0 || sectiontest.FindingOf(r, "server_errors").Severity != "high" {
		t.Errorf("findings %v", r.Findings)
	}
}

func TestServerErrorsByClass(t *testing.T) {
	for text, class := range map[string]string{
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.":                           "out_of_memory",
		"ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`":     "kv_cache_too_small",
		"RuntimeError: CUDA error: an illegal memory access was encountered":                                "cuda",
		"torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d":                 "communication",
		"vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.":                       "engine_dead",
		"Worker proc VllmWorker-1 died unexpectedly, shutting down executor.":                               "process_died",
		"TimeoutError: RPC call to execute_model timed out.":                                                "timeout",
		"OSError: org/name is not a local folder and is not a valid model identifier listed on huggingface": "model_load",
		"something else": "other",
	} {
		r := logOf(t, "(EngineCore pid=1) ERROR 03-01 10:01:00 [core.py:708] "+text)
		sectiontest.Metric(t, r, 1, "serve.errors", "class", class)
		sectiontest.Metric(t, r, 1, "serve.errors")
	}
}

// A traceback without headers is one error, however many lines it has; what a client sends is none.
func TestServerErrorsTraceback(t *testing.T) {
	r := logOf(t,
		"[2026-08-01 23:40:00] Receive: obj=GenerateReqInput(text='Traceback (most recent call last): torch.OutOfMemoryError: CUDA out of memory')",
		"[2026-08-01 23:40:01 TP0] Scheduler hit an exception: Traceback (most recent call last):",
		`  File "/home/jane/sglang/scheduler.py", line 1, in run`,
		"    self.event_loop()",
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
		"",
		"[2026-08-01 23:40:02] SIGQUIT received. signum=None, frame=None. It usually means one child failed.",
		"[2026-08-01 23:40:03] INFO:     127.0.0.1:1 - \"POST /generate HTTP/1.1\" 200 OK")
	sectiontest.Metric(t, r, 1, "serve.errors")
	sectiontest.Metric(t, r, 1, "serve.errors", "class", "out_of_memory")
	sectiontest.Metric(t, r, 4, "serve.error_lines")
}

// The real logs end with a server that was told to stop: its client sees the engine go, a child ends with signal 15.
func TestServerErrorsOfTheRealLog(t *testing.T) {
	for _, name := range []string{"vllm_0.25.1_a.log", "sglang.log"} {
		r := sharedLog(t, name)
		sectiontest.Metric(t, r, 0, "serve.errors")
		sectiontest.Metric(t, r, 1, "serve.errors_after_stop")
		if hasFinding(r, "server_errors") || hasFinding(r, "never_ready") {
			t.Errorf("%s: findings %v", name, r.Findings)
		}
	}
}

const (
	vllmDead = "(APIServer pid=1) ERROR 08-01 21:34:51 [async_llm.py:704] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue."
	vllmName = "(APIServer pid=1) INFO 08-01 21:00:00 [utils.py:293] vLLM API server version 0.15.0"
	sglName  = "[2026-08-01 23:37:40] server_args=ServerArgs(model_path='x/y', context_length=None)"
)

// What is asked to stop does not fail; without the request, or before it, the same error is one.
func TestAStopIsNoError(t *testing.T) {
	for _, c := range []struct {
		stop, dead string
	}{
		{"(EngineCore pid=2) INFO 08-01 21:34:51 [core.py:1214] [shutdown] EngineCore: trigger received signal=SIGINT", vllmDead},
		{"(APIServer pid=1) INFO 08-01 21:34:51 [launcher.py:110] Shutting down FastAPI HTTP server.", vllmDead},
		{"(APIServer pid=1) INFO:     Shutting down", vllmDead},
		{"[2026-08-02 00:17:43] SIGTERM received. signum=None frame=None. Draining requests and shutting down...",
			"[2026-08-02 00:17:43] Subprocess detokenizer (pid=2) crashed with exit code -9. Triggering SIGQUIT for cleanup..."},
		{"2026-03-01T10:00:05.100000Z  INFO text_generation_launcher: Terminating webserver",
			"2026-03-01T10:00:06.100000Z ERROR text_generation_launcher: Shard 0 crashed"},
	} {
		r := logOf(t, vllmName, c.stop, c.dead)
		sectiontest.Metric(t, r, 0, "serve.errors")
		sectiontest.Metric(t, r, 1, "serve.errors_after_stop")
		if hasFinding(r, "server_errors") {
			t.Errorf("%s: a stop is an error", c.stop)
		}
		for _, lines := range [][]string{{vllmName, c.dead}, {vllmName, c.dead, c.stop}, {c.stop, vllmName, c.dead}} {
			r = logOf(t, lines...)
			sectiontest.Metric(t, r, 1, "serve.errors")
			sectiontest.NoMetric(t, r, "serve.errors_after_stop")
		}
	}
}

// A child that went by SIGTERM or SIGINT was stopped; by any other signal it died.
func TestAnExitCodeSaysWhoStopped(t *testing.T) {
	for code, died := range map[string]bool{"-15.": false, "-2.": false, "-9.": true, "-6.": true, "-11.": true, "1.": true} {
		r := logOf(t, sglName, "[2026-08-02 00:00:01] The server is fired up and ready to roll!",
			"[2026-08-02 00:17:43] Subprocess scheduler (pid=3) crashed with exit code "+code+" Triggering SIGQUIT for cleanup...")
		if got := hasFinding(r, "server_errors"); got != died {
			t.Errorf("exit code %s: died %v", code, got)
		}
	}
}

// A log that begins with a server's start and never says that it serves ends too early; one that serves, one of a
// program that is no server, and one whose error says why do not.
func TestTheServerWasNeverReady(t *testing.T) {
	const (
		loaded = "(EngineCore pid=2) INFO 08-01 21:01:00 [gpu_model_runner.py:1] Model loading took 4.0 GiB and 12.5 seconds"
		ready  = "(APIServer pid=1) INFO:     Application startup complete."
	)
	for _, c := range []struct {
		title string
		lines []string
	}{
		{"The log ends before the server was ready (its last step: loading the model)", []string{vllmName, loaded}},
		{"The log ends before the server was ready (its last step: reading its settings)", []string{sglName}},
		{"The server was stopped before it was ready (the last step in its log: loading the model)",
			[]string{vllmName, loaded, "(APIServer pid=1) INFO:     Shutting down"}},
		{"", []string{vllmName, loaded, ready}},
		{"", []string{vllmName, loaded, "(APIServer pid=1) INFO 08-01 21:02:00 [api_server.py:1] Starting vLLM API server 0 on http://0.0.0.0:8000"}},
		{"", []string{"INFO 08-01 21:00:00 [llm_engine.py:1] Initializing a V1 LLM engine (v0.15.0) with config: model='x/y'", loaded}},
		{"", []string{vllmName, loaded, "(EngineCore pid=2) ERROR 08-01 21:01:01 [core.py:708] torch.OutOfMemoryError: CUDA out of memory."}},
		{"", []string{sglName, "[2026-08-02 00:00:01] The server is fired up and ready to roll!"}},
	} {
		f := sectiontest.FindingOf(logOf(t, c.lines...), "never_ready")
		switch {
		case c.title == "" && f != nil:
			t.Errorf("%s: %s", c.lines[len(c.lines)-1], f.Title)
		case c.title != "" && (f == nil || f.Title != c.title || f.Severity != report.High):
			t.Errorf("want %q, got %+v", c.title, f)
		}
	}
}
