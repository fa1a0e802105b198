package rules

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/noise"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/policy"
)

// selects finds the numbers that a rule names: rows of the comparison first, else the reports' metrics.
func (j *judge) selects(r *policy.Rule) []subject {
	id, stat := policy.SplitStat(r.Metric)
	switch {
	case id == comparison.MetricStructure:
		return j.structures(r)
	case policy.OnKernels(r) && (id == "kernel.time_per_unit" || id == "kernel.count_per_unit") && (stat == "" || stat == "mean"):
		return j.kernels(r, id)
	case id == comparison.MetricToken || id == comparison.MetricTokenRate:
		return j.tokens(r, id, stat)
	}
	if list := j.held(r, id, stat); len(list) > 0 {
		return list
	}
	if list := j.compared(r, id, stat); len(list) > 0 {
		return list
	}
	var list []subject
	for _, m := range j.metrics(id) {
		if r.Optional && j.lacksTail(m, stat) {
			continue
		}
		var also []string
		if kernel, ok := m.Labels["kernel"]; ok {
			also = j.names(kernel)[1:]
		}
		if r.Takes(m.Labels, also...) {
			s := j.subject(r, m, id, stat)
			s.kernel = also
			list = append(list, s)
		}
	}
	return list
}

// tokens selects the decode steps of each kind of known batch size, per output token.
func (j *judge) tokens(r *policy.Rule, id, stat string) []subject {
	of := *r
	of.Metric = "unit.time." + cmp.Or(stat, "mean")
	var list []subject
	numbers := j.held(&of, "unit.time", cmp.Or(stat, "mean"))
	if len(numbers) == 0 {
		numbers = j.compared(&of, "unit.time", cmp.Or(stat, "mean"))
	}
	for _, s := range numbers {
		batch, err := strconv.ParseFloat(s.kind["batch"], 64)
		if _, device := s.kind["device"]; err != nil || batch <= 0 || s.kind["phase"] != "decode" || device {
			continue
		}
		s.metric, s.row.Metric, s.scaled = r.Metric, r.Metric, true
		gpus := float64(max(1, len(j.head.Captures[0].Report.Environment.GPUs)))
		scale := func(v *float64) *float64 {
			if v == nil || *v <= 0 {
				return nil
			}
			x := *v / batch
			if id == comparison.MetricTokenRate {
				x = 1e9 * batch / gpus / *v
			}
			return &x
		}
		s.row.Base, s.row.Head = scale(s.row.Base), scale(s.row.Head)
		if s.row.Head == nil || s.row.Base == nil && !r.Budgeted() {
			continue
		}
		if id == comparison.MetricTokenRate {
			s.inverse, s.higher, s.unit, s.row.Unit = true, true, report.PerSecond, report.PerSecond
			if x := s.row.Interval; x != nil {
				turned := *x
				turned.Low, turned.High = 1/x.High, 1/x.Low
				s.row.Interval = &turned
			}
		}
		s.row.Change()
		list = append(list, s)
	}
	return list
}

// lacksTail reports whether a side has fewer than five observations beyond a percentile, so that it says nothing: the
// p99 of 64 units is their maximum.
func (j *judge) lacksTail(m *report.Metric, stat string) bool {
	for _, s := range []*side.Side{j.base, j.head} {
		sample := s.Sample(m.ID, stat, m.Labels)
		n := sample.N
		if k := int64(len(sample.Values)); k > 0 && min(len(j.base.Captures), len(j.head.Captures)) < 2 {
			n /= k // each capture shows its own tail
		}
		if !noise.Tailed(stat, n) {
			return true
		}
	}
	return false
}

func (j *judge) structures(r *policy.Rule) []subject {
	var list []subject
	for _, s := range j.c.Structure {
		labels := report.Labels{"finding": s.ID}
		if (len(r.Labels) > 0 || !r.Match.Empty()) && !r.Takes(labels) {
			continue
		}
		list = append(list, subject{
			metric: comparison.MetricStructure,
			row: comparison.Row{Metric: comparison.MetricStructure, Labels: labels, Base: s.Base, Head: s.Head,
				Class: s.Class, Why: s.Text},
		})
	}
	return list
}

