package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// engineLogs writes a log of each engine whose server takes slow times as long: 1 % of noise, 40 lines of statistics, or
// 200 iterations or requests.
var engineLogs = map[string]func(noise func() float64, slow float64) (lines []string){
	"vLLM": func(noise func() float64, slow float64) (lines []string) {
		for i := range 40 {
			lines = append(lines, fmt.Sprintf("(APIServer pid=1) INFO 03-01 10:%02d:%02d [loggers.py:248] Engine 000: Avg prompt throughput: %.1f tokens/s, Avg generation throughput: %.1f tokens/s, Running: 64 reqs, Waiting: 0 reqs, GPU KV cache usage: 30.0%%, Prefix cache hit rate: 10.0%%",
				i/6, i%6*10, 4000*noise()/slow, 2000*noise()/slow))
		}
		return lines
	},
	"SGLang": func(noise func() float64, slow float64) (lines []string) {
		for i := range 40 {
			lines = append(lines, fmt.Sprintf("[2026-08-02 00:%02d:%02d TP0] Decode batch, #running-req: 64, #token: 30000, token usage: 0.30, cuda graph: True, gen throughput (token/s): %.2f, #queue-req: 0",
				i/6, i%6*10, 2000*noise()/slow))
		}
		return lines
	},
	"LMDeploy": func(noise func() float64, slow float64) (lines []string) {
		for i := range 40 {
			lines = append(lines, fmt.Sprintf("[2026-03-01 10:%02d:%02d Engine 000] Avg thr (in/out): %.1f / %.1f tokens/s, Engine (running/waiting): 12 / 0",
				i/6, i%6*10, 4000*noise()/slow, 2000*noise()/slow))
		}
		return lines
	},
	"TensorRT-LLM": func(noise func() float64, slow float64) (lines []string) {
		for i := range 200 {
			lines = append(lines, fmt.Sprintf("[03/01/2026-10:00:%02d] [TRT-LLM] [RANK 0] [I] iter = %d, global_rank = 0, rank = 0, num_scheduled_requests = 16, kv_cache_util = 0.125, currank_total_requests = 0/0, host_step_time = %fms, prev_device_step_time = %fms, timestamp = 2026-03-01 10:00:%02d, states = {'num_ctx_requests': 0, 'num_ctx_tokens': 0, 'num_generation_tokens': 16}",
				i/10, i, 12.5*noise()*slow, 11.25*noise()*slow, i/10))
		}
		return lines
	},
	"TGI": func(noise func() float64, slow float64) (lines []string) {
		for i := range 200 {
			token := 20 * noise() * slow
			lines = append(lines, fmt.Sprintf(`2026-03-01T10:00:%02d.437631Z  INFO generate{parameters=GenerateParameters { best_of: None } total_time="%fms" validation_time="750.5µs" queue_time="125µs" inference_time="%fms" time_per_token="%fms" seed="None"}: text_generation_router::server: router/src/server.rs:299: Success`,
				i/4, 30*token+0.875, 30*token, token))
		}
		return lines
	},
}

// TestASlowerLogFails: of each engine, a log that is 10 % slower fails the default gate, and another of the same server
// passes it.
func TestASlowerLogFails(t *testing.T) {
	for engine, of := range engineLogs {
		dir := t.TempDir()
		write := func(name string, seed uint64, slow float64) string {
			r := rand.New(rand.NewPCG(seed, 7))
			path := filepath.Join(dir, name)
			text := strings.Join(of(func() float64 { return 1 + 0.01*r.NormFloat64() }, slow), "\n") + "\n"
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
		base := write("base.log", 1, 1)
		if out, errs, code := explainDiff(t, base, write("slower.log", 2, 1.1)); code != exitFail {
			t.Errorf("%s, 10 %% slower: exit %d, not %d\n%s%s", engine, code, exitFail, out, errs)
		}
		if out, errs, code := explainDiff(t, base, write("same.log", 3, 1)); code != exitOK {
			t.Errorf("%s, not slower: exit %d\n%s%s", engine, code, out, errs)
		}
	}
}
