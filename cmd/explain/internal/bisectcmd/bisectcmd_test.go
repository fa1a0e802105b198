package bisectcmd

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/comparison"
)

// steps is a report whose main kind of unit takes 10 µs and another one 4 µs; device 1 is listed too.
func steps() *report.Report {
	time := func(group string, p50 float64, labels report.Labels) report.Metric {
		return report.Metric{ID: "unit.time", Group: group, Labels: labels, Summary: &report.Summary{P50: p50}}
	}
	return &report.Report{
		Unit: report.Unit{Groups: []report.UnitGroup{{ID: "prefill"}, {ID: "decode", Main: true}}},
		Metrics: []report.Metric{
			time("decode", 11_000, report.Labels{"device": "1"}), time("decode", 10_000, report.Labels{}),
			time("prefill", 4_000, report.Labels{"phase": "prefill"}),
		},
	}
}

func TestMainStep(t *testing.T) {
	for kind, want := range map[string]float64{"": 10_000, "decode": 10_000, "prefill": 4_000} {
		got, of, err := mainStep(steps(), kind)
		if err != nil || got != want || kind != "" && of != kind {
			t.Errorf("kind %q: %v of %q, %v", kind, got, of, err)
		}
	}
	if _, _, err := mainStep(steps(), "train"); err == nil || !strings.Contains(err.Error(), `no step of kind "train"`) {
		t.Errorf("error %v", err)
	}
	none := &report.Report{Unit: report.Unit{Kind: "none", Why: "one kernel ran"}}
	if _, _, err := mainStep(none, ""); err == nil || !strings.Contains(err.Error(), "one kernel ran") {
		t.Errorf("error %v", err)
	}
}

// A file that a command leaves again is no second capture. Reports of evidence have no identity, and are no copies.
func TestCopiesAreFound(t *testing.T) {
	of := func(id string) *report.Report {
		r := &report.Report{}
		if id != "" {
			r.Capture.Content = &id
		}
		return r
	}
	log := []captured{{report: of("a")}, {Skipped: "no compiler"}, {report: of("")}, {report: of("b")}}
	for id, want := range map[string]int{"a": 0, "b": 3, "c": -1, "": -1} {
		if got := twin(log, of(id)); got != want {
			t.Errorf("%q is a copy of capture %d, want %d", id, got, want)
		}
	}
}

// The search knows that there is a change: the answer names its direction even where so few captures do not settle it.
func TestCauseHasADirection(t *testing.T) {
	if got := causeOf(&comparison.Comparison{Cause: "different work"}); got != "different work" {
		t.Errorf("cause %q", got)
	}
	to, change := 12_000.0, 0.2
	c := &comparison.Comparison{Comparable: true, Answer: comparison.Answer{
		Direction: "", Change: &change, To: &to, Unit: report.Nanoseconds,
		Rows: []comparison.AnswerRow{{Delta: 2_000, What: "attention"}}, Notes: []string{"more captures"},
	}}
	got := causeOf(c)
	if !strings.Contains(got, "slower") || !strings.Contains(got, "attention") || strings.Contains(got, "more captures") {
		t.Errorf("cause %q", got)
	}
	if c.Answer.Direction != "" {
		t.Error("the comparison itself was changed")
	}
}

func TestUntilRefusesWhatCannotEnd(t *testing.T) {
	if d, err := (&Until{}).Decider("", nil); d != nil || err != nil {
		t.Errorf("%v, %v", d, err)
	}
	for tolerance, want := range map[string]string{"3%": "--budget", "much": "--budget"} {
		if _, err := (&Until{On: true, tolerance: tolerance}).Decider("", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", tolerance, err)
		}
	}
	if _, err := (&Until{On: true, budget: 1, tolerance: "much"}).Decider("", nil); err == nil || !strings.Contains(err.Error(), "--tolerance much") {
		t.Errorf("error %v", err)
	}
}
