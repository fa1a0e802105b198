package merge

import (
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/merge/ranks"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// head returns the head of the capture, with the numbers that decide whether it is kept whole among many.
func (c *Capture) head() Head {
	h := c.Head
	pids := lists.Set(c.Tracks, func(t *ranks.Track) int64 { return t.PID })
	h.Ranks, h.Kernels = int64(max(1, len(pids))), c.Own.Kernels
	for _, g := range c.Report.Unit.Groups {
		if g.Main {
			h.Step = c.Own.Steps[g.ID].P50
		}
	}
	return h
}

// What a sample keeps of a report: metrics with these sets of labels, only these metrics of single GPUs, and the first
// rows of these tables, with the others summed up.
var (
	sampleLabels = []string{"", "component", "cause", "collective"}
	sampleOfGPU  = []string{"gpu.busy_time", "gpu.idle_ratio", "kernel.total_time"}
	sampleTables = []string{"kernels/kernels", "components/components"}
)

const (
	sampleRows  = 12 // of a table
	sampleKinds = 12 // of steps
)

// sample returns what is kept of a capture in a run of many: exact counts and times, durations by family in log-spaced
// bins, and some of its collectives.
func (c *Capture) sample() *Capture {
	r := *c.Report
	r.Metrics = slices.DeleteFunc(slices.Clone(r.Metrics), func(m report.Metric) bool {
		keys := m.Labels.Keys()
		return m.Scale == report.PerUnit || !slices.Contains(sampleLabels, keys) && (keys != "device" || !slices.Contains(sampleOfGPU, m.ID))
	})
	r.Unit.Series = nil
	r.Unit.Groups = slices.Clone(r.Unit.Groups)
	lists.Sort(r.Unit.Groups, func(a, b report.UnitGroup) int { return int(min(1, max(-1, b.Count-a.Count))) })
	r.Unit.Groups = r.Unit.Groups[:min(len(r.Unit.Groups), sampleKinds)]
	r.Sections = slices.Clone(r.Sections)
	for i := range r.Sections {
		s := &r.Sections[i]
		tables := []report.Table{}
		for _, t := range s.Tables {
			id := s.ID + "/" + t.ID
			if slices.Contains(sampleTables, id) && c.rules != nil && c.rules.tables[id] != nil {
				tables = append(tables, cut(c.rules.tables[id], t, sampleRows))
			}
		}
		s.Tables = tables
	}
	out := &Capture{Head: c.Head, Report: &r, Own: c.Own, Counts: sampleCounts(c.Counts)}
	out.Own.Steps = map[string]Step{}
	for _, g := range r.Unit.Groups {
		if s, ok := c.Own.Steps[g.ID]; ok {
			out.Own.Steps[g.ID] = s
		}
	}
	out.Tracks = lists.Map(c.Tracks, func(t *ranks.Track) *ranks.Track { return t.Sample(c.Session) })
	return out
}

// sampleCounts merges the durations of each family.
func sampleCounts(list []Counts) (out []Counts) {
	for _, c := range list {
		if n := len(out); n > 0 && out[n-1].Family == c.Family {
			out[n-1].merge(&c)
		} else {
			out = append(out, Counts{Family: c.Family, Coarse: true, Of: c.Of})
		}
	}
	for i := range out {
		out[i].Of = out[i].Of.Coarse()
	}
	return out
}

// cut keeps the first rows of a table, and sums up the others.
func cut(columns map[string]report.Merge, t report.Table, n int) report.Table {
	if len(t.Rows) <= n+1 {
		return t
	}
	f := newTableFold(nil, columns, &t)
	f.cut = 1
	if !t.Others {
		t.TotalRows = int64(len(t.Rows))
	}
	t.Rows, t.Others = append(slices.Clone(t.Rows[:n]), f.othersOf(t.Rows[n:])), true
	return t
}

// sampledNotes says what the report of a run of many captures cannot contain.
func (s *rankSection) sampledNotes() {
	var all, kept int64
	for i := range s.run.members {
		a, k := s.run.members[i].Sampled()
		all, kept = all+a, kept+k
	}
	text := "With more than 256 ranks, the report is made from samples. Counts, times and numbers derived from them are exact, percentiles within 1 %."
	if all > 0 {
		share := float64(kept) / float64(all)
		for i := range s.out.metrics {
			if m := &s.out.metrics[i]; m.Value != nil && slices.Contains(bySample, m.ID) {
				m.Coverage = &share
			}
		}
		text += " Who waits for whom comes from " + unit.Percent(share) + " of the collectives, the same ones on every rank, each counted for those that are left out."
	}
	s.out.section.Notes = append(s.out.section.Notes, text, "Unknown for so many ranks: "+strings.Join(unknownOfMany, ", ")+
		"; and numbers of single kernels after the first, calls, copies, ranges, processes and steps. The captures' own "+
		"reports have them.")
}

// bySample are metrics computed from a sample of the collectives; unknownOfMany are those that are unknown then.
var (
	bySample = []string{"ranks.collectives", "ranks.end_spread", "ranks.end_spread_p99", "rank.collective_time", "rank.wait_time",
		"rank.transfer_time", "rank.last_count", "rank.last_ratio", "rank.late_time", "rank.held_up_time", "rank.cause_time", "rank.first_time"}
	unknownOfMany = []string{"ranks.unmatched", "ranks.step_time"}
)
