package section

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/serverlog"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/order"
)

var _ = register(Section{
	ID: "estimated_flops", Title: "Estimated FLOPs and bandwidth", Rank: 360, Evidence: []file.Kind{file.ServerLog},
	Derivation: "vLLM (--enable-mfu-metrics) and SGLang (--enable-mfu-metrics) compute what a batch should cost from the model's dimensions and divide by time: an estimate, not a measurement. Medians are over steady lines, as in the section on serving; the details (VLLM_DEBUG_MFU_METRICS=1) are added up.",
	Metrics: metrics(
		def("serve.model_flops", report.PerSecond, report.Higher, report.Noisy, "FLOP per second on one GPU, estimated (median; the summary is over steady lines, n over all)"),
		def("serve.model_bandwidth", report.PerSecond, report.Higher, report.Noisy, "bytes of memory traffic per second on one GPU, estimated (median; the summary is over steady lines, n over all)"),
		def("serve.model_part_flop", report.Flop, report.None, report.Noisy, "FLOP of a part of the model over all detail lines, estimated", "part"),
		def("serve.model_part_bytes", report.Bytes, report.None, report.Noisy, "bytes that a part of the model reads and writes over all detail lines, estimated", "part"),
		def("serve.model_prefill_tokens", report.Count, report.None, report.Noisy, "prompt tokens of the batches in the detail lines"),
		def("serve.model_decode_tokens", report.Count, report.None, report.Noisy, "generated tokens of the batches in the detail lines"),
	),
	Tables: tables(
		table("estimated_parts", "Parts of the model", "mfu_details.csv", nameCol("part", "Part"), floatCol("flop", "FLOP", report.Flop), floatCol("read_bytes", "Read", report.Bytes), floatCol("write_bytes", "Written", report.Bytes), floatCol("intensity", "FLOP per byte", "")),
	),
	Run: estimatedFlops,
})

func estimatedFlops(in *Input, out *Output) {
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
	out.sampled("serve.model_flops", nil, flops)
	out.sampled("serve.model_bandwidth", nil, bytes)
	if d.Lines == 0 {
		return
	}
	out.FromEvidence(file.ServerLog, int(d.Lines), "MFU details")
	out.Int("serve.model_prefill_tokens", nil, d.PrefillTokens)
	out.Int("serve.model_decode_tokens", nil, d.DecodeToks)
	parts := slices.Clone(d.Parts)
	order.Stable(parts, func(a, b serverlog.Part) int {
		return cmp.Or(cmp.Compare(b.Flops, a.Flops), cmp.Compare(a.Name, b.Name))
	})
	t := out.Table("estimated_parts")
	for _, p := range parts {
		moved := p.Read + p.Write
		intensity := report.Null
		if p.Flops > 0 && moved > 0 {
			intensity = report.F(p.Flops / moved)
		}
		t.Row(report.S(p.Name), report.F(p.Flops), report.F(p.Read), report.F(p.Write), intensity)
		l := Labels("part", p.Name)
		if p.Flops > 0 {
			out.Float("serve.model_part_flop", l, p.Flops)
		}
		if moved > 0 {
			out.Float("serve.model_part_bytes", l, moved)
		}
	}
	t.Cut(-1).Add()
}
