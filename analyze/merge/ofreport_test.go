package merge

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

// withKernels gives a capture a table of kernels: name, count, total, p50, min,
// max. Of more than top rows the last ones are one row of others.
func withKernels(c *Capture, top int, rows ...[]report.Cell) *Capture {
	ns := func(id string, kind report.Kind) report.Column {
		return report.Column{ID: id, Title: id, Kind: kind, Unit: report.Nanoseconds}
	}
	t := report.Table{ID: "kernels", Title: "Kernels", File: "kernels.csv", TotalRows: int64(len(rows)),
		Columns: []report.Column{{ID: "kernel_name", Title: "Kernel", Kind: report.Name},
			{ID: "count", Title: "Count", Kind: report.Int, Unit: report.Count}, ns("total", report.Int),
			{ID: "share", Title: "Share", Kind: report.Float, Unit: report.Ratio},
			ns("mean", report.Float), ns("min", report.Int), ns("max", report.Int), ns("p50", report.Float)}}
	t.Rows = rows
	if top < len(rows) {
		last := []report.Cell{report.S(others), report.I(0), report.I(0), report.F(0), report.Null, report.Null, report.Null, report.Null}
		for _, row := range rows[top:] {
			for i := 1; i <= 3; i++ {
				last[i] = last[i].Plus(row[i])
			}
		}
		t.Rows, t.Others = append(slices.Clone(rows[:top]), last), true
	}
	c.Report.Sections = []report.Section{{ID: "kernels", Title: "Kernels", Status: report.OK, Tables: []report.Table{t}}}
	c.Report.Fill()
	return c
}

func kernelRow(name string, count, total int64, share float64, least, most int64) []report.Cell {
	return []report.Cell{report.S(name), report.I(count), report.I(total), report.F(share),
		report.F(float64(total) / float64(count)), report.I(least), report.I(most), report.F(float64(least))}
}

func reported(t *testing.T, c *Capture) *Capture {
	t.Helper()
	got, err := OfReport("report.json", c.Report, testRules, Own{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Two reports by hand. One lists a (60 ns in 3) and b (30 in 2), and has c (10 in 1) in its others; the other lists a (40
// in 1) and c (60 in 3) of those two. So a is 100 in 4, of 200: half; b cannot be told from the second's, which is whole
// and has none, but c of the first is in others: so b is listed, and c is not. Others are c: 10 + 60 in 4.
func TestReportsByHand(t *testing.T) {
	one := withKernels(tiny(1), 2, kernelRow("a", 3, 60, 0.6, 10, 30), kernelRow("b", 2, 30, 0.3, 14, 16), kernelRow("c", 1, 10, 0.1, 10, 10))
	two := withKernels(tiny(2), 2, kernelRow("a", 1, 40, 0.4, 40, 40), kernelRow("c", 3, 60, 0.6, 5, 50))
	r, err := Report(context.Background(), from(written(t, reported(t, one)), written(t, reported(t, two))), Options{Rules: testRules})
	if err != nil {
		t.Fatal(err)
	}
	table := report.NewIndex(r).Table("kernels", "kernels")
	want := [][]report.Cell{
		{report.S("a"), report.I(4), report.I(100), report.F(0.5), report.F(25), report.I(10), report.I(40), report.Null},
		{report.S("b"), report.I(2), report.I(30), report.F(0.15), report.F(15), report.I(14), report.I(16), report.Null},
		{report.S(others), report.I(4), report.I(70), report.F(0.35), report.Null, report.Null, report.Null, report.Null}}
	if !slices.EqualFunc(table.Rows, want, func(a, b []report.Cell) bool { return slices.EqualFunc(a, b, report.Cell.Equal) }) || !table.Others || table.TotalRows != 3 {
		t.Errorf("%+v", table)
	}
	// 101 and 102 ns of kernels: the total is exact, of the percentiles nothing is known.
	if m := r.Find("kernel.total_time", report.Labels{"kernel": "gemm"}); m == nil || *m.Value != 203 || m.Summary != nil {
		t.Errorf("%+v", m)
	}
	for _, id := range []string{"ranks.count", "ranks.missing", "rank.wait_time"} {
		if m := r.Find(id, nil); m == nil || m.Value != nil {
			t.Errorf("%s: %+v", id, m)
		}
	}
	s := r.Sections[0]
	if s.Status != report.Partial || !strings.HasPrefix(s.Reason, "2 of 2 captures are there as reports") ||
		!strings.Contains(strings.Join(s.Notes, " "), "in the row of others") || r.Warnings[0].Code != "missing_ranks" {
		t.Errorf("%+v %+v", s, r.Warnings)
	}
}

// A report of a capture is that capture: with itself it is one, and beside its partial it says nothing.
func TestReportOfTheSameCapture(t *testing.T) {
	c := tiny(1)
	c.Head = HeadOf(c.Report, 5)
	whole, lean := written(t, c), written(t, reported(t, c))
	if !bytes.Equal(union(t, lean, lean), lean) {
		t.Error("a report with itself is something else")
	}
	if !bytes.Equal(union(t, lean, whole), whole) || !bytes.Equal(union(t, whole, union(t, lean, whole)), whole) {
		t.Error("a report changes the capture that its trace is there of")
	}
}

// What cannot be made exact is refused.
func TestReportsThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		want string
		edit func(r *report.Report)
	}{
		{"r is a merged run already: name the captures that it was merged from", func(r *report.Report) { r.Trace.Kind = mergedKind }},
		{"r is a report of evidence", func(r *report.Report) { r.Trace.Kind = "server-log" }},
		{"r has evidence in it", func(r *report.Report) { r.Evidence = []report.EvidenceFile{{Name: "server.log"}} }},
		{"r was made with --no-nvtx-kernel-map", func(r *report.Report) {
			r.Sections = []report.Section{{ID: "nvtx", Reason: "switched off (--no-nvtx-kernel-map)"}}
		}},
	} {
		r := tiny(1).Report
		c.edit(r)
		if _, err := OfReport("r", r, testRules, Own{}); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	session, processes := "s", "p"
	one, two := tiny(1), tiny(2)
	for _, c := range []*Capture{one, two} {
		c.Report.Capture.SessionStart, c.Report.Capture.Processes = &session, &processes
	}
	_, err := Report(context.Background(), from(written(t, one), written(t, reported(t, two))), Options{Rules: testRules})
	if err == nil || !strings.Contains(err.Error(), "in the same session, with different windows") {
		t.Errorf("%v", err)
	}
}
