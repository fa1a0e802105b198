package merge

import (
	"context"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

// with adds metrics to a tiny capture.
func with(c *Capture, metrics ...report.Metric) *Capture {
	c.Report.Metrics = append(c.Report.Metrics, metrics...)
	return c
}

func metricOf(id string, v *float64, unit string, labels report.Labels) report.Metric {
	return report.Metric{ID: id, Labels: labels, Value: v, Unit: unit, Better: report.Lower, Assume: report.Noisy,
		Scale: report.Total, N: 1, Lifecycle: report.Stable,
		Source: report.Source{Tables: []string{"KERNEL"}, Columns: []string{"start"}, Rows: 1}}
}

func num(v float64) *float64 { return &v }

// Of two stages with windows of 1000 ns one only receives for 300 ns: a bubble of 30 %. One spends 300 ns in experts and
// the other 100: half as much again as the mean of 200. Both see both GPUs of their host draw 10 and 20 J, one of them
// 20.5: 30.5 J.
func TestBubblesExpertsAndEnergyOfRanks(t *testing.T) {
	stage := func(n int, p2p, experts, second float64) *Capture {
		c := tiny(n)
		c.Tracks[0].Device = 0
		return with(c,
			metricOf("comm.exposed_time", num(p2p), report.Nanoseconds, report.Labels{"collective": "SendRecv", "device": "0"}),
			metricOf("comm.exposed_time", num(7), report.Nanoseconds, report.Labels{"collective": "AllReduce", "device": "0"}),
			metricOf("component.gpu_time", num(experts), report.Nanoseconds, report.Labels{"component": "moe"}),
			metricOf("gpu.energy", num(10), report.Joules, report.Labels{"device": "0"}),
			metricOf("gpu.energy", num(second), report.Joules, report.Labels{"device": "1"}),
			metricOf("gpu.power", num(100+second), report.Watts, report.Labels{"device": "1"}))
	}
	r, err := Report(context.Background(), from(written(t, stage(0, 300, 300, 20)), written(t, stage(1, 0, 100, 20.5))), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id   string
		l    report.Labels
		want float64
	}{
		{"rank.bubble_time", nil, 300}, {"rank.bubble_time", report.Labels{"rank": "0"}, 300},
		{"rank.bubble_ratio", report.Labels{"rank": "0"}, 0.3}, {"rank.bubble_ratio", report.Labels{"rank": "1"}, 0},
		{"rank.expert_time", report.Labels{"rank": "1"}, 100}, {"ranks.expert_imbalance", nil, 1.5},
		{"ranks.energy", nil, 30.5}, {"ranks.power", nil, 120.5},
	} {
		if m := r.Find(c.id, c.l); m == nil || m.Value == nil || *m.Value != c.want {
			t.Errorf("%s{%s} is %+v, want %v", c.id, c.l, m, c.want)
		}
	}
	for _, want := range []string{
		"Rank 0 only waits for its neighbours in the pipeline for 30.0 % of its time",
		"Experts are uneven: rank 0 spends 150.0 % of the mean in theirs",
	} {
		if !slices.ContainsFunc(r.Findings, func(f report.Finding) bool { return f.Title == want && f.Severity == report.High }) {
			t.Errorf("no finding %q in %+v", want, r.Findings)
		}
	}
}

// Energy of which one GPU's is unknown is unknown, never what is left; a run without pipeline or experts has no such
// metrics.
func TestUnknownEnergyStaysUnknown(t *testing.T) {
	a := with(tiny(0), metricOf("gpu.energy", num(10), report.Joules, report.Labels{"device": "0"}))
	b := with(tiny(1), metricOf("gpu.energy", nil, report.Joules, report.Labels{"device": "1"}))
	r, err := Report(context.Background(), from(written(t, a), written(t, b)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m := r.Find("ranks.energy", nil); m == nil || m.Value != nil {
		t.Errorf("%+v", m)
	}
	for _, id := range []string{"rank.bubble_time", "ranks.expert_imbalance", "ranks.power"} {
		if m := r.Find(id, nil); m != nil {
			t.Errorf("%+v", m)
		}
	}
}
