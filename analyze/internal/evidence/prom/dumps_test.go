package prom

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
)

// readAll reads several files.
func readAll(t *testing.T, texts ...string) *Data {
	t.Helper()
	var files []file.Input
	for i, text := range texts {
		path := filepath.Join(t.TempDir(), fmt.Sprint(i, ".prom"))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := file.New(path, filepath.Base(path))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, in)
	}
	d, err := Read(context.Background(), files)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// otherDump is of a program that is no server.
const otherDump = "# TYPE node_load1 gauge\nnode_load1 1\nprocess_start_time_seconds 9\n"

const curlHead = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n"

// scrape is a dump of a server that was started at a time and has worked on so many tokens.
func scrape(started string, tokens int) string {
	return fmt.Sprintf(`# HELP python_info x
# TYPE python_info gauge
python_info{version="3.12"} 1
# TYPE process_start_time_seconds gauge
process_start_time_seconds %s
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0"} %d
vllm:prompt_tokens_total{engine="1"} %d # {id="}"} 1
`, started, tokens, tokens)
}

// A series that comes again begins another dump, whatever stands before the dumps and whether they have comments; so
// does the start of the process, which stands before the server's own series.
func TestDumpsOfOneFile(t *testing.T) {
	bare := func(text string) string { return string(samplesOnly([]byte(text))) }
	grep := func(text string) string { return text[strings.Index(text, "vllm:prompt_tokens_total{"):] }
	for name, c := range map[string]struct {
		text     string
		tokens   float64
		warnings string
	}{
		"as they come":       {scrape("1", 10) + scrape("1", 30), 40, ""},
		"behind curl -i":     {curlHead + scrape("1", 10) + curlHead + scrape("1", 30), 40, "prometheus_malformed"},
		"without comments":   {bare(scrape("1", 10)) + bare(scrape("1", 30)), 40, ""},
		"the server's alone": {grep(scrape("1", 10)) + grep(scrape("1", 30)), 40, ""},
		"started in between": {curlHead + scrape("1", 10) + curlHead + scrape("2", 30), 60,
			"prometheus_malformed prometheus_reset"},
		"another one's behind": {scrape("1", 10) + otherDump, 20, ""},
		"three":                {scrape("1", 10) + scrape("1", 20) + scrape("1", 50), 80, "prometheus_dumps"},
		"three, last first":    {scrape("1", 50) + scrape("1", 20) + scrape("1", 10), 80, "prometheus_dumps prometheus_order"},
		"a reset in between":   {scrape("1", 100) + scrape("1", 5) + scrape("1", 200), 400, "prometheus_reset"},
		"another in between":   {scrape("1", 10) + scrape("2", 20) + scrape("1", 50), 100, "prometheus_reset"},
	} {
		d := readAll(t, c.text)
		if got := codes(d); d.Counters[PromptTokens] != c.tokens || got != c.warnings {
			t.Errorf("%s: %v tokens, warnings %q", name, d.Counters[PromptTokens], got)
		}
	}
}

func codes(d *Data) string {
	var list []string
	for _, w := range d.Warnings() {
		list = append(list, w.Code)
	}
	return strings.Join(list, " ")
}

// A dump of another program beside the server's is neither a later one nor one before it, and one without the start of
// its process may be of the same process.
func TestDumpOfAnotherProgram(t *testing.T) {
	other := otherDump
	for name, c := range map[string]struct {
		texts  []string
		tokens float64
	}{
		"behind": {[]string{scrape("1", 10), other}, 20}, "before": {[]string{other, scrape("1", 10)}, 20},
		"between": {[]string{scrape("1", 10), other, scrape("1", 30)}, 40},
		"no start": {[]string{scrape("1", 10), "vllm:prompt_tokens_total{engine=\"0\"} 30\n" +
			"vllm:prompt_tokens_total{engine=\"1\"} 30\n"}, 40},
	} {
		if d := readAll(t, c.texts...); d.Counters[PromptTokens] != c.tokens || codes(d) != "" {
			t.Errorf("%s: %v tokens, warnings %v", name, d.Counters[PromptTokens], d.Warnings())
		}
	}
}

