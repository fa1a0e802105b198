package diff_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/difftest"
)

// studied is a server of one kind of step on some GPUs.
func studied(gpus int, batch int64, ns float64, kernels map[string]float64) *report.Report {
	r := difftest.Kinds(difftest.Kind{Phase: "decode", Batch: batch, Units: 40, Time: ns, Signature: "s", Kernels: kernels})
	r.Environment.GPUs = make([]report.GPU, gpus)
	return r
}

// By hand: 2.4 ms → 1.488 ms is × 0.62; on twice the GPUs that is 1/(0.62 × 2) = 80.6 % of what they could do. A batch twice as large
// in 1.3 times the time is 2/1.3 = 1.538 times the tokens.
func TestStudy(t *testing.T) {
	gemm := map[string]float64{"gemm": 4, "attention": 2}
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		name                         string
		fields                       []string
		base, head                   *report.Report
		step, throughput, efficiency float64
		says                         string
	}{
		{"tensor parallelism", []string{"parallelism"}, studied(1, 16, 2.4e6, gemm), studied(2, 16, 1.488e6, gemm), 0.62, 1 / 0.62, 1 / 1.24,
			"step × 0.62, 1 → 2 GPUs, efficiency 81 %"},
		{"batch", []string{"batch"}, studied(1, 16, 2e6, gemm), studied(1, 32, 2.6e6, gemm), 1.3, 2 / 1.3, 0, "step × 1.3, tokens per second × 1.54"},
		{"engine", []string{"engine", "work"}, studied(1, 16, 2e6, gemm), studied(1, 16, 1e6, map[string]float64{"fused": 1}), 0.5, 2, 0, "step × 0.5"},
		{"GPU", []string{"gpu"}, studied(1, 16, 2e6, gemm), studied(1, 16, 1e6, gemm), 0.5, 2, 0, "step × 0.5"},
		{"fewer GPUs", []string{"gpu"}, studied(2, 16, 1e6, gemm), studied(1, 16, 1.6e6, gemm), 1.6, 1 / 1.6, 1.25, "step × 1.6, 2 → 1 GPUs, throughput per GPU × 1.25"},
		{"no scaling", []string{"gpu"}, studied(1, 16, 4.22e6, gemm), studied(2, 16, 1e6, gemm), 1 / 4.22, 4.22, 2.11,
			"step × 0.237, 1 → 2 GPUs, throughput per GPU × 2.11, which scaling does not explain: the work per GPU differs, or the side with fewer GPUs was held up"},
	} {
		if c.name == "GPU" {
			c.base.Environment.GPUs[0].Name, c.head.Environment.GPUs[0].Name = text("A100"), text("V100")
		}
		got := diffOf(t, c.base, c.head, diff.Options{Study: c.fields})
		s := got.Study
		if s == nil || s.Step == nil || got.Verdict != comparison.None || !got.Comparable || len(got.Gates) > 0 {
			t.Errorf("%s: verdict %s, comparable %v, %d gates, study %+v, reasons %v", c.name, got.Verdict, got.Comparable, len(got.Gates), s, got.Reasons)
			continue
		}
		if s.String() != c.says || math.Abs(*s.Step-c.step) > 1e-9 || math.Abs(*s.Throughput-c.throughput) > 1e-9 ||
			math.Abs(comparison.Value(s.Efficiency)-c.efficiency) > 1e-9 {
			t.Errorf("%s: %q, %+v", c.name, s, s)
		}
		if !strings.HasPrefix(got.Cause, "Study of "+s.About()+": "+c.says) {
			t.Errorf("%s: %q", c.name, got.Cause)
		}
		if h := got.Unit.HeadBatch; (c.name == "batch") != (h != nil) || h != nil && (*h != 32 || got.Answer.Per != "decode step, batch 16 → 32") {
			t.Errorf("%s: head's batch %v, per %q", c.name, h, got.Answer.Per)
		}
		if c.name == "GPU" && s.Fields[0] != (comparison.StudyField{Name: "gpu", Base: "A100", Head: "V100"}) {
			t.Errorf("fields %+v", s.Fields)
		}
	}
}

