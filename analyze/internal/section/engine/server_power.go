package engine

import (
	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/prom"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
)

// Power is the section on the power draw of the GPUs while the server served.
var Power = kit.Section{
	ID: "server_power", Title: "Power of the server's GPUs", Evidence: []file.Kind{file.Prometheus},
	Derivation: "Power and energy that an exporter (DCGM, nvidia-smi) or Triton states in Prometheus' format, of all " +
		"GPUs in the dumps together. Power is the mean over the dumps; energy is the difference of two.",
	Metrics: []report.MetricDef{
		report.Define("serve.power", report.Watts, report.None, report.Noisy, report.Level, report.Leave,
			"power of all GPUs of the dumps together: mean over the dumps"),
		report.Define("serve.energy", report.Joules, report.Lower, report.Noisy, report.Total, report.Leave,
			"energy of all GPUs of the dumps between the first and the last one, by the GPUs' own counters"),
		report.Define("serve.energy_per_token", report.Joules, report.Lower, report.Noisy, report.Level, report.Leave,
			"energy for a generated token, prompts included: serve.energy over the tokens between two dumps, else "+
				"serve.power over the tokens per second that the server states"),
	},
	Tables: []report.Table{
		{ID: "server_power", Title: "Power and energy", File: "server_power.csv", Merge: report.Leave, Columns: []report.Column{
			kit.CountCol("gpus", "GPUs"),
			kit.FloatCol("power", "Power", report.Watts),
			kit.FloatCol("energy", "Energy", report.Joules),
			kit.FloatCol("energy_per_token", "Per generated token", report.Joules),
		}},
	},
	Run: serverPower,
}

func serverPower(in *kit.Input, out *kit.Output) {
	d := in.Evidence.Prom
	p := d.Power
	if p.GPUs == 0 {
		out.Status(report.NotApplicable, "the dumps state no power: add one of DCGM's exporter (--prometheus dcgm.prom)")
		return
	}
	out.FromEvidence(file.Prometheus, p.Series, "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")
	out.Metric("serve.power", nil, p.Watts)
	out.Metric("serve.energy", nil, p.Joules)
	var perToken *float64
	switch tokens, ok := d.Counters[prom.GenerationTokens]; {
	case p.Joules != nil && d.Delta && ok:
		perToken = stat.Ratio(*p.Joules, tokens)
	case p.Watts != nil:
		perToken = stat.Ratio(*p.Watts, d.Gauges[prom.GenerationRate])
	}
	out.Metric("serve.energy_per_token", nil, perToken)
	t := out.Table("server_power")
	t.Row(kit.Int("gpus", int64(p.GPUs)), kit.Maybe("power", p.Watts), kit.Maybe("energy", p.Joules),
		kit.Maybe("energy_per_token", perToken))
	t.Add()
}
