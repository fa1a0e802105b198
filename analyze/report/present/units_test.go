package present_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/present"
	"github.com/nsys-llm/explain/analyze/report/render"
)

// TestSlowUnitsSayWhy: of five units of 100, 101, 99, 150 and 130 ns the median is 101; the fourth has 44 ns more idle than
// the median unit, the fifth 25 more communication.
func TestSlowUnitsSayWhy(t *testing.T) {
	units := report.Table{ID: "units", TotalRows: 5}
	for _, id := range []string{"device_id", "start", "duration", "compute", "exposed_comm", "exposed_copy", "idle"} {
		units.Columns = append(units.Columns, report.Column{ID: id, Title: id, Kind: report.Int, Unit: "ns"})
	}
	units.Columns = append(units.Columns, report.Column{ID: "phase", Title: "phase", Kind: report.Name}, report.Column{ID: "state", Title: "state", Kind: report.Text})
	at := int64(1000)
	for _, u := range [][4]int64{{90, 5, 0, 5}, {90, 5, 0, 6}, {90, 4, 0, 5}, {92, 8, 0, 50}, {90, 30, 0, 10}} {
		length := u[0] + u[1] + u[2] + u[3]
		units.Rows = append(units.Rows, []report.Cell{report.I(0), report.I(at), report.I(length), report.I(u[0]), report.I(u[1]), report.I(u[2]), report.I(u[3]), report.S("step"), report.S("kept")})
		at += length
	}
	r := valid(t, serve())
	device := int64(0)
	r.Unit = report.Unit{Kind: "kernel", Groups: []report.UnitGroup{{Main: true, Phase: "step", Count: 5, Kernels: 3, Device: &device}}}
	r.Sections = []report.Section{{ID: "unit", Title: "Unit of work", Group: report.GroupStep, Status: report.OK, Tables: []report.Table{units}}}
	var chart doc.Chart
	var text string
	look := func(b doc.Block) {
		switch b := b.(type) {
		case doc.Chart:
			if b.ID == "unit_dots" {
				chart = b
			}
		case doc.Paragraph:
			if strings.HasPrefix(b.Spans[0].Text, "Slowest") {
				text = b.Spans[0].Text
			}
		}
	}
	for _, b := range present.Page(r, "") {
		look(b)
		if d, ok := b.(doc.Details); ok {
			for _, b := range d.Blocks {
				look(b)
			}
		}
	}
	want := []doc.Series{
		{Name: "median", Style: "limit", Labels: []string{"1", "5"}, Values: []float64{101, 101}},
		{Name: "about the median", Style: "points", Labels: []string{"1", "2", "3"}, Values: []float64{100, 101, 99}},
		{Name: "idle", Style: "points", Labels: []string{"4"}, Values: []float64{150}},
		{Name: "exposed communication", Style: "points", Labels: []string{"5"}, Values: []float64{130}},
	}
	if len(chart.Series) != len(want) {
		t.Fatalf("chart %+v", chart)
	}
	for i, s := range chart.Series {
		if w := want[i]; s.Name != w.Name || s.Style != w.Style || !slices.Equal(s.Labels, w.Labels) || !slices.Equal(s.Values, w.Values) {
			t.Errorf("series %+v, want %+v", s, w)
		}
	}
	// idle: 5, 6, 5, 50, 10: the median is 6, and 50 is 44 more.
	if want := "Slowest: step 4 with 150 ns, +49 ns over the median; +44 ns of that is idle."; text != want {
		t.Errorf("%q, want %q", text, want)
	}
}

// TestPointsUnderTheRoof: of 400 ns measured the first kernel took 300, which is three quarters; both say how near they are
// to what limits them.
func TestPointsUnderTheRoof(t *testing.T) {
	text := func(id string) report.Column { return report.Column{ID: id, Title: id, Kind: report.Name} }
	ratio := report.Column{ID: "ratio", Title: "ratio", Kind: report.Float, Unit: "ratio"}
	total := report.Column{ID: "total", Title: "total", Kind: report.Int, Unit: "ns"}
	r := valid(t, serve())
	r.Sections = []report.Section{
		{ID: "roofline", Title: "Roofline", Status: report.OK,
			Tables: []report.Table{{ID: "roofline", TotalRows: 2, Columns: []report.Column{text("kernel_name"), text("short"), text("roof"), ratio}, Rows: [][]report.Cell{
				{report.S("void a()"), report.S("a"), report.S("memory"), report.F(0.75)}, {report.S("void b()"), report.S("b"), report.S("compute"), report.F(0.5)}}}},
			Charts: []report.Chart{{ID: "roofline", Kind: "scatter", Unit: report.FlopPerSec, Series: []report.Series{
				{Name: "a", Style: "points", Labels: []string{"1"}, Values: []float64{2}}, {Name: "b", Style: "points", Labels: []string{"3"}, Values: []float64{4}}}}}},
		{ID: "ncu", Title: "ncu", Status: report.OK, Tables: []report.Table{{ID: "ncu_kernels", TotalRows: 2, Columns: []report.Column{text("kernel_name"), text("short"), total},
			Rows: [][]report.Cell{{report.S("void a()"), report.S("a"), report.I(300)}, {report.S("void b()"), report.S("b"), report.I(100)}}}}}}
	for _, b := range unfolded(present.Page(r, "")) {
		c, ok := b.(doc.Chart)
		if !ok || c.ID != "roofline" {
			continue
		}
		a, b := c.Series[0], c.Series[1]
		if a.Share != 0.75 || a.Category != "memory" || a.Note != "300 ns measured, 75.0 % of its roof, limited by memory" || b.Share != 0.25 || b.Category != "compute" {
			t.Errorf("%+v and %+v", a, b)
		}
		return
	}
	t.Error("the roofline is not on the page")
}

// unfolded are the blocks of a page, those that are folded away too.
func unfolded(blocks []doc.Block) (list []doc.Block) {
	for _, b := range blocks {
		list = append(list, b)
		if d, ok := b.(doc.Details); ok {
			list = append(list, unfolded(d.Blocks)...)
		}
	}
	return list
}

// A report lists 12 or 20 of a table's 1,998 rows and has no row that sums up the others: the page says how many there
// are. With all 20 in it, it says where the 10 are that it does not show.
func TestCutTablesSaySo(t *testing.T) {
	for _, c := range []struct {
		rows, total int
		want        string
	}{
		{20, 1998, "\nRows 11 to 20 of 1,998 are in `tables/steps.csv`.\n"}, {12, 1998, "\nThere are 1,998 rows in all.\n"},
		{20, 20, "\nRows 11 to 20 are in `tables/steps.csv`.\n"},
	} {
		steps := report.Table{ID: "steps", Title: "Steps", File: "steps.csv", TotalRows: int64(c.total),
			Columns: []report.Column{{ID: "step", Title: "Step", Kind: report.Int}}}
		for i := range int64(c.rows) {
			steps.Rows = append(steps.Rows, []report.Cell{report.I(i)})
		}
		r := valid(t, serve())
		r.Sections = []report.Section{{ID: "ranks", Title: "Ranks", Group: report.GroupRanks, Status: report.OK, Tables: []report.Table{steps}}}
		var b strings.Builder
		if err := render.Markdown(&b, present.Full(r, ""), render.MarkdownOptions{}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), c.want) {
			t.Errorf("no %q in\n%s", c.want, b.String())
		}
	}
}
