package history_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/gate/history"
	"github.com/nsys-llm/explain/gate/history/historytest"
)

// TestSparkline: eight bars share the room between the lowest and the highest value alike; where that is less than 2 % of the
// highest, it is widened to that on both sides. 100 and 101: the room is 2.02, from 99.49, so that 100 is at
// 8·0.51/2.02 = 2.02, the third bar, and 101 at 8·1.51/2.02 = 5.98, the sixth.
func TestSparkline(t *testing.T) {
	for _, x := range []struct {
		values []float64
		want   string
	}{
		{nil, ""},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9}, "▁▂▃▄▅▆▇██"}, // 0, 1, 2 … 8 eighths; the last is the highest bar as well
		{[]float64{8, 0, 4}, "█▁▅"},
		{[]float64{100, 110, 100}, "▁█▁"},
		{[]float64{100, 101}, "▃▆"},
		{[]float64{100, 100, 100}, "▅▅▅"}, // half-way: 4 of 8
		{[]float64{7}, "▅"},
		{[]float64{0, 0}, "▁▁"},
	} {
		if got := history.Sparkline(x.values); got != x.want {
			t.Errorf("%v: %s, want %s", x.values, got, x.want)
		}
	}
}

// TestLineHoldsTheNewestNights: 32 nights, of which the two oldest took ten times as long and are no longer shown; the last
// took 480 µs after 29 of 400 µs.
func TestLineHoldsTheNewestNights(t *testing.T) {
	s := history.Series{Number: history.Number{Unit: "ns"}, Nights: []history.Night{{Value: 4e6}, {Value: 4e6}}}
	if got := (&history.Series{Number: history.Number{Unit: "ns"}}).Line(30); got != "" {
		t.Errorf("no nights: %q", got)
	}
	for range 29 {
		s.Nights = append(s.Nights, history.Night{Value: 400_000})
	}
	s.Nights = append(s.Nights, history.Night{Value: 480_000})
	if got, want := s.Line(30), strings.Repeat("▁", 29)+"█ 400 µs → 480 µs (+20.0 %, 30 nights)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	ratio := func(v float64) *float64 { return &v }
	pinned := strings.Repeat("a", 40)
	s = history.Series{Number: history.Number{Unit: "ns"}, Pinned: &pinned,
		Nights: []history.Night{{Value: 400_000, Ratio: ratio(1)}, {Value: 1, Ratio: ratio(1.5)}}}
	if got, want := s.Line(30), "▁█ 1.000 → 1.500 of aaaaaaaaaa (+50.0 %, 2 nights)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestBordersOfTwoWorkloads: two workloads of one branch run in the same minutes. Each has another driver from night 10
// on, and the chart of each shows its own.
func TestBordersOfTwoWorkloads(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "h.db"))
	for w, drivers := range map[string][2]string{"a": {"1", "2"}, "b": {"3", "4"}} {
		for i := range 20 {
			c := historytest.Capture{Noise: 0.004, Steps: 4, Seed: uint64(i) + uint64(w[0])*100, Driver: drivers[i/10]}
			p := night(i)
			p.Workload = w
			add(t, s, p, historytest.Report(t, c))
		}
	}
	var drawn []string
	for _, b := range check(t, s, history.CheckOptions{}).Page(nil) {
		if c, ok := b.(doc.Chart); ok {
			for _, line := range c.Series {
				if line.Name == "environment" {
					drawn = append(drawn, line.Words...)
				}
			}
		}
	}
	slices.Sort(drawn)
	if want := []string{"driver 1 → 2", "driver 3 → 4"}; !slices.Equal(drawn, want) {
		t.Errorf("%q, want %q", drawn, want)
	}
}
