package merge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/merge/ranks"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// maxRankMetrics is how many ranks have metrics of their own: those that others waited for longest. The table has all
// ranks.
const maxRankMetrics = 64

// maxDevices is how many devices have metrics of their own, see kit.MaxDeviceMetrics.
const maxDevices = 64

// The usual kinds of metric of ranks.
var (
	totalTime = measured(report.Nanoseconds, report.Total)
	eventTime = measured(report.Nanoseconds, report.Event)
	ratio     = measured(report.Ratio, report.Level)
)

// measured is a kind of metric of which less is better. The report of a run is not merged again.
func measured(unit string, scale report.Scale) func(id, meaning string) report.MetricDef {
	return func(id, meaning string) report.MetricDef {
		return report.Define(id, unit, report.Lower, report.Noisy, scale, report.Leave, meaning)
	}
}

// Metrics are the metrics of the section on ranks.
var Metrics = []report.MetricDef{
	report.Define("ranks.count", report.Count, report.None, report.Exact, report.Level, report.Leave,
		"ranks in the merged report; by the role that --role gives them").By("", "role"),
	report.Define("ranks.missing", report.Count, report.Lower, report.Exact, report.Level, report.Leave,
		"ranks of the run without a merged capture; unknown if the number of ranks is"),
	report.Define("ranks.clocks", report.Count, report.None, report.Exact, report.Level, report.Leave,
		"clocks of the run: one for each host, and one for each capture that does not name its host"),
	eventTime("ranks.step_time", "median over steps of the time that the slowest rank takes for the step").Summarised(),
	report.Define("ranks.end_spread", report.Nanoseconds, report.None, report.Noisy, report.Event, report.Leave,
		"median over matched collectives of how far apart the ranks' ends are"),
	report.Define("ranks.end_spread_p99", report.Nanoseconds, report.None, report.Noisy, report.Event, report.Leave,
		"99th percentile of how far apart the ends of a matched collective are"),
	report.Define("ranks.collectives", report.Count, report.None, report.Exact, report.Total, report.Leave,
		"collectives that could be matched across ranks"),
	report.Define("ranks.unmatched", report.Count, report.Lower, report.Exact, report.Total, report.Leave,
		"calls of collectives, over all ranks, that could not be matched with those of other ranks"),
	eventTime("rank.step_time", "median time of the rank's steps; the summary is over steps").Summarised().By("rank"),
	totalTime("rank.kernel_time", "sum of the durations of the capture's kernels; of captures of one rank").By("rank"),
	totalTime("rank.collective_time", "time in matched collectives: rank.wait_time and rank.transfer_time, to the ns").By("", "rank"),
	totalTime("rank.wait_time", "time in matched collectives beyond the shortest that any rank took for the same "+
		"one: it waits for others; needs no clock").By("", "rank"),
	totalTime("rank.transfer_time", "shortest time that any rank took for each matched collective, added up").By("", "rank"),
	report.Define("rank.last_count", report.Count, report.Lower, report.Noisy, report.Total, report.Leave,
		"matched collectives in which the rank came last").By("rank"),
	ratio("rank.last_ratio", "share of the rank's matched collectives in which it came last").By("rank"),
	eventTime("rank.cause_time", "how much longer than the mean of the others the rank did one thing since the "+
		"previous collective: mean over collectives where it came last and both were captured, for the eight things "+
		"with most").By("cause,rank"),
	totalTime("rank.late_time", "time by which the rank came after the middle one where it came last, added up").By("rank"),
	totalTime("rank.held_up_time", "sum of the times by which the rank came after the second last, where it came "+
		"last: the wait that it alone caused").By("rank"),
	totalTime("rank.first_time", "time that the rank which waits longest because of this one waits for it in "+
		"blocking communication, followed through ranks that only pass the wait on").By("rank"),
	ratio("ranks.held_up_ratio", "share of the time of all ranks that they wait in blocking communication for one "+
		"that comes later, of waits above three times what clocks may be off; unknown if clocks could not be "+
		"compared"),
	ratio("ranks.first_ratio", "part of ranks.held_up_ratio that begins with the rank that others wait for longest, through whomever"),
	totalTime("rank.bubble_time", "time in which the rank's GPUs run nothing but point-to-point kernels (Send, "+
		"Recv): what a stage of a pipeline waits for its neighbours, the transfer included; unknown of ranks that "+
		"share a GPU in one capture").By("", "rank"),
	ratio("rank.bubble_ratio", "rank.bubble_time over the window of the rank's GPUs").By("rank"),
	totalTime("rank.expert_time", "time of the kernels of experts (component moe); of captures of one rank").By("rank"),
	ratio("ranks.expert_imbalance", "rank.expert_time of the rank with most over the mean of all ranks: 1 is even"),
	report.Define("ranks.gpu_idle_ratio", report.Ratio, report.Lower, report.Noisy, report.Event, report.Leave,
		"median over GPUs of gpu.idle_ratio, if a run has more GPUs than have metrics of their own; the summary is "+
			"over GPUs").Summarised(),
	eventTime("ranks.gpu_kernel_time", "median over GPUs of kernel.total_time, if a run has more GPUs than have "+
		"metrics of their own; the summary is over GPUs").Summarised(),
	report.Define("ranks.energy", report.Joules, report.Lower, report.Noisy, report.Total, report.Leave,
		"energy of all GPUs of the run: the sum of gpu.energy; a GPU that several captures saw counts once, with its "+
			"largest value; unknown if that of any GPU is"),
	report.Define("ranks.power", report.Watts, report.None, report.Noisy, report.Level, report.Leave,
		"highest gpu.power of a GPU of the run"),
	report.Define("clock.offset", report.Nanoseconds, report.None, report.Noisy, report.Level, report.Leave,
		"how far the clock is ahead of the first one, when the first matched collective ends").By("clock"),
	report.Define("clock.drift", report.Ratio, report.None, report.Noisy, report.Level, report.Leave,
		"how much faster the clock runs than the first one: 0.00005 is 50 ppm").By("clock"),
	report.Define("clock.residual", report.Nanoseconds, report.Lower, report.Noisy, report.Level, report.Leave,
		"99th percentile of the difference between the ends of matched collectives on this clock and on the first, after "+
			"removing offset and drift; for a clock tied by messages, half of the remaining uncertainty").By("clock"),
}

