package merge

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/merge/ranks"
	"github.com/nsys-llm/explain/analyze/report"
)

func (s *rankSection) ranksOut() {
	ns := func(id, title string) report.Column {
		return report.Column{ID: id, Title: title, Kind: report.Int, Unit: report.Nanoseconds}
	}
	count := func(id, title string) report.Column {
		return report.Column{ID: id, Title: title, Kind: report.Int, Unit: report.Count}
	}
	t := report.Table{ID: "ranks", Title: "Ranks", File: "ranks.csv", Rows: [][]report.Cell{}, Columns: []report.Column{
		{ID: "rank", Title: "Rank", Kind: report.Name}, {ID: "role", Title: "Role", Kind: report.Name, Wide: true},
		{ID: "clock", Title: "Clock", Kind: report.Int, Wide: true},
		{ID: "step_p50", Title: "Step p50", Kind: report.Float, Unit: report.Nanoseconds},
		ns("kernel_time", "Kernel time"), count("collectives", "Collectives"), ns("collective_time", "In collectives"),
		ns("wait", "Waiting"), ns("transfer", "Transfer"), count("last", "Came last"),
		{ID: "late_mean", Title: "Late by", Kind: report.Float, Unit: report.Nanoseconds},
		{ID: "late_max", Title: "At most", Kind: report.Int, Unit: report.Nanoseconds, Wide: true},
		ns("held_up", "Held others up"), {ID: "because", Title: "Because of", Kind: report.Name},
		{ID: "capture", Title: "Capture", Kind: report.Name, Wide: true},
		{ID: "pid", Title: "Process", Kind: report.Int, Wide: true},
		{ID: "device_id", Title: "GPU", Kind: report.Int, Wide: true},
		{ID: "bubble", Title: "Bubbles", Kind: report.Int, Unit: report.Nanoseconds, Wide: true},
		{ID: "experts", Title: "Experts", Kind: report.Int, Unit: report.Nanoseconds, Wide: true},
	}}
	causes := report.Table{ID: "rank_causes", Title: "What late ranks did more than others", File: "rank_causes.csv",
		Rows: [][]report.Cell{}, Columns: []report.Column{
			{ID: "rank", Title: "Rank", Kind: report.Name}, {ID: "what", Title: "Did", Kind: report.Name},
			{ID: "more", Title: "More than others", Kind: report.Float, Unit: report.Nanoseconds},
			{ID: "each", Title: "Each time", Kind: report.Float, Unit: report.Nanoseconds},
		}}
	shown := s.shown()
	alone := s.onlyRanks()
	for i := range s.ranks {
		r := &s.ranks[i]
		sum := &r.sum
		l := report.Labels{"rank": r.label}
		step, kernel, late, because, device := report.Null, report.Null, report.Null, report.Null, report.Null
		if r.step != nil {
			device = report.I(s.f.devices.number(r.device))
		}
		if r.step != nil {
			step = report.F(r.step.P50)
		}
		if alone[r.capture] {
			kernel = report.I(s.f.captures[r.capture].own.Kernels)
		}
		if sum.Last > 0 {
			late = report.F(float64(sum.Late) / float64(sum.Last))
		}
		if at := slices.IndexFunc(s.chains, func(c chain) bool { return c.first == i }); at >= 0 && len(s.chains[at].Causes) > 0 {
			because = orNull(s.chains[at].Causes[0].Act)
		} else if len(sum.Causes) > 0 && sum.Causes[0].Time > 0 {
			because = report.S(sum.Causes[0].Act)
		}
		t.Rows = append(t.Rows, []report.Cell{report.S(r.label), orNull(r.role), report.I(int64(r.host)), step, kernel,
			report.I(sum.N), report.I(sum.Time), report.I(sum.Wait), report.I(sum.Transfer), report.I(sum.Last), late,
			report.I(sum.Worst), report.I(sum.Blame), because, report.S(s.f.captures[r.capture].Name), report.I(r.pid),
			device, known(r.bubble), known(r.experts)})
		for k, c := range sum.Causes {
			if c.Time != 0 && k < maxCauses && shown[i] && sum.Told > 0 {
				each := c.Time / float64(sum.Told)
				s.put("rank.cause_time", report.Labels{"rank": r.label, "cause": c.Act}, &each, sum.Told)
				causes.Rows = append(causes.Rows, []report.Cell{report.S(r.label), report.S(c.Act), report.F(c.Time),
					report.F(each)})
			}
		}
		if !shown[i] {
			continue
		}
		if r.step != nil {
			if m := s.put("rank.step_time", l, &r.step.P50, r.step.N); !s.f.sampled {
				m.Summary = r.step
			}
		}
		if v, ok := kernel.Int(); ok {
			s.int("rank.kernel_time", l, v, 1)
		}
		s.int("rank.collective_time", l, sum.Time, sum.N)
		s.int("rank.wait_time", l, sum.Wait, sum.N)
		s.int("rank.transfer_time", l, sum.Transfer, sum.N)
		s.int("rank.last_count", l, sum.Last, sum.N)
		if sum.N > 0 {
			share := float64(sum.Last) / float64(sum.N)
			s.put("rank.last_ratio", l, &share, sum.N)
		}
		s.int("rank.late_time", l, sum.Late, sum.Last)
		s.int("rank.held_up_time", l, sum.Blame, sum.Last)
	}
	t.TotalRows, causes.TotalRows = int64(len(t.Rows)), int64(len(causes.Rows))
	s.section.Tables = append(s.section.Tables, t, causes)
}

