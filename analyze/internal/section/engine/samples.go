package engine

import (
	"math"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
)

// Helpers of sections that use logged statistics: samples over time, some of which are steady.

// maxChartPoints bounds the points of one line of a chart.
const maxChartPoints = 400

// steadySample is the logged values of one statistic: NaN if a line does not state it.
type steadySample struct {
	all    int64     // lines that state it
	steady []float64 // its values in the steady lines, in their order
}

// sampled collects a statistic from the lines 0 <= i < n.
func sampled(n int, value func(i int) float64, steady func(i int) bool) steadySample {
	var s steadySample
	for i := range n {
		v := value(i)
		if math.IsNaN(v) {
			continue
		}
		s.all++
		if steady(i) {
			s.steady = append(s.steady, v)
		}
	}
	return s
}

// emitSampled emits the median of the steady samples, with their summary; n counts all lines that state the statistic.
// If no line does, nothing is emitted; if no steady line does, the value is unknown.
func emitSampled(o *kit.Output, id string, l report.Labels, s steadySample) *report.Summary {
	if s.all == 0 {
		return nil
	}
	sum := stat.Summarize(slices.Clone(s.steady))
	m := o.Metric(id, l, nil)
	m.N = s.all
	if sum != nil {
		m.Value, m.Summary = &sum.P50, sum
	}
	return sum
}

// statisticColumns are the columns of a table with one statistic per row, all in one unit.
func statisticColumns(first report.Column, unit string) []report.Column {
	col := func(id, title string) report.Column { return kit.FloatCol(id, title, unit) }
	return []report.Column{first, kit.CountCol("samples", "Samples"), kit.CountCol("steady", "Steady"),
		col("p50", "Median"), col("mean", "Mean"), kit.Wide(col("stddev", "Std. dev.")),
		kit.Wide(col("min", "Min")), col("p90", "p90"), kit.Wide(col("p99", "p99")), col("max", "Max")}
}

// summaryRow fills them in.
func summaryRow(t *kit.Table, name string, all int64, s *report.Summary) {
	steady := int64(0)
	if s != nil {
		steady = s.N
	}
	t.Row(append(t.Stats(s), kit.Text("statistic", name), kit.Int("samples", all), kit.Int("steady", steady))...)
}

// number is a cell; NaN is unknown.
func number(v float64) report.Cell {
	if math.IsNaN(v) {
		return report.Null
	}
	return report.F(v)
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
	var at []int
	for i := range n {
		if x(i) >= 0 && !math.IsNaN(y(i)) {
			at = append(at, i)
		}
	}
	points := min(len(at), maxChartPoints)
	for k := range points {
		i := at[k*len(at)/points]
		s.Labels = append(s.Labels, strconv.FormatInt(x(i), 10))
		s.Values = append(s.Values, y(i))
	}
	return s
}
