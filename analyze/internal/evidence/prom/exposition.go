package prom

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// sample is one line of the text format, of Prometheus and of OpenMetrics alike:
//
//	vllm:request_success_total{engine="0",finished_reason="stop"} 12.0 1760000000 # {trace_id="x"} 0.05
//	name                      labels                              value time      exemplar
//
// Time and exemplar are checked and dropped. Declarations (# TYPE …) are ignored: the names of engines are known.
type sample struct {
	name   string
	labels []label
	value  float64
}

type label struct{ name, value string }

// parseSample reads a line; ok is false if it is not a sample.
func parseSample(line []byte) (s sample, ok bool) {
	text := string(line)
	end := strings.IndexAny(text, "{ \t")
	if end < 0 || !isName(text[:end]) {
		return s, false
	}
	s.name, text = text[:end], text[end:]
	if text[0] == '{' {
		if s.labels, text, ok = parseLabels(text[1:]); !ok {
			return s, false
		}
	}
	text, _, _ = strings.Cut(text, " # {")
	numbers := strings.Fields(text)
	if len(numbers) < 1 || len(numbers) > 2 {
		return s, false
	}
	for i := len(numbers) - 1; i >= 0; i-- { // the value last: it stays
		var err error
		if s.value, err = strconv.ParseFloat(numbers[i], 64); err != nil {
			return s, false
		}
	}
	if s.get("engine_type") != "" && unprefixed.MatchString(s.name) {
		s.name = "trtllm_" + s.name
	}
	return s, true
}

// unprefixed are the names of TensorRT-LLM up to 1.1. Its series have a label for the kind of engine.
var unprefixed = regexp.MustCompile(`^(request_success_total|kv_cache_(hit_rate|utilization)|(e2e_request_latency|` +
	`time_to_first_token|time_per_output_token|request_queue_time)_seconds_(bucket|sum|count))$`)

const nameBytes = "0123456789:_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// isName reports whether text is a name of the format: no digit, which is less than a colon, is first.
func isName(text string) bool { return text >= ":" && strings.TrimLeft(text, nameBytes) == "" }

// unescape resolves the escapes in the value of a label.
var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

// parseLabels reads name="value",… up to the closing brace; rest is the text after it.
func parseLabels(text string) (list []label, rest string, ok bool) {
	for more := true; more; {
		name, after, _ := strings.Cut(strings.TrimLeft(text, " \t"), `="`)
		end := 0
		for ; end < len(after) && after[end] != '"'; end++ { // a regexp takes four times as long
			if after[end] == '\\' {
				end++
			}
		}
		if end >= len(after) || !isName(name) {
			break
		}
		list = append(list, label{name, unescape.Replace(after[:end])})
		text, more = strings.CutPrefix(strings.TrimLeft(after[end+1:], " \t"), ",")
	}
	rest, ok = strings.CutPrefix(strings.TrimLeft(text, " \t"), "}")
	return list, rest, ok
}

// get is the value of a label; empty if the sample has none of that name.
func (s sample) get(name string) string {
	for _, l := range s.labels {
		if l.name == name {
			return l.value
		}
	}
	return ""
}

// series names the labels without le: the buckets, the sum and the count of one histogram share it.
func (s sample) series() string { return s.seriesWithout("le") }

