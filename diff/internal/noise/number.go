package noise

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/internal/significance"
	"github.com/nsys-llm/explain/diff/policy"
	"github.com/nsys-llm/explain/diff/student"
)

// timer is the resolution of a timestamp, ns.
const timer = 1

// statistics are those that are judged, by the names that rules use.
var statistics = map[string]significance.Statistic{"mean": significance.Mean, "p50": significance.Median,
	"p90": significance.P90, "p99": significance.P99}

// Tailed reports whether n observations are enough for a statistic, see [significance.Statistic.Enough].
func Tailed(stat string, n int64) bool {
	st, ok := statistics[stat]
	return !ok || st.Enough(int(n))
}

// Known is what is known of the noise of numbers before they are judged.
type Known struct {
	noise *Noise  // nil if there is no calibration, or it does not apply to both sides
	floor float64 // of the unit's time, from the policy, a ratio; 0: none
	// otherRun reports that the sides come from different runs. Captures of one run do not show how runs differ, so the
	// noise floor applies to any number of captures.
	otherRun bool
}

// UnitFloor returns the noise floor of the mean unit.time as a ratio: calibrated, else set by the policy, else assumed.
func (k *Known) UnitFloor() float64 {
	if m := k.noise.Find("unit.time.mean", nil); m != nil {
		return m.Floor
	}
	return cmp.Or(k.floor, comparison.DefaultFloor)
}

// number returns a number without values, with its noise from the calibration.
func (k *Known) number(metric string, l report.Labels, unit string, st significance.Statistic) significance.Number {
	n := significance.Number{Stat: st, FloorStays: k.otherRun}
	if unit == report.Nanoseconds {
		n.Timer = timer
	}
	id, _ := policy.SplitStat(metric)
	if m := cmp.Or(k.noise.Find(metric, l), k.noise.Find(id, l)); m != nil { // the statistic's own noise, else the metric's
		n.History = &significance.History{S2: m.Noise * m.Noise, DF: m.DF}
	}
	if k.floor > 0 && n.History == nil && id == "unit.time" {
		n.Floor = k.floor
	}
	return n
}

// Reported returns a statistic of a metric, or its value if stat is empty, as a number to judge, with its known noise.
// ok is false if a capture lacks it or has a value of 0, because there is no ratio then.
func (x *Decider) Reported(m *report.Metric, stat string) (n significance.Number, ok bool) {
	name, value := policy.JoinStat(m.ID, stat), stat
	if stat == "" && (m.Scale == report.PerUnit || m.Scale == report.Event) { // the statistic that its value is
		value = "p50"
		if policy.OfKernel(m.ID, m.Labels) {
			value = "mean"
		}
	}
	st, summed := statistics[value]
	n = x.Known.number(name, m.Labels, m.Unit, st)
	n.HigherBetter, n.Count = m.Better == report.Higher, m.Assume == report.Exact
	switch {
	case slices.Contains(m.Source.Tables, "server-log"):
		n.Samples = "log lines"
	case m.Scale != report.PerUnit:
		n.Samples = "samples"
	}
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
	if len(x.Base.Views) == 1 && m.Labels.String() == x.Base.Views[0].Labels.String() { // the compared units
		x.ties.tie(&n, x.Base.Views, x.Head.Views)
	}
	x.Known.unsteady(&n, m.ID, m.Labels)
	return n, true
}

// unitsOf returns the values of the units or log lines behind a statistic; nil if they are not listed.
func unitsOf(c *side.Capture, m *report.Metric, stat string) []float64 {
	for _, n := range numbers() {
		if n.id == m.ID && n.stat == stat && n.column != "" {
			return side.SteadyLines(c.Index, n.column)
		}
	}
	return side.UnitValues(c.UnitsBehind(m), m.ID)
}

// summarised takes the count and the spread from the summary if a number's units are not listed. The autocorrelation
// comes from the times of units, if there are any.
func summarised(c *significance.Capture, s *report.Summary, st significance.Statistic, unlisted bool, units []side.UnitRow) {
	if !unlisted || s == nil {
		return
	}
	c.N, c.SD = int(s.N), spread(s, st)
	c.Lag1 = significance.Lag1(side.UnitValues(units, "unit.time"))
}

// spread returns the standard deviation over units. For a quantile it is that of a normal distribution as wide as the
// summary beyond it: for the median (p90 - p50) / (z(0.9) - z(0.5)).
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
	case significance.P99: // the largest of n is about the quantile 1 - 1/n
		if s.N > 100 {
			return between(s.P99, s.Max, 0.99, 1-1/float64(s.N))
		}
	}
	return s.Stddev
}

// unsteady treats a count as noisy if the calibration found that it differs between captures of one commit. Its floor is
// the range between those captures; units that do not vary inside a capture are dropped.
func (k *Known) unsteady(n *significance.Number, metric string, l report.Labels) {
	if k.noise == nil || !n.Count {
		return
	}
	u := lists.Find(k.noise.Unsteady, func(u *Unsteady) bool {
		id, _ := policy.SplitStat(u.Metric)
		return id == metric && u.Labels.String() == l.String()
	})
	if u == nil {
		return
	}
	n.Count = false
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
