package serverlog

import (
	"math"
	"strings"
	"testing"
)

// Every rank of SGLang logs the requests that it retracts, and all of one engine retract the same: they count once,
// those of engines of their own and of another start add up.
func TestRetractionsOfRanks(t *testing.T) {
	line := func(tags string) string {
		return "[2025-05-27 21:19:48" + tags + "] KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_token_ratio: 0.1 -> 0.9\n"
	}
	start := "[2025-05-27 21:19:40] server_args=ServerArgs(model_path='a/b', tp_size=4)\n"
	for name, c := range map[string]struct {
		text string
		want int64
	}{
		"one GPU":           {line("") + line(""), 4},
		"four ranks":        {line(" TP0") + line(" TP1") + line(" TP3") + line(" TP2") + line(" TP0"), 4},
		"two engines":       {line(" DP0 TP0") + line(" DP0 TP1") + line(" DP1 TP2") + line(" DP1 TP3"), 4},
		"stages":            {line(" PP0 TP0") + line(" PP1 TP0"), 2},
		"two starts":        {start + line(" TP0") + line(" TP1") + start + line(" TP0") + line(" TP1"), 4},
		"the second of two": {line(" TP8") + line(" TP9"), 2},
	} {
		if d, _ := read(t, []byte(c.text)); d.Preemptions != c.want || !d.HasPreemptions {
			t.Errorf("%s: %d, want %d", name, d.Preemptions, c.want)
		}
	}
}

// Lines of other shapes than most: a prefill server of SGLang does not say what runs, the pool in host memory is not the
// GPU's, and connectors of vLLM log what they like of their transfers. None of them is broken.
func TestOtherShapes(t *testing.T) {
	d, tally := read(t, []byte(strings.Join([]string{
		"[2025-05-27 21:19:46 TP0] Prefill batch. #new-seq: 1, #new-token: 100, #cached-token: 25, token usage: 0.10, " +
			"#unbootstrapped-req: 0, #queue-req: 3, #transferring-req: 0, input throughput (token/s): 120.50, ",
		"[2025-05-27 21:19:47 TP0] Decode batch [40], #running-req: 31, #gpu token: 500, gpu token usage: 0.40, #cpu token: 900, " +
			"cpu token usage: 0.97, cuda graph: True, gen throughput (token/s): 140.50, #queue-req: 0",
		"(APIServer pid=1) INFO 11-27 10:00:10 [metrics.py:103] KV Transfer metrics: GPU_to_CPU_total_bytes=2018, GPU_to_CPU_total_time=0.08",
		"(APIServer pid=1) INFO 11-27 10:00:10 [metrics.py:103] KV Transfer metrics: NixlConnector={'Num successful transfers': 4}",
		"(APIServer pid=1) INFO 11-27 10:00:10 [metrics.py:103] KV Transfer metrics: Num successful transfers=4, Avg xfer time (m",
	}, "\n")))
	if len(d.Samples) != 2 || d.malformed != 1 || tally.Understood != 2 || tally.Known != 3 {
		t.Fatalf("%d samples, %d broken, %+v", len(d.Samples), d.malformed, *tally)
	}
	if s := d.Samples[0]; s.Prompt != 120.5 || s.CachedTokens != 25 || s.Waiting != 3 || s.Usage != 0.1 || !math.IsNaN(s.Running) {
		t.Errorf("%+v", s)
	}
	if s := d.Samples[1]; s.Usage != 0.4 || s.CPUUsage != 0.97 {
		t.Errorf("%+v", s)
	}
	if d.Transfers.Lines != 0 {
		t.Errorf("%+v", d.Transfers)
	}
}

// What newer versions put on one line, and how SGLang states the one cache of a model with latent attention.
func TestNewStartLines(t *testing.T) {
	d, _ := read(t, []byte(`(EngineCore pid=7) INFO 11-27 10:00:05 [gpu_worker.py:1087] Available KV cache memory: 20.00 GiB
(EngineCore pid=7) INFO 11-27 10:00:05 [kv_cache_utils.py:1087] GPU KV cache size: 163,840 tokens, Maximum concurrency for 8,192 tokens per request: 25.50x
`))
	if s := d.Start(); s.KVTokens != 163840 || s.Concurrency != 25.5 || s.ConcurrencyLen != 8192 {
		t.Errorf("%+v", s)
	}
	d, _ = read(t, []byte(`[2025-01-22 10:00:02 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1024, KV size: 16.00 GB
[2025-01-22 10:00:02 TP1] KV Cache is allocated. #tokens: 1024, KV size: 16.50 GB
`))
	if s := d.Start(); s.KVBytes != 16<<30 || s.KVPools != 1 || s.KVDType != "bfloat16" {
		t.Errorf("%+v", s)
	}
}
