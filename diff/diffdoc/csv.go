package diffdoc

import (
	"io"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/diff/comparison"
)

// WriteCSV writes one row for each metric, kernel, host call and structural finding that was compared, in base units.
// kind is metric, kernel, api or structure; name is the labels of a metric, or the name of the kernel or call on the
// base, and head_name its name on the head. base_per_run and head_per_run are the time of one run of a kernel, or of
// one call, in ns.
func WriteCSV(w io.Writer, c *comparison.Comparison) error {
	text := func(id string) report.Column { return report.Column{ID: id, Kind: report.Text} }
	name := func(id string) report.Column { return report.Column{ID: id, Kind: report.Name} }
	num := func(id string) report.Column { return report.Column{ID: id, Kind: report.Float} }
	t := report.Table{ID: "comparison", Columns: []report.Column{
		text("kind"), text("metric"), name("name"), name("head_name"), text("unit"), num("base"), num("head"),
		num("delta"), num("ratio"), text("class"),
		num("base_count"), num("head_count"), num("count_effect"), num("per_call_effect"), num("interval_low"),
		num("interval_high"), num("noise_floor"),
		num("p"), num("p_adjusted"), text("paired_by"), num("base_per_run"), num("head_per_run"),
	}}
	f := func(v *float64) report.Cell { return report.Of(v, report.F, report.Null) }
	s := func(v *string) report.Cell { return report.Of(v, report.S, report.Null) }
	null := report.Null
	less := func(head, base *float64) report.Cell {
		if head == nil || base == nil {
			return null
		}
		return report.F(*head - *base)
	}
	low := func(i comparison.Interval) report.Cell { return report.F(i.Low) }
	high := func(i comparison.Interval) report.Cell { return report.F(i.High) }
	for _, r := range c.Primary {
		t.Rows = append(t.Rows, []report.Cell{
			report.S("metric"), report.S(r.Metric), report.S(r.Labels.String()), null, report.S(r.Unit), f(r.Base),
			f(r.Head), f(r.Delta), f(r.Ratio), report.S(string(r.Class)),
			null, null, null, null, report.Of(r.Interval, low, null), report.Of(r.Interval, high, null),
			f(r.NoiseFloor), f(r.P), f(r.PAdjusted),
		})
	}
	for _, k := range c.Kernels {
		t.Rows = append(t.Rows, []report.Cell{
			report.S("kernel"), report.S("kernel.time_per_unit"), s(k.BaseName), s(k.HeadName),
			report.S(report.Nanoseconds), f(k.Base), f(k.Head), report.F(k.Delta), f(k.Ratio),
			report.S(string(k.Class)),
			f(k.BaseCount), f(k.HeadCount), report.F(k.CountEffect), report.F(k.PerCallEffect),
			report.Of(k.Interval, low, null), report.Of(k.Interval, high, null), null,
			f(k.P), f(k.PAdjusted), report.S(k.PairedBy),
			f(perRun(k.Base, k.BaseCount)), f(perRun(k.Head, k.HeadCount)),
		})
	}
	for _, a := range c.API {
		t.Rows = append(t.Rows, []report.Cell{
			report.S("api"), report.S("api.time.mean"), report.S(a.Name), null, report.S(report.Nanoseconds),
			f(a.BaseMean), f(a.HeadMean), less(a.HeadMean, a.BaseMean), f(a.Ratio), report.S(string(a.Class)),
			f(a.BaseCount), f(a.HeadCount), null, null, null, null, null, null, null, null,
			f(a.BaseMean), f(a.HeadMean),
		})
	}
	for _, x := range c.Structure {
		t.Rows = append(t.Rows, []report.Cell{
			report.S("structure"), report.S(x.ID), report.S(x.Text), null, null, f(x.Base), f(x.Head),
			less(x.Head, x.Base), null, report.S(string(x.Class)),
		})
	}
	return render.CSV(w, &t)
}
