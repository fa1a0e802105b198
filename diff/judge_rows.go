package diff

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/internal/infer"
)

// selects finds what a rule is about: rows of the comparison first, and the reports' metrics where it has none.
func (j *judge) selects(r *Rule) []subject {
	id, stat := splitStat(r.Metric)
	switch {
	case id == MetricStructure:
		return j.structures(r)
	case onKernels(r) && (id == "kernel.time_per_unit" || id == "kernel.count_per_unit") && (stat == "" || stat == "mean"):
		return j.kernels(r, id)
	}
	if s, ok := j.compared(r, id, stat); ok {
		return []subject{s}
	}
	var list []subject
	for _, m := range j.metrics(id) {
		if r.takes(m.Labels) {
			list = append(list, j.subject(r, m, id, stat))
		}
	}
	return list
}

// onKernels reports whether a rule is about kernels one by one: by the label kernel alone, or by a match.
func onKernels(r *Rule) bool {
	_, labelled := r.Labels["kernel"]
	return labelled && len(r.Labels) == 1 || len(r.Labels) == 0 && !r.Match.empty()
}

// naming are the labels that Match looks at, in the order of preference.
var naming = []string{"kernel", "range", "api", "component", "collective", "process", "category", "finding"}

// takes reports whether the rule selects a metric with these labels.
func (r *Rule) takes(l report.Labels) bool {
	if len(r.Labels) > 0 && len(r.Labels) != len(l) || len(r.Labels) == 0 && r.Match.empty() && len(l) > 0 {
		return false
	}
	for key, pattern := range r.Labels {
		if v, ok := l[key]; !ok || !glob(pattern, v) {
			return false
		}
	}
	if r.Match.empty() {
		return true
	}
	if len(r.Labels) == 0 && len(l) != 1 {
		return false
	}
	for _, key := range naming {
		if v, ok := l[key]; ok {
			if r.names != nil {
				return r.names.matches(v)
			}
			m := r.Match.compile()
			return m.matches(v)
		}
	}
	return false
}

func (j *judge) structures(r *Rule) []subject {
	var list []subject
	for _, s := range j.c.Structure {
		labels := report.Labels{"finding": s.ID}
		if (len(r.Labels) > 0 || !r.Match.empty()) && !r.takes(labels) {
			continue
		}
		list = append(list, subject{metric: MetricStructure, row: Row{Metric: MetricStructure, Labels: labels, Base: s.Base, Head: s.Head, Class: s.Class, Why: s.Text}})
	}
	return list
}

// kernels are the kernels of the comparison, which knows what replaced what.
func (j *judge) kernels(r *Rule, id string) []subject {
	var list []subject
	for i := range j.c.Kernels {
		k := &j.c.Kernels[i]
		name, alias := "", ""
		taken := false
		for _, n := range []*string{k.BaseName, k.HeadName} { // a rule on either name of a replaced kernel holds
			if n != nil {
				if name != *n {
					name, alias = *n, name
				}
				taken = taken || r.takes(report.Labels{"kernel": name})
			}
		}
		if !taken || waits(k) && !r.named() {
			continue
		}
		row := Row{Metric: id, Labels: report.Labels{"kernel": name}, Unit: report.Nanoseconds, Base: k.Base, Head: k.Head, Class: k.Class, Why: k.Why}
		if id == "kernel.count_per_unit" {
			row.Unit, row.Base, row.Head = report.Count, k.BaseCount, k.HeadCount
			row.Why = "counts are exact"
			if row.Class != Added && row.Class != Removed {
				row.Class = exactClass(value(row.Base), value(row.Head))
			}
		}
		row.change()
		noisy := id == kernelTime && row.Class != Added && row.Class != Removed
		list = append(list, subject{metric: r.Metric, row: row, unit: row.Unit, alias: alias, noisy: noisy})
	}
	return list
}

// waits reports whether a kernel's time says nothing by itself: communication lasts as long as it waits for others, and the
// exposed part of it is in the unit's time.
func waits(k *Kernel) bool {
	return k.Category == communication && k.Class == Unsettled && k.PairedBy != "" && value(k.BaseCount) == value(k.HeadCount)
}

// named reports whether the rule singles kernels out, rather than taking them all.
func (r *Rule) named() bool {
	pattern, ok := r.Labels["kernel"]
	return ok && strings.Trim(pattern, "*?") != "" || !r.Match.empty() && strings.Trim(r.Match.Glob, "*?") != "" || r.Match.Regex != ""
}

func exactClass(base, head float64) Class {
	switch {
	case head > base:
		return Regressed
	case head < base:
		return Improved
	}
	return Same
}

// change fills in delta and ratio.
func (r *Row) change() {
	if r.Base == nil || r.Head == nil {
		return
	}
	delta := *r.Head - *r.Base
	r.Delta = &delta
	if *r.Base > 0 {
		ratio := *r.Head / *r.Base
		r.Ratio = &ratio
	}
}