var source = report.Source{Tables: []string{"CUPTI_ACTIVITY_KIND_KERNEL", "MPI_OTHER_EVENTS", "NVTX_EVENTS"},
	Columns: []string{"start", "end", "globalPid", "globalTid", "deviceId", "textId", "binaryData"}}

type rankSection struct {
	run   *runFold
	out   output
	f     *fold
	named string // GPUs beyond maxDevices, in words
}

// output is what a section says, as far as it is known.
type output struct {
	section  report.Section
	metrics  []report.Metric
	findings []report.Finding
	warnings []report.Warning
}

func (s *output) put(id string, l report.Labels, v *float64, n int64) *report.Metric {
	at := slices.IndexFunc(Metrics, func(d report.MetricDef) bool { return d.ID == id })
	d := &Metrics[at]
	if l == nil {
		l = report.Labels{}
	}
	m := report.Metric{ID: id, Labels: l, Value: v, Unit: d.Unit, Better: d.Better, Assume: d.Assume, Scale: d.Scale, N: n,
		Source: source, Lifecycle: report.Experimental}
	m.Source.Rows = n
	s.metrics = append(s.metrics, m)
	return &s.metrics[len(s.metrics)-1]
}

func (s *output) int(id string, l report.Labels, v, n int64) { s.put(id, l, new(float64(v)), n) }

func (s *output) warn(code, format string, args ...any) {
	s.warnings = append(s.warnings, report.Warning{Code: code, Section: "ranks", Text: fmt.Sprintf(format, args...)})
}

func (s *output) note(format string, args ...any) {
	s.section.Notes = append(s.section.Notes, fmt.Sprintf(format, args...))
}