// kernels selects kernels of the comparison, which knows the replaced ones.
func (j *judge) kernels(r *policy.Rule, id string) []subject {
	var list []subject
	for i := range j.c.Kernels {
		k := &j.c.Kernels[i]
		name := ""
		var own, other []string
		taken := false
		for _, n := range []*string{k.BaseName, k.HeadName} { // a rule may name a replaced kernel or its replacement
			if n != nil {
				if name != "" && name != *n {
					other = j.names(name)
				}
				name = *n
				own = j.names(name)[1:]
				taken = taken || r.Takes(report.Labels{"kernel": name}, own...)
			}
		}
		if !taken || waits(k) && !r.Named() {
			continue
		}
		row := comparison.Row{Metric: id, Labels: report.Labels{"kernel": name}, Unit: report.Nanoseconds,
			Base: k.Base, Head: k.Head, Class: k.Class, Why: k.Why}
		if id == "kernel.count_per_unit" {
			row.Unit, row.Base, row.Head = report.Count, k.BaseCount, k.HeadCount
			row.Why = "counts are exact"
			if row.Class != comparison.Added && row.Class != comparison.Removed {
				row.Class = exactClass(comparison.Value(row.Base), comparison.Value(row.Head))
			}
		}
		row.Change()
		noisy := id == policy.KernelTime && row.Class != comparison.Added && row.Class != comparison.Removed
		s := subject{metric: r.Metric, row: row, unit: row.Unit, kernel: own, replaced: other, noisy: noisy, many: true}
		if n, ok := j.x.Kernel(k); ok && id == policy.KernelTime {
			s.number = &n
		}
		list = append(list, s)
	}
	return list
}

// waits reports whether a kernel's time says nothing by itself: communication lasts as long as it waits for others, and
// the unit's time includes its exposed part.
func waits(k *comparison.Kernel) bool {
	return k.Category == side.Communication && k.Class == comparison.Unsettled && k.PairedBy != "" &&
		comparison.Value(k.BaseCount) == comparison.Value(k.HeadCount)
}

func exactClass(base, head float64) comparison.Class {
	switch {
	case head > base:
		return comparison.Regressed
	case head < base:
		return comparison.Improved
	}
	return comparison.Same
}

// compared finds the rows of the comparison that a rule names: those of every kind of unit, or of the kinds that the
// rule's labels select, whatever other labels these rows have. Among rows without a kind, exactly one must match.
func (j *judge) compared(r *policy.Rule, id, stat string) []subject {
	var list []subject
	for i := range j.c.Primary {
		row := &j.c.Primary[i]
		rowID, rowStat := policy.SplitStat(row.Metric)
		if rowID != id || !policy.SameStat(stat, rowStat) {
			continue
		}
		_, device := row.Labels["device"]
		all := len(r.Labels) == 0 && r.Match.Empty() && !device
		if !all && !(row.Kind != "" && r.TakesKind(j.kindLabels(row))) && !r.TakesExactly(row.Labels) {
			continue
		}
		s := subject{metric: r.Metric, row: *row, kind: j.kindLabels(row), unit: row.Unit, noisy: row.Unit != report.Count}
		if n, ok := j.x.Number(row); ok {
			s.number = &n
		}
		if list := j.metrics(id); len(list) > 0 {
			s.measure(r, list[0], stat)
		}
		list = append(list, s)
	}
	if len(list) > 1 && list[0].row.Kind == "" {
		return nil
	}
	return list
}

// held selects for a budget the numbers of every kind of unit that the head has, whether or not the base has them too.
func (j *judge) held(r *policy.Rule, id, stat string) []subject {
	if !r.Budgeted() || r.Since != "" || !r.Match.Empty() {
		return nil
	}
	var kinds []string
	shown, full := map[string]*report.Metric{}, map[string]*report.Metric{} // with the fewest and with the most labels
	for _, m := range j.metrics(id) {
		_, device := m.Labels["device"]
		sample := j.head.Sample(id, stat, m.Labels)
		if m.Group == "" || device || sample.Mean() == nil {
			continue
		}
		if full[m.Group] == nil {
			kinds = append(kinds, m.Group)
		}
		if full[m.Group] == nil || len(m.Labels) > len(full[m.Group].Labels) {
			full[m.Group] = m
		}
		if len(m.Labels) == 0 {
			shown[m.Group] = m
		}
	}
	var list []subject
	for _, kind := range kinds {
		labels := j.kindLabels(&comparison.Row{Labels: full[kind].Labels})
		if len(r.Labels) == 0 || r.TakesKind(labels) {
			s := j.subject(r, cmp.Or(shown[kind], full[kind]), id, stat)
			s.kind = labels
			list = append(list, s)
		}
	}
	return list
}

