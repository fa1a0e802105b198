package diff

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/order"
)

// maxMix bounds the rows of the mix.
const maxMix = 40

// mix counts the units of each kind on both sides, those with most time first. A change of these counts, which is a change
// of what was asked of the program, moves every total and no row of the kind that is compared.
func (x *Sides) mix() {
	var kinds []kind
	for _, s := range []*side{x.base, x.head} {
		for _, c := range s.captures {
			for i := range c.groups {
				if !slices.Contains(kinds, c.groups[i].kind) {
					kinds = append(kinds, c.groups[i].kind)
				}
			}
		}
	}
	for _, k := range kinds {
		m := Mix{Phase: k.phase, Batch: optional(k.batch), Tokens: optional(k.tokens), Compared: len(x.base.views) > 0 && k == x.kind}
		m.BaseCount, m.BaseTime, m.BaseShare = x.base.ofKind(k)
		m.HeadCount, m.HeadTime, m.HeadShare = x.head.ofKind(k)
		if m.BaseTime != nil && m.HeadTime != nil && *m.BaseTime > 0 {
			ratio := *m.HeadTime / *m.BaseTime
			m.Ratio = &ratio
		}
		x.c.Mix = append(x.c.Mix, m)
	}
	order.Stable(x.c.Mix, func(a, b Mix) int {
		return cmp.Compare(value(b.BaseShare)+value(b.HeadShare), value(a.BaseShare)+value(a.HeadShare))
	})
	x.c.Mix = x.c.Mix[:min(len(x.c.Mix), maxMix)]
}

func optional(v int64) *int64 {
	if v < 0 {
		return nil
	}
	return &v
}

// ofKind are the units of a kind on a side: how many, how long one takes on average over all of them, and their share of
// the time of all units, averaged over captures.
func (s *side) ofKind(k kind) (count int64, mean, share *float64) {
	var time, shares float64
	any := false
	for _, c := range s.captures {
		for i := range c.groups {
			if g := &c.groups[i]; g.kind == k {
				any = true
				count += g.Count
				time += g.time()
				shares += g.Share
			}
		}
	}
	if len(s.captures[0].groups) > 0 {
		shares /= float64(len(s.captures))
		share = &shares
	}
	if any && count > 0 {
		time /= float64(count)
		mean = &time
	}
	return count, mean, share
}

// residue lists what differs between the sides and was not compared. Soft fields are warned of. A field that one side does
// not state is listed without a warning.
func (x *Sides) residue() {
	add := func(name string, soft bool, of func(c *capture) string) {
		if b, h := x.base.texts(of), x.head.texts(of); b != h {
			x.c.Residue = append(x.c.Residue, Residue{Field: name, Base: b, Head: h, Soft: soft && b != unknown && h != unknown})
		}
	}
	for _, f := range report.EnvironmentFields() { // a hard one is a reason, and is not warned of beside that
		soft := x.opt.Policy.Environment.class(f.Name) == report.SoftField
		add(f.Name, soft, func(c *capture) string { return cmp.Or(f.Get(&c.Report.Environment), unknown) })
	}
	add("window", true, func(c *capture) string { return c.Report.Window.Mode })
	add("unit", true, func(c *capture) string {
		if c.Report.Unit.Kind == "none" || c.Report.Unit.Kind == "" {
			return "none"
		}
		return strings.TrimSpace(c.Report.Unit.Kind + " " + c.Report.Unit.Name)
	})
	add("tool_version", false, func(c *capture) string { return c.Report.Tool.Version })
}

const unknown = "unknown"

// texts are the values of a field on a side, each once, in the order of the captures.
func (s *side) texts(of func(c *capture) string) string {
	var list []string
	for _, c := range s.captures {
		if t := of(c); !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	return strings.Join(list, " | ")
}

// identicalSides reports whether both sides hold the same numbers and there is GPU work: one capture, analysed or exported
// twice. A metric that one side does not have at all, because its export lacks the columns, and one of a process that has
// another name there, say nothing; a kernel or a call that only one side has does.
func (x *Sides) identicalSides() bool {
	if len(x.base.captures) != len(x.head.captures) {
		return false
	}
	for i, b := range x.base.captures {
		h := x.head.captures[i]
		if !b.holdsWork() || !h.holdsWork() || b.Report.Unit.Kind != h.Report.Unit.Kind {
			return false
		}
		if !b.within(h) || !h.within(b) {
			return false
		}
	}
	return true
}

// holdsWork reports whether GPU work was captured, or there is evidence with numbers in it.
func (c *capture) holdsWork() bool {
	return c.hasGPUWork() || c.evidenceOnly() && slices.ContainsFunc(c.Report.Metrics, func(m report.Metric) bool { return m.Value != nil && *m.Value != 0 })
}

// within reports whether the other capture has every number that c has, as far as it has such metrics.
func (c *capture) within(other *capture) bool {
	families := make(map[string]bool, len(other.Report.Metrics))
	for i := range other.Report.Metrics {
		families[metricFamily(&other.Report.Metrics[i])] = true
	}
	for i := range c.Report.Metrics {
		m := &c.Report.Metrics[i]
		n := other.Metric(m.ID, m.Labels)
		switch {
		case n == nil && m.Labels["pid"] == "" && m.Labels["process"] == "" && families[metricFamily(m)]:
			return false
		case n == nil || m.Value == nil || n.Value == nil:
		case *m.Value != *n.Value || m.Summary != nil && n.Summary != nil && *m.Summary != *n.Summary:
			return false
		}
	}
	return true
}

// metricFamily is a metric with the dimensions that it has here.
func metricFamily(m *report.Metric) string { return m.ID + "{" + m.Labels.Keys() }
