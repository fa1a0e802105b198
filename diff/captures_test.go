package diff_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/difftest"
)

// of a report, another that is a capture of its own or not.
func identified(r *report.Report, content, session string) *report.Report {
	own := *r
	own.Capture = report.Capture{Content: &content, SessionStart: &session}
	return &own
}

func warned(c *comparison.Comparison, code comparison.Code) int {
	n := 0
	for _, w := range c.Warnings {
		if w.Code == code {
			n++
		}
	}
	return n
}

// One file named three times is one capture, and a slower head is not certain because of that; windows of one session are
// one replicate.
func TestCopiesCountOnce(t *testing.T) {
	base, slow := engineReport(t, engine{}), engineReport(t, engine{gap: 40_000})
	many := func(r *report.Report, contents, sessions string) []*report.Report {
		var list []*report.Report
		for i := range contents {
			list = append(list, identified(r, contents[i:i+1], sessions[i:i+1]))
		}
		return list
	}
	alone := compareReports(t, many(base, "a", "s"), many(slow, "h", "t"), diff.Options{})
	for _, w := range []struct {
		name                       string
		base, head                 []*report.Report
		copies, sessions           int
		baseCaptures, headCaptures int
	}{
		{"three names", many(base, "aaa", "sss"), many(slow, "hhh", "ttt"), 4, 0, 1, 1},
		{"three windows", many(base, "abc", "sss"), many(slow, "h", "t"), 0, 2, 1, 1},
		{"three captures", many(base, "abc", "xyz"), many(slow, "hij", "tuv"), 0, 0, 3, 3},
	} {
		c := compareReports(t, w.base, w.head, diff.Options{})
		if warned(c, comparison.SameCapture) != w.copies || warned(c, comparison.OneSession) != w.sessions {
			t.Errorf("%s: warnings %v", w.name, c.Warnings)
		}
		if c.Base.Captures != w.baseCaptures || c.Head.Captures != w.headCaptures {
			t.Errorf("%s: %d and %d captures", w.name, c.Base.Captures, c.Head.Captures)
		}
		if w.baseCaptures == 1 && (c.Verdict != alone.Verdict || rowOf(t, c, "unit.time.p50").Class != rowOf(t, alone, "unit.time.p50").Class) {
			t.Errorf("%s: %s, and one of each is %s", w.name, c.Verdict, alone.Verdict)
		}
	}
}

// One capture on both sides is nothing to conclude from, whatever its rows say; two windows of a session are compared.
func TestCaptureOnBothSides(t *testing.T) {
	base, slow := engineReport(t, engine{}), engineReport(t, engine{gap: 40_000})
	one := func(r *report.Report, content string) []*report.Report {
		return []*report.Report{identified(r, content, "s")}
	}
	c := compareReports(t, one(base, "a"), one(base, "a"), diff.Options{})
	if c.Verdict != comparison.Inconclusive || !c.Has(comparison.SameCapture) || !c.Identical || !strings.HasPrefix(c.Cause, "No change") {
		t.Errorf("%s %v: %s", c.Verdict, c.Reasons, c.Cause)
	}
	if r := rowOf(t, c, "unit.time.p50"); r.Class != comparison.Same {
		t.Errorf("unit.time.p50 is %s", r.Class)
	}
	other := identified(base, "b", "u")
	c = compareReports(t, append(one(base, "a"), other), append(one(slow, "h"), other), diff.Options{})
	if !c.Has(comparison.SameCapture) || c.Verdict == comparison.Pass {
		t.Errorf("one of two on both sides: %s %v", c.Verdict, c.Reasons)
	}
	c = compareReports(t, one(base, "a"), one(slow, "b"), diff.Options{})
	if c.Has(comparison.SameCapture) || warned(c, comparison.OneSession) != 1 || rowOf(t, c, "unit.time.p50").Class != comparison.Regressed {
		t.Errorf("two windows: %v %v", c.Reasons, c.Warnings)
	}
}

// Two exports of one capture, and two halves of one session.
func TestRealCopies(t *testing.T) {
	get := realReports(t)
	c := diffOf(t, get("cs336_hoponga_exp2023_4"), get("cs336_hoponga_exp2024_2"), diff.Options{})
	if c.Verdict != comparison.Inconclusive || !c.Has(comparison.SameCapture) {
		t.Errorf("two exports: %s %v", c.Verdict, c.Reasons)
	}
}