// kindLabels returns the labels of the row's kind of unit, even if the row itself has none.
func (j *judge) kindLabels(row *comparison.Row) report.Labels {
	if len(row.Labels) > 0 {
		return row.Labels
	}
	l := report.Labels{"phase": j.c.Unit.Phase}
	if j.c.Unit.Batch != nil {
		l["batch"] = strconv.FormatInt(*j.c.Unit.Batch, 10)
	}
	if j.c.Unit.Tokens != nil {
		l["tokens"] = strconv.FormatInt(*j.c.Unit.Tokens, 10)
	}
	return l
}

// metrics returns the metrics of an id on either side, each set of labels once, in label order.
func (j *judge) metrics(id string) []*report.Metric {
	list, ok := j.byID[id]
	if ok {
		return list
	}
	seen := map[string]bool{}
	for _, side := range []*side.Side{j.base, j.head} {
		for _, c := range side.Captures {
			for _, m := range c.Metrics(id) {
				if key := m.Labels.String(); !seen[key] {
					seen[key] = true
					list = append(list, m)
				}
			}
		}
	}
	slices.SortFunc(list,
		func(a, b *report.Metric) int { return strings.Compare(a.Labels.String(), b.Labels.String()) })
	if j.byID == nil {
		j.byID = map[string][]*report.Metric{}
	}
	j.byID[id] = list
	return list
}

// subject compares a metric of the reports for which the comparison has no row.
func (j *judge) subject(r *policy.Rule, m *report.Metric, id, stat string) subject {
	s := subject{metric: r.Metric, unit: m.Unit, noisy: m.Assume != report.Exact}
	s.measure(r, m, stat)
	base, head := j.base.Sample(id, stat, m.Labels), j.head.Sample(id, stat, m.Labels)
	row := comparison.Row{Metric: r.Metric, Labels: m.Labels.Clone(), Unit: m.Unit, Base: base.Mean(),
		Head: head.Mean(), NBase: base.N, NHead: head.N, Class: comparison.Unsettled}
	row.Change()
	_, ofKernel := m.Labels["kernel"]
	s.many = ofKernel || len(m.Labels) > 0 && slices.ContainsFunc([]string{"api", "range", "operation", "name"},
		func(key string) bool { return m.Labels[key] != "" })
	row.Unreplicated = len(base.Values) == 1 || len(head.Values) == 1
	s.other = j.otherWork(m)
	if row.Base != nil && row.Head != nil && j.x != nil {
		j.x.Settle(&row, m, stat)
		if turned := r.Direction == policy.Up && s.higher || r.Direction == policy.Down && !s.higher; turned {
			row.Class = opposite(row.Class)
		}
		if n, ok := j.x.Reported(m, stat); ok {
			s.number = &n
		}
	}
	s.row = row
	return s
}

// opposite returns the class of a change if the rule calls the other direction bad.
func opposite(c comparison.Class) comparison.Class {
	switch c {
	case comparison.Improved:
		return comparison.Regressed
	case comparison.Regressed:
		return comparison.Improved
	case comparison.Same, comparison.Added, comparison.Removed, comparison.Unsettled:
	}
	return c
}

// measure fills in the properties of the metric that do not depend on its value.
func (s *subject) measure(r *policy.Rule, m *report.Metric, stat string) {
	s.higher, s.stats = m.Better == report.Higher, m.Summary != nil
	s.length = !r.Budgeted() && policy.Grows(m.Scale, stat)
}

// otherWork says how the units of a phase differ between captures, or returns empty. Metrics of a phase alone describe
// its kind with most time: batch 8 must not be compared with batch 16.
func (j *judge) otherWork(m *report.Metric) string {
	phase, ok := m.Labels["phase"]
	if _, batch := m.Labels["batch"]; !ok || batch || m.Scale != report.PerUnit {
		return ""
	}
	var first *side.Kind
	for _, side := range []*side.Side{j.base, j.head} {
		for _, c := range side.Captures {
			at := c.PhaseMain(phase)
			if at < 0 {
				continue
			}
			k := c.Kinds[at].Kind
			if first == nil {
				first = &k
			} else if *first != k {
				return "the units of this phase with most time are " + first.String() + " in one capture and " + k.String() + " in another"
			}
		}
	}
	return ""
}
