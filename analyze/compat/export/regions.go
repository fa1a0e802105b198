package export

import (
	"encoding/json"
	"strconv"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/present"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// regionReport is the shape of llm-perf-opt's ncu/regions/report.json. llm-perf-opt took the values from Nsight
// Compute; here they come from the capture's NVTX ranges. Times are GPU time in milliseconds. The time of writing is
// left out, so that the same input gives the same file.
type regionReport struct {
	Scope       string        `json:"scope"`
	Regions     []regionEntry `json:"regions"`
	GeneratedAt *string       `json:"generated_at"`
	Totals      struct {
		Regions int64        `json:"regions"`
		TotalMs *json.Number `json:"total_ms"` // kernel time of the capture; regions nest, so that theirs does not add up
	} `json:"totals"`
	Fingerprint string `json:"config_fingerprint"`
	Selection   struct {
		Include [0]string `json:"include"` // nothing was selected
		Exclude [0]string `json:"exclude"`
	} `json:"selection"`
}

type regionEntry struct {
	Name     string       `json:"name"`
	Parent   *string      `json:"parent"`
	Depth    int64        `json:"depth"`
	Process  *string      `json:"process"`
	Device   *string      `json:"device"`
	TotalMs  *json.Number `json:"total_ms"`
	Kernels  int64        `json:"kernel_count"`
	Sections *string      `json:"sections_path"`
	CSV      *string      `json:"csv_path"`
	Markdown *string      `json:"markdown_path"`
	JSON     *string      `json:"json_path"`
	Metrics  struct {
		SharePct *json.Number `json:"pct_of_kernel_time"`
	} `json:"metrics"`
	Top []regionKernel `json:"kernels"`
}

type regionKernel struct {
	Name    string       `json:"kernel_name"`
	TotalMs *json.Number `json:"total_ms"`
	Calls   int64        `json:"calls"`
}

// HasRegions reports whether there are regions to report.
func HasRegions(r *report.Report) bool {
	return present.NewView(r).Table("regions", "regions").Entries() > 0
}

// RegionsJSON is llm-perf-opt's region report, made of the capture's NVTX ranges.
func RegionsJSON(r *report.Report) ([]byte, error) {
	v := present.NewView(r)
	t, k := v.Table("regions", "regions"), v.Table("regions", "region_kernels")
	top := map[string][]regionKernel{}
	for i := range k.Entries() {
		region := k.Str(i, "region")
		kernel := regionKernel{k.Str(i, "kernel"), shifted(k.Cell(i, "total"), -6), max(k.Whole(i, "count"), 0)}
		top[region] = append(top[region], kernel)
	}
	out := regionReport{Scope: "aggregate", Regions: []regionEntry{}}
	for i := range t.Entries() {
		e := regionEntry{Name: t.Str(i, "region"), TotalMs: shifted(t.Cell(i, "total"), -6),
			Depth: max(t.Whole(i, "depth"), 0), Kernels: max(t.Whole(i, "kernels"), 0)}
		e.Metrics.SharePct = shifted(t.Cell(i, "share"), 2)
		if s, ok := t.Cell(i, "parent").Str(); ok {
			e.Parent = &s
		}
		if n, ok := t.Int(i, "pid"); ok {
			e.Process = new(strconv.FormatInt(n, 10))
		}
		if n, ok := t.Int(i, "device_id"); ok {
			e.Device = new("cuda:" + strconv.FormatInt(n, 10))
		}
		e.Top = append([]regionKernel{}, top[e.Name]...)
		out.Regions = append(out.Regions, e)
	}
	if t != nil {
		out.Totals.Regions = t.TotalRows
	}
	if total := v.Metric("kernel.total_time"); total != nil && total.Value != nil {
		out.Totals.TotalMs = shifted(report.F(*total.Value), -6)
	}
	return report.JSON(out, "  ")
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
