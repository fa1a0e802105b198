package engine

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/serverlog"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/report"
)

var EstimatedFLOPs = kit.Section{
	ID: "estimated_flops", Title: "Estimated FLOPs and bandwidth", Evidence: []file.Kind{file.ServerLog},
	Derivation: "vLLM (--enable-mfu-metrics) and SGLang (--enable-mfu-metrics) compute what a batch should cost " +
		"from the model's dimensions and divide by time: an estimate, not a measurement. Medians are over steady " +
		"lines, as in the section on serving; the details (VLLM_DEBUG_MFU_METRICS=1) are added up.",
	Metrics: []report.MetricDef{
		{
			ID: "serve.model_flops", Unit: report.PerSecond, Better: report.Higher, Assume: report.Noisy,
			Scale: report.Level, Stats: true,
			Meaning: "FLOP per second on one GPU, estimated (median; the summary is over steady lines, n over " +
				"all)",
		},
		{
			ID: "serve.model_bandwidth", Unit: report.PerSecond, Better: report.Higher, Assume: report.Noisy,
			Scale: report.Level, Stats: true,
			Meaning: "bytes of memory traffic per second on one GPU, estimated (median; the summary is over " +
				"steady lines, n over all)",
		},
		{
			ID: "serve.model_part_flop", Unit: report.Flop, Better: report.None, Assume: report.Noisy,
			Scale: report.Total, Labels: []string{"part"},
			Meaning: "FLOP of a part of the model over all detail lines, estimated",
		},
		{
			ID: "serve.model_part_bytes", Unit: report.Bytes, Better: report.None, Assume: report.Noisy,
			Scale: report.Total, Labels: []string{"part"},
			Meaning: "bytes that a part of the model reads and writes over all detail lines, estimated",
		},
		{
			ID: "serve.model_prefill_tokens", Unit: report.Count, Better: report.None, Assume: report.Noisy,
			Scale:   report.Total,
			Meaning: "prompt tokens of the batches in the detail lines",
		},
		{
			ID: "serve.model_decode_tokens", Unit: report.Count, Better: report.None, Assume: report.Noisy,
			Scale:   report.Total,
			Meaning: "generated tokens of the batches in the detail lines",
		},
	},
	Tables: []report.Table{
		{ID: "estimated_parts", Title: "Parts of the model", File: "mfu_details.csv", Columns: []report.Column{
			kit.NameCol("part", "Part"),
			kit.FloatCol("flop", "FLOP", report.Flop),
			kit.FloatCol("read_bytes", "Read", report.Bytes),
			kit.FloatCol("write_bytes", "Written", report.Bytes),
			kit.FloatCol("intensity", "FLOP per byte", ""),
		}},
	},
	Run: estimatedFlops,
}

func estimatedFlops(in *kit.Input, out *kit.Output) {
	log := in.Evidence.Log
	d := &log.Details
	out.FromEvidence(file.ServerLog, len(log.Samples), "MFU")
	steady := func(i int) bool { return log.Samples[i].Steady }
	flops := sampled(len(log.Samples), func(i int) float64 { return log.Samples[i].Flops }, steady)
	bytes := sampled(len(log.Samples), func(i int) float64 { return log.Samples[i].Bytes }, steady)
	if flops.all == 0 && bytes.all == 0 && d.Lines == 0 {
		out.Status(report.NotApplicable, "the log has no estimate of FLOPs (--enable-mfu-metrics writes it)")
		return
	}
	emitSampled(out, "serve.model_flops", nil, flops)
	emitSampled(out, "serve.model_bandwidth", nil, bytes)
	if d.Lines == 0 {
		return
	}
	out.FromEvidence(file.ServerLog, int(d.Lines), "MFU details")
	out.Int("serve.model_prefill_tokens", nil, d.PrefillTokens)
	out.Int("serve.model_decode_tokens", nil, d.DecodeToks)
	parts := slices.Clone(d.Parts)
	slices.SortStableFunc(parts, func(a, b serverlog.Part) int {
		return cmp.Or(cmp.Compare(b.Flops, a.Flops), cmp.Compare(a.Name, b.Name))
	})
	t := out.Table("estimated_parts")
	for _, p := range parts {
		moved := p.Read + p.Write
		intensity := report.Null
		if p.Flops > 0 && moved > 0 {
			intensity = report.F(p.Flops / moved)
		}
		t.Row(
			kit.Text("part", p.Name), kit.Float("flop", p.Flops), kit.Float("read_bytes", p.Read),
			kit.Float("write_bytes", p.Write), kit.Put("intensity", intensity))
		l := kit.Labels("part", p.Name)
		if p.Flops > 0 {
			out.Float("serve.model_part_flop", l, p.Flops)
		}
		if moved > 0 {
			out.Float("serve.model_part_bytes", l, moved)
		}
	}
	t.Cut(-1).Add()
}
