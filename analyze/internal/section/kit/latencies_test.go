package kit

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

// Where the client and the server state the same latency, the client's is in the report, and its section says so. Other
// metrics that appear twice are for Validate to refuse.
func TestDedupeLatencies(t *testing.T) {
	client, server := 1.0, 2.0
	r := &report.Report{
		Metrics: []report.Metric{
			{ID: "serve.ttft", Value: &client}, {ID: "serve.ttft", Value: &server}, {ID: "serve.ttft", Labels: report.Labels{"engine": "0"}, Value: &server}, {ID: "x", Value: &client}, {ID: "x", Value: &server},
		},
		Sections: []report.Section{{ID: "load"}, {ID: "serving"}},
	}
	dedupeLatencies(r)
	if len(r.Metrics) != 4 || *r.Metrics[0].Value != client || r.Metrics[1].Labels["engine"] != "0" {
		t.Errorf("%+v", r.Metrics)
	}
	if notes := r.Sections[0].Notes; len(notes) != 1 || !strings.Contains(notes[0], "The server states serve.ttft too") || r.Sections[1].Notes != nil {
		t.Errorf("%+v", r.Sections)
	}
}
