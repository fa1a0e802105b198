package analyze

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

// Every metric says what happens to it when the capture is twice as long, and sections that share a metric say the same: a
// rule about change is refused for totals alone.
func TestScales(t *testing.T) {
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
}

// What is of one unit of work, a rate or a ratio is no total, whoever declared it; and what a name calls so is. A share of
// the units is a ratio, and what they make each second a rate.
func TestScalesFitUnits(t *testing.T) {
	for _, s := range sections {
		for _, d := range s.Metrics {
			perUnit := strings.HasSuffix(d.ID, "_per_unit") || strings.HasPrefix(d.ID, "unit.") && d.ID != "unit.count" && d.Unit != report.Ratio && d.Unit != report.PerSecond
			switch {
			case perUnit != (d.Scale == report.PerUnit):
				t.Errorf("%s has scale %s", d.ID, d.Scale)
			case (d.Unit == report.Ratio || d.Unit == report.PerSecond) && d.Scale != report.Level:
				t.Errorf("%s is a %s with scale %s", d.ID, d.Unit, d.Scale)
			}
		}
	}
}
