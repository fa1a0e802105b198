package gate

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/gate/gatetest"
)

// slower is a comparison in which the rules fail by these ratios of head to base.
func slower(ratios map[string]float64) *comparison.Comparison {
	c := &comparison.Comparison{Verdict: comparison.Fail}
	for rule, ratio := range ratios {
		c.Gates = append(c.Gates, comparison.Gate{Rule: rule, Metric: "unit.time.p50", Labels: report.Labels{}, Ratio: &ratio,
			Verdict: comparison.Fail, CountsAs: comparison.Fail})
	}
	return c
}

// TestAcceptanceIsACeiling: by hand, 1.138 accepted covers 1.138 and 1.147 (a point of noise), and neither 1.15 nor another rule.
func TestAcceptanceIsACeiling(t *testing.T) {
	was := accept(sha("a"), slower(map[string]float64{"step": 1.138, "throughput": 0.8}))
	kept := readAcceptance(was.String())
	if kept.head != sha("a") || len(kept.sizes) != 2 {
		t.Fatalf("%q became %+v", was, kept)
	}
	for _, c := range []struct {
		why    string
		ratios map[string]float64
		want   bool
	}{
		{"the same", map[string]float64{"step": 1.138, "throughput": 0.8}, true},
		{"a point more", map[string]float64{"step": 1.147}, true},
		{"worse", map[string]float64{"step": 1.15}, false},
		{"worse, and less is worse", map[string]float64{"throughput": 0.7}, false},
		{"another rule", map[string]float64{"step": 1.1, "tail": 1.01}, false},
	} {
		if got := kept.covers(slower(c.ratios)); got != c.want {
			t.Errorf("%s: %t", c.why, got)
		}
	}
	unmeasured := slower(map[string]float64{"step": 1.1})
	unmeasured.Gates[0].Ratio = nil
	if kept.covers(unmeasured) || len(accept(sha("a"), unmeasured).sizes) > 0 {
		t.Error("a failure without a size is covered")
	}
	for _, text := range []string{"", "abc", sha("a") + ",0123abcd=NaN", sha("a") + ",0123abcd=0.5", sha("a") + ",x=2", sha("a") + ",,"} {
		if a := readAcceptance(text); len(a.sizes) > 0 || a.head != "" {
			t.Errorf("%q: %+v", text, a)
		}
	}
}

// TestOverride: a label counts for what it was set on.
func TestOverride(t *testing.T) {
	accepted := marker{key: "k", stamp: stamp{sha("e"), 400, 1}, accepted: acceptance{sha("e"), accept(sha("e"), slower(map[string]float64{"step": 1.04})).sizes}}
	noSizes := marker{key: "k", stamp: stamp{sha("a"), 400, 1}, accepted: acceptance{head: sha("a")}}
	early, late := "2026-02-01T00:00:00Z", "2026-03-02T00:00:00Z" // the head is the pull request's since 2026-03-01
	for _, c := range []struct {
		why      string
		label    gatetest.Label
		ratio    float64
		marker   *marker
		author   gatetest.User
		change   func(*Run)
		want     bool
		accepted string // head that the comment will say was accepted
	}{
		{why: "set on this head", label: gatetest.Label{By: "alice", At: late}, ratio: 1.4, want: true, accepted: sha("a")},
		{why: "set before this head", label: gatetest.Label{By: "alice", At: early}, ratio: 1.04},
		{why: "set before, no worse than accepted", label: gatetest.Label{By: "alice", At: early}, ratio: 1.045, marker: &accepted, want: true},
		{why: "set before, worse than accepted", label: gatetest.Label{By: "alice", At: early}, ratio: 1.4, marker: &accepted},
		{why: "what a stranger says was accepted", label: gatetest.Label{By: "alice", At: early}, ratio: 1.04, marker: &accepted, author: gatetest.User{Login: "mallory", Type: "User"}},
		{why: "accepted on this head, in a run before", label: gatetest.Label{By: "alice", At: early}, ratio: 1.4, marker: &noSizes, want: true},
		{why: "by the token's own app", label: gatetest.Label{By: "github-actions[bot]", At: late}, ratio: 1.04},
		{why: "by another app", label: gatetest.Label{By: "maintainers[bot]", At: late}, ratio: 1.04, want: true, accepted: sha("a")},
		{why: "this very event set it", label: gatetest.Label{By: "alice", At: early}, ratio: 1.4, want: true, accepted: sha("a"),
			change: func(r *Run) { r.Action, r.labelled = "labeled", "PERF:accept" }},
		{why: "this event set another label", label: gatetest.Label{By: "alice", At: early}, ratio: 1.4, change: func(r *Run) { r.Action, r.labelled = "labeled", "bug" }},
		{why: "in a merge queue", label: gatetest.Label{By: "alice", At: early}, ratio: 1.04, marker: &accepted, want: true,
			change: func(r *Run) {
				r.Pull, r.Number, r.Event, r.Push = nil, 0, "merge_group", &Push{Before: sha("b"), After: sha("f"), Ref: "main", Queued: 7}
			}},
		{why: "in a merge queue, worse", label: gatetest.Label{By: "alice", At: late}, ratio: 1.2, marker: &accepted,
			change: func(r *Run) {
				r.Pull, r.Number, r.Event, r.Push = nil, 0, "merge_group", &Push{Before: sha("b"), After: sha("f"), Ref: "main", Queued: 7}
			}},
	} {
		c.label.Name = "perf:accept"
		sc := gatetest.Scenario{Pulls: []gatetest.Pull{{Number: 7, HeadSHA: sha("a"), BaseSHA: sha("b"), Labels: []gatetest.Label{c.label}}}}
		if c.marker != nil {
			sc.Comments = []gatetest.Comment{{Number: 7, Author: c.author, Body: c.marker.sign("FAIL")}}
		}
		run := pullRun()
		run.headSince = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		if c.change != nil {
			c.change(run)
		}
		st := open(t, run, sc)
		var said strings.Builder
		s := &Session{Run: run, Number: run.Number, Pull: run.Pull, client: st.client, key: "k", token: true,
			o: SessionOptions{Say: func(line string) { said.WriteString(line + "\n") }}}
		result := slower(map[string]float64{"step": c.ratio})
		s.Override(context.Background(), result, "perf:accept")
		if got := result.Verdict == comparison.Warn; got != c.want || s.accepted.head != c.accepted {
			t.Errorf("%s: accepted %t, head %q; said %s", c.why, got, s.accepted.head, &said)
		}
		if !c.want && !strings.Contains(said.String(), "the label perf:accept") {
			t.Errorf("%s: it does not say why: %q", c.why, &said)
		}
	}
}
