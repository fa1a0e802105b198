package compat

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/compat/perfopt"
	"github.com/nsys-llm/explain/analyze/internal/evidence/peaks"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
)

var MFU = kit.Section{
	ID: "mfu", Title: "Stage times and MFU",
	Evidence: ofRun,
	Derivation: "Timings and dimensions of llm-perf-opt's metrics.json; floating point operations and bytes of " +
		"the decoder, computed from the dimensions term by term; peaks of the device by the name it reports. One " +
		"request at a time, as llm-perf-opt measures. Its own utilisation undercounts the feed-forward part 1.5 " +
		"times, projections 4 times and attention twice, and looks peaks up by a part of a name: it is shown as " +
		"stated, and not used.",
	Findings: []kit.FindingDef{
		{ID: "decode_dominates", Title: "Decode takes most of a run"},
		{ID: "prefill_dominates", Title: "Prefill takes most of a run"},
		{ID: "decode_memory_bound", Title: "Decode is memory-bandwidth-bound"},
		{ID: "decode_latency_bound", Title: "Decode uses little of either arithmetic or memory"},
	},
	Metrics: []report.MetricDef{
		kit.EventTime("stage.time", report.Lower, report.Leave,
			"mean time of a stage in a run; sam, clip, projector and vision run inside prefill").By("stage"),
		report.Define("stage.tokens", report.Count, report.None, report.Noisy, report.Event, report.Leave,
			"mean tokens that a run generates"),
		kit.Rate("stage.token_rate", report.Higher, report.Leave,
			"mean over runs of generated tokens per second of decode time"),
		report.Define("mfu.flops", report.Flop, report.None, report.Exact, report.Level, report.Leave,
			"floating point operations of a run, by stage; model is prefill and decode").By("stage"),
		kit.Rate("mfu.flop_rate", report.Higher, report.Leave,
			"floating point operations per second of the stage").By("stage"),
		kit.Ratio("mfu.utilization", report.Higher, report.Leave,
			"floating point operations per second over the device's dense peak for the data type").By("stage"),
		report.Define("mfu.bytes", report.Bytes, report.None, report.Exact, report.Level, report.Leave,
			"bytes of weights and KV cache that a run has to move at least, by stage").By("stage"),
		kit.Ratio("mfu.bandwidth_utilization", report.Higher, report.Leave,
			"these bytes per second over the bandwidth of the device's memory").By("stage"),
		kit.Ratio("mfu.stated", report.None, report.Leave,
			"utilisation as llm-perf-opt states it, with its own operation counts and peaks").By("stage"),
		kit.ExactLevel("mfu.prompt_tokens", report.None, report.Leave, "tokens of the prompt, image included: as "+
			"stated, or solved from the utilisation that llm-perf-opt states for prefill"),
		report.Define("mfu.context_tokens", report.Count, report.None, report.Exact, report.Event, report.Leave,
			"mean tokens of context over the decode steps"),
		report.Define("mfu.peak_flops", report.PerSecond, report.None, report.Exact, report.Level, report.Leave,
			"dense peak for the data type, floating point operations per second: of the GPU that ran the session, and of "+
				"the devices of a trace that are other GPUs").By("", "device"),
		report.Define("mfu.peak_bandwidth", report.PerSecond, report.None, report.Exact, report.Level, report.Leave,
			"bandwidth of the device's memory, bytes per second"),
	},
	Tables: []report.Table{
		{ID: "stages", Title: "Stages", File: "stages.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("stage", "Stage"),
			kit.MeanCol("mean", "Mean", "mean_ms"),
			kit.MeanCol("std", "Std", "std_ms"),
			kit.TextCol("note", "Note"),
			kit.FloatCol("flops", "Operations", report.Flop),
			kit.FloatCol("flop_rate", "In a second", report.Flop),
			kit.RatioCol("mfu", "MFU", "mfu_pct"),
			kit.FloatCol("bytes", "Bytes", report.Bytes),
			kit.FloatCol("byte_rate", "Moved per second", report.BytesPerSec),
			kit.RatioCol("bandwidth", "Of the bandwidth", "bandwidth_pct"),
			kit.Wide(kit.RatioCol("stated", "MFU as stated", "stated_mfu_pct")),
		}},
		{ID: "run_tokens", Title: "Tokens of a run", File: "run_tokens.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("quantity", "Quantity"),
			kit.FloatCol("mean", "Mean", ""),
			kit.FloatCol("std", "Std", ""),
		}},
		{ID: "mfu_terms", Title: "Operations by term", File: "mfu_terms.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("stage", "Stage"),
			kit.TextCol("term", "Term"),
			kit.TextCol("formula", "Formula"),
			kit.FloatCol("flops", "Operations", report.Flop),
			kit.RatioCol("share", "Of the stage", "pct_of_stage"),
		}},
		{ID: "mfu_inputs", Title: "What it is computed from", File: "mfu_inputs.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("quantity", "Quantity"),
			kit.FloatCol("value", "Value", ""),
			kit.TextCol("from", "From"),
		}},
	},
	Run: mfu,
}

