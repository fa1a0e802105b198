package merge

import (
	"fmt"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// spreads lists the metrics whose distribution over the GPUs of a large run is reported: the metric of one GPU (of),
// the metric of the run (id), and its title.
var spreads = []struct{ of, id, title, unit string }{
	{"gpu.idle_ratio", "ranks.gpu_idle_ratio", "Idle", report.Ratio},
	{"kernel.total_time", "ranks.gpu_kernel_time", "Kernel time", report.Nanoseconds},
}

// gpus describes a run that has more GPUs than get metrics of their own: the distribution over all GPUs, the one with
// the largest value, and the median one.
func (s *rankSection) gpus() {
	if len(s.f.devices.places.Keys) <= maxDevices {
		return
	}
	var rows [][]report.Cell
	s.f.metrics.named = map[int64]bool{}
	var told []string
	for _, x := range spreads {
		list := s.f.metrics.ofGPUs(x.of)
		if len(list) == 0 {
			continue
		}
		values := lists.Map(list, func(x *metricFold) float64 { return *x.m.Value })
		sum := stat.Summarize(values)
		s.out.put(x.id, nil, &sum.P50, sum.N).Summary = sum
		middle, worst := list[(len(list)-1)/2], list[len(list)-1]
		s.f.metrics.named[s.f.devices.number(middle.of)], s.f.metrics.named[s.f.devices.number(worst.of)] = true, true
		told = append(told, fmt.Sprintf("%s: worst %s with %s, median %s with %s", strings.ToLower(x.title), s.gpuNamed(worst.of),
			unit.Format(*worst.m.Value, x.unit), s.gpuNamed(middle.of), unit.Format(*middle.m.Value, x.unit)))
		text := func(v float64) report.Cell { return report.S(unit.Format(v, x.unit)) }
		rows = append(rows, []report.Cell{report.S(x.title), report.S(x.unit), report.I(sum.N), text(sum.Min), text(sum.P50), text(sum.P90),
			text(sum.Max), report.S(s.gpuNamed(middle.of)), report.S(s.gpuNamed(worst.of))})
	}
	if len(rows) > 0 {
		s.out.table("gpu_spread", rows, 0)
		s.named = ", and the worst and the median of the others (" + strings.Join(told, "; ") + ")"
	}
}

// gpuNamed names a GPU by its number in the run, and adds its rank if exactly one rank uses it.
func (s *rankSection) gpuNamed(k deviceKey) string {
	name, n := fmt.Sprintf("GPU %d", s.f.devices.number(k)), 0
	rank := ""
	for m := range s.run.members {
		if r := s.run.ranks[s.run.of[m]]; r.capture == k.capture && s.run.members[m].Device == k.device {
			rank, n = r.label, n+1
		}
	}
	if n == 1 {
		name += " of rank " + rank
	}
	return name
}
