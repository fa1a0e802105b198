package engine

import (
	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/prom"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

// Cost is the section on the cost of tokens at the price that the user gives.
var Cost = kit.Section{
	ID: "cost", Title: "Cost of tokens", Asked: func(o *kit.Options) bool { return o.GPUPrice > 0 },
	Derivation: "The price of --gpu-price for one GPU and hour, times the GPUs and their time, over the generated tokens of " +
		"that time. In the currency of the price.",
	Metrics: []report.MetricDef{
		report.Define("cost.gpu_hour", report.Money, report.None, report.Exact, report.Level, report.Leave,
			"price of one GPU for an hour, as given by --gpu-price"),
		report.Define("cost.per_million_tokens", report.Money, report.Lower, report.Noisy, report.Level, report.Leave,
			"price of a million generated tokens: of kept decode units (a token each for every request), of the load "+
				"that was sent, or of what the server states").By("source"),
	},
	Tables: []report.Table{
		{ID: "cost", Title: "Cost of generated tokens", File: "cost.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NameCol("source", "Source"),
			kit.CountCol("gpus", "GPUs"),
			kit.FloatCol("rate", "Tokens per second", report.PerSecond),
			kit.FloatCol("cost", "Per million tokens", report.Money),
		}},
	},
	Run: cost,
}

func cost(in *kit.Input, out *kit.Output) {
	price := in.Options.GPUPrice
	out.Source.Source = report.Source{Tables: []string{"command line"}, Columns: []string{"--gpu-price"}, Rows: 1}
	out.Float("cost.gpu_hour", nil, price)
	gpus := 0
	if !in.NoTrace {
		gpus = len(in.Timeline.Devices)
	}
	if gpus == 0 && in.Evidence.Has(file.Prometheus) {
		gpus = in.Evidence.Prom.Power.GPUs
	}
	table := out.Table("cost")
	add := func(source string, rate *float64) {
		if rate == nil || *rate <= 0 {
			return
		}
		var perMillion *float64
		if gpus > 0 {
			perMillion = new(price / 3600 * float64(gpus) / *rate * 1e6)
		}
		out.Metric("cost.per_million_tokens", kit.Labels("source", source), perMillion)
		table.Row(kit.Text("source", source), kit.Int("gpus", int64(gpus)), kit.Float("rate", *rate),
			kit.Maybe("cost", perMillion))
	}
	if rate, steps := decodeRate(in); rate != nil {
		out.From(trace.RoleNVTX, steps, "start", "end", "text")
		add("decode", rate)
	}
	if in.Evidence.Has(file.Load) {
		out.FromEvidence(file.Load, 1, "rates")
		add("load", in.Evidence.Load.Result.Rates.OutputTokens)
	}
	if in.Evidence.Has(file.Prometheus) {
		out.FromEvidence(file.Prometheus, 1, prom.GenerationRate)
		if rate, ok := in.Evidence.Prom.Gauges[prom.GenerationRate]; ok {
			add("server", &rate)
		}
	}
	switch {
	case table.Len() == 0:
		out.Status(report.NotApplicable, "the input does not say how many tokens were generated in what time: add step markers "+
			"that name the phase and the requests, a load (explain load) or the server's metrics (--prometheus)")
		return
	case gpus == 0:
		out.Note("The number of GPUs that served is unknown without a trace or their exporter's metrics, and so is the cost.")
	}
	table.Add()
}

// decodeRate is the generated tokens per second of kept decode units, one token for every request of a unit, and how
// many units there are; nil if the markers of some do not say how many requests they decode.
func decodeRate(in *kit.Input) (rate *float64, steps int) {
	if in.NoTrace || in.Units == nil {
		return nil, 0
	}
	var tokens, time int64
	for _, g := range in.Units.Groups {
		if g.Phase != "decode" || g.Count == 0 {
			continue
		}
		if g.Batch <= 0 {
			return nil, 0
		}
		tokens += g.Batch * g.Count
		time += g.Time
		steps += int(g.Count)
	}
	return stat.Ratio(float64(tokens), float64(time)/1e9), steps
}
