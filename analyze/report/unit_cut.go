package report

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// UnitCut is what a report says of its units if they are cut at another anchor than the one it uses.
type UnitCut struct {
	Anchor   UnitAnchor   `json:"anchor"`
	Name     string       `json:"name"`
	Why      string       `json:"why"`
	Groups   []UnitGroup  `json:"groups"`
	Trimmed  UnitTrim     `json:"trimmed"`
	Coverage *float64     `json:"coverage"`
	Series   *UnitSeries  `json:"series,omitempty"`
	Steps    *UnitSteps   `json:"steps,omitempty"`
	Parts    []*UnitParts `json:"parts,omitempty"`
	Metrics  CutMetrics   `json:"metrics"` // of the section
	Source   Source       `json:"source"`  // of all of the metrics
	Section  Section      `json:"section"`
}

// unit is what the report's unit would be.
func (c *UnitCut) unit(of *Unit) Unit {
	u := Unit{Kind: "kernel", Name: c.Name, Why: c.Why, Groups: c.Groups, Trimmed: c.Trimmed, Coverage: c.Coverage,
		Series: c.Series, Steps: c.Steps, Parts: c.Parts}
	if c.Anchor.Ranges {
		u.Kind = "nvtx"
	}
	for _, a := range of.Anchors {
		a.Used = a.Same(&c.Anchor)
		u.Anchors = append(u.Anchors, a)
	}
	return u
}

// unitSection is the section that a cut replaces.
const unitSection = "unit"

// positionsSection is the section about the units' positions, which a cut has no words about.
const positionsSection = "unit_positions"

// Same reports whether two anchors are the same kernels or ranges, however often they occur.
func (a *UnitAnchor) Same(b *UnitAnchor) bool {
	return a.Ranges == b.Ranges && a.Start == b.Start && a.Families == b.Families && a.Merged == b.Merged && slices.Equal(a.Names, b.Names)
}

// Used is the anchor that the units start at, or nil if they were found in another way.
func (u *Unit) Used() *UnitAnchor {
	return lists.Find(u.Anchors, func(a *UnitAnchor) bool { return a.Used })
}

// CutAt is the report with its units cut at an anchor: itself where they are, and ok is false if it does not know.
// The new report shares what does not depend on the unit with r, which stays as it is, and has no further cuts.
// Findings about units are left out.
func (r *Report) CutAt(a *UnitAnchor) (cut *Report, ok bool) {
	if used := r.Unit.Used(); used != nil && used.Same(a) {
		return r, true
	}
	c := lists.Find(r.Unit.Cuts, func(c *UnitCut) bool { return c.Anchor.Same(a) })
	if c == nil {
		return nil, false
	}
	out := *r
	out.Unit = c.unit(&r.Unit)
	old := lists.Set(lists.Filter(r.Metrics, ofUnit), func(m Metric) string { return m.ID })
	out.Metrics = slices.DeleteFunc(slices.Clone(r.Metrics), func(m Metric) bool { return old[m.ID] })
	for _, m := range c.Metrics {
		m.Source = c.Source
		out.Metrics = append(out.Metrics, m)
	}
	out.Sections = slices.Clone(r.Sections)
	*lists.Entry(&out.Sections, func(s Section) bool { return s.ID == unitSection }, Section{}) = c.Section
	out.Sections = slices.DeleteFunc(out.Sections, func(s Section) bool { return s.ID == positionsSection })
	have := lists.Set(out.Metrics, func(m Metric) string { return MetricKey(m.ID, m.Labels) })
	ofUnits := func(doc string, evidence []MetricRef) bool {
		return doc == unitSection || slices.ContainsFunc(evidence, func(m MetricRef) bool {
			return !have[MetricKey(m.ID, m.Labels)]
		})
	}
	out.Findings = slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool {
		return f.Worth != nil && f.Worth.Units > 0 || ofUnits(f.Doc, f.Evidence)
	})
	out.Remarks = slices.DeleteFunc(slices.Clone(r.Remarks), func(m Remark) bool { return ofUnits(m.Doc, m.Evidence) })
	out.Warnings = slices.DeleteFunc(slices.Clone(r.Warnings), func(w Warning) bool { return w.Section == unitSection })
	return &out, true
}

