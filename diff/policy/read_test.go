package policy_test

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/difftest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/policy"
)

// TestTheExampleOfTheDesign: every key of it is read, behind the rules of its preset.
func TestTheExampleOfTheDesign(t *testing.T) {
	p := difftest.Policy(t, difftest.Example)
	kernel := report.Labels{"kernel": "*"}
	want := &policy.Policy{
		Preset: "llm-serving",
		Stats: policy.Stats{Alpha: 0.05, FDR: 0.05, MinCaptures: 1, OnInconclusive: comparison.Warn, OnNotComparable: comparison.Fail,
			OnMissing: comparison.Inconclusive},
		IgnoreKernels: []string{"*memset*"}, MinShare: 0.005,
		Rules: append(policy.DefaultRules(),
			policy.Rule{ID: "step", Metric: "unit.time.p50", Labels: report.Labels{}, Level: "error", Rel: difftest.Num(0.03), Abs: difftest.Num(200e3), AbsUnit: "ns", Direction: policy.Up},
			policy.Rule{ID: "launches", Metric: "unit.launches", Labels: report.Labels{}, Level: "error", Abs: difftest.Num(1), AbsUnit: "count", Direction: policy.Up},
			policy.Rule{ID: "attn", Metric: "kernel.time_per_unit", Labels: kernel, Match: policy.Match{Regex: "^(flash|fmha)"}, Level: "error", Rel: difftest.Num(0.05), Abs: difftest.Num(20e3), AbsUnit: "ns", Direction: policy.Up},
			policy.Rule{ID: "kernels", Metric: "kernel.time_per_unit", Labels: kernel, Match: policy.Match{Glob: "*"}, Level: "warn", Rel: difftest.Num(0.10), Abs: difftest.Num(50e3), AbsUnit: "ns", Direction: policy.Up},
			policy.Rule{ID: "idle", Metric: "gpu.idle_ratio", Labels: report.Labels{"device": "*"}, Level: "error", Max: difftest.Num(0.15), LimitUnit: "ratio"},
		),
		Waivers: []policy.Waiver{{
			Rules: []string{"attn"}, Match: policy.Match{Regex: "fmha_v2"}, Ceiling: &policy.Ceiling{Value: 0.12, Unit: "ratio", Relative: true, Text: "12%"},
			Expires: difftest.Day("2026-12-31"), Issue: "#412", Reason: "fp8 rollout",
		}},
	}
	if d := cmp.Diff(want, p, cmpopts.IgnoreUnexported(policy.Rule{}, policy.Policy{})); d != "" {
		t.Error(d)
	}
}

