package merge

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/merge/ranks"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

func (s *rankSection) ranksOut() (causes [][]report.Cell) {
	var rows [][]report.Cell
	shown := s.run.shown(maxRankMetrics)
	if len(s.run.ranks) > maxRankMetrics {
		s.out.note("Only the %d ranks that others waited for longest have metrics of their own; the table has all %d.",
			maxRankMetrics, len(s.run.ranks))
	}
	in := s.run.perCapture()
	for i, r := range s.run.ranks {
		sum := &r.sum
		l := report.Labels{"rank": r.label}
		step, kernel, late, because, device := report.Null, report.Null, report.Null, report.Null, report.Null
		if r.step != nil {
			step, device = report.F(r.step.P50), report.I(s.f.devices.number(r.device))
		}
		if in[r.capture] == 1 {
			kernel = report.I(s.f.captures[r.capture].own.Kernels)
		}
		if sum.Last > 0 {
			late = report.F(float64(sum.Late) / float64(sum.Last))
		}
		if at := slices.IndexFunc(s.run.chains, func(c chain) bool { return c.first == i }); at >= 0 && len(s.run.chains[at].Causes) > 0 {
			because = report.OrNull(s.run.chains[at].Causes[0].Act)
		} else if len(sum.Causes) > 0 && sum.Causes[0].Time > 0 {
			because = report.S(sum.Causes[0].Act)
		}
		rows = append(rows, []report.Cell{report.S(r.label), report.OrNull(r.role), report.I(int64(r.host)), step, kernel,
			report.I(sum.N), report.I(sum.Time), report.I(sum.Wait), report.I(sum.Transfer), report.I(sum.Last), late,
			report.I(sum.Worst), report.I(sum.Blame), because, report.S(s.f.captures[r.capture].Name), report.I(r.pid),
			device, report.Of(r.bubble, report.I, report.Null), report.Of(r.experts, report.I, report.Null)})
		if !shown[i] {
			continue
		}
		for _, c := range sum.Causes[:min(len(sum.Causes), maxCauses)] {
			if c.Time != 0 && sum.Told > 0 {
				each := c.Time / float64(sum.Told)
				s.out.put("rank.cause_time", report.Labels{"rank": r.label, "cause": c.Act}, &each, sum.Told)
				causes = append(causes, []report.Cell{report.S(r.label), report.S(c.Act), report.F(c.Time), report.F(each)})
			}
		}
		if r.step != nil {
			if m := s.out.put("rank.step_time", l, &r.step.P50, r.step.N); !s.f.sampled {
				m.Summary = r.step
			}
		}
		if v, ok := kernel.Int(); ok {
			s.out.int("rank.kernel_time", l, v, 1)
		}
		s.out.int("rank.collective_time", l, sum.Time, sum.N)
		s.out.int("rank.wait_time", l, sum.Wait, sum.N)
		s.out.int("rank.transfer_time", l, sum.Transfer, sum.N)
		s.out.int("rank.last_count", l, sum.Last, sum.N)
		if sum.N > 0 {
			s.out.put("rank.last_ratio", l, new(float64(sum.Last)/float64(sum.N)), sum.N)
		}
		s.out.int("rank.late_time", l, sum.Late, sum.Last)
		s.out.int("rank.held_up_time", l, sum.Blame, sum.Last)
	}
	columns := s.out.table("ranks", rows, 0)
	columns[slices.IndexFunc(columns, func(c report.Column) bool { return c.ID == "capture" })].Wide = len(s.f.captures) < 2
	return causes
}

// chainsOut reports at which ranks the waiting of others begins, and why.
func (s *rankSection) chainsOut() {
	var rows [][]report.Cell
	shown := s.run.shown(maxRankMetrics)
	for i := range s.run.chains[:min(len(s.run.chains), maxRankMetrics)] {
		c := &s.run.chains[i]
		first := s.run.ranks[c.first]
		because, ns := report.Null, report.Null
		if len(c.Causes) > 0 && c.Causes[0].Act != "" {
			because, ns = report.S(c.Causes[0].Act), report.I(int64(math.Round(c.Causes[0].Time)))
		}
		rows = append(rows, []report.Cell{report.S(first.label), report.S(s.run.ranks[c.waiter].label), report.OrNull(s.run.ranksNamed(c.others)),
			report.OrNull(s.run.ranksNamed(c.hops)), report.I(c.Time), because, ns, report.S(c.Kind), report.I(c.N), report.I(c.Of),
			report.S(s.f.captures[first.capture].Name), report.I(c.At)})
		if shown[c.first] || i == 0 {
			s.out.int("rank.first_time", report.Labels{"rank": first.label}, c.Time, c.N)
		}
	}
	s.heldUp()
	if s.run.result.Every > 1 {
		s.out.note("The first rank of a wait comes from one in %d collectives, weighted accordingly; all other numbers cover every collective.", s.run.result.Every)
	}
	if len(rows) == 0 {
		return
	}
	s.out.note("\"Held others up\" is what all others together would have been spared without a rank that came last; " +
		"\"Waits for it\" is all that the rank which waits longest waits because of it.")
	s.out.table("rank_chains", rows, 0)
}

