package noise_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/difftest"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/noise"
)

// noiseOf is a noise block of these metrics, over three captures.
func noiseOf(metrics []noise.Metric, unsteady ...noise.Unsteady) *noise.Noise {
	return &noise.Noise{Captures: 3, Metrics: metrics, Unsteady: unsteady}
}

// TestProposals by hand: a median of 100, 103 and 108 µs has a spread of 8 %, and a MAD of ln of 0.0296, of which 3·1.4826
// are 14.1 %; rounded up to half a percent that is 14.5 %. One of 100, 100.1 and 100.2 µs is quiet: the preset's 3 % stand.
// Launches that range over 4 tolerate 4. A device that is idle for 60 % at most, with a spread of 3.4 %, may be for 63 %.
func TestProposals(t *testing.T) {
	labels := report.Labels{}
	p50 := noise.Metric{Metric: "unit.time", Labels: labels, Unit: "ns", Scale: "per_unit", Values: []float64{100e3, 103e3, 108e3}, Noise: 0.0386, MAD: 0.02956, Floor: 0.4}
	quiet := p50
	quiet.Values, quiet.MAD, quiet.Noise, quiet.Floor = []float64{100e3, 100.1e3, 100.2e3}, 0.001, 0.001, 0.0098
	idle := noise.Metric{Metric: "gpu.idle_ratio", Labels: report.Labels{"device": "0"}, Unit: "ratio", Values: []float64{0.58, 0.59, 0.60}, MAD: 0.001, Noise: 0.017}
	kernels := []noise.Metric{
		{Metric: "kernel.time_per_unit", Labels: report.Labels{"kernel": "loud"}, Unit: "ns", Values: []float64{10e3, 11e3, 12e3}, MAD: 0.01},
		{Metric: "kernel.time_per_unit", Labels: report.Labels{"kernel": "quiet"}, Unit: "ns", Values: []float64{10e3, 10.1e3, 10.2e3}, MAD: 0.001},
	}
	mean := func(ns float64) noise.Metric {
		return noise.Metric{Metric: "unit.time.mean", Labels: labels, Unit: "ns", Scale: "per_unit", Values: []float64{ns, ns, ns}}
	}
	for _, c := range []struct {
		noise  *noise.Noise
		preset string
		want   []string
		not    string
	}{
		{noiseOf([]noise.Metric{p50}), "llm-serving", []string{
			"  # measured: 100 µs to 108 µs; standard deviation 3.9 %, spread 8.0 %; two single captures differ by less than 40.0 % in 99 of 100\n" +
				"  - {id: step, metric: unit.time.p50, level: error, regress: {rel: 14.5%, abs: 10µs}}"}, "launches"},
		{noiseOf([]noise.Metric{p50}), "llm-serving", nil, "stats"}, // a floor of 40 % would hide everything
		{noiseOf([]noise.Metric{quiet}), "llm-serving", []string{"stats: {floor: 1%}"}, ""},
		{noiseOf([]noise.Metric{quiet}), "llm-serving", []string{"{id: step, metric: unit.time.p50, level: error, regress: {rel: 3%, abs: 10µs}}"}, ""},
		{noiseOf([]noise.Metric{quiet}), "strict", []string{"{id: step, metric: unit.time.p50, level: error, regress: {rel: 2%, abs: 5µs}}"}, ""},
		{noiseOf([]noise.Metric{p50}, noise.Unsteady{Metric: "unit.launches", Labels: labels, Min: 7, Max: 11}), "llm-serving", []string{
			"# measured: 7 to 11, where counts should repeat\n  - {id: launches, metric: unit.launches, level: error, regress: {abs: 4}}"}, ""},
		{noiseOf(append([]noise.Metric{idle}, kernels...)), "llm-serving", []string{
			`{id: kernel 1, metric: kernel.time_per_unit, labels: {kernel: "loud"}, level: warn, regress: {rel: 20%, abs: 5µs}}`, "{id: idle, metric: gpu.idle_ratio, max: 63%, level: warn}"}, "quiet"},
		{noiseOf(append(slices.Clone(kernels), mean(2e6))), "llm-serving", []string{`{kernel: "loud"}`}, "quiet"},
		{noiseOf(append(slices.Clone(kernels), mean(2.1e6))), "llm-serving", nil, "loud"}, // 10 µs are less than 0.5 % of it
		{noiseOf([]noise.Metric{idle, p50}), "budgets-only", []string{"max: 63%"}, "unit.time"},
	} {
		text, err := noise.Propose(c.noise, c.preset, difftest.Facts(), 0.005)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", c.preset, want, text)
			}
		}
		if c.not != "" && strings.Contains(text, c.not) {
			t.Errorf("%s has %q:\n%s", c.preset, c.not, text)
		}
		difftest.Policy(t, text)
	}
	if _, err := noise.Propose(noiseOf(nil), "lax", difftest.Facts(), 0.005); err == nil {
		t.Error("a preset that there is not")
	}
}