// TestPresetsReadBack: what a preset prints is a policy file that stands for the same, and llm-serving is the default.
func TestPresetsReadBack(t *testing.T) {
	for _, name := range policy.PresetNames() {
		text, ok := policy.PresetText(name)
		if !ok {
			t.Fatalf("preset %s has no text", name)
		}
		printed, err := policy.Read(strings.NewReader(text), nil) // whose metrics are for cmd/explain to know
		if err != nil {
			t.Fatalf("preset %s: %v", name, err)
		}
		named, err := policy.Read(strings.NewReader("version: 1\npreset: "+name), nil)
		if err != nil {
			t.Fatalf("preset %s: %v", name, err)
		}
		named.Preset = ""
		if d := cmp.Diff(named, printed, cmp.AllowUnexported(policy.Rule{}), cmpopts.IgnoreUnexported(policy.Policy{})); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	if _, ok := policy.PresetText("../policy"); ok {
		t.Error("a preset that does not exist has a text")
	}
	text, _ := policy.PresetText("llm-serving")
	opt := []cmp.Option{cmp.AllowUnexported(policy.Rule{}), cmpopts.IgnoreFields(policy.Rule{}, "scale"), cmpopts.IgnoreUnexported(policy.Policy{})}
	if d := cmp.Diff(policy.Default(), difftest.Policy(t, text), opt...); d != "" {
		t.Errorf("llm-serving is not what is judged without a policy, once it is held to the metrics that exist: %s", d)
	}
	if p := difftest.Policy(t, "version: 1\npreset: budgets-only"); p.Changes() != 0 || p.Budgets() == 0 {
		t.Errorf("budgets-only has %d rules on changes and %d budgets", p.Changes(), p.Budgets())
	}
}

// TestAFileGoesOnFromItsPreset: single values of stats and the environment replace those of the preset, rules come after
// its rules.
func TestAFileGoesOnFromItsPreset(t *testing.T) {
	p := difftest.Policy(t, `
version: 1
preset: strict
unit: nvtx:^step$
phase: decode
batch: 8
stats: {alpha: 1%, on_inconclusive: inconclusive}
environment: {hard: [driver, cuda], soft: [model], residue: [os]}
rules: [{metric: unit.time, regress: {rel: 1%, direction: both}}]
`)
	strict := difftest.Policy(t, "version: 1\npreset: strict")
	if p.Unit != "nvtx:^step$" || p.Phase != "decode" || *p.Batch != 8 || p.Stats.Alpha != 0.01 || p.Stats.FDR != 0.05 ||
		p.Stats.OnInconclusive != comparison.Inconclusive || p.Stats.OnNotComparable != comparison.Fail {
		t.Errorf("%+v", p)
	}
	if d := cmp.Diff(policy.Environment{Hard: []string{"driver", "cuda"}, Soft: []string{"model"}, Residue: []string{"os"}}, p.Environment); d != "" {
		t.Error(d)
	}
	if n := len(strict.Rules); len(p.Rules) != n+1 || p.Rules[n].Direction != policy.Both || p.Rules[0].ID != strict.Rules[0].ID {
		t.Errorf("%+v", p.Rules)
	}
}

// TestMetricsByPattern: a glob or an expression means every metric that the rule can judge, or its statistics.
func TestMetricsByPattern(t *testing.T) {
	head := difftest.Side(difftest.Metric("unit.time", report.Nanoseconds, 12e6), difftest.Metric("unit.launches", report.Count, 7), difftest.Metric("kernel.total_time", report.Nanoseconds, 1e9))
	base := difftest.Side(difftest.Metric("unit.time", report.Nanoseconds, 10e6), difftest.Metric("unit.launches", report.Count, 5), difftest.Metric("kernel.total_time", report.Nanoseconds, 1e8))
	for _, c := range []struct{ rule, want string }{
		{`rules: [{id: a, metric: "unit.*", regress: {rel: 3%}}]`, "unit.time unit.launches"},
		{`rules: [{id: a, metric: {regex: '^unit\.(time|launches)$'}, regress: {rel: 3%}}]`, "unit.time unit.launches"},
		{`rules: [{id: a, metric: {glob: "*", regex: launch}, regress: {rel: 3%}}]`, "unit.launches"},
		{`rules: [{id: a, metric: "unit.*", regress: {abs: 1ms}}]`, "unit.time"},                                                    // the only one in ns
		{`rules: [{id: a, metric: "*", regress: {rel: 3%}}]`, "unit.time unit.launches"},                                            // totals are left out
		{`rules: [{id: a, metric: "unit.*", regress: {rel: 3%}}, {id: b, metric: "*.launches", level: off}]`, "unit.time"},          // the last that selects
		{`budgets: [{id: a, metric: "kernel.*", max: 5s}]`, "kernel.total_time"},                                                    // budgets may be on totals
		{`rules: [{id: a, metric: "unit.*.p50", regress: {rel: 3%}}, {id: b, metric: unit.time, level: off}]`, "unit.launches.p50"}, // a median is the value
	} {
		cmp, err := diff.Compare(base, head, diff.Options{Policy: difftest.Policy(t, "version: 1\n"+c.rule)})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, g := range cmp.Gates {
			text := g.Metric
			if strings.HasPrefix(g.Reason, "nothing_matched") {
				text += " (nothing_matched)"
			}
			got = append(got, text)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s judges %q, want %s", c.rule, got, c.want)
		}
	}
}

func TestPolicyRefuses(t *testing.T) {
	const rule = "version: 1\nrules:\n  - {id: a, metric: unit.time.p50, regress: {rel: 3%}}\n"
	for text, want := range map[string]string{
		"":                      "policy is empty; write `version: 1` first",
		"# nothing":             "policy is empty",
		"version: 2\nrules: []": `line 1, column 10: policy has version "2"`,
		"rules: []":             "policy has no version",
		"version: 1":            "neither rules nor budgets; add some, or name a preset: " + strings.Join(policy.PresetNames(), ", "),
		"- a":                   "a policy is expected to be a mapping",
		"version: 1\nruels: []": `line 2, column 1: unknown key "ruels"; did you mean "rules"?`,
		"version: 1\nzzzzzzzzz": "line 2",
		"version: 1\nrules: [{metrik: unit.time, regress: {rel: 3%}}]":                                                           `line 2, column 10: unknown key "metrik"; did you mean "metric"?`,
		"version: 1\nrules: [{metric: unit.time, regress: {rel: 3%, rel: 4%}}]":                                                  "line 2",
		"version: 1\nversion: 1\nrules: []":                                                                                      "line 2, column 1",
		"version: 1\nrules: [{metric: unit.time.p50, regress: {rel: 3parsecs}}]":                                                 `line 2, column 48: rel: "3parsecs": unknown unit "parsecs"`,
		"version: 1\nrules: [{metric: unit.time.p50, regress: {rel: 3}}]":                                                        "line 2, column 48: rel must be a percentage, e.g. 3%, and is 3",
		"version: 1\nrules: [{metric: unit.time.p50, regress: {rel: 3pp}}]":                                                      "rel must be a percentage, e.g. 3%, and is 3pp",
		"version: 1\nrules: [{metric: unit.time.p50, regress: {abs: 3%}}]":                                                       "percent is relative; percentage points of a share are written 5pp",
		"version: 1\nrules: [{metric: unit.time.p50, regress: {abs: 200}}]":                                                      "the change is given in count; a number needs its unit: 200us",
		"version: 1\nrules: [{metric: unit.time.p50, regress: {abs: 2MB}}]":                                                      "unit.time is in ns, and the change is given in bytes",
		"version: 1\nrules: [{metric: unit.time.p50, regress: {rel: -3%}}]":                                                      "rel -3%: write it without a sign",
		"version: 1\nrules: [{metric: unit.time.p50, regress: {}}]":                                                              "regress states no limit",
		"version: 1\nrules: [{metric: unit.time.p50, regress: {rel: 3%, direction: upp}}]":                                       `direction "upp" is not one of up, down, both; did you mean "up"?`,
		"version: 1\nrules: [{id: a, metric: unit.tme.p50, regress: {rel: 3%}}]":                                                 "line 2, column 25: no metric unit.tme; did you mean unit.time?",
		"version: 1\nrules: [{id: a, metric: unit.time.p50}]":                                                                    "a rule states no limit",
		"version: 1\nrules: [{id: a, regress: {rel: 3%}}]":                                                                       "names no metric",
		"version: 1\nrules: [{id: a, metric: kernel.total_time, regress: {rel: 3%}}]":                                            "grows with the length of the capture",
		"version: 1\nrules: [{id: a, metric: 'none*', regress: {rel: 3%}}]":                                                      "no metric is like none*",
		"version: 1\nrules: [{id: a, metric: 'kernel.total*', regress: {rel: 3%}}]":                                              "no metric like kernel.total* can be judged this way: kernel.total_time grows",
		"version: 1\nrules: [{id: a, metric: unit.time, match: {glob: x}, regress: {rel: 3%}}]":                                  "match looks at one of the labels kernel, range",
		"version: 1\nrules: [{id: a, metric: unit.time, labels: {devise: 0}, regress: {rel: 3%}}]":                               "line 2, column 44: unit.time comes with the labels",
		"version: 1\nrules: [{id: a, metric: unit.time.p50, regress: {rel: 3%}, level: fatal}]":                                  `level "fatal" is not one of error, warn, off`,
		"version: 1\nrules: [{id: a, metric: unit.time.p50, regress: {rel: 3%}, level: eror}]":                                   `did you mean "error"?`,
		"version: 1\nrules: [{id: a, metric: unit.time.p50, regress: {rel: 3%}, level: off}]":                                    "level off takes no threshold",
		"version: 1\nrules: [{id: a, metric: structure, level: error, regress: {rel: 3%}}]":                                      "structural findings have no size",
		"version: 1\nrules: [{id: '::error', metric: unit.time, regress: {rel: 3%}}]":                                            `id "::error": letters, digits`,
		"version: 1\nrules: [{id: a, metric: unit.time, regress: {rel: 3%}}, {id: a, metric: unit.launches, regress: {abs: 1}}]": `two rules have the id "a"`,
		"version: 1\nrules: [{id: a, metric: kernel.time_per_unit, match: {regex: '('}, regress: {rel: 3%}}]":                    "error parsing regexp",
		"version: 1\nrules: [{id: a, metric: kernel.time_per_unit, match: {glob: ''}, regress: {rel: 3%}}]":                      "an empty glob",
		"version: 1\nrules: [{id: a, metric: kernel.time_per_unit, match: {}, regress: {rel: 3%}}]":                              "neither glob nor regex",
		"version: 1\nbudgets: [{id: a, metric: gpu.idle_ratio}]":                                                                 "a budget states no bound",
		"version: 1\nbudgets: [{id: a, metric: gpu.idle_ratio, max: 15}]":                                                        "the budget is given in count; a number needs its unit",
		"version: 1\nbudgets: [{id: a, metric: gpu.idle_ratio, max: 15%, min: 3}]":                                               "min and max are in different units",
		"version: 1\nbudgets: [{id: a, metric: gpu.idle_ratio, max: 15%, min: 20%}]":                                             "its lower bound is above its upper one",
		"version: 1\nbudgets: [{id: a, metric: gpu.idle_ratio, max: 15%, level: off}]":                                           `level "off" is not one of error, warn`,
		"version: 1\npreset: llm-servin":                                                                                         `did you mean "llm-serving"?`,
		"version: 1\npreset: x\nunit: graph":                                                                                     `preset "x" is not one of ` + strings.Join(policy.PresetNames(), ", "),
		rule + "unit: sometimes":                                                                                                 `unit "sometimes" is not one of auto, nvtx:REGEX, kernel:REGEX, graph, none`,
		rule + "unit: 'nvtx:('":                                                                                                  "error parsing regexp",
		rule + "batch: none":                                                                                                     `batch "none": expected a whole number`,
		rule + "phase: ''":                                                                                                       "phase is empty",
		rule + "stats: {alpha: 5}":                                                                                               `alpha "5": expected a probability above 0 and below 0.5`,
		rule + "stats: {alpha: 5us}":                                                                                             "expected a probability",
		rule + "stats: {fdr: 0}":                                                                                                 "expected a probability",
		rule + "stats: {min_captures: 0}":                                                                                        "expected a whole number from 1 to 100",
		rule + "stats: {floor: 20%}":                                                                                             "line 4, column 16: floor 0.2: expected a share such as 3%, of 15% at most",
		rule + "stats: {max_overhead: 10}":                                                                                       "is not a share above 0%; write one such as 10%",
		rule + "stats: {on_missing: pass}":                                                                                       `on_missing "pass" is not one of warn, fail, inconclusive`,
		rule + "stats: {on_inconclusive: ignore}":                                                                                "is not one of pass, warn, fail, inconclusive",
		"version: 1\nrules: [{metric: unit.time.p50, match: {phase: decode}, regress: {rel: 3%}}]":                               `unknown key "phase"; match has glob, regex; for a label write labels: {phase: …} beside metric`,
		rule + "stats: {beta: 1}":                                                                                                `unknown key "beta"`,
		rule + "ignore: {min_share: 0.5}":                                                                                        "min_share 0.5 has no unit; write a share such as 0.5%",
		rule + "ignore: {min_share: 100%}":                                                                                       "below 100%",
		rule + "ignore: {kernels: '*'}":                                                                                          "ignore.kernels is expected to be a list",
		rule + "environment: {hard: [drivers]}":                                                                                  `field "drivers" is not one of`,
		rule + "environment: {hard: [driver], soft: [driver]}":                                                                   "field driver is in hard already",
		rule + "waivers: [{rule: a}]":                                                                                            "a waiver needs a date on which it ends",
		rule + "waivers: [{rule: a, expires: 2026-12-31}]":                                                                       "a waiver needs a reason",
		rule + "waivers: [{expires: 2026-12-31, reason: x}]":                                                                     "a waiver needs the id of a rule",
		rule + "waivers: [{rule: a, expires: 31.12.2026, reason: x}]":                                                            "is not a date; write it as 2026-12-31",
		rule + "waivers: [{rule: a, expires: 2026-02-30, reason: x}]":                                                            "is not a date",
		rule + "waivers: [{rule: a, expires: 2026-12-31, reason: ' '}]":                                                          "the reason is empty",
		rule + "waivers: [{rule: a, expires: 2026-12-31, reason: \"a\\nb\"}]":                                                    "holds a line break",
		rule + "waivers: [{rule: b, expires: 2026-12-31, reason: x}]":                                                            `line 4, column 18: no rule or budget has the id "b"; did you mean "a"?`,
		rule + "waivers: [{rule: mean, expires: 2026-12-31, reason: x}]":                                                         `no rule or budget has the id "mean"; the preset has it: add the line "preset: llm-serving"`,
		rule + "waivers: [{rule: a, expires: 2026-12-31, reason: x, ceiling: 12}]":                                               "rule a judges ns, and the ceiling 12 is in count",
		rule + "waivers: [{rule: a, expires: 2026-12-31, reason: x, until: never}]":                                              `unknown key "until"`,
		"version: 1\nrules: &r [{id: a, metric: unit.time, regress: {rel: 3%}}]":                                                 "rules is expected to be a list",
		"version: 1\nrules: [{id: &x a, metric: unit.time, regress: {rel: 3%}}]":                                                 "anchors, aliases and tags are not read",
		"version: 1\nrules: [{id: , metric: unit.time, regress: {rel: 3%}}]":                                                     "id has no value",
		"version: 1\nrules: [{id: [a], metric: unit.time, regress: {rel: 3%}}]":                                                  "id is expected to be one value",
		"version: 1\n---\nversion: 1":                                                                                            "a second document",
		"a: &a [*a]":                                                                                                             "unknown key",
		strings.Repeat("[", 100):                                                                                                 "line 1: nested more than 32 deep",
		strings.Repeat("- ", 100):                                                                                                "nested more than 32 deep",
		"version: 1\nrules: [{id: a, metric: unit.time, regress: {rel: '" + strings.Repeat("9", 3000) + "%'}}]":                  "has 3001 bytes, at most 2000 are read",
		strings.Repeat("#", 200<<10):                                                                                             "policy is larger than 128 kB",
		"version: 1\nrules:\n" + strings.Repeat("- a\n", 1001):                                                                   "rules has 1001 entries, at most 1000 are read",
	} {
		if _, err := policy.Read(strings.NewReader(text), difftest.Facts()); err == nil || !strings.Contains(err.Error(), want) {
			if len(text) > 300 {
				text = text[:300]
			}
			t.Errorf("%s:\nerror %v\nwant  %q", text, err, want)
		}
	}
}

func FuzzReadPolicy(f *testing.F) {
	f.Add([]byte(difftest.Example))
	f.Add([]byte("version: 1\nrules: [{metric: unit.time.p50, regress: {rel: 3%}}]"))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("version: 1\nbudgets: [{id: a, metric: {glob: unit.*, regex: a}, max: 5%, since: v1, when: {gpu: x}}]\nrules: [{metric: kernel.time_per_unit, match: {regex: a}, warn: {abs: 2us}, fail: {rel: 3%}}, {metric: unit.*, improve: {rel: 1%}}, {metric: unit.time, regress: {abs: 1us, direction: both}, level: warn}]\nwaivers: [{rule: [a], ceiling: 3%, expires: 2026-12-31, reason: b}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := policy.Read(strings.NewReader(string(text)), difftest.Facts())
		if err != nil {
			return
		}
		if len(p.Rules) == 0 {
			t.Fatal("no rules and no error")
		}
		for i := range p.Rules {
			wellRead(t, &p.Rules[i])
		}
		if _, err := diff.Compare(difftest.Side(), difftest.Side(), diff.Options{Policy: p, Today: difftest.Day("2026-01-01")}); err != nil {
			t.Fatal(err)
		}
	})
}
