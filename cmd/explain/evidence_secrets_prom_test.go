package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// secretDump holds, wherever a server or a client can put text into its metrics, something that must not come out.
const secretDump = `# HELP vllm:num_requests_running hunter2
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="hunter2",model_name="/home/hunter2/hunter2 x",user="hunter2"} 1
# TYPE vllm:request_success_total counter
vllm:request_success_total{finished_reason="hunter2",model_name="hunter2 x"} 5
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{le="0.1",model_name="https://hunter2@host/x"} 5
vllm:time_to_first_token_seconds_bucket{le="+Inf",model_name="https://hunter2@host/x"} 5
vllm:time_to_first_token_seconds_count{model_name="https://hunter2@host/x"} 5
vllm:time_to_first_token_seconds_sum{model_name="https://hunter2@host/x"} 0.25
# TYPE vllm:hunter2 counter
vllm:hunter2 1
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="hunter2",num_gpu_blocks="16"} 1
# TYPE vllm:lora_requests_info gauge
vllm:lora_requests_info{running_lora_adapters="hunter2"} 1
hunter2{a="b
`

// TestSecretsOfMetricsStayInside: numbers come out of a dump and nothing else.
func TestSecretsOfMetricsStayInside(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "metrics.prom")
	if err := os.WriteFile(path, []byte(secretDump), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, content := range explainTrace(t, path) {
		for _, secret := range []string{"hunter2", filepath.Dir(path)} {
			if at := strings.Index(content, secret); at >= 0 {
				t.Errorf("%s leaks %q: …%q", file, secret, content[max(0, at-80):min(len(content), at+20)])
			}
		}
	}
}
