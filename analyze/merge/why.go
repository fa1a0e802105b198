package merge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/merge/ranks"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

const (
	findShare   = 0.01 // of the window: a finding, if others waited that long for one rank
	bubbleShare = 0.05 // of the window of a rank's GPUs: a finding, if they only send and receive that long
	// leastOften is in how many collectives a rank must take part before a finding says that it mostly comes last.
	leastOften = 20
	// maxCauses is how many causes of a late rank are reported.
	maxCauses = 8
)

// straggler reports the rank at which the waiting begins. If clocks could not be compared, that is the one that comes
// last.
func (s *rankSection) straggler() {
	switch {
	case len(s.run.ranks) < 2:
	case slices.ContainsFunc(s.run.aligned.Clocks, func(c ranks.Clock) bool { return !c.Known }):
		s.findLast()
	case len(s.run.chains) > 0:
		s.findFirst(&s.run.chains[0])
	}
}

// tellable reports whether others wait long enough for a rank for a finding.
func tellable(time, window int64) bool { return float64(time) >= findShare*float64(max(1, window)) }

// findFirst reports the rank that others wait for longest, directly or through other ranks.
func (s *rankSection) findFirst(c *chain) {
	r := s.run.ranks[c.first]
	window := s.f.captures[r.capture].window.Length
	if often := c.Of >= leastOften && 2*c.N > c.Of; !often && !tellable(c.Time, window) {
		return
	}
	held := append([]int{c.waiter}, c.others...)
	who := "rank "
	if len(held) > 1 {
		who = "ranks "
	}
	title := "Rank " + r.label
	if r.sum.N >= leastOften && 2*r.sum.Last > r.sum.N {
		title += fmt.Sprintf(" arrives last in %s of collectives and", unit.Format(float64(r.sum.Last)/float64(r.sum.N), report.Ratio))
	}
	title += " holds up " + who + s.run.ranksNamed(held) + ": "
	with, why := s.run.with(c), "late for reasons that are not captured"
	if len(c.Causes) > 0 && c.Causes[0].Act != "" {
		why, _ = saying(c.Causes[0].Act, "")
	}
	if with != "" {
		why += " with rank " + with
	}
	title += why + fmt.Sprintf(" before %s of %s %ss", unit.Int(int64(c.N)), unit.Int(int64(c.Of)), c.Kind)
	l := report.Labels{"rank": r.label}
	evidence := []report.MetricRef{{ID: "rank.first_time", Labels: l}}
	for _, id := range []string{"rank.last_ratio", "rank.held_up_time", "rank.last_count", "rank.wait_time"} {
		if slices.ContainsFunc(s.out.metrics, func(m report.Metric) bool { return m.ID == id && m.Labels["rank"] == r.label }) {
			evidence = append(evidence, report.MetricRef{ID: id, Labels: l})
		}
	}
	advice := []string{fmt.Sprintf("Open %s: rank %s comes at %.6f s on its timeline in Nsight Systems to the call for which rank %s waits longest, in %s.",
		s.f.captures[r.capture].Name, r.label, float64(c.At)/1e9, s.run.ranks[c.waiter].label, c.longest())}
	if len(r.sum.Causes) > 0 {
		advice[0] += " The table of what late ranks did more than others shows its time before that."
	}
	if next := s.run.next(c.first); 2*r.sum.Blame < c.Time && next >= 0 {
		advice = append(advice, fmt.Sprintf("rank.first_time is how long others wait for what makes rank %s late. rank.held_up_time counts only how much later it comes than the next latest, mostly rank %s; it is less, because that rank is late too.", r.label, s.run.ranks[next].label))
	}
	if len(c.hops) > 0 {
		advice = append(advice, "On the way "+s.run.ranksNamed(c.hops)+" only passes the wait on: the cause is not there.")
	}
	if residual := s.residual(); residual > 0 {
		advice = append(advice, fmt.Sprintf("Clocks are off by up to %s: waits shorter than three times that are not counted.", unit.Format(residual, report.Nanoseconds)))
	}
	s.out.find("rank_straggler", title, evidence, c.Time, window, append(advice, reasonsOf(c, r.label, with))...)
}

// residual is the largest error of the clocks of the run, in ns; 0 if all captures are of one session.
func (s *rankSection) residual() float64 {
	off := lists.Most(s.run.aligned.Clocks, func(c ranks.Clock) float64 { return c.P99 })
	if off == 0 && len(s.f.captures) > 1 {
		off = ranks.SameHost
	}
	return off
}

// ranksNamed lists ranks by their labels, only the first three if there are many.
func (x *runFold) ranksNamed(list []int) string {
	names := lists.Map(list[:min(len(list), 3)], func(i int) string { return x.ranks[i].label })
	return wording.Some(names, len(list))
}

