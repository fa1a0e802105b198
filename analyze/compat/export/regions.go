package export

import (
	"strconv"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/present"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// HasRegions reports whether there are regions to report.
func HasRegions(r *report.Report) bool {
	return present.NewView(r).Table("regions", "regions").Entries() > 0
}

// RegionsJSON is llm-perf-opt's ncu/regions/report.json. llm-perf-opt took the values from Nsight Compute; here they come
// from the capture's NVTX ranges. Times are GPU time in milliseconds. The total is the kernel time of the capture: regions
// nest, so that theirs does not add up. The time of writing is left out, so that the same input gives the same file.
func RegionsJSON(r *report.Report) ([]byte, error) {
	v := present.NewView(r)
	t, k := v.Table("regions", "regions"), v.Table("regions", "region_kernels")
	top := map[string][]object{}
	for i := range k.Entries() {
		region := k.Str(i, "region")
		top[region] = append(top[region], object{{"kernel_name", k.Str(i, "kernel")}, {"total_ms", shifted(k.Cell(i, "total"), -6)},
			{"calls", max(k.Whole(i, "count"), 0)}})
	}
	regions := []object{}
	for i := range t.Entries() {
		name := t.Str(i, "region")
		id := func(column, before string) *string {
			return report.Of(report.Optional(t.Whole(i, column)), func(n int64) *string { return new(before + strconv.FormatInt(n, 10)) }, nil)
		}
		regions = append(regions, object{{"name", name}, {"parent", t.Cell(i, "parent")}, {"depth", max(t.Whole(i, "depth"), 0)},
			{"process", id("pid", "")}, {"device", id("device_id", "cuda:")}, {"total_ms", shifted(t.Cell(i, "total"), -6)},
			{"kernel_count", max(t.Whole(i, "kernels"), 0)}, {"sections_path", nil}, {"csv_path", nil}, {"markdown_path", nil},
			{"json_path", nil}, {"metrics", object{{"pct_of_kernel_time", shifted(t.Cell(i, "share"), 2)}}},
			{"kernels", append([]object{}, top[name]...)}})
	}
	nothing := object{{"include", []string{}}, {"exclude", []string{}}}
	return report.JSON(object{{"scope", "aggregate"}, {"regions", regions}, {"generated_at", nil},
		{"totals", object{{"regions", report.Of(t, func(t report.Table) int64 { return t.TotalRows }, 0)},
			{"total_ms", metric(v, "kernel.total_time", -6)}}},
		{"config_fingerprint", ""}, {"selection", nothing}}, "  ")
}

// RegionsMD is the same report as a page.
func RegionsMD(r *report.Report) doc.Document {
	v := present.NewView(r)
	var d doc.Document
	d.Add(doc.H(1, "regions", "NVTX Regions"))
	t := v.Table("regions", "regions")
	if t.Entries() == 0 {
		d.Add(doc.P("No regions discovered."))
		return d
	}
	d.Add(doc.H(2, "list", "Regions"))
	out := doc.Table{ID: "regions", Columns: doc.Cols("region", "parent", ">depth", ">total_ms", ">kernel_count")}
	for i := range t.Entries() {
		parent := doc.Cell{}
		if s, ok := t.Cell(i, "parent").Str(); ok {
			parent = doc.Cell{doc.Name(s)}
		}
		out.Row(doc.Name(t.Str(i, "region")), parent, digits(t, i, "depth"), ms(t, i, "total", 3), digits(t, i, "kernels"))
	}
	d.Add(out)
	if more := t.TotalRows - int64(t.Entries()); more > 0 {
		d.Add(doc.P(wording.Count(more, "more region") + " with less GPU time."))
	}
	return d
}
