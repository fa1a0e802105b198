package merge

import (
	"context"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

// testRules are what the captures of these tests declare.
var testRules = func() *Rules {
	r := NewRules()
	r.Add("kernels", []report.MetricDef{
		{ID: "kernel.total_time", Merge: report.Sum.Counting("kernel", "kernel"), Labels: []string{"", "kernel", "pid"}},
		{ID: "gpu.idle_ratio", Merge: report.Device, Labels: []string{"device"}},
		{ID: "kernel.window_share", Merge: report.Leave},
	}, []report.Table{
		{ID: "kernels", Columns: []report.Column{
			{ID: "kernel_name", Merge: report.Key}, {ID: "count", Merge: report.Sum}, {ID: "total", Merge: report.Sum.First()},
			{ID: "share", Merge: report.PartOf("total")}, {ID: "mean", Merge: report.RatioOf("total", "count")},
			{ID: "min", Merge: report.Min}, {ID: "max", Merge: report.Max}, {ID: "p50", Merge: report.PercentileOf("kernel", 0.5)},
			{ID: "device_id", Merge: report.OneDevice}, {ID: "grid", Merge: report.MeanBy("count")}, {ID: "rate", Merge: report.Leave}}},
		{ID: "stats", Merge: report.Leave, Columns: []report.Column{{ID: "start"}}}})
	return r
}()

// A kernel of two ranks ran on two GPUs, though both ranks call theirs GPU 0: which one is unknown. One that a single
// rank ran has that rank's GPU, under its number in the run. What columns leave to the captures is unknown, and means
// are weighted: 2 calls of 10 blocks and 6 of 30 are 25 each. A mean that one capture lacks is unknown: 2 calls of 10
// blocks and 6 of an unknown number are not 2.5 each.
func TestColumnsOfOneCapture(t *testing.T) {
	table := func(c *Capture, rows ...[]report.Cell) *Capture {
		withKernels(c, 9)
		x := &c.Report.Sections[0].Tables[0]
		x.Columns = append(x.Columns, report.Column{ID: "device_id", Title: "GPU", Kind: report.Int},
			report.Column{ID: "grid", Title: "Grid", Kind: report.Float, Unit: report.Count},
			report.Column{ID: "rate", Title: "Rate", Kind: report.Float, Unit: report.PerSecond})
		x.Rows, x.TotalRows = rows, int64(len(rows))
		return c
	}
	row := func(name string, count, total, device int64, grid float64) []report.Cell {
		return append(kernelRow(name, count, total, 0.5, 1, 9), report.I(device), report.F(grid), report.F(7))
	}
	one := table(tiny(1), row("both", 2, 60, 0, 10), row("first", 1, 10, 0, 5), row("partly", 2, 4, 0, 10))
	unknown := row("partly", 6, 0, 0, 0)
	unknown[len(unknown)-2] = report.Null
	two := table(tiny(2), row("both", 6, 90, 0, 30), row("second", 1, 5, 0, 5), unknown)
	r, err := Report(context.Background(), from(written(t, one), written(t, two)), Options{Rules: testRules})
	if err != nil {
		t.Fatal(err)
	}
	got := report.NewIndex(r).Table("kernels", "kernels")
	column := func(id string) (cells []report.Cell) {
		at := slices.IndexFunc(got.Columns, func(c report.Column) bool { return c.ID == id })
		for _, row := range got.Rows {
			cells = append(cells, row[at])
		}
		return cells
	}
	for id, want := range map[string][]report.Cell{
		"kernel_name": {report.S("both"), report.S("first"), report.S("second"), report.S("partly")},
		"device_id":   {report.Null, report.I(0), report.I(1), report.Null},
		"grid":        {report.F(25), report.F(5), report.F(5), report.Null},
		"rate":        {report.Null, report.Null, report.Null, report.Null},
	} {
		if cells := column(id); !slices.EqualFunc(cells, want, report.Cell.Equal) {
			t.Errorf("%s: %v, want %v", id, cells, want)
		}
	}
	note := "In the captures' own reports alone: kernel.window_share, what is of a single process."
	at := slices.IndexFunc(r.Sections, func(s report.Section) bool { return s.ID == "kernels" })
	if at < 0 || !slices.Contains(r.Sections[at].Notes, note) {
		t.Errorf("%+v", r.Sections)
	}
}
