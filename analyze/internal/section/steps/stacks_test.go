package steps_test

import (
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

// TestPositionsAreInsideRanges: all calls of a step are in its marker, whose numbers are folded.
func TestPositionsAreInsideRanges(t *testing.T) {
	steps := sectiontest.Analyse(t, unitSteps(), analyze.Options{}).Report.Unit.Steps
	list, err := steps.List[0].Positions()
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range list {
		if got := steps.Stack(p.Inside); !slices.Equal(got, []string{"ProfilerStep#"}) {
			t.Errorf("position %d is inside %v", i, got)
		}
	}
	if steps.Stack(-1) != nil {
		t.Error("no range, and yet one")
	}
}

// TestPathOfAStepIsTheTables: the path that is drawn has no hole, and by part it is what the table of the section says.
func TestPathOfAStepIsTheTables(t *testing.T) {
	res := sectiontest.Analyse(t, unitSteps(), analyze.Options{})
	l := sectiontest.Looker{TB: t, Report: res.Report}
	u := l.Unit.Steps.List[0].Shown[0]
	got, sum := map[string]int64{}, int64(0)
	for i := 0; i < len(u.Path); i += 2 {
		got[report.PathParts[u.Path[i]]] += u.Path[i+1]
		sum += u.Path[i+1]
	}
	if u.Which != "median" || sum != u.Duration || sum != 200*unitUS {
		t.Errorf("the path of the %s unit is %d ns long, the unit %d", u.Which, sum, u.Duration)
	}
	want := map[string]int64{}
	table := l.Table("critical_path", "critical_path")
	for i := range table.Rows {
		if unit, _ := table.Rows[i][0].Str(); unit == "median" {
			part, _ := table.Rows[i][1].Str()
			ns, _ := table.Rows[i][4].Int()
			want[part] += ns
		}
	}
	if len(want) < 3 {
		t.Errorf("the table has %v", want)
	}
	for part, ns := range want {
		if got[part] != ns {
			t.Errorf("%s: %d ns are drawn, the table has %d", part, got[part], ns)
		}
	}
}