// compared finds the row of the comparison that a rule names. Primary rows are of the kind of unit that was compared, which
// labels may single out; a rule without labels means that kind.
func (j *judge) compared(r *Rule, id, stat string) (subject, bool) {
	at, several := -1, false
	for i := range j.c.Primary {
		row := &j.c.Primary[i]
		rowID, rowStat := splitStat(row.Metric)
		if rowID != id || !sameStat(stat, rowStat) {
			continue
		}
		if j.phaseRow(r, row) || r.takes(row.Labels) && len(r.Labels) == len(row.Labels) && !wild(r.Labels) {
			at, several = i, false
			break
		}
		if len(r.Labels) == 0 && r.Match.empty() {
			several = at >= 0
			at = i
		}
	}
	if at < 0 || several {
		return subject{}, false
	}
	row := j.c.Primary[at]
	s := subject{metric: r.Metric, row: row, unit: row.Unit, noisy: row.Unit != report.Count}
	if list := j.metrics(id); len(list) > 0 {
		s.measure(r, list[0], stat)
	}
	return s, true
}

// phaseRow reports whether a rule on a phase means this row: metrics that carry the phase alone are of its kind of unit with
// most time, so they do if that is the kind which was compared, in every capture.
func (j *judge) phaseRow(r *Rule, row *Row) bool {
	phase := r.Labels["phase"]
	if phase == "" || len(r.Labels) != 1 || phase != j.c.Unit.Phase {
		return false
	}
	if len(row.Labels) == 0 {
		return true
	}
	compared := kind{phase: phase, batch: orUnknown(j.c.Unit.Batch), tokens: orUnknown(j.c.Unit.Tokens)}
	for _, side := range []*side{j.base, j.head} {
		for _, c := range side.captures {
			if at := c.PhaseMain(phase); at < 0 || c.groups[at].kind != compared {
				return false
			}
		}
	}
	return true
}

// orUnknown is a number, or the -1 that stands for none.
func orUnknown(v *int64) int64 {
	if v == nil {
		return -1
	}
	return *v
}

// sameStat: a metric of the unit of work has its median as its value.
func sameStat(a, b string) bool {
	return a == b || a == "" && b == "p50" || a == "p50" && b == ""
}

func wild(l report.Labels) bool {
	for _, v := range l { // in any order
		if slices.ContainsFunc([]rune(v), func(r rune) bool { return r == '*' || r == '?' }) {
			return true
		}
	}
	return false
}

