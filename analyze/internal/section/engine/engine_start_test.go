package engine_test

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

const gib = 1 << 30

// The example's cache has 8 GiB on the rank with less, for 65,536 tokens: 128 KiB for one. 16 requests of 4,096 fit: 512 MiB each.
func TestEngineStart(t *testing.T) {
	r := analyseLog(t, exampleLog)
	sectiontest.Metric(t, r, 65536, "serve.kv_cache_tokens")
	sectiontest.Metric(t, r, 8*gib, "serve.kv_cache_bytes")
	sectiontest.Metric(t, r, 131072, "serve.kv_bytes_per_token")
	sectiontest.Metric(t, r, 512<<20, "serve.kv_bytes_per_request")
	sectiontest.Metric(t, r, 8*gib, "serve.kv_bytes_needed") // 16 of them
	sectiontest.Metric(t, r, 16, "serve.max_concurrency")
	sectiontest.Metric(t, r, 4096, "serve.max_model_len")
	sectiontest.Metric(t, r, 16, "serve.max_num_seqs")
	sectiontest.Metric(t, r, 2048, "serve.max_batched_tokens")
	sectiontest.Metric(t, r, 4*gib, "serve.weight_bytes")
	sectiontest.Metric(t, r, 2.5e9, "serve.model_load_time") // the slower rank
	sectiontest.Metric(t, r, 12.5e9, "serve.compile_time")
	sectiontest.Metric(t, r, 5e9, "serve.graph_capture_time")
	sectiontest.Metric(t, r, gib/2, "serve.graph_bytes")
	sectiontest.Metric(t, r, 20.25e9, "serve.init_time")
	sectiontest.Metric(t, r, 40e9, "serve.ready_time")
	sectiontest.NoMetric(t, r, "serve.warmup_time")
	s := sectiontest.SectionOf(t, r, "engine_start")
	for fact, want := range map[string]string{
		"engine": "vLLM", "version": "0.15.0", "generation": "V1", "model": "example/tiny-moe-8b", "architecture": "TinyMoeForCausalLM", "data type": "bfloat16", "quantization": "fp8", "parallelism": "tp2",
		"attention backend": "FLASH_ATTN", "chunked prefill": "yes", "prefix caching": "yes", "CUDA graph mode": "FULL_AND_PIECEWISE", "CUDA graph sizes": "4", "largest CUDA graph": "128",
		"speculative decoding": "eagle", "speculative tokens": "2", "requests of 4096 tokens at once": "16",
	} {
		if got, _ := cellOf(t, s, "engine_facts", fact, "value").Str(); got != want {
			t.Errorf("%s: %q, want %q", fact, got, want)
		}
	}
}

