package side

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

// A window of 100 ns from 1000 on. On device 0 units run from 1010 to 1030 and from 1040 to 1060, and one of them from 1055
// to 1080 that overlaps: 10 before, a gap of 10 over two gaps, 20 after. What runs on device 1, or outside the window, does
// not count.
func TestTimeOutsideTheUnits(t *testing.T) {
	series := report.NewUnitSeries([]report.UnitPoint{
		{Device: 0, Number: 0, State: 4, Start: 900, Duration: 20}, {Device: 0, Number: 1, Start: 1010, Duration: 20},
		{Device: 0, Number: 2, Start: 1040, Duration: 20}, {Device: 0, Number: 3, State: 1, Start: 1055, Duration: 25},
		{Device: 1, Number: 0, Start: 1000, Duration: 100},
	})
	r := &report.Report{Window: report.Window{Start: 1000, End: 1100, Length: 100}, Unit: report.Unit{Series: series}}
	c := NewCaptures([]*report.Report{r})[0]
	if o, ok := OutsideUnits(c.Report, 0); !ok || o != (Outside{Before: 10, Between: 5, After: 20}) {
		t.Errorf("%+v, %v", o, ok)
	}
	if _, ok := OutsideUnits(c.Report, 2); ok {
		t.Error("a device without units")
	}
	series.Every = 2
	if _, ok := OutsideUnits(c.Report, 0); ok {
		t.Error("a series that leaves units out")
	}
}