// A capture that lost events is never a pass, whichever side it is, and its counts are neither better nor worse.
func TestIncompleteCaptures(t *testing.T) {
	base := engineReport(t, engine{})
	for name, spoil := range map[string]func(r *report.Report){
		"most units miss events": func(r *report.Report) { setMetric(r, "quality.incomplete_units", report.Ratio, 0.6) },
		"launches without kernels, by a version that did not look at units": func(r *report.Report) {
			r.Metrics = slices.DeleteFunc(r.Metrics, func(m report.Metric) bool { return m.ID == "quality.incomplete_units" })
			setMetric(r, "quality.lost_kernels", report.Ratio, 0.2)
		},
		"launches of graphs that hide their work": func(r *report.Report) { setMetric(r, "quality.hidden_graph_launches", report.Ratio, 0.6) },
		"rows that cannot be used": func(r *report.Report) {
			r.Trace.Tables = append([]report.TableCount{}, r.Trace.Tables...)
			r.Trace.Tables[0].Skipped = r.Trace.Tables[0].Rows
		},
	} {
		lost := *engineReport(t, engine{})
		lost.Metrics = append([]report.Metric{}, lost.Metrics...)
		spoil(&lost)
		lost = *identified(&lost, "lost", "other")
		for _, sides := range [][2]*report.Report{{base, &lost}, {&lost, base}} {
			c := diffOf(t, sides[0], sides[1], diff.Options{})
			if c.Verdict != comparison.Inconclusive || !c.Has(comparison.IncompleteCapture) {
				t.Errorf("%s: %s %v", name, c.Verdict, c.Reasons)
			}
			if r := rowOf(t, c, "unit.launches"); r.Class != comparison.Unsettled {
				t.Errorf("%s: unit.launches is %s", name, r.Class)
			}
			if r := rowOf(t, c, "unit.time.p50"); r.Class != comparison.Same {
				t.Errorf("%s: unit.time.p50 is %s: time passes whatever was recorded", name, r.Class)
			}
		}
	}
}

// Ranges that cannot be used make a capture incomplete only where its units are ranges.
func TestRangesThatCannotBeUsed(t *testing.T) {
	base := engineReport(t, engine{})
	for _, kind := range []string{"kernel", "nvtx"} {
		sides := [2]report.Report{*base, *identified(base, "head", "other")}
		for i := range sides {
			sides[i].Unit.Kind = kind
			sides[i].Trace.Tables = append(slices.Clone(base.Trace.Tables), report.TableCount{Name: "NVTX_EVENTS", Rows: 100, Skipped: 2})
		}
		c := diffOf(t, &sides[0], &sides[1], diff.Options{})
		if c.Has(comparison.IncompleteCapture) != (kind == "nvtx") {
			t.Errorf("units by %s: %v", kind, c.Reasons)
		}
	}
}

// What nsys says of its own work is told once and decides nothing, and so are units that were left out, or launches
// outside of units that have no kernel.
func TestMessagesDecideNothing(t *testing.T) {
	base := engineReport(t, engine{})
	for name, w := range map[string]struct {
		id    string
		value float64
		code  comparison.Code
	}{
		"a message": {"quality.lost_data_messages", 3, "lost_data"}, "one unit of 60": {"quality.incomplete_units", 1.0 / 60, comparison.IncompleteCapture},
		"lost outside the units": {"quality.lost_kernels", 0.2, ""},
	} {
		head := *engineReport(t, engine{})
		head.Metrics = append([]report.Metric{}, head.Metrics...)
		setMetric(&head, w.id, report.Count, w.value)
		c := compareReports(t, one(base), one(identified(&head, "head", "other")), diff.Options{})
		if c.Verdict != comparison.Pass || c.Has(comparison.IncompleteCapture) {
			t.Errorf("%s: %s %v", name, c.Verdict, c.Reasons)
		}
		if w.code != "" && warned(c, w.code) != 1 {
			t.Errorf("%s: %v", name, c.Warnings)
		}
	}
}

// setMetric adds an exact number to a report, or puts another value in.
func setMetric(r *report.Report, id, unit string, value float64) {
	for i := range r.Metrics {
		if r.Metrics[i].ID == id && len(r.Metrics[i].Labels) == 0 {
			r.Metrics[i].Value = &value
			return
		}
	}
	r.Metrics = append(r.Metrics, report.Metric{ID: id, Labels: report.Labels{}, Value: &value, Unit: unit, Better: report.Lower,
		Assume: report.Exact, Scale: report.Level, N: 1, Source: report.Source{Tables: []string{"t"}, Columns: []string{"c"}, Rows: 1}, Lifecycle: report.Stable})
}

// withLoad is a report with what a client measured beside its trace: mean latencies of 1,000 requests with a spread of a
// hundredth, of which a share failed.
func withLoad(r *report.Report, content string, factor, failed float64) *report.Report {
	own := *identified(r, content, content)
	own.Metrics = append([]report.Metric{}, own.Metrics...)
	own.Evidence = []report.EvidenceFile{{Name: "load.json", Kind: "load"}}
	for id, mean := range map[string]float64{"serve.ttft": 100e6, "serve.tpot": 10e6, "serve.e2e": 2e9} {
		setMetric(&own, id, report.Nanoseconds, mean*factor)
		m := &own.Metrics[len(own.Metrics)-1]
		m.Assume, m.Scale, m.N = report.Noisy, report.Event, 1000
		m.Summary = &report.Summary{N: 1000, Min: mean * factor * 0.9, P50: mean * factor, P90: mean * factor * 1.01, P99: mean * factor * 1.02,
			Max: mean * factor * 1.1, Mean: mean * factor, Stddev: mean * factor * 0.01}
	}
	setMetric(&own, "load.failure_ratio", report.Ratio, failed)
	return &own
}

