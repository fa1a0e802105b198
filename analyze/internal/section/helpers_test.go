package section_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// analyseFile runs the analyzer on a trace.
func analyseFile(tb testing.TB, path string, opt analyze.Options) *analyze.Result {
	tb.Helper()
	res, err := analyze.Run(context.Background(), path, opt)
	if err != nil {
		tb.Fatal(err)
	}
	return res
}

// analyse writes the trace and runs the analyzer on it.
func analyse(tb testing.TB, b *tracetest.Builder, opt analyze.Options) *analyze.Result {
	tb.Helper()
	res, err := analyze.Run(context.Background(), b.WriteTB(tb), opt)
	if err != nil {
		tb.Fatal(err)
	}
	return res
}

// metric checks one metric; labels come as key, value pairs.
func metric(tb testing.TB, r *report.Report, want float64, id string, pairs ...string) {
	tb.Helper()
	l := report.Labels{}
	for i := 0; i+1 < len(pairs); i += 2 {
		l[pairs[i]] = pairs[i+1]
	}
	switch m := r.Find(id, l); {
	case m == nil:
		tb.Errorf("%s{%s}: missing, want %v", id, l, want)
	case m.Value == nil:
		tb.Errorf("%s{%s} = null, want %v", id, l, want)
	case *m.Value != want:
		tb.Errorf("%s{%s} = %s, want %s", id, l, strconv.FormatFloat(*m.Value, 'f', -1, 64), strconv.FormatFloat(want, 'f', -1, 64))
	}
}

// noMetric checks that a metric is absent.
func noMetric(tb testing.TB, r *report.Report, id string, pairs ...string) {
	tb.Helper()
	l := report.Labels{}
	for i := 0; i+1 < len(pairs); i += 2 {
		l[pairs[i]] = pairs[i+1]
	}
	if m := r.Find(id, l); m != nil {
		tb.Errorf("%s{%s} is there, want none", id, l)
	}
}
