package engine

import (
	"strconv"

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
		"section. Use is that cost over the time of a decode step and the peak of the devices: of steps whose marker " +
		"says how many requests they decode. Attention over the context is left out, so that it is a lower bound.",
	Metrics: []report.MetricDef{
		{
			ID: "model.parameters", Unit: report.Count, Better: report.None, Assume: report.Exact, Scale: report.Level,
			Meaning: "weights of all matrices, embeddings among them",
		},
		{
			ID: "model.active_parameters", Unit: report.Count, Better: report.None, Assume: report.Exact, Scale: report.Level,
			Meaning: "weights that one token is multiplied with",
		},
		{
			ID: "model.flops_per_token", Unit: report.Flop, Better: report.None, Assume: report.Exact, Scale: report.Level,
			Meaning: "FLOP of one token's matrices: two for each active weight",
		},
		{
			ID: "model.flops_per_context", Unit: report.Flop, Better: report.None, Assume: report.Exact, Scale: report.Level,
			Meaning: "FLOP of attention for a token and each token of its context",
		},
		{
			ID: "model.kv_bytes_per_token", Unit: report.Bytes, Better: report.None, Assume: report.Exact, Scale: report.Level,
			Meaning: "bytes of the KV cache for a token, in the type of the config",
		},
		{
			ID: "model.weight_bytes", Unit: report.Bytes, Better: report.None, Assume: report.Exact, Scale: report.Level,
			Meaning: "bytes of all weights, in the type of the config",
		},
		{
			ID: "model.flops_utilization", Unit: report.Ratio, Better: report.Higher, Assume: report.Noisy, Scale: report.Level,
			Labels: []string{"phase,batch"}, Meaning: "FLOP of the step's tokens over what the devices could do in the step's mean time",
		},
		{
			ID: "model.bandwidth_utilization", Unit: report.Ratio, Better: report.Higher, Assume: report.Noisy,
			Scale:  report.Level,
			Labels: []string{"phase,batch"}, Meaning: "bytes of the weights, read once in a step, over what the devices' memory could " +
				"move in the step's mean time; of dense models",
		},
	},
	Tables: []report.Table{
		{ID: "model_use", Title: "Use of the devices", File: "model_use.csv", Columns: []report.Column{
			kit.NameCol("phase", "Phase"),
			kit.CountCol("batch", "Requests"),
			kit.CountCol("steps", "Steps"),
			kit.MeanCol("time", "Mean step", "mean_time_ms"),
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
		out.Note("How much of the devices it uses needs a trace with step markers.")
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

// modelUse holds the decode steps of each batch against the peaks of all devices that did work: the model is taken to
// be spread over them.
func modelUse(in *kit.Input, out *kit.Output, m *modelconfig.Model, device *peaks.Device) {
	dtype := map[string]string{"bfloat16": peaks.BF16, "float16": peaks.FP16, "float32": peaks.FP32,
		"float8_e4m3fn": peaks.FP8, "float8_e5m2": peaks.FP8}[m.TorchType]
	peak := device.Flops(dtype)
	n, all := float64(len(in.Timeline.Devices)), 0.0
	all, _ = m.Parameters()
	t := out.Table("model_use")
	for i := range in.Units.Groups {
		g := &in.Units.Groups[i]
		if g.Phase != "decode" || g.Batch <= 0 || g.Count == 0 || g.Time <= 0 {
			continue
		}
		seconds := float64(g.Time) / float64(g.Count) / 1e9
		l := kit.Labels("phase", g.Phase, "batch", strconv.FormatInt(g.Batch, 10))
		out.FromEvidence(file.ModelConfig, 1, "hidden_size", "num_hidden_layers", "torch_dtype")
		var flops, bandwidth *float64
		if peak != nil {
			v := float64(g.Batch) * m.FLOPsPerToken() / (seconds * *peak * n)
			flops = &v
			out.Metric("model.flops_utilization", l, flops).N = g.Count
		}
		if size := m.BytesOf(); size > 0 && m.Experts == 0 && device.Bandwidth > 0 {
			v := all * size / (seconds * device.Bandwidth * n)
			bandwidth = &v
			out.Metric("model.bandwidth_utilization", l, bandwidth).N = g.Count
		}
		t.Row(kit.Text("phase", g.Phase), kit.Int("batch", g.Batch), kit.Int("steps", g.Count),
			kit.Float("time", seconds*1e9), kit.Maybe("flops", flops), kit.Maybe("bandwidth", bandwidth))
	}
	t.Cut(in.Options.Top, "steps").Add()
}
