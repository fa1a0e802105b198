package kit

import (
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
)

// ClientMetrics are latencies that both a load, at the client, and a server's own metrics or log may state.
var ClientMetrics = map[string]bool{"serve.ttft": true, "serve.tpot": true, "serve.itl": true, "serve.e2e": true}

// dedupeLatencies keeps one of each such latency, that of the section that comes first in the report: measurements of a
// client come before statements of a server. A note of that section says so.
func dedupeLatencies(r *report.Report) {
	seen := map[string]bool{}
	var again []string
	r.Metrics = slices.DeleteFunc(r.Metrics, func(m report.Metric) bool {
		if !ClientMetrics[m.ID] {
			return false
		}
		key := report.MetricKey(m.ID, m.Labels)
		told := seen[key]
		if seen[key] = true; told {
			again = append(again, m.ID)
		}
		return told
	})
	for i := range r.Sections {
		if s := &r.Sections[i]; s.ID == "load" && len(again) > 0 {
			s.Notes = append(s.Notes, "The server states "+strings.Join(again,
				", ")+" too. This report uses the client's.")
		}
	}
}
