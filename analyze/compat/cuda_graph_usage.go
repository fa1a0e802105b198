package compat

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/nsys-llm/explain/analyze/compat/session"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var CUDAGraphUsage = kit.Section{
	ID: "cuda_graph_usage", Title: "CUDA graphs of the engine",
	Evidence: ofSession,
	Derivation: "Rows of the session's cuda_graph_captures.csv, cuda_graph_usage.csv and " +
		"cuda_graph_timeline.csv, by what a graph was captured for. A batch is padded up to the next captured " +
		"size.",
	Findings: []kit.FindingDef{
		{ID: "cudagraphs_never_run", Title: "CUDA graphs were captured, and none was ever replayed"},
		{ID: "cudagraphs_unused", Title: "Most captured CUDA graphs are never replayed"},
	},
	Metrics: []report.MetricDef{
		kit.ExactLevel("cudagraph.captured", report.None, report.Leave,
			"graphs captured, by what they are for").By("", "mode"),
		kit.NoisyCount("cudagraph.replays", report.None, report.Leave,
			"replays of graphs; in mode PIECEWISE a step replays a graph for each piece of the model").By("", "mode"),
		kit.EventTime("cudagraph.replay_time", report.Lower, report.Leave,
			"median duration of a replay; the summary is over replays").Summarised().By("mode"),
		kit.Ratio("cudagraph.unused", report.None, report.Leave,
			"share of the captured graphs that were never replayed"),
	},
	Tables: []report.Table{
		{ID: "cudagraphs", Title: "Graphs by batch", File: "cudagraphs.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("mode", "Mode"),
			kit.CountCol("padded_tokens", "Padded tokens"),
			kit.CountCol("reqs", "Requests"),
			{ID: "uniform", Title: "Uniform", Kind: report.Bool},
			{ID: "lora", Title: "LoRA", Kind: report.Bool},
			{ID: "captured", Title: "Captured", Kind: report.Bool},
			kit.CountCol("replays", "Replays"),
			kit.RatioCol("share", "Of the mode", "pct_of_mode"),
			kit.MeanCol("mean", "Mean replay", "mean_ms"),
			kit.Wide(kit.MeanCol("captured_at", "Captured at", "captured_at_s")),
		}},
	},
	Run: cudaGraphUsage,
}

// cudagraphUnused is the share of graphs that were never replayed, 0..1, from which the section reports a finding.
const cudagraphUnused = 0.5

// graphSums are the graphs of one mode, or of all.
type graphSums struct{ captured, used, replays int64 }

func cudaGraphUsage(in *kit.Input, out *kit.Output) {
	const captures, usage, timeline = "cuda_graph_captures.csv", "cuda_graph_usage.csv", "cuda_graph_timeline.csv"
	d := sessionOf(in)
	if len(d.Graphs.ByBatch) == 0 {
		sessionLacks(out, d, captures, usage, timeline)
		return
	}
	type entry struct {
		session.Batch
		*session.Graph
	}
	var list []entry
	var all graphSums
	modes := kit.NewTally[string, graphSums]()
	for b, g := range d.Graphs.ByBatch {
		list = append(list, entry{b, g})
		for _, x := range []*graphSums{&all, modes.At(b.Mode)} {
			x.replays += g.Replays
			if g.Captured {
				x.captured++
			}
			if g.Captured && g.Replays > 0 {
				x.used++
			}
		}
	}
	lists.Sort(list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.Replays, a.Replays), cmp.Compare(a.Mode, b.Mode), cmp.Compare(a.Tokens, b.Tokens),
			cmp.Compare(a.Reqs, b.Reqs), cmp.Compare(fmt.Sprint(a.Uniform, a.LoRA), fmt.Sprint(b.Uniform, b.LoRA)))
	})
	t := out.Table("cudagraphs")
	for _, e := range list {
		row := []kit.Field{
			kit.Text("mode", e.Mode), kit.Put("padded_tokens", kit.Known(e.Tokens)),
			kit.Put("reqs", kit.Known(e.Reqs)), kit.Put("uniform", report.B(e.Uniform)),
			kit.Put("lora", report.B(e.LoRA)), kit.Put("captured", report.B(e.Captured)),
			kit.Int("replays", e.Replays), kit.Maybe("share", stat.Ratio(e.Replays, modes.At(e.Mode).replays)),
			kit.Maybe("mean", e.Time.Mean())}
		if e.Captured {
			row = append(row, kit.Float("captured_at", e.CapturedAt*1e9))
		}
		t.Partial(row...)
	}
	t.Cut(in.Options.Top, "replays").Add()

	sorted := slices.Sorted(slices.Values(modes.Keys))
	if d.Had[captures] > 0 {
		fromSession(out, d.Rows[captures], captures, "runtime_mode", "num_tokens")
		out.Int("cudagraph.captured", nil, all.captured)
		for _, mode := range sorted {
			if n := modes.At(mode).captured; n > 0 {
				out.Int("cudagraph.captured", kit.Labels("mode", mode), n)
			}
		}
	}
	if d.Had[usage]+d.Had[timeline] > 0 {
		fromSession(out, d.Rows[usage]+d.Rows[timeline], usage, "runtime_mode", "replay_count")
		out.Int("cudagraph.replays", nil, all.replays)
		for _, mode := range sorted {
			out.Int("cudagraph.replays", kit.Labels("mode", mode), modes.At(mode).replays)
		}
	}
	for _, mode := range slices.Sorted(maps.Keys(d.Graphs.ByMode)) {
		distribution(out, "cudagraph.replay_time", kit.Labels("mode", mode), d.Graphs.ByMode[mode],
			timeline, "descriptor", "duration_ms")
	}
	filesTogether(out, d, usage)
	out.Note("profilemate waits for the GPU after every replay, so replays take longer while it watches, and a step cannot overlap the next one.")
	if all.captured > 0 && d.Had[usage]+d.Had[timeline] > 0 {
		unused := stat.Ratio(all.captured-all.used, all.captured)
		fromSession(out, d.Rows[captures], captures, "num_tokens")
		out.Metric("cudagraph.unused", nil, unused)
		switch {
		case all.replays == 0:
			out.Find("cudagraphs_never_run",
				kit.Refs("cudagraph.captured", "cudagraph.replays"),
				"The steps ran without graphs: their batch sizes are above the largest captured one, or something in them forbids graphs (cascade attention, a LoRA that was not captured). The server's log says which mode each step chose, with --cudagraph-metrics.")
		case *unused >= cudagraphUnused:
			out.Find("cudagraphs_unused",
				kit.Refs("cudagraph.unused", "cudagraph.captured"),
				"Each costs start-up time and memory. Capture the sizes that occur (vLLM: --cudagraph-capture-sizes), and keep them close together there, since a batch is padded up to the next one.")
		}
	}
}
