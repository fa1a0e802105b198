package merge

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
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

// bubbles reports, for each rank, the time in which its GPUs only send and receive; unknown if it shares one in a
// capture.
func (s *rankSection) bubbles() {
	user := map[deviceKey]int{} // the first rank of each GPU
	devices, shared := make([]int64, len(s.run.ranks)), make([]bool, len(s.run.ranks))
	times := make([]int64, len(s.run.ranks))
	for m, at := range s.run.of {
		k := deviceKey{s.run.ranks[at].capture, s.run.members[m].Device}
		if k.device < 0 {
			continue
		}
		first, known := user[k]
		if known {
			shared[first], shared[at] = shared[first] || first != at, shared[at] || first != at
			continue
		}
		user[k] = at
		devices[at]++
		times[at] += s.f.captures[k.capture].own.P2P[k.device]
	}
	if lists.Total(times) == 0 {
		return
	}
	complete := s.f.captures.reports() == 0
	for i := range s.run.ranks {
		if devices[i] == 0 || shared[i] {
			complete = false
		} else {
			s.run.ranks[i].bubble = &times[i]
		}
	}
	if complete {
		s.out.int("rank.bubble_time", nil, lists.Total(times), int64(len(s.run.ranks)))
	}
	most, worst := 0.0, -1
	shown := s.run.shown(maxRankMetrics)
	for i, r := range s.run.ranks {
		if r.bubble == nil {
			continue
		}
		share := float64(times[i]) / float64(max(1, devices[i]*s.f.captures[r.capture].window.Length))
		if share > most {
			most, worst = share, i
		}
		if shown[i] {
			l := report.Labels{"rank": r.label}
			s.out.int("rank.bubble_time", l, times[i], devices[i])
			s.out.put("rank.bubble_ratio", l, &share, devices[i])
		}
	}
	if worst < 0 || most < bubbleShare || !shown[worst] {
		return
	}
	r := s.run.ranks[worst]
	window := s.f.captures[r.capture].window.Length
	l := report.Labels{"rank": r.label}
	s.out.find("rank_bubbles", fmt.Sprintf("Rank %s only waits for its neighbours in the pipeline for %s of its time",
		r.label, unit.Format(most, report.Ratio)),
		[]report.MetricRef{{ID: "rank.bubble_ratio", Labels: l}, {ID: "rank.bubble_time", Labels: l}}, int64(most*float64(window)), window,
		"More micro-batches fill a pipeline: with m of them and p stages, (p - 1) / (m + p - 1) of the time is bubble at best.",
		"Compare the step times of the ranks: a stage with more layers, the embedding or the head makes the others wait.")
}

// experts compares the time of the experts' kernels between ranks.
func (s *rankSection) experts() {
	in, n := s.run.perCapture(), int64(len(s.run.ranks))
	for _, r := range s.run.ranks {
		if in[r.capture] == 1 {
			r.experts = s.f.captures[r.capture].own.Experts
		}
	}
	if n < 2 || s.f.captures.reports() > 0 || slices.ContainsFunc(s.run.ranks, func(r *rank) bool { return r.experts == nil }) {
		return
	}
	sum := lists.Sum(s.run.ranks, func(r *rank) int64 { return *r.experts })
	if sum == 0 {
		return
	}
	shown := s.run.shown(maxRankMetrics)
	for i, r := range s.run.ranks {
		if shown[i] {
			s.out.int("rank.expert_time", report.Labels{"rank": r.label}, *r.experts, 1)
		}
	}
	worst := slices.MaxFunc(s.run.ranks, func(a, b *rank) int { return cmp.Compare(*a.experts, *b.experts) })
	mean, most := float64(sum)/float64(n), float64(*worst.experts)
	ratio := most / mean
	s.out.put("ranks.expert_imbalance", nil, &ratio, n)
	window := s.f.captures[worst.capture].window.Length
	lost := int64(math.Round(most - mean))
	if !tellable(lost, window) {
		return
	}
	s.out.find("rank_experts", fmt.Sprintf("Experts are uneven: rank %s spends %s of the mean in theirs", worst.label,
		unit.Format(ratio, report.Ratio)),
		[]report.MetricRef{{ID: "ranks.expert_imbalance", Labels: report.Labels{}}}, lost, window,
		"Replicate the experts that most tokens go to, or place them anew (expert parallel load balancing).",
		"Compare with the tokens that each expert got, if the server logs them: explain doc expert_load.")
}

// energy adds up the energy of the GPUs. Every capture of a host measures all GPUs of that host, so each GPU counts
// once, with its largest value.
func (s *rankSection) energy() {
	var gpus lists.Numbering[string]
	var energy []*float64 // of each GPU
	highest, n := 0.0, int64(0)
	for at, c := range s.f.captures {
		for _, d := range slices.Sorted(maps.Keys(c.own.Energy)) {
			most := lists.At(&energy, gpus.Of(fmt.Sprintf("%s:%d", cmp.Or(c.Host, fmt.Sprintf("capture %d", at)), d)))
			if v := c.own.Energy[d]; *most == nil || v != nil && *v > **most {
				*most = v
			}
		}
		for _, w := range c.own.Power {
			highest = math.Max(highest, w)
			n++
		}
	}
	if n > 0 {
		s.out.put("ranks.power", nil, &highest, n)
	}
	if len(energy) > 0 {
		var sum *float64
		if !slices.Contains(energy, nil) {
			sum = new(lists.Sum(energy, func(e *float64) float64 { return *e }))
		}
		s.out.put("ranks.energy", nil, sum, int64(len(energy)))
	}
}
