package compat

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/compat/session"
	"github.com/nsys-llm/explain/analyze/internal/evidence"
	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
)

var EncoderDecoder = kit.Section{
	ID: "encoder_decoder", Title: "Encoder and decoder",
	Evidence: []file.Kind{session.Kind},
	Derivation: "Rows of the session's encoder_decoder_timing.csv, by part of the model. Cross-attention runs " +
		"inside the decoder: shares are of encoder and decoder, and profilemate's, which count it twice, are not " +
		"used.",
	Metrics: []report.MetricDef{
		report.Define("encdec.time", report.Nanoseconds, report.Lower, report.Noisy, report.Event, report.Leave,
			"median time of the part in one pass; the summary is over passes").Summarised().By("component"),
		report.Define("encdec.total_time", report.Nanoseconds, report.None, report.Noisy, report.Total, report.Leave,
			"passes added up").By("component"),
		report.Define("encdec.share", report.Ratio, report.None, report.Noisy, report.Level, report.Leave,
			"share of the time of encoder and decoder together").By("component"),
	},
	Tables: []report.Table{
		{ID: "encoder_decoder", Title: "Parts of the model", File: "encoder_decoder.csv", Merge: report.Leave,
			Columns: slices.Concat([]report.Column{
				kit.TextCol("part", "Part"),
				kit.CountCol("passes", "Passes"),
				kit.MeanCol("total", "Total", "total_ms"),
				kit.RatioCol("share", "Share", "pct_of_time"),
			}, sampleCols())},
	},
	Run: encoderDecoder,
}

func encoderDecoder(in *kit.Input, out *kit.Output) {
	const name, summary = "encoder_decoder_timing.csv", "encoder_decoder_summary.json"
	d := evidence.Of[*session.Data](in.Evidence)
	sums := map[string]float64{}
	for c, s := range d.Components {
		sums[c] = s.Sum()
	}
	stated := len(sums) == 0
	if stated {
		for c, s := range d.Summaries.Components {
			sums[c] = s.Sum
		}
	}
	if d.ModelType != "" && d.ModelType != "unknown" {
		out.Note("The session takes the model for " + map[string]string{"encoder_decoder": "an encoder and a decoder",
			"decoder_only": "a decoder alone"}[d.ModelType] + ".")
	}
	if len(sums) == 0 {
		sessionLacks(out, d, name, summary)
		return
	}
	if stated {
		out.Status(report.Partial, "the session has only "+summary+": counts and means")
		out.Note("A summary states means: the value of `encdec.time` is the mean here.")
	}
	t := out.Table("encoder_decoder")
	for _, c := range []string{"encoder", "decoder", "cross_attention", "other"} {
		sum, ok := sums[c]
		if !ok {
			continue
		}
		share := stat.Ratio(sum, sums["encoder"]+sums["decoder"])
		l := kit.Labels("component", c)
		row := []kit.Field{kit.Text("part", c), kit.Float("total", sum), kit.Maybe("share", share)}
		if s := d.Components[c]; s != nil {
			fromSession(out, s.N(), name, "component", "duration_ms")
			distribution(out, "encdec.time", l, s)
			row = append(append(row, kit.Int("passes", s.N())), sampleFields(s)...)
		} else {
			s := d.Summaries.Components[c]
			fromSession(out, s.N, summary, "count", "total_ms")
			out.Metric("encdec.time", l, s.Mean())
			row = append(row, kit.Int("passes", s.N), kit.Maybe("mean", s.Mean()))
		}
		out.Float("encdec.total_time", l, sum)
		out.Metric("encdec.share", l, share)
		t.Partial(row...)
	}
	t.Add()
	filesTogether(out, d, name)
}