// vLLM 0.6: no size of the cache in tokens, memory in a sentence, times without a verb.
func TestEngineStartOfV0(t *testing.T) {
	r := logOf(t,
		"INFO 10-14 05:38:43 api_server.py:528] vLLM API server version 0.6.3.post1",
		"INFO 10-14 05:38:43 api_server.py:529] args: Namespace(subparser='serve', model_tag='x/y', host=None, api_key='sk-secret', model='x/y', max_model_len=8192, tensor_parallel_size=1, max_num_seqs=256, max_num_batched_tokens=None)",
		"INFO 10-14 05:38:55 llm_engine.py:237] Initializing an LLM engine (v0.6.3.post1) with config: model='x/y', speculative_config=None, tokenizer='x/y', dtype=torch.float16, max_seq_len=8192, tensor_parallel_size=1, pipeline_parallel_size=1, quantization=None, enforce_eager=False, kv_cache_dtype=auto, chunked_prefill_enabled=False",
		"INFO 10-14 05:38:56 selector.py:135] Using XFormers backend.",
		"INFO 10-14 05:39:10 model_runner.py:1071] Loading model weights took 14.5000 GB",
		"INFO 10-14 05:39:11 worker.py:232] the current vLLM instance can use total_gpu_memory (23.68GiB) x gpu_memory_utilization (0.90) = 21.31GiB; model weights take 14.50GiB; the rest of the memory reserved for KV Cache is 4.00GiB.",
		"INFO 10-14 05:39:11 gpu_executor.py:122] # GPU blocks: 2048, # CPU blocks: 1024",
		"INFO 10-14 05:39:11 gpu_executor.py:126] Maximum concurrency for 8192 tokens per request: 4.00x",
		"INFO 10-14 05:39:30 model_runner.py:1530] Graph capturing finished in 17 secs.")
	sectiontest.Metric(t, r, 4*gib, "serve.kv_cache_bytes")
	sectiontest.Metric(t, r, gib, "serve.kv_bytes_per_request")
	sectiontest.Metric(t, r, 256*gib, "serve.kv_bytes_needed")
	sectiontest.Metric(t, r, 32768, "serve.kv_cache_tokens") // 2048 blocks of 16: 4 requests of 8192 tokens
	sectiontest.Metric(t, r, 14.5*gib, "serve.weight_bytes")
	sectiontest.Metric(t, r, 17e9, "serve.graph_capture_time")
	sectiontest.NoMetric(t, r, "serve.model_load_time")
	if e := r.Environment; e.Parallelism == nil || *e.Parallelism != "tp1" || e.DType == nil || *e.DType != "float16" || e.Quantization != nil {
		t.Errorf("environment %+v", e)
	}
	if e := r.Environment; e.Engine == nil || !strings.HasPrefix(*e.Engine, "vLLM 0.") || e.EngineSettings == nil || !strings.HasPrefix(*e.EngineSettings, "attention XFORMERS") {
		t.Errorf("engine %v, settings %v", e.Engine, e.EngineSettings)
	}
	if got, _ := cellOf(t, sectiontest.SectionOf(t, r, "engine_start"), "engine_facts", "attention backend", "value").Str(); got != "XFORMERS" {
		t.Errorf("attention backend %q", got)
	}
}

func TestEngineStartOfSGLang(t *testing.T) {
	r := logOf(t,
		"[2026-08-01 23:37:40] server_args=ServerArgs(model_path='/data/jane/models/tiny', tokenizer_path='/data/jane/models/tiny', context_length=None, dtype='auto', quantization='fp8', tp_size=2, pp_size=1, dp_size=1, api_key='sk-secret', max_running_requests=None, chunked_prefill_size=8192, disable_radix_cache=False, attention_backend=None, speculative_algorithm=None)",
		"[2026-08-01 23:37:41 TP0] Attention backend not set. Use flashinfer backend by default.",
		"[2026-08-01 23:39:39 TP0] Load weight end. elapsed=109.33 s, type=TinyForCausalLM, dtype=torch.bfloat16, avail mem=47.80 GB, mem usage=67.50 GB.",
		"[2026-08-01 23:40:01 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1048576, K size: 4.00 GB, V size: 4.00 GB",
		"[2026-08-01 23:43:38 TP0] Capture cuda graph end. Time elapsed: 16.50 s. mem usage=1.50 GB. avail mem=7.27 GB.",
		"[2026-08-01 23:43:42 TP0] max_total_num_tokens=1048576, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=4096, context_len=32768, available_gpu_mem=6.22 GB",
		"[2026-08-01 23:43:50] The server is fired up and ready to roll!")
	sectiontest.Metric(t, r, 1048576, "serve.kv_cache_tokens")
	sectiontest.Metric(t, r, 8192, "serve.kv_bytes_per_token")
	sectiontest.Metric(t, r, 8192*32768, "serve.kv_bytes_per_request")
	sectiontest.Metric(t, r, 109.33e9, "serve.model_load_time")
	sectiontest.Metric(t, r, 67.5*gib, "serve.weight_bytes")
	sectiontest.Metric(t, r, 16.5e9, "serve.graph_capture_time")
	sectiontest.Metric(t, r, 370e9, "serve.ready_time")
	e := r.Environment
	if *e.Model != "tiny" || *e.DType != "bfloat16" || *e.Quantization != "fp8" || *e.Parallelism != "tp2" || *e.MaxModelLen != 32768 || *e.MaxNumSeqs != 4096 {
		t.Errorf("environment %+v", e)
	}
}

