package gate

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/gate/gatetest"
)

// slower is a comparison in which the rules fail by these ratios of head to base; 0 is a failure without a size.
func slower(ratios map[string]float64) *comparison.Comparison {
	c := &comparison.Comparison{Verdict: comparison.Fail, Comparable: true}
	for rule, ratio := range ratios {
		g := comparison.Gate{Rule: rule, Metric: "unit.time.p50", Labels: report.Labels{}, Verdict: comparison.Fail, CountsAs: comparison.Fail}
		if ratio > 0 {
			g.Ratio = &ratio
		}
		c.Gates = append(c.Gates, g)
	}
	return c
}

// undecided is a comparison that is inconclusive for these reasons.
func undecided(codes ...comparison.Code) *comparison.Comparison {
	c := &comparison.Comparison{Verdict: comparison.Inconclusive}
	for _, code := range codes {
		c.Reasons = append(c.Reasons, comparison.Reason{Code: code})
	}
	return c
}

// TestARecordIsACeiling: by hand, 1.138 seen covers 1.138 and 1.147 (a point of noise), and neither 1.15 nor another rule.
func TestARecordIsACeiling(t *testing.T) {
	one := func(head string, c *comparison.Comparison) *record {
		r := newRecord([]comparison.Leg{{Comparison: c}})
		r.Head = sha(head)
		return r
	}
	ratios := func(pairs map[string]float64) *comparison.Comparison { return slower(pairs) }
	better := func(ratio float64) *comparison.Comparison { // a rule asks for more
		c := slower(map[string]float64{"faster": ratio})
		c.Gates[0].Class = comparison.Improved
		return c
	}
	for _, c := range []struct {
		why       string
		seen, now *record
		want      bool
	}{
		{"the same", one("a", ratios(map[string]float64{"step": 1.138, "throughput": 0.8})), one("a", ratios(map[string]float64{"step": 1.138, "throughput": 0.8})), true},
		{"a point more, on a later head", one("a", ratios(map[string]float64{"step": 1.138})), one("e", ratios(map[string]float64{"step": 1.147})), true},
		{"worse", one("a", ratios(map[string]float64{"step": 1.138})), one("a", ratios(map[string]float64{"step": 1.15})), false},
		{"worse, and less is worse", one("a", ratios(map[string]float64{"throughput": 0.8})), one("a", ratios(map[string]float64{"throughput": 0.7})), false},
		{"another rule", one("a", ratios(map[string]float64{"step": 1.138})), one("a", ratios(map[string]float64{"step": 1.1, "tail": 1.01})), false},
		{"no size, the same head", one("a", ratios(map[string]float64{"sync": 0})), one("a", ratios(map[string]float64{"sync": 0})), true},
		{"no size, another head", one("a", ratios(map[string]float64{"sync": 0})), one("e", ratios(map[string]float64{"sync": 0})), false},
		{"not improved enough, the same head", one("a", better(0.98)), one("a", better(0.98)), true},
		{"not improved enough, and then worse", one("a", better(0.98)), one("e", ratios(map[string]float64{"faster": 1.01})), false},
		{"nothing had failed", one("a", &comparison.Comparison{Verdict: comparison.Pass, Comparable: true}), one("a", ratios(map[string]float64{"step": 1.001})), false},
		{"not comparable, seen", one("a", undecided(comparison.EnvironmentMismatch)), one("a", undecided(comparison.EnvironmentMismatch)), true},
		{"not comparable, another head", one("a", undecided(comparison.EnvironmentMismatch)), one("e", undecided(comparison.EnvironmentMismatch)), false},
		{"not comparable for another reason", one("a", undecided(comparison.EnvironmentMismatch)), one("a", undecided(comparison.DifferentWork)), false},
		{"fails now, and was not comparable", one("a", undecided(comparison.EnvironmentMismatch)), one("a", ratios(map[string]float64{"step": 1.1})), false},
	} {
		if got, why := c.seen.covers(c.now); got != c.want {
			t.Errorf("%s: %t %s", c.why, got, why)
		}
	}
}

// kept is a record as writeRecord leaves it on a head at a time.
func kept(head, at string, c *comparison.Comparison, change func(*record)) gatetest.Check {
	r := newRecord([]comparison.Leg{{Comparison: c}})
	r.Pull, r.Key, r.Head, r.Run = 7, "k", head, 400
	if change != nil {
		change(r)
	}
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // our own type
	}
	return gatetest.Check{SHA: head, Name: recordName(7, "k"), Text: string(text), At: at}
}

