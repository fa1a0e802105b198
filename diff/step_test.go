package diff_test

import (
	"math"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
)

// TestWhereInTheStep: the host of the mfu pair got slower in two ways. Its idle time grew by 2.74 ms: 1.84 ms in every step,
// 1.06 ms of it before kernels 66 to 80, and 0.89 ms in four single hiccups; worked out by hand from the event rows.
func TestWhereInTheStep(t *testing.T) {
	base := reportOfFile(t, sharedTrace(t, "nsysai_mfu_2gpu_before"), analyze.Options{})
	head := reportOfFile(t, sharedTrace(t, "nsysai_mfu_2gpu_after"), analyze.Options{})
	c, err := diff.Compare([]*report.Report{base}, []*report.Report{head}, diff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Step
	if s == nil || len(s.Rows) != 119+2 {
		t.Fatalf("step %+v", s)
	}
	us := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 500 {
			t.Errorf("%s %.1f µs, want %.0f", what, got/1e3, want/1e3)
		}
	}
	us("the unit changed by", s.Delta, 2_424_000)
	us("idle time", s.Idle, 2_736_000)
	us("in every step", s.Systematic, 1_844_000)
	us("in hiccups", s.Sporadic, 891_000)
	sum, local := 0.0, 0.0
	for i := range s.Rows {
		r := &s.Rows[i]
		if sum += r.Delta; r.BasePosition != nil && *r.BasePosition >= 66 && *r.BasePosition <= 80 {
			local += r.GapMedian
		}
		if r.Kind != comparison.RowPaired && i < 119 || r.HeadName != nil {
			t.Errorf("row %d is %s", i, r.Kind)
		}
	}
	us("before 66 to 80 in every step", local, 1_060_000)
	if math.Abs(sum-c.Attribution.TotalDelta) > 1e-6 {
		t.Errorf("rows sum to %v, the unit changed by %v", sum, c.Attribution.TotalDelta)
	}
	// The stretch where the change is dense begins four kernels earlier.
	if len(s.Stretches) == 0 || s.Stretches[0].From != 62 || s.Stretches[0].To != 80 {
		t.Errorf("stretches %+v", s.Stretches)
	}
	var gaps []int
	for _, h := range s.HeadHiccups {
		if h.Part == comparison.PartGap {
			gaps = append(gaps, h.Row)
		}
	}
	if len(gaps) != 4 || gaps[0] != 38 || gaps[1] != 12 || gaps[2] != 33 || gaps[3] != 76 {
		t.Errorf("hiccups before %v, want 38, 12, 33 and 76", gaps)
	}
	const where = "+1.292 ms before kernels #62–#80 in every step, of +1.844 ms idle in all; +891.3 µs in 4 single hiccups in 14 steps (up to 6.646 ms before kernel #38)"
	if s.Where != where {
		t.Errorf("where: %s", s.Where)
	}
}
