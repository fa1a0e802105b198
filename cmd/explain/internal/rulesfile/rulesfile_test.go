package rulesfile

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
	"github.com/nsys-llm/explain/diff/policy"
)

// wholePolicy is an example that uses everything a policy can hold; its text is a contract.
const wholePolicy = `version: 1
preset: llm-serving
unit: auto
stats: {alpha: 0.05, fdr: 0.05, min_captures: 1, on_inconclusive: warn, on_not_comparable: fail}
ignore: {kernels: ["*memset*"], min_share: 0.5%}
rules:                                   # the last match wins
  - {id: step,     metric: unit.time.p50,          level: error, regress: {rel: 3%, abs: 200us}}
  - {id: launches, metric: unit.launches,          level: error, regress: {abs: 1}}
  - {id: attn,     metric: kernel.time_per_unit,   match: {regex: '^(flash|fmha)'}, level: error, regress: {rel: 5%, abs: 20us}}
  - {id: kernels,  metric: kernel.time_per_unit,   match: {glob: "*"}, level: warn, regress: {rel: 10%, abs: 50us}}
budgets:
  - {id: idle, metric: gpu.idle_ratio, max: 15%, level: error}
waivers:
  - {rule: attn, match: {regex: fmha_v2}, ceiling: 12%, expires: 2026-12-31, issue: "#412", reason: "fp8 rollout"}
`

// TestSchemaAndReaderAgreeOnPolicies: what the reader takes the schema takes, and of what is wrong with the form of a file
// both say that it is.
func TestSchemaAndReaderAgreeOnPolicies(t *testing.T) {
	published := explaintest.Schema(t, "policy")
	const head = "version: 1\n"
	const rule = head + "rules: [{id: a, metric: unit.time, regress: {rel: 3%}}]\n"
	good := []string{
		wholePolicy, rule, head + "preset: strict", head + "preset: budgets-only\nunit: kernel:gemm",
		head + "budgets: [{metric: gpu.idle_ratio, max: 15%, min: 1%}, {metric: launch.errors, max: 0}, {metric: memcpy.throughput, labels: {direction: HtoD}, min: 10 GB/s}]",
		head + "rules: [{metric: structure, level: error}, {metric: kernel.time_per_unit, match: {glob: '*memset*'}, level: off}]",
		head + "rules: [{metric: 'unit.*', regress: {rel: 3%, abs: 0}, optional: true}, {metric: {regex: '^api[.]'}, level: warn, regress: {rel: 10%, direction: both}}]",
		head + "rules: [{metric: unit.launches, regress: {abs: 1}}, {metric: graph.coverage, regress: {abs: 5pp}}]",
		head + "budgets: [{id: creep, metric: unit.time.p50, since: v1.4.0, max: 5%}]",
		rule + "stats: {alpha: 0.01, fdr: 10%, min_captures: 3, on_inconclusive: inconclusive, on_missing: warn, on_missing_baseline: fail}",
		rule + "environment: {hard: [driver, cuda], soft: [model], residue: [os]}\nphase: decode\nbatch: 8",
		rule + "waivers: [{rule: a, expires: 2026-12-31, reason: x, issue: 412}]",
		`{"version": 1, "rules": [{"id": "a", "metric": "unit.time", "regress": {"rel": "3%", "abs": "1,000 us"}}]}`,
	}
	for _, name := range policy.PresetNames() {
		text, _ := policy.PresetText(name)
		good = append(good, text)
	}
	bad := []string{
		"rules: []", head, head + "rules: []", head + "preset: lax", head + "ruels: []", "version: 2\npreset: strict", head + "rules: {}",
		head + "rules: [{metric: unit.time}]", head + "rules: [{regress: {rel: 3%}}]", head + "rules: [{metric: unit.time, regress: {}}]",
		head + "rules: [{metric: unit.time, regress: {rel: 3}}]", head + "rules: [{metric: unit.time, regress: {rel: 3us}}]", head + "rules: [{metric: unit.time, regress: {abs: 3%}}]",
		head + "rules: [{metric: unit.time, regress: {rel: -3%}}]", head + "rules: [{metric: unit.time, regress: {rel: 3%, direction: sideways}}]",
		head + "rules: [{metric: unit.time, level: off, regress: {rel: 3%}}]", head + "rules: [{metric: structure, regress: {rel: 3%}}]",
		head + "rules: [{metric: unit.time, regress: {rel: 3%}, level: fatal}]", head + "rules: [{metric: unit.time, regress: {rel: 3%}, match: {}}]",
		head + "rules: [{metric: unit.time, regress: {rel: 3%}, id: '::x'}]", head + "rules: [{metric: unit.time, regress: {rel: 3%}, optional: maybe}]",
		head + "budgets: [{metric: gpu.idle_ratio}]", head + "budgets: [{metric: gpu.idle_ratio, max: -1%}]", head + "budgets: [{metric: gpu.idle_ratio, max: 15%, level: off}]",
		head + "budgets: [{metric: unit.time.p50, since: v1, max: 5ms}]", head + "budgets: [{metric: unit.time.p50, since: v1, max: 5%, min: 1%}]",
		head + "budgets: [{metric: unit.time.p50, since: v1, min: 1%}]", head + "budgets: [{metric: unit.time.p50, since: '--x', max: 5%}]",
		rule + "unit: sometimes", rule + "batch: 0", rule + "phase: ''", rule + "stats: {alpha: 5}", rule + "stats: {alpha: 0}", rule + "stats: {min_captures: 0}",
		rule + "stats: {on_missing: pass}", rule + "stats: {on_inconclusive: no}", rule + "ignore: {min_share: 0.5}", rule + "ignore: {kernels: '*'}",
		rule + "environment: {hard: [weather]}", rule + "waivers: [{rule: a}]", rule + "waivers: [{rule: a, expires: 2026-12-31}]",
		rule + "waivers: [{rule: a, expires: soon, reason: x}]", rule + "waivers: [{rule: a, expires: 2026-12-31, reason: ' '}]", rule + "waivers: [{rule: a, expires: 2026-12-31, reason: x, until: y}]",
	}
	for want, texts := range map[bool][]string{true: good, false: bad} {
		for _, text := range texts {
			_, err := policy.Read(strings.NewReader(text), analyze.Metrics())
			if (err == nil) != want {
				t.Errorf("reader: %v, want valid %t:\n%s", err, want, text)
			}
			if err := published.Validate(asJSON(t, text)); (err == nil) != want {
				t.Errorf("schema: %v, want valid %t:\n%s", err, want, text)
			}
		}
	}
}

// asJSON is a YAML text as a validator sees it.
func asJSON(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPresetsKnowTheMetrics: with the metrics of this explain, llm-serving is what is judged without a policy.
func TestPresetsKnowTheMetrics(t *testing.T) {
	for _, name := range policy.PresetNames() {
		if _, err := PolicyText(name, []byte("version: 1\npreset: "+name), nil); err != nil {
			t.Error(err)
		}
	}
}

// TestPresetsNameMetricsThatExist: a preset is held to the metrics of this version, and a rule that it makes can be judged.
func TestPresetsNameMetricsThatExist(t *testing.T) {
	for _, name := range policy.PresetNames() {
		text, _ := policy.PresetText(name)
		if _, err := policy.Read(strings.NewReader(text), analyze.Metrics()); err != nil {
			t.Errorf("preset %s: %v", name, err)
		}
	}
}
