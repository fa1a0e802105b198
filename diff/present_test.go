package diff_test

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/diff"
)

var update = flag.Bool("update", false, "write golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "present", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (go test ./diff -run %s -update):\n%s", name, t.Name(), d)
	}
}

func text0(s string) *string { return &s }
func whole(v int64) *int64   { return &v }

// regression is a comparison with something of everything: a slower step, one kernel replaced, one added, a blocking call.
func regression() *diff.Comparison {
	row := func(metric, unit string, base, head float64, class diff.Class, why string) diff.Row {
		delta, ratio := head-base, head/base
		return diff.Row{Metric: metric, Labels: report.Labels{}, Unit: unit, Base: &base, Head: &head, Delta: &delta, Ratio: &ratio, Class: class, Why: why,
			NBase: 40, NHead: 38, BaseValues: []float64{base}, HeadValues: []float64{head}, Unreplicated: true}
	}
	step := row("unit.time.p50", report.Nanoseconds, 10e6, 11.5e6, diff.Regressed, "+15.0 %, interval over units +13.9 % to +16.1 %: beyond the noise floor of 5.0 %")
	step.Interval = &diff.Interval{Low: 1.139, High: 1.161, Level: 0.95, Method: "block bootstrap"}
	idle := row("unit.gpu_idle.mean", report.Nanoseconds, 1e6, 2e6, diff.Unsettled, "units differ as much")
	idle.NeedCaptures = whole(3)
	c := &diff.Comparison{
		Distribution: diff.Distribution{Metric: "unit.time", Edges: []float64{100, 200}, Base: []int64{3, 1}, Head: []int64{1, 3}},
		Schema:       diff.SchemaID, Tool: report.Tool{Name: "explain", Version: "test"}, Comparable: true, Depth: diff.DepthKernel,
		Cause:   "Slower, unit time +15.0 % (10 ms → 11.5 ms): kernel flash_fwd replaced, GPU idle +1 ms per unit.",
		Reasons: []diff.Reason{},
		Base:    diff.Side{Names: []string{"base.sqlite"}, Captures: 1}, Head: diff.Side{Names: []string{"head.sqlite"}, Captures: 1},
		Unit: diff.Unit{Kind: "nvtx", Name: "execute_context_N(M)_generation_K(L)", Phase: "decode", Batch: whole(32), BaseN: 40, HeadN: 38, OverlapNeeded: 0.6},
		Primary: []diff.Row{step, row("unit.time.mean", report.Nanoseconds, 10e6, 11.5e6, diff.Regressed, "as its median"), idle,
			row("unit.launches", report.Count, 71, 72, diff.Regressed, "counts are exact")},
		Attribution: diff.Attribution{Metric: "unit.time", Base: 10e6, Head: 11.5e6, TotalDelta: 1.5e6, Rows: []diff.AttributionRow{
			{ID: "compute", Kind: diff.KindClass, Base: 9e6, Head: 9.5e6, Delta: 0.5e6},
			{ID: "exposed_comm", Kind: diff.KindClass},
			{ID: "exposed_copy", Kind: diff.KindClass},
			{ID: "idle", Kind: diff.KindClass, Base: 1e6, Head: 2e6, Delta: 1e6},
			{ID: "host", Kind: diff.KindCause, Base: 0.6e6, Head: 1.6e6, Delta: 1e6},
			{ID: "launch", Kind: diff.KindCause, Base: 0.4e6, Head: 0.4e6},
			{ID: "flash_fwd", Kind: diff.KindKernel, Base: 3e6, Head: 3.4e6, Delta: 0.4e6, CountEffect: num(0), PerCallEffect: num(0.4e6)},
			{ID: "extra", Kind: diff.KindKernel, Head: 0.1e6, Delta: 0.1e6, CountEffect: num(0.1e6), PerCallEffect: num(0)},
			{ID: "others", Kind: diff.KindOthers, Base: 6e6, Head: 6e6},
		}},
		Kernels: []diff.Kernel{
			{BaseName: text0("void flash_fwd<128>(Params)"), HeadName: text0("void flash_fwd<64>(Params)"), BaseShort: text0("flash_fwd<128>"), HeadShort: text0("flash_fwd<64>"), PairedBy: "family", Category: "attention",
				Base: num(3e6), Head: num(3.4e6), Delta: 0.4e6, Ratio: num(3.4 / 3), BaseCount: num(32), HeadCount: num(32), PerCallEffect: 0.4e6, Share: num(0.3), Class: diff.Regressed, Why: "+13.3 %, beyond the noise floor of 5.0 %", Note: "replaced: paired by family"},
			{HeadName: text0("extra"), HeadShort: text0("extra"), Category: "elementwise", Head: num(0.1e6), Delta: 0.1e6, HeadCount: num(1), CountEffect: 0.1e6, Class: diff.Added, Why: "runs on the head's side only"},
			{BaseName: text0("gemm"), HeadName: text0("gemm"), BaseShort: text0("gemm"), HeadShort: text0("gemm"), PairedBy: "exact", Category: "gemm", Base: num(6e6), Head: num(6e6), Ratio: num(1), BaseCount: num(38), HeadCount: num(38), Share: num(0.6), Class: diff.Same, Why: "both sides are equal"},
		},
		API: []diff.API{
			{Name: "cudaLaunchKernel", Kind: "launch", BaseCount: num(71), HeadCount: num(72), BaseMean: num(5e3), HeadMean: num(7e3), Ratio: num(1.4), Class: diff.Regressed},
			{Name: "cudaStreamSynchronize", Kind: "sync", BaseCount: num(0), HeadCount: num(1), HeadMean: num(20e3), Class: diff.Added},
			{Name: "cudaMemcpyAsync", Kind: "copy", BaseCount: num(4), HeadCount: num(4), BaseMean: num(4e3), HeadMean: num(4e3), Ratio: num(1), Class: diff.Same},
		},
		Structure: []diff.Structural{{ID: "blocking_call/cudaStreamSynchronize", Text: "new blocking call cudaStreamSynchronize, 0 → 1 per unit", Base: num(0), Head: num(1), Class: diff.Added}},
		Mix: []diff.Mix{
			{Phase: "decode", Batch: whole(32), Compared: true, BaseCount: 40, HeadCount: 38, BaseTime: num(10e6), HeadTime: num(11.5e6), Ratio: num(1.15)},
			{Phase: "prefill", Batch: whole(1), Tokens: whole(2048), BaseCount: 4, HeadCount: 0, BaseTime: num(50e6)},
		},
		Residue: []diff.Residue{{Field: "exporter_version", Base: "2024.1", Head: "2025.1"}, {Field: "driver", Base: "550", Head: "570", Soft: true}},
		Gates:   []diff.Gate{},
		Counts:  diff.Counts{MetricsCompared: 4, KernelsCompared: 3, KernelsPaired: 2, UnitsBase: 40, UnitsHead: 38},
	}
	diff.Judge(c, side(), side(), nil)
	return c
}

