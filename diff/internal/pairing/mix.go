package pairing

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/policy"
)

// maxMix is the most rows of the mix.
const maxMix = 40

// Mix counts the units of each kind on both sides, the kinds with most time first. If the program was asked for other
// work, these counts change, and with them every total, but no row of the compared kind.
func (x *Sides) Mix() []comparison.Mix {
	var list []comparison.Mix
	for _, k := range x.Kinds {
		m := comparison.Mix{Phase: k.Name.Phase, Batch: report.Optional(k.Name.Batch), Tokens: report.Optional(k.Name.Tokens),
			Compared: len(x.Base.Views) > 0 && k == x.Main}
		m.BaseCount, m.BaseTime, m.BaseShare = x.Base.OfKind(k.Base)
		m.HeadCount, m.HeadTime, m.HeadShare = x.Head.OfKind(k.Head)
		if m.BaseTime != nil && m.HeadTime != nil && comparison.Value(m.BaseTime) > 0 {
			m.Ratio = new(comparison.Value(m.HeadTime) / comparison.Value(m.BaseTime))
		}
		list = append(list, m)
	}
	lists.Falling(list, func(m comparison.Mix) float64 { return comparison.Value(m.BaseShare) + comparison.Value(m.HeadShare) })
	return list[:min(len(list), maxMix)]
}

// residue lists what differs between the sides and was not compared. It marks soft fields for a warning, unless one
// side does not state the field.
func residue(base, head *side.Side, env policy.Environment) (list []comparison.Residue) {
	add := func(name string, soft bool, of func(c *side.Capture) string) {
		if b, h := base.Texts(of), head.Texts(of); b != h {
			list = append(list,
				comparison.Residue{Field: name, Base: b, Head: h, Soft: soft && b != unknown && h != unknown})
		}
	}
	for _, f := range report.EnvironmentFields() { // a hard field is a reason and needs no warning
		soft := env.Class(f.Name) == report.SoftField
		add(f.Name, soft, func(c *side.Capture) string { return cmp.Or(f.Get(&c.Report.Environment), unknown) })
	}
	add("window", true, func(c *side.Capture) string { return c.Report.Window.Mode })
	add("unit", true, func(c *side.Capture) string {
		if c.Report.Unit.Kind == "none" || c.Report.Unit.Kind == "" {
			return "none"
		}
		return strings.TrimSpace(c.Report.Unit.Kind + " " + c.Report.Unit.Name)
	})
	add("evidence", true, func(c *side.Capture) string {
		return cmp.Or(strings.Join(evidenceKinds(c), ", "), "none")
	})
	add("maps", true, func(c *side.Capture) string {
		maps := lists.Map(c.Report.Trace.Maps, func(m report.MapFile) string { return m.Kind + " map " + m.Name + " " + m.Hash })
		return cmp.Or(strings.Join(maps, ", "), "none")
	})
	add("tool_version", false, func(c *side.Capture) string { return c.Report.Tool.Version })
	return list
}

const unknown = "unknown"

// Identical reports whether both sides hold GPU work and the same numbers: one capture, analysed or exported
// twice. It skips metrics that one side lacks entirely, because its export lacks the columns, and those of a process
// with another name. A kernel or a call that only one side has makes them differ.
func Identical(base, head []*side.Capture) bool {
	return slices.EqualFunc(base, head, func(b, h *side.Capture) bool {
		return b.HoldsWork() && h.HoldsWork() && b.Report.Unit.Kind == h.Report.Unit.Kind && b.Within(h) && h.Within(b)
	})
}

// SameTime reports whether two captures cover the same time of one session, and no number that both have differs: one
// is a copy of the other with other names.
func SameTime(a, b *side.Capture) bool {
	v, w := a.Report.Window, b.Report.Window
	return OneSession(a, b) && v.Start == w.Start && v.Length == w.Length && side.Agree(a, b)
}

// OneSession reports whether two captures are windows of one session of nsys.
func OneSession(a, b *side.Capture) bool {
	if TwoRanks(a, b) { // nsys may begin the sessions of all ranks at once
		return false
	}
	x, y := a.Report.Capture.SessionStart, b.Report.Capture.SessionStart
	if x == nil || y == nil || *x != *y {
		return false
	}
	h, g := a.Report.Capture.Host, b.Report.Capture.Host
	return h == nil || g == nil || *h == *g // nodes that started at the same time are different sessions
}
