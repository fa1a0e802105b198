package merge

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

// Two ranks run on GPU 0 and on GPU 1 of one host, and each samples both. The run has these two GPUs under their own
// numbers, each as its rank states it, and not four. Of a capture by itself nothing is left out.
func TestGPUsThatACaptureOnlyWatches(t *testing.T) {
	rules := NewRules()
	rules.Add("power", []report.MetricDef{{ID: "gpu.power", Merge: report.Device, Labels: []string{"device"}}},
		[]report.Table{{ID: "power", Columns: []report.Column{{ID: "device_id", Merge: report.Device}, {ID: "power", Merge: report.Same}}}})
	watching := func(n int) *Capture {
		c := tiny(n)
		c.Report.Environment.GPUs = []report.GPU{{Device: n}}
		table := report.Table{ID: "power", Title: "Power", Columns: []report.Column{
			{ID: "device_id", Title: "GPU", Kind: report.Int},
			{ID: "power", Title: "Power", Kind: report.Float, Unit: report.Watts}}, TotalRows: 2}
		for d := range 2 {
			watts := float64(100*(n+1) + d)
			m := c.Report.Metrics[0]
			m.ID, m.Labels, m.Value, m.Unit = "gpu.power", report.Labels{"device": fmt.Sprint(d)}, &watts, report.Watts
			c.Report.Metrics = append(c.Report.Metrics, m)
			table.Rows = append(table.Rows, []report.Cell{report.I(int64(d)), report.F(watts)})
		}
		c.Report.Sections = []report.Section{{ID: "power", Title: "Power", Group: report.GroupTime, Status: report.OK,
			Tables: []report.Table{table}}}
		c.Report.Fill()
		return c
	}
	merged := func(list ...*Capture) *report.Report {
		var parts [][]byte
		for _, c := range list {
			parts = append(parts, written(t, c))
		}
		r, err := Report(context.Background(), from(parts...), Options{Rules: rules})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, c := range []struct {
		r     *report.Report
		watts []float64 // by GPU
	}{
		{merged(watching(0), watching(1)), []float64{100, 201}},
		{merged(watching(1)), []float64{200, 201}},
	} {
		var watts []float64
		for d := range 4 {
			if m := c.r.Find("gpu.power", report.Labels{"device": fmt.Sprint(d)}); m != nil {
				watts = append(watts, *m.Value)
			}
		}
		table := report.NewIndex(c.r).Table("power", "power")
		for i := range table.Entries() {
			if v, _ := table.Num(i, "power"); table.Whole(i, "device_id") != int64(i) || v != c.watts[i] {
				t.Errorf("row %d is %v", i, table.Rows[i])
			}
		}
		if !slices.Equal(watts, c.watts) || table.Entries() != 2 || table.TotalRows != 2 {
			t.Errorf("GPUs draw %v, want %v; %d rows of %d", watts, c.watts, table.Entries(), table.TotalRows)
		}
		if slices.ContainsFunc(c.r.Warnings, func(w report.Warning) bool { return w.Code == "devices_renumbered" }) {
			t.Errorf("%+v", c.r.Warnings)
		}
	}
}