// One rank of a run and a merged run say nothing of how the work scales.
func TestStudyOfARankAndARun(t *testing.T) {
	gemm, two := map[string]float64{"gemm": 4}, 2.0
	base, head := studied(1, 16, 2e6, gemm), studied(2, 16, 1e6, gemm)
	head.Metrics = append(head.Metrics, report.Metric{ID: "ranks.count", Value: &two, Unit: "count"})
	for _, pair := range [][2]*report.Report{{base, head}, {head, base}} {
		c := diffOf(t, pair[0], pair[1], diff.Options{Study: []string{"parallelism"}})
		if c.Study == nil || c.Study.Efficiency != nil || !strings.Contains(strings.Join(c.Answer.Notes, " "), "so there is no efficiency") || strings.Contains(strings.Join(c.Answer.Notes, " "), "merge both") {
			t.Errorf("%+v, %q", c.Study, c.Answer.Notes)
		}
	}
}

// What makes sides not comparable says how they are compared all the same; what is not studied makes a study none.
func TestStudyIsOffered(t *testing.T) {
	gemm := map[string]float64{"gemm": 4}
	text := func(s string) *string { return &s }
	base, head := studied(1, 16, 2e6, gemm), studied(2, 16, 1e6, gemm)
	base.Environment.DType, head.Environment.DType = text("bf16"), text("fp8")
	for _, c := range []struct {
		study []string
		want  string
	}{{nil, "explain diff --study parallelism,dtype BASE HEAD"}, {[]string{"gpu"}, "explain diff --study gpu,dtype BASE HEAD"}, {[]string{"batch"}, "--study batch,parallelism,dtype BASE HEAD"}} {
		got := diffOf(t, base, head, diff.Options{Study: c.study})
		if got.Comparable || !strings.Contains(got.Cause, c.want) || got.Study != nil && got.Study.Step != nil {
			t.Errorf("%v: comparable %v, %q, %+v", c.study, got.Comparable, got.Cause, got.Study)
		}
	}
	other := diffOf(t, studied(1, 16, 2e6, gemm), studied(1, 16, 2e6, map[string]float64{"a": 1, "b": 2, "c": 30}), diff.Options{})
	if !other.Comparable && !strings.Contains(other.Reasons[0].Text, "--study work") {
		t.Errorf("%v", other.Reasons)
	}
}

// A study that says that it passes is refused, and so is a verdict of none without a study.
func TestStudyPassesForNothing(t *testing.T) {
	c := diffOf(t, studied(1, 16, 2e6, map[string]float64{"gemm": 4}), studied(2, 16, 1e6, map[string]float64{"gemm": 4}), diff.Options{Study: []string{"gpu"}})
	var b bytes.Buffer
	if err := comparison.Write(&b, c); err != nil {
		t.Fatal(err)
	}
	if again, err := comparison.Read(bytes.NewReader(b.Bytes())); err != nil || again.Study.String() != c.Study.String() {
		t.Errorf("%v", err)
	}
	for _, replace := range [][2]string{{`"verdict": "none"`, `"verdict": "pass"`}, {`"study": {`, `"older": {`}} {
		forged := strings.Replace(b.String(), replace[0], replace[1], 1)
		if _, err := comparison.Read(strings.NewReader(forged)); err == nil || forged == b.String() {
			t.Errorf("%s is read", replace[1])
		}
	}
	if comparison.Rank(comparison.None) < comparison.Rank(comparison.Fail) {
		t.Error("none is better than a failure")
	}
}

// A study of a field says what is known of it, so that nobody takes two unknown versions for two versions.
func TestStudySaysWhatIsUnknown(t *testing.T) {
	gemm := map[string]float64{"gemm": 4}
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		field      string
		base, head *string
		want       string
	}{
		{"engine", nil, nil, "engine (unknown on both sides, not checked: explain report --server-log reads it)"},
		{"engine", text("vLLM 0.9.1"), nil, "engine (unknown on the head, not checked: explain report --server-log reads it)"},
		{"engine", nil, text("vLLM 0.9.1"), "engine (unknown on the base, not checked: explain report --server-log reads it)"},
		{"engine", text("vLLM 0.9.1"), text("vLLM 0.9.1"), "engine (the same on both sides: vLLM 0.9.1)"},
		{"engine", text("vLLM 0.9.1"), text("vLLM 0.10.0"), "engine (vLLM 0.9.1 → vLLM 0.10.0)"},
		{"parallelism", nil, nil, "parallelism (1 → 1 GPUs; explain report --server-log reads the settings)"},
		{"dtype", nil, nil, "dtype (unknown on both sides, not checked)"},
		{"batch", nil, nil, "batch"},
	} {
		base, head := studied(1, 16, 2e6, gemm), studied(1, 16, 1e6, gemm)
		if c.field == "engine" {
			base.Environment.Engine, head.Environment.Engine = c.base, c.head
		}
		got := diffOf(t, base, head, diff.Options{Study: []string{c.field}})
		if got.Study.About() != c.want || !strings.HasPrefix(got.Cause, "Study of "+c.want+": step × 0.5") {
			t.Errorf("%s: %q", c.want, got.Cause)
		}
	}
}

