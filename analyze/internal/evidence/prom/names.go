package prom

import "strings"

// Names of histograms, counters and gauges in this package.
const (
	TTFT, TPOT, ITL, E2E, Queue        = "ttft", "tpot", "itl", "e2e", "queue_time"
	Inference, PrefillTime, DecodeTime = "inference_time", "prefill_time", "decode_time"
	PromptLen, OutputLen               = "request_prompt_tokens", "request_generation_tokens"
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
	{"sglang_", "SGLang"}}

// name of one family: the engine's own, of all versions, without prefix.
type name struct{ of, family string }

// histograms by the engines' names for them. Of several that stand for one, the first that has observations is used.
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
	{OutputLen, "request_generation_tokens"}, {OutputLen, "generation_tokens_histogram"},
}

var counters = []name{
	{PromptTokens, "prompt_tokens_total"}, {GenerationTokens, "generation_tokens_total"},
	{CachedTokens, "cached_tokens_total"},
	{Preemptions, "num_preemptions_total"}, {Preemptions, "num_retractions_total"}, {Requests, "num_requests_total"},
	{PrefixQueries, "prefix_cache_queries_total"}, {PrefixQueries, "gpu_prefix_cache_queries_total"},
	{PrefixHits, "prefix_cache_hits_total"}, {PrefixHits, "gpu_prefix_cache_hits_total"},
	{SpecAccepted, "spec_decode_num_accepted_tokens_total"}, {SpecDrafted, "spec_decode_num_draft_tokens_total"},
}

var gauges = []name{
	{Running, "num_requests_running"}, {Running, "num_running_reqs"}, {Waiting, "num_requests_waiting"},
	{Waiting, "num_queue_reqs"},
	{Usage, "kv_cache_usage_perc"}, {Usage, "gpu_cache_usage_perc"}, {Usage, "token_usage"},
	{HitRate, "gpu_prefix_cache_hit_rate"}, {HitRate, "cache_hit_rate"}, {GenerationRate, "gen_throughput"},
	{GenerationRate, "avg_generation_throughput_toks_per_s"},
	{AcceptLength, "spec_accept_length"}, {KVTokens, "max_total_num_tokens"},
}

// summed are the gauges of which several engines' values add up; of others the largest counts.
var summed = map[string]bool{Running: true, Waiting: true, GenerationRate: true, KVTokens: true}

// reasons for which requests end, as vLLM labels them.
var reasons = []string{"stop", "length", "abort", "error", "repetition"}

// modelLabels name the model in the labels of a series.
var modelLabels = []string{"model_name", "model"}

// ownName is a family's name without the engine's prefix, and the engine.
func ownName(family string) (own, engine string, ok bool) {
	for _, e := range engines {
		if own, ok := strings.CutPrefix(family, e.prefix); ok {
			return own, e.name, true
		}
	}
	return "", "", false
}
