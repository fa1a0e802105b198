package kit

// worstFirst are the codes of warnings about the whole report, the most important first: the kind of capture, its
// missing parts, and the parts that the window mixes. Others follow in the order of the sections.
var worstFirst = []string{
	"no_gpu_work", "no_kernels", "gpu_activity_missing", "time_unit", "incomplete_units", "hidden_graph_launches", "lost_kernels", "skipped_rows",
	"unjoined_kernels", "no_api_calls", "no_correlation", "no_process_column", "no_strings",
	"shared_device", "window_gap", "impossible_copies", "graph_trace", "phase_map", "unknown_device", "profiler_overhead", "nsys_errors", "lost_data",
}
