package report

import (
	"slices"
	"strings"
)

// What report.json files of older versions do not say, and how it is made up for. Nobody else guesses.

// ScaleOf is the scale that a metric states. If it states none, as in files of versions that knew no scale, it is what
// id and unit suggest: numbers per unit of work and ratios and rates follow from them, settings and statistics of
// servers from a short list, and the rest is taken for a total, which no gate judges by its change.
func ScaleOf(id, unit string, stated Scale) Scale {
	switch {
	case stated != "":
		return stated
	case id == "unit.count":
		return Total
	case strings.HasPrefix(id, "unit.") || strings.HasSuffix(id, "_per_unit"):
		return PerUnit
	case unit == Ratio || unit == PerSecond || unit == BytesPerSec:
		return Level
	case id == "kernel.duration" || id == "launch.queue_time":
		return Event
	case strings.HasPrefix(id, "serve.") && unit == Count && slices.Contains(settledCounts, id):
		return Level
	case strings.HasPrefix(id, "serve.") && unit != Count && unit != Flop && id != "serve.model_part_bytes":
		return Level
	}
	return Total
}

// settledCounts are counts of servers that are medians or settings, and do not grow.
var settledCounts = []string{
	"serve.requests_running", "serve.requests_waiting", "serve.spec_acceptance_length", "serve.iteration_tokens",
	"serve.request_prompt_tokens", "serve.request_generation_tokens", "serve.kv_cache_tokens", "serve.max_concurrency",
	"serve.max_model_len", "serve.max_num_seqs", "serve.max_batched_tokens",
}