// find adds a finding that is worth ns of a window.
func (s *output) find(id, title string, evidence []report.MetricRef, ns, window int64, advice ...string) {
	worth := &report.Worth{Time: min(ns, window), Of: window}
	s.findings = append(s.findings, report.Finding{ID: id, Severity: report.SeverityOf(worth.Share()), Title: title,
		Evidence: evidence, Advice: advice, Doc: "ranks", Worth: worth})
}

// table adds a table with at least so many rows in all, and returns its columns.
func (s *output) table(id string, rows [][]report.Cell, total int) []report.Column {
	t := Tables[slices.IndexFunc(Tables, func(t report.Table) bool { return t.ID == id })]
	t.Columns = slices.Clone(t.Columns)
	t.Rows, t.TotalRows = rows, int64(max(total, len(rows)))
	s.section.Tables = append(s.section.Tables, t)
	return t.Columns
}

func (f *fold) rankReport(x *runFold) *rankSection {
	s := &rankSection{run: x, f: f, out: output{section: report.Section{ID: "ranks", Title: "Ranks",
		Group: report.GroupRanks, Status: report.OK,
		Derivation: "Collectives of all ranks are matched by communicator and order, or by order and kind where 95 % overlap. " +
			"A rank's waiting is the time that it takes beyond the shortest of all for the same collective; transfer is the rest. " +
			"Clocks of one host are tied by when sessions began, those of others by the ends of matched collectives, or by messages.",
		Notes: []string{}, Tables: []report.Table{}, Charts: []report.Chart{}}}}
	s.totals()
	s.bubbles()
	s.experts()
	s.energy()
	causes := s.ranksOut()
	s.chainsOut()
	s.out.table("rank_causes", causes, 0) // what late ranks did more than others
	s.clocksOut()
	s.stepsOut()
	s.rolesOut()
	s.heat()
	s.straggler()
	lists.Sort(s.out.findings, func(a, b report.Finding) int { return cmp.Compare(b.Worth.Share(), a.Worth.Share()) })
	s.gpus()
	if s.f.sampled {
		s.sampledNotes()
	}
	return s
}

func (s *rankSection) totals() {
	n := int64(len(s.run.ranks))
	if s.f.captures.reports() > 0 {
		s.unknownTotals()
		return
	}
	s.out.int("ranks.count", nil, n, n)
	if s.run.world > 0 {
		missing := max(0, s.run.world-n)
		s.out.int("ranks.missing", nil, missing, n)
		if missing > 0 {
			which := s.run.missing(s.run.world)
			s.out.section.Status, s.out.section.Reason = report.Partial, fmt.Sprintf("%d of %d ranks: %s", n, s.run.world, which)
			s.out.warn("missing_ranks", "%d of %d ranks were merged; no capture of %s. Everything below covers those ranks.", n, s.run.world, which)
		}
	} else {
		s.out.put("ranks.missing", nil, nil, n)
		highest := lists.Most(s.run.ranks, func(r *rank) int64 { return r.number })
		if gaps := s.run.missing(highest); gaps != "" && gaps != "rank 0" { // names may count from 1
			s.out.warn("missing_ranks", "Missing: %s; the total number of ranks is unknown. Everything below covers the merged ranks.", gaps)
		}
	}
	s.out.int("ranks.clocks", nil, int64(len(s.run.aligned.Clocks)), n)
	s.out.int("ranks.collectives", nil, s.run.result.Collectives, s.run.result.Collectives)
	if s.f.sampled {
		s.out.put("ranks.unmatched", nil, nil, n)
		s.out.put("ranks.step_time", nil, nil, n)
	} else {
		s.out.int("ranks.unmatched", nil, s.run.result.Unmatched, s.run.result.Unmatched)
	}
	if s.run.result.Compared > 0 {
		s.out.int("ranks.end_spread", nil, s.run.result.SpreadP50, s.run.result.Compared)
		s.out.int("ranks.end_spread_p99", nil, s.run.result.SpreadP99, s.run.result.Compared)
	}
	var all ranks.Rank
	for _, r := range s.run.ranks {
		all.Add(&r.sum, 1)
	}
	s.out.int("rank.collective_time", nil, all.Time, all.N)
	s.out.int("rank.wait_time", nil, all.Wait, all.N)
	s.out.int("rank.transfer_time", nil, all.Transfer, all.N)
	switch {
	case s.run.result.Collectives == 0 && s.run.result.Unmatched > 0:
		s.out.section.Status, s.out.section.Reason = report.Partial, "the collectives of the ranks could not be matched: they differ in kind or number, or do not overlap in time"
		s.out.warn("unmatched_collectives", "The collectives of the ranks could not be matched, so who waits for whom is unknown.")
	case s.run.result.Collectives == 0:
		s.out.note("No collective was captured in which ranks wait for each other (AllReduce, AllGather, ReduceScatter, AllToAll or Barrier, of NCCL or MPI).")
	case len(s.run.alone) > 0:
		s.out.warn("unmatched_collectives", "No collective of rank %s could be matched with those of others.", s.run.ranksNamed(s.run.alone))
	default:
		warnUnmatched(s)
	}
	if unknown := lists.Count(s.run.ranks, func(r *rank) bool { return r.number < 0 }); unknown > 0 {
		s.out.note("The rank of %d processes is unknown: they are named after their file and pid. --rank REGEX reads it from file names.", unknown)
	}
}

