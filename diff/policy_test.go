package diff_test

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff"
)

func policyFacts() []diff.MetricFacts {
	return []diff.MetricFacts{
		{ID: "unit.time", Unit: report.Nanoseconds, Labels: []string{"", "device"}},
		{ID: "unit.launches", Unit: report.Count, Labels: []string{""}},
		{ID: "kernel.time_per_unit", Unit: report.Nanoseconds, Labels: []string{"kernel", "category"}},
		{ID: "gpu.idle_ratio", Unit: report.Ratio, Labels: []string{"device"}},
	}
}

// The example of design.md, section 7, as far as this version judges it.
func TestPolicy(t *testing.T) {
	rules, err := diff.ReadPolicy(strings.NewReader(`
version: 1
unit: auto
ignore: {kernels: ["*memset*"]}
rules:                                   # the last match wins
  - {id: step,     metric: unit.time.p50,          level: error, regress: {rel: 3%, abs: 200us}}
  - {id: launches, metric: unit.launches,          level: error, regress: {abs: 1}}
  - {id: attn,     metric: kernel.time_per_unit,   match: {regex: '^(flash|fmha)'}, level: warn, regress: {rel: 5%, abs: 20us}}
budgets:
  - {id: idle, metric: gpu.idle_ratio, max: 15%, level: error}
`), policyFacts())
	if err != nil {
		t.Fatal(err)
	}
	if len(rules) != 5 {
		t.Fatalf("%d rules: %+v", len(rules), rules)
	}
	step, launches, attn, idle, off := rules[0], rules[1], rules[2], rules[3], rules[4]
	if step.ID != "step" || *step.Rel != 0.03 || *step.Abs != 200_000 || step.Level != diff.LevelError || step.Direction != "" {
		t.Errorf("step: %+v", step)
	}
	if launches.Rel != nil || *launches.Abs != 1 {
		t.Errorf("launches: %+v", launches)
	}
	if attn.Match.Regex != "^(flash|fmha)" || len(attn.Labels) != 0 || attn.Level != diff.LevelWarn {
		t.Errorf("attn: %+v", attn)
	}
	if *idle.Max != 0.15 || idle.Labels["device"] != "*" {
		t.Errorf("idle: %+v", idle)
	}
	if off.Level != diff.LevelOff || off.Match.Glob != "*memset*" {
		t.Errorf("ignore: %+v", off)
	}
}

func TestPolicyRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"version: 2\nrules: []": "has version 2",
		"version: 1":            "neither rules nor budgets",
		"version: 1\nruels: []": `[2:1] unknown field "ruels"`,
		"version: 1\nrules: [{metric: unit.time.p50, regress: {rel: 3parsecs}}]":                              "parsecs",
		"version: 1\nrules: [{id: a, metric: unit.tme.p50, regress: {rel: 3%}}]":                              "unit.tme",
		"version: 1\nrules: [{id: a, metric: unit.time.p50}]":                                                 "rule a: states no limit",
		"version: 1\nrules: [{id: a, metric: unit.time.p50, regress: {rel: 3%}, level: fatal}]":               "fatal",
		"version: 1\npreset: strict\nrules: [{id: a, metric: unit.time.p50, regress: {rel: 3%}}]":             "preset is not judged by this version",
		"version: 1\nwaivers: [{rule: a}]\nrules: [{id: a, metric: unit.time.p50, regress: {rel: 3%}}]":       "waivers is not judged by this version",
		"version: 1\nrules: [{id: a, metric: kernel.time_per_unit, match: {regex: '('}, regress: {rel: 3%}}]": "error parsing regexp",
	} {
		if _, err := diff.ReadPolicy(strings.NewReader(text), policyFacts()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\nerror %v, want %q", text, err, want)
		}
	}
}

func FuzzReadPolicy(f *testing.F) {
	f.Add([]byte("version: 1\nrules: [{metric: unit.time.p50, regress: {rel: 3%}}]"))
	f.Add([]byte("version: 1\nbudgets: [{metric: gpu.idle_ratio, max: 15%}]"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		rules, err := diff.ReadPolicy(strings.NewReader(string(text)), policyFacts())
		if err == nil && len(rules) == 0 {
			t.Fatal("no rules and no error")
		}
	})
}
