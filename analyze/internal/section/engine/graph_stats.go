package engine

import (
	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
)

var GraphStats = kit.Section{
	ID: "graph_stats", Title: "CUDA graph statistics", Evidence: []file.Kind{file.ServerLog},
	Derivation: "The tables that vLLM logs with --cudagraph-metrics, each for the time since the one before, added up. " +
		"Padding is the tokens that a batch was filled up with to reach the size of a captured graph: " +
		"the sum of paddings × count over the sum of padded tokens × count.",
	Findings: []kit.FindingDef{
		{ID: "graph_padding", Title: "A large part of the tokens in CUDA graphs is padding"},
		{ID: "batches_without_graph", Title: "Many batches ran without a CUDA graph"},
	},
	Metrics: []report.MetricDef{
		kit.NoisyCount("serve.graph_batches", report.None, report.Leave,
			"batches that ran, in CUDA graphs or not").By("", "mode"),
		kit.Ratio("serve.graph_mode_share", report.None, report.Leave,
			"share of batches that ran in this mode: FULL, PIECEWISE, or NONE without a CUDA graph").By("mode"),
		kit.Ratio("serve.graph_padding", report.Lower, report.Leave,
			"share of the tokens of batches that is padding").By("", "mode"),
	},
	Tables: []report.Table{
		{ID: "cuda_graph_modes", Title: "Modes", File: "cuda_graph_modes.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("mode", "Mode"),
			kit.CountCol("batches", "Batches"),
			kit.RatioCol("share", "Share", "pct_of_batches"),
			kit.CountCol("padded", "Padded tokens"),
			kit.CountCol("paddings", "Paddings"),
			kit.RatioCol("padding", "Padding", "padding_pct"),
		}},
		{ID: "cuda_graph_stats", Title: "Batches", File: "cuda_graph_stats.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("mode", "Mode"),
			kit.IDCol("unpadded_tokens", "Unpadded tokens"),
			kit.IDCol("padded_tokens", "Padded tokens"),
			kit.IDCol("num_paddings", "Paddings"),
			kit.CountCol("count", "Batches"),
		}},
	},
	Run: cudaGraphStats,
}

// Bounds from which CUDA graph statistics are a finding.
const (
	graphPadding = 0.20
	noGraphShare = 0.30 // of batches
)

// graphMode is the sums over the batches of one mode.
type graphMode struct{ batches, padded, paddings int64 }

func cudaGraphStats(in *kit.Input, out *kit.Output) {
	g := &in.Evidence.Log.Graphs
	out.FromEvidence(file.ServerLog, int(g.Lines), "CUDAGraph Stats")
	rows := g.Rows()
	if len(rows) == 0 {
		out.Status(report.NotApplicable, "the log has no CUDA graph statistics (vLLM: --cudagraph-metrics writes them)")
		return
	}
	var all graphMode
	modes := kit.NewTally[string, graphMode]()
	t := out.Table("cuda_graph_stats")
	for _, r := range rows {
		for _, x := range []*graphMode{modes.At(r.Mode), &all} {
			x.batches += r.Count
			x.padded += r.Padded * r.Count
			x.paddings += r.Paddings * r.Count
		}
		t.Row(
			kit.Text("mode", r.Mode), kit.Int("unpadded_tokens", r.Unpadded), kit.Int("padded_tokens", r.Padded),
			kit.Int("num_paddings", r.Paddings), kit.Int("count", r.Count))
	}
	out.Int("serve.graph_batches", nil, all.batches)
	out.Metric("serve.graph_padding", nil, stat.Ratio(all.paddings, all.padded))
	s := out.Table("cuda_graph_modes")
	for i, name := range modes.Keys {
		m, l := modes.Values[i], kit.Labels("mode", name)
		out.Int("serve.graph_batches", l, m.batches)
		out.Metric("serve.graph_mode_share", l, stat.Ratio(m.batches, all.batches))
		out.Metric("serve.graph_padding", l, stat.Ratio(m.paddings, m.padded))
		s.Row(
			kit.Text("mode", name), kit.Int("batches", m.batches),
			kit.Maybe("share", stat.Ratio(m.batches, all.batches)), kit.Int("padded", m.padded),
			kit.Int("paddings", m.paddings), kit.Maybe("padding", stat.Ratio(m.paddings, m.padded)))
	}
	s.Add()
	t.Cut(1000, "count").Add()
	if g.Dropped > 0 {
		out.Warn("graph_rows_dropped",
			"There are more distinct rows of CUDA graph statistics than are kept; the rest is not counted.")
	}
	if p := stat.Ratio(all.paddings, all.padded); p != nil && *p >= graphPadding {
		out.Find("graph_padding", kit.Refs("serve.graph_padding", "serve.graph_batches"),
			"Capture the sizes that batches really have (--cuda-graph-sizes, compilation_config.cudagraph_capture_sizes); the table says which.")
	}
	if m := modes.At("NONE"); float64(m.batches) >= noGraphShare*float64(all.batches) && m.batches < all.batches {
		out.Find("batches_without_graph",
			[]report.MetricRef{kit.Ref("serve.graph_mode_share", "mode", "NONE"), kit.Ref("serve.graph_batches")},
			"Batches larger than the largest captured size run without one: raise it, or look in the table for what else sets them apart.")
	}
}