// chainsOut reports at which ranks the waiting of others begins, and why.
func (s *rankSection) chainsOut() {
	t := report.Table{ID: "rank_chains", Title: "Where waiting begins", File: "rank_chains.csv", Rows: [][]report.Cell{},
		Columns: []report.Column{
			{ID: "rank", Title: "Rank", Kind: report.Name}, {ID: "waits", Title: "Holds up", Kind: report.Name},
			{ID: "others", Title: "And holds up", Kind: report.Name, Wide: true}, {ID: "through", Title: "Passed on by", Kind: report.Name},
			{ID: "time", Title: "Waits for it", Kind: report.Int, Unit: report.Nanoseconds},
			{ID: "because", Title: "Because of", Kind: report.Name}, {ID: "because_time", Title: "Due to that", Kind: report.Int, Unit: report.Nanoseconds},
			{ID: "in", Title: "Waits in", Kind: report.Name},
			{ID: "calls", Title: "Calls with a wait", Kind: report.Int, Unit: report.Count}, {ID: "of_calls", Title: "Calls in all", Kind: report.Int, Unit: report.Count},
			{ID: "capture", Title: "Capture", Kind: report.Name, Wide: true},
			{ID: "at", Title: "Longest at", Kind: report.Moment, Unit: report.Nanoseconds, Wide: true},
		}}
	shown := s.shownFirst(maxRankMetrics)
	for i := range s.chains[:min(len(s.chains), maxRankMetrics)] {
		c := &s.chains[i]
		because, ns := report.Null, report.Null
		if len(c.Causes) > 0 && c.Causes[0].Act != "" {
			because, ns = report.S(c.Causes[0].Act), report.I(int64(math.Round(c.Causes[0].Time)))
		}
		t.Rows = append(t.Rows, []report.Cell{report.S(s.ranks[c.first].label), report.S(s.ranks[c.waiter].label), orNull(s.ranksNamed(c.others)),
			orNull(s.ranksNamed(c.hops)), report.I(c.Time), because, ns, report.S(c.Kind), report.I(c.N), report.I(c.Of),
			report.S(s.f.captures[s.ranks[c.first].capture].Name), report.I(c.At)})
		if shown[c.first] || i == 0 {
			s.int("rank.first_time", report.Labels{"rank": s.ranks[c.first].label}, c.Time, c.N)
		}
	}
	s.heldUp()
	if s.result.Every > 1 {
		s.section.Notes = append(s.section.Notes, fmt.Sprintf("The first rank of a wait comes from one in %d collectives, "+
			"weighted accordingly; all other numbers are of every collective.", s.result.Every))
	}
	if t.TotalRows = int64(len(t.Rows)); t.TotalRows > 0 {
		s.section.Notes = append(s.section.Notes, "\"Held others up\" is what all others together would have been spared without a rank that came last; "+
			"\"Waits for it\" is all that the rank which waits longest waits because of it.")
		s.section.Tables = append(s.section.Tables, t)
	}
}

func orNull(text string) report.Cell {
	if text == "" {
		return report.Null
	}
	return report.S(text)
}

// shown returns the ranks that have metrics of their own: all if they are few, else those that others waited for
// longest.
func (s *rankSection) shown() map[int]bool {
	order := make([]int, len(s.ranks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := s.ranks[a].sum.Blame, s.ranks[b].sum.Blame
		return int(min(1, max(-1, y-x)))
	})
	shown := map[int]bool{}
	for _, i := range order[:min(len(order), maxRankMetrics)] {
		shown[i] = true
	}
	if len(order) > maxRankMetrics {
		s.section.Notes = append(s.section.Notes, fmt.Sprintf(
			"Only the %d ranks that others waited for longest have metrics of their own; the table has all %d.",
			maxRankMetrics, len(order)))
	}
	return shown
}

