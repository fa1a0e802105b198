package engine

import (
	"math"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/evidence/serverlog"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Helpers of sections that use logged statistics: samples over time, some of which are steady.

// maxChartPoints bounds the points of one line of a chart.
const maxChartPoints = 400

// steadySample is the logged values of one statistic: NaN if a line does not state it.
type steadySample struct {
	all    int64           // lines that state it
	steady *report.Summary // of its values in the steady lines; nil if no such line states it
	last   float64         // its value in the last line that states it
}

func steady(s *serverlog.Sample) bool { return s.Steady }

// sampled collects a statistic from lines.
func sampled(
	lines []serverlog.Sample, of func(s *serverlog.Sample) float64, steady func(s *serverlog.Sample) bool,
) steadySample {
	var s steadySample
	var values []float64
	for i := range lines {
		v := of(&lines[i])
		if math.IsNaN(v) {
			continue
		}
		s.all++
		s.last = v
		if steady(&lines[i]) {
			values = append(values, v)
		}
	}
	s.steady = stat.Summarize(values)
	return s
}

// emit emits the median of the steady samples, with their summary; n counts all lines that state the statistic.
// If no line does, nothing is emitted; if no steady line does, the value is unknown.
func (s *steadySample) emit(o *kit.Output, id string, l report.Labels) {
	if s.all == 0 {
		return
	}
	m := o.Metric(id, l, nil)
	m.N = s.all
	if s.steady != nil {
		m.Value, m.Summary = &s.steady.P50, s.steady
	}
}

// statisticColumns are the columns of a table with one statistic per row, all in one unit.
func statisticColumns(first report.Column, unit string) []report.Column {
	col := func(id, title string) report.Column { return kit.FloatCol(id, title, unit) }
	return []report.Column{first, kit.CountCol("samples", "Samples"), kit.CountCol("steady", "Steady"),
		col("p50", "Median"), col("mean", "Mean"), kit.Wide(col("stddev", "Std. dev.")),
		kit.Wide(col("min", "Min")), col("p90", "p90"), kit.Wide(col("p99", "p99")), col("max", "Max")}
}

// row fills them in, if any line states the statistic.
func (s *steadySample) row(t *kit.Table, name string) {
	if s.all > 0 {
		n := report.Of(s.steady, func(sum report.Summary) int64 { return sum.N }, 0)
		t.Row(append(t.Stats(s.steady), kit.Text("statistic", name), kit.Int("samples", s.all), kit.Int("steady", n))...)
	}
}

// notNaN is v, or nil if it is not finite.
func notNaN(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// lineOf is a line of a chart over at most maxChartPoints of the points, evenly chosen; x is negative if unknown.
func lineOf(name string, n int, x func(i int) int64, y func(i int) float64) report.Series {
	s := report.Series{Name: name, Labels: []string{}, Values: []float64{}}
	at := lists.Where(n, func(i int) bool { return x(i) >= 0 && !math.IsNaN(y(i)) })
	points := min(len(at), maxChartPoints)
	for k := range points {
		i := at[k*len(at)/points]
		s.Labels = append(s.Labels, strconv.FormatInt(x(i), 10))
		s.Values = append(s.Values, y(i))
	}
	return s
}
