package noise

import (
	"github.com/nsys-llm/explain/diff/student"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/internal/significance"
	"github.com/nsys-llm/explain/diff/policy"
)

// timer is the resolution of a timestamp, ns.
const timer = 1

// statistic of a name that rules use; ok is false for those that are not judged.
func statistic(stat string) (s significance.Statistic, ok bool) {
	switch stat {
	case "mean":
		return significance.Mean, true
	case "p50":
		return significance.Median, true
	case "p90":
		return significance.P90, true
	case "p99":
		return significance.P99, true
	}
	return 0, false
}

// Tailed reports whether n observations are enough for a statistic, see [significance.Statistic.Enough].
func Tailed(stat string, n int64) bool {
	st, ok := statistic(stat)
	return !ok || st.Enough(int(n))
}

// number starts a number with what the calibration knows of it.
func (x *Decider) number(metric string, l report.Labels, unit string, st significance.Statistic) significance.Number {
	n := significance.Number{Stat: st, FloorStays: x.OtherRun}
	if unit == report.Nanoseconds {
		n.Timer = timer
	}
	id, _ := policy.SplitStat(metric)
	for _, name := range []string{metric, id} { // the statistic's own noise, else the metric's
		if s2, df, ok := x.noise.Variance(name, l); ok {
			n.History = &significance.History{S2: s2, DF: df}
			break
		}
	}
	if x.Policy.Stats.Floor > 0 && n.History == nil && id == "unit.time" {
		n.Floor = x.Policy.Stats.Floor
	}
	return n
}

// Reported is a number of the reports, a metric's statistic or its value where stat is empty, with all that is known
// of its noise. ok is false if a capture lacks it, or has a value of 0: there is no ratio then.
func (x *Decider) Reported(m *report.Metric, stat string) (n significance.Number, ok bool) {
	name, value := m.ID, stat
	if stat != "" {
		name += "." + stat
	}
	scale := report.ScaleOf(m.ID, m.Unit, m.Scale)
	if stat == "" && (scale == report.PerUnit || scale == report.Event) { // what the value of such a metric is
		value = "p50"
		if policy.OfKernel(m.ID, m.Labels) {
			value = "mean"
		}
	}
	st, summed := statistic(value)
	n = x.number(name, m.Labels, m.Unit, st)
	n.HigherBetter, n.Count = m.Better == report.Higher, m.Assume == report.Exact
	for _, s := range []struct {
		side *side.Side
		out  *[]significance.Capture
	}{{x.Base, &n.Base}, {x.Head, &n.Head}} {
		for _, c := range s.side.Captures {
			own := c.Metric(m.ID, m.Labels)
			if own == nil {
				return n, false
			}
			v, known := side.Stat(own, stat)
			if !known || v <= 0 {
				return n, false
			}
			one := significance.Capture{Value: v}
			if summed {
				one.Units = unitsOf(c, own, stat)
				summarised(&one, own.Summary, st, one.Units == nil, c.UnitsBehind(own))
			}
			*s.out = append(*s.out, one)
		}
	}
	if len(x.Base.Views) == 1 && m.Labels.String() == x.Base.Views[0].Labels.String() { // the units that are compared
		x.tied(&n)
	}
	x.unsteady(&n, m.ID, m.Labels)
	return n, true
}

// unitsOf are the units or the lines of a log that a number is a statistic of, or nil.
func unitsOf(c *side.Capture, m *report.Metric, stat string) []float64 {
	for _, n := range numbers() {
		if n.id == m.ID && n.stat == stat && n.column != "" {
			return c.SteadyLines(n.column)
		}
	}
	rows := c.UnitsBehind(m)
	list := make([]float64, 0, len(rows))
	for i := range rows {
		v, ok := rows[i].Of(m.ID)
		if !ok {
			return nil
		}
		list = append(list, v)
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// summarised says what a summary knows of a number whose units are not listed. The units of work that it is of, if
// any, say how far units that follow each other are alike.
func summarised(c *significance.Capture, s *report.Summary, st significance.Statistic, unlisted bool, units []side.UnitRow) {
	if !unlisted || s == nil {
		return
	}
	c.N, c.SD = int(s.N), spread(s, st)
	c.Lag1 = significance.Lag1(times(units))
}

func times(units []side.UnitRow) []float64 {
	list := make([]float64, len(units))
	for i := range units {
		list[i] = units[i].Time
	}
	return list
}

// spread is the standard deviation over units, or for a quantile that of the normal distribution which is as wide
// there as the summary: (p90 - p50) / (z(0.9) - z(0.5)) for the median, and so on.
func spread(s *report.Summary, st significance.Statistic) float64 {
	between := func(low, high, from, to float64) float64 {
		return max(high-low, 0) / (student.NormalQuantile(1-to) - student.NormalQuantile(1-from))
	}
	switch st {
	case significance.Mean:
		return s.Stddev
	case significance.Median:
		return between(s.P50, s.P90, 0.5, 0.9)
	case significance.P90:
		return between(s.P90, s.P99, 0.9, 0.99)
	case significance.P99: // the largest of n lies about where 1/n is left
		if s.N > 100 {
			return between(s.P99, s.Max, 0.99, 1-1/float64(s.N))
		}
	}
	return s.Stddev
}

// unsteady takes a count for noise that a calibration found to differ between captures of one commit. If it does
// not vary inside a capture, the range between captures is its floor.
func (x *Decider) unsteady(n *significance.Number, metric string, l report.Labels) {
	if x.noise == nil || !n.Count {
		return
	}
	at := slices.IndexFunc(x.noise.Unsteady, func(u Unsteady) bool {
		id, _ := policy.SplitStat(u.Metric)
		return id == metric && u.Labels.String() == l.String()
	})
	if at < 0 {
		return
	}
	n.Count = false
	u := &x.noise.Unsteady[at]
	if u.Min <= 0 {
		n.Floor = mostRatio
		return
	}
	n.Floor = u.Max/u.Min - 1
	for _, s := range [][]significance.Capture{n.Base, n.Head} {
		for i := range s {
			if c := &s[i]; len(c.Units) > 0 && slices.Min(c.Units) == slices.Max(c.Units) {
				c.Units = nil
			}
		}
	}
}
