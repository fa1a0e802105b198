package breakdown

import (
	"maps"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/difftest"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// TestWaitingForOthersHasOneRow: idle time of 60 µs, of which 43 waits for other streams and 17 has another cause, is two rows
// with the words of each; what was told as waiting for others is no cause of the rest.
func TestWaitingForOthersHasOneRow(t *testing.T) {
	row := func(id, kind string, delta float64) comparison.AttributionRow {
		return comparison.AttributionRow{ID: id, Kind: kind, Delta: delta}
	}
	for cause, want := range map[string]string{
		"host": "GPU idle, host slower between calls", "sync": "GPU idle while the host waits in blocking calls", "": "GPU idle",
	} {
		c := &comparison.Comparison{Attribution: comparison.Attribution{Base: 500e3, TotalDelta: 60e3, Rows: []comparison.AttributionRow{
			row(comparison.ClassIdle, comparison.KindClass, 60e3), row("dependency", comparison.KindCause, 43e3),
		}}}
		if cause != "" {
			c.Attribution.Rows = append(c.Attribution.Rows, row(cause, comparison.KindCause, 17e3))
		}
		list := (&story{parts: &Parts{C: c, Base: &side.Side{}, Head: &side.Side{}}}).waitRows()
		if len(list) != 2 || list[0].Delta != 43e3 || list[0].What != "GPU idle: work waits for other streams or devices" ||
			list[1].Delta != 17e3 || list[1].What != want {
			t.Errorf("%q: %+v, want %q", cause, list, want)
		}
	}
}

// TestIdleInsideARange: the range with half of a change of idle time and more is its place, whether one side lists it or
// both do.
func TestIdleInsideARange(t *testing.T) {
	side := func(ns float64) *side.Side {
		r := difftest.Kinds(difftest.Kind{Phase: "step", Units: 8, Time: 200e6, Signature: "aaaaaa", Kernels: map[string]float64{"k": 1}})
		if ns > 0 {
			r.Metrics = append(r.Metrics, difftest.Metric("unit.idle_range_time", report.Nanoseconds, ns, "range", "enumerate(DataLoader)"))
		}
		captures := side.NewCaptures([]*report.Report{r})
		return &side.Side{Captures: captures, Views: []*side.View{side.NewView(captures[0], 0)}}
	}
	for _, c := range []struct {
		base, head, delta float64
		want              string
	}{
		{108e6, 144e6, 37e6, "inside enumerate(DataLoader)"}, {144e6, 108e6, -37e6, "inside enumerate(DataLoader)"},
		{0, 144e6, 150e6, "inside enumerate(DataLoader)"}, {108e6, 110e6, 37e6, ""}, {144e6, 108e6, 37e6, ""}, {0, 0, 37e6, ""},
	} {
		if got := idleRange(side(c.base), side(c.head), c.delta); got != c.want {
			t.Errorf("%v to %v ns, idle %+v: %q, want %q", c.base, c.head, c.delta, got, c.want)
		}
	}
}

// TestOneRun by hand: 300 µs in 4 runs are 75 µs each. Another number of runs, or runs that others hide, show no such sum.
func TestOneRun(t *testing.T) {
	kernel := func(base, head, baseRuns, headRuns float64) *comparison.Kernel {
		return &comparison.Kernel{Base: &base, Head: &head, BaseCount: &baseRuns, HeadCount: &headRuns, Delta: head - base}
	}
	for _, x := range []struct {
		name  string
		k     *comparison.Kernel
		delta float64 // of the unit's time
		want  string
	}{
		{"as often", kernel(300e3, 450e3, 4, 4), 150e3, "4 × 75 → 112.5 µs"},
		{"as often, to the digits that are shown", kernel(300e3, 450e3, 4, 4.0000001), 150e3, "4 × 75 → 112.5 µs"},
		{"more often", kernel(300e3, 450e3, 4, 6), 150e3, ""},
		{"in some steps", kernel(30e3, 45e3, 0.4, 0.4), 15e3, ""},
		{"half hidden", kernel(300e3, 450e3, 4, 4), 75e3, ""},
		{"only the head", &comparison.Kernel{Head: new(1e3), HeadCount: new(1.0), Delta: 1e3}, 1e3, ""},
		{"unknown", nil, 1e3, ""},
	} {
		if got := oneRun(&comparison.AttributionRow{Delta: x.delta}, x.k); got != x.want {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}

// TestHostTextNamesTheCalls by hand: of 10 ms more in CUDA calls, the largest calls are named that hold half of it
// together, up to two.
func TestHostTextNamesTheCalls(t *testing.T) {
	for _, c := range []struct {
		calls map[string]float64
		want  string
	}{
		{map[string]float64{"cudaFree": 6e6, "cudaMalloc": 4e6}, "+6 ms in cudaFree"},
		{map[string]float64{"cudaFree": 4.9e6, "cudaMalloc": 4.8e6, "cudaHostAlloc": 0.3e6}, "+4.9 ms in cudaFree and +4.8 ms in cudaMalloc"},
		{map[string]float64{"cudaFree": 2e6, "cudaMalloc": 2e6, "cudaHostAlloc": 2e6}, "+10 ms in CUDA calls other than launches"},
		{map[string]float64{"cudaFree": 6e6, "cudaMalloc": -4e6}, "+6 ms in cudaFree"},
	} {
		rows := split{{ID: "api", Kind: comparison.KindHost, Delta: 10e6}}
		for _, name := range slices.Sorted(maps.Keys(c.calls)) {
			rows = append(rows, comparison.AttributionRow{ID: name, Kind: comparison.KindCall, Category: "api", Delta: c.calls[name]})
		}
		if got := rows.hostText(12e6); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