// different is a comparison that was refused.
func different() *diff.Comparison {
	c := &diff.Comparison{
		Distribution: diff.Distribution{Metric: "unit.time", Edges: []float64{100, 200}, Base: []int64{3, 1}, Head: []int64{1, 3}},
		Schema:       diff.SchemaID, Tool: report.Tool{Name: "explain", Version: "test"}, Depth: diff.DepthNone,
		Cause:   "Not comparable: base runs 62 kernels a unit, head 119.",
		Reasons: []diff.Reason{{Code: diff.DifferentWork, Text: "base runs 62 kernels a unit, head 119"}, {Code: diff.EnvironmentMismatch, Text: "the GPU model differs: H100 on one side, H200 on the other"}},
		Base:    diff.Side{Names: []string{"a1.json", "a2.json"}, Captures: 2}, Head: diff.Side{Names: []string{"b.json", "b2.json"}, Captures: 2},
		Unit:    diff.Unit{Kind: "kernel", Name: "embedding", Phase: "step", BaseN: 20, HeadN: 20},
		Primary: []diff.Row{}, Kernels: []diff.Kernel{}, API: []diff.API{}, Structure: []diff.Structural{}, Mix: []diff.Mix{}, Residue: []diff.Residue{}, Attribution: diff.Attribution{Rows: []diff.AttributionRow{}},
	}
	diff.Judge(c, side(), side(), nil)
	return c
}

