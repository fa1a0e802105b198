package engine

import (
	"github.com/nsys-llm/explain/analyze/internal/evidence"
	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/modelconfig"
	"github.com/nsys-llm/explain/analyze/internal/evidence/peaks"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
)

var Model = kit.Section{
	ID: "model", Title: "Model and its use of the GPU", Evidence: []file.Kind{file.ModelConfig},
	Derivation: "What a token costs follows from the dimensions in config.json, by the formulas on the page of this " +
		"section. Use is that cost divided by the time of the steps and the peak of the devices, for steps whose marker " +
		"says how many tokens they compute. Attention over the KV cache is left out, so it is a lower bound.",
	Metrics: []report.MetricDef{
		report.Define("model.parameters", report.Count, report.None, report.Exact, report.Level, report.Leave,
			"weights of all matrices, embeddings among them"),
		report.Define("model.active_parameters", report.Count, report.None, report.Exact, report.Level, report.Leave,
			"weights that one token is multiplied with"),
		report.Define("model.flops_per_token", report.Flop, report.None, report.Exact, report.Level, report.Leave,
			"FLOP of one token's matrices: two for each active weight"),
		report.Define("model.flops_per_context", report.Flop, report.None, report.Exact, report.Level, report.Leave,
			"FLOP of attention for a token and each token of its context"),
		report.Define("model.kv_bytes_per_token", report.Bytes, report.None, report.Exact, report.Level, report.Leave,
			"bytes of the KV cache for a token, in the type of the config"),
		report.Define("model.weight_bytes", report.Bytes, report.None, report.Exact, report.Level, report.Leave,
			"bytes of all weights, in the type of the config"),
		report.Define("model.flops_utilization", report.Ratio, report.Higher, report.Noisy, report.Level, report.Leave,
			"FLOP of the steps' tokens over what the devices could do in the steps' time").By("phase", "phase,batch"),
		report.Define("model.bandwidth_utilization", report.Ratio, report.Higher, report.Noisy, report.Level, report.Leave,
			"bytes of the weights, read once in a step, over what the devices' memory could move in the steps' time; "+
				"of dense models").By("phase", "phase,batch"),
		report.Define("model.ncu_flops_ratio", report.Ratio, report.None, report.Noisy, report.Level, report.Leave,
			"FLOP that Nsight Compute counted of the phase's kernels, over those of the formulas").By("phase"),
		report.Define("model.ncu_coverage", report.Ratio, report.None, report.Noisy, report.Level, report.Leave,
			"share of the phase's compute kernel time whose kernels Nsight Compute counted the FLOP of").By("phase"),
	},
	Tables: []report.Table{
		{ID: "model_use", Title: "Use of the devices", File: "model_use.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NameCol("phase", "Phase"),
			kit.CountCol("batch", "Requests"),
			kit.CountCol("steps", "Steps"),
			kit.RateCol("tokens", "Tokens a step", report.Count),
			kit.MeanCol("time", "Mean step", "mean_time_ms"),
			kit.RateCol("flop", "FLOP a step", report.Flop),
			kit.RatioCol("flops", "Of peak FLOPs", "pct_of_peak_flops"),
			kit.RatioCol("bandwidth", "Of bandwidth", "pct_of_bandwidth"),
		}},
	},
	Run: model,
}

func model(in *kit.Input, out *kit.Output) {
	m := &evidence.Of[*modelconfig.Data](in.Evidence).Model
	all, active := m.Parameters()
	out.FromEvidence(file.ModelConfig, 1, "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
		"intermediate_size", "vocab_size")
	out.Float("model.parameters", nil, all)
	out.Float("model.active_parameters", nil, active)
	out.Float("model.flops_per_token", nil, m.FLOPsPerToken())
	out.Float("model.flops_per_context", nil, m.FLOPsPerContext())
	if size := m.BytesOf(); size > 0 {
		out.Float("model.kv_bytes_per_token", nil, m.KVPerToken()*size)
		out.Float("model.weight_bytes", nil, all*size)
	}
	out.Note("Attention is " + m.Attention() + ". Sizes are in the type that config.json states: a quantised model's are smaller.")
	if in.NoTrace || in.Units.Kind == workunit.KindNone || len(in.Timeline.Devices) == 0 {
		out.Note("The use of the devices needs a trace with step markers.")
		return
	}
	name := in.Trace.GPU(in.Timeline.Devices[0].ID).Name
	device := peaks.Lookup(name)
	if device == nil {
		out.Note("The device of the trace is not in the table of peaks: use is unknown.")
		return
	}
	modelUse(in, out, m, device)
}
