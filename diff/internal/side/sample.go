package side

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
)

// Sample collects a metric, or a statistic of it, over the captures of a side.
func (s *Side) Sample(id, stat string, l report.Labels) Sample {
	out := Sample{captures: len(s.Captures)}
	for _, c := range s.Captures {
		m := c.Metric(id, l)
		if m == nil {
			continue
		}
		if v, ok := Stat(m, stat); ok {
			out.Values = append(out.Values, v)
			out.N += m.N
		}
	}
	return out
}

// SteadyLines returns a column's values in the steady lines that the report lists, in order.
func SteadyLines(x *report.Index, column string) []float64 {
	t := x.Table("serving", "serving_samples")
	var list []float64
	for i := range t.Len() {
		if v, ok := t.Num(i, column); ok && t.Str(i, "state") == "steady" {
			list = append(list, v)
		}
	}
	return list
}

// Sample is one metric on one side.
type Sample struct {
	Values   []float64 // one for each capture that has it
	captures int
	N        int64 // observations behind the values
}

// Stat returns a statistic of a metric's summary, or the metric's value if stat is empty; ok is false if unknown.
func Stat(m *report.Metric, stat string) (v float64, ok bool) {
	if stat == "" {
		return comparison.Value(m.Value), m.Value != nil
	}
	of := report.Statistics[stat]
	if stat == "p50" && m.Summary == nil && m.Scale == report.Event { // whose value is the median
		return comparison.Value(m.Value), m.Value != nil
	}
	if m.Summary == nil || of == nil {
		return 0, false
	}
	return of(m.Summary), true
}

// Mean returns nil unless every capture has the value.
func (s *Sample) Mean() *float64 {
	if len(s.Values) == 0 || len(s.Values) < s.captures {
		return nil
	}
	return new(Average(s.Values))
}

// Series returns a metric of the units that the captures list, see [UnitValues], one capture after the other.
func (s *Side) Series(metric string) []float64 {
	return slices.Concat(lists.Map(s.Views, func(v *View) []float64 { return UnitValues(v.Units, metric) })...)
}

// Row compares the means of a number over the captures of both sides.
func Row(metric string, l report.Labels, unit string, base, head []float64) comparison.Row {
	row := comparison.Row{Metric: metric, Labels: l, Unit: unit, Base: new(Average(base)), Head: new(Average(head)),
		BaseValues: base, HeadValues: head, Unreplicated: len(base) == 1 || len(head) == 1}
	row.Change()
	return row
}

func Average(values []float64) float64 { return lists.Total(values) / float64(len(values)) }
