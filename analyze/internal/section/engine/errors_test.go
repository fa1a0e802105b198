package engine_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
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

// The real log's engine died at its end.
func TestServerErrorsOfTheRealLog(t *testing.T) {
	r := sharedLog(t, "vllm_0.25.1_a.log")
	sectiontest.Metric(t, r, 1, "serve.errors")
	sectiontest.Metric(t, r, 1, "serve.errors", "class", "engine_dead")
}
