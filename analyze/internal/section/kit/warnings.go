package kit

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// worstFirst are the codes of warnings about the whole report, the most important first: the kind of capture, its
// missing parts, and the parts that the window mixes. Others follow in the order of the sections.
var worstFirst = []string{
	"no_gpu_work", "no_kernels", "gpu_activity_missing", "time_unit", "incomplete_units", "hidden_graph_launches", "lost_kernels", "skipped_rows",
	"unjoined_kernels", "no_api_calls", "no_correlation", "no_process_column", "no_strings",
	"shared_device", "window_gap", "impossible_copies", "graph_trace", "phase_map", "unknown_device", "profiler_overhead", "nsys_errors", "lost_data",
}

// rankWarnings puts the most important warnings first.
func rankWarnings(list []report.Warning) {
	rank := func(w *report.Warning) int {
		if i := slices.Index(worstFirst, w.Code); i >= 0 {
			return i
		}
		return len(worstFirst)
	}
	lists.Sort(list, func(a, b report.Warning) int { return cmp.Compare(rank(&a), rank(&b)) })
}
