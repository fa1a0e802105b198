package serverlog

import (
	"testing"
	"time"
)

// Two ranks log three steps; the first rank's count, and the device's time stands on the line after.
func TestTensorRTIterations(t *testing.T) {
	const states = ", timestamp = 2026-08-17 03:22:4"
	d, tally := read(t, []byte("[TRT-LLM] [I] [_torch][RANK 0] iter = 7, global_rank = 0, rank = 0, num_scheduled_requests = 16, kv_cache_util = 0.125, currank_total_requests = 3/40, host_step_time = 12.5ms, prev_device_step_time = Nonems"+states+"4, states = {'num_ctx_requests': 1, 'num_ctx_tokens': 512, 'num_generation_tokens': 15, 'cached_kv_tokens': 2048}\n"+
		"[TRT-LLM] [I] [_torch][RANK 1] iter = 7, global_rank = 1, rank = 1, num_scheduled_requests = 99, host_step_time = 99ms"+states+"4, states = {'num_ctx_requests': 9}\n"+
		"[08/17/2026-03:22:44] [TRT-LLM] [RANK 0] [I] iter = 8, global_rank = 0, rank = 0, currank_total_requests = 3/40, host_step_time = 4ms, prev_device_step_time = 11.25ms"+states+"4, num_scheduled_requests: 16, states = {'num_ctx_requests': 0, 'num_ctx_tokens': 0, 'num_generation_tokens': 16}\n"+
		"[TRT-LLM] [I] iter = 10, global_rank = 0, rank = 0, num_scheduled_requests = 2, kv_cache_util = 0.25, host_step_time = 3ms, prev_device_step_time = 8ms"+states+"6, states = {'num_ctx_requests': 2, 'num_ctx_tokens': 40, 'num_generation_tokens': 0}\n"+
		"[TRT-LLM] [I] iter = 11, global_rank = 0, no time\n"))
	if tally.Understood != 4 || tally.Known != 1 || tally.Format != "TensorRT-LLM" || d.malformed != 1 {
		t.Errorf("tally %+v, malformed %d", *tally, d.malformed)
	}
	type step struct {
		index, ctxTokens, tokens uint32
		ctx, gen                 uint16
		host, device             time.Duration // 0: not known
	}
	want := []step{
		{7, 512, 15, 1, 15, 12500 * time.Microsecond, 11250 * time.Microsecond},
		{8, 0, 16, 0, 16, 4 * time.Millisecond, 0}, // iteration 9 is missing, whose line has the device's time of 8
		{10, 40, 0, 2, 0, 3 * time.Millisecond, 0},
	}
	if d.Iterations.Len() != len(want) {
		t.Fatalf("%d iterations", d.Iterations.Len())
	}
	for i, w := range want {
		it := d.Iterations.At(i)
		device, ok := it.Device()
		if !ok {
			device = 0
		}
		if got := (step{it.Index, it.ContextTokens, it.Tokens, it.Context, it.Generation, it.Elapsed(), device}); got != w {
			t.Errorf("step %d: %+v, want %+v", i, got, w)
		}
	}
	// one sample a second: of iterations 7 and 10
	if len(d.Samples) != 2 || d.Samples[0].Usage != 0.125 || d.Samples[0].Running != 16 || d.Samples[1].Usage != 0.25 {
		t.Errorf("samples %+v", d.Samples)
	}
	if d.Iterations.Clock(2)-d.Iterations.Clock(0) != 2 {
		t.Errorf("clocks %d and %d", d.Iterations.Clock(0), d.Iterations.Clock(2))
	}
}

// The C++ runtime: 249 are active, 239 are scheduled, 612 of 2448 blocks are used.
func TestTensorRTCounts(t *testing.T) {
	d, tally := read(t, []byte(`[TensorRT-LLM][INFO] {"Active Request Count":249,"Context Requests":8,"Generation Requests":231,"Iteration Counter":90,"Max KV cache blocks":2448,"Scheduled Requests":239,"Timestamp":"12-13-2026 14:55:14","Used KV cache blocks":612}`+"\n"+
		`[TensorRT-LLM][INFO] {"Iteration Counter":91`+"\n"+`[TensorRT-LLM][INFO] Engine version 1.0`+"\n"))
	if tally.Understood != 1 || d.malformed != 1 || len(d.Samples) != 1 {
		t.Fatalf("%+v, malformed %d, %d samples", *tally, d.malformed, len(d.Samples))
	}
	if s := d.Samples[0]; s.Running != 239 || s.Waiting != 10 || s.Usage != 0.25 {
		t.Errorf("%+v", s)
	}
}