func (s *rankSection) clocksOut() {
	var rows [][]report.Cell
	unknown := lists.Count(s.run.aligned.Clocks, func(c ranks.Clock) bool { return !c.Known })
	for i, c := range s.run.aligned.Clocks {
		offset, drift, p50, p99 := report.Null, report.Null, report.Null, report.Null
		collectives := max(c.N, -c.N)
		n := collectives + c.Messages
		if i == 0 || n > 0 {
			offset, drift, p50, p99 = report.F(c.Line.Offset), report.F(c.Line.Drift), report.F(c.P50), report.F(c.P99)
		}
		rows = append(rows, []report.Cell{report.I(int64(i)), report.I(int64(c.Members)), report.B(c.Known),
			report.I(int64(collectives)), report.I(int64(c.Messages)), offset, drift, p50, p99})
		if i > 0 && i <= maxRankMetrics && n > 0 {
			l := report.Labels{"clock": strconv.Itoa(i)}
			s.out.put("clock.offset", l, new(c.Line.Offset), int64(n))
			s.out.put("clock.drift", l, new(c.Line.Drift), int64(n))
			s.out.put("clock.residual", l, new(c.P99), int64(n))
		}
	}
	s.out.table("clocks", rows, 0)
	for i := range s.run.members {
		at, off := s.run.of[i], s.run.members[i].Moved
		if off != 0 && slices.Index(s.run.of, at) == i {
			by := unit.Format(math.Abs(float64(off)), report.Nanoseconds)
			s.out.warn("clock_moved", "The start that the session of rank %s states is %s off, as the ends of "+
				"collectives show: its times are moved.", s.run.ranks[at].label, by)
		}
	}
	called := slices.ContainsFunc(s.run.members, func(m ranks.Member) bool { return len(m.Calls) > 0 })
	if unknown > 0 && called {
		s.out.warn("clocks", "%d of %d clocks could not be compared with the first: neither collectives nor "+
			"messages in both directions tie them, or these leave too much open. The rank that took least time in a "+
			"collective counts as the last there; it is unknown who waits for a message.",
			unknown, len(s.run.aligned.Clocks))
	}
}

func (s *rankSection) stepsOut() {
	times, middles, who := s.run.slowestSteps()
	if times == nil || s.f.captures.reports() > 0 {
		return
	}
	stats := stat.Summarize(slices.Clone(times))
	s.out.put("ranks.step_time", nil, &stats.P50, stats.N).Summary = stats
	const most = 1000
	var rows [][]report.Cell
	for k := range times[:min(len(times), most)] {
		rows = append(rows, []report.Cell{report.I(s.run.ranks[0].steps[k].number), report.S(s.run.ranks[who[k]].label),
			report.I(times[k]), report.I(middles[k])})
	}
	s.out.table("steps", rows, len(times))
}

func (s *rankSection) rolesOut() {
	if s.f.captures.reports() > 0 {
		return // a report does not say which ranks it covers
	}
	count := map[string]int64{}
	for _, r := range s.run.ranks {
		count[r.role]++
	}
	delete(count, "")
	for _, name := range slices.Sorted(maps.Keys(count)) {
		s.out.int("ranks.count", report.Labels{"role": name}, count[name], count[name])
	}
}

// heat draws how late each rank came, over the run.
func (s *rankSection) heat() {
	if s.run.result.Collectives == 0 {
		return
	}
	c := report.Chart{ID: "rank_late", Title: "How late each rank came to collectives, after the middle one", Kind: "heat",
		Unit: report.Nanoseconds, XUnit: report.Nanoseconds, XTitle: "since the first matched collective",
		Series: []report.Series{}}
	const rows = 128
	done := map[int]bool{}
	shown := s.run.shown(rows)
	labels := lists.Map(s.run.result.Buckets, func(ns int64) string { return strconv.FormatInt(ns, 10) })
	for m, late := range s.run.result.Heat {
		i := s.run.of[m]
		if done[i] || !shown[i] || s.run.result.Ranks[m].N == 0 {
			continue
		}
		done[i] = true
		c.Series = append(c.Series, report.Series{Name: "rank " + s.run.ranks[i].label, Labels: labels,
			Values: lists.Map(late, math.Round)})
	}
	if len(c.Series) > 0 {
		s.out.section.Charts = append(s.out.section.Charts, c)
	}
}

// shown returns the ranks that have metrics of their own, or a row in the heat map: all if they are few, else those
// that others waited for longest.
func (x *runFold) shown(n int) map[int]bool {
	order := lists.Indexes[int](len(x.ranks))
	lists.Sort(order, func(a, b int) int { return cmp.Compare(x.ranks[b].sum.Blame, x.ranks[a].sum.Blame) })
	return lists.Set(order[:min(n, len(order))], func(i int) int { return i })
}