// TestAccept: a label counts for what the one who set it had seen.
func TestAccept(t *testing.T) {
	const early, at, late = "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z"
	step := func(ratio float64) *comparison.Comparison { return slower(map[string]float64{"step": ratio}) }
	queue := func(r *Run) {
		r.Pull, r.Number, r.Event, r.Push = nil, 0, "merge_group", &Push{Before: sha("b"), After: sha("f"), Ref: "main", Queued: 7}
	}
	root := t.TempDir()
	perf := filepath.Join(root, "perf")
	if err := os.Mkdir(perf, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(perf) // as with a working-directory
	inPerf := func(r *Run) { r.Workspace = root }
	for _, c := range []struct {
		why    string
		by     string // empty: alice
		accept Acceptance
		now    *comparison.Comparison
		checks []gatetest.Check
		roles  map[string]string
		files  []gatetest.File
		denied []string
		change func(*Run)
		want   bool
	}{
		{why: "seen on this head", now: step(1.4), checks: []gatetest.Check{kept(sha("a"), early, step(1.4), nil)}, want: true},
		{why: "before any verdict", now: step(1.04)},
		{why: "while this head was measured", now: step(1.4), checks: []gatetest.Check{kept(sha("e"), early, step(1.04), nil), kept(sha("a"), late, step(1.4), nil)}},
		{why: "as bad as what stood, on a later head", now: step(1.045), checks: []gatetest.Check{kept(sha("e"), early, step(1.04), nil)}, want: true},
		{why: "the newest one counts", now: step(1.4), checks: []gatetest.Check{kept(sha("e"), "2026-01-20T00:00:00Z", step(1.5), nil), kept(sha("a"), early, step(1.04), nil)}},
		{why: "of another pull request", now: step(1.04), checks: []gatetest.Check{kept(sha("a"), early, step(1.04), func(r *record) { r.Pull = 8 })}},
		{why: "of another gate", now: step(1.04), checks: []gatetest.Check{kept(sha("a"), early, step(1.04), func(r *record) { r.Key = "other" })}},
		{why: "that says another head", now: step(1.04), checks: []gatetest.Check{kept(sha("a"), early, step(1.04), func(r *record) { r.Head = sha("e") })}},
		{why: "by another app's check", now: step(1.04), checks: func() []gatetest.Check {
			c := kept(sha("a"), early, step(1.04), nil)
			c.App = "other-app"
			return []gatetest.Check{c}
		}()},
		{why: "by the token's own app", by: "github-actions[bot]", now: step(1.04), checks: []gatetest.Check{kept(sha("a"), early, step(1.04), nil)}},
		{why: "by another app", by: "maintainers[bot]", now: step(1.04), checks: []gatetest.Check{kept(sha("a"), early, step(1.04), nil)}},
		{why: "by somebody who may only triage", now: step(1.04), checks: []gatetest.Check{kept(sha("a"), early, step(1.04), nil)}, roles: map[string]string{"alice": "triage"}},
		{why: "by an admin, where maintainers may", accept: Acceptance{By: []string{"maintain"}}, now: step(1.04),
			checks: []gatetest.Check{kept(sha("a"), early, step(1.04), nil)}, roles: map[string]string{"alice": "admin"}, want: true},
		{why: "by somebody of another team", accept: Acceptance{By: []string{"@octo/other", "bob"}}, now: step(1.04), checks: []gatetest.Check{kept(sha("a"), early, step(1.04), nil)}},
		{why: "by somebody of the team", accept: Acceptance{By: []string{"@octo/perf"}}, now: step(1.04), checks: []gatetest.Check{kept(sha("a"), early, step(1.04), nil)}, want: true},
		{why: "by the owner of the policy", accept: Acceptance{By: []string{"CODEOWNERS"}, File: "perf/p.yml"}, now: step(1.04), checks: []gatetest.Check{kept(sha("a"), early, step(1.04), nil)},
			files: []gatetest.File{{Path: ".github/CODEOWNERS", Ref: sha("b"), Text: "* @bob\nperf/ @alice\n"}}, want: true},
		{why: "by who owns it at the head only", accept: Acceptance{By: []string{"CODEOWNERS"}, File: "perf/p.yml"}, now: step(1.04), checks: []gatetest.Check{kept(sha("a"), early, step(1.04), nil)},
			files: []gatetest.File{{Path: ".github/CODEOWNERS", Ref: sha("b"), Text: "* @bob\n"}, {Path: ".github/CODEOWNERS", Ref: sha("a"), Text: "* @alice\n"}}},
		{why: "by the owner of the whole, where the policy has its own", accept: Acceptance{By: []string{"CODEOWNERS"}, File: "./perf/p.yml"}, now: step(1.04), checks: []gatetest.Check{kept(sha("a"), early, step(1.04), nil)},
			files: []gatetest.File{{Path: ".github/CODEOWNERS", Ref: sha("b"), Text: "* @alice\n/perf/ @bob\n"}}},
		{why: "by the same, from the folder perf", accept: Acceptance{By: []string{"CODEOWNERS"}, File: "p.yml"}, now: step(1.04), checks: []gatetest.Check{kept(sha("a"), early, step(1.04), nil)},
			files:  []gatetest.File{{Path: ".github/CODEOWNERS", Ref: sha("b"), Text: "* @alice\n/perf/ @bob\n"}},
			change: inPerf},
		{why: "by an owner after a team that the token cannot read", accept: Acceptance{By: []string{"CODEOWNERS"}, File: "p.yml"}, now: step(1.04), checks: []gatetest.Check{kept(sha("a"), early, step(1.04), nil)},
			files:  []gatetest.File{{Path: ".github/CODEOWNERS", Ref: sha("b"), Text: "/perf/ @octo/perf @alice\n"}},
			denied: []string{"members: read"}, change: inPerf, want: true},
		{why: "by the owner of CODEOWNERS, without a policy", accept: Acceptance{By: []string{"CODEOWNERS"}}, now: step(1.04), checks: []gatetest.Check{kept(sha("a"), early, step(1.04), nil)},
			files:  []gatetest.File{{Path: ".github/CODEOWNERS", Ref: sha("b"), Text: "* @bob\n.github/ @alice\n"}},
			change: inPerf, want: true},
		{why: "not comparable, seen", now: undecided(comparison.EnvironmentMismatch), checks: []gatetest.Check{kept(sha("a"), early, undecided(comparison.EnvironmentMismatch), nil)}, want: true},
		{why: "in a merge queue", now: step(1.04), checks: []gatetest.Check{kept(sha("a"), early, step(1.04), nil)}, change: queue, want: true},
		{why: "in a merge queue, worse", now: step(1.2), checks: []gatetest.Check{kept(sha("a"), early, step(1.04), nil)}, change: queue},
	} {
		by := c.by
		if by == "" {
			by = "alice"
		}
		sc := gatetest.Scenario{Checks: c.checks, Roles: c.roles, Files: c.files, Denied: c.denied, Teams: map[string]string{"octo/perf": "alice carol"}, Now: late,
			Runs:  []gatetest.Run{{ID: 300, Event: "pull_request", HeadSHA: sha("e"), HeadBranch: "faster"}, {ID: 301, Event: "pull_request", HeadSHA: sha("9"), HeadBranch: "faster", HeadRepoID: 666}},
			Pulls: []gatetest.Pull{{Number: 7, HeadSHA: sha("a"), HeadRef: "faster", BaseSHA: sha("b"), Labels: []gatetest.Label{{Name: "perf:accept", By: by, At: at}}}}}
		run := pullRun()
		run.Workspace = perf
		if c.change != nil {
			c.change(run)
		}
		st := open(t, run, sc)
		var said strings.Builder
		s := &Session{Of: Subject{Run: run, Number: run.Number, Pull: run.Pull}, client: st.client, key: "k", token: true,
			o: SessionOptions{Say: func(line string) { said.WriteString(line + "\n") }}}
		c.accept.Label = "perf:accept"
		if err := s.Accept(context.Background(), []comparison.Leg{{Comparison: c.now}}, c.accept); err != nil {
			t.Errorf("%s: %v", c.why, err)
		}
		if got := c.now.Verdict == comparison.Warn; got != c.want {
			t.Errorf("%s: accepted %t; said %s", c.why, got, &said)
		}
		if !c.want && !strings.Contains(said.String(), "the label perf:accept accepts nothing here: ") {
			t.Errorf("%s: it does not say why: %q", c.why, &said)
		}
		if wrote := len(st.srv.Checks()) - len(c.checks); (wrote == 1) != (s.Of.Number != 0) {
			t.Errorf("%s: %d records written", c.why, wrote)
		}
	}
}

// TestAcceptSaysWhatItLacks: a token that may not keep what was judged is told so, and the verdict stands.
func TestAcceptSaysWhatItLacks(t *testing.T) {
	st := open(t, pullRun(), gatetest.Scenario{Denied: []string{"checks: write"}, Pulls: []gatetest.Pull{{Number: 7, HeadSHA: sha("a")}}})
	s := &Session{Of: Subject{Run: st.run, Number: 7, Pull: st.run.Pull}, client: st.client, key: "k", token: true, o: SessionOptions{Say: func(string) {}}}
	c := slower(map[string]float64{"step": 1.1})
	if err := s.Accept(context.Background(), []comparison.Leg{{Comparison: c}}, Acceptance{Label: "perf:accept"}); err == nil || !strings.Contains(err.Error(), "checks: write") || c.Verdict != comparison.Fail {
		t.Errorf("%v, %s", err, c.Verdict)
	}
}
