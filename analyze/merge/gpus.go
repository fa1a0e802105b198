package merge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// spreads lists the metrics whose distribution over the GPUs of a large run is reported: the metric of one GPU (of),
// the metric of the run (id), and its title.
var spreads = []struct{ of, id, title, unit string }{
	{"gpu.idle_ratio", "ranks.gpu_idle_ratio", "Idle", report.Ratio},
	{"kernel.total_time", "ranks.gpu_kernel_time", "Kernel time", report.Nanoseconds},
}

// ofGPU is a metric's value on one GPU.
type ofGPU struct {
	value float64
	gpu   deviceKey
}

// gpus describes a run that has more GPUs than get metrics of their own: the distribution over all GPUs, the one with
// the largest value, and the median one.
func (s *rankSection) gpus() {
	if len(s.f.devices.list) <= maxDevices {
		return
	}
	t := report.Table{ID: "gpu_spread", Title: "How GPUs are spread", File: "gpu_spread.csv", Rows: [][]report.Cell{}, Columns: []report.Column{
		{ID: "what", Title: "Of each GPU", Kind: report.Name}, {ID: "unit", Title: "Unit", Kind: report.Name, Wide: true},
		{ID: "gpus", Title: "GPUs", Kind: report.Int, Unit: report.Count},
		{ID: "least", Title: "Least", Kind: report.Name}, {ID: "p50", Title: "Median", Kind: report.Name},
		{ID: "p90", Title: "p90", Kind: report.Name}, {ID: "most", Title: "Most", Kind: report.Name},
		{ID: "median_gpu", Title: "Median GPU", Kind: report.Name}, {ID: "worst_gpu", Title: "Worst GPU", Kind: report.Name},
	}}
	s.f.named = map[int64]bool{}
	var told []string
	for _, x := range spreads {
		list := s.f.ofGPUs(x.of)
		if len(list) == 0 {
			continue
		}
		values := make([]float64, len(list))
		for i := range list {
			values[i] = list[i].value
		}
		sum := stat.Summarize(values)
		s.put(x.id, nil, &sum.P50, sum.N).Summary = sum
		middle, worst := list[(len(list)-1)/2], list[len(list)-1]
		s.f.named[s.f.devices.number(middle.gpu)], s.f.named[s.f.devices.number(worst.gpu)] = true, true
		told = append(told, fmt.Sprintf("%s: worst %s with %s, median %s with %s", strings.ToLower(x.title), s.gpuNamed(worst.gpu),
			unit.Format(worst.value, x.unit), s.gpuNamed(middle.gpu), unit.Format(middle.value, x.unit)))
		text := func(v float64) report.Cell { return report.S(unit.Format(v, x.unit)) }
		t.Rows = append(t.Rows, []report.Cell{report.S(x.title), report.S(x.unit), report.I(sum.N), text(sum.Min), text(sum.P50), text(sum.P90),
			text(sum.Max), report.S(s.gpuNamed(middle.gpu)), report.S(s.gpuNamed(worst.gpu))})
	}
	if t.TotalRows = int64(len(t.Rows)); t.TotalRows > 0 {
		s.section.Tables = append(s.section.Tables, t)
		s.named = ", and the worst and the median of the others (" + strings.Join(told, "; ") + ")"
	}
}

// ofGPUs returns the values of a metric on single GPUs, smallest first.
func (f *fold) ofGPUs(id string) (list []ofGPU) {
	for _, key := range f.order {
		if x := f.metrics[key]; x.m.ID == id && x.rule.How == report.HowDevice && x.m.Labels.Keys() == "device" {
			list = append(list, ofGPU{*x.m.Value, x.of})
		}
	}
	slices.SortFunc(list, func(a, b ofGPU) int {
		return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(f.devices.number(a.gpu), f.devices.number(b.gpu)))
	})
	return list
}

// gpuNamed names a GPU by its number in the run, and adds its rank if exactly one rank uses it.
func (s *rankSection) gpuNamed(k deviceKey) string {
	name, n := fmt.Sprintf("GPU %d", s.f.devices.number(k)), 0
	rank := ""
	for m := range s.members {
		if r := &s.ranks[s.of[m]]; r.capture == k.capture && s.members[m].Device == k.device {
			rank, n = r.label, n+1
		}
	}
	if n == 1 {
		name += " of rank " + rank
	}
	return name
}