// hostile is the regression with names that try to be more than names.
func hostile() *diff.Comparison {
	c := regression()
	names := tracetest.HostileNames()
	c.Base.Names[0], c.Unit.Name = names[0], names[1]
	c.API[0].Name = names[2]
	c.Residue[0].Head = names[3]
	c.Cause += " " + names[4]
	c.Structure[0].Text = names[5]
	for _, n := range names {
		c.Kernels = append(c.Kernels, diff.Kernel{BaseName: &n, HeadName: &n, PairedBy: "exact", Base: num(1e3), Head: num(2e3), Delta: 1e3, PerCallEffect: 1e3, Ratio: num(2), BaseCount: num(1), HeadCount: num(1), Class: diff.Regressed})
		c.Gates = append(c.Gates, diff.Gate{Rule: "kernels " + n, Metric: "kernel.time_per_unit", Labels: report.Labels{"kernel": n}, Level: diff.LevelWarn, Class: diff.Regressed, Verdict: diff.Warn, CountsAs: diff.Warn, Reason: "slower: " + n})
	}
	return c
}

// voices is what each voice says of a comparison.
func voices(t *testing.T, c *diff.Comparison) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for name, write := range map[string]func(w io.Writer, c *diff.Comparison) error{
		"txt":  func(w io.Writer, c *diff.Comparison) error { return diff.WriteText(w, c, render.TerminalOptions{}) },
		"md":   func(w io.Writer, c *diff.Comparison) error { return diff.WriteMarkdown(w, c, render.MarkdownOptions{}) },
		"xml":  diff.WriteJUnit,
		"csv":  diff.WriteCSV,
		"json": diff.Write,
	} {
		var a, b bytes.Buffer
		if err := write(&a, c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := write(&b, c); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Fatalf("%s: a second time it is different (%v)", name, err)
		}
		out[name] = a.Bytes()
	}
	return out
}

// TestVoices holds every voice to its golden file.
func TestVoices(t *testing.T) {
	for name, c := range map[string]*diff.Comparison{"regression": regression(), "different": different()} {
		for ext, b := range voices(t, c) {
			if ext != "json" {
				golden(t, name+"."+ext, b)
			}
		}
	}
}

func TestTheTerminalFits(t *testing.T) {
	for _, c := range []*diff.Comparison{regression(), different(), hostile()} {
		for i, line := range strings.Split(string(voices(t, c)["txt"]), "\n") {
			if n := utf8.RuneCountInString(line); n > 100 {
				t.Errorf("line %d has %d columns: %s", i+1, n, line)
			}
		}
	}
}

// TestEveryVoiceSaysWhatWasChecked, even when nothing changed.
func TestEveryVoiceSaysWhatWasChecked(t *testing.T) {
	c := regression()
	for i := range c.Primary {
		r := &c.Primary[i]
		r.Head, r.Ratio, r.Delta, r.Class, r.Interval = r.Base, num(1), num(0), diff.Same, nil
	}
	c.Kernels, c.API, c.Structure, c.Attribution, c.Cause = c.Kernels[2:], c.API[2:], []diff.Structural{}, diff.Attribution{Rows: []diff.AttributionRow{}}, "No change."
	diff.Judge(c, side(), side(), nil)
	for ext, b := range voices(t, c) {
		want := map[string]string{"txt": "4 gates checked: 4 passed. Compared 4 metrics, 3 kernels (2 paired), 40 → 38 units.", "md": "4 gates checked: 4 passed.", "xml": `tests="4" failures="0"`, "json": `"gates_checked":4`, "csv": "metric,unit.time.p50"}[ext]
		if !strings.Contains(string(b), want) {
			t.Errorf("%s does not say %q:\n%s", ext, want, b)
		}
	}
}

