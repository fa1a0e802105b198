package compat

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/compat/session"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
)

var EncoderDecoder = kit.Section{
	ID: "encoder_decoder", Title: "Encoder and decoder",
	Evidence: ofSession,
	Derivation: "Rows of the session's encoder_decoder_timing.csv, by part of the model. Cross-attention runs " +
		"inside the decoder: shares are of encoder and decoder, and profilemate's, which count it twice, are not " +
		"used.",
	Metrics: []report.MetricDef{
		kit.EventTime("encdec.time", report.Lower, report.Leave,
			"median time of the part in one pass; the summary is over passes").Summarised().By("component"),
		kit.TotalTime("encdec.total_time", report.None, report.Leave, "passes added up").By("component"),
		kit.Ratio("encdec.share", report.None, report.Leave,
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
	d := sessionOf(in)
	if d.ModelType != "" && d.ModelType != "unknown" {
		out.Note("The session takes the model for " + map[string]string{"encoder_decoder": "an encoder and a decoder",
			"decoder_only": "a decoder alone"}[d.ModelType] + ".")
	}
	if len(d.Components) == 0 {
		sessionLacks(out, d, name, summary)
		return
	}
	source, both := []string{name, "component", "duration_ms"}, 0.0
	if d.Rows[name] == 0 {
		source = []string{summary, "count", "total_ms"}
		statedOnly(out, summary, "counts and means", "encdec.time")
	}
	for _, c := range []string{"encoder", "decoder"} {
		if s := d.Components[c]; s != nil {
			both += s.Sum()
		}
	}
	t := out.Table("encoder_decoder")
	for _, c := range session.Components {
		s := d.Components[c]
		if s == nil {
			continue
		}
		share, l := stat.Ratio(s.Sum(), both), kit.Labels("component", c)
		distribution(out, "encdec.time", l, s, source...)
		out.Float("encdec.total_time", l, s.Sum())
		out.Metric("encdec.share", l, share)
		t.Partial(append(sampleFields(t, s), kit.Text("part", c), kit.Float("total", s.Sum()), kit.Maybe("share", share),
			kit.Int("passes", s.N()))...)
	}
	t.Add()
	filesTogether(out, d, name)
}
