package serverlog

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
)

// BenchmarkRead reads a log of a hundred megabytes, most of it iterations and requests as vLLM 0.15 logs them. The target is
// 100 MB/s.
func BenchmarkRead(b *testing.B) {
	var one bytes.Buffer
	for i := range 40 {
		fmt.Fprintf(&one, "\x1b[0;36m(APIServer pid=82641)\x1b[0;0m INFO 02-01 13:22:00 [logger.py:49] Received request cmpl-%016x-0: params: SamplingParams(n=1, presence_penalty=0.0, frequency_penalty=0.0, repetition_penalty=1.0, temperature=1.0, top_p=1.0, top_k=-1, min_p=0.0, seed=None, stop=[], stop_token_ids=[], bad_words=[], include_stop_str_in_output=False, ignore_eos=False, max_tokens=10240, min_tokens=0, logprobs=None), lora_request: None.\n", i)
		fmt.Fprintf(&one, "\x1b[0;36m(APIServer pid=82641)\x1b[0;0m INFO 02-01 13:22:00 [async_llm.py:419] Added request cmpl-%016x-0-96a7b89d.\n", i)
		for range 14 {
			fmt.Fprintf(&one, "\x1b[0;36m(EngineCore_DP0 pid=82858)\x1b[0;0m INFO 02-01 13:22:00 [core.py:348] Iteration(%d): 0 context requests, 0 context tokens, 128 generation requests, 128 generation tokens, iteration elapsed time: 9.62 ms\n", i)
		}
		one.WriteString("\x1b[0;36m(APIServer pid=82641)\x1b[0;0m INFO:     127.0.0.1:59234 - \"POST /v1/completions HTTP/1.1\" 200 OK\n")
	}
	one.WriteString("\x1b[0;36m(APIServer pid=82641)\x1b[0;0m INFO 02-01 13:22:11 [loggers.py:257] Engine 000: Avg prompt throughput: 57435.2 tokens/s, Avg generation throughput: 5931.9 tokens/s, Running: 128 reqs, Waiting: 0 reqs, GPU KV cache usage: 6.1%, Prefix cache hit rate: 2.2%\n")
	text := bytes.Repeat(one.Bytes(), 100<<20/one.Len())
	path := filepath.Join(b.TempDir(), "server.log")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		in, err := file.New(path, "server.log")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Read(context.Background(), []file.Input{in}); err != nil {
			b.Fatal(err)
		}
	}
}