// ofUnit reports whether a metric depends on where units start.
func ofUnit(m Metric) bool { return m.Scale == PerUnit || m.ID == "unit.count" }

// Ratios of kernels per unit.
const (
	AlikeKernels = 1.25 // up to which units have about the same number of kernels
	SameKernels  = 1.02 // up to which they do the same work, wherever they start
)

// AlikeUnits reports whether the numbers of kernels of the main units of all captures differ by this ratio at most.
func AlikeUnits(ratio float64, all ...*Report) bool {
	least, most := int64(math.MaxInt64), int64(0)
	for _, r := range all {
		main := lists.Find(r.Unit.Groups, func(g *UnitGroup) bool { return g.Main })
		if main == nil {
			return false
		}
		least, most = min(least, main.Kernels), max(most, main.Kernels)
	}
	return float64(most) <= ratio*float64(least)
}

// Add adds the tables, the columns and the rows that s lacks: rows are those of the source with most.
func (s *Source) Add(other *Source) {
	for _, name := range other.Tables {
		lists.Place[int32](&s.Tables, name)
	}
	for _, name := range other.Columns {
		lists.Place[int32](&s.Columns, name)
	}
	s.Rows = max(s.Rows, other.Rows)
}

// validate reports the first thing that is wrong with a unit.
func (u *Unit) validate() error {
	for i, a := range u.Anchors {
		if len(a.Names) == 0 || a.Start < 0 || a.Start >= len(a.Names) || a.Count < 0 {
			return fmt.Errorf("anchor %d: starts at kernel %d of %d, %d times", i, a.Start, len(a.Names), a.Count)
		}
	}
	if lists.Count(u.Anchors, func(a UnitAnchor) bool { return a.Used }) > 1 {
		return errors.New("more than one anchor is used")
	}
	if u.Steps != nil {
		if err := u.Steps.validate(); err != nil {
			return fmt.Errorf("steps: %w", err)
		}
	}
	for i, p := range u.Parts {
		if err := p.validate(); err != nil {
			return fmt.Errorf("parts %d: %w", i, err)
		}
	}
	if u.Series == nil {
		return nil
	}
	units, err := u.Series.Decode()
	if err != nil {
		return fmt.Errorf("series: %w", err)
	}
	for i := range units {
		if units[i].Group >= int64(len(u.Groups)) {
			return fmt.Errorf("series: unit %d is of group %d of %d", i, units[i].Group, len(u.Groups))
		}
	}
	return nil
}

// validateCuts checks that a report can be made of each cut; known are the keys of the report's own metrics.
func (r *Report) validateCuts(known map[string]bool) error {
	other := lists.Filter(r.Metrics, func(m Metric) bool { return !ofUnit(m) })
	stay := lists.Set(other, func(m Metric) string { return m.ID }) // metrics that a cut does not replace
	for i, c := range r.Unit.Cuts {
		if err := c.validate(&r.Unit); err != nil {
			return fmt.Errorf("report: cut %d: %w", i, err)
		}
		own := make(map[string]bool, len(c.Metrics))
		for k := range c.Metrics {
			m := c.Metrics[k]
			m.Source = c.Source
			key := MetricKey(m.ID, m.Labels)
			if err := cmp.Or(Sound(&m), m.validate()); err != nil {
				return fmt.Errorf("report: cut %d: metric %s: %w", i, key, err)
			}
			if own[key] || stay[m.ID] && known[key] {
				return fmt.Errorf("report: cut %d: metric %s: appears twice", i, key)
			}
			own[key] = true
		}
	}
	return nil
}

// validate reports the first thing that is wrong with a cut of a unit, its metrics left out.
func (c *UnitCut) validate(of *Unit) error {
	switch {
	case c.Section.ID != unitSection:
		return fmt.Errorf("is not of the section %s", unitSection)
	case !slices.ContainsFunc(of.Anchors, func(a UnitAnchor) bool { return a.Same(&c.Anchor) }):
		return errors.New("is of none of the anchors")
	}
	u := c.unit(of)
	if err := u.validate(); err != nil {
		return fmt.Errorf("unit: %w", err)
	}
	if err := c.Section.validate(); err != nil {
		return fmt.Errorf("section %s: %w", c.Section.ID, err)
	}
	return nil
}
