package compat_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

// Usage 10, 20, 30, 40 % of 1000 blocks; two evictions, after 1 and 3 s.
func TestKVCache(t *testing.T) {
	r := folderReport(t, sessionFolder)
	sectiontest.WantStatus(t, r, "kv_cache", report.OK, "")
	nearly(t, r, 0.25, "kv.usage")
	sectiontest.Metric(t, r, 1000, "kv.blocks")
	sectiontest.Metric(t, r, 400, "kv.blocks_peak")
	sectiontest.Metric(t, r, 2, "kv.evictions")
	sectiontest.Metric(t, r, 2000*ms, "kv.block_lifetime")
	sectiontest.Metric(t, r, 200*ms, "kv.block_idle")
	wantFindings(t, r, true, "kv_cache_unused", "kv_blocks_short_lived")
	wantFindings(t, r, false, "kv_cache_full")
}

func TestKVCacheFull(t *testing.T) {
	r := filesReport(t, map[string]string{"u.csv": "timestamp_sec,usage_pct,num_blocks,total_blocks\n0.1,95.0,95,100\n0.2,99.0,99,100\n"})
	wantFindings(t, r, true, "kv_cache_full")
	wantFindings(t, r, false, "kv_cache_unused", "kv_blocks_short_lived")
	sectiontest.NoMetric(t, r, "kv.evictions")
}

func TestKVCacheSummaryAlone(t *testing.T) {
	r := filesReport(t, map[string]string{"s.txt": "KV Cache Statistics\n====\n\nTotal blocks available: 4096\nTotal allocations: 15234\nTotal deallocations: 8901\nPeak blocks used: 3456\nPeak usage: 84.38%\nTotal evictions: 2134\nAvg block lifetime: 12.34s\nAvg idle before eviction: 3.45s\n"})
	sectiontest.WantStatus(t, r, "kv_cache", report.Partial, "")
	sectiontest.Metric(t, r, 4096, "kv.blocks")
	sectiontest.Metric(t, r, 3456, "kv.blocks_peak")
	sectiontest.Metric(t, r, 2134, "kv.evictions")
	nearly(t, r, 12340*ms, "kv.block_lifetime")
	nearly(t, r, 3450*ms, "kv.block_idle")
}
