// Package difftest has what the tests of several rooms need: reports of a few metrics, comparisons to show, a list of
// metrics that rules can be held to.
package difftest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/noise"
	"github.com/nsys-llm/explain/diff/internal/rules"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/policy"
)

// Side is a report with the given metrics and a unit of work.
func Side(metrics ...report.Metric) []*report.Report {
	r := &report.Report{Schema: report.SchemaID, Unit: report.Unit{Kind: "nvtx"},
		Environment: report.Environment{GPUs: []report.GPU{{}}}, Metrics: metrics}
	return []*report.Report{r}
}

// Metric is a metric of which less is better.
func Metric(id, unit string, value float64, labels ...string) report.Metric {
	l := report.Labels{}
	for i := 0; i+1 < len(labels); i += 2 {
		l[labels[i]] = labels[i+1]
	}
	return report.Metric{ID: id, Labels: l, Value: &value, Unit: unit, Better: report.Lower, Assume: report.Noisy,
		Scale: scaleOf(id, unit), N: 1}
}

func scaleOf(id, unit string) report.Scale {
	switch {
	case strings.HasPrefix(id, "unit.") || strings.HasSuffix(id, "_per_unit"):
		return report.PerUnit
	case unit == report.Ratio || unit == report.PerSecond || strings.HasPrefix(id, "serve."):
		return report.Level
	case strings.HasSuffix(id, ".duration") || id == "forward.time":
		return report.Event
	}
	return report.Total
}

// Facts are metrics as explain knows them, those that the presets name among them.
func Facts() []report.MetricDef {
	list := []report.MetricDef{
		{ID: "unit.time", Unit: report.Nanoseconds, Better: report.Lower, Labels: []string{"", "device", "phase"}},
		{ID: "unit.launches", Unit: report.Count, Better: report.Lower, Labels: []string{""}},
		{ID: "kernel.time_per_unit", Unit: report.Nanoseconds, Better: report.Lower,
			Labels: []string{"category", "kernel", "kernel,phase"}},
		{ID: "kernel.total_time", Unit: report.Nanoseconds, Better: report.Lower, Labels: []string{"", "kernel"}},
		{ID: "gpu.idle_ratio", Unit: report.Ratio, Better: report.Lower, Labels: []string{"device"}},
		{ID: "gpu.idle_cause_time", Unit: report.Nanoseconds, Better: report.Lower, Labels: []string{"device,cause"}},
		{ID: "graph.coverage", Unit: report.Ratio, Better: report.Higher, Labels: []string{""}},
		{ID: "ranks.held_up_ratio", Unit: report.Ratio, Better: report.Lower, Labels: []string{""}},
		{ID: "ranks.first_ratio", Unit: report.Ratio, Better: report.Lower, Labels: []string{""}},
		{ID: "memcpy.throughput", Unit: report.PerSecond, Better: report.Higher, Labels: []string{"direction"}},
		{ID: "serve.ttft", Unit: report.Nanoseconds, Better: report.Lower, Stats: true, Labels: []string{""}},
		{ID: "serve.tpot", Unit: report.Nanoseconds, Better: report.Lower, Stats: true, Labels: []string{""}},
		{ID: "serve.e2e", Unit: report.Nanoseconds, Better: report.Lower, Stats: true, Labels: []string{""}},
		{ID: "serve.request_token_time", Unit: report.Nanoseconds, Better: report.Lower, Stats: true, Labels: []string{""}},
		{ID: "forward.time", Unit: report.Nanoseconds, Better: report.Lower, Stats: true, Labels: []string{"phase"}},
		{ID: "serve.generation_throughput", Unit: report.PerSecond, Better: report.Higher, Stats: true, Labels: []string{""}},
		{ID: "serve.prompt_throughput", Unit: report.PerSecond, Better: report.Higher, Stats: true, Labels: []string{""}},
		{ID: "serve.spec_acceptance_rate", Unit: report.Ratio, Better: report.Higher, Labels: []string{""}},
		{ID: "load.failure_ratio", Unit: report.Ratio, Better: report.Lower, Labels: []string{""}},
		{ID: "ncu.duration", Unit: report.Nanoseconds, Better: report.Lower, Stats: true, Labels: []string{"kernel"}},
		{ID: "launch.errors", Unit: report.Count, Better: report.Lower, Labels: []string{""}},
		{ID: "quality.lost_data_messages", Unit: report.Count, Better: report.Lower, Labels: []string{""}},
	}
	for i := range list {
		list[i].Scale = scaleOf(list[i].ID, list[i].Unit)
		list[i].Stats = list[i].Stats || list[i].Unit == report.Nanoseconds || list[i].Scale == report.PerUnit
	}
	return list
}

