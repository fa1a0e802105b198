package analyze

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

// testdata/scales.txt says of every metric what happens to it when the capture is twice as long, and whether it can carry
// statistics. Each line was read against the meaning of its metric: a rule about change is refused for totals alone.
func TestScales(t *testing.T) {
	b, err := os.ReadFile("testdata/scales.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		id, scale, _ := strings.Cut(line, " ")
		want[id] = scale
	}
	got := map[string]string{}
	for _, s := range sections {
		for _, d := range s.Metrics {
			switch d.Scale {
			case report.Total, report.PerUnit, report.Level, report.Event:
			default:
				t.Errorf("%s of section %s has no scale: is it a total, per_unit, a level or an event?", d.ID, s.ID)
			}
			scale := string(d.Scale)
			if d.Stats {
				scale += " stats"
			}
			if other, ok := got[d.ID]; ok && other != scale {
				t.Errorf("two sections disagree on %s: %s and %s", d.ID, other, scale)
			}
			got[d.ID] = scale
		}
	}
	for _, id := range slices.Sorted(maps.Keys(got)) {
		if want[id] != got[id] {
			t.Errorf("%s is declared as %q; testdata/scales.txt says %q: read its meaning, and correct what is wrong", id, got[id], want[id])
		}
	}
	for id := range want {
		if got[id] == "" {
			t.Errorf("testdata/scales.txt lists %s, which no section declares", id)
		}
	}
}

// What is of one unit of work, a rate or a ratio is no total, whoever declared it; and what a name calls so is.
func TestScalesFitUnits(t *testing.T) {
	for _, s := range sections {
		for _, d := range s.Metrics {
			perUnit := strings.HasSuffix(d.ID, "_per_unit") || strings.HasPrefix(d.ID, "unit.") && d.ID != "unit.count"
			switch {
			case perUnit != (d.Scale == report.PerUnit):
				t.Errorf("%s has scale %s", d.ID, d.Scale)
			case (d.Unit == report.Ratio || d.Unit == report.PerSecond) && d.Scale != report.Level:
				t.Errorf("%s is a %s with scale %s", d.ID, d.Unit, d.Scale)
			}
		}
	}
}