// seriesWithout names the labels but for some.
func (s sample) seriesWithout(names ...string) string {
	var parts []string
	for _, l := range s.labels {
		if !slices.Contains(names, l.name) {
			parts = append(parts, l.name+"="+strconv.Quote(l.value))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// Names of histograms, counters and gauges in this package.
const (
	TTFT, TPOT, ITL, E2E, Queue        = "ttft", "tpot", "itl", "e2e", "queue_time"
	Inference, PrefillTime, DecodeTime = "inference_time", "prefill_time", "decode_time"
	PromptLen, OutputLen               = "request_prompt_tokens", "request_generation_tokens"
	ComputedLen                        = "request_prefill_kv_computed_tokens"
	PromptTokens, GenerationTokens     = "prompt_tokens", "generation_tokens"
	CachedTokens                       = "cached_tokens"
	Preemptions                        = "preemptions"
	Requests                           = "requests"
	PrefixQueries, PrefixHits          = "prefix_cache_queries", "prefix_cache_hits"
	SpecAccepted, SpecDrafted          = "spec_accepted", "spec_drafted"
	Running, Waiting, Usage            = "requests_running", "requests_waiting", "kv_cache_usage"
	HitRate, GenerationRate            = "prefix_cache_hit_rate", "generation_throughput"
	AcceptLength, KVTokens             = "spec_acceptance_length", "kv_cache_tokens"
)

// engines by the prefix of their metrics. Some collectors write an underscore for the colon.
var engines = []struct{ prefix, name string }{{"vllm:", "vLLM"}, {"vllm_", "vLLM"}, {"sglang:", "SGLang"},
	{"sglang_", "SGLang"}, {"trtllm_", "TensorRT-LLM"}, {"trtllm:", "TensorRT-LLM"}}

// name of one family: the engine's own, of all versions, without prefix.
type name struct{ of, family string }

// histograms by the engines' names for them. If several names stand for one, the first that has observations is used.
var histograms = []name{
	{TTFT, "time_to_first_token_seconds"},
	{TPOT, "request_time_per_output_token_seconds"}, {TPOT, "time_per_output_token_seconds"},
	{TPOT, "inter_token_latency_seconds"},
	{ITL, "inter_token_latency_seconds"}, {ITL, "time_per_output_token_seconds"},
	{E2E, "e2e_request_latency_seconds"},
	{Queue, "request_queue_time_seconds"}, {Queue, "time_in_queue_requests"}, {Queue, "queue_time_seconds"},
	{Inference, "request_inference_time_seconds"}, {PrefillTime, "request_prefill_time_seconds"},
	{DecodeTime, "request_decode_time_seconds"},
	{PromptLen, "request_prompt_tokens"}, {PromptLen, "prompt_tokens_histogram"},
	{ComputedLen, "request_prefill_kv_computed_tokens"}, {ComputedLen, "uncached_prompt_tokens_histogram"},
	{OutputLen, "request_generation_tokens"}, {OutputLen, "generation_tokens_histogram"},
}

var counters = []name{
	{PromptTokens, "prompt_tokens_total"}, {GenerationTokens, "generation_tokens_total"},
	{CachedTokens, "cached_tokens_total"}, {CachedTokens, "prompt_tokens_cached_total"},
	{CachedTokens, "prompt_cached_tokens_total"}, {Requests, "num_requests_completed_total"},
	{Preemptions, "num_preemptions_total"}, {Preemptions, "num_retracted_requests_total"},
	{Preemptions, "num_retractions_sum"}, {Requests, "num_requests_total"},
	{PrefixQueries, "prefix_cache_queries_total"}, {PrefixQueries, "gpu_prefix_cache_queries_total"},
	{PrefixHits, "prefix_cache_hits_total"}, {PrefixHits, "gpu_prefix_cache_hits_total"},
	{SpecAccepted, "spec_decode_num_accepted_tokens_total"}, {SpecDrafted, "spec_decode_num_draft_tokens_total"},
}

var gauges = []name{
	{Running, "num_requests_running"}, {Running, "num_running_reqs"}, {Waiting, "num_requests_waiting"},
	{Waiting, "num_queue_reqs"},
	{Usage, "kv_cache_usage_perc"}, {Usage, "gpu_cache_usage_perc"}, {Usage, "token_usage"},
	{Usage, "kv_cache_utilization"}, {HitRate, "kv_cache_hit_rate"},
	{HitRate, "gpu_prefix_cache_hit_rate"}, {HitRate, "cache_hit_rate"}, {GenerationRate, "gen_throughput"},
	{GenerationRate, "avg_generation_throughput_toks_per_s"},
	{AcceptLength, "spec_accept_length"}, {AcceptLength, "spec_decode_acceptance_length"},
	{KVTokens, "max_total_num_tokens"},
}

// summed are the gauges that are added up over engines; for others the largest counts.
var summed = map[string]bool{Running: true, Waiting: true, GenerationRate: true, KVTokens: true}

// reasons why requests end, by the labels of vLLM and TensorRT-LLM.
var reasons = map[string]string{"stop": "stop", "length": "length", "abort": "abort", "error": "error",
	"repetition": "repetition", "cancelled": "abort", "timeout": "abort"}

// modelLabels name the model in the labels of a series.
var modelLabels = []string{"model_name", "model"}

// isOwn reports whether a family's name has the prefix of an engine.
func isOwn(family string) bool {
	return slices.ContainsFunc(engines, func(e struct{ prefix, name string }) bool {
		return strings.HasPrefix(family, e.prefix)
	})
}
