package rules

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/noise"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/policy"
)

// reports are those of both sides, read by metric and by kernel.
type reports struct {
	base, head *side.Side
	byID       map[string][]*report.Metric // of both sides, those that rules asked for
	shown      map[string]string           // display name of each kernel, by full name
}

// captures are those of both sides, the base's first.
func (o *reports) captures() []*side.Capture { return slices.Concat(o.base.Captures, o.head.Captures) }

// names returns a kernel's full name, and its display name if that differs.
func (o *reports) names(full string) []string {
	if o.shown == nil {
		o.shown = o.base.DisplayNames()
		maps.Copy(o.shown, o.head.DisplayNames())
	}
	if shown := o.shown[full]; shown != "" && shown != full {
		return []string{full, shown}
	}
	return []string{full}
}

// noUnit reports whether a side lacks a unit of work, so that nothing per unit can be compared. It needs GPU work on
// both sides: two captures without work prove nothing.
func (o *reports) noUnit() bool {
	none, work := false, min(len(o.base.Captures), len(o.head.Captures)) > 0
	for _, c := range o.captures() {
		none = none || c.Report.Unit.Kind == "none" || c.Report.Unit.Kind == ""
		work = work && len(c.Report.Environment.GPUs) > 0
	}
	return none && work
}

// selects finds the numbers that a rule names: rows of the comparison first, else the reports' metrics.
func (j *judge) selects(r *policy.Rule) []subject {
	id, stat := policy.SplitStat(r.Metric)
	switch {
	case id == comparison.MetricStructure:
		return structures(r, j.c.Structure)
	case policy.OnKernels(r) && (id == "kernel.time_per_unit" || id == "kernel.count_per_unit") && (stat == "" || stat == "mean"):
		return j.kernels(r, id)
	case id == comparison.MetricToken || id == comparison.MetricTokenRate:
		return j.tokens(r, id, stat)
	}
	list := j.rows(r, id, stat)
	if len(list) > 0 {
		return list
	}
	for _, m := range j.of.metrics(id) {
		if r.Optional && j.of.lacksTail(m, stat) {
			continue
		}
		var also []string
		if kernel, ok := m.Labels["kernel"]; ok {
			also = j.of.names(kernel)[1:]
		}
		if r.Takes(m.Labels, also...) {
			s := j.subject(r, m, id, stat)
			s.kernel = also
			list = append(list, s)
		}
	}
	return list
}

// rows finds the numbers of kinds of unit that a rule names, else rows of the comparison.
func (j *judge) rows(r *policy.Rule, id, stat string) []subject {
	if list := j.held(r, id, stat); len(list) > 0 {
		return list
	}
	return j.compared(r, id, stat)
}

