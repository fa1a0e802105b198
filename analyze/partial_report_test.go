package analyze

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/merge"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// The report of one capture, its tables cut to three rows and read back from its file, merged with the partial of
// another: every number that is known is that of the two partials, and what is not known is percentiles and ranks.
func TestReportAndPartialAsTwoPartials(t *testing.T) {
	run := tracetest.Fleet{Ranks: 2, Steps: 12, Layers: 3, Jitter: 20_000, EndJitter: 2_000, Seed: 4}.Run()
	var paths []string
	for i := range run {
		b := tracetest.New(tracetest.Schema("3.25.0"))
		run[i].AddTo(b, int64(1000+i), int64(i))
		b.Row("TARGET_INFO_SESSION_START_TIME", tracetest.Row{"utcEpochNs": tracetest.Int(run[i].Session)})
		paths = append(paths, b.WriteTB(t))
	}
	res, err := Run(context.Background(), paths[0], Options{Top: 3})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := report.Write(&file, res.Report); err != nil {
		t.Fatal(err)
	}
	r, err := report.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := OfReport("report.json", r)
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Partial()
	if err != nil {
		t.Fatal(err)
	}
	of0, of1 := partialOf(t, paths[0]), partialOf(t, paths[1])
	want := mergeReport(t, merge.Options{}, of0, of1)
	got := mergeReport(t, merge.Options{}, b, of1)
	known := 0
	for i := range want.Metrics {
		w := &want.Metrics[i]
		if _, rank := w.Labels["rank"]; rank || strings.HasPrefix(w.ID, "ranks.") {
			continue // those of the report are not known
		}
		g := got.Find(w.ID, w.Labels)
		switch {
		case g == nil:
			t.Errorf("%s{%s} is missing", w.ID, w.Labels)
		case g.Value == nil || w.Value == nil:
			if w.Value != nil && w.ID != "kernel.duration" && !strings.HasPrefix(w.ID, "rank.") {
				t.Errorf("%s{%s} is unknown, of two partials %v", w.ID, w.Labels, *w.Value)
			}
		case math.Abs(*g.Value-*w.Value) > 1e-12*math.Abs(*w.Value):
			t.Errorf("%s{%s} is %v, of two partials %v", w.ID, w.Labels, *g.Value, *w.Value)
		default:
			known++
		}
		if g != nil && g.Summary != nil && (w.Summary == nil || *g.Summary != *w.Summary) {
			t.Errorf("%s{%s}: %+v, of two partials %+v", w.ID, w.Labels, g.Summary, w.Summary)
		}
	}
	if known < 100 {
		t.Errorf("%d metrics compared", known)
	}
	// Tables add up to the same, whatever is in others.
	tables := 0
	for i := range want.Sections {
		s := &want.Sections[i]
		for j := range s.Tables {
			tables += sameSums(t, s.ID, &s.Tables[j], tableOf(got, s.ID, s.Tables[j].ID))
		}
	}
	if tables < 5 {
		t.Errorf("%d tables compared", tables)
	}
	// The trace itself says all of that: its report beside it changes nothing.
	both := mergeReport(t, merge.Options{}, b, of1, of0)
	var x, y bytes.Buffer
	if report.Write(&x, both) != nil || report.Write(&y, want) != nil || !bytes.Equal(x.Bytes(), y.Bytes()) {
		t.Error("a report beside its own partial changes the merged report")
	}
	// A report alone is merged too, and has no rank.
	alone := mergeReport(t, merge.Options{}, b)
	if m := alone.Find("kernel.total_time", nil); m == nil || *m.Value != *res.Report.Find("kernel.total_time", nil).Value {
		t.Errorf("%+v", m)
	}
	if m := alone.Find("ranks.count", nil); m == nil || m.Value != nil {
		t.Errorf("%+v", m)
	}
}

func tableOf(r *report.Report, section, id string) *report.Table {
	for i := range r.Sections {
		for j := range r.Sections[i].Tables {
			if r.Sections[i].ID == section && r.Sections[i].Tables[j].ID == id {
				return &r.Sections[i].Tables[j]
			}
		}
	}
	return nil
}

// sameSums compares the sums of the columns of whole numbers named count and total; 1 if there is one.
func sameSums(t *testing.T, section string, want, got *report.Table) int {
	t.Helper()
	if section == "ranks" || section == "unit" || want.ID == "kernels_per_device" {
		return 0
	}
	if got == nil {
		t.Errorf("%s/%s is missing", section, want.ID)
		return 0
	}
	compared := 0
	for i, c := range want.Columns {
		if c.ID != "count" && c.ID != "total" {
			continue
		}
		var a, b int64
		known := true
		for _, row := range want.Rows {
			v, _ := row[i].Int()
			a += v
		}
		for _, row := range got.Rows {
			v, ok := row[i].Int()
			b, known = b+v, known && ok
		}
		if known && a != b {
			t.Errorf("%s/%s: %s adds up to %d, of two partials to %d", section, want.ID, c.ID, b, a)
		}
		compared = 1
	}
	return compared
}
