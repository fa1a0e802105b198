package diffdoc

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/diff/comparison"
)

// A step of 100 µs takes 110: compute 60 → 66, of which attention is 20 → 25 and GEMMs 30 → 30, exposed communication
// 10 → 9 by the one collective, idle 30 → 35, of which the host is 20 → 26 and launches 10 → 9. By class 60 %, -10 % and
// 50 % of the change; by parts 50 and 10 (attention, others), -10 (communication is not split), 60 and -10 %.
func TestSharesOfEachLevelSumToTheChange(t *testing.T) {
	row := func(id, kind, category string, base, head float64) comparison.AttributionRow {
		return comparison.AttributionRow{ID: id, Kind: kind, Category: category, Base: base, Head: head, Delta: head - base}
	}
	c := &comparison.Comparison{Attribution: comparison.Attribution{
		Metric: "unit.time", Base: 100e3, Head: 110e3, TotalDelta: 10e3,
		Rows: []comparison.AttributionRow{
			row("compute", comparison.KindClass, "", 60e3, 66e3), row("exposed_comm", comparison.KindClass, "", 10e3, 9e3),
			row("exposed_copy", comparison.KindClass, "", 0, 0), row("idle", comparison.KindClass, "", 30e3, 35e3),
			row("host", comparison.KindCause, "", 20e3, 26e3), row("launch", comparison.KindCause, "", 10e3, 9e3),
			row("attention", comparison.KindCategory, "attention", 20e3, 25e3), row("gemm", comparison.KindCategory, "gemm", 30e3, 30e3),
			row("comm", comparison.KindCategory, "comm", 10e3, 9e3), row("norm", comparison.KindCategory, "norm", 10e3, 10.4e3),
		},
	}}
	rows := attributionRows(&c.Attribution)
	var classes, parts float64
	var names []string
	for _, r := range rows {
		names = append(names, r.ID)
		if r.Kind == comparison.KindClass {
			classes += r.Delta / c.Attribution.TotalDelta
		}
		if r.Kind != comparison.KindClass || r.ID == comparison.ClassComm {
			parts += r.Delta / c.Attribution.TotalDelta
		}
	}
	if math.Abs(classes-1) > 1e-9 || math.Abs(parts-1) > 1e-9 {
		t.Errorf("classes sum to %v, their parts to %v", classes, parts)
	}
	if got := strings.Join(names, " "); got != "compute attention other kernels exposed_comm idle host launch" {
		t.Errorf("rows: %s", got)
	}
	table := attributionTable(c)
	if len(table.Rows) == 0 {
		t.Fatal("no table")
	}
	want := []string{"60.0 %", "50.0 %", "10.0 %", "-10.0 %", "50.0 %", "60.0 %", "-10.0 %"}
	for i, cells := range table.Rows {
		if got := text(cells[4]); got != want[i] || strings.HasPrefix(text(cells[0]), "└ ") == (rows[i].Kind == comparison.KindClass) {
			t.Errorf("row %d: %q, share %s, want %s", i, text(cells[0]), got, want[i])
		}
	}
}

