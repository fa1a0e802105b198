package section

import (
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/session"
	"github.com/nsys-llm/explain/analyze/report"
)

// What the sections on profiler sessions share.

// fromSession sets the source to one of a session's files and its columns.
func (o *Output) fromSession(rows int64, name string, columns ...string) {
	o.FromEvidence(file.Session, int(rows), append([]string{name}, columns...)...)
}

// sessionLacks says why there is nothing to show of the files.
func (o *Output) sessionLacks(d *session.Data, names ...string) {
	for _, n := range names {
		if d.Had[n] > 0 {
			o.Status(report.NotApplicable, "the session's files of this hold no rows: it did not happen, or profilemate did not find the part of vLLM that it watches")
			return
		}
	}
	o.Status(report.Unavailable, "the session has no file of this")
}

// Distribution emits a metric whose value is the median, with the summary of the sample.
func (o *Output) distribution(id string, labels report.Labels, s *session.Sample) {
	d := s.Summary()
	if d == nil {
		return
	}
	m := o.Float(id, labels, d.P50)
	m.N, m.Summary = s.N(), d
	if s.Thinned() {
		o.note("Percentiles of the longest distributions are of every second, fourth, … value; counts, sums and extremes are of all.")
	}
}

// note adds a note once.
func (o *Output) note(text string) {
	if !slices.Contains(o.section.Notes, text) {
		o.Note(text)
	}
}

// overTime is a line of a chart: one label, a time in ns, for each value.
func overTime(name string, s *session.Series) report.Series {
	at, values := s.Points()
	line := report.Series{Name: name, Labels: make([]string, len(at)), Values: values}
	for i, t := range at {
		line.Labels[i] = strconv.FormatInt(int64(t*1e9), 10)
	}
	if values == nil {
		line.Values = []float64{}
	}
	return line
}

// lines adds a chart of quantities over time since the session's start; lines without points are left out.
func (o *Output) lines(id, title, unit string, list ...report.Series) {
	c := report.Chart{ID: id, Title: title, Kind: "line", Unit: unit, XUnit: report.Nanoseconds, XTitle: "Since the session's start", Series: []report.Series{}}
	for _, s := range list {
		if len(s.Values) > 1 {
			c.Series = append(c.Series, s)
		}
	}
	if len(c.Series) > 0 {
		o.Chart(c)
	}
}

// sampleCells are mean, p50, p90, p99 and max, unknown where there is no sample.
func sampleCells(s *session.Sample) []report.Cell {
	d := s.Summary()
	if d == nil {
		return []report.Cell{report.Null, report.Null, report.Null, report.Null, report.Null}
	}
	return []report.Cell{report.F(d.Mean), report.F(d.P50), report.F(d.P90), report.F(d.P99), report.F(d.Max)}
}

// sampleCols are the columns of sampleCells for times.
func sampleCols() []report.Column {
	return []report.Column{meanCol("mean", "Mean", "mean_ms"), meanCol("p50", "p50", "p50_ms"), meanCol("p90", "p90", "p90_ms"), meanCol("p99", "p99", "p99_ms"), meanCol("max", "Max", "max_ms")}
}

// filesTogether notes that several files of a form were read.
func (o *Output) filesTogether(d *session.Data, name string) {
	if n := d.Had[name]; n > 1 {
		o.Note("The " + strconv.Itoa(n) + " files of the form of " + name + " are taken together: several processes, or several sessions. Each has a clock of its own.")
	}
}
