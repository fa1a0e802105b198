package noise

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/significance"
	"github.com/nsys-llm/explain/diff/policy"
	"github.com/nsys-llm/explain/diff/student"
)

// Constants of a calibration.
const (
	noiseLevel       = 0.99 // share of comparisons of one capture a side that stay below a floor
	leastThreshold   = 0.03
	mostRatio        = 10 // 1000 %: a metric with a larger floor is useless anyway
	thresholdMADs    = 3 * significance.NormalMAD
	maxSkipped       = 100   // skipped metrics that are listed
	calibratedShare  = 0.005 // kernels below this share of the unit get no rule of their own
	maxCalibratedRow = 30    // kernels with a suggested rule
)

// Calibration is the noise of several captures of one commit, and the verdicts that the suggested thresholds would have
// given them.
type Calibration struct {
	Noise
	FalseAlarms int64     `json:"false_alarms"` // captures of LeaveOneOut that fail
	LeaveOneOut []LeftOut `json:"leave_one_out"`
}

// LeftOut is one capture compared with all others under the suggested rules, with the noise of the others if they are
// two or more.
type LeftOut struct {
	Name    string             `json:"name"`
	Verdict comparison.Verdict `json:"verdict"`
	// false findings: rules that fail and kernels reported as slower
	Alarms           []string `json:"alarms"`
	RegressedKernels int64    `json:"regressed_kernels"`
	ImprovedKernels  int64    `json:"improved_kernels"`
	Kernels          int64    `json:"kernels"` // compared
}

// reading holds the value of one number in each capture.
type reading struct {
	metric string
	labels report.Labels
	unit   string
	scale  report.Scale
	exact  bool
	values []float64 // NaN if a capture lacks it
	within []float64 // coefficients of variation inside the captures
}

// readings returns the numbers that a calibration uses, sorted by metric and labels: noisy ones that do not grow with
// the length of a capture, with the statistics that rules use, and exact ones per unit of work.
func readings(captures []*report.Report) []reading {
	var keys lists.Numbering[string]
	var list []reading
	put := func(i int, m *report.Metric, stat string, value float64) {
		name := policy.JoinStat(m.ID, stat)
		r := lists.At(&list, keys.Of(name+"{"+m.Labels.String()))
		if r.values == nil {
			*r = reading{metric: name, labels: m.Labels.Clone(), unit: m.Unit, scale: m.Scale,
				exact: m.Assume == report.Exact, values: slices.Repeat([]float64{math.NaN()}, len(captures))}
		}
		r.values[i] = value
		if s := m.Summary; s != nil && s.N > 1 && s.Mean > 0 {
			r.within = append(r.within, s.Stddev/s.Mean)
		}
	}
	for i, r := range captures {
		for k := range r.Metrics {
			m := &r.Metrics[k]
			s, whole := m.Summary, m.Scale == report.Total
			if s != nil && policy.OfKernel(m.ID, m.Labels) {
				put(i, m, "", s.Mean)
				continue
			}
			if m.Value != nil && !whole && (m.Assume == report.Noisy || m.Scale == report.PerUnit) {
				put(i, m, "", *m.Value)
			}
			if s != nil && m.Assume == report.Noisy {
				put(i, m, "mean", s.Mean)
				if whole {
					put(i, m, "p50", s.P50)
				}
				if strings.HasPrefix(m.ID, "unit.") {
					put(i, m, "p90", s.P90)
					put(i, m, "p99", s.P99)
				}
			}
		}
	}
	lists.Sort(list, func(a, b reading) int {
		return cmp.Or(strings.Compare(a.metric, b.metric), strings.Compare(a.labels.String(), b.labels.String()))
	})
	return list
}

// Measure computes the noise of captures of one commit and the smallest changes that a comparison can then find.
func Measure(captures []*report.Report) *Noise {
	n := MeasureFloors(captures)
	for i := range n.Metrics {
		n.Metrics[i].detectable()
	}
	return n
}