func TestTensorRTLogsAreRecognised(t *testing.T) {
	for line, want := range map[string]bool{
		"[TRT-LLM] [I] iter = 1, global_rank = 0, host_step_time = 1ms":         true,
		`[TensorRT-LLM][INFO] {"Active Request Count":1,"Iteration Counter":9}`: true,
		"[TRT-LLM] [I] PyTorchConfig(...)":                                      false,
		"iter = 1, loss = 0.5":                                                  false,
	} {
		if got := Is("a.log", []byte(line+"\n")); got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
}

// Fields that lines of statistics have beside the usual ones.
func TestFurtherFields(t *testing.T) {
	d, _ := read(t, []byte("INFO 12-15 18:32:12 [loggers.py:259] Engine 000: Avg prompt throughput: 600.0 tokens/s, Avg generation throughput: 204.3 tokens/s, Running: 4 reqs, Waiting: 6 reqs, Deferred: 2 reqs, GPU KV cache usage: 0.3%, Prefix cache hit rate: 0.0%, MM cache hit rate: 12.5%\n"+
		"[2026-08-02 00:02:22] Decode batch, #running-req: 1, #full token: 181, full token usage: 0.10, #swa token: 181, swa token usage: 0.30, mamba num: 3, mamba usage: 0.20, cuda graph: True, gen throughput (token/s): 0.10, #queue-req: 0\n"))
	if len(d.Samples) != 2 {
		t.Fatalf("%d samples", len(d.Samples))
	}
	if s := d.Samples[0]; s.Deferred != 2 || s.MediaHits != 0.125 || s.Waiting != 6 {
		t.Errorf("%+v", s)
	}
	if s := d.Samples[1]; s.Pools != [len(PoolNames)]float64{0.1, 0.3, 0.2} || s.Usage != 0.3 {
		t.Errorf("%+v", s)
	}
}

// 3 transfers of 2 ms and 1 of 6: 12 ms; of 8 and 4 MiB: 28 MiB.
func TestTransfersAndScheduling(t *testing.T) {
	const at = "INFO 12-15 18:32:12 [metrics.py:100] "
	d, _ := read(t, []byte(at+"KV Transfer metrics: Num successful transfers=3, Avg xfer time (ms)=2.0, P90 xfer time (ms)=2.5, Avg post time (ms)=0.4, P90 post time (ms)=0.6, Avg MB per transfer=8.0, Throughput (MB/s)=4000.0, Avg number of descriptors=64.0\n"+
		at+"KV Transfer metrics: Num successful transfers=1, Avg xfer time (ms)=6, P90 xfer time (ms)=6, Avg MB per transfer=4.0, Throughput (MB/s)=600.0\n"+
		at+"KV Transfer metrics: Num successful transfers=0\n"+at+"KV Transfer metrics: Num successful transfers=2, cut\n"+
		"DEBUG 12-15 18:32:12 [scheduler.py:1] scheduled_new_reqs=1, scheduled_cached_reqs=7, num_batched_tokens=519, max_num_batched_tokens=2076\n"+
		"DEBUG 12-15 18:32:12 [scheduler.py:1] scheduled_new_reqs: 0, max_num_batched_tokens: 2076, num_batched_tokens: 8\n"+
		"DEBUG 12-15 18:32:12 [scheduler.py:1] scheduled_new_reqs=1, max_num_batched_tokens=0, num_batched_tokens=8\n"))
	if got, want := d.Transfers, (Transfers{Lines: 3, Count: 4, Seconds: 0.012, Bytes: 28 << 20}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if len(d.Batches) != 2 || d.Batches[0] != (Batch{519, 2076}) || d.Batches[1] != (Batch{8, 2076}) || d.malformed != 2 {
		t.Errorf("%+v, malformed %d", d.Batches, d.malformed)
	}
}
