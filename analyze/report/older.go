package report

import (
	"slices"
	"strconv"
	"strings"
)

// What report.json files of older versions do not say, and how it is made up for. Nobody else guesses.

// ScaleOf is the scale that a metric states. Where it states none, as in files of versions that knew no scale, it is
// what id and unit suggest: numbers per unit of work and ratios and rates are told by them, settings and statistics of
// servers by a short list, and the rest is taken for a total, which no gate judges by its change.
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

func positionID(at int) string { return strconv.Itoa(at + 1) }

// assumeGroups finds the main kind of unit, and the kind of each metric, by the rules that [Index.Groups] states.
func (x *Index) assumeGroups() {
	x.of = map[string]string{}
	if len(x.groups) == 0 || len(x.byID["unit.time"]) == 0 {
		return
	}
	x.main = x.assumedMain()
	for i := range x.Report.Metrics {
		m := &x.Report.Metrics[i]
		if ScaleOf(m.ID, m.Unit, m.Scale) != PerUnit && m.ID != "unit.count" {
			continue
		}
		phase, phased := m.Labels["phase"]
		batch, tokens := m.Labels["batch"], m.Labels["tokens"]
		at := x.main
		switch {
		case phased && batch == "" && tokens == "":
			at = x.PhaseMain(phase)
		case phased:
			at = slices.IndexFunc(x.groups, func(g Group) bool {
				return g.Phase == phase && size(g.Batch) == batch && size(g.Tokens) == tokens
			})
		}
		if at >= 0 {
			x.of[MetricKey(m.ID, m.Labels)] = x.groups[at].ID
		}
	}
}

// size is a batch size or a number of tokens as labels have it, empty where it is not known.
func size(v int64) string {
	if v < 0 {
		return ""
	}
	return strconv.FormatInt(v, 10)
}

func (x *Index) assumedMain() int {
	switch x.Report.Unit.Kind {
	case "iteration": // of a log, whose kinds are in the order of their time
		return 0
	case "nvtx":
	default:
		best := 0
		for i := range x.groups {
			if x.groups[i].Count > x.groups[best].Count {
				best = i
			}
		}
		return best
	}
	shares := map[string]float64{}
	for i := range x.groups {
		shares[x.groups[i].Phase] += x.groups[i].Share
	}
	best := 0
	for i := range x.groups {
		if shares[x.groups[i].Phase] > shares[x.groups[best].Phase] {
			best = i
		}
	}
	return best
}
