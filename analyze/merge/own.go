package merge

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// Own holds numbers of one capture that belong to its ranks, its GPUs or its steps rather than to the run.
type Own struct {
	Kernels int64              `json:"kernels"`                  // sum of the durations of kernels, ns
	P2P     map[int64]int64    `json:"point_to_point,omitempty"` // by device: ns in which only point-to-point kernels run
	Experts *int64             `json:"experts,omitempty"`        // ns in kernels of experts; nil unknown
	Energy  map[int64]*float64 `json:"energy,omitempty"`         // by device: joules; nil unknown
	Power   map[int64]float64  `json:"power,omitempty"`          // by device: watts
	Steps   map[string]Step    `json:"steps,omitempty"`          // by id of the kind of unit, on its slowest device
}

// Step is the time of one kind of unit, in ns.
type Step struct {
	P50  float64 `json:"p50"`
	Mean float64 `json:"mean"`
}

// eachOut reports, for each rank and each GPU, what is not about collectives.
func (s *rankSection) eachOut() {
	s.bubbles()
	s.experts()
	s.energy()
}

// bubbles reports, for each rank, the time in which its GPUs only send and receive.
func (s *rankSection) bubbles() {
	type gpu struct {
		capture int
		device  int64
	}
	users := map[gpu]map[int]bool{} // ranks
	for m := range s.members {
		at := s.of[m]
		if d := s.members[m].Device; d >= 0 {
			k := gpu{s.ranks[at].capture, d}
			if users[k] == nil {
				users[k] = map[int]bool{}
			}
			users[k][at] = true
		}
	}
	devices := make([]int64, len(s.ranks))
	shared := make([]bool, len(s.ranks))
	times := make([]int64, len(s.ranks))
	some := false
	for k, by := range users {
		for at := range by {
			devices[at]++
			shared[at] = shared[at] || len(by) > 1
			times[at] += s.f.captures[k.capture].own.P2P[k.device]
			some = some || s.f.captures[k.capture].own.P2P[k.device] > 0
		}
	}
	if !some {
		return
	}
	var all int64
	complete := true
	for i := range s.ranks {
		if devices[i] == 0 || shared[i] {
			complete = false
			continue
		}
		s.ranks[i].bubble = &times[i]
		all += times[i]
	}
	if complete && s.f.reports == 0 {
		s.int("rank.bubble_time", nil, all, int64(len(s.ranks)))
	}
	most, worst := 0.0, -1
	shown := s.shownFirst(maxRankMetrics)
	for i := range s.ranks {
		r := &s.ranks[i]
		if r.bubble == nil {
			continue
		}
		share := float64(*r.bubble) / float64(max(1, devices[i]*s.f.captures[r.capture].window.Length))
		if share > most {
			most, worst = share, i
		}
		if shown[i] {
			l := report.Labels{"rank": r.label}
			s.int("rank.bubble_time", l, *r.bubble, devices[i])
			s.put("rank.bubble_ratio", l, &share, devices[i])
		}
	}
	if worst >= 0 && most >= highShare && shown[worst] {
		s.bubbleFinding(&s.ranks[worst], most)
	}
}

func (s *rankSection) bubbleFinding(r *rank, share float64) {
	severity := report.Medium
	if share >= 3*highShare {
		severity = report.High
	}
	window := s.f.captures[r.capture].window.Length
	l := report.Labels{"rank": r.label}
	s.findings = append(s.findings, report.Finding{ID: "rank_bubbles", Severity: severity,
		Title: fmt.Sprintf("Rank %s only waits for its neighbours in the pipeline for %s of its time", r.label,
			unit.Format(share, report.Ratio)),
		Evidence: []report.MetricRef{{ID: "rank.bubble_ratio", Labels: l}, {ID: "rank.bubble_time", Labels: l}},
		Advice: []string{
			"More micro-batches fill a pipeline: with m of them and p stages, (p - 1) / (m + p - 1) of the time is bubble at best.",
			"Compare the step times of the ranks: a stage with more layers, the embedding or the head makes the others wait.",
		}, Doc: "ranks", Worth: &report.Worth{Time: min(int64(share*float64(window)), window), Of: window}})
}

// experts compares the time of the experts' kernels between ranks.
func (s *rankSection) experts() {
	alone := s.onlyRanks()
	var sum, most, n int64
	worst := -1
	for i := range s.ranks {
		r := &s.ranks[i]
		x := s.f.captures[r.capture].own.Experts
		if !alone[r.capture] || x == nil {
			continue
		}
		r.experts = x
		n++
		sum += *x
		if *x > most {
			most, worst = *x, i
		}
	}
	if n < 2 || n < int64(len(s.ranks)) || s.f.reports > 0 || sum == 0 {
		return
	}
	shown := s.shownFirst(maxRankMetrics)
	for i := range s.ranks {
		if shown[i] {
			s.int("rank.expert_time", report.Labels{"rank": s.ranks[i].label}, *s.ranks[i].experts, 1)
		}
	}
	mean := float64(sum) / float64(n)
	ratio := float64(most) / mean
	s.put("ranks.expert_imbalance", nil, &ratio, n)
	window := s.f.captures[s.ranks[worst].capture].window.Length
	lost := float64(most) - mean
	if lost < findShare*float64(window) {
		return
	}
	severity := report.Medium
	if lost >= highShare*float64(window) {
		severity = report.High
	}
	s.findings = append(s.findings, report.Finding{ID: "rank_experts", Severity: severity,
		Title: fmt.Sprintf("Experts are uneven: rank %s spends %s of the mean in theirs", s.ranks[worst].label,
			unit.Format(ratio, report.Ratio)),
		Evidence: []report.MetricRef{{ID: "ranks.expert_imbalance", Labels: report.Labels{}}},
		Advice: []string{
			"Replicate the experts that most tokens go to, or place them anew (expert parallel load balancing).",
			"Compare with the tokens that each expert got, if the server logs them: explain doc expert_load.",
		}, Doc: "ranks", Worth: &report.Worth{Time: min(int64(math.Round(lost)), window), Of: window}})
}

// energy adds up the energy of the GPUs. Every capture of a host measures all GPUs of that host, so each GPU counts
// once, with its largest value.
func (s *rankSection) energy() {
	energy := map[string]*float64{}
	var keys []string
	highest, n := 0.0, int64(0)
	for at, c := range s.f.captures {
		for _, d := range slices.Sorted(maps.Keys(c.own.Energy)) {
			v := c.own.Energy[d]
			key := fmt.Sprintf("%s %d", cmp.Or(c.Host, fmt.Sprintf("capture %d", at)), d)
			old, seen := energy[key]
			if !seen {
				keys = append(keys, key)
			}
			if !seen || old == nil || v != nil && *v > *old {
				energy[key] = v
			}
		}
		for _, w := range c.own.Power {
			highest = math.Max(highest, w)
			n++
		}
	}
	if n > 0 {
		s.put("ranks.power", nil, &highest, n)
	}
	if len(keys) == 0 {
		return
	}
	var sum float64
	for _, k := range keys {
		if energy[k] == nil {
			s.put("ranks.energy", nil, nil, int64(len(keys)))
			return
		}
		sum += *energy[k]
	}
	s.put("ranks.energy", nil, &sum, int64(len(keys)))
}
