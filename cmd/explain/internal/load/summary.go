package load

import (
	"fmt"
	"io"
	"strings"

	"github.com/nsys-llm/explain/analyze/loadfile"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// WriteSummary writes what a person at a terminal wants to know first.
func (r *Result) WriteSummary(w io.Writer) error {
	var b strings.Builder
	c, rates := r.Counts, r.Rates
	fmt.Fprintf(&b, "%s requests in %s: %s succeeded, %s failed", unit.Int(c.Sent),
		unit.Format(float64(r.Window), report.Nanoseconds), unit.Int(c.Succeeded), unit.Int(c.Failed))
	if c.Cancelled > 0 {
		fmt.Fprintf(&b, ", %s cancelled", unit.Int(c.Cancelled))
	}
	b.WriteString("\n")
	line := func(label string, v *float64, what string) {
		if v != nil {
			fmt.Fprintf(&b, "%-24s %10.2f %s\n", label, *v, what)
		}
	}
	line("Throughput", rates.Requests, "requests/s")
	line("Tokens in", rates.InputTokens, "tokens/s")
	line("Tokens out", rates.OutputTokens, "tokens/s")
	if g := r.Goodput; g != nil && g.Ratio != nil {
		fmt.Fprintf(&b, "%-24s %10s of requests within every limit", "Goodput", unit.Percent(*g.Ratio))
		if g.Rate != nil {
			fmt.Fprintf(&b, " (%.2f requests/s)", *g.Rate)
		}
		b.WriteString("\n")
	}
	if c.Succeeded > 0 {
		fmt.Fprintf(&b, "\n%-24s %10s %10s %10s %10s %10s\n", "Latency", "p50", "p90", "p99", "max", "n")
		for _, l := range []struct {
			name string
			d    *loadfile.Distribution
		}{{"Time to first token", r.Latency.TTFT}, {"Time per output token", r.Latency.TPOT},
			{"Between tokens", r.Latency.ITL}, {"Whole answer", r.Latency.E2E}} {
			if l.d == nil {
				continue
			}
			s := l.d.Summary
			fmt.Fprintf(&b, "%-24s", l.name)
			for _, v := range []float64{s.P50, s.P90, s.P99, s.Max} {
				fmt.Fprintf(&b, " %10s", unit.Format(v, report.Nanoseconds))
			}
			fmt.Fprintf(&b, " %10s\n", unit.Int(s.N))
		}
	}
	if len(r.Failures) > 0 {
		b.WriteString("\nFailures\n")
		for _, f := range r.Failures {
			fmt.Fprintf(&b, "  %-14s %8s", f.Kind, unit.Int(f.Count))
			if e := r.examples[f.Kind]; e != "" {
				fmt.Fprintf(&b, "  %s", render.Visible(e))
			}
			b.WriteString("\n")
		}
	}
	if float64(c.Late) > 0.01*float64(c.Sent) {
		fmt.Fprintf(&b,
			"\nWarning: %s of %s requests were sent more than 5 ms after they were due; the delay is part of their latency.\n",
			unit.Int(c.Late), unit.Int(c.Sent))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
