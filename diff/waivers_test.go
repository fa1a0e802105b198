package diff_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/diffdoc"
	"github.com/nsys-llm/explain/diff/internal/difftest"
)

// rulesOf is a policy with some rule of every kind, each there or not.
func rulesOf(rng *rand.Rand) string {
	pick := func(lines ...string) string {
		var kept []string
		for _, l := range lines {
			if rng.IntN(2) == 0 {
				kept = append(kept, "  - "+l+"\n")
			}
		}
		return strings.Join(kept, "")
	}
	text := "version: 1\n"
	if rng.IntN(3) == 0 {
		text += "preset: " + []string{"llm-serving", "strict"}[rng.IntN(2)] + "\n"
	}
	text += "rules:\n  - {id: own step, metric: unit.time.p50, regress: {rel: 2%}}\n" + pick(
		"{id: own mean, metric: unit.time.mean, regress: {rel: 4%, abs: 10us}}",
		"{id: two, metric: unit.time.p90, warn: {rel: 1%}, fail: {rel: 8%}, optional: true}",
		"{id: gain, metric: unit.time.p99, improve: {rel: 5%}, optional: true}",
		"{id: count, metric: unit.launches, regress: {abs: 0}, optional: true}",
		"{id: tok/s, metric: unit.tokens_per_second_per_gpu, regress: {rel: 3%}}",
		"{id: 1.0, metric: unit.time_per_output_token, regress: {rel: 3%}}",
		"{id: each, metric: kernel.time_per_unit, labels: {kernel: \"*\"}, regress: {rel: 3%, abs: 1us}, optional: true}",
		"{metric: kernel.time_per_unit, match: {glob: \"gemm*\"}, regress: {rel: 30%}, optional: true}",
		"{id: form, metric: structure, level: error}")
	return text + "budgets:\n  - {id: low, metric: unit.time.mean, max: 1s}\n" + pick(
		"{id: high, metric: unit.time.mean, max: 2.1ms}",
		"{id: floor, metric: unit.tokens_per_second_per_gpu, min: 7500/s}")
}

// TestSuggestedWaiversWork: every line that a comment suggests, as it stands there, makes the comparison pass. A hundred draws of
// changes and of rules of all kinds.
func TestSuggestedWaiversWork(t *testing.T) {
	t.Parallel()
	suggested := regexp.MustCompile("`(- \\{rule: [^`]*\\})`")
	rng := rand.New(rand.NewPCG(35, 9))
	lines, kinds := 0, map[string]int{}
	for n := range longtest.N(40, 100) {
		head := map[string]float64{"gemm": 4, "attention": 2}
		if rng.IntN(2) == 0 {
			head["gemm"] += float64(1 + rng.IntN(2))
		}
		if rng.IntN(3) == 0 {
			head["new"] = 1
		}
		base := studied(1, 16, 2e6, map[string]float64{"gemm": 4, "attention": 2})
		other := studied(1, 16, 2e6*(1+0.3*rng.Float64()-0.05), head)
		text := rulesOf(rng)
		judge := func(text string) *comparison.Comparison {
			c, err := diff.Compare([]*report.Report{base}, []*report.Report{other}, diff.Options{Policy: difftest.Policy(t, text), Today: difftest.Day("2026-06-01")})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		c := judge(text)
		if c.Verdict != comparison.Fail {
			continue
		}
		comment := diffdoc.Comment(c, diffdoc.CommentOptions{Today: difftest.Day("2026-06-01"), Provenance: diffdoc.Provenance{Policy: ".github/explain.yml"}}, 60_000)
		found := suggested.FindAllStringSubmatch(comment, -1)
		if len(found) == 0 {
			continue
		}
		waived := text + "waivers:\n"
		for _, m := range found {
			waived += "  " + m[1] + "\n"
			lines++
		}
		for i := range c.Gates {
			if g := &c.Gates[i]; g.CountsAs == comparison.Fail {
				kinds[g.Rule]++
			}
		}
		if again := judge(waived); again.Verdict != comparison.Pass && again.Verdict != comparison.Warn {
			t.Fatalf("draw %d: %s with\n%s\n%s", n, again.Verdict, waived, gatesOf(again))
		}
	}
	if lines < longtest.N(20, 60) || len(kinds) < 8 {
		t.Errorf("%d lines, for %v: too few", lines, kinds)
	}
}

func gatesOf(c *comparison.Comparison) string {
	var b strings.Builder
	for i := range c.Gates {
		g := &c.Gates[i]
		fmt.Fprintf(&b, "%s counts as %s: %s %s\n", g.Rule, g.CountsAs, g.Verdict, g.Reason)
	}
	return b.String()
}