// The ranks of one engine of SGLang state the same requests, and a breakdown by priority states them once more: each
// request counts once. Engines of their own, which dp_rank tells apart, add up.
func TestRanksOfOneEngine(t *testing.T) {
	series := func(name, labels, value string) string {
		return "sglang:" + name + "{model_name=\"m\"," + labels + "} " + value + "\n"
	}
	d := readAll(t, series("num_running_reqs", `dp_rank="0",tp_rank="0",pp_rank="0",priority=""`, "10")+
		series("num_running_reqs", `dp_rank="0",tp_rank="0",pp_rank="0",priority="1"`, "4")+
		series("num_running_reqs", `dp_rank="0",tp_rank="1",pp_rank="0",priority=""`, "10")+
		series("num_running_reqs", `dp_rank="0",tp_rank="0",pp_rank="1",priority=""`, "10")+
		series("num_running_reqs", `dp_rank="1",tp_rank="2",pp_rank="0",priority=""`, "5")+
		series("max_total_num_tokens", `tp_rank="0",pp_rank="0"`, "1000")+
		series("max_total_num_tokens", `tp_rank="0",pp_rank="1"`, "1000")+
		series("num_retracted_requests_total", `tp_rank="0",pp_rank="0"`, "7")+
		series("num_retracted_requests_total", `tp_rank="0",pp_rank="1"`, "7")+
		series("num_requests_total", `is_streaming="true"`, "20")+
		series("num_requests_total", `is_streaming="false"`, "1")+
		series("queue_time_seconds_bucket", `tp_rank="0",pp_rank="0",le="1"`, "2")+
		series("queue_time_seconds_bucket", `tp_rank="0",pp_rank="0",le="+Inf"`, "2")+
		series("queue_time_seconds_bucket", `tp_rank="0",pp_rank="1",le="1"`, "2")+
		series("queue_time_seconds_bucket", `tp_rank="0",pp_rank="1",le="+Inf"`, "2")+
		series("queue_time_seconds_count", `tp_rank="0",pp_rank="1"`, "2")+
		series("queue_time_seconds_count", `tp_rank="0",pp_rank="0"`, "2")+
		series("uncached_prompt_tokens_histogram_bucket", `le="100"`, "1")+
		series("uncached_prompt_tokens_histogram_bucket", `le="+Inf"`, "2")+
		series("uncached_prompt_tokens_histogram_count", "", "2"))
	for name, want := range map[string]float64{Running: 15, KVTokens: 1000} {
		if d.Gauges[name] != want {
			t.Errorf("%s = %v, want %v", name, d.Gauges[name], want)
		}
	}
	for name, want := range map[string]float64{Preemptions: 7, Requests: 21} {
		if d.Counters[name] != want {
			t.Errorf("%s = %v, want %v", name, d.Counters[name], want)
		}
	}
	for name, want := range map[string]float64{Queue: 2, ComputedLen: 2} {
		if h := d.Hists[name]; h == nil || h.Count != want {
			t.Errorf("%s: %+v, want %v", name, h, want)
		}
	}
	if codes(d) != "" {
		t.Error(d.Warnings())
	}
}

// Newer vLLM states the tokens of its KV cache, of which blocks say too little for layers with a window; and the prompt
// tokens that it found in a cache.
func TestNewNamesOfVLLM(t *testing.T) {
	d := readAll(t, `vllm:cache_config_info{block_size="16",num_gpu_blocks="100",kv_cache_size_tokens="5000",engine="0"} 1
vllm:cache_config_info{block_size="16",num_gpu_blocks="100",kv_cache_size_tokens="None",engine="1"} 1
vllm:prompt_tokens_cached_total{engine="0"} 12
`)
	if d.Gauges[KVTokens] != 6600 || d.Counters[CachedTokens] != 12 {
		t.Errorf("%v %v", d.Gauges, d.Counters)
	}
}
