package diff_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/policy"
)

// cloned is a report that can be changed, as a report.json that was written and read.
func cloned(t testing.TB, r *report.Report) *report.Report {
	t.Helper()
	var b bytes.Buffer
	if err := report.Write(&b, r); err != nil {
		t.Fatal(err)
	}
	c, err := report.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// named is a report whose kinds of unit have ids, which its metrics carry. to says what each is called.
func named(t testing.TB, r *report.Report, to func(id string) string) *report.Report {
	t.Helper()
	x := report.NewIndex(r)
	n := cloned(t, r)
	for i := range n.Metrics {
		if id := r.Metrics[i].Group; id != "" {
			n.Metrics[i].Group = to(id)
		}
	}
	for _, p := range n.Unit.Parts {
		p.Group = to(p.Group)
	}
	if n.Unit.Steps != nil {
		for _, s := range n.Unit.Steps.List {
			s.Group = to(s.Group)
		}
	}
	main, _ := x.Main()
	for i := range n.Unit.Groups {
		u := &n.Unit.Groups[i]
		u.ID = to("unlisted " + u.Signature)
		for k, g := range x.Groups() {
			if g.Phase == u.Phase && g.Signature == u.Signature && (u.Batch == nil) == (g.Batch < 0) && (u.Batch == nil || *u.Batch == g.Batch) &&
				(u.Tokens == nil || *u.Tokens == g.Tokens) {
				u.ID, u.Main = to(g.ID), k == main
			}
		}
	}
	return n
}

// shuffled is a report whose metrics, sections and tables stand in another order.
func shuffled(t testing.TB, r *report.Report, seed uint64) *report.Report {
	t.Helper()
	s := cloned(t, r)
	rnd := rand.New(rand.NewPCG(seed, 1))
	rnd.Shuffle(len(s.Metrics), func(i, j int) { s.Metrics[i], s.Metrics[j] = s.Metrics[j], s.Metrics[i] })
	rnd.Shuffle(len(s.Sections), func(i, j int) { s.Sections[i], s.Sections[j] = s.Sections[j], s.Sections[i] })
	for i := range s.Sections {
		list := s.Sections[i].Tables
		rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return s
}

func jsonOf(t testing.TB, c *comparison.Comparison) string {
	t.Helper()
	var b bytes.Buffer
	if err := comparison.Write(&b, c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestWhatThingsAreCalledDoesNotMatter: the order in which a report says things and the ids of its kinds of unit are nothing
// that a comparison could see, and a report without ids compares as one with them.
func TestWhatThingsAreCalledDoesNotMatter(t *testing.T) {
	t.Parallel()
	same := func(id string) string { return id }
	other := func(id string) string { return "kind " + id + "!" }
	server := reportOfFile(t, servingTrace, analyze.Options{})
	for name, sides := range map[string][2]*report.Report{
		"serving":      {server, server},
		"slower":       {engineReport(t, engine{steps: 12, layers: 4}), engineReport(t, engine{steps: 12, layers: 4, scale: 1.2, seed: 1})},
		"other calls":  {engineReport(t, engine{steps: 10, layers: 4, graph: true}), engineReport(t, engine{steps: 10, layers: 4, sync: true, pageable: true})},
		"many kinds":   {engineReport(t, engine{steps: 24, batches: []int64{8, 32, 32}}), engineReport(t, engine{steps: 24, batches: []int64{8, 8, 32}, scale: 1.2})},
		"more kernels": {engineReport(t, engine{steps: 10, layers: 4}), engineReport(t, engine{steps: 10, layers: 4, two: true, add: 5_000})},
	} {
		base, head := sides[0], sides[1]
		want := jsonOf(t, diffOf(t, base, head, diff.Options{}))
		for seed := range uint64(longtest.N(1, 3)) {
			for _, x := range longtest.Some([]struct {
				what  string
				sides func() [2]*report.Report
			}{
				{"ids on a side", func() [2]*report.Report { return [2]*report.Report{base, named(t, head, other)} }},
				{"shuffled", func() [2]*report.Report {
					return [2]*report.Report{shuffled(t, base, seed), shuffled(t, head, seed+1)}
				}},
				{"with ids", func() [2]*report.Report { return [2]*report.Report{named(t, base, same), named(t, head, same)} }},
				{"with other ids", func() [2]*report.Report { return [2]*report.Report{named(t, base, same), named(t, head, other)} }},
				{"ids, shuffled", func() [2]*report.Report {
					return [2]*report.Report{named(t, shuffled(t, base, seed), other), named(t, head, same)}
				}},
			}, 2) {
				what, sides := x.what, x.sides()
				if d := cmp.Diff(want, jsonOf(t, diffOf(t, sides[0], sides[1], diff.Options{}))); d != "" {
					t.Errorf("%s, %s:\n%s", name, what, d)
				}
			}
		}
	}
}

// timesScaled is a report whose metrics of time are k times as large, and whose tables are as they were.
func timesScaled(t testing.TB, r *report.Report, k float64) *report.Report {
	t.Helper()
	s := scaled(t, r, k)
	s.Sections = cloned(t, r).Sections
	return s
}

// TestAUnitIsKnownByItsIdAndNotByItsTime: metrics that no longer agree with the tables to the last bit leave the kind of unit
// where it was, and a factor that both sides share changes no ratio and no class.
func TestAUnitIsKnownByItsIdAndNotByItsTime(t *testing.T) {
	t.Parallel()
	server := reportOfFile(t, servingTrace, analyze.Options{})
	for name, r := range map[string][2]*report.Report{
		"serving": {server, server},
		"engine":  {engineReport(t, engine{steps: 30}), engineReport(t, engine{steps: 30, gap: 100_000, seed: 1})},
	} {
		plain := diffOf(t, r[0], r[1], diff.Options{})
		both := diffOf(t, timesScaled(t, r[0], 1.01), timesScaled(t, r[1], 1.01), diff.Options{})
		head := diffOf(t, r[0], timesScaled(t, r[1], 1.01), diff.Options{})
		if !both.Comparable || !head.Comparable || both.Depth != plain.Depth || head.Unit.Kind != plain.Unit.Kind || head.Unit.Phase != plain.Unit.Phase {
			t.Errorf("%s: comparable %v and %v, depth %s, unit %+v: %v", name, both.Comparable, head.Comparable, both.Depth, head.Unit, head.Reasons)
			continue
		}
		for i := range plain.Primary {
			p, b, h := &plain.Primary[i], &both.Primary[i], &head.Primary[i]
			if p.Metric != b.Metric || p.Class != b.Class || p.Ratio != nil && math.Abs(*p.Ratio-*b.Ratio) > 1e-9 {
				t.Errorf("%s: %s is %s, both sides scaled %s %s", name, p.Metric, p.Class, b.Metric, b.Class)
			}
			if p.Ratio != nil && p.Unit == report.Nanoseconds && math.Abs(*h.Ratio / *p.Ratio - 1.01) > 1e-9 {
				t.Errorf("%s: %s: ratio %v becomes %v with a head of 1.01 times", name, p.Metric, *p.Ratio, *h.Ratio)
			}
		}
	}
}

// A reason begins with its code, which stands in a field of its own too.
func TestReasonsOfGatesHaveACode(t *testing.T) {
	r := engineReport(t, engine{steps: 30})
	rule, err := policy.ParseFailOn("no.such_metric:+3%")
	if err != nil {
		t.Fatal(err)
	}
	c := diffOf(t, r, r, diff.Options{Rules: []policy.Rule{rule}})
	if len(c.Gates) != 1 || c.Gates[0].Code != comparison.NothingMatched || !strings.HasPrefix(c.Gates[0].Reason, "nothing_matched: ") {
		t.Fatalf("gates %+v", c.Gates)
	}
}
