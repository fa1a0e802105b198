package diff_test

import (
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest/mutant"
	"github.com/nsys-llm/explain/diff/comparison"
)

// A gate judges the number of its row: on two GPUs of unlike noise, both give one interval. A row that is not settled
// says what would settle it.
func TestGatesJudgeTheNumbersOfTheirRows(t *testing.T) {
	recipe := mutant.Recipes()[3]
	capture, err := recipe.Capture(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	base := mutantReport(t, capture, nil)
	head := mutantReport(t, capture, []mutant.Edit{mutant.Noise(0.02, 7), mutant.Collectives(1, 1.3)})
	c := compareSides(t, []*report.Report{base}, []*report.Report{head})
	compared, devices := 0, 0
	for _, r := range c.Primary {
		if _, ok := r.Labels["device"]; ok {
			devices++
		}
		if r.Class == comparison.Unsettled && r.NeedCaptures == nil {
			t.Errorf("%s{%s}: nothing says what would settle it: %s", r.Metric, r.Labels, r.Why)
		}
		at := slices.IndexFunc(c.Gates, func(g comparison.Gate) bool { return g.Of(&r) && g.Tested != nil })
		if at < 0 || r.Interval == nil {
			continue
		}
		compared++
		if got := c.Gates[at].Tested; math.Abs(got.Low-(r.Interval.Low-1)) > 1e-9 || math.Abs(got.High-(r.Interval.High-1)) > 1e-9 {
			t.Errorf("%s{%s}: the row has %+v, the gate %+v", r.Metric, r.Labels, r.Interval, got)
		}
	}
	if compared < 2 || devices == 0 {
		t.Errorf("%d rows with gates, %d of single devices: %+v", compared, devices, c.Primary)
	}
}

// A copy in every seventh step is told with these steps, though the program makes such copies anyway.
func TestCopiesInSomeStepsAreToldWithThese(t *testing.T) {
	capture, err := mutant.Recipes()[1].Capture(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	base := mutantReport(t, capture, nil)
	head := mutantReport(t, capture, []mutant.Edit{mutant.Copy(mutant.On{Every: 7}, false, 600_000)})
	c := compareSides(t, []*report.Report{base}, []*report.Report{head})
	if c.Verdict != comparison.Fail {
		t.Errorf("verdict %s", c.Verdict)
	}
	says(t, c, "copies in 5 of ", "every 7th")
}

// Every other step of a real capture waits for its input. A median between two lengths of step says nothing of its halves;
// the mean is judged, and neither half fails nor stays open.
func TestAMedianBetweenTwoLengthsIsNotJudged(t *testing.T) {
	t.Parallel()
	whole := sharedReport(t, "aip_opt1")
	if whole == nil {
		t.Skip("the shared captures are not there")
	}
	middle, _ := middleStep(whole)
	half := func(from, to time.Duration) []*report.Report {
		path := filepath.Join("..", "..", "shared", "traces", "aip_opt1.sqlite")
		result, err := analyze.Run(t.Context(), path, analyze.Options{Window: analyze.WindowOptions{From: &from, To: &to}})
		if err != nil {
			t.Fatal(err)
		}
		return []*report.Report{result.Report}
	}
	first, second := half(0, middle), half(middle, time.Duration(whole.Window.Length))
	for _, sides := range [][2][]*report.Report{{first, second}, {second, first}} {
		if c := compareSides(t, sides[0], sides[1]); exitOf(c) != 0 {
			t.Errorf("%s: %s, %s", c.Verdict, c.Cause, failing(c))
		}
	}
}