// Each rank states its own memory and captures its own graphs, all at the same time: no sum over ranks is that of one GPU. Pools and
// kinds of graphs of one rank do add up: 4 GB + 4 GB and 2 GB + 2 GB, 10 s + 2 s on the slower rank.
func TestEngineStartOfSGLangRanks(t *testing.T) {
	r := logOf(t,
		"[2026-08-01 23:40:01 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1048576, K size: 4.00 GB, V size: 4.00 GB",
		"[2026-08-01 23:40:01 TP1] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1048576, K size: 4.00 GB, V size: 4.00 GB",
		"[2026-08-01 23:40:02 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1048576, K size: 2.00 GB, V size: 2.00 GB",
		"[2026-08-01 23:40:02 TP1] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1048576, K size: 2.00 GB, V size: 2.00 GB",
		"[2026-08-01 23:43:38 TP0] Capture cuda graph end. Time elapsed: 10.00 s. mem usage=1.50 GB. avail mem=7.27 GB.",
		"[2026-08-01 23:43:38 TP1] Capture cuda graph end. Time elapsed: 9.00 s. mem usage=1.25 GB. avail mem=7.27 GB.",
		"[2026-08-01 23:43:40 TP0] Capture draft cuda graph end. Time elapsed: 2.00 s. mem usage=0.50 GB. avail mem=7.27 GB.")
	sectiontest.Metric(t, r, 12*gib, "serve.kv_cache_bytes")
	sectiontest.Metric(t, r, 12e9, "serve.graph_capture_time")
	sectiontest.Metric(t, r, 2*gib, "serve.graph_bytes")
}

// A server that was started twice with different settings: the facts are of the second, and a warning says in what they differ.
func TestEngineStartTwice(t *testing.T) {
	start := func(length string) []string {
		return []string{"INFO 10-14 05:38:43 [api_server.py:528] vLLM API server version 0.10.0",
			"INFO 10-14 05:38:43 [utils.py:326] non-default args: {'model': 'x/y', 'max_model_len': " + length + "}"}
	}
	r := logOf(t, append(start("2048"), start("4096")...)...)
	sectiontest.Metric(t, r, 4096, "serve.max_model_len")
	found := false
	for _, w := range r.Warnings {
		found = found || w.Code == "log_starts_differ"
	}
	if !found {
		t.Errorf("warnings %v", r.Warnings)
	}
}

func TestEngineStartSmallCache(t *testing.T) {
	r := logOf(t, "INFO 10-14 05:39:11 [kv_cache_utils.py:126] Maximum concurrency for 65,536 tokens per request: 1.44x", "INFO 10-14 05:39:11 [kv_cache_utils.py:126] GPU KV cache size: 94,135 tokens")
	if !hasFinding(r, "kv_cache_small") {
		t.Errorf("findings %v", r.Findings)
	}
	sectiontest.WantStatus(t, r, "engine_start", report.OK, "")
}

// gpt-oss-120b on four GPUs: 36 layers × 2 KV heads of a GPU × 64 × 2 × 2 bytes = 18,432 bytes a token.
func TestEngineStartOfTheRealLog(t *testing.T) {
	r := sharedLog(t, "vllm_0.15.0_server.log")
	sectiontest.Metric(t, r, 5863776, "serve.kv_cache_tokens")
	sectiontest.Metric(t, r, 84.12, "serve.max_concurrency")
	m := r.Find("serve.kv_bytes_per_token", nil)
	if v := *m.Value; v < 18431 || v > 18434 {
		t.Errorf("%v bytes a token", v)
	}
}
