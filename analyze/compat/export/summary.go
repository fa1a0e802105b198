package export

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/present"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// summary is the shape of profilemate's summary.json. Numbers are exact decimals; values that the capture lacks are
// null.
type summary struct {
	PrefillDecode map[string]*phaseSummary     `json:"prefill_decode"`
	Components    map[string]*componentSummary `json:"components"`
	TopKernels    []kernelSummary              `json:"top_kernels"`
	CUDAGraphs    graphSummary                 `json:"cuda_graphs"`
}

// phaseSummary is the wall time of the NVTX ranges of a phase.
type phaseSummary struct {
	Count   *int64       `json:"count"`
	TotalMs *json.Number `json:"total_ms"`
	AvgMs   *float64     `json:"avg_ms"`
	total   int64
}

// componentSummary is the GPU time of a component.
type componentSummary struct {
	Count   int64       `json:"count"`
	TotalMs json.Number `json:"total_ms"`
	Percent *float64    `json:"percent"` // of the GPU time of all components
	total   float64
}

type kernelSummary struct {
	KernelName   string       `json:"kernel_name"`
	Invocations  *int64       `json:"invocations"`
	TotalTimeMs  *json.Number `json:"total_time_ms"`
	AvgTimeUs    *json.Number `json:"avg_time_us"`
	MinTimeUs    *json.Number `json:"min_time_us"`
	MaxTimeUs    *json.Number `json:"max_time_us"`
	AvgGridSize  *json.Number `json:"avg_grid_size"`  // blocks
	AvgBlockSize *json.Number `json:"avg_block_size"` // threads
}

// graphSummary counts kernels that really ran inside CUDA graphs; profilemate guessed, and counted every kernel whose
// launch configuration repeats more than ten times. Coverage is by count, as profilemate defines it, and null if graphs
// traced as a whole hide their kernels; coverage by time stands beside it.
type graphSummary struct {
	TotalKernelLaunches  *int64       `json:"total_kernel_launches"`
	GraphKernelLaunches  *int64       `json:"graph_kernel_launches"`
	GraphCoveragePct     *json.Number `json:"graph_coverage_pct"`
	GraphTimeCoveragePct *json.Number `json:"graph_time_coverage_pct"`
	NumUniqueGraphs      *int64       `json:"num_unique_graphs"`
}

const summaryKernels = 20

// SummaryJSON is profilemate's summary.json, made of the report's metrics and tables. Top level keys are always
// present, and so are prefill and decode, with null for unknown values; components is empty if there are none.
func SummaryJSON(r *report.Report) ([]byte, error) {
	v := present.NewView(r)
	s := summary{
		PrefillDecode: prefillDecode(v),
		Components:    componentsOf(v),
		TopKernels:    kernelSummaries(v),
		CUDAGraphs: graphSummary{
			TotalKernelLaunches: wholeTrace(v, "kernel.count"),
			GraphKernelLaunches: wholeTrace(v, "graph.kernels"),
			NumUniqueGraphs:     wholeTrace(v, "graph.unique"),
		},
	}
	g := &s.CUDAGraphs
	if c, ok := v.Num("graph.coverage"); ok {
		g.GraphTimeCoveragePct = shifted(report.F(c), 2)
		if c == 0 {
			g.GraphCoveragePct = g.GraphTimeCoveragePct
		}
	}
	if e := r.Environment.GraphTrace; g.GraphKernelLaunches != nil && g.TotalKernelLaunches != nil &&
		*g.TotalKernelLaunches > 0 && (e == nil || *e != "graph") {
		g.GraphCoveragePct = shifted(report.F(float64(*g.GraphKernelLaunches)/float64(*g.TotalKernelLaunches)*100), 0)
	}
	return report.JSON(s, "  ")
}

// wholeTrace is an integer metric, nil if it is absent or unknown.
func wholeTrace(v *present.View, id string) *int64 {
	x, ok := v.Num(id)
	if !ok {
		return nil
	}
	return new(int64(x))
}