// acts are what a rank does while others wait, and how to say that it does it longer than they.
var acts = map[string]struct{ doing, longer string }{
	"compute":                    {"it computes longer", "it computes %s longer"},
	"other communication":        {"other communication", "it communicates %s longer"},
	"copies":                     {"copies", "it copies %s longer"},
	"idle: sync":                 {"its host waits for the GPU", "its host waits for the GPU %s longer"},
	"idle: host":                 {"its host is late", "its host is late by %s"},
	"idle: launch":               {"its launches take longer", "its launches take %s longer"},
	"idle: dependency":           {"its work is queued longer", "its work is queued %s longer"},
	"idle: unknown":              {"its GPU is idle longer", "its GPU is idle %s longer"},
	ranks.HostIn + ranks.OnNoCPU: {"its host is on no CPU", "its host is late by %s on no CPU"},
}

// saying describes what a rank does while others wait, and that it does so longer than they by some time.
func saying(act, by string) (doing, longer string) {
	if a, ok := acts[act]; ok {
		return a.doing, fmt.Sprintf(a.longer, by)
	}
	if call, ok := strings.CutPrefix(act, ranks.HostIn); ok {
		return "its host is in " + call, "its host is late by " + by + " in " + call
	}
	doing, longer = act, "its host spends "+by+" more in "+act
	if call, ok := strings.CutPrefix(act, ranks.Transfer); ok {
		doing = "a slow " + call
	}
	return doing, longer
}

const usualReasons = "Usual reasons: a rank that also samples, schedules or logs; uneven shards, experts or pipeline stages; a host thread on the wrong NUMA node; a GPU at lower clocks (nvidia-smi -q -d CLOCK,PERFORMANCE)."

const (
	linkReasons = "No captured rank came late to that call. Usual reasons: a slow link%s (nvidia-smi topo -m, nvidia-smi nvlink -s, NCCL_DEBUG=INFO, the network's counters), or a late rank that was not captured."
	together    = "Ranks %s and %s wait for each other in %s: they spend equally long in it, and their calls end together. "
)

// reasonsOf names the usual reasons for a chain's largest cause. with is the rank on the other side of its calls, or "".
func reasonsOf(c *chain, label, with string) string {
	call, ok := c.transfer()
	switch {
	case !ok:
		return usualReasons
	case with != "":
		return fmt.Sprintf(together, label, with, call) + fmt.Sprintf(linkReasons, " between them")
	}
	return fmt.Sprintf(linkReasons, "")
}

// longest names the call in which the waiter waits longest.
func (c *chain) longest() string {
	if c.Number > 0 {
		return fmt.Sprintf("%s #%d", c.In, c.Number)
	}
	return c.In
}

// with is the rank that a chain's first one exchanges data with in the call whose transfer is the largest cause, if the
// times show one that is not who waits; else "".
func (x *runFold) with(c *chain) string {
	if call, ok := c.transfer(); ok {
		if m, ok := x.aligned.Together(c.First, call); ok && x.of[m] != c.first && x.of[m] != c.waiter {
			return x.ranks[x.of[m]].label
		}
	}
	return ""
}

// next is the rank that most often comes next to last where a rank comes last; -1 if there is none.
func (x *runFold) next(rank int) int {
	count := make([]int64, len(x.ranks))
	for m, at := range x.of {
		if at == rank {
			for o, n := range x.result.Next[m] {
				count[x.of[o]] += n
			}
		}
	}
	count[rank] = 0
	if most := slices.Max(count); most > 0 {
		return slices.Index(count, most)
	}
	return -1
}

// transfer is the call whose transfer is the largest cause of a chain; ok is false if another cause is.
func (c *chain) transfer() (call string, ok bool) {
	if len(c.Causes) == 0 {
		return "", false
	}
	return strings.CutPrefix(c.Causes[0].Act, ranks.Transfer)
}

// findLast reports the rank that the others wait for: the one that spent the least time in collectives.
func (s *rankSection) findLast() {
	r := slices.MaxFunc(s.run.ranks, func(a, b *rank) int { return cmp.Compare(a.sum.Blame, b.sum.Blame) })
	if r.sum.Blame <= 0 {
		return
	}
	window := s.f.captures[r.capture].window.Length
	if often := r.sum.N >= leastOften && 2*r.sum.Last > r.sum.N; !often && !tellable(r.sum.Blame, window) {
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
		_, longer := saying(c.Act, unit.Format(c.Time/float64(r.sum.Told), report.Nanoseconds))
		title += ": " + longer
		evidence = append(evidence, report.MetricRef{ID: "rank.cause_time",
			Labels: report.Labels{"rank": r.label, "cause": c.Act}})
	}
	s.out.find("rank_straggler", title, evidence, r.sum.Blame, window,
		"Look at the report of "+s.f.captures[r.capture].Name+", this rank's own capture, between its collectives: "+
			"the table of what late ranks did more than others says where.",
		usualReasons)
}