func (s *rankSection) clocksOut() {
	t := report.Table{ID: "clocks", Title: "Clocks", File: "clocks.csv", Rows: [][]report.Cell{}, Columns: []report.Column{
		{ID: "clock", Title: "Clock", Kind: report.Int}, {ID: "ranks", Title: "Ranks", Kind: report.Int, Unit: report.Count},
		{ID: "known", Title: "Compared", Kind: report.Bool},
		{ID: "collectives", Title: "By collectives", Kind: report.Int, Unit: report.Count},
		{ID: "messages", Title: "By messages", Kind: report.Int, Unit: report.Count, Wide: true},
		{ID: "offset", Title: "Ahead", Kind: report.Float, Unit: report.Nanoseconds},
		{ID: "drift", Title: "Drift", Kind: report.Float, Unit: report.Ratio},
		{ID: "residual_p50", Title: "Left p50", Kind: report.Float, Unit: report.Nanoseconds},
		{ID: "residual_p99", Title: "Left p99", Kind: report.Float, Unit: report.Nanoseconds},
	}}
	unknown := 0
	for i, c := range s.aligned.Clocks {
		offset, drift, p50, p99 := report.Null, report.Null, report.Null, report.Null
		n := c.N
		if n < 0 {
			n = -n
		}
		collectives := n
		n += c.Messages
		if i == 0 || n > 0 {
			offset, drift, p50, p99 = report.F(c.Line.Offset), report.F(c.Line.Drift), report.F(c.P50), report.F(c.P99)
		}
		if !c.Known {
			unknown++
		}
		t.Rows = append(t.Rows, []report.Cell{report.I(int64(i)), report.I(int64(c.Members)), report.B(c.Known),
			report.I(int64(collectives)), report.I(int64(c.Messages)), offset, drift, p50, p99})
		if i > 0 && i <= maxRankMetrics && n > 0 {
			l := report.Labels{"clock": strconv.Itoa(i)}
			offset, drift, left := c.Line.Offset, c.Line.Drift, c.P99
			s.put("clock.offset", l, &offset, int64(n))
			s.put("clock.drift", l, &drift, int64(n))
			s.put("clock.residual", l, &left, int64(n))
		}
	}
	t.TotalRows = int64(len(t.Rows))
	s.section.Tables = append(s.section.Tables, t)
	called := slices.ContainsFunc(s.members, func(m ranks.Member) bool { return len(m.Calls) > 0 })
	if unknown > 0 && called {
		s.warn("clocks", fmt.Sprintf("%d of %d clocks could not be compared with the first: neither collectives nor "+
			"messages in both directions tie them, or these leave too much open. The rank that took least time in a "+
			"collective counts as the last there; it is unknown who waits for a message.",
			unknown, len(s.aligned.Clocks)))
	}
}

func (s *rankSection) stepsOut() {
	times, middles, who := s.slowestSteps()
	if times == nil || s.f.reports > 0 {
		return
	}
	stats := stat.Summarize(slices.Clone(times))
	s.put("ranks.step_time", nil, &stats.P50, stats.N).Summary = stats
	const most = 1000
	t := report.Table{ID: "steps", Title: "Slowest rank of each step", File: "rank_steps.csv", Rows: [][]report.Cell{},
		Columns: []report.Column{
			{ID: "step", Title: "Step", Kind: report.Int}, {ID: "rank", Title: "Slowest", Kind: report.Name},
			{ID: "time", Title: "Took", Kind: report.Int, Unit: report.Nanoseconds},
			{ID: "middle", Title: "Middle rank", Kind: report.Int, Unit: report.Nanoseconds},
		}, TotalRows: int64(len(times))}
	for k := range times[:min(len(times), most)] {
		t.Rows = append(t.Rows, []report.Cell{report.I(s.ranks[0].steps[k].number), report.S(s.ranks[who[k]].label),
			report.I(times[k]), report.I(middles[k])})
	}
	s.section.Tables = append(s.section.Tables, t)
}

func (s *rankSection) rolesOut() {
	count := map[string]int64{}
	var names []string
	for i := range s.ranks {
		if role := s.ranks[i].role; role != "" {
			if count[role] == 0 {
				names = append(names, role)
			}
			count[role]++
		}
	}
	slices.Sort(names)
	if s.f.reports > 0 {
		return // a report does not say which ranks it covers
	}
	for _, name := range names {
		s.int("ranks.count", report.Labels{"role": name}, count[name], count[name])
	}
}

// heat draws how late each rank came, over the run.
func (s *rankSection) heat() {
	if s.result.Collectives == 0 {
		return
	}
	c := report.Chart{ID: "rank_late", Title: "How late each rank came to collectives, after the middle one", Kind: "heat",
		Unit: report.Nanoseconds, XUnit: report.Nanoseconds, XTitle: "since the first matched collective",
		Series: []report.Series{}}
	const rows = 128
	done := map[int]bool{}
	shown := s.shownFirst(rows)
	for m, h := range s.result.Heat {
		i := s.of[m]
		if done[i] || !shown[i] || s.result.Ranks[m].N == 0 {
			continue
		}
		done[i] = true
		series := report.Series{Name: "rank " + s.ranks[i].label, Labels: []string{}, Values: []float64{}}
		for k, v := range h {
			if math.IsNaN(v) {
				v = 0
			}
			series.Labels = append(series.Labels, strconv.FormatInt(s.result.Buckets[k], 10))
			series.Values = append(series.Values, math.Round(v))
		}
		c.Series = append(c.Series, series)
	}
	if len(c.Series) > 0 {
		s.section.Charts = append(s.section.Charts, c)
	}
}

// shownFirst returns the ranks of the heat map: if there are many, those that others waited for longest.
func (s *rankSection) shownFirst(n int) map[int]bool {
	order := make([]int, len(s.ranks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return int(min(1, max(-1, s.ranks[b].sum.Blame-s.ranks[a].sum.Blame)))
	})
	shown := map[int]bool{}
	for _, i := range order[:min(n, len(order))] {
		shown[i] = true
	}
	return shown
}