// tokens selects the decode steps of each kind of known batch size, per output token.
func (j *judge) tokens(r *policy.Rule, id, stat string) []subject {
	of, stat := *r, cmp.Or(stat, "mean")
	of.Metric = "unit.time." + stat
	var list []subject
	for _, s := range j.rows(&of, "unit.time", stat) {
		batch, err := strconv.ParseFloat(s.kind["batch"], 64)
		if _, device := s.kind["device"]; err != nil || batch <= 0 || s.kind["phase"] != "decode" || device {
			continue
		}
		s.metric, s.row.Metric, s.scaled = r.Metric, r.Metric, true
		gpus := float64(max(1, len(j.of.head.Captures[0].Report.Environment.GPUs)))
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
func (o *reports) lacksTail(m *report.Metric, stat string) bool {
	return slices.ContainsFunc([]*side.Side{o.base, o.head}, func(s *side.Side) bool {
		sample := s.Sample(m.ID, stat, m.Labels)
		n := sample.N
		if k := int64(len(sample.Values)); k > 0 && min(len(o.base.Captures), len(o.head.Captures)) < 2 {
			n /= k // each capture shows its own tail
		}
		return !noise.Tailed(stat, n)
	})
}

func structures(r *policy.Rule, found []comparison.Structural) []subject {
	var list []subject
	for _, s := range found {
		labels := report.Labels{"finding": s.ID}
		if (len(r.Labels) > 0 || !r.Match.Empty()) && !r.Takes(labels) {
			continue
		}
		list = append(list, subject{metric: comparison.MetricStructure, row: comparison.Row{Metric: comparison.MetricStructure,
			Labels: labels, Base: s.Base, Head: s.Head, Class: s.Class, Why: s.Text}})
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
					other = j.of.names(name)
				}
				name = *n
				own = j.of.names(name)[1:]
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
				row.Class = comparison.Same
				if d := comparison.Value(row.Head) - comparison.Value(row.Base); d != 0 {
					row.Class = comparison.Better(d)
				}
			}
		}
		row.Change()
		noisy := id == policy.KernelTime && row.Class != comparison.Added && row.Class != comparison.Removed
		s := subject{metric: r.Metric, row: row, unit: row.Unit, kernel: own, replaced: other, noisy: noisy, many: true}
		if id == policy.KernelTime && j.x != nil {
			s.number = j.x.Judged.Kernel(k)
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
		if !all && !(row.Kind != "" && r.TakesKind(kindLabels(row, &j.c.Unit))) && !r.TakesExactly(row.Labels) {
			continue
		}
		s := subject{metric: r.Metric, row: *row, kind: kindLabels(row, &j.c.Unit), unit: row.Unit, noisy: row.Unit != report.Count}
		if j.x != nil {
			s.number, s.other = j.x.Judged.Number(row), j.x.Unlike(id, rowStat, row.Labels)
		}
		if list := j.of.metrics(id); len(list) > 0 {
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
	for _, m := range j.of.metrics(id) {
		_, device := m.Labels["device"]
		sample := j.of.head.Sample(id, stat, m.Labels)
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
		labels := kindLabels(&comparison.Row{Labels: full[kind].Labels}, &j.c.Unit)
		if len(r.Labels) == 0 || r.TakesKind(labels) {
			s := j.subject(r, cmp.Or(shown[kind], full[kind]), id, stat)
			s.kind = labels
			list = append(list, s)
		}
	}
	return list
}

// kindLabels returns the labels of the row's kind of unit, which is u if the row itself has none.
func kindLabels(row *comparison.Row, u *comparison.Unit) report.Labels {
	if len(row.Labels) > 0 {
		return row.Labels
	}
	k := side.Kind{Phase: u.Phase, Batch: report.ValueOr(u.Batch, -1), Tokens: report.ValueOr(u.Tokens, -1)}
	return k.Labels()
}

// metrics returns the metrics of an id on either side, each set of labels once, in label order.
func (o *reports) metrics(id string) []*report.Metric {
	if list, ok := o.byID[id]; ok {
		return list
	}
	var list []*report.Metric
	seen := map[string]bool{}
	for _, c := range o.captures() {
		for _, m := range c.Metrics(id) {
			if key := m.Labels.String(); !seen[key] {
				seen[key] = true
				list = append(list, m)
			}
		}
	}
	lists.Sort(list, func(a, b *report.Metric) int { return strings.Compare(a.Labels.String(), b.Labels.String()) })
	if o.byID == nil {
		o.byID = map[string][]*report.Metric{}
	}
	o.byID[id] = list
	return list
}

// subject compares a metric of the reports for which the comparison has no row.
func (j *judge) subject(r *policy.Rule, m *report.Metric, id, stat string) subject {
	s := subject{metric: r.Metric, unit: m.Unit, noisy: m.Assume != report.Exact}
	s.measure(r, m, stat)
	base, head := j.of.base.Sample(id, stat, m.Labels), j.of.head.Sample(id, stat, m.Labels)
	row := comparison.Row{Metric: r.Metric, Labels: m.Labels.Clone(), Unit: m.Unit, Base: base.Mean(),
		Head: head.Mean(), NBase: base.N, NHead: head.N, Class: comparison.Unsettled}
	row.Change()
	_, ofKernel := m.Labels["kernel"]
	s.many = ofKernel || len(m.Labels) > 0 && slices.ContainsFunc([]string{"api", "range", "operation", "name"},
		func(key string) bool { return m.Labels[key] != "" })
	row.Unreplicated = len(base.Values) == 1 || len(head.Values) == 1
	if s.other = j.of.otherWork(m); s.other == "" && j.x != nil {
		s.other = j.x.Unlike(id, stat, m.Labels)
	}
	if row.Base != nil && row.Head != nil && j.x != nil {
		j.x.Settle(&row, m, stat)
		if turned := r.Direction == policy.Up && s.higher || r.Direction == policy.Down && !s.higher; turned {
			row.Class = cmp.Or(opposite[row.Class], row.Class)
		}
		if n, ok := j.x.Reported(m, stat); ok {
			s.number = &n
		}
	}
	s.row = row
	return s
}

// opposite is the class of a change if the rule calls the other direction bad.
var opposite = map[comparison.Class]comparison.Class{comparison.Improved: comparison.Regressed, comparison.Regressed: comparison.Improved}

// measure fills in the properties of the metric that do not depend on its value.
func (s *subject) measure(r *policy.Rule, m *report.Metric, stat string) {
	s.higher, s.stats = m.Better == report.Higher, m.Summary != nil
	s.length = !r.Budgeted() && policy.Grows(m.Scale, stat)
	s.share = m.Unit == report.Ratio && m.Scale == report.Level && m.Assume != report.Exact &&
		len(m.Source.Tables) > 0 && strings.HasPrefix(m.Source.Tables[0], "CUPTI_")
}

// otherWork says how the units of a phase differ between captures, or returns empty. Metrics of a phase alone describe
// its kind with most time: batch 8 must not be compared with batch 16.
func (o *reports) otherWork(m *report.Metric) string {
	phase, ok := m.Labels["phase"]
	if _, batch := m.Labels["batch"]; !ok || batch || m.Scale != report.PerUnit {
		return ""
	}
	var first *side.Kind
	for _, c := range o.captures() {
		at := c.PhaseMain(phase)
		if at < 0 {
			continue
		}
		k := &c.Kinds[at].Kind
		if first = cmp.Or(first, k); *first != *k {
			return "the units of this phase with most time are " + first.String() + " in one capture and " + k.String() + " in another"
		}
	}
	return ""
}
