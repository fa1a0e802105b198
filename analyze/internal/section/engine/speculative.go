package engine

import (
	"math"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var Speculative = kit.Section{
	ID: "speculative", Title: "Speculative decoding", Evidence: []file.Kind{file.ServerLog},
	Derivation: "vLLM's lines of speculative decoding count tokens since the line before: accepted over drafted " +
		"tokens is the acceptance rate over all of them, and one plus accepted tokens per draft the acceptance " +
		"length. SGLang states both for each line of a decode batch, rounded; for these the mean over steady lines is used.",
	Findings: []kit.FindingDef{
		{ID: "spec_low_acceptance", Title: "Most drafted tokens are thrown away"},
	},
	Metrics: []report.MetricDef{
		kit.Ratio("serve.spec_acceptance_rate", report.Higher, report.Leave,
			"share of drafted tokens that was accepted"),
		kit.NoisyLevel("serve.spec_acceptance_length", report.Higher, report.Leave,
			"tokens that one step of the model yields, its own included (the summary is over lines)").Summarised(),
		kit.NoisyCount("serve.spec_accepted_tokens", report.None, report.Leave, "drafted tokens that were accepted"),
		kit.NoisyCount("serve.spec_drafted_tokens", report.None, report.Leave, "tokens that were drafted"),
		kit.Ratio("serve.spec_position_rate", report.Higher, report.Leave,
			"share of drafts whose token at this position was accepted, weighted by drafted tokens").By("position"),
	},
	Tables: []report.Table{
		{ID: "spec_positions", Title: "Acceptance by position", File: "spec_positions.csv", Merge: report.Leave, Columns: []report.Column{
			kit.IDCol("position", "Position"),
			kit.RatioCol("rate", "Accepted", "accepted_pct"),
		}},
	},
	Run: speculative,
}

// lowAcceptance is the acceptance rate, 0..1, below which drafting is a finding.
const lowAcceptance = 0.30

func speculative(in *kit.Input, out *kit.Output) {
	log := in.Evidence.Log
	if len(log.Specs) == 0 {
		speculativeBatches(out, in)
		return
	}
	out.FromEvidence(file.ServerLog, len(log.Specs), "SpecDecoding metrics")
	var accepted, drafted int64
	var lengths []float64
	var positions []struct{ accepted, drafted float64 } // tokens
	var steps float64                                   // drafts
	for _, s := range log.Specs {
		accepted += s.Accepted
		drafted += s.Drafted
		if !math.IsNaN(s.Length) {
			lengths = append(lengths, s.Length)
		}
		for p, v := range s.Positions {
			at := lists.At(&positions, p)
			at.accepted += v * float64(s.Drafted)
			at.drafted += float64(s.Drafted)
		}
		if n := len(s.Positions); n > 0 {
			steps += float64(s.Drafted) / float64(n)
		}
	}
	rate := stat.Ratio(accepted, drafted)
	if drafted > 0 {
		out.Metric("serve.spec_acceptance_rate", nil, rate)
		out.Int("serve.spec_accepted_tokens", nil, accepted)
		out.Int("serve.spec_drafted_tokens", nil, drafted)
	}
	if len(lengths) > 0 {
		sum := stat.Summarize(lengths)
		value := sum.Mean
		if steps > 0 {
			value = 1 + float64(accepted)/steps
			sum.Mean = value // each line counts with its drafts, so that a comparison of means is one of this number
		}
		m := out.Float("serve.spec_acceptance_length", nil, value)
		m.N, m.Summary = sum.N, sum
	}
	t := out.Table("spec_positions")
	bars := report.Series{Name: "accepted", Labels: []string{}, Values: []float64{}}
	for p, n := range positions {
		if n.drafted == 0 {
			continue
		}
		v := n.accepted / n.drafted
		out.Float("serve.spec_position_rate", kit.Labels("position", strconv.Itoa(p)), v)
		t.Row(kit.Int("position", int64(p)), kit.Float("rate", v))
		bars.Labels, bars.Values = append(bars.Labels, strconv.Itoa(p)), append(bars.Values, v)
	}
	t.Add()
	if len(bars.Values) > 0 {
		out.Chart(report.Chart{ID: "spec_positions", Title: "Accepted by position", Kind: "bar", Unit: report.Ratio,
			Series: []report.Series{bars}})
	}
	findLowAcceptance(out, rate)
}

// speculativeBatches is speculative for SGLang's lines.
func speculativeBatches(o *kit.Output, in *kit.Input) {
	list := in.Evidence.Log.Samples
	var lengths, rates []float64
	for i := range list {
		if s := &list[i]; s.Steady && !math.IsNaN(s.AcceptLength) {
			lengths = append(lengths, s.AcceptLength)
			if !math.IsNaN(s.AcceptRate) {
				rates = append(rates, s.AcceptRate)
			}
		}
	}
	if len(lengths) == 0 {
		o.Status(report.NotApplicable, "the log has no lines on speculative decoding")
		return
	}
	o.FromEvidence(file.ServerLog, len(lengths), "accept len", "accept rate")
	sum := stat.Summarize(lengths)
	m := o.Float("serve.spec_acceptance_length", nil, sum.Mean)
	m.N, m.Summary = sum.N, sum
	if s := stat.Summarize(rates); s != nil {
		o.Float("serve.spec_acceptance_rate", nil, s.Mean).N = s.N
		findLowAcceptance(o, &s.Mean)
	}
}

func findLowAcceptance(o *kit.Output, rate *float64) {
	if rate != nil && *rate < lowAcceptance {
		o.Find("spec_low_acceptance", kit.Refs("serve.spec_acceptance_rate", "serve.spec_acceptance_length"),
			"Draft fewer tokens (vLLM: num_speculative_tokens; SGLang: --speculative-num-draft-tokens): later positions are accepted least. Compare the throughput with drafting switched off, at the load you serve: drafting costs most when batches are large.")
	}
}
