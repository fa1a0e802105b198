package export

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/present"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// object is a JSON object whose fields stand in the order of the file that it is made for.
type object []field

type field struct {
	name  string
	value any
}

// MarshalJSON writes the fields.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, f := range o {
		value, err := report.JSON(f.value, "")
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(strconv.AppendQuote(b, f.name), ':'), value...)
	}
	return append(b, '}'), nil
}

const summaryKernels = 20

// SummaryJSON is profilemate's summary.json, made of the report's metrics and tables. Numbers are exact decimals. Top
// level keys are always present, and so are prefill and decode, with null for unknown values; components is empty if there
// are none.
func SummaryJSON(r *report.Report) ([]byte, error) {
	v := present.NewView(r)
	return report.JSON(object{{"prefill_decode", prefillDecode(v)}, {"components", componentsOf(v)},
		{"top_kernels", kernelSummaries(v)}, {"cuda_graphs", graphsOf(v)}}, "  ")
}

// graphsOf counts kernels that really ran inside CUDA graphs; profilemate guessed, and counted every kernel whose launch
// configuration repeats more than ten times. Coverage is by count, as profilemate defines it, and null if graphs traced
// as a whole hide their kernels; coverage by time stands beside it.
func graphsOf(v *present.View) object {
	var coverage *json.Number
	all, _ := v.Num("kernel.count")
	if inside, ok := v.Num("graph.kernels"); ok && all > 0 && report.ValueOr(v.Environment.GraphTrace, "") != "graph" {
		coverage = shifted(report.F(inside/all*100), 0)
	} else if share, ok := v.Num("graph.coverage"); ok && share == 0 {
		coverage = shifted(report.F(0), 0)
	}
	return object{{"total_kernel_launches", metric(v, "kernel.count", 0)}, {"graph_kernel_launches", metric(v, "graph.kernels", 0)},
		{"graph_coverage_pct", coverage}, {"graph_time_coverage_pct", metric(v, "graph.coverage", 2)},
		{"num_unique_graphs", metric(v, "graph.unique", 0)}}
}

// metric is a metric's value times 10^exp10, nil if it is absent or unknown.
func metric(v *present.View, id string, exp10 int) *json.Number {
	if x, ok := v.Num(id); ok {
		return shifted(report.F(x), exp10)
	}
	return nil
}

// phaseWall holds what the report says about one phase: the number of ranges, and the host time inside them in ns.
type phaseWall struct {
	phase       string
	count, wall int64
}

func phasesOf(v *present.View) (list []phaseWall) {
	t := v.Table("phases", "phases")
	for i := range t.Entries() {
		n, _ := t.Int(i, "ranges")
		if wall, ok := t.Int(i, "wall"); ok {
			list = append(list, phaseWall{t.Str(i, "phase"), n, wall})
		}
	}
	return list
}

// prefillDecode folds the phases into prefill, decode and other, as profilemate names them: the wall time of their NVTX
// ranges.
func prefillDecode(v *present.View) map[string]object {
	count, wall := map[string]int64{}, map[string]int64{}
	for _, w := range phasesOf(v) {
		name := "other"
		switch p := strings.ToLower(w.phase); {
		case strings.Contains(p, "prefill"):
			name = "prefill"
		case strings.Contains(p, "decode"), strings.Contains(p, "generation"):
			name = "decode"
		}
		count[name] += w.count
		wall[name] += w.wall
	}
	none := object{{"count", nil}, {"total_ms", nil}, {"avg_ms", nil}}
	out := map[string]object{"prefill": none, "decode": none}
	for name, n := range count {
		var mean *float64
		if n > 0 {
			mean = new(float64(wall[name]) / float64(n) / 1e6)
		}
		out[name] = object{{"count", n}, {"total_ms", shifted(report.I(wall[name]), -6)}, {"avg_ms", mean}}
	}
	return out
}

// componentsOf are those found by kernel name, which covers every kernel: their GPU time, and its share of that of all.
func componentsOf(v *present.View) map[string]object {
	list := lists.Filter(v.All("component.gpu_time"), func(m *report.Metric) bool {
		return len(m.Labels) == 1 && m.Labels["component"] != "" && m.Value != nil
	})
	sum := lists.Sum(list, func(m *report.Metric) float64 { return *m.Value })
	out := map[string]object{}
	for _, m := range list {
		var percent *float64
		if sum > 0 {
			percent = new(*m.Value / sum * 100)
		}
		out[m.Labels["component"]] = object{{"count", m.N}, {"total_ms", shifted(report.F(*m.Value), -6)}, {"percent", percent}}
	}
	return out
}

// kernelSummaries have the means of blocks and of threads a launch as sizes of grid and block.
func kernelSummaries(v *present.View) []object {
	out := []object{}
	t := v.Table("kernels", "kernels")
	for i := range min(t.Entries(), summaryKernels) {
		get := func(id string, exp10 int) *json.Number { return shifted(t.Cell(i, id), exp10) }
		out = append(out, object{{"kernel_name", t.Str(i, "kernel_name")}, {"invocations", t.Cell(i, "count")},
			{"total_time_ms", get("total", -6)}, {"avg_time_us", get("mean", -3)}, {"min_time_us", get("min", -3)},
			{"max_time_us", get("max", -3)}, {"avg_grid_size", get("avg_grid_size", 0)},
			{"avg_block_size", get("avg_block_size", 0)}})
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
