package look

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/diff/comparison"
)

// Flags that the code asks for by name are flags of report.
func TestNamedFlagsExist(t *testing.T) {
	fl := newReport(&cmdenv.Env{Getenv: os.Getenv}).Flags()
	for _, name := range append(ofOneCapture, ofAnAnalysis...) {
		if fl.Lookup(name) == nil {
			t.Errorf("report has no flag --%s", name)
		}
	}
}

// Evidence is what its flag says; of a glob each match is one, and one that matches nothing is a mistake.
func TestEvidenceFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.csv", "b.csv"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	glob := filepath.Join(dir, "*.csv")
	got, err := (&reportFlags{ncu: []string{glob}, prometheus: []string{"metrics.prom"}, evidence: []string{"lost"}}).evidenceFiles()
	want := []analyze.Evidence{
		{Path: filepath.Join(dir, "a.csv"), Kind: analyze.EvidenceNCU, Pattern: glob},
		{Path: filepath.Join(dir, "b.csv"), Kind: analyze.EvidenceNCU, Pattern: glob},
		{Path: "metrics.prom", Kind: analyze.EvidencePrometheus}, {Path: "lost"},
	}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%+v, %v", got, err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
	for _, wrong := range []string{"", filepath.Join(dir, "*.txt"), "[a-"} {
		if list, err := (&reportFlags{serverLogs: []string{wrong}}).evidenceFiles(); err == nil {
			t.Errorf("%q is %+v", wrong, list)
		}
	}
}

// A folder that is named like an address does not stand in for it: a checkout may hold one.
func TestRunOfAnAddress(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("http:/h/run", 0o755); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"a.sqlite", "b.sqlite"} {
		if err := os.WriteFile("http:/h/run/"+name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := runOf([]string{"http://h/run"}); list != nil || err == nil || !strings.Contains(err.Error(), "is an address") {
		t.Errorf("%q, %v", list, err)
	}
}

// A paired kernel is found by its position on either side; one that only a side has changed by nothing that is known.
func TestChangesOfAStep(t *testing.T) {
	at := func(n int64) *int64 { return &n }
	s := &comparison.Step{Rows: []comparison.StepRow{
		{Kind: comparison.RowPaired, BasePosition: at(0), HeadPosition: at(1), BaseKernel: 100, HeadKernel: 130},
		{Kind: comparison.RowAdded, HeadPosition: at(0), HeadKernel: 50},
	}}
	base, head := changesOf(s, true), changesOf(s, false)
	if len(base) != 1 || base[0] != 30 || len(head) != 1 || head[1] != 30 {
		t.Errorf("base %v, head %v", base, head)
	}
	if changesOf(nil, true) != nil {
		t.Error("there are changes without a step")
	}
}

// What is compared is prefill of one request, though decode is the main kind: of its two kinds the one whose steps are
// recorded, and on the head the one with the batch of the head.
func TestKindOfAComparison(t *testing.T) {
	at := func(n int64) *int64 { return &n }
	r := &report.Report{Unit: report.Unit{
		Groups: []report.UnitGroup{{ID: "decode", Main: true, Phase: "decode", Batch: at(1)}, {ID: "prefill", Phase: "prefill", Batch: at(1)},
			{ID: "prefill #2", Phase: "prefill", Batch: at(1)}, {ID: "prefill/2", Phase: "prefill", Batch: at(2)}},
		Steps: &report.UnitSteps{List: []*report.UnitStep{{Group: "decode"}, {Group: "prefill #2"}}}}}
	u := &comparison.Unit{Phase: "prefill", Batch: at(1), HeadBatch: at(2)}
	for _, c := range []struct {
		u    *comparison.Unit
		head bool
		want string
	}{{u, false, "prefill #2"}, {u, true, "prefill/2"}, {&comparison.Unit{Phase: "decode", Batch: at(1)}, true, "decode"},
		{&comparison.Unit{Batch: at(1)}, false, ""}} {
		if got := kindOf(r, c.u, c.head); got != c.want {
			t.Errorf("%+v, head %v: %q, want %q", c.u, c.head, got, c.want)
		}
	}
}
