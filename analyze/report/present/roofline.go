package present

import (
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// underRoof marks the points of a roofline: the area shows the kernel's time, the colour its limit, and the text how
// near it is to its roof. The tables identify a kernel by its display name.
func underRoof(v *View, c *doc.Chart) {
	t := v.Table("roofline", "roofline")
	times, rows, all := map[string]float64{}, map[string]int{}, 0.0
	for i := range t.Entries() {
		if name, ok := t.Cell(i, "short").Str(); ok {
			rows[name] = i
		}
	}
	measured := v.Table("ncu", "ncu_kernels")
	for i := range measured.Entries() {
		name, ok := measured.Cell(i, "short").Str()
		if ns, known := measured.Num(i, "total"); ok && known {
			times[name] = ns
			all += ns
		}
	}
	for i := range c.Series {
		s := &c.Series[i]
		row, ok := rows[s.Name]
		if !ok || s.Style != "points" {
			continue
		}
		if ns := times[s.Name]; ns > 0 {
			s.Share = ns / all
			s.Note = unit.Format(ns, report.Nanoseconds) + " measured"
		}
		if ratio, ok := t.Num(row, "ratio"); ok {
			s.Note += ", " + unit.Percent(ratio) + " of its roof"
		}
		if roof, ok := t.Cell(row, "roof").Str(); ok {
			s.Category = roof
			s.Note += ", limited by " + roof
		}
	}
}
