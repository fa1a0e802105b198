package compat_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

// Encoder 20 + 40 ms, decoder 50 + 90 ms with 10 ms of cross-attention inside: 200 ms in all, not profilemate's 210.
func TestEncoderDecoder(t *testing.T) {
	r := folderReport(t, sessionFolder)
	sectiontest.WantStatus(t, r, "encoder_decoder", report.OK, "")
	sectiontest.Metric(t, r, 30*ms, "encdec.time", "component", "encoder")
	sectiontest.Metric(t, r, 140*ms, "encdec.total_time", "component", "decoder")
	sectiontest.Metric(t, r, 0.3, "encdec.share", "component", "encoder")
	sectiontest.Metric(t, r, 0.7, "encdec.share", "component", "decoder")
	sectiontest.Metric(t, r, 0.05, "encdec.share", "component", "cross_attention")
}

func TestEncoderDecoderSummaryAlone(t *testing.T) {
	r := filesReport(t, map[string]string{"e.json": `{"model_type": "decoder_only", "decoder": {"count": 2, "total_ms": 10.0, "mean_ms": 5.0, "std_ms": 0}, "encoder_pct": 0, "decoder_pct": 100, "cross_attention_pct": 0}`})
	sectiontest.WantStatus(t, r, "encoder_decoder", report.Partial, "")
	sectiontest.Metric(t, r, 5*ms, "encdec.time", "component", "decoder")
	sectiontest.Metric(t, r, 1, "encdec.share", "component", "decoder")
	none := filesReport(t, map[string]string{"e.json": `{"model_type": "unknown"}`})
	sectiontest.WantStatus(t, none, "encoder_decoder", report.NotApplicable, "no rows")
}
