package policy_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/difftest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/policy"
	"pgregory.net/rapid"
)

func TestRulesAreReadAsTheyAreWritten(t *testing.T) {
	for _, c := range []struct {
		text string
		want policy.Rule
	}{
		{"unit.time.p50:+3%", policy.Rule{Metric: "unit.time.p50", Rel: difftest.Num(0.03), Direction: policy.Up}},
		{"unit.time.p50:+3%,+200us", policy.Rule{Metric: "unit.time.p50", Rel: difftest.Num(0.03), Abs: difftest.Num(200e3), AbsUnit: report.Nanoseconds, Direction: policy.Up}},
		{"unit.time:+5.5%", policy.Rule{Metric: "unit.time", Rel: difftest.Num(0.055), Direction: policy.Up}},
		{"unit.launches:+1", policy.Rule{Metric: "unit.launches", Abs: difftest.Num(1), AbsUnit: report.Count, Direction: policy.Up}},
		{"memcpy.throughput{direction=HtoD,kind=pinned}:-5%", policy.Rule{Metric: "memcpy.throughput", Labels: report.Labels{"direction": "HtoD", "kind": "pinned"}, Rel: difftest.Num(0.05), Direction: policy.Down}},
		{"graph.coverage:-5pp", policy.Rule{Metric: "graph.coverage", Abs: difftest.Num(0.05), AbsUnit: report.Ratio, Direction: policy.Down}},
		{"unit.kernels:±2%", policy.Rule{Metric: "unit.kernels", Rel: difftest.Num(0.02), Direction: policy.Both}},
		{"unit.kernels:+-2%", policy.Rule{Metric: "unit.kernels", Rel: difftest.Num(0.02), Direction: policy.Both}},
		{"gpu.idle_ratio{device=0}:<=15%", policy.Rule{Metric: "gpu.idle_ratio", Labels: report.Labels{"device": "0"}, Max: difftest.Num(0.15), LimitUnit: report.Ratio}},
		{"gpu.idle_ratio{device=0}:<15%", policy.Rule{Metric: "gpu.idle_ratio", Labels: report.Labels{"device": "0"}, Max: difftest.Num(0.15), LimitUnit: report.Ratio}},
		{"kernel.count:>=10,<=20", policy.Rule{Metric: "kernel.count", Min: difftest.Num(10), Max: difftest.Num(20), LimitUnit: report.Count}},
		{"kernel.time_per_unit{category=gemm}:+5%", policy.Rule{Metric: "kernel.time_per_unit", Labels: report.Labels{"category": "gemm"}, Rel: difftest.Num(0.05), Direction: policy.Up}},
		{"kernel.time_per_unit{kernel=*flash*}:+10%,+50us,warn", policy.Rule{Metric: "kernel.time_per_unit", Labels: report.Labels{"kernel": "*flash*"}, Rel: difftest.Num(0.1), Abs: difftest.Num(50e3), AbsUnit: report.Nanoseconds, Direction: policy.Up, Level: comparison.LevelWarn}},
		{"kernel.time_per_unit{kernel=*memset*}:off", policy.Rule{Metric: "kernel.time_per_unit", Labels: report.Labels{"kernel": "*memset*"}, Level: comparison.LevelOff}},
		{"structure:error", policy.Rule{Metric: comparison.MetricStructure}},
		// Kernel names hold colons and commas.
		{"kernel.time_per_unit{kernel=void ns::f<int, 4>(float*)}:+5%", policy.Rule{Metric: "kernel.time_per_unit", Labels: report.Labels{"kernel": "void ns::f<int, 4>(float*)"}, Rel: difftest.Num(0.05), Direction: policy.Up}},
	} {
		if c.want.Labels == nil {
			c.want.Labels = report.Labels{}
		}
		if c.want.Level == "" {
			c.want.Level = comparison.LevelError
		}
		c.want.ID = c.text
		got, err := policy.ParseFailOn(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if d := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(policy.Rule{})); d != "" {
			t.Errorf("%s: %s", c.text, d)
		}
	}
}

func TestBadRulesSayWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "expected METRIC:CHANGE"},
		{"unit.time", "expected METRIC:CHANGE"},
		{"unit.time:", "expected METRIC:CHANGE"},
		{"unit.time:3%", "say which way is bad with a sign"},
		{"unit.time:+3", ""}, // read as a count; CheckRules knows the unit
		{"unit.time:+3parsecs", "unknown unit"},
		{"unit.time:+3%,-3%", "different directions"},
		{"unit.time:+3%,+5%", "a relative part twice"},
		{"unit.time:+3us,+5us", "an absolute part twice"},
		{"unit.time:+3%,<=5ms", "both a budget and a change"},
		{"unit.time:<=3ms,>=5ms", "lower bound is above"},
		{"unit.time:<=3ms,>=5", "different units"},
		{"unit.time:++3%", "two signs"},
		{"unit.time:+3%,", "is empty"},
		{"unit.time:off,+3%", "level off takes no threshold"},
		{"unit.time:warn", "has no threshold"},
		{"structure:+3%", "structural findings have no size"},
		{"Unit Time:+3%", "is not a metric id"},
		{"unit.time{device=0:+3%", "expected METRIC:CHANGE"},
		{"unit.time{}:+3%", "expected {label=value}"},
		{"unit.time{device=}:+3%", "has no value"},
		{"unit.time{device=0,device=1}:+3%", "appears twice"},
	} {
		_, err := policy.ParseFailOn(c.text)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%q: %v", c.text, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q: error %v, want one that says %q", c.text, err, c.want)
		}
	}
}

func TestRulesAreHeldToTheMetricsThatExist(t *testing.T) {
	known := []report.MetricDef{
		{ID: "unit.time", Unit: report.Nanoseconds, Scale: report.PerUnit, Stats: true, Labels: []string{"", "device", "phase", "phase,batch"}},
		{ID: "unit.count", Unit: report.Count, Scale: report.Total, Stats: true, Labels: []string{""}},
		{ID: "unit.launches", Unit: report.Count, Scale: report.PerUnit, Stats: true, Labels: []string{""}},
		{ID: "gpu.idle_ratio", Unit: report.Ratio, Scale: report.Level, Stats: true, Labels: []string{"device"}},
		{ID: "kernel.total_time", Unit: report.Nanoseconds, Scale: report.Total, Stats: true, Labels: []string{"", "kernel"}},
		{ID: "kernel.time_per_unit", Unit: report.Nanoseconds, Scale: report.PerUnit, Stats: true, Labels: []string{"kernel", "category", "kernel,phase"}},
		{ID: "api.time", Unit: report.Nanoseconds, Scale: report.Total, Stats: true, Labels: []string{"api"}},
	}
	for _, c := range []struct{ rule, want string }{
		{"unit.time.p50:+3%,+200us", ""},
		{"unit.time{batch=8,phase=decode}:+3%", ""},
		{"kernel.time_per_unit{phase=decode,kernel=*}:+3%", ""},
		{"gpu.idle_ratio{device=*}:+2pp", ""},
		{"kernel.total_time:<=2s", ""},    // a budget may be on a total
		{"api.time.mean{api=*}:+20%", ""}, // one call is no longer in a longer capture
		{"unit.launches:+0", ""},          // 0 fits any unit
		{"kernel.time_per_unit:+3%", "comes with the labels {kernel} | {category} | {kernel,phase}, not (none)"},
		{"unit.time{device=0,phase=decode}:+3%", "comes with the labels"},
		{"unit.tine:+3%", "no metric unit.tine; did you mean unit.time?"},
		{"nothing.like.it:+3%", "no metric nothing.like.it; explain doc metrics"},
		{"unit.time:+3", "is in ns, and the change is given in count"},
		{"unit.time:<=3%", "is in ns, and the budget is given in ratio"},
		{"kernel.total_time:+3%", "grows with the length of the capture"},
		{"unit.count:-3%", "grows with the length of the capture"},
		{"api.time{api=*}:+3%", "grows with the length of the capture"},
		{"unit.time.max:+3%", "the more extreme its max"},
	} {
		r, err := policy.ParseFailOn(c.rule)
		if err != nil {
			t.Fatal(err)
		}
		err = policy.Check([]policy.Rule{r}, known)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.rule, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want one that says %q", c.rule, err, c.want)
		}
	}
}

func TestDefaultRulesAreValid(t *testing.T) {
	for _, r := range policy.DefaultRules() {
		if err := r.Validate(); err != nil {
			t.Errorf("%s: %v", r.ID, err)
		}
	}
}