// Unrelated programs are not compared because something else differs on purpose: work has to be named too, and then there
// is still no efficiency, and the answer says why.
func TestStudyRefusesOtherWork(t *testing.T) {
	base, head := studied(1, 16, 2e6, map[string]float64{"gemm": 4}), studied(2, 16, 1e6, map[string]float64{"a": 1, "b": 2, "c": 30})
	head.Unit.Kind, head.Unit.Name = "kernel", "a" // nothing ties its steps to the base's
	got := diffOf(t, base, head, diff.Options{Study: []string{"parallelism"}})
	if got.Comparable || got.Study.Step != nil || !strings.Contains(got.Cause, "explain diff --study parallelism,work BASE HEAD") {
		t.Errorf("comparable %v, %q", got.Comparable, got.Cause)
	}
	if first := diffOf(t, base, head, diff.Options{}); first.Comparable || !strings.Contains(first.Cause, "explain diff --study parallelism,work BASE HEAD") {
		t.Errorf("the first refusal: comparable %v, %q", first.Comparable, first.Cause)
	}
	got = diffOf(t, base, head, diff.Options{Study: []string{"parallelism", "work"}})
	if !got.Comparable || got.Study.Step == nil || got.Study.Efficiency != nil || !strings.HasPrefix(got.Answer.Notes[0], "the steps do different work (12.1 % of the compute time in common)") {
		t.Errorf("comparable %v, %+v, %q", got.Comparable, got.Study, got.Answer.Notes)
	}
}

// A phase or a batch size that only one side has is not that of both.
func TestStudyOfUnitsOfOtherKinds(t *testing.T) {
	step := func(phase string, batch int64, ns float64, kernels map[string]float64) *report.Report {
		return difftest.Kinds(difftest.Kind{Phase: phase, Batch: batch, Units: 40, Time: ns, Signature: phase, Kernels: kernels})
	}
	gemm, other := map[string]float64{"gemm": 4}, map[string]float64{"a": 1, "b": 2, "c": 30}
	for _, x := range []struct {
		name       string
		base, head *report.Report
		want       string
	}{
		{"only the base has both", step("decode", 16, 2e6, gemm), step("step", -1, 4e6, other), "2 → 4 ms per step, median"},
		{"only the head has both", step("step", -1, 4e6, other), step("decode", 16, 2e6, gemm), "4 → 2 ms per step, median"},
		{"the phases differ", step("decode", 16, 2e6, gemm), step("prefill", 16, 4e6, other), "2 → 4 ms per step, batch 16, median"},
		{"both have both", step("decode", 16, 2e6, gemm), step("decode", 16, 4e6, other), "2 → 4 ms per decode step, batch 16, median"},
	} {
		c := diffOf(t, x.base, x.head, diff.Options{Study: []string{"work"}})
		if got := c.Answer.Sides(); got != x.want {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}

// A log of another time limits what the sides' logs say: once for all captures of both sides.
func TestLogOfAnotherRunIsRepeated(t *testing.T) {
	gemm := map[string]float64{"gemm": 4}
	for _, x := range []struct {
		base, head bool
		want       string
	}{{true, true, "base and head"}, {true, false, "base"}, {false, true, "head"}, {false, false, ""}} {
		base, head := studied(1, 16, 2e6, gemm), studied(1, 16, 2.1e6, gemm)
		for r, apart := range map[*report.Report]bool{base: x.base, head: x.head} {
			if apart {
				r.Warnings = append(r.Warnings, report.Warning{Code: comparison.OtherRun, Text: "The server log is of another time."})
			}
		}
		got, want := diffOf(t, base, head, diff.Options{}).Warnings, x.want+": what the log says may be of another run"
		switch {
		case x.want == "" && len(got) > 0:
			t.Errorf("%v", got)
		case x.want != "" && (len(got) != 1 || got[0].Code != comparison.OtherRun || got[0].Text != want):
			t.Errorf("%v, want %q", got, want)
		}
	}
}
