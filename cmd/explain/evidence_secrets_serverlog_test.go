package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// secretLogs hold, wherever a server or a client can put text into a log, something that must not come out: the word
// hunter2 stands in each.
var secretLogs = map[string]string{
	"vllm": `(APIServer pid=1) INFO 03-01 09:59:00 [api_server.py:1] vLLM API server version 0.15.0-hunter2
(APIServer pid=1) INFO 03-01 09:59:00 [utils.py:261] non-default args: {'model': '/home/hunter2/models/hunter2 secret', 'api_key': ['sk-hunter2'], 'host': 'hunter2.corp.example', 'max_model_len': 4096, 'served_model_name': ['hunter2'], 'hf_token': 'hf_hunter2', 'quantization': 'hunter2'}
(EngineCore pid=2) INFO 03-01 09:59:05 [core.py:96] Initializing a V1 LLM engine (v0.15.0) with config: model='/home/hunter2/models/llama-3-8b', speculative_config=SpeculativeConfig(method='hunter2', model='/home/hunter2/draft'), tokenizer='hunter2', dtype=torch.hunter2, max_seq_len=4096, tensor_parallel_size=2, quantization=hunter2, kv_cache_dtype=hunter2, compilation_config={'cudagraph_mode': hunter2, 'cache_dir': '/home/hunter2/.cache'}
(EngineCore pid=2) INFO 03-01 09:59:06 [model.py:541] Resolved architecture: Hunter2hunter2
(EngineCore pid=2) INFO 03-01 09:59:06 [cuda.py:1] Using hunter2 attention backend
(EngineCore pid=2) INFO 03-01 09:59:06 [gpu_model_runner.py:1] Starting to load model hunter2@home...
(APIServer pid=1) INFO 03-01 10:00:00 [logger.py:49] Received request cmpl-hunter2: prompt: 'my password is hunter2', params: SamplingParams(n=1).
(APIServer pid=1) INFO 03-01 10:00:00 [async_llm.py:419] Added request cmpl-hunter2-96a7b89d.
(EngineCore pid=2) INFO 03-01 10:00:01 [core.py:348] Iteration(0): 0 context requests, 0 context tokens, 1 generation requests, 1 generation tokens, iteration elapsed time: 10.00 ms
(APIServer pid=1) INFO:     hunter2.corp.example:59234 - "POST /v1/completions?key=hunter2 HTTP/1.1" 200 OK hunter2
(APIServer pid=1) INFO:     10.0.0.1:59234 - "GET /hunter2 HTTP/1.1" 404 hunter2
(APIServer pid=1) INFO 03-01 10:00:10 [loggers.py:257] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 2.0 tokens/s, Running: 2 reqs, hunter2: 1 reqs, GPU KV cache usage: 10.0%, Prefix cache hit rate: 0.0%
(APIServer pid=1) INFO 03-01 10:00:20 [cuda_graph.py:123] **CUDAGraph Stats:**
(APIServer pid=1) INFO 03-01 10:00:20 [cuda_graph.py:123] | 3 | 4 | 1 | hunter2 | 20 |
(APIServer pid=1) INFO 03-01 10:00:20 [perf.py:900] MFU details: {"prefill_reqs": 3, "flops_breakdown": {"attn.hunter2": "4.0TF", "hunter2": "1TF"}, "num_read_bytes_breakdown": {"/home/hunter2": "1.0GB"}}
(EngineCore pid=2) ERROR 03-01 10:01:12 [core.py:708]   File "/home/hunter2/venv/core.py", line 699, in hunter2
(EngineCore pid=2) ERROR 03-01 10:01:12 [core.py:708] ValueError: the prompt 'hunter2' of hunter2@corp.example is too long
Traceback (most recent call last):
  File "/home/hunter2/x.py", line 1
hunter2Error: hunter2
export HF_TOKEN=hunter2
`,
	"sglang": `[2026-08-01 23:37:40] server_args=ServerArgs(model_path='/home/hunter2/hunter2 x', tokenizer_path='hunter2', dtype='hunter2', quantization='hunter2', host='hunter2', api_key='sk-hunter2', admin_api_key='hunter2', attention_backend='hunter2', speculative_algorithm='hunter2', served_model_name='hunter2')
[2026-08-01 23:37:41 TP0 hunter2] Load weight end. elapsed=1.0 s, type=hunter2, quant=hunter2, mem usage=1.00 GB.
[2026-08-01 23:37:42] Receive: obj=GenerateReqInput(text='hunter2', rid='hunter2')
[2026-08-01 23:37:43] Decode batch, #running-req: 1, #token: 40, token usage: 0.10, hunter2: True, gen throughput (token/s): 5.23, #queue-req: 0
[2026-08-01 23:37:44] Scheduler hit an exception: Traceback (most recent call last): hunter2
hunter2
`,
	"json": `{"timestamp": "2026-12-15T18:32:12", "host": "hunter2", "message": "INFO 12-15 18:32:12 [loggers.py:259] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 2.0 tokens/s", "env": {"TOKEN": "hunter2"}}
`,
}

// TestSecretsOfServerLogsStayInside: numbers come out of a log and nothing else.
func TestSecretsOfServerLogsStayInside(t *testing.T) {
	t.Parallel()
	for name, text := range secretLogs {
		path := filepath.Join(t.TempDir(), name+".log")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for file, content := range explainTrace(t, path) {
			for _, secret := range []string{"hunter2", "Hunter2", filepath.Dir(path)} {
				if at := strings.Index(content, secret); at >= 0 {
					t.Errorf("%s: %s leaks %q: …%q", name, file, secret, content[max(0, at-80):min(len(content), at+20)])
				}
			}
		}
	}
}