// metrics are the metrics of an id on either side, each set of labels once, in the order of the labels.
func (j *judge) metrics(id string) []*report.Metric {
	list, ok := j.byID[id]
	if ok {
		return list
	}
	seen := map[string]bool{}
	for _, side := range []*side{j.base, j.head} {
		for _, c := range side.captures {
			for _, m := range c.Metrics(id) {
				if key := m.Labels.String(); !seen[key] {
					seen[key] = true
					list = append(list, m)
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b *report.Metric) int { return strings.Compare(a.Labels.String(), b.Labels.String()) })
	if j.byID == nil {
		j.byID = map[string][]*report.Metric{}
	}
	j.byID[id] = list
	return list
}

// subject compares a metric of the reports that the comparison has no row of.
func (j *judge) subject(r *Rule, m *report.Metric, id, stat string) subject {
	s := subject{metric: r.Metric, unit: m.Unit, noisy: m.Assume != report.Exact}
	s.measure(r, m, stat)
	base, head := j.base.sample(id, stat, m.Labels), j.head.sample(id, stat, m.Labels)
	row := Row{Metric: r.Metric, Labels: m.Labels.Clone(), Unit: m.Unit, Base: base.mean(), Head: head.mean(), NBase: base.n, NHead: head.n, Class: Unsettled}
	row.change()
	row.Unreplicated = len(base.values) == 1 || len(head.values) == 1
	s.other = j.otherWork(m)
	if row.Base != nil && row.Head != nil {
		certain, why := certain(base, head, m, j.p.Stats.Alpha)
		row.Why = why
		switch worse := (*row.Delta > 0) != s.higher; {
		case *row.Delta == 0 || !certain && math.Abs(math.Log(*row.Head / *row.Base)) <= math.Log1p(DefaultFloor):
			row.Class = Same
		case !certain:
		case r.Direction == "" && worse, r.Direction == Up && *row.Delta > 0, r.Direction == Down && *row.Delta < 0, r.Direction == Both:
			row.Class = Regressed
		default:
			row.Class = Improved
		}
	}
	s.row = row
	return s
}

// measure fills in what is true of the metric, whatever its value.
func (s *subject) measure(r *Rule, m *report.Metric, stat string) {
	s.higher, s.stats = m.Better == report.Higher, m.Summary != nil
	s.length = !r.budgeted() && grows(report.ScaleOf(m.ID, m.Unit, m.Scale), stat)
}

// otherWork says how the units of a phase differ between the captures, whose metrics by the phase alone are of the kind
// with most time: those of batch 8 are not to be compared to those of batch 16. Empty where they do not.
func (j *judge) otherWork(m *report.Metric) string {
	phase, ok := m.Labels["phase"]
	if _, batch := m.Labels["batch"]; !ok || batch || report.ScaleOf(m.ID, m.Unit, m.Scale) != report.PerUnit {
		return ""
	}
	var first *kind
	for _, side := range []*side{j.base, j.head} {
		for _, c := range side.captures {
			at := c.PhaseMain(phase)
			if at < 0 {
				continue
			}
			k := c.groups[at].kind
			if first == nil {
				first = &k
			} else if *first != k {
				return "the units of this phase with most time are " + first.String() + " in one capture and " + k.String() + " in another"
			}
		}
	}
	return ""
}

// sample is one metric on one side.
type sample struct {
	values   []float64 // by capture that has it
	captures int
	n        int64 // observations behind the values
	summary  *report.Summary
	stat     string
}

// statOf is a statistic of a metric's summary, or its value.
func statOf(m *report.Metric, stat string) (float64, bool) {
	if stat == "" {
		return value(m.Value), m.Value != nil
	}
	s := m.Summary
	if s == nil {
		return 0, false
	}
	switch stat {
	case "min":
		return s.Min, true
	case "p50":
		return s.P50, true
	case "p90":
		return s.P90, true
	case "p99":
		return s.P99, true
	case "max":
		return s.Max, true
	case "mean":
		return s.Mean, true
	}
	return s.Stddev, true
}

// mean is null unless every capture has the value.
func (s *sample) mean() *float64 {
	if len(s.values) == 0 || len(s.values) < s.captures {
		return nil
	}
	sum := 0.0
	for _, v := range s.values {
		sum += v
	}
	sum /= float64(len(s.values))
	return &sum
}

// certain reports whether a change is more than noise, and why. It goes by a fifth of alpha, which by default is 0.01, since
// these metrics are tested one by one, without a correction for their number.
//
// Exact metrics are equal unless something changed. With several captures a side the logarithms of their values are tested
// (infer.TREAT against no change, p <= alpha/5). With one a side the change has to be beyond the noise floor, and where the
// metric has a summary with a mean and a spread s over n observations, the interval of the difference of the means,
//
//	head - base ± z sqrt(s0²/n0 + s1²/n1), with z the normal quantile of 1 - alpha/10: 2.576 by default,
//
// must not hold 0. Observations in one capture are not independent, which is what the floor is for.
//
// A share that falls to 0 or rises from it has changed if it was more than the floor.
func certain(base, head sample, m *report.Metric, alpha float64) (bool, string) {
	level := alpha / 5
	b, h := *base.mean(), *head.mean()
	if b == h {
		return true, "the values are equal"
	}
	if m.Assume == report.Exact {
		return true, "the metric is exact"
	}
	if b <= 0 || h <= 0 {
		if m.Unit == report.Ratio && math.Abs(h-b) > DefaultFloor {
			return true, "a share of 0 on one side only"
		}
		return false, "one of the values is 0, so that no noise floor applies"
	}
	if len(base.values) > 1 && len(head.values) > 1 && positive(base.values) && positive(head.values) {
		t := infer.TREAT([]infer.Sample{{ID: "value", Base: logs(base.values), Head: logs(head.values)}}, 0, level, false)[0]
		why := fmt.Sprintf("p = %s over %d and %d captures", strconv.FormatFloat(t.P, 'g', 3, 64), len(base.values), len(head.values))
		return t.P <= level, why
	}
	ratio := math.Abs(math.Log(h / b))
	why := "unreplicated; noise floor " + unit.Percent(DefaultFloor)
	if ratio <= math.Log1p(DefaultFloor) {
		return false, why + " is not exceeded"
	}
	if x, y := base.summary, head.summary; x != nil && y != nil && x.N > 1 && y.N > 1 && base.spreads() {
		half := infer.NormalQuantile(level/2) * math.Sqrt(x.Stddev*x.Stddev/float64(x.N)+y.Stddev*y.Stddev/float64(y.N))
		if math.Abs(y.Mean-x.Mean) <= half {
			return false, why + " is exceeded, but the means differ by no more than their spread explains"
		}
	}
	return true, why + " is exceeded"
}

// spreads reports whether the spread of the observations says something of the statistic.
func (s *sample) spreads() bool { return s.stat == "" || s.stat == "mean" || s.stat == "p50" }

func positive(values []float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return v <= 0 })
}

func logs(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = math.Log(v)
	}
	return out
}