// TestHostileNamesStayNames in every voice, as in those of a report.
func TestHostileNamesStayNames(t *testing.T) {
	all := voices(t, hostile())
	for ext, b := range all {
		if ext == "json" {
			continue
		}
		for i, line := range strings.Split(string(b), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "::") {
				t.Errorf("%s:%d starts like a workflow command: %q", ext, i+1, line)
			}
			for _, r := range line {
				if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
					t.Errorf("%s:%d holds %U", ext, i+1, r)
					break
				}
			}
		}
	}
	rows, err := csv.NewReader(bytes.NewReader(all["csv"])).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		for _, cell := range []string{row[2], row[3]} {
			if cell != "" && strings.ContainsRune("=+@\t\r", rune(cell[0])) {
				t.Errorf("a spreadsheet would compute %q", cell)
			}
		}
	}
	if err := xml.Unmarshal(all["xml"], new(struct{})); err != nil {
		t.Errorf("junit: %v", err)
	}
	literal(t, string(all["md"]), "")
}

// TestJUnitCountsWhatItHolds: a failure for each gate that fails, skipped where inconclusive.
func TestJUnitCountsWhatItHolds(t *testing.T) {
	var file struct {
		Suites []struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Skipped  int `xml:"skipped,attr"`
			Cases    []struct {
				Name    string    `xml:"name,attr"`
				Failure *struct{} `xml:"failure"`
				Skipped *struct{} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	for _, c := range []*diff.Comparison{regression(), different()} {
		file.Suites = nil
		if err := xml.Unmarshal(voices(t, c)["xml"], &file); err != nil {
			t.Fatal(err)
		}
		s := file.Suites[0]
		failed, skipped := 0, 0
		for _, x := range s.Cases {
			if x.Failure != nil {
				failed++
			}
			if x.Skipped != nil {
				skipped++
			}
		}
		if s.Tests != len(c.Gates) || len(s.Cases) != s.Tests || failed != s.Failures || skipped != s.Skipped || failed+skipped == 0 {
			t.Errorf("%d tests, %d failures, %d skipped: %+v", s.Tests, s.Failures, s.Skipped, s.Cases)
		}
	}
}

// TestCalibrationFitsTheTerminal, and says what was written where.
func TestCalibrationFitsTheTerminal(t *testing.T) {
	floor := func(metric string, labels report.Labels) diff.NoiseMetric {
		return diff.NoiseMetric{Metric: metric, Labels: labels, Unit: report.Nanoseconds, Values: []float64{10e6, 10.1e6, 9.9e6}, Noise: 0.01, DF: 2, Floor: 0.05, Threshold: 0.03, MDE: []float64{0.08, 0.06, 0.05}}
	}
	c := &diff.Calibration{
		Noise: diff.Noise{Captures: 3, Names: []string{"a1.json", "a2.json", "a3.json"}, Power: 0.8, Metrics: []diff.NoiseMetric{
			floor("kernel.time_per_unit", report.Labels{"kernel": "void flash_fwd<128>(Params)"}), floor("unit.time", report.Labels{}), floor("unit.time.mean", report.Labels{}),
		}, Unsteady: []diff.NoiseCount{{Metric: "unit.launches", Labels: report.Labels{}, Min: 71, Max: 72}}, Skipped: []diff.NoiseSkip{{}}},
		FalseAlarms: 1,
		LeaveOneOut: []diff.LeftOut{{Name: "a1.json", Verdict: diff.Fail, Alarms: []string{"unit.time.p50{}"}}, {Name: "a2.json", Verdict: diff.Pass}, {Name: "a3.json", Verdict: diff.Pass}},
	}
	var b bytes.Buffer
	if err := diff.WriteCalibrationText(&b, c, "noise.json", render.TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(b.String(), "\n") {
		if utf8.RuneCountInString(line) > 100 {
			t.Errorf("too long: %s", line)
		}
	}
	golden(t, "calibration.txt", b.Bytes())
}