func mfu(in *kit.Input, out *kit.Output) {
	d := runOf(in)
	if d.Run == nil {
		out.Status(report.Unavailable, "the evidence has no timings of llm-perf-opt (metrics.json)")
		return
	}
	u := &modelRun{run: d.Run, flops: quantity{}, bytes: quantity{}, time: quantity{}}
	for stage, v := range d.Run.Times {
		u.time.add(stage, *v.Mean)
	}
	u.prompt = u.solvePrompt()
	switch {
	case u.prompt != nil && d.Run.Tokens.Mean != nil: // what llm-perf-opt takes for decode
		u.context = new(*u.prompt + *d.Run.Tokens.Mean/2)
	case d.Context > 0:
		u.context = new(float64(d.Context))
	}
	u.count(elementBytes[d.DType])
	for _, q := range []quantity{u.flops, u.bytes, u.time} {
		if p, d := q["prefill"], q["decode"]; p != nil && d != nil {
			q["model"] = new(*p + *d)
		}
	}
	gpu := cmp.Or(d.GPU, in.GPUName()) // the device that env.json names, else that of the trace if all are alike
	device := peaks.Lookup(gpu)
	var peak, bandwidth *float64
	if device != nil {
		peak, bandwidth = device.Flops(peakType[d.DType]), &device.Bandwidth
	}
	u.emit(out, peak, bandwidth)
	u.inputs(out, d, gpu, device, peak, bandwidth)
	switch {
	case d.Run.Dims == nil:
		out.Status(report.Partial, "no file states the model's dimensions: timings only")
	case u.prompt == nil && u.context == nil:
		out.Status(report.Partial, "no file states how long the prompt is, and it cannot be solved from what llm-perf-opt states: no operation counts")
	case d.DType == "":
		out.Status(report.Partial, "no file states the model's data type: operation counts without utilisation")
	case device == nil:
		out.Status(report.Partial, "the device is not in the table of peaks: operation counts without utilisation")
	}
	out.Note("Operations are counted for a dense decoder with a gated feed-forward part (three matrices). A mixture of experts " +
		"runs its router and only the chosen experts; d_ff alone does not give that count.")
	out.Note("Bytes are a lower bound: each step reads the weights once, reads the context's keys and values, and " +
		"writes those of new tokens. Activations are left out.")
	mfuFindings(out, u, peak, bandwidth)
}

// elementBytes is the size of one element of weights and of the KV cache.
var elementBytes = map[string]float64{"bfloat16": 2, "float16": 2, "float32": 4, "fp8": 1}

// peakType is the peak that a data type is compared with. PyTorch multiplies float32 without tensor cores by default.
var peakType = map[string]string{"bfloat16": peaks.BF16, "float16": peaks.FP16, "float32": peaks.FP32, "fp8": peaks.FP8}

// mfuStages are in the order of the table; those without an operation count have timings only.
var mfuStages = []string{"prefill", "decode", "model", "vision", "sam", "clip", "projector"}

// wholeStages are the stages whose operations are counted, with a note.
var wholeStages = map[string]string{"prefill": "", "decode": "", "model": "prefill and decode"}

func (u *modelRun) emit(out *kit.Output, peak, bandwidth *float64) {
	r := u.run
	t := out.Table("stages")
	for _, stage := range mfuStages {
		l := kit.Labels("stage", stage)
		time := u.time[stage]
		stated := r.Stated[stage]
		if time == nil && stated == 0 {
			continue
		}
		note, whole := wholeStages[stage]
		if !whole {
			note = "inside prefill"
		}
		out.FromEvidence(perfopt.Kind, 1, r.File, "aggregates")
		out.Known("stage.time", l, r.Times[stage].Mean)
		out.FromEvidence(perfopt.Kind, 1, r.File, "aggregates", "model_dims", "mfu_per_stage", "peak_tflops")
		flops, bytes := u.flops[stage], u.bytes[stage]
		rate, moved := over(flops, time, 1e9), over(bytes, time, 1e9)
		used, busy := over(rate, peak, 1), over(moved, bandwidth, 1)
		if whole {
			out.Metric("mfu.flops", l, flops)
			out.Metric("mfu.flop_rate", l, rate)
			out.Metric("mfu.utilization", l, used)
			out.Metric("mfu.bytes", l, bytes)
			out.Metric("mfu.bandwidth_utilization", l, busy)
		}
		row := []kit.Field{
			kit.Text("stage", stage), kit.Maybe("mean", time), kit.Maybe("std", r.Times[stage].Std), kit.Text("note", note),
			kit.Maybe("flops", flops), kit.Maybe("flop_rate", rate), kit.Maybe("mfu", used),
			kit.Maybe("bytes", bytes), kit.Maybe("byte_rate", moved), kit.Maybe("bandwidth", busy),
		}
		if stated > 0 {
			out.Float("mfu.stated", l, stated)
			row = append(row, kit.Float("stated", stated))
		}
		t.Partial(row...)
	}
	t.Add()
	out.FromEvidence(perfopt.Kind, 1, r.File, "aggregates")
	run := out.Table("run_tokens")
	for _, x := range []struct {
		id, name string
		value    perfopt.Value
	}{{"stage.tokens", "Tokens", r.Tokens}, {"stage.token_rate", "Tokens per second", r.Rate}} {
		if x.value.Mean != nil {
			out.Metric(x.id, nil, x.value.Mean)
			run.Row(kit.Text("quantity", x.name), kit.Maybe("mean", x.value.Mean), kit.Maybe("std", x.value.Std))
		}
	}
	run.Add()
	terms := out.Table("mfu_terms")
	for _, x := range u.terms {
		terms.Row(
			kit.Text("stage", x.stage), kit.Text("term", x.name), kit.Text("formula", x.formula),
			kit.Float("flops", x.flops), kit.Maybe("share", stat.Ratio(x.flops, *u.flops[x.stage])))
	}
	terms.Add()
}

