package breakdown

import (
	"testing"

	"github.com/nsys-llm/explain/diff/comparison"
)

// TestWaitingForOthersHasOneRow: idle time of 60 µs, of which 43 waits for other streams and 17 has another cause, is two rows
// with the words of each; what was told as waiting for others is no cause of the rest.
func TestWaitingForOthersHasOneRow(t *testing.T) {
	row := func(id, kind string, delta float64) comparison.AttributionRow {
		return comparison.AttributionRow{ID: id, Kind: kind, Delta: delta}
	}
	for cause, want := range map[string]string{
		"host": "host slower between calls, GPU idle", "sync": "GPU idle while the host waits in blocking calls", "": "GPU idle",
	} {
		c := &comparison.Comparison{Attribution: comparison.Attribution{Base: 500e3, TotalDelta: 60e3, Rows: []comparison.AttributionRow{
			row(comparison.ClassIdle, comparison.KindClass, 60e3), row("dependency", comparison.KindCause, 43e3),
		}}}
		if cause != "" {
			c.Attribution.Rows = append(c.Attribution.Rows, row(cause, comparison.KindCause, 17e3))
		}
		list := (&story{Parts: &Parts{C: c}}).waitRows()
		if len(list) != 2 || list[0].Delta != 43e3 || list[0].What != "GPU idle: work waits for other streams or devices" ||
			list[1].Delta != 17e3 || list[1].What != want {
			t.Errorf("%q: %+v, want %q", cause, list, want)
		}
	}
}
