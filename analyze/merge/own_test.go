package merge

import (
	"context"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

func num(v float64) *float64 { return &v }

// Of two stages with windows of 1000 ns one only receives for 300 ns: a bubble of 30 %. One spends 300 ns in experts and
// the other 100: half as much again as the mean of 200. Both see both GPUs of their host draw 10 and 20 J, one of them
// 20.5: 30.5 J.
func TestBubblesExpertsAndEnergyOfRanks(t *testing.T) {
	stage := func(n int, p2p, experts, second float64) *Capture {
		c := tiny(n)
		c.Tracks[0].Device = 0
		ns := int64(experts)
		c.Own = Own{P2P: map[int64]int64{0: int64(p2p)}, Experts: &ns, Energy: map[int64]*float64{0: num(10), 1: num(second)},
			Power: map[int64]float64{1: 100 + second}}
		return c
	}
	r, err := Report(context.Background(), from(written(t, stage(0, 300, 300, 20)), written(t, stage(1, 0, 100, 20.5))), Options{Rules: testRules})
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
	// a bubble of 80 ns is 8 %, which is medium, and comes after the 10 % of the experts
	small, err := Report(context.Background(), from(written(t, stage(0, 80, 300, 20)), written(t, stage(1, 0, 100, 20.5))), Options{Rules: testRules})
	if err != nil {
		t.Fatal(err)
	}
	if f := small.Findings; len(f) != 2 || f[0].ID != "rank_experts" || f[0].Severity != report.High ||
		f[1].ID != "rank_bubbles" || f[1].Severity != report.Medium {
		t.Errorf("%+v", f)
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
	a, b := tiny(0), tiny(1)
	a.Own.Energy, b.Own.Energy = map[int64]*float64{0: num(10)}, map[int64]*float64{1: nil}
	r, err := Report(context.Background(), from(written(t, a), written(t, b)), Options{Rules: testRules})
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
