package report_test

import (
	"strconv"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

// A metric is found by exactly its labels, among few metrics of an id as among many.
func TestIndexMetric(t *testing.T) {
	r := &report.Report{}
	add := func(id string, l report.Labels) { r.Metrics = append(r.Metrics, report.Metric{ID: id, Labels: l}) }
	add("few", nil)
	add("few", report.Labels{"device": "0"})
	add("many", nil)
	for i := range 100 {
		add("many", report.Labels{"kernel": strconv.Itoa(i), "phase": "decode"})
	}
	x := report.NewIndex(r)
	for _, c := range []struct {
		id   string
		l    report.Labels
		want int // index into the metrics, or -1
	}{
		{"few", nil, 0}, {"few", report.Labels{}, 0}, {"few", report.Labels{"device": "0"}, 1},
		{"few", report.Labels{"device": "1"}, -1}, {"few", report.Labels{"device": "0", "phase": "decode"}, -1},
		{"many", nil, 2}, {"many", report.Labels{"phase": "decode", "kernel": "7"}, 10}, {"many", report.Labels{"kernel": "7"}, -1},
		{"none", nil, -1},
	} {
		var want *report.Metric
		if c.want >= 0 {
			want = &r.Metrics[c.want]
		}
		if got := x.Metric(c.id, c.l); got != want {
			t.Errorf("%s{%s}: %v", c.id, c.l, got)
		}
	}
	if n := len(x.Metrics("many")); n != 101 {
		t.Errorf("%d metrics are called many", n)
	}
	if list := x.Metrics("none"); list != nil {
		t.Errorf("metrics without an id: %v", list)
	}
}