// MeasureFloors is Measure without the smallest changes (MDE is empty): they cost a hundred times as much as the floors,
// and a comparison needs only the floors.
func MeasureFloors(captures []*report.Report) *Noise {
	n := &Noise{Schema: schemaID, Tool: captures[0].Tool, Captures: int64(len(captures)),
		Env: EnvOf(captures[0]), Level: noiseLevel, Power: significance.Power}
	report.Complete(n)
	n.Names = lists.Map(captures, func(r *report.Report) string { return r.Trace.Name })
	for _, r := range readings(captures) {
		lacks := slices.IndexFunc(r.values, math.IsNaN)
		zero := slices.IndexFunc(r.values, func(v float64) bool { return v <= 0 })
		switch {
		case r.exact && lacks < 0:
			if lo, hi := slices.Min(r.values), slices.Max(r.values); lo != hi {
				n.Unsteady = append(n.Unsteady, Unsteady{r.metric, r.labels, lo, hi})
			}
		case r.exact:
		case lacks >= 0:
			n.skip(&r, fmt.Sprintf("not in capture %d", lacks+1))
		case zero >= 0:
			n.skip(&r, fmt.Sprintf("not above zero in capture %d", zero+1))
		default:
			n.Metrics = append(n.Metrics, r.noise())
		}
	}
	return n
}

func (n *Noise) skip(r *reading, why string) {
	if len(n.Skipped) < maxSkipped {
		n.Skipped = append(n.Skipped, Skip{r.metric, r.labels, why})
	}
}

// noise computes the noise, threshold and floor of one number from its values.
func (r *reading) noise() Metric {
	ln := lists.Map(r.values, math.Log)
	m := Metric{Metric: r.metric, Labels: r.labels, Unit: r.unit, Scale: r.scale, Values: r.values,
		DF: float64(len(ln) - 1), MDE: []float64{}}
	m.Noise = significance.Deviation(ln)
	m.MAD = significance.MAD(ln)
	if len(r.within) > 0 {
		m.Within = new(lists.Total(r.within) / float64(len(r.within)))
	}
	m.Threshold = max(leastThreshold, ratioOf(thresholdMADs*m.MAD))
	m.floor()
	return m
}

// floor sets the floor from the noise and its degrees of freedom.
func (m *Metric) floor() {
	m.Floor = ratioOf(student.Quantile(1-noiseLevel, m.DF) * m.Noise * math.Sqrt2)
}

// detectable sets the smallest changes that 1, 2 and 3 captures a side can find.
func (m *Metric) detectable() {
	m.MDE = m.MDE[:0]
	plan := significance.Plan{Captures: 1, SD: m.Noise, DF: m.DF, Tau: math.Log1p(m.Threshold), Alpha: significance.Alpha,
		Floor: math.Log1p(m.Floor)}
	for k := range 3 { // only one capture a side needs the floor
		m.MDE = append(m.MDE, min(plan.Detectable(significance.Power), mostRatio))
		plan.Captures, plan.Floor = k+2, 0
	}
}

// ratioOf converts a change of ln to a ratio, at most mostRatio.
func ratioOf(ln float64) float64 { return min(math.Expm1(ln), mostRatio) }

// Rules returns the default rules with the suggested thresholds for the unit's time and for each kernel that is large
// enough.
func (n *Noise) Rules() []policy.Rule {
	rules := policy.DefaultRules()
	of := func(id string) *policy.Rule { // of the preset, whose ids a test holds
		return lists.Find(rules, func(r *policy.Rule) bool { return r.ID == id })
	}
	unitTime := n.Find("unit.time", report.Labels{})
	if unitTime == nil {
		return rules
	}
	of("step").Rel = new(unitTime.Threshold)
	kernels, unit := of("kernels"), slices.Min(unitTime.Values)
	for _, m := range n.LargestKernels() {
		if slices.Max(m.Values) < calibratedShare*unit {
			continue
		}
		r := *kernels
		r.Labels, r.Rel = m.Labels.Clone(), new(m.Threshold)
		rules = append(rules, r)
	}
	return rules
}

// LargestKernels returns the calibrated kernels of the main unit, longest first, at most maxCalibratedRow.
func (n *Noise) LargestKernels() []*Metric {
	var list []*Metric
	for i := range n.Metrics {
		if m := &n.Metrics[i]; policy.OfKernel(m.Metric, m.Labels) {
			list = append(list, m)
		}
	}
	lists.Falling(list, func(m *Metric) float64 { return slices.Max(m.Values) })
	return list[:min(len(list), maxCalibratedRow)]
}

// WriteCalibration validates a calibration and writes it as JSON. [Read] reads the noise in it.
func WriteCalibration(w io.Writer, c *Calibration) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if err := report.Sound(c); err != nil {
		return fmt.Errorf("calibration: %w", err)
	}
	return report.WriteLines(w, c)
}