// The cost per unit orders the calls, not the change in percent: memsets become 8 times as long and cost 14 µs more,
// launches 20 % and cost 60 µs more.
func TestHostCallsLeadByTheirCost(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	call := func(name string, count, base, head float64) comparison.API {
		return comparison.API{Name: name, BaseCount: v(count), HeadCount: v(count), BaseTime: v(count * base),
			HeadTime: v(count * head), BaseMean: v(base), HeadMean: v(head), Ratio: v(head / base), Class: comparison.Regressed}
	}
	c := &comparison.Comparison{API: []comparison.API{call("cudaMemsetAsync", 1, 2e3, 16e3), call("cudaLaunchKernel", 60, 5e3, 6e3)}}
	table := apiTable(c, true)
	var got []string
	for _, cells := range table.Rows {
		got = append(got, text(cells[0])+" "+text(cells[2])+" "+text(cells[3])+" "+text(cells[4]))
	}
	if table.Columns[1].Title != "Calls" {
		t.Errorf("calls that every unit makes equally often are headed %q", table.Columns[1].Title)
	}
	c.API[0].HeadCount = v(117. / 58)
	if title := apiTable(c, true).Columns[1].Title; title != "Mean calls" {
		t.Errorf("2.017 calls are headed %q", title)
	}
	if want := "cudaLaunchKernel 300.00 360.00 +60.0, cudaMemsetAsync 2.00 16.00 +14.0"; strings.Join(got, ", ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// 34 units of 35 is a level of 97.142857… %.
func TestIntervalTitle(t *testing.T) {
	for level, want := range map[float64]string{0.95: "95 % interval", 34.0 / 35: "97.1 % interval", 0.999: "99.9 % interval"} {
		if got := intervalTitle([]comparison.Row{{Interval: &comparison.Interval{Level: level}}}); got != want {
			t.Errorf("%v: %q, want %q", level, got, want)
		}
	}
}

func text(cell doc.Cell) string {
	var b strings.Builder
	for _, s := range cell {
		b.WriteString(s.Text)
	}
	return b.String()
}

// One name of a kernel in every table of the terminal: the kernels and the gates. One of 4 runs that take 400 µs
// takes 100 µs, and what one side does not run has no such time.
func TestKernelHasOneNameInEveryTable(t *testing.T) {
	text1 := func(s string) *string { return &s }
	num := func(v float64) *float64 { return &v }
	c := &comparison.Comparison{Kernels: []comparison.Kernel{
		{Base: num(400e3), Head: num(600e3), BaseCount: num(4), HeadCount: num(4),
			BaseName: text1("void Old<1, float>(P)"), HeadName: text1("void New<2>(P)"), BaseShort: text1("Old<1, float>"), HeadShort: text1("New<2>"),
			Class: comparison.Regressed, Delta: 200e3, PerCallEffect: 200e3},
		{Base: num(80e3), Head: num(120e3), BaseCount: num(2), HeadCount: num(3),
			BaseName: text1("void gemm<1>()"), HeadName: text1("void gemm<1>()"), BaseShort: text1("gemm<1>"), HeadShort: text1("gemm<1>"),
			Class: comparison.Regressed, Delta: 40e3, CountEffect: 40e3},
		{Base: nil, Head: num(90e3), BaseCount: num(0), HeadCount: num(3),
			BaseName: text1("void gemm<2>()"), HeadName: text1("void gemm<2>()"), BaseShort: text1("gemm<2>"), HeadShort: text1("gemm<2>"),
			Class: comparison.Regressed, CountEffect: 90e3, Delta: 90e3},
	}}
	for id, want := range map[string]string{
		"void New<2>(P)": "Old → New", "void Old<1, float>(P)": "Old → New",
		"void gemm<1>()": "gemm<1>", "of neither side": "of neither side",
	} {
		if got := text(display(c, id)); got != want {
			t.Errorf("%s is shown as %q, want %q", id, got, want)
		}
	}
	table := kernelTable(c, c.Kernels, 8, false)
	if got := table.Columns[6].Title; got != "One run (µs)" {
		t.Errorf("the column is %q", got)
	}
	for i, want := range [][3]string{{"Old → New", "4", "100.0 → 150.0"}, {"gemm<1>", "2 → 3", "40.0"}, {"gemm<2>", "0 → 3", "– → 30.0"}} {
		if cells := table.Rows[i]; text(cells[0]) != want[0] || text(cells[5]) != want[1] || text(cells[6]) != want[2] {
			t.Errorf("row %d: %q runs %q, one %q, want %q", i, text(cells[0]), text(cells[5]), text(cells[6]), want)
		}
	}
	g := comparison.Gate{Metric: "kernel.time_per_unit", Labels: report.Labels{"kernel": "void New<2>(P)"}}
	if got := text(gateMetric(c, &g)); got != "kernel.time_per_unit Old → New" {
		t.Errorf("the gate names %q", got)
	}
}

// What only the head has is added. A number that both sides have is more or less; in a study of a step slower or faster.
func TestClassOfWhatIsNeitherBetterNorWorse(t *testing.T) {
	num := func(v float64) *float64 { return &v }
	row := func(metric string, base *float64, head, delta float64, class comparison.Class) *comparison.Row {
		return &comparison.Row{Metric: metric, Base: base, Head: &head, Delta: &delta, Class: class}
	}
	judged, study := &comparison.Comparison{}, &comparison.Comparison{Study: &comparison.Study{}}
	for _, at := range []struct {
		c    *comparison.Comparison
		r    *comparison.Row
		want string
	}{
		{judged, row("serve.kv_cache_bytes", num(7e9), 86e9, 79e9, comparison.Added), "more"},
		{judged, row("serve.kv_cache_bytes", num(7e9), 6e9, -1e9, comparison.Removed), "less"},
		{judged, row("unit.new", nil, 1, 1, comparison.Added), "added"},
		{judged, row("serve.weight_bytes", num(102e9), 20e9, -82e9, comparison.Improved), "improved"},
		{study, row("serve.weight_bytes", num(102e9), 20e9, -82e9, comparison.Improved), "less"},
		{study, row("unit.time.p50", num(1e6), 2e6, 1e6, comparison.Regressed), "slower"},
		{study, row("serve.ttft.mean", num(1e6), 2e6, 1e6, comparison.Unsettled), "inconclusive"},
		{study, row("serve.ttft.mean", num(1e6), 1e6, 0, comparison.Same), "same"},
	} {
		if got := rowClass(at.c, at.r).Text; got != at.want {
			t.Errorf("%s (%s): %q, want %q", at.r.Metric, at.r.Class, got, at.want)
		}
	}
}

// Logs are settled by more runs, traces by more captures.
func TestWhatWouldSettleIt(t *testing.T) {
	need := int64(2)
	for depth, want := range map[comparison.Depth]string{comparison.DepthEvidence: "m: wide; 2 runs a side would settle it", comparison.DepthKernel: "m: wide; 2 captures a side would settle it"} {
		c := &comparison.Comparison{Depth: depth, Primary: []comparison.Row{{Metric: "m", Why: "wide", NeedCaptures: &need}}}
		if got := text(decisions(c).Items[0].Spans); got != want {
			t.Errorf("%s: %q", depth, got)
		}
	}
}

// Of four warnings three are about structure, and stand in its list.
func TestWarningsSayWhereTheyStand(t *testing.T) {
	warn := func(metric string) comparison.Gate { return comparison.Gate{Metric: metric, Verdict: comparison.Warn} }
	c := &comparison.Comparison{Comparable: true, Gates: []comparison.Gate{warn("structure"), warn("kernel.time_per_unit"), warn("structure"), warn("structure")}}
	c.Counts.GatesChecked = 4
	if got := gatesText(c); got != "4 gates checked: 4 warned (3 of them about structure)." {
		t.Error(got)
	}
}

// A study judges nothing: neither its calls nor its structure are better or worse.
func TestStudyNamesDirections(t *testing.T) {
	one, two := 1.0, 2.0
	for _, at := range []struct {
		study     *comparison.Study
		call, own string
	}{{nil, "inconclusive", "regressed: copies"}, {&comparison.Study{}, "more", "more: copies"}} {
		c := &comparison.Comparison{Study: at.study,
			API: []comparison.API{{Name: "f", BaseCount: &one, HeadCount: &one, BaseTime: &one, HeadTime: &two, Ratio: &two,
				Class: comparison.Unsettled}},
			Structure: []comparison.Structural{{Text: "copies", Base: &one, Head: &two, Class: comparison.Regressed}}}
		if got := text(apiTable(c, true).Rows[0][6]); got != at.call {
			t.Errorf("the call is %q, want %q", got, at.call)
		}
		if got := text(structureList(c).Items[0].Spans); got != at.own {
			t.Errorf("the structure says %q, want %q", got, at.own)
		}
	}
}

// Two tables of one page must not call different things unknown.
func TestUnrecordedHostTimeIsNotJustUnknown(t *testing.T) {
	c := &comparison.Comparison{}
	c.Attribution = comparison.Attribution{TotalDelta: 1e3, Head: 1e3, Rows: []comparison.AttributionRow{
		{ID: "idle", Kind: comparison.KindClass, Head: 1e3, Delta: 1e3}, {ID: "host", Kind: comparison.KindCause, Head: 1e3, Delta: 1e3},
		{ID: "api", Kind: comparison.KindHost, Head: 1, Delta: 1}, {ID: "unknown", Kind: comparison.KindHost, Head: 999, Delta: 999}}}
	if got := text(attributionTable(c).Rows[3][0]); got != "└─ host, not recorded" {
		t.Errorf("%q", got)
	}
}

// What cannot show a change is not just passed.
func TestGatesOfOneCaptureProveNothing(t *testing.T) {
	c := &comparison.Comparison{Comparable: true, Identical: true, Verdict: comparison.Inconclusive,
		Gates:   []comparison.Gate{{Verdict: comparison.Pass, CountsAs: comparison.Pass}},
		Reasons: []comparison.Reason{{Code: comparison.SameCapture, Text: "a copy"}}}
	c.Counts.GatesChecked = 1
	if got := gatesText(c); got != "1 gate checked: 1 passed, which proves nothing, since base and head are not two captures." {
		t.Error(got)
	}
}

// A budget that is kept is named with its value, also where there is no baseline.
func TestKeptBudgetIsNamed(t *testing.T) {
	v := 2.395e6
	gate := comparison.Gate{Metric: "unit.time.p50", Threshold: "<=2.5ms", Head: &v, Verdict: comparison.Pass, CountsAs: comparison.Pass}
	c := &comparison.Comparison{Verdict: comparison.Pass, Gates: []comparison.Gate{gate},
		Reasons: []comparison.Reason{{Code: comparison.NoBaseline}}, Policy: comparison.PolicyInfo{Rules: 1}}
	c.Counts.GatesChecked = 1
	if got := text(verdictLine(c)); got != "PASS unit.time.p50 2.395 ms, budget 2.5 ms (no baseline)" {
		t.Error(got)
	}
	c.Gates, c.Counts.GatesChecked = append(c.Gates, gate, gate), 3
	if got := text(verdictLine(c)); got != "PASS unit.time.p50 2.395 ms, budget 2.5 ms, and 2 budgets more (no baseline)" {
		t.Error(got)
	}
	c.Policy.Rules = 0
	if got := text(verdictLine(c)); got != "PASS unit.time.p50 2.395 ms, budget 2.5 ms, and 2 budgets more" {
		t.Error(got)
	}
}

// A warning under the headline of a faster step says which rule warns; one about structure stands in its list.
func TestWarningNamesItsRule(t *testing.T) {
	tail := comparison.Gate{Rule: "tail", Metric: "unit.time.p90", Reason: "+49.8 % (+79 ms) is more than +15%; by its interval",
		Verdict: comparison.Warn, CountsAs: comparison.Warn}
	other := comparison.Gate{Rule: "structure", Metric: comparison.MetricStructure, Verdict: comparison.Warn, CountsAs: comparison.Warn}
	c := &comparison.Comparison{Comparable: true, Verdict: comparison.Warn, Gates: []comparison.Gate{other, tail}}
	if got := text(warnedBy(c).Spans); got != "Warned by the rule tail: unit.time.p90 +49.8 % (+79 ms) is more than +15%." {
		t.Error(got)
	}
	c.Gates = c.Gates[:1]
	if got := text(warnedBy(c).Spans); got != "" {
		t.Error(got)
	}
}

// Only a page that draws the boxes says how to read them.
func TestBoxesAreExplainedWhereTheyAreDrawn(t *testing.T) {
	c := &comparison.Comparison{Comparable: true, Step: &comparison.Step{Base: 1, Head: 2,
		Tree: []comparison.StepBox{{Parent: -1, Base: 1, Head: 2}, {Base: 1, Head: 2}}}}
	d := stepBlocks(c)
	const how = "A box is as wide"
	if page := markdownText(d); strings.Contains(page, how) {
		t.Error(page)
	}
	var page strings.Builder
	if err := render.HTML(&page, d, ""); err != nil || !strings.Contains(page.String(), how) {
		t.Errorf("%v: the page does not say how to read its boxes", err)
	}
}

// An engine that is known on one side only is not shown as that of both.
func TestAnUnknownEngineIsNamed(t *testing.T) {
	for _, at := range []struct{ base, head, want string }{
		{"", "vLLM 0.15.0", "base: engine unknown → head: vLLM 0.15.0"}, {"vLLM 0.15.0", "", "base: vLLM 0.15.0 → head: engine unknown"},
		{"vLLM 0.9.1", "vLLM 0.15.0", "vLLM 0.9.1 → vLLM 0.15.0"}, {"vLLM 0.9.1", "vLLM 0.9.1", "vLLM 0.9.1"}, {"", "", ""},
	} {
		c := &comparison.Comparison{Base: comparison.Side{Captures: 1, Engine: at.base}, Head: comparison.Side{Captures: 1, Engine: at.head}}
		if got := strings.TrimPrefix(text(engines(c)), " · "); got != at.want || !strings.Contains(text(sides(c)), at.want) {
			t.Errorf("%q → %q: %q", at.base, at.head, got)
		}
	}
}

// The header names the engines, so the list of what else differs does not, and keeps its places for other fields.
func TestEnginesStandInTheHeaderAlone(t *testing.T) {
	c := &comparison.Comparison{Residue: []comparison.Residue{{Field: "engine", Head: "vLLM 0.15.0", Soft: true}, {Field: "os", Base: "a", Head: "b"}}}
	if got := text(residue(c, 1).Spans); got != "Also differs (no reason to refuse): os a → b." {
		t.Error(got)
	}
}

// Whatever gates there are, the counts of a sentence sum to the number that it begins with, and with those that had
// nothing to judge to all of them.
func TestCountsOfGatesSum(t *testing.T) {
	number := regexp.MustCompile(`\d+`)
	rapid.Check(t, func(t *rapid.T) {
		c := &comparison.Comparison{Comparable: rapid.Bool().Draw(t, "comparable"), Base: comparison.Side{Captures: 1}}
		for range rapid.IntRange(0, 30).Draw(t, "gates") {
			c.Gates = append(c.Gates, comparison.Gate{
				Verdict: rapid.SampledFrom([]comparison.Verdict{comparison.Pass, comparison.Warn, comparison.Fail, comparison.Inconclusive}).Draw(t, "verdict"),
				Code:    rapid.SampledFrom([]comparison.Code{"", comparison.WideInterval, comparison.MissingMetric, comparison.TooFewUnits}).Draw(t, "code")})
		}
		for i := range c.Gates {
			if c.Gates[i].Checked() {
				c.Counts.GatesChecked++
			}
		}
		counted, left, _ := strings.Cut(gatesText(c), ";")
		var n []int
		for _, s := range number.FindAllString(counted, -1) {
			v, _ := strconv.Atoi(s)
			n = append(n, v)
		}
		sum, rest := 0, 0
		for _, v := range n[1:] {
			sum += v
		}
		if s := number.FindString(left); s != "" {
			rest, _ = strconv.Atoi(s)
		}
		if sum != n[0] || sum+rest != len(c.Gates) {
			t.Errorf("%d gates: %s", len(c.Gates), gatesText(c))
		}
	})
}

// A copy that has the same numbers is equal in the first place; that this proves nothing comes after it.
func TestACopyIsEqualFirst(t *testing.T) {
	c := &comparison.Comparison{Comparable: true, Identical: true, Verdict: comparison.Inconclusive,
		Reasons: []comparison.Reason{{Code: comparison.SameCapture, Text: "head is a copy"}}, Base: comparison.Side{Captures: 1}}
	if got := text(verdictLine(c)); got != "EQUAL in every number: head is a copy (INCONCLUSIVE same_capture)" {
		t.Error(got)
	}
	if c.Identical = false; text(verdictLine(c)) != "INCONCLUSIVE same_capture: head is a copy" {
		t.Error(text(verdictLine(c)))
	}
}

// Without a base, the sentence says which metrics were judged, and what is missing is a warning only if it makes the
// verdict worse.
func TestBudgetsAloneSayWhatTheyJudged(t *testing.T) {
	c := &comparison.Comparison{Verdict: comparison.Pass, Reasons: []comparison.Reason{{Code: comparison.NoBaseline, Text: "none was named"}},
		Policy: comparison.PolicyInfo{Rules: 1}}
	for _, m := range []string{"unit.time.p50", "unit.time.p50", "gpu.idle_ratio", "a", "b", "c"} {
		c.Gates = append(c.Gates, comparison.Gate{Metric: m, Verdict: comparison.Pass, CountsAs: comparison.Pass})
	}
	c.Counts.GatesChecked = 6
	if got := checkedText(c); got != "6 gates checked: 6 passed. Judged on the head alone: unit.time.p50, gpu.idle_ratio, a, b and 1 more." {
		t.Error(got)
	}
	for verdict, want := range map[comparison.Verdict]doc.NoteKind{comparison.Pass: doc.Info, comparison.Warn: doc.Caution} {
		if c.Verdict = verdict; reasons(c)[0].(doc.Note).Kind != want {
			t.Errorf("%s: %v", verdict, reasons(c)[0])
		}
	}
	if got := text(verdictLine(c)); !strings.Contains(got, "no baseline") {
		t.Error(got)
	}
	c.Policy.Rules = 0 // what needs no baseline lacks none
	if list := reasons(c); len(list) > 0 || strings.Contains(text(verdictLine(c)), "baseline") {
		t.Errorf("%v: %s", list, text(verdictLine(c)))
	}
}
