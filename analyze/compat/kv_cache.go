package compat

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/report"
)

var KVCache = kit.Section{
	ID: "kv_cache", Title: "KV cache blocks",
	Evidence: ofSession,
	Derivation: "Rows of the session's kv_cache_usage.csv and kv_cache_evictions.csv; kv_cache_summary.txt where " +
		"these are missing.",
	Findings: []kit.FindingDef{
		{ID: "kv_cache_unused", Title: "Most of the KV cache is never used"},
		{ID: "kv_cache_full", Title: "The KV cache is full"},
		{ID: "kv_blocks_short_lived", Title: "Blocks of the KV cache are evicted soon after they are allocated"},
	},
	Metrics: []report.MetricDef{
		kit.Ratio("kv.usage", report.None, report.Leave,
			"mean share of the KV cache in use; the summary is over samples").Summarised(),
		kit.ExactLevel("kv.blocks", report.None, report.Leave, "blocks of the KV cache; unknown if files disagree"),
		kit.NoisyCount("kv.blocks_peak", report.None, report.Leave, "most blocks in use at once"),
		kit.NoisyCount("kv.evictions", report.Lower, report.Leave, "blocks evicted"),
		kit.EventTime("kv.block_lifetime", report.Higher, report.Leave,
			"median time from a block's allocation to its eviction; the summary is over evictions").Summarised(),
		kit.EventTime("kv.block_idle", report.None, report.Leave,
			"median time from a block's last use to its eviction; the summary is over evictions").Summarised(),
	},
	Tables: []report.Table{
		{ID: "kv_evictions", Title: "Evicted blocks", File: "kv_evictions.csv", Merge: report.Leave, Columns: slices.Concat([]report.Column{
			kit.TextCol("what", "Time"),
			kit.CountCol("blocks", "Blocks"),
		}, sampleCols())},
	},
	Run: kvCache,
}

// profilemate's bounds on the mean usage, and on the mean lifetime of a block.
const (
	kvLow       = 0.40
	kvHigh      = 0.90
	kvShortLife = 5e9 // ns
)

func kvCache(in *kit.Input, out *kit.Output) {
	const usage, evictions, summary = "kv_cache_usage.csv", "kv_cache_evictions.csv", "kv_cache_summary.txt"
	d := sessionOf(in)
	c, s := &d.Cache, &d.Summaries.Cache
	if c.Usage.N() == 0 && c.Evictions == 0 && d.Rows[summary] == 0 {
		sessionLacks(out, d, usage, evictions)
		return
	}
	if c.Usage.N() > 0 {
		meanOf(out, "kv.usage", nil, &c.Usage.Sample, usage, "usage_pct", "num_blocks", "total_blocks")
		out.Metric("kv.blocks", nil, floatOf(c.Blocks.Value()))
		if c.Used > 0 {
			out.Int("kv.blocks_peak", nil, c.Used)
		}
		filesTogether(out, d, usage)
		out.Chart(kit.Lines("kv_usage", "KV cache in use over time", report.Ratio, sinceStart, overTime("in use", &c.Usage.OverTime)))
	} else if blocks := s.Blocks.Value(); blocks != nil {
		fromSession(out, 1, summary, "Total blocks available", "Peak blocks used")
		out.Int("kv.blocks", nil, *blocks)
		out.Int("kv.blocks_peak", nil, s.Used)
	}
	switch {
	case c.Evictions > 0:
		fromSession(out, c.Evictions, evictions, "lifetime_sec", "idle_sec")
		out.Int("kv.evictions", nil, c.Evictions)
		distribution(out, "kv.block_lifetime", nil, &c.Lifetime)
		distribution(out, "kv.block_idle", nil, &c.Idle)
		t := out.Table("kv_evictions")
		t.Partial(append(sampleFields(t, &c.Lifetime), kit.Text("what", "from allocation to eviction"),
			kit.Int("blocks", c.Evictions))...)
		t.Partial(append(sampleFields(t, &c.Idle), kit.Text("what", "from last use to eviction"),
			kit.Int("blocks", c.Evictions))...)
		t.Add()
	case d.Rows[summary] > 0:
		fromSession(out, 1, summary, "Total evictions", "Avg block lifetime", "Avg idle before eviction")
		out.Int("kv.evictions", nil, s.Evictions)
		if c.Lifetime.Stated() {
			distribution(out, "kv.block_lifetime", nil, &c.Lifetime)
			distribution(out, "kv.block_idle", nil, &c.Idle)
			out.Note("kv_cache_summary.txt states means: the values of `kv.block_lifetime` and `kv.block_idle` are means here.")
		}
	}
	if c.Usage.N() == 0 {
		out.Status(report.Partial, "the session has no samples of the cache's usage")
	}

	if mean := c.Usage.Mean(); mean != nil && *mean < kvLow {
		out.Find("kv_cache_unused", kit.Refs("kv.usage"),
			"There is room for more requests at once: raise --max-num-seqs, or send more load. Free memory costs nothing.")
	} else if mean != nil && *mean > kvHigh {
		out.Find("kv_cache_full", kit.Refs("kv.usage"),
			"Raise --gpu-memory-utilization, quantise the KV cache (--kv-cache-dtype fp8), or spread the model over more GPUs; else lower --max-num-seqs, before requests are preempted.")
	}
	if mean := c.Lifetime.Mean(); mean != nil && *mean < kvShortLife {
		out.Find("kv_blocks_short_lived", kit.Refs("kv.block_lifetime", "kv.evictions"),
			"The prefix cache is too small to keep its blocks: give it more memory, or expect few hits.")
	}
}