// TestDefaultsAreTheCallersOwn: what one caller does to the default policy, the next one does not see.
func TestDefaultsAreTheCallersOwn(t *testing.T) {
	p := policy.Default()
	p.Stats.MinCaptures++
	p.Rules[0].Rel = new(0.5)
	p.Rules = append(p.Rules[:1], policy.Rule{ID: "mine"})
	again := policy.Default()
	if again.Stats.MinCaptures != 1 || *again.Rules[0].Rel == 0.5 || again.Rules[1].ID == "mine" || len(again.Rules) < 5 {
		t.Errorf("changed by another caller: %+v", again)
	}
}

// TestThresholdsRoundTrip: what a gate prints as its threshold is what --fail-on reads.
func TestThresholdsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var parts []string
		sign := rapid.SampledFrom([]string{"+", "-", "±"}).Draw(t, "sign")
		if rapid.Bool().Draw(t, "rel") {
			parts = append(parts, fmt.Sprintf("%s%d.%d%%", sign, rapid.IntRange(0, 400).Draw(t, "percent"), rapid.IntRange(0, 9).Draw(t, "tenths")))
		}
		if len(parts) == 0 || rapid.Bool().Draw(t, "abs") {
			parts = append(parts, fmt.Sprintf("%s%d%s", sign, rapid.IntRange(0, 999).Draw(t, "n"), rapid.SampledFrom([]string{"ns", "us", "ms", "s", "pp", "MB", ""}).Draw(t, "unit")))
		}
		first, err := policy.ParseFailOn("unit.time:" + strings.Join(parts, ","))
		if err != nil {
			t.Fatal(err)
		}
		text := first.Threshold()
		second, err := policy.ParseFailOn("unit.time:" + text)
		if err != nil {
			t.Fatalf("%v is printed as %s: %v", parts, text, err)
		}
		first.ID, second.ID = "", ""
		if first.Abs != nil && *first.Abs == 0 { // nothing of any unit
			first.AbsUnit, second.AbsUnit = "", ""
		}
		if d := cmp.Diff(first, second, cmpopts.IgnoreUnexported(policy.Rule{}), cmpopts.EquateApprox(1e-12, 0)); d != "" {
			t.Fatalf("%v is printed as %s: %s", parts, text, d)
		}
	})
}

func FuzzParseFailOn(f *testing.F) {
	for _, s := range []string{"unit.time.p50:+3%,+200us", "gpu.idle_ratio{device=0}:<=15%", "kernel.time_per_unit{kernel=*a::b*}:+5%,warn", "structure:off", "a{b=}:", "a{b=c}:±1pp"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := policy.ParseFailOn(s)
		if err != nil {
			return
		}
		wellRead(t, &r)
	})
}

// wellRead checks each part of a rule that was read: [policy.Rule.Validate] leaves that to readers.
func wellRead(t *testing.T, r *policy.Rule) {
	t.Helper()
	_, err := regexp.Compile(r.Match.Regex)
	switch err = errors.Join(err, r.Validate()); {
	case err != nil, r.Metric == "",
		r.Level != comparison.LevelError && r.Level != comparison.LevelWarn && r.Level != comparison.LevelOff,
		r.Since != "" && (r.Max == nil || r.Min != nil || r.LimitUnit != report.Ratio),
		r.Rel != nil && !(*r.Rel >= 0), r.Abs != nil && !(*r.Abs >= 0),
		r.Direction != "" && r.Direction != policy.Up && r.Direction != policy.Down && r.Direction != policy.Both:
		t.Fatalf("a rule that was read is not valid: %v %+v", err, r)
	}
	if r.Milder != nil {
		wellRead(t, r.Milder)
	}
}

// TestThresholdsOfThousands: a threshold is one part, however large its number is.
func TestThresholdsOfThousands(t *testing.T) {
	for text, want := range map[string]string{
		"unit.launches:+1500":    "fails beyond +1500",
		"unit.kernels:+5%,+1500": "fails beyond both +5% and +1500",
		"kernel.count:<=12345":   "fails unless it is <=12345, with or without a baseline",
		"unit.time.p50:+1200%":   "fails beyond +1200%",
	} {
		r, err := policy.ParseFailOn(text)
		if err != nil {
			t.Fatal(err)
		}
		if r.Does() != want {
			t.Errorf("%s: %s, want %s", text, r.Does(), want)
		}
		again, err := policy.ParseFailOn(r.Metric + ":" + r.Threshold())
		if err != nil || again.Threshold() != r.Threshold() {
			t.Errorf("%s is shown as %s, which is read as %s: %v", text, r.Threshold(), again.Threshold(), err)
		}
	}
}
