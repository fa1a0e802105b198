package engine

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/peaks"
	"github.com/nsys-llm/explain/analyze/internal/evidence/serverlog"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

var EstimatedFLOPs = kit.Section{
	ID: "estimated_flops", Title: "Estimated FLOPs and bandwidth", Evidence: []file.Kind{file.ServerLog},
	Derivation: "vLLM (--enable-mfu-metrics) and SGLang (--enable-mfu-metrics) compute what a batch should cost " +
		"from the model's dimensions and divide by time: an estimate, not a measurement. Medians are over steady " +
		"lines, as in the section on serving; the details (VLLM_DEBUG_MFU_METRICS=1) are added up.",
	Metrics: []report.MetricDef{
		kit.Rate("serve.model_flops", report.Higher, report.Leave, "FLOP per second on one GPU, estimated (median; "+
			"the summary is over steady lines, n over all)").Summarised(),
		kit.Rate("serve.model_bandwidth", report.Higher, report.Leave, "bytes of memory traffic per second on one "+
			"GPU, estimated (median; the summary is over steady lines, n over all)").Summarised(),
		kit.Ratio("serve.model_flops_ratio", report.Higher, report.Leave, "that FLOP per second ÷ the device's dense "+
			"peak for the data type of its products: MFU, where a trace names the device"),
		kit.Ratio("serve.model_bandwidth_ratio", report.Higher, report.Leave,
			"those bytes per second ÷ the peak of the device's memory"),
		report.Define("serve.model_part_flop", report.Flop, report.None, report.Noisy, report.Total, report.Leave,
			"FLOP of a part of the model over all detail lines, estimated").By("part"),
		report.Define("serve.model_part_bytes", report.Bytes, report.None, report.Noisy, report.Total, report.Leave,
			"bytes that a part of the model reads and writes over all detail lines, estimated").By("part"),
		kit.NoisyCount("serve.model_prefill_tokens", report.None, report.Leave,
			"prompt tokens of the batches in the detail lines"),
		kit.NoisyCount("serve.model_decode_tokens", report.None, report.Leave,
			"generated tokens of the batches in the detail lines"),
	},
	Tables: []report.Table{
		{ID: "estimated_rates", Title: "Estimated rates of one GPU", File: "mfu.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("statistic", "Steady lines"),
			kit.FloatCol("tflops", "TFLOP per second", report.Count),
			kit.RatioCol("flops_share", "Of peak", "pct_of_peak_flops"),
			kit.FloatCol("gbytes", "GB per second", report.Count),
			kit.RatioCol("bytes_share", "Of peak bandwidth", "pct_of_peak_bandwidth"),
			kit.FloatCol("intensity", "FLOP per byte", ""),
			kit.TextCol("side", "Bound by"),
		}},
		{ID: "estimated_parts", Title: "Parts of the model", File: "mfu_details.csv", Merge: report.Leave, Columns: []report.Column{
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
	flops := sampled(log.Samples, func(s *serverlog.Sample) float64 { return s.Flops }, steady)
	bytes := sampled(log.Samples, func(s *serverlog.Sample) float64 { return s.Bytes }, steady)
	if flops.all == 0 && bytes.all == 0 && d.Lines == 0 {
		out.Status(report.NotApplicable, "the log has no estimate of FLOPs (--enable-mfu-metrics writes it)")
		return
	}
	flops.emit(out, "serve.model_flops", nil)
	bytes.emit(out, "serve.model_bandwidth", nil)
	rates(in, out, flops.steady, bytes.steady)
	if d.Lines == 0 {
		return
	}
	out.FromEvidence(file.ServerLog, int(d.Lines), "MFU details")
	out.Int("serve.model_prefill_tokens", nil, d.PrefillTokens)
	out.Int("serve.model_decode_tokens", nil, d.DecodeToks)
	parts := slices.Clone(d.Parts)
	lists.Sort(parts, func(a, b serverlog.Part) int {
		return cmp.Or(cmp.Compare(b.Flops, a.Flops), cmp.Compare(a.Name, b.Name))
	})
	t := out.Table("estimated_parts")
	for _, p := range parts {
		moved := p.Read + p.Write
		row := []kit.Field{kit.Text("part", p.Name), kit.Float("flop", p.Flops), kit.Float("read_bytes", p.Read),
			kit.Float("write_bytes", p.Write)}
		if p.Flops > 0 && moved > 0 {
			row = append(row, kit.Float("intensity", p.Flops/moved))
		}
		t.Partial(row...)
		l := kit.Labels("part", p.Name)
		if p.Flops > 0 {
			out.Float("serve.model_part_flop", l, p.Flops)
		}
		if moved > 0 {
			out.Float("serve.model_part_bytes", l, moved)
		}
	}
	t.Add()
}

// rates compares the estimates with the peaks of the device, if a trace names it.
func rates(in *kit.Input, out *kit.Output, flops, bytes *report.Summary) {
	device, dtype := peaks.Lookup(in.GPUName()), productType(in.Evidence.Log.Start())
	peak := device.Flops(dtype)
	var bandwidth *float64
	if device != nil && device.Bandwidth > 0 {
		bandwidth = &device.Bandwidth
	}
	over := func(v float64, most *float64) *float64 {
		if most == nil || math.IsNaN(v) {
			return nil
		}
		return new(v / *most)
	}
	median := func(s report.Summary) float64 { return s.P50 }
	unknown := math.NaN()
	most := max(report.ValueOr(over(report.Of(flops, median, unknown), peak), 0),
		report.ValueOr(over(report.Of(bytes, median, unknown), bandwidth), 0))
	if most > 1 {
		out.Warn("estimate_above_peak", "The log's estimate is "+unit.Percent(most)+
			" of this GPU's peak: the log comes from another GPU, or the estimate is wrong. No share of the peak is given.")
	}
	t := out.Table("estimated_rates")
	row := func(name string, of func(s report.Summary) float64) (f, b *float64) {
		flops, bytes := report.Of(flops, of, unknown), report.Of(bytes, of, unknown)
		f, b = believed(over(flops, peak), most), believed(over(bytes, bandwidth), most)
		row := []kit.Field{kit.Text("statistic", name),
			kit.Maybe("tflops", notNaN(flops/1e12)), kit.Maybe("flops_share", f),
			kit.Maybe("gbytes", notNaN(bytes/1e9)), kit.Maybe("bytes_share", b)}
		if name == "median" && flops > 0 && bytes > 0 {
			row = append(row, kit.Float("intensity", flops/bytes))
			if peak != nil && bandwidth != nil {
				row = append(row, kit.Text("side", map[bool]string{true: "memory", false: "compute"}[flops/bytes < *peak / *bandwidth]))
			}
		}
		t.Partial(row...)
		return f, b
	}
	if flops != nil || bytes != nil {
		f, b := row("median", median)
		row("p90", func(s report.Summary) float64 { return s.P90 })
		row("max", func(s report.Summary) float64 { return s.Max })
		lines := func(s report.Summary) int64 { return s.N }
		if peak != nil {
			out.Metric("serve.model_flops_ratio", nil, f).N = report.Of(flops, lines, 0)
		}
		if bandwidth != nil {
			out.Metric("serve.model_bandwidth_ratio", nil, b).N = report.Of(bytes, lines, 0)
		}
	}
	t.Add()
	switch {
	case device == nil:
		out.Note("Shares of the peak need a device that the table of peaks knows; the trace that the log belongs to names it.")
	case peak == nil || bandwidth == nil:
		out.Note("The log states no data type that " + device.Names[0] + " has a peak for: no share of its FLOP per second.")
	default:
		out.Note("Peaks are of " + device.Names[0] + " (" + device.Source + "), dense " + dtype + ": the balance is " +
			strconv.FormatFloat(*peak / *bandwidth, 'f', 0, 64) + " FLOP per byte.")
	}
}

// productType is the type in which the model's products are computed, as far as the server's start tells.
func productType(s *serverlog.Start) string {
	switch {
	case strings.Contains(s.Quantization, "nvfp4"), s.Quantization == "modelopt_fp4":
		return peaks.FP4
	case strings.Contains(s.Quantization, "fp8"):
		return peaks.FP8
	case strings.Contains(s.Quantization, "fp4"): // of weights: the type of the products depends on the kernel
		return ""
	}
	return productTypes[s.DType]
}
