package diffdoc_test

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

	"github.com/nsys-llm/explain/diff/internal/difftest"

	"github.com/google/go-cmp/cmp"
	"github.com/nsys-llm/explain/analyze/report"
	reportrender "github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/diffdoc"
	"github.com/nsys-llm/explain/diff/internal/noise"
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

// hostile is the regression with names that try to be more than names.
func hostile() *comparison.Comparison {
	c := difftest.Regression()
	names := tracetest.HostileNames()
	c.Base.Names[0], c.Unit.Name = names[0], names[1]
	c.API[0].Name = names[2]
	c.Residue[0].Head = names[3]
	c.Answer.Rows[0].What, c.Answer.Notes[0] = names[4], names[4]
	c.Structure[0].Text = names[5]
	for _, n := range names {
		c.Kernels = append(c.Kernels, comparison.Kernel{BaseName: &n, HeadName: &n, PairedBy: "exact", Base: difftest.Num(1e3), Head: difftest.Num(2e3), Delta: 1e3, PerCallEffect: 1e3, Ratio: difftest.Num(2), BaseCount: difftest.Num(1), HeadCount: difftest.Num(1), Class: comparison.Regressed})
		c.Gates = append(c.Gates, comparison.Gate{Rule: "kernels " + n, Metric: "kernel.time_per_unit", Labels: report.Labels{"kernel": n}, Level: comparison.LevelWarn, Class: comparison.Regressed, Verdict: comparison.Warn, CountsAs: comparison.Warn, Reason: "slower: " + n})
	}
	return c
}

// voices is what each voice says of a comparison.
func voices(t *testing.T, c *comparison.Comparison) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for name, write := range map[string]func(w io.Writer, c *comparison.Comparison) error{
		"txt": func(w io.Writer, c *comparison.Comparison) error {
			return reportrender.Terminal(w, diffdoc.Terminal(c), reportrender.TerminalOptions{})
		},
		"md": func(w io.Writer, c *comparison.Comparison) error {
			return reportrender.Markdown(w, diffdoc.Browser(c, diffdoc.Links{}), reportrender.MarkdownOptions{})
		},
		"xml":  diffdoc.WriteJUnit,
		"csv":  diffdoc.WriteCSV,
		"json": comparison.Write,
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
	for name, c := range map[string]*comparison.Comparison{"regression": difftest.Regression(), "different": difftest.Different()} {
		for ext, b := range voices(t, c) {
			if ext != "json" {
				golden(t, name+"."+ext, b)
			}
		}
	}
}

func TestTheTerminalFits(t *testing.T) {
	for _, c := range []*comparison.Comparison{difftest.Regression(), difftest.Different(), hostile()} {
		for i, line := range strings.Split(string(voices(t, c)["txt"]), "\n") {
			if n := utf8.RuneCountInString(line); n > 100 {
				t.Errorf("line %d has %d columns: %s", i+1, n, line)
			}
		}
	}
}

// TestEveryVoiceSaysWhatWasChecked, even when nothing changed.
func TestEveryVoiceSaysWhatWasChecked(t *testing.T) {
	c := difftest.Regression()
	for i := range c.Primary {
		r := &c.Primary[i]
		r.Head, r.Ratio, r.Delta, r.Class, r.Interval = r.Base, difftest.Num(1), difftest.Num(0), comparison.Same, nil
	}
	c.Kernels, c.API, c.Structure, c.Attribution, c.Answer = c.Kernels[2:], c.API[2:], []comparison.Structural{}, comparison.Attribution{Rows: []comparison.AttributionRow{}}, comparison.Answer{}
	c.Fill()
	difftest.Judge(c, difftest.Side(), difftest.Side(), nil)
	for ext, b := range voices(t, c) {
		want := map[string]string{"txt": "5 gates checked: 5 passed. Compared 4 metrics, 3 kernels (2 paired), 40 → 38 units.", "md": "5 gates checked: 5 passed.", "xml": `tests="6" failures="0" errors="0"`, "json": `"gates_checked":5`, "csv": "metric,unit.time.p50"}[ext]
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
	literal(t, string(all["md"]))
}

// TestJUnitCountsWhatItHolds: a failure for each gate that fails, skipped where inconclusive, and first the verdict, which
// is red wherever the exit code is.
func TestJUnitCountsWhatItHolds(t *testing.T) {
	var file struct {
		Suites []struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Skipped  int `xml:"skipped,attr"`
			Errors   int `xml:"errors,attr"`
			Cases    []struct {
				Name    string    `xml:"name,attr"`
				Failure *struct{} `xml:"failure"`
				Skipped *struct{} `xml:"skipped"`
				Error   *struct{} `xml:"error"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	for _, c := range []*comparison.Comparison{difftest.Regression(), difftest.Different()} {
		file.Suites = nil
		if err := xml.Unmarshal(voices(t, c)["xml"], &file); err != nil {
			t.Fatal(err)
		}
		s := file.Suites[0]
		failed, skipped, errors := 0, 0, 0
		for _, x := range s.Cases {
			if x.Failure != nil {
				failed++
			}
			if x.Skipped != nil {
				skipped++
			}
			if x.Error != nil {
				errors++
			}
		}
		if v := s.Cases[0]; v.Name != "verdict" || (v.Failure != nil) != (c.Verdict == comparison.Fail) || (v.Error != nil) != (c.Verdict == comparison.Inconclusive) {
			t.Errorf("the verdict %s is %+v", c.Verdict, v)
		}
		if s.Tests != 1+len(c.Gates) || errors != s.Errors || len(s.Cases) != s.Tests || failed != s.Failures || skipped != s.Skipped || failed+skipped == 0 {
			t.Errorf("%d tests, %d failures, %d skipped: %+v", s.Tests, s.Failures, s.Skipped, s.Cases)
		}
	}
}

// TestCalibrationFitsTheTerminal, and says what was written where.
func TestCalibrationFitsTheTerminal(t *testing.T) {
	floor := func(metric string, labels report.Labels) noise.Metric {
		return noise.Metric{Metric: metric, Labels: labels, Unit: report.Nanoseconds, Values: []float64{10e6, 10.1e6, 9.9e6}, Noise: 0.01, DF: 2, Floor: 0.05, Threshold: 0.03, MDE: []float64{0.08, 0.06, 0.05}}
	}
	c := &noise.Calibration{
		Noise: noise.Noise{Captures: 3, Names: []string{"a1.json", "a2.json", "a3.json"}, Power: 0.8, Metrics: []noise.Metric{
			floor("kernel.time_per_unit", report.Labels{"kernel": "void flash_fwd<128>(Params)"}), floor("unit.time", report.Labels{}), floor("unit.time.mean", report.Labels{}),
		}, Unsteady: []noise.Unsteady{{Metric: "unit.launches", Labels: report.Labels{}, Min: 71, Max: 72}}, Skipped: []noise.Skip{{}}},
		FalseAlarms: 1,
		LeaveOneOut: []noise.LeftOut{{Name: "a1.json", Verdict: comparison.Fail, Alarms: []string{"unit.time.p50{}"}}, {Name: "a2.json", Verdict: comparison.Pass}, {Name: "a3.json", Verdict: comparison.Pass}},
	}
	var b bytes.Buffer
	if err := reportrender.Terminal(&b, diffdoc.CalibrationPage(c, "noise.json"), reportrender.TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(b.String(), "\n") {
		if utf8.RuneCountInString(line) > 100 {
			t.Errorf("too long: %s", line)
		}
	}
	golden(t, "calibration.txt", b.Bytes())
}