// inputs lists every number in the terms, and its source.
func (u *modelRun) inputs(out *kit.Output, d *perfopt.Data, gpu string, device *peaks.Device, peak,
	bandwidth *float64) {
	t := out.Table("mfu_inputs")
	row := func(name string, v *float64, from string) {
		if v != nil && *v > 0 {
			t.Row(kit.Text("quantity", name), kit.Float("value", *v), kit.Text("from", from))
		}
	}
	metrics := u.run.File
	if x := u.run.Dims; x != nil {
		row("d, width of the model", &x.Model, metrics)
		row("d_ff, width of the feed-forward part", &x.FF, metrics)
		row("L, layers", &x.Layers, metrics)
	}
	row("S, tokens of the prompt", u.prompt, "solved from the stated utilisation of prefill")
	row("T, tokens generated", u.run.Tokens.Mean, metrics)
	row("C, tokens of context", u.context, "S + T / 2, or as configured")
	size := elementBytes[d.DType]
	row("bytes of an element", &size, "config.yaml: "+d.DType)
	if device != nil {
		row("peak, operations per second", peak, gpu+", dense; "+device.Source)
		row("peak, bytes per second", bandwidth, device.Source)
	}
	t.Add()
	out.FromEvidence(perfopt.Kind, 1, metrics, "model_dims", "aggregates", "mfu_per_stage")
	out.Metric("mfu.prompt_tokens", nil, u.prompt)
	out.Metric("mfu.context_tokens", nil, u.context)
	out.FromEvidence(perfopt.Kind, 1, "env.json", "gpu", "config.yaml", "model.dtype")
	out.Metric("mfu.peak_flops", nil, peak)
	if in := out.In; !in.NoTrace {
		for i := range in.Timeline.Devices {
			id := in.Timeline.Devices[i].ID
			if name := in.Trace.GPU(id).Name; name != gpu {
				out.Metric("mfu.peak_flops", kit.Labels("device", strconv.Itoa(int(id))), peaks.Lookup(name).Flops(peakType[d.DType]))
			}
		}
	}
	out.Metric("mfu.peak_bandwidth", nil, bandwidth)
	if gpu != "" && device == nil {
		out.Warn("unknown_device", "The device of the run is not in the table of peaks, so utilisation is unknown: explain does not guess.")
	}
	if d.Inputs > 0 {
		out.Note("inputs.yaml lists " + strconv.FormatInt(d.Inputs, 10) + " inputs.")
	}
}

// A stage is a finding if it dominates by llm-perf-opt's rule. Below the first utilisation neither arithmetic nor
// memory limits a stage; above the second memory does.
const (
	stageDominates = 1.2
	stageIdleFlops = 0.10
	stageIdleBytes = 0.30
	stageBusyBytes = 0.60
)

