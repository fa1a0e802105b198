package merge

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
)

// Take gives a capture its report, without what a merged report does not need.
func (r *Rules) Take(c *Capture, of *report.Report) { c.Report, c.rules = r.lean(of), r }

// lean copies a report without what a merged report does not need: charts, findings, other splits into units, and the
// metrics and tables that only single captures report.
func (r *Rules) lean(of *report.Report) *report.Report {
	out := *of
	out.Unit.Cuts, out.Unit.Steps, out.Unit.Parts = nil, nil, nil
	out.Findings, out.Remarks = []report.Finding{}, []report.Remark{}
	out.Evidence = []report.EvidenceFile{}
	out.Metrics = slices.DeleteFunc(slices.Clone(of.Metrics), func(m report.Metric) bool {
		return r.of(&m).How == report.HowLeave
	})
	for i := range out.Metrics {
		m := &out.Metrics[i]
		m.Histogram = nil
		if m.Scale != report.PerUnit {
			m.Summary = nil
		}
	}
	out.Sections = slices.Clone(of.Sections)
	for i := range out.Sections {
		s := &out.Sections[i]
		s.Charts, s.Notes, s.Derivation = []report.Chart{}, []string{}, ""
		s.Tables = slices.DeleteFunc(slices.Clone(s.Tables), func(t report.Table) bool {
			return r.tables[s.ID+"/"+t.ID] == nil
		})
	}
	return &out
}
