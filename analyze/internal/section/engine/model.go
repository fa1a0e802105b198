package engine

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/evidence"
	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/modelconfig"
	"github.com/nsys-llm/explain/analyze/internal/evidence/peaks"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

var Model = kit.Section{
	ID: "model", Title: "Model and its use of the GPU", Evidence: []file.Kind{file.ModelConfig},
	Derivation: "What a token costs follows from the dimensions in config.json, by the formulas on the page of this " +
		"section. Use is that cost divided by the time of the steps and the peak of the devices, for steps whose marker " +
		"says how many tokens they compute. Attention over the KV cache is left out, so it is a lower bound.",
	Metrics: []report.MetricDef{
		kit.ExactLevel("model.parameters", report.None, report.Leave, "weights of all matrices, embeddings among them"),
		kit.ExactLevel("model.active_parameters", report.None, report.Leave,
			"weights that one token is multiplied with"),
		report.Define("model.flops_per_token", report.Flop, report.None, report.Exact, report.Level, report.Leave,
			"FLOP of one token's matrices: two for each active weight"),
		report.Define("model.flops_per_context", report.Flop, report.None, report.Exact, report.Level, report.Leave,
			"FLOP of attention for a token and each token of its context"),
		report.Define("model.kv_bytes_per_token", report.Bytes, report.None, report.Exact, report.Level, report.Leave,
			"bytes of the KV cache for a token, in the type of the config"),
		report.Define("model.weight_bytes", report.Bytes, report.None, report.Exact, report.Level, report.Leave,
			"bytes of all weights, in the type of the config"),
		kit.Ratio("model.flops_utilization", report.Higher, report.Leave,
			"FLOP of the steps' tokens over what the devices could do in the steps' time").By("phase", "phase,batch"),
		kit.Ratio("model.bandwidth_utilization", report.Higher, report.Leave,
			"bytes of the weights, read once in a step, over what the devices' memory could move in the steps' time; "+
				"of dense models").By("phase", "phase,batch"),
		kit.Ratio("model.ncu_flops_ratio", report.None, report.Leave,
			"FLOP that Nsight Compute counted of the phase's kernels, over those of the formulas").By("phase"),
		kit.Ratio("model.ncu_coverage", report.None, report.Leave,
			"share of the phase's compute kernel time whose kernels Nsight Compute counted the FLOP of").By("phase"),
	},
	Tables: []report.Table{
		{ID: "model_use", Title: "Use of the devices", File: "model_use.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NameCol("phase", "Phase"),
			kit.CountCol("batch", "Requests"),
			kit.CountCol("steps", "Steps"),
			kit.FloatCol("tokens", "Tokens a step", report.Count),
			kit.MeanCol("time", "Mean step", "mean_time_ms"),
			kit.FloatCol("flop", "FLOP a step", report.Flop),
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

// stepUse sums up steps of one phase, or of one batch size of it. A step has one unit on each device.
type stepUse struct {
	phase  string
	batch  int64 // -1: the whole phase
	units  int64
	time   int64 // ns
	tokens float64
	flops  float64

	ofPeak, ofBandwidth *float64 // shares of what the devices could do
}

// productTypes are the types of products whose peaks are known, by PyTorch's name of a model's type.
var productTypes = map[string]string{"bfloat16": peaks.BF16, "float16": peaks.FP16, "half": peaks.FP16, "float32": peaks.FP32,
	"float8_e4m3fn": peaks.FP8, "float8_e5m2": peaks.FP8}

// modelUse compares the steps whose marker states their work with the peaks of all devices that did work: the model is
// assumed to be spread over all of them.
func modelUse(in *kit.Input, out *kit.Output, m *modelconfig.Model, device *peaks.Device) {
	peak := device.Flops(productTypes[m.TorchType])
	n := float64(len(in.Timeline.Devices))
	all, _ := m.Parameters()
	t := out.Table("model_use")
	uses := usesOf(in, m)
	share := func(u *stepUse, each, peak float64) *float64 { return new(each / (float64(u.time) / 1e9 * peak * n)) }
	most := 0.0
	for _, u := range uses {
		if peak != nil {
			u.ofPeak = share(u, u.flops, *peak)
			most = max(most, *u.ofPeak)
		}
		if size := m.BytesOf(); size > 0 && m.Experts == 0 && device.Bandwidth > 0 {
			u.ofBandwidth = share(u, all*size*float64(u.units), device.Bandwidth)
			most = max(most, *u.ofBandwidth)
		}
	}
	if most > 1 {
		out.Warn("config_mismatch", "config.json does not fit this capture: the steps would use "+unit.Percent(most)+
			" of what the GPU can do. No share of its peaks is given. (Another model, or a model that is spread over more GPUs than were captured.)")
	}
	for _, u := range uses {
		l := kit.Labels("phase", u.phase)
		if u.batch >= 0 {
			l["batch"] = strconv.FormatInt(u.batch, 10)
		}
		out.FromEvidence(file.ModelConfig, 1, "hidden_size", "num_hidden_layers", "torch_dtype")
		out.Source.With(trace.RoleNVTX, "text", "textId")
		flops, bandwidth := believed(u.ofPeak, most), believed(u.ofBandwidth, most)
		if u.ofPeak != nil {
			out.Metric("model.flops_utilization", l, flops).N = u.units
		}
		if u.ofBandwidth != nil {
			out.Metric("model.bandwidth_utilization", l, bandwidth).N = u.units
		}
		each := float64(u.units)
		t.Row(kit.Text("phase", u.phase), kit.Put("batch", kit.Known(u.batch)), kit.Int("steps", u.units),
			kit.Float("tokens", u.tokens/each),
			kit.Float("time", float64(u.time)/each), kit.Float("flop", u.flops/each),
			kit.Maybe("flops", flops), kit.Maybe("bandwidth", bandwidth))
	}
	t.Cut(in.Options.Top, "steps").Add()
	modelNCU(in, out, m)
}

// believed is a share of a peak, or unknown if the largest share of its kind exceeds 1.
func believed(share *float64, most float64) *float64 {
	if most > 1 {
		return nil
	}
	return share
}

// usesOf adds up the kept units by phase, and by phase and batch, the phases with most time first.
func usesOf(in *kit.Input, m *modelconfig.Model) []*stepUse {
	type kind struct {
		phase string
		batch int64
	}
	uses := kit.NewTally[kind, stepUse]()
	add := func(phase string, batch int64, u *workunit.Unit, tokens, flops float64) {
		x := uses.At(kind{phase, batch})
		x.phase, x.batch = phase, batch
		x.units, x.time, x.tokens, x.flops = x.units+1, x.time+u.Time(), x.tokens+tokens, x.flops+flops
	}
	for i := range in.Units.Units {
		u := &in.Units.Units[i]
		phase, batch, tokens, flops := stepCost(in, m, u)
		if flops <= 0 || u.Time() <= 0 {
			continue
		}
		add(phase, -1, u, tokens, flops)
		if batch > 0 {
			add(phase, batch, u, tokens, flops)
		}
	}
	lists.Sort(uses.Values, func(a, b *stepUse) int {
		return cmp.Or(cmp.Compare(min(a.batch, 0), min(b.batch, 0)), cmp.Compare(b.time, a.time),
			cmp.Compare(a.phase, b.phase), cmp.Compare(a.batch, b.batch))
	})
	return uses.Values
}

// stepCost is the FLOP of a kept unit's step, by its marker; 0 if the marker does not state how many tokens.
func stepCost(in *kit.Input, m *modelconfig.Model, u *workunit.Unit) (phase string, batch int64, tokens,
	flops float64) {
	decode, prompt, prompts, ok := in.Units.Tokens(&in.Trace.Ranges, u)
	if !ok {
		return "", -1, 0, 0
	}
	g := &in.Units.Groups[u.Group]
	return g.Phase, g.Batch, float64(decode + prompt), m.StepFLOPs(decode, prompt, prompts)
}

// modelNCU compares the formulas with the FLOP that Nsight Compute counted for the kernels in the steps, if it did.
func modelNCU(in *kit.Input, out *kit.Output, m *modelconfig.Model) {
	match := kit.NewNcuMatch(in.Evidence, in.Trace.Kernels.Names)
	if match == nil || len(in.Units.Of) != len(in.Units.Timeline.Devices) {
		return
	}
	counted := make([]float64, len(in.Trace.Kernels.Names)) // FLOP of a launch; -1: not counted
	for i, name := range in.Trace.Kernels.Names {
		counted[i] = -1
		if k := match.Find(name.Name); k != nil && k.Flops != nil && len(k.Launches) > 0 {
			counted[i] = *k.Flops / float64(len(k.Launches))
		}
	}
	type sums struct {
		formula, measured float64
		time, known, rows int64
	}
	phases := kit.NewTally[string, sums]()
	of := make([]*sums, len(in.Units.Units))
	for i := range in.Units.Units {
		phase, _, _, flops := stepCost(in, m, &in.Units.Units[i])
		if flops <= 0 {
			continue
		}
		of[i] = phases.At(phase)
		of[i].formula += flops / float64(len(in.Timeline.Devices))
	}
	for d, device := range in.Units.Timeline.Devices {
		members := in.Units.Of[d].Walk()
		for i := range device.Len() {
			u := members.Of(i)
			if u == trace.None || of[u] == nil || device.Kind(i) != timeline.KernelWork || device.Class(i) != timeline.Compute {
				continue
			}
			s, dur := of[u], device.End(i)-device.Start(i)
			s.time += dur
			if flops := counted[in.Trace.Kernels.Name(device.Row(i))]; flops >= 0 {
				s.measured, s.known, s.rows = s.measured+flops, s.known+dur, s.rows+1
			}
		}
	}
	for _, phase := range slices.Sorted(slices.Values(phases.Keys)) {
		s := phases.At(phase)
		if s.rows == 0 {
			continue
		}
		out.FromEvidence(file.NCU, int(s.rows), "sm__sass_thread_inst_executed_op_*_pred_on.sum", "sm__ops_path_tensor_*.sum")
		out.Source.With(trace.RoleKernel, "start", "end")
		ratio := s.measured / s.formula
		out.Float("model.ncu_flops_ratio", kit.Labels("phase", phase), ratio).N = s.rows
		out.Metric("model.ncu_coverage", kit.Labels("phase", phase), stat.Ratio(s.known, s.time))
	}
}