// Evidence beside a trace is judged as it would be alone: latencies × 3 fail, failed requests fail and make latencies
// inconclusive, and equal evidence changes nothing.
func TestEvidenceBesideATrace(t *testing.T) {
	r := engineReport(t, engine{})
	base := withLoad(r, "a", 1, 0)
	for _, w := range []struct {
		name    string
		head    *report.Report
		verdict comparison.Verdict
		ttft    comparison.Class
		failing string
	}{
		{"equal", withLoad(r, "b", 1, 0), comparison.Pass, comparison.Same, ""},
		{"slower", withLoad(r, "c", 3, 0), comparison.Fail, comparison.Regressed, "serve.ttft.mean"},
		{"half failed", withLoad(r, "d", 0.9, 0.5), comparison.Fail, comparison.Unsettled, "load.failure_ratio"},
	} {
		c := compareReports(t, one(base), one(w.head), diff.Options{})
		if c.Verdict != w.verdict || c.Depth != comparison.DepthKernel || rowOf(t, c, "serve.ttft.mean").Class != w.ttft {
			t.Errorf("%s: %s, depth %s, %+v", w.name, c.Verdict, c.Depth, rowOf(t, c, "serve.ttft.mean"))
		}
		found := w.failing == ""
		for i := range c.Gates {
			found = found || c.Gates[i].Metric == w.failing && c.Gates[i].Verdict == comparison.Fail
		}
		if !found || c.Has(comparison.FailedRequests) != (w.name == "half failed") {
			t.Errorf("%s: gates %+v", w.name, c.Gates)
		}
	}
}

// TestMaxOverhead: where profiling cost more than the policy allows, on either side, nothing follows from the captures; where nobody
// measured it, that is said.
func TestMaxOverhead(t *testing.T) {
	with := func(r *report.Report, o *report.Overhead) *report.Report {
		copied := *r
		copied.Capture.Overhead = o
		return &copied
	}
	base, head := engineReport(t, engine{}), identified(engineReport(t, engine{}), "another", "session")
	cheap, dear := &report.Overhead{Of: "request", Ratio: 0.1}, &report.Overhead{Of: "request", Ratio: 0.101}
	for _, x := range []struct {
		name       string
		base, head *report.Overhead
		policy     string
		reasons    int
		warnings   int
		verdict    comparison.Verdict
	}{
		{"as much as allowed", cheap, cheap, "stats: {max_overhead: 10%}", 0, 0, comparison.Pass},
		{"the base cost more", dear, cheap, "stats: {max_overhead: 10%}", 1, 0, comparison.Inconclusive},
		{"both cost more", dear, dear, "stats: {max_overhead: 10%}", 2, 0, comparison.Inconclusive},
		{"nobody knows of one", cheap, nil, "stats: {max_overhead: 10%}", 0, 1, comparison.Pass},
		{"not asked for", dear, nil, "stats: {alpha: 0.05}", 0, 0, comparison.Pass},
	} {
		p := difftest.Policy(t, "version: 1\nrules:\n  - {id: step, metric: unit.time.p50, level: error, regress: {rel: 30%}}\n"+x.policy)
		c := diffOf(t, with(base, x.base), with(head, x.head), diff.Options{Policy: p})
		count := func(list []comparison.Reason) (n int) {
			for _, r := range list {
				if r.Code == comparison.HighOverhead {
					n++
				}
			}
			return n
		}
		if count(c.Reasons) != x.reasons || count(c.Warnings) != x.warnings || c.Verdict != x.verdict {
			t.Errorf("%s: %s %v %v", x.name, c.Verdict, c.Reasons, c.Warnings)
		}
	}
}

// W1: of three captures of the base one took 20 % longer. The head takes 10 % longer than the other two, which the mean of
// all three hides: it fails, and the capture is named. An odd one of the head, without a change, fails nothing and is named.
func TestOneOddCapture(t *testing.T) {
	for name, c := range map[string]struct {
		base, head []float64
		fails      bool
		side       string
	}{
		"odd base, +10 %":            {[]float64{1.2, 1, 1.002}, []float64{1.101, 1.099, 1.1}, true, "base: "},
		"odd base, no change":        {[]float64{1.2, 1, 1.002}, []float64{1.001, 0.999, 1}, false, "base: "},
		"odd head, no change":        {[]float64{1, 1.001, 0.999}, []float64{1, 1.2, 1.001}, false, "head: "},
		"odd head, +10 % in the two": {[]float64{1, 1.001, 0.999}, []float64{1.1, 1.32, 1.102}, true, "head: "},
	} {
		got := compare(t, each(32, 10e6, 1, c.base...), each(32, 10e6, 2, c.head...), diff.Options{})
		at := slices.IndexFunc(got.Warnings, func(w comparison.Reason) bool { return w.Code == comparison.OddCapture })
		if (got.Verdict == comparison.Fail) != c.fails || at < 0 || !strings.HasPrefix(got.Warnings[max(at, 0)].Text, c.side) {
			t.Errorf("%s: %s, %s, %+v", name, got.Verdict, got.Cause, got.Warnings)
		}
	}
}
