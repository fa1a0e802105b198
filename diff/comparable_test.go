package diff_test

import (
	"bytes"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
)

// copyOf is another report with the same content.
func copyOf(tb testing.TB, r *report.Report) *report.Report {
	tb.Helper()
	return scaled(tb, r, 1)
}

func TestHardFieldsMustBeEqual(t *testing.T) {
	t.Parallel()
	base := engineReport(t, engine{})
	text := func(s string) *string { return &s }
	for name, c := range map[string]struct {
		change func(a, b *report.Environment)
		code   comparison.Code
	}{
		"GPU model":   {func(a, b *report.Environment) { b.GPUs[0].Name = text("NVIDIA A100-SXM4-80GB") }, comparison.EnvironmentMismatch},
		"GPU count":   {func(a, b *report.Environment) { b.GPUs = append(b.GPUs, b.GPUs[0]) }, comparison.EnvironmentMismatch},
		"dtype":       {func(a, b *report.Environment) { a.DType, b.DType = text("bf16"), text("fp8") }, comparison.EnvironmentMismatch},
		"model":       {func(a, b *report.Environment) { a.Model, b.Model = text("a"), text("b") }, comparison.EnvironmentMismatch},
		"load":        {func(a, b *report.Environment) { a.Load, b.Load = text("aa11"), text("bb22") }, comparison.EnvironmentMismatch},
		"parallelism": {func(a, b *report.Environment) { a.Parallelism, b.Parallelism = text("tp2"), text("tp4") }, comparison.EnvironmentMismatch},
		"graph trace": {func(a, b *report.Environment) { a.GraphTrace, b.GraphTrace = text("node"), text("graph") }, comparison.GraphCaptureMismatch},
	} {
		a, b := copyOf(t, base), engineReport(t, engine{gap: 400_000})
		c.change(&a.Environment, &b.Environment)
		got := diffOf(t, a, b, diff.Options{})
		if got.Comparable || len(got.Reasons) == 0 || got.Reasons[0].Code != c.code || got.Verdict != comparison.Inconclusive {
			t.Errorf("%s: comparable %v, reasons %v, verdict %s", name, got.Comparable, got.Reasons, got.Verdict)
		}
		if r := primaryRow(t, got, "unit.time.p50"); r.Class != comparison.Unsettled || *r.Delta < 390_000 {
			t.Errorf("%s: the numbers stand and nothing follows from them: %+v", name, r)
		}
	}
}

// A load is what was asked and, last, its hash: another hash is another load.
func TestLoadsByTheirHash(t *testing.T) {
	text := func(hash string) *string {
		s := "completions; mixed prompts; rate unlimited; concurrency 8; 40 requests; no limit of time; seed 1; fingerprint " + hash
		return &s
	}
	const hash, other = "7d4f00c1aa26e9b3", "00c1aa26e9b37d4f"
	for _, c := range []struct {
		base, head *string
		comparable bool
	}{
		{text(hash), text(hash), true}, {text(hash), text(other), false},
	} {
		a, b := engineReport(t, engine{}), engineReport(t, engine{seed: 3})
		a.Environment.Load, b.Environment.Load = c.base, c.head
		if got := diffOf(t, a, b, diff.Options{}); got.Comparable != c.comparable {
			t.Errorf("%s and %s: comparable %v, reasons %v", *c.base, *c.head, got.Comparable, got.Reasons)
		}
	}
}

func TestResidue(t *testing.T) {
	a := engineReport(t, engine{})
	b := engineReport(t, engine{seed: 3})
	text := func(s string) *string { return &s }
	a.Environment.Driver, b.Environment.Driver = text("570.1"), text("570.2")
	a.Environment.CUDA, b.Environment.CUDA = nil, text("12.8")
	a.Environment.ExporterVersion, b.Environment.ExporterVersion = text("2024.2"), text("2025.1")
	c := diffOf(t, a, b, diff.Options{})
	if !c.Comparable {
		t.Fatalf("reasons %v", c.Reasons)
	}
	want := map[string]comparison.Residue{
		"driver": {Field: "driver", Base: "570.1", Head: "570.2", Soft: true}, "cuda": {Field: "cuda", Base: "unknown", Head: "12.8"},
		"exporter_version": {Field: "exporter_version", Base: "2024.2", Head: "2025.1"},
	}
	if len(c.Residue) != len(want) {
		t.Errorf("residue %+v", c.Residue)
	}
	for _, r := range c.Residue {
		if r != want[r.Field] {
			t.Errorf("%+v, want %+v", r, want[r.Field])
		}
	}
}

// Where most units do not recur, those that do say little.
func TestLowCoverage(t *testing.T) {
	a, b := engineReport(t, engine{}), engineReport(t, engine{seed: 1})
	b.Unit.Trimmed.Other = 1000
	c := diffOf(t, a, b, diff.Options{})
	if c.Comparable || c.Reasons[0].Code != comparison.LowCoverage || c.Verdict != comparison.Inconclusive {
		t.Errorf("comparable %v, reasons %v, verdict %s", c.Comparable, c.Reasons, c.Verdict)
	}
}

// One capture against two is not replicated, and counts the units of all of them.
func TestOneAgainstTwo(t *testing.T) {
	base := []*report.Report{engineReport(t, engine{steps: 20})}
	head := []*report.Report{engineReport(t, engine{seed: 1, steps: 20, gap: 200_000}), engineReport(t, engine{seed: 2, steps: 30, gap: 200_000})}
	c, err := diff.Compare(base, head, diff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := primaryRow(t, c, "unit.time.p50")
	if r.Class != comparison.Regressed || !r.Unreplicated || len(r.HeadValues) != 2 || r.NHead <= r.NBase || c.Head.Captures != 2 {
		t.Errorf("%+v", r)
	}
	within(t, "change of the unit", c.Attribution.TotalDelta, 200_000)
}

// A server whose graphs were traced as a whole hides its decode kernels: times of the unit are compared, kernels are not.
func TestHiddenKernels(t *testing.T) {
	node, whole := reportOfFile(t, servingTrace, analyze.Options{}), reportOf(t, tracetest.ServingGraphMode(), analyze.Options{})
	c := diffOf(t, node, whole, diff.Options{})
	if len(c.Kernels) > 0 || c.Depth == comparison.DepthKernel || c.Reasons[0].Code != comparison.GraphCaptureMismatch || c.Comparable {
		t.Errorf("depth %s, comparable %v, reasons %v, %d kernels", c.Depth, c.Comparable, c.Reasons, len(c.Kernels))
	}
	if c.Verdict == comparison.Pass {
		t.Error("differing captures pass")
	}
	mirrored(t, c, diffOf(t, whole, node, diff.Options{}))
}

func FuzzReadComparison(f *testing.F) {
	c, err := diff.Compare([]*report.Report{{Schema: report.SchemaID}}, []*report.Report{{Schema: report.SchemaID}}, diff.Options{})
	if err != nil {
		f.Fatal(err)
	}
	var b bytes.Buffer
	if err := comparison.Write(&b, c); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"schema":"explain.comparison/1"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := comparison.Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := comparison.Write(&again, c); err != nil {
			t.Fatalf("a comparison that was read cannot be written: %v", err)
		}
		if _, err := comparison.Read(&again); err != nil {
			t.Fatalf("a comparison that was written cannot be read: %v", err)
		}
	})
}
