package merge

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/merge/ranks"
	"github.com/nsys-llm/explain/analyze/report"
)

// many are captures of a run of 300 ranks, one GPU each. The step of rank n takes 1,000,000 ns + n, and all ranks meet in
// 200 collectives, 1 ms apart, to which rank 7 comes 100 µs late.
func many() [][]byte {
	var parts [][]byte
	for n := range 300 {
		c := tiny(n)
		c.Host = fmt.Sprint("host", n/8)
		r := c.Report
		r.Unit = report.Unit{Kind: "nvtx", Name: "step", Groups: []report.UnitGroup{{ID: "step", Main: true, Phase: "step", Count: 20}}}
		idle := float64(n) / 1000
		r.Metrics = append(r.Metrics, report.Metric{ID: "gpu.idle_ratio", Labels: report.Labels{"device": "0"}, Value: &idle, Unit: report.Ratio,
			Better: report.Lower, Assume: report.Noisy, Scale: report.Level, N: 1, Lifecycle: report.Stable,
			Source: report.Source{Tables: []string{"KERNEL"}, Columns: []string{"start"}, Rows: 1}})
		r.Fill()
		c.Own.Steps = map[string]Step{"step": {P50: float64(1_000_000 + n), Mean: float64(1_000_000 + n)}}
		tr := c.Tracks[0]
		tr.World, tr.Kinds, tr.Comms, tr.Acts, tr.Device = 300, []string{"AllReduce"}, []string{"world"}, []string{"compute"}, 0
		end := int64(0)
		for k := range int64(200) {
			start := k*1_000_000 + 500_000
			if n == 7 {
				start += 100_000
			}
			done := k*1_000_000 + 650_000
			tr.Add(ranks.Call{Start: start, End: done, Comm: 0}, []ranks.Part{{Act: 0, Time: start - end}})
			end = done
		}
		r.Window = report.Window{End: end, Length: end, Mode: "capture"}
		b, err := c.Partial()
		if err != nil {
			panic(err)
		}
		parts = append(parts, b)
	}
	return parts
}

// Beyond 256 ranks a union is made of samples, and still the same bytes whatever tree of merges makes it, with captures
// in several branches, and so is the report. Of the captures 20 are whole: the 8 with the slowest steps, the 4 with most
// and the 4 with least time in kernels, which tiny has by number, and 8 by their identity, of which some are among these.
func TestSamplesAreAssociative(t *testing.T) {
	parts := many()
	want := union(t, parts...)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 3 {
		nodes := slices.Clone(parts)
		for range 20 {
			nodes = append(nodes, parts[rng.IntN(len(parts))])
		}
		for len(nodes) > 1 {
			rng.Shuffle(len(nodes), func(i, k int) { nodes[i], nodes[k] = nodes[k], nodes[i] })
			take := min(len(nodes), 60+rng.IntN(80))
			both := append(slices.Clone(nodes[:take]), parts[rng.IntN(len(parts))])
			nodes = append(nodes[take:], union(t, both...))
		}
		if !bytes.Equal(nodes[0], want) {
			t.Fatalf("%d bytes, want %d", len(nodes[0]), len(want))
		}
	}
	if again := union(t, want, want); !bytes.Equal(again, want) {
		t.Error("a union with itself is another")
	}
	if single := 300 * len(parts[0]); len(want) > single/3 {
		t.Errorf("the union has %d bytes, its parts %d", len(want), single)
	}
	l, err := index(t.Context(), from(want))
	if err != nil {
		t.Fatal(err)
	}
	whole := 0
	_ = l.each(t.Context(), func(s *stored) error {
		if s.body != nil {
			whole++
		}
		return nil
	})
	if !l.sampled || whole != len(l.keep) || whole < 16 || whole > 24 {
		t.Errorf("%d whole captures, want %d", whole, len(l.keep))
	}
	text := func(list ...[]byte) string {
		r, err := Report(context.Background(), from(list...), Options{Rules: testRules})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := report.Write(&b, r); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if text(parts...) != text(want) {
		t.Error("the report of a union is not that of its parts")
	}
}

// By hand: kernels take 100 + n ns on rank n, so 30,000 + 44,850 in all; rank 7 holds the others up for 100 µs in 200
// collectives, told by 64 + up to 16 of them; GPU n is idle for n in 1,000, and the step takes longest on rank 299.
func TestReportOfSamples(t *testing.T) {
	r, err := Report(t.Context(), from(many()...), Options{Rules: testRules})
	if err != nil {
		t.Fatal(err)
	}
	value := func(id string, l report.Labels) float64 {
		m := r.Find(id, l)
		if m == nil || m.Value == nil {
			t.Fatalf("%s is unknown", id)
		}
		return *m.Value
	}
	seven := report.Labels{"rank": "7"}
	for _, c := range []struct {
		id   string
		l    report.Labels
		want float64
	}{{"kernel.total_time", report.Labels{}, 74_850}, {"ranks.count", report.Labels{}, 300}, {"ranks.collectives", report.Labels{}, 200},
		{"rank.held_up_time", seven, 200 * 100_000}, {"rank.last_count", seven, 200}, {"rank.step_time", seven, 1_000_007},
		{"rank.cause_time", report.Labels{"rank": "7", "cause": "compute"}, 100_000}} {
		if got := value(c.id, c.l); got != c.want {
			t.Errorf("%s: %v, want %v", c.id, got, c.want)
		}
	}
	for _, id := range []string{"ranks.unmatched", "ranks.step_time"} {
		if m := r.Find(id, report.Labels{}); m == nil || m.Value != nil {
			t.Errorf("%s: %+v", id, m)
		}
	}
	if m := r.Find("ranks.collectives", report.Labels{}); m.Coverage == nil || *m.Coverage < 0.3 || *m.Coverage > 0.41 {
		t.Errorf("%+v", m.Coverage)
	}
	if m := r.Find("ranks.gpu_idle_ratio", report.Labels{}); m == nil || m.Summary.N != 300 || m.Summary.Max != 0.299 || m.Summary.P50 < 0.149 || m.Summary.P50 > 0.15 {
		t.Errorf("%+v", m)
	}
	if len(r.Findings) == 0 || !strings.HasPrefix(r.Findings[0].Title, "Rank 7 ") || r.Findings[0].Worth.Time != 20_000_000 || !strings.Contains(r.Findings[0].Title, " holds up ranks ") || !strings.Contains(r.Findings[0].Title, "before 200 of 200 AllReduces") {
		t.Errorf("%+v", r.Findings)
	}
	for _, want := range []string{"worst GPU 299 of rank 299 with 29.9 %", "median GPU 149 of rank 149 with 14.9 %"} {
		if !slices.ContainsFunc(r.Warnings, func(w report.Warning) bool { return strings.Contains(w.Text, want) }) {
			t.Errorf("no warning says %q: %+v", want, r.Warnings)
		}
	}
	if m := r.Find("gpu.idle_ratio", report.Labels{"device": "299"}); m == nil || *m.Value != 0.299 {
		t.Errorf("%+v", m)
	}
	notes := strings.Join(r.Sections[0].Notes, " ")
	for _, want := range []string{"the report is made from samples", "% of the collectives, the same ones on every rank", "Unknown for so many ranks: ranks.unmatched, ranks.step_time"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no note says %q: %s", want, notes)
		}
	}
}
