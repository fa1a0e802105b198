package merge

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// metricsFold merges the metrics of captures, except those of steps.
type metricsFold struct {
	rules   *Rules
	devices *devices
	at      map[string]*metricFold
	list    []*metricFold
	rows    map[string]int // captures that have rows of a table
	named   map[int64]bool // GPUs beyond maxDevices that have metrics of their own
}

type metricFold struct {
	m     report.Metric // of the first capture that has it
	rule  report.Merge
	whole int64
	rest  float64 // sum of values that are not integers; the largest or smallest value
	above float64 // numerator of a ratio
	below float64
	of    deviceKey // its GPU, if it is carried
}

func (f *metricsFold) add(at int, r *report.Report) {
	x := report.NewIndex(r)
	for i := range r.Metrics {
		f.metric(at, x, &r.Metrics[i])
	}
}

func (f *metricsFold) metric(at int, r *report.Index, m *report.Metric) {
	rule := f.rules.of(m)
	if m.Value == nil || rule.How == report.HowLeave || rule.How == report.HowStep {
		return
	}
	key := report.MetricKey(m.ID, m.Labels)
	var of deviceKey
	if rule.How == report.HowDevice {
		fmt.Sscanf(m.Labels["device"], "%d", &of.device)
		of.capture = at
		if f.devices.foreign(of) {
			return
		}
		f.devices.places.Of(of)
		key = fmt.Sprintf("%d %s", at, key)
	}
	v := *m.Value
	x := f.at[key]
	if x == nil {
		x = &metricFold{m: *m, rule: rule, of: of}
		s := &x.m.Source
		x.m.N, s.Rows, s.Tables, s.Columns = 0, 0, slices.Clone(s.Tables), slices.Clone(s.Columns)
		if rule.How == report.HowMax || rule.How == report.HowMin {
			x.rest = v
		}
		f.at[key] = x
		f.list = append(f.list, x)
	}
	x.m.N += m.N
	rows := x.m.Source.Rows + m.Source.Rows
	x.m.Source.Add(&m.Source)
	x.m.Source.Rows = rows
	switch {
	case rule.How == report.HowMax:
		x.rest = max(x.rest, v)
	case rule.How == report.HowMin:
		x.rest = min(x.rest, v)
	case rule.How == report.HowRatio:
		above, below := partsOf(r, m, &rule)
		x.above, x.below = x.above+above, x.below+below
	case rule.How != report.HowSum:
	case v == math.Trunc(v) && math.Abs(v) < 1<<53:
		x.whole += int64(v)
	default:
		x.rest += v
	}
}

// partsOf returns the numerator and the denominator of a ratio in one capture. If no metric states one of them, it
// follows from the ratio and the other.
func partsOf(r *report.Index, m *report.Metric, rule *report.Merge) (above, below float64) {
	v := *m.Value
	if rule.Of == "" {
		below, _ = r.Value(rule.Over, nil)
		return math.Round(v * below), below
	}
	above, _ = r.Value(rule.Of, m.Labels)
	if rule.More && v > 0 {
		return above, math.Round(above / v)
	}
	below, _ = r.Value(rule.Over, m.Labels)
	return above, below
}

// value returns the value of a merged metric; nil if it is unknown.
func (f *metricsFold) value(x *metricFold) *float64 {
	above, below := x.above, x.below
	switch x.rule.How {
	case report.HowDevice:
		return x.m.Value
	case report.HowRatio:
	case report.HowPart: // includes captures that lack this part or do not list it
		if all := f.at[x.rule.Over]; all != nil {
			below = float64(all.whole)
		}
		if part := f.at[report.MetricKey(x.rule.Of, x.m.Labels)]; part != nil {
			above = float64(part.whole)
		}
	default:
		return new(float64(x.whole) + x.rest)
	}
	if below <= 0 {
		return nil
	}
	v := above / below
	if x.m.Unit == report.PerSecond {
		v *= 1e9
	}
	return &v
}

// merged returns the merged metrics; of so many captures, counts are of their events, those of samples if sampled.
func (f *metricsFold) merged(captures int, counts *countsFold, sampled bool) (list []report.Metric) {
	for _, x := range f.list {
		m := x.m
		if x.rule.How == report.HowDevice {
			n := f.devices.number(x.of)
			if n >= maxDevices && !f.named[n] {
				continue
			}
			m.Labels = onDevice(m.Labels, n)
		}
		m.Value = f.value(x)
		if len(m.Source.Tables) > 0 { // coverage is the share of captures that have the table
			if n := f.rows[m.Source.Tables[0]]; n > 0 && n < captures {
				m.Coverage = new(float64(n) / float64(captures))
			}
		}
		if keep, ok := f.eventsOf(&m, &x.rule, sampled); ok {
			all := counts.together(x.rule.Events, keep)
			m.Summary = all.Of.Summary()
			if m.Summary != nil && x.rule.How == report.HowMedian {
				m.Value, m.N = &m.Summary.P50, m.Summary.N
			}
			if all.Coarse {
				if m.Value != nil && m.Summary != nil && m.Scale == report.Total && m.Summary.N == m.N {
					m.Summary.Mean = *m.Value / float64(m.N) // exact
				}
				m.Source.Query = "percentiles from log-spaced counts: within 1 %"
			}
		}
		if x.rule.How == report.HowMedian && m.Summary == nil {
			if !counts.missing {
				continue
			}
			m.Value = nil
		}
		list = append(list, m)
	}
	return list
}

// onDevice are labels with another number of the GPU.
func onDevice(l report.Labels, n int64) report.Labels {
	l = l.Clone()
	l["device"] = fmt.Sprint(n)
	return l
}

// eventsOf returns which counted events the summary of a metric covers; ok is false if it has none. A metric without
// labels covers all events for which the metric also occurs with labels; of samples, whose events have no names, all.
func (f *metricsFold) eventsOf(m *report.Metric, rule *report.Merge, sampled bool) (keep func(key string) bool, ok bool) {
	if rule.Events == "" || rule.Sets != nil && !slices.Contains(rule.Sets, m.Labels.Keys()) {
		return nil, false
	}
	labels := []report.Labels{m.Labels}
	if len(m.Labels) == 0 && rule.How != report.HowMedian && !sampled {
		labels = nil
		for _, x := range f.list {
			if x.m.ID == m.ID && x.rule.Events != "" && len(x.m.Labels) > 0 {
				labels = append(labels, x.m.Labels)
			}
		}
	}
	return func(key string) bool {
		return slices.ContainsFunc(labels, func(l report.Labels) bool { return has(rule.Events, key, l) })
	}, true
}

// ofGPUs returns a metric of single GPUs, the smallest first.
func (f *metricsFold) ofGPUs(id string) []*metricFold {
	list := lists.Filter(f.list, func(x *metricFold) bool {
		return x.m.ID == id && x.rule.How == report.HowDevice && x.m.Labels.Keys() == "device"
	})
	lists.Sort(list, func(a, b *metricFold) int {
		return cmp.Or(cmp.Compare(*a.m.Value, *b.m.Value), cmp.Compare(f.devices.number(a.of), f.devices.number(b.of)))
	})
	return list
}
