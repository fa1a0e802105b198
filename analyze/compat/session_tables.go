package compat

import (
	"strconv"

	"github.com/nsys-llm/explain/analyze/compat/session"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Helpers that the sections on profiler sessions share.

// fromSession sets the source of a metric: one of the session's files, and its columns.
func fromSession(o *kit.Output, rows int64, source ...string) {
	o.FromEvidence(session.Kind, int(rows), source...)
}

// sessionLacks says why the files give nothing to show.
func sessionLacks(o *kit.Output, d *session.Data, names ...string) {
	for _, n := range names {
		switch {
		case d.Had[n] > 0:
			o.Status(report.NotApplicable,
				"the session's files for this have no rows: it did not happen, or profilemate did not find the part of vLLM to watch")
			return
		case d.Lacks[n] != "":
			o.Status(report.Unavailable, "columns are missing: "+d.Lacks[n])
			return
		}
	}
	o.Status(report.Unavailable, "the session has no file for this")
}

// distribution emits a metric whose value is the median, with the summary of the sample; of a sample that is only
// stated, the mean. Without a source it has that of the metric before.
func distribution(o *kit.Output, id string, labels report.Labels, s *session.Sample, source ...string) {
	if len(source) > 0 {
		fromSession(o, s.N(), source...)
	}
	d := s.Summary()
	switch {
	case s.Stated():
		o.Metric(id, labels, s.Mean())
		return
	case d == nil:
		return
	}
	m := o.Float(id, labels, d.P50)
	m.N, m.Summary = s.N(), d
	if s.Thinned() {
		o.Note("Percentiles of the longest distributions use every second, fourth, … value; counts, sums and extremes use all.")
	}
}

// overTime is a line of a chart: a label, and for each value its time in ns.
func overTime(name string, s *session.Series) report.Series {
	at, values := s.Points()
	labels := lists.Map(at, func(t float64) string { return strconv.FormatInt(int64(t*1e9), 10) })
	return report.Series{Name: name, Labels: labels, Values: values}
}

// sinceStart is the title of the axis of charts over a session's time.
const sinceStart = "Since the session's start"

// sampleFields are mean, p50, p90, p99 and max; of a sample that is only stated, the mean.
func sampleFields(t *kit.Table, s *session.Sample) []kit.Field {
	if s.Stated() {
		return []kit.Field{kit.Maybe("mean", s.Mean())}
	}
	return t.Stats(s.Summary())
}

// statedOnly says that the section has only a summary, whose means stand in place of medians.
func statedOnly(o *kit.Output, summary, lacks, id string) {
	o.Status(report.Partial, "the session has only "+summary+": "+lacks)
	o.Note("A summary states means: the value of `" + id + "` is the mean here.")
}

// sampleCols are the columns of sampleFields for times.
func sampleCols() []report.Column {
	return []report.Column{kit.MeanCol("mean", "Mean", "mean_ms"), kit.MeanCol("p50", "p50", "p50_ms"),
		kit.MeanCol("p90", "p90", "p90_ms"), kit.MeanCol("p99", "p99", "p99_ms"), kit.MeanCol("max", "Max", "max_ms")}
}

// filesTogether notes that several files of a form were read.
func filesTogether(o *kit.Output, d *session.Data, name string) {
	if n := d.Had[name]; n > 1 {
		o.Note("The " + strconv.Itoa(n) + " files of the form of " + name +
			" are taken together: several processes, or several sessions. Each has a clock of its own.")
	}
}