// warnUnmatched warns if many calls of collectives match none, as in a rank of fewer steps.
func warnUnmatched(s *rankSection) {
	var all int64
	calls := make([]int64, len(s.run.ranks))
	for m, at := range s.run.of {
		n, _ := s.run.members[m].Sampled()
		calls[at], all = calls[at]+n, all+n
	}
	if s.f.sampled || float64(s.run.result.Unmatched) < unmatchedShare*float64(all) {
		return
	}
	fewest := slices.Min(calls)
	s.out.warn("unmatched_collectives", "%s of %s calls of collectives match none of the other ranks: a capture that covers less, or fewer steps. Rank %s has fewest, %s.",
		unit.Int(s.run.result.Unmatched), unit.Int(all), s.run.ranks[slices.Index(calls, fewest)].label, unit.Int(fewest))
}

// unmatchedShare is the share of calls of collectives that captures may lack where they begin and end.
const unmatchedShare = 0.05

// missing names the ranks below a number without a capture, only the first ten if there are many; "" if there are none.
func (x *runFold) missing(below int64) string {
	have := lists.Set(x.ranks, func(r *rank) int64 { return r.number })
	maps.DeleteFunc(have, func(n int64, _ bool) bool { return n < 0 || n >= below })
	n := max(0, below-int64(len(have)))
	var list []string
	for r := int64(0); int64(len(list)) < min(n, 10); r++ {
		if !have[r] {
			list = append(list, strconv.FormatInt(r, 10))
		}
	}
	switch {
	case n == 0:
		return ""
	case n == 1:
		return "rank " + list[0]
	}
	return "ranks " + wording.Some(list, int(n))
}

// heldUp reports how long ranks wait for others, if all clocks are known.
func (s *rankSection) heldUp() {
	if s.f.captures.reports() > 0 || len(s.run.ranks) < 2 || s.run.result.Collectives == 0 && len(s.run.chains) == 0 {
		return
	}
	var waited, first *float64
	var all int64
	for m := range s.run.members {
		if len(s.run.members[m].Calls) > 0 {
			all += s.f.captures[s.run.ranks[s.run.of[m]].capture].window.Length
		}
	}
	if all > 0 && !slices.ContainsFunc(s.run.aligned.Clocks, func(c ranks.Clock) bool { return !c.Known }) {
		share, part := s.run.result.Waited/float64(all), 0.0
		if len(s.run.chains) > 0 {
			part = s.run.chains[0].Sum / float64(all)
		}
		waited, first = &share, &part
	}
	s.out.put("ranks.held_up_ratio", nil, waited, int64(len(s.run.ranks)))
	s.out.put("ranks.first_ratio", nil, first, int64(len(s.run.ranks)))
}