func mfuFindings(out *kit.Output, u *modelRun, peak, bandwidth *float64) {
	prefill, decode := u.time["prefill"], u.time["decode"]
	if prefill != nil && decode != nil {
		evidence := []report.MetricRef{kit.Ref("stage.time", "stage", "decode"),
			kit.Ref("stage.time", "stage", "prefill")}
		const ms = 1e6
		switch {
		case *decode >= stageDominates*max(ms, *prefill):
			out.Find("decode_dominates", evidence,
				"Fuse attention (FlashAttention), keep the KV cache contiguous and no longer than needed, and serve several requests at once: decode of one request moves all weights for each token.")
		case *prefill >= stageDominates*max(ms, *decode):
			slices.Reverse(evidence)
			out.Find("prefill_dominates", evidence,
				"Look at image resolution and preprocessing (base_size, patch_size, crops): they set how many tokens a prompt has. A lighter vision encoder helps if the vision stages take most of the time.")
		}
	}
	used := over(over(u.flops["decode"], decode, 1e9), peak, 1)
	busy := over(over(u.bytes["decode"], decode, 1e9), bandwidth, 1)
	if used == nil || busy == nil {
		return
	}
	evidence := []report.MetricRef{kit.Ref("mfu.utilization", "stage", "decode"),
		kit.Ref("mfu.bandwidth_utilization", "stage", "decode")}
	switch {
	case *busy >= stageBusyBytes:
		out.Find("decode_memory_bound", evidence,
			"Batch more requests, which read the weights once for all, or quantise weights and KV cache.")
	case *used < stageIdleFlops && *busy < stageIdleBytes:
		out.Find("decode_latency_bound", evidence,
			"The time goes between kernels, or into kernels too small to fill the device: a trace says which. Launch steps as CUDA graphs (torch.compile(mode=\"reduce-overhead\")), and avoid synchronisation between CPU and GPU in each step.")
	}
}

// term is one part of the operations of a stage.
type term struct {
	stage, name, formula string
	flops                float64
}

// quantity is a number by stage; that of the model is prefill and decode, since the vision stages run inside prefill.
type quantity map[string]*float64

func (q quantity) add(stage string, v float64) {
	q[stage] = new(report.ValueOr(q[stage], 0) + v)
}

// modelRun is a run, and the numbers that can be computed from it.
type modelRun struct {
	run                *perfopt.Run
	prompt, context    *float64 // tokens
	terms              []term
	flops, bytes, time quantity // time in ns
}

// solvePrompt finds the tokens of the prompt. llm-perf-opt does not write down their number, but the utilisation that it
// states for prefill depends on it: the length S solves L (4 d d_ff + 2 d²) S + L d S (S + 1) = MFU × peak × time, and
// is a whole number if the file is consistent.
func (u *modelRun) solvePrompt() *float64 {
	r := u.run
	stated, prefill := r.Stated["prefill"], r.Times["prefill"].Mean
	if r.Dims == nil || r.StatedMax == nil || prefill == nil || stated <= 0 {
		return nil
	}
	d, ff, l := r.Dims.Model, r.Dims.FF, r.Dims.Layers
	a, b := l*d, l*(4*d*ff+2*d*d)+l*d
	c := stated * *r.StatedMax * *prefill / 1e9
	s := 2 * c / (b + math.Sqrt(b*b+4*a*c))
	if whole := math.Round(s); whole >= 1 && whole < 1e8 && math.Abs(s-whole) < 0.01 {
		return &whole
	}
	return nil
}

// count adds up the operations, two for each multiplication with its addition, and the bytes that must move if the size
// of an element is known, not 0.
func (u *modelRun) count(size float64) {
	r, d := u.run, u.run.Dims
	if d == nil {
		return
	}
	add := func(stage, name, formula string, flops float64) {
		u.terms = append(u.terms, term{stage, name, formula, flops})
		u.flops.add(stage, flops)
	}
	part := func(stage, n string, tokens float64) {
		add(stage, "projections (Q, K, V, O)", n+" L 8 d²", tokens*d.Layers*8*d.Model*d.Model)
		add(stage, "feed-forward, gated", n+" L 6 d d_ff", tokens*d.Layers*6*d.Model*d.FF)
	}
	weights, token := size*d.Layers*(4*d.Model*d.Model+3*d.Model*d.FF), size*d.Layers*2*d.Model
	if u.prompt != nil && u.time["prefill"] != nil {
		s := *u.prompt
		part("prefill", "S", s)
		add("prefill", "attention, causal", "L 2 d S (S + 1)", d.Layers*2*d.Model*s*(s+1))
		if v, t := r.Stated["vision"], u.time["vision"]; v > 0 && t != nil && r.StatedMax != nil {
			add("prefill", "vision encoder", "as llm-perf-opt states it", v**r.StatedMax**t/1e9)
		}
		if size > 0 {
			u.bytes.add("prefill", weights+s*token)
		}
	}
	if u.context != nil && r.Tokens.Mean != nil && u.time["decode"] != nil {
		t := *r.Tokens.Mean
		part("decode", "T", t)
		add("decode", "attention", "T L 4 d C", t*d.Layers*4*d.Model**u.context)
		if size > 0 {
			u.bytes.add("decode", t*(weights+(*u.context+1)*token))
		}
	}
}

// over is a over b, times a factor; nil if one is unknown or b is 0.
func over(a, b *float64, factor float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	return stat.Ratio(*a*factor, *b)
}