func Policy(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Read(strings.NewReader(text), Facts())
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

// Example is a policy with something of everything.
const Example = `version: 1
preset: llm-serving
unit: auto
stats: {alpha: 0.05, fdr: 0.05, min_captures: 1, on_inconclusive: warn, on_not_comparable: fail}
ignore: {kernels: ["*memset*"], min_share: 0.5%}
rules:                                   # the last match wins
  - {id: step,     metric: unit.time.p50,          level: error, regress: {rel: 3%, abs: 200us}}
  - {id: launches, metric: unit.launches,          level: error, regress: {abs: 1}}
  - {id: attn,     metric: kernel.time_per_unit,   match: {regex: '^(flash|fmha)'}, level: error, regress: {rel: 5%, abs: 20us}}
  - {id: kernels,  metric: kernel.time_per_unit,   match: {glob: "*"}, level: warn, regress: {rel: 10%, abs: 50us}}
budgets:
  - {id: idle, metric: gpu.idle_ratio, max: 15%, level: error}
waivers:
  - {rule: attn, match: {regex: fmha_v2}, ceiling: 12%, expires: 2026-12-31, issue: "#412", reason: "fp8 rollout"}
`

func Day(text string) time.Time {
	d, err := time.Parse(time.DateOnly, text)
	if err != nil {
		panic(err)
	}
	return d
}

func Num(v float64) *float64 { return &v }

func Text(s string) *string { return &s }

func Whole(v int64) *int64 { return &v }

// Regression is a comparison with something of everything: a slower step, one kernel replaced, one added, a
// blocking call.
func Regression() *comparison.Comparison {
	row := func(metric, unit string, base, head float64, class comparison.Class, why string) comparison.Row {
		delta, ratio := head-base, head/base
		return comparison.Row{Metric: metric, Labels: report.Labels{}, Unit: unit,
			Base: &base, Head: &head, Delta: &delta, Ratio: &ratio, Class: class,
			Why: why, NBase: 40, NHead: 38, BaseValues: []float64{base},
			HeadValues: []float64{head}, Unreplicated: true}
	}
	step := row("unit.time.p50", report.Nanoseconds, 10e6, 11.5e6, comparison.Regressed,
		"+15.0 %, interval over units +13.9 % to +16.1 %: the estimate exceeds the noise floor of 5.0 %, and the interval excludes 0")
	step.Interval = &comparison.Interval{Low: 1.139, High: 1.161, Level: 0.95, Method: "block bootstrap"}
	idle := row("unit.gpu_idle.mean", report.Nanoseconds, 1e6, 2e6, comparison.Unsettled, "units differ as much")
	idle.NeedCaptures = Whole(3)
	c := &comparison.Comparison{
		Distribution: comparison.Distribution{Metric: "unit.time", Edges: []float64{100, 200}, Base: []int64{3, 1},
			Head: []int64{1, 3}},
		Schema: comparison.SchemaID, Tool: report.Tool{Name: "explain", Version: "test"}, Comparable: true,
		Depth: comparison.DepthKernel,
		Answer: comparison.Answer{Direction: comparison.Slower, Metric: "unit.time.p50", Change: Num(0.15), From: Num(10e6),
			To: Num(11.5e6), Unit: report.Nanoseconds, Per: "decode step, batch 32", Notes: []string{"launches 71 → 72 per unit"},
			Rest: Num(0.1e6), Rows: []comparison.AnswerRow{
				{Delta: 1e6, Part: comparison.AnswerIdle, What: "GPU waits", Where: "before #60 sample",
					With: []string{"new blocking call cudaStreamSynchronize, 0 → 1 per unit"}},
				{Delta: 0.4e6, Part: comparison.AnswerKernel, What: "kernel flash_fwd<128> → flash_fwd<64> +13.3 %", With: []string{}}}},
		Cause: "+15.0 % slower, 10 → 11.5 ms per decode step, batch 32.",
		Base:  comparison.Side{Names: []string{"base.sqlite"}, Captures: 1},
		Head:  comparison.Side{Names: []string{"head.sqlite"}, Captures: 1},
		Unit: comparison.Unit{Kind: "nvtx", Name: "execute_context_N(M)_generation_K(L)",
			Phase: "decode", Batch: Whole(32), BaseN: 40, HeadN: 38,
			OverlapNeeded: 0.6},
		Primary: []comparison.Row{step,
			row("unit.time.mean", report.Nanoseconds, 10e6, 11.5e6, comparison.Regressed, "as its median"), idle,
			row("unit.launches", report.Count, 71, 72, comparison.Regressed, "counts are exact")},
		Attribution: comparison.Attribution{Metric: "unit.time", Base: 10e6, Head: 11.5e6,
			TotalDelta: 1.5e6, Rows: []comparison.AttributionRow{
				{ID: "compute", Kind: comparison.KindClass, Base: 9e6, Head: 9.5e6, Delta: 0.5e6},
				{ID: "exposed_comm", Kind: comparison.KindClass},
				{ID: "exposed_copy", Kind: comparison.KindClass},
				{ID: "idle", Kind: comparison.KindClass, Base: 1e6, Head: 2e6, Delta: 1e6},
				{ID: "host", Kind: comparison.KindCause, Base: 0.6e6, Head: 1.6e6, Delta: 1e6},
				{ID: "launch", Kind: comparison.KindCause, Base: 0.4e6, Head: 0.4e6},
				{ID: "flash_fwd", Kind: comparison.KindKernel, Base: 3e6,
					Head: 3.4e6, Delta: 0.4e6, CountEffect: Num(0), PerCallEffect: Num(0.4e6)},
				{ID: "extra", Kind: comparison.KindKernel, Head: 0.1e6,
					Delta: 0.1e6, CountEffect: Num(0.1e6), PerCallEffect: Num(0)},
				{ID: "others", Kind: comparison.KindOthers, Base: 6e6, Head: 6e6},
			}},
		Kernels: []comparison.Kernel{
			{BaseName: Text("void flash_fwd<128>(Params)"), HeadName: Text("void flash_fwd<64>(Params)"),
				BaseShort: Text("flash_fwd<128>"), HeadShort: Text("flash_fwd<64>"), PairedBy: "family",
				Category: "attention", Base: Num(3e6), Head: Num(3.4e6), Delta: 0.4e6,
				Ratio: Num(3.4 / 3), BaseCount: Num(32), HeadCount: Num(32), PerCallEffect: 0.4e6,
				Share: Num(0.3), Class: comparison.Regressed,
				Why: "+13.3 %, beyond the noise floor of 5.0 %", Note: "replaced: paired by family"},
			{HeadName: Text("extra"), HeadShort: Text("extra"), Category: "elementwise",
				Head: Num(0.1e6), Delta: 0.1e6, HeadCount: Num(1), CountEffect: 0.1e6,
				Class: comparison.Added, Why: "runs on the head's side only"},
			{BaseName: Text("gemm"), HeadName: Text("gemm"), BaseShort: Text("gemm"), HeadShort: Text("gemm"),
				PairedBy: "exact", Category: "gemm", Base: Num(6e6), Head: Num(6e6), Ratio: Num(1),
				BaseCount: Num(38), HeadCount: Num(38), Share: Num(0.6), Class: comparison.Same,
				Why: "both sides are equal"},
		},
		API: []comparison.API{
			{Name: "cudaLaunchKernel", Kind: "launch", BaseCount: Num(71), HeadCount: Num(72),
				BaseTime: Num(355e3), HeadTime: Num(504e3),
				BaseMean: Num(5e3), HeadMean: Num(7e3), Ratio: Num(1.4), Class: comparison.Regressed},
			{Name: "cudaStreamSynchronize", Kind: "sync", BaseCount: Num(0), HeadCount: Num(1),
				BaseTime: Num(0), HeadTime: Num(20e3), HeadMean: Num(20e3), Class: comparison.Added},
			{Name: "cudaMemcpyAsync", Kind: "copy", BaseCount: Num(4), HeadCount: Num(4), BaseTime: Num(16e3),
				HeadTime: Num(16e3), BaseMean: Num(4e3), HeadMean: Num(4e3), Ratio: Num(1), Class: comparison.Same},
		},
		Structure: []comparison.Structural{
			{ID: "blocking_call/cudaStreamSynchronize",
				Text: "new blocking call cudaStreamSynchronize, 0 → 1 per unit", Base: Num(0), Head: Num(1),
				Class: comparison.Added},
		},
		Parts: []comparison.Part{{Unit: "decode 32", Labels: report.Labels{}, Kind: report.PartIdle, Name: "host", Base: 1e6,
			Head: 2e6, Delta: 1e6, Share: 0.1, Class: comparison.Regressed, P: 1e-6,
			Interval: &comparison.Interval{Low: 0.9e6, High: 1.1e6, Level: 0.9, Method: "t interval over units"}},
			{Unit: "decode 32", Labels: report.Labels{}, Kind: report.PartCopy, Name: "DtoH pageable", Head: 30e3, Delta: 30e3,
				Share: 0.003, Class: comparison.Unsettled, P: 0.5, Hits: &comparison.PartHits{Units: 1, Of: 20}}},
		Mix: []comparison.Mix{
			{Phase: "decode", Batch: Whole(32), Compared: true, BaseCount: 40, HeadCount: 38,
				BaseTime: Num(10e6), HeadTime: Num(11.5e6), Ratio: Num(1.15)},
			{Phase: "prefill", Batch: Whole(1), Tokens: Whole(2048), BaseCount: 4, HeadCount: 0, BaseTime: Num(50e6)},
		},
		Residue: []comparison.Residue{{Field: "exporter_version", Base: "2024.1", Head: "2025.1"},
			{Field: "driver", Base: "550", Head: "570", Soft: true}},
		Counts: comparison.Counts{MetricsCompared: 4, KernelsCompared: 3, KernelsPaired: 2, UnitsBase: 40,
			UnitsHead: 38},
	}
	c.Step = stepByHand()
	Judge(c, Side(), Side(), nil)
	return c
}

// Different is a comparison that was refused.
func Different() *comparison.Comparison {
	c := &comparison.Comparison{
		Distribution: comparison.Distribution{Metric: "unit.time", Edges: []float64{100, 200}, Base: []int64{3, 1},
			Head: []int64{1, 3}},
		Schema: comparison.SchemaID, Tool: report.Tool{Name: "explain", Version: "test"},
		Depth: comparison.DepthNone,
		Answer: comparison.Answer{Direction: comparison.NotComparable,
			Notes: []string{"base runs 62 kernels a unit, head 119"}},
		Cause: "Not comparable: base runs 62 kernels a unit, head 119.",
		Reasons: []comparison.Reason{{Code: comparison.DifferentWork, Text: "base runs 62 kernels a unit, head 119"},
			{Code: comparison.EnvironmentMismatch, Text: "the GPU model differs: H100 on one side, H200 on the other"}},
		Base: comparison.Side{Names: []string{"a1.json", "a2.json"}, Captures: 2},
		Head: comparison.Side{Names: []string{"b.json", "b2.json"}, Captures: 2},
		Unit: comparison.Unit{Kind: "kernel", Name: "embedding", Phase: "step", BaseN: 20, HeadN: 20},
	}
	Judge(c, Side(), Side(), nil)
	return c
}

// Judge judges a comparison whose rows stand by rules alone, or by none for the default ones.
func Judge(c *comparison.Comparison, base, head []*report.Report, rules []policy.Rule) {
	p := policy.Default()
	if len(rules) > 0 {
		p.Rules = rules
	}
	JudgeBy(c, base, head, p, time.Time{})
}

// JudgeBy judges a comparison whose rows stand by a policy, on a day.
func JudgeBy(c *comparison.Comparison, base, head []*report.Report, p *policy.Policy, today time.Time) {
	b, h := &side.Side{Captures: side.NewCaptures(base)}, &side.Side{Captures: side.NewCaptures(head)}
	x, _ := noise.NewDecider(b, h, p, nil, 1)
	c.Fill()
	was, _ := json.Marshal(c)
	judgement := rules.All(c, x, func() bool { return false }, today)
	if is, _ := json.Marshal(c); !bytes.Equal(is, was) {
		panic(fmt.Sprintf("rules wrote into the comparison:\n%s\n%s", was, is))
	}
	c.Judged(judgement)
	c.Fill()
}

// JSON is a comparison as it is written.
func JSON(t testing.TB, c *comparison.Comparison) string {
	t.Helper()
	var b bytes.Buffer
	if err := comparison.Write(&b, c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Compared is a comparison with a row for unit.time.p50: 10 ms on the base.
func Compared(head float64, class comparison.Class) *comparison.Comparison {
	base := 10e6
	delta, ratio := head-base, head/base
	return &comparison.Comparison{
		Comparable: true, Unit: comparison.Unit{Kind: "nvtx", Phase: "decode"},
		Primary: []comparison.Row{
			{Metric: "unit.time.p50", Kind: "decode", Labels: report.Labels{}, Unit: report.Nanoseconds, Base: &base,
				Head:  &head,
				Delta: &delta, Ratio: &ratio, Class: class, Why: "because"},
		},
	}
}

func Kernel(base, head string, b, h float64, class comparison.Class) comparison.Kernel {
	k := comparison.Kernel{Delta: h - b, Class: class, Why: "measured"}
	if base != "" {
		k.BaseName, k.Base = &base, &b
	}
	if head != "" {
		k.HeadName, k.Head = &head, &h
	}
	return k
}

// stepByHand is of three kernels: the second replaced, a fourth added, a host gap before the third in every step, and a
// hiccup.
func stepByHand() *comparison.Step {
	name := func(i int) *int { return &i }
	row := func(kind string, base, head *int64, at *int, start, gap, kernel0, kernel1, delta float64) comparison.StepRow {
		return comparison.StepRow{Kind: kind, BasePosition: base, HeadPosition: head, Positions: 1, Name: at,
			Category:  "gemm",
			BaseStart: start, HeadStart: start + gap, HeadGap: gap, BaseKernel: kernel0, HeadKernel: kernel1, Delta: delta,
			GapMedian: gap / 2, Cause: "host"}
	}
	s := &comparison.Step{Base: 10e6, Head: 11.5e6, Delta: 1.5e6, Idle: 1e6, Systematic: 0.5e6, Sporadic: 0.5e6,
		BaseUnits: 40,
		HeadUnits: 38, Where: "+500 µs before kernel #2 sample in every step; +500 µs in 1 hiccup in 38 steps, up to 19 ms before kernel #2",
		Names:       []string{"embed", "flash_fwd", "flash_fwd_v2", "sample", "log"},
		Stretches:   []comparison.Stretch{{Part: comparison.PartGap, From: 2, To: 2, Delta: 0.5e6}},
		HeadHiccups: []comparison.Hiccup{{Row: 2, Part: comparison.PartGap, Unit: 7, Excess: 19e6}},
		Rows: []comparison.StepRow{
			row(comparison.RowPaired, Whole(0), Whole(0), name(0), 0, 0, 2e6, 2e6, 0),
			row(comparison.RowPaired, Whole(1), Whole(1), name(1), 2e6, 0, 3e6, 3.4e6, 0.4e6),
			row(comparison.RowPaired, Whole(2), Whole(2), name(3), 5.4e6, 1e6, 4e6, 4e6, 1e6),
			row(comparison.RowAdded, nil, Whole(3), name(4), 10.4e6, 0, 0, 0.1e6, 0.1e6),
			{Kind: comparison.RowEnd, Positions: 1, BaseGap: 1e6, HeadGap: 1e6, BaseStart: 9e6, HeadStart: 10.5e6},
			{Kind: comparison.RowRest, Positions: 1, BaseStart: 10e6, HeadStart: 11.5e6},
		}}
	s.Rows[1].HeadName = name(2)
	return s
}
