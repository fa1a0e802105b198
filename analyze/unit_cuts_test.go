package analyze

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
)

func analysed(tb testing.TB, path string, opt Options) *report.Report {
	tb.Helper()
	res, err := Run(context.Background(), path, opt)
	if err != nil {
		tb.Fatal(err)
	}
	return res.Report
}

// Five steps of an embedding, four layers of 10 µs kernels and a sampling kernel, 1 µs apart: 40 of them, so the first
// unit starts at 1 ms, units last 11 µs for each kernel, of which 10 are busy, and the last is cut.
func TestUnitInTheReport(t *testing.T) {
	e := newProgram()
	step := layers("decode", 3)
	for range 40 {
		e.run(step...)
	}
	r := analysed(t, e.write(t), Options{})
	n := int64(len(step))
	if r.Unit.Kind != "kernel" || r.Unit.Coverage == nil || *r.Unit.Coverage != 1 {
		t.Fatalf("kind %s, coverage %v", r.Unit.Kind, r.Unit.Coverage)
	}
	if d := r.Unit.Groups[0].Device; d == nil || *d != 0 {
		t.Errorf("slowest device %v", d)
	}
	units, err := r.Unit.Series.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if len(units) < 39 || len(r.Unit.Series.Signatures) > 2 {
		t.Fatalf("%d units, signatures %v", len(units), r.Unit.Series.Signatures)
	}
	for i, u := range units[1 : len(units)-1] {
		if u.Number != int64(i+1) || u.Device != 0 || u.Process != 1 || u.Group != 0 || report.UnitStates[u.State] != "kept" ||
			u.Duration != 11*us*n || u.Busy != 10*us*n || u.Start != units[i].Start+units[i].Duration {
			t.Fatalf("unit %d: %+v", i+1, u)
		}
	}
	if r.Unit.Used() == nil || r.Unit.Used().Count != 40 || len(r.Unit.Anchors) != 3 {
		t.Errorf("anchors %+v", r.Unit.Anchors)
	}
}

func anchorFrom(a *report.UnitAnchor) *workunit.Anchor {
	return &workunit.Anchor{Names: a.Names, Ranges: a.Ranges, Start: a.Start, Families: a.Families, Merged: a.Merged}
}

// What a report says it would be at another anchor is what an analysis gives that is asked for that anchor: synthetic
// steps with a logging kernel now and then, and real captures.
func TestCutsAreWhatAnAnalysisGives(t *testing.T) {
	paths := []string{}
	for _, k := range []int{1, 3, 10} {
		e := newProgram()
		every(k)(e)
		paths = append(paths, e.write(t))
	}
	for _, name := range []string{"rodinia_report3_native", "nsysai_mfu_2gpu_before"} {
		path := filepath.Join("..", "..", "shared", "traces", name+".sqlite")
		if _, err := os.Stat(path); err == nil {
			paths = append(paths, path)
		}
	}
	cuts := 0
	for _, path := range paths {
		r := analysed(t, path, Options{})
		if used, ok := r.CutAt(r.Unit.Used()); !ok || used != r {
			t.Errorf("%s: cut at the anchor it uses, the report is another", path)
		}
		if again := analysed(t, path, Options{at: anchorFrom(r.Unit.Used())}); *again.Find("unit.time", nil).Value != *r.Find("unit.time", nil).Value {
			t.Errorf("%s: asked for the anchor that it uses, the analysis gives another unit", path)
		}
		for i := range r.Unit.Cuts {
			cuts++
			a := &r.Unit.Cuts[i].Anchor
			got, ok := r.CutAt(a)
			if !ok {
				t.Fatalf("%s: no cut at %v", path, a.Names)
			}
			if err := got.Validate(); err != nil {
				t.Errorf("%s: %v: %v", path, a.Names, err)
			}
			want := report.NewIndex(analysed(t, path, Options{at: anchorFrom(a)}))
			if !want.Report.Unit.Used().Same(a) {
				t.Errorf("%s: asked for %v, the analysis uses %v", path, a.Names, want.Report.Unit.Used().Names)
			}
			for j := range got.Metrics {
				m := &got.Metrics[j]
				if strings.HasPrefix(m.ID, "steady.") {
					continue // of the steady part of the report's own units
				}
				w := want.Metric(m.ID, m.Labels)
				if w == nil || *w.Value != *m.Value || w.N != m.N || w.Group != m.Group || (w.Summary == nil) != (m.Summary == nil) ||
					w.Summary != nil && *w.Summary != *m.Summary {
					t.Errorf("%s: %v: %s is %+v, by the analysis %+v", path, a.Names, report.MetricKey(m.ID, m.Labels), m, w)
				}
			}
			// What is left out has next to no time.
			var all, kept float64
			for _, m := range want.Metrics("kernel.exclusive_time_per_unit") {
				if len(m.Labels) == 1 && m.Labels["kernel"] != "" {
					all += m.Summary.Mean
					if n := report.NewIndex(got).Metric(m.ID, m.Labels); n != nil {
						kept += n.Summary.Mean
					}
				}
			}
			if math.Abs(all-kept) > 0.02*all {
				t.Errorf("%s: %v: kernels of %v ns of %v are in the cut", path, a.Names, kept, all)
			}
		}
	}
	if cuts < 6 {
		t.Errorf("%d cuts were looked at", cuts)
	}
}