// TestProposalsOfHostileNames: whatever a kernel is called, the proposal is a policy that selects it, and one line.
func TestProposalsOfHostileNames(t *testing.T) {
	for _, name := range append(tracetest.HostileNames(), strings.Repeat("long", 1000), "\u202e\U000e0001\x00\v\u2028", "a\"b\\c'd: {x}") {
		if name == "" {
			continue // no kernel of its own
		}
		n := noiseOf([]noise.Metric{{Metric: "kernel.time_per_unit", Labels: report.Labels{"kernel": name}, Unit: "ns", Values: []float64{10e3, 11e3, 12e3}, MAD: 0.01}})
		text, err := noise.Propose(n, "llm-serving", difftest.Facts(), 0.005)
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(text, "\n"); lines != 8 {
			t.Errorf("%q: %d lines:\n%s", name, lines, text)
		}
		p := difftest.Policy(t, text)
		cmp := difftest.Compared(10e6, comparison.Same)
		shown := strings.ToValidUTF8(name, "?")
		cmp.Kernels = []comparison.Kernel{difftest.Kernel(shown, shown, 100e3, 150e3, comparison.Regressed)}
		difftest.JudgeBy(cmp, difftest.Side(), difftest.Side(), p, difftest.Day("2026-06-01"))
		found := false
		for _, g := range cmp.Gates {
			found = found || g.Rule == "kernel 1" && g.Labels["kernel"] == shown
		}
		if !found {
			t.Errorf("%q is not selected by its rule:\n%s", name, text)
		}
	}
}

// TestExplain: which of several rules judges, by hand.
func TestExplain(t *testing.T) {
	p := difftest.Policy(t, `
version: 1
preset: llm-serving
ignore: {kernels: ["*memset*"]}
rules:
  - {id: all, metric: kernel.time_per_unit, match: {glob: "*"}, level: warn, regress: {rel: 10%}}
  - {id: attn, metric: kernel.time_per_unit, match: {regex: "^flash"}, regress: {rel: 5%}}
  - {id: quiet, metric: "unit.*", level: off}
budgets:
  - {id: slow, metric: unit.time.p50, max: 10ms}
waivers:
  - {rule: attn, match: {glob: "flash_v2*"}, expires: 2026-12-31, reason: why}
`)
	for _, c := range []struct{ asked, metric, judges, not string }{
		{"flash_v3", "kernel.time_per_unit{kernel=flash_v3}", "attn", "kernels all"},
		{"flash_v2", "kernel.time_per_unit{kernel=flash_v2}", "attn waived", "kernels all"},
		{"gemm", "kernel.time_per_unit{kernel=gemm}", "all", "kernels"},
		{"void f<int, 4>(float*)", "kernel.time_per_unit{kernel=void f<int, 4>(float*)}", "all", "kernels"},
		{"memset_x", "kernel.time_per_unit{kernel=memset_x}", "all ignored", "kernels"},
		{"unit.time.p50", "unit.time.p50", "slow quiet", "step"}, // a budget beside a change that nobody judges
		{"unit.time", "unit.time", "slow quiet", "step"},
		{"unit.launches", "unit.launches", "quiet", "launches"},
		{"gpu.idle_ratio{device=0}", "gpu.idle_ratio{device=0}", "", ""},
		{"structure", "structure", "structure", ""},
	} {
		metric, list, ignored, err := p.Explain(c.asked, difftest.Facts())
		if err != nil {
			t.Fatal(err)
		}
		judges, not := map[string]bool{}, map[string]bool{}
		for _, e := range list {
			if e.By == "" {
				judges[e.Rule.Name()] = true
			} else {
				not[e.Rule.Name()] = true
			}
			if len(e.Waivers) > 0 {
				judges["waived"] = true
			}
		}
		if ignored {
			judges["ignored"] = true
		}
		for set, want := range map[*map[string]bool]string{&judges: c.judges, &not: c.not} {
			words := strings.Fields(want)
			for _, w := range words {
				if !(*set)[w] {
					t.Errorf("%s: %v lacks %s", c.asked, *set, w)
				}
			}
			if len(*set) != len(words) {
				t.Errorf("%s: %v, want %s", c.asked, *set, want)
			}
		}
		if metric != c.metric {
			t.Errorf("%s is understood as %s", c.asked, metric)
		}
	}
	for asked, want := range map[string]string{"unit.tme": "did you mean unit.time?", "unit.time{devise=0}": "comes with the labels"} {
		if _, _, _, err := p.Explain(asked, difftest.Facts()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", asked, err)
		}
	}
}
