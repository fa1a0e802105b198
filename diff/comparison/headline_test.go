package comparison

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

// All gates pass. The median fell by 46 %, which its row takes for certain and its gate, of three kinds of unit, does not;
// the mean fell by 13 %, which the gate knows for certain by its parts alone; the base's work takes 11 % less. From the
// other side the mean's gate is the one that fails by most, so it leads from here too.
func TestWhatFailsTheOtherWayLeads(t *testing.T) {
	c := &Comparison{Verdict: Pass}
	add := func(metric string, base, head float64, row, gate Class) {
		r := Row{Metric: metric, Labels: report.Labels{}, Unit: report.Nanoseconds, Base: &base, Head: &head, Class: row}
		r.Change()
		c.Primary = append(c.Primary, r)
		c.Gates = append(c.Gates, Gate{Metric: metric, Labels: report.Labels{}, Level: LevelError, Limit: new(0.03),
			Verdict: Pass, Class: gate})
	}
	add("work.time", 1e6, 0.89e6, Improved, Improved)
	add("unit.time.p50", 1e6, 0.54e6, Improved, Unsettled)
	add("unit.time.mean", 1e6, 0.87e6, Unsettled, Improved)
	c.Gates[2].ByParts = true
	if row, _ := c.Headline(); row == nil || row.Metric != "unit.time.mean" {
		t.Errorf("%+v leads", row)
	}
	c.Primary[2].Head = new(0.98e6) // by which the row keeps the rule, where the parts would not
	c.Primary[2].Change()
	c.Gates[0].Class = Unsettled
	if row, _ := c.Headline(); row == nil || row.Metric != "unit.time.mean" {
		t.Errorf("%+v leads, where parts would fail the mean", row)
	}
	c.Gates[0].Class, c.Gates[0].P = Improved, new(0.01) // the work is certain by itself, the mean by its parts alone
	c.Primary[2].Head = new(0.87e6)
	c.Primary[2].Change()
	c.Primary[2].Class, c.Gates[2].P, c.Policy.Alpha = Improved, new(0.076), 0.05
	if row, _ := c.Headline(); row == nil || row.Metric != "unit.time.mean" {
		t.Errorf("%+v leads, though the mean falls by more and is certain by its parts", row)
	}
	c.Gates[2].ByParts, c.Gates[2].Class, c.Gates[0].Class = false, Unsettled, Unsettled // nothing is certain: the largest leads
	if row, _ := c.Headline(); row == nil || row.Metric != "unit.time.p50" {
		t.Errorf("%+v leads where nothing is certain", row)
	}
	c.Gates[1].Class, c.Gates[2].Class = Improved, Improved // both changed for certain, the mean alone by more than its rule
	c.Primary[2].Class, c.Policy.Alpha = Improved, 0.05
	c.Gates[1].P, c.Gates[2].P = new(1.0), new(0.01)
	c.Primary[2].Head = new(0.9e6)
	c.Primary[2].Change()
	if row, _ := c.Headline(); row == nil || row.Metric != "unit.time.mean" {
		t.Errorf("%+v leads, which would not fail the other way", row)
	}
}

// All work and the mean step change by the same, but for how the sums are rounded: the first leads, whichever side is the base.
func TestTheFirstOfEqualChangesLeads(t *testing.T) {
	for _, more := range []float64{1, 1 + 1e-15, 1 - 1e-15} {
		c := &Comparison{Verdict: Fail}
		for i, metric := range []string{"work.time", "unit.time.mean"} {
			base, head := 1e6, 1.29e6
			if i == 1 {
				head *= more
			}
			r := Row{Metric: metric, Labels: report.Labels{}, Unit: report.Nanoseconds, Base: &base, Head: &head, Class: Regressed}
			r.Change()
			c.Primary = append(c.Primary, r)
			c.Gates = append(c.Gates, Gate{Metric: metric, Labels: report.Labels{}, Level: LevelError, Limit: new(0.03), Verdict: Fail,
				Class: Regressed})
		}
		if row, _ := c.Headline(); row == nil || row.Metric != "work.time" {
			t.Errorf("%v: %+v leads", more, row)
		}
	}
}

// A study has no rule that held: what is not settled is not unchanged. A mean and a percentile are named, a median is not.
func TestAnswerOfStudyIsNotUnchanged(t *testing.T) {
	row := Row{Metric: "serve.generation_throughput.p50", Unit: report.PerSecond, Class: Unsettled, Interval: &Interval{Low: 0.03, High: 1.22}}
	base, head := 18.3, 2.3
	row.Base, row.Head = &base, &head
	row.Change()
	for verdict, want := range map[Verdict]Direction{None: NotSettled, Pass: Unchanged, Inconclusive: NotSettled} {
		var a Answer
		if a.OfRow(&row, verdict); a.Direction != want {
			t.Errorf("%s: %s, want %s", verdict, a.Direction, want)
		}
	}
	from, to := 1e6, 2e6
	for metric, want := range map[string]string{"unit.time.p50": "1 → 2 ms per step, median", "unit.time.mean": "1 → 2 ms per step, mean",
		"unit.time.p99": "1 → 2 ms per step, p99"} {
		a := Answer{Metric: metric, From: &from, To: &to, Unit: report.Nanoseconds, Per: "step"}
		if got := a.Sides(); got != want {
			t.Errorf("%s: %q, want %q", metric, got, want)
		}
	}
}

// What the causes leave is told unless they are rounded by as much, or it is nothing.
func TestTheRestOfACauseIsToldIfItShows(t *testing.T) {
	for _, c := range []struct {
		delta, rest float64
		want        string
	}{{2.345e6, -5, ""}, {-2.345e6, 2_300, ""}, {2.345e6, 2_400, "+2.4 µs"}, {2_000, -5, "-5 ns"}, {100, 0.4, ""}, {20_600, 6_600, "+6.6 µs"}} {
		a := Answer{Rest: &c.rest, Rows: []AnswerRow{{Delta: 1}, {Delta: c.delta}}}
		if got := a.RestText(); got != c.want {
			t.Errorf("%v beside %v: %q, want %q", c.rest, c.delta, got, c.want)
		}
	}
}
