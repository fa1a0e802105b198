package merge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/merge/ranks"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

const (
	findShare = 0.01 // of the window, that others waited for one rank: worth a finding
	highShare = 0.05
	// leastOften is in how many collectives a rank takes part for it to be told that it comes last in most of them.
	leastOften = 20
	// maxCauses is how many things that a late rank did more than others are told.
	maxCauses = 8
)

// find names the rank that the others wait for.
func (s *rankSection) find() {
	slow := -1
	for i := range s.ranks {
		if b := s.ranks[i].sum.Blame; b > 0 && (slow < 0 || b > s.ranks[slow].sum.Blame) {
			slow = i
		}
	}
	if slow < 0 || len(s.ranks) < 2 {
		return
	}
	r := &s.ranks[slow]
	window := s.f.captures[r.capture].window.Length
	share := float64(r.sum.Blame) / float64(max(1, window))
	often := r.sum.N >= leastOften && 2*r.sum.Last > r.sum.N
	severity := report.Low
	switch {
	case share >= highShare:
		severity = report.High
	case share >= findShare:
		severity = report.Medium
	case !often:
		return
	}
	ref := func(id string) report.MetricRef {
		return report.MetricRef{ID: id, Labels: report.Labels{"rank": r.label}}
	}
	evidence := []report.MetricRef{ref("rank.last_ratio"), ref("rank.held_up_time"), ref("rank.last_count"),
		ref("rank.late_time"), ref("rank.wait_time")}
	title := fmt.Sprintf("Rank %s arrives last in %s of collectives", r.label,
		unit.Format(float64(r.sum.Last)/float64(r.sum.N), report.Ratio))
	if len(r.sum.Causes) > 0 && r.sum.Causes[0].Time > 0 && r.sum.Told > 0 {
		c := &r.sum.Causes[0]
		title += ": " + because(c.Act, unit.Format(c.Time/float64(r.sum.Told), report.Nanoseconds))
		evidence = append(evidence, report.MetricRef{ID: "rank.cause_time",
			Labels: report.Labels{"rank": r.label, "cause": c.Act}})
	}
	s.findings = append(s.findings, report.Finding{ID: "rank_straggler", Severity: severity, Title: title,
		Evidence: evidence,
		Advice: []string{
			"Look at the report of this rank's own capture, between its collectives: the table of what late ranks did more than others says where.",
			"Usual reasons: a rank that also samples, schedules or logs; uneven shards, experts or pipeline stages; a host thread on the wrong NUMA node; a GPU at lower clocks (nvidia-smi -q -d CLOCK,PERFORMANCE).",
		}, Doc: "ranks", Worth: &report.Worth{Time: min(r.sum.Blame, window), Of: window}})
}

// because says in words what a late rank did longer than others, by how much each time.
func because(act, longer string) string {
	switch act {
	case "compute":
		return "it computes " + longer + " longer"
	case "other communication":
		return "it communicates " + longer + " longer"
	case "copies":
		return "it copies " + longer + " longer"
	case "idle: sync":
		return "its host waits for the GPU " + longer + " longer"
	case "idle: host":
		return "its host is late by " + longer
	case "idle: launch":
		return "its launches take " + longer + " longer"
	case "idle: dependency":
		return "its work is queued " + longer + " longer"
	case "idle: unknown":
		return "its GPU is idle " + longer + " longer"
	case ranks.HostIn + ranks.OnNoCPU:
		return "its host is late by " + longer + " on no CPU"
	}
	if call, ok := strings.CutPrefix(act, ranks.HostIn); ok {
		return "its host is late by " + longer + " in " + call
	}
	return "its host spends " + longer + " more in " + act
}

func known(v *int64) report.Cell {
	if v == nil {
		return report.Null
	}
	return report.I(*v)
}

func sortedKeys[V any](m map[int64]V) []int64 { return slices.Sorted(maps.Keys(m)) }