// phaseWall holds what the report says about one phase: the number of ranges, and the host time inside them in ns.
type phaseWall struct {
	phase       string
	count, wall int64
}

// phasesOf reads the phases table, or the metrics if that table is absent.
func phasesOf(v *present.View) []phaseWall {
	var list []phaseWall
	t := v.Table("phases", "phases")
	for i := range t.Entries() {
		n, _ := t.Int(i, "ranges")
		if wall, ok := t.Int(i, "wall"); ok {
			list = append(list, phaseWall{t.Str(i, "phase"), n, wall})
		}
	}
	if len(list) > 0 {
		return list
	}
	for _, m := range v.All("phase.wall_time") {
		if phase, ok := m.Labels["phase"]; ok && len(m.Labels) == 1 && m.Value != nil {
			list = append(list, phaseWall{phase, m.N, int64(*m.Value)})
		}
	}
	return list
}

// prefillDecode folds the phases into prefill, decode and other, as profilemate names them.
func prefillDecode(v *present.View) map[string]*phaseSummary {
	out := map[string]*phaseSummary{"prefill": {}, "decode": {}}
	for _, w := range phasesOf(v) {
		name := "other"
		switch p := strings.ToLower(w.phase); {
		case strings.Contains(p, "prefill"):
			name = "prefill"
		case strings.Contains(p, "decode"), strings.Contains(p, "generation"):
			name = "decode"
		}
		s := cmp.Or(out[name], &phaseSummary{})
		s.Count = new(report.ValueOr(s.Count, 0) + w.count)
		s.total += w.wall
		out[name] = s
	}
	for _, s := range out {
		if s.Count == nil {
			continue
		}
		s.TotalMs = shifted(report.I(s.total), -6)
		if *s.Count > 0 {
			s.AvgMs = new(float64(s.total) / float64(*s.Count) / 1e6)
		}
	}
	return out
}

// componentsOf are those found by kernel name, which covers every kernel.
func componentsOf(v *present.View) map[string]*componentSummary {
	out, sum := map[string]*componentSummary{}, 0.0
	for _, m := range v.All("component.gpu_time") {
		name, ok := m.Labels["component"]
		if !ok || len(m.Labels) != 1 || m.Value == nil {
			continue
		}
		out[name] = &componentSummary{Count: m.N, TotalMs: *shifted(report.F(*m.Value), -6), total: *m.Value}
		sum += *m.Value
	}
	for _, c := range out {
		if sum > 0 {
			c.Percent = new(c.total / sum * 100)
		}
	}
	return out
}

func kernelSummaries(v *present.View) []kernelSummary {
	out := []kernelSummary{}
	t := v.Table("kernels", "kernels")
	for i := range min(t.Entries(), summaryKernels) {
		k := kernelSummary{
			KernelName:  t.Str(i, "kernel_name"),
			TotalTimeMs: shifted(t.Cell(i, "total"), -6),
			AvgTimeUs:   shifted(t.Cell(i, "mean"), -3),
			MinTimeUs:   shifted(t.Cell(i, "min"), -3),
			MaxTimeUs:   shifted(t.Cell(i, "max"), -3),

			AvgGridSize:  shifted(t.Cell(i, "avg_grid_size"), 0),
			AvgBlockSize: shifted(t.Cell(i, "avg_block_size"), 0),
		}
		if n, ok := t.Int(i, "count"); ok {
			k.Invocations = &n
		}
		out = append(out, k)
	}
	return out
}

// shifted is a cell's number times 10^exp10 as exact decimal text, nil if it holds none.
func shifted(c report.Cell, exp10 int) *json.Number {
	text := ""
	if n, ok := c.Int(); ok {
		text = strconv.FormatInt(n, 10)
	} else if f, ok := c.Num(); ok {
		text = strconv.FormatFloat(f, 'f', -1, 64)
	} else {
		return nil
	}
	return new(json.Number(unit.Shift(text, exp10)))
}
