package session

import (
	"bytes"
	"strings"
)

// form is one kind of CSV file: the columns that tell it, and what takes its rows.
type form struct {
	name string // the file that profilemate writes
	// columns by name, in the order in which take asks for them: "a|b" is called one or the other, "a?" may be missing.
	columns []string
	take    func(d *Data, r *row) bool
}

// forms of a session's CSV files. No two have all required columns in common.
var forms = []*form{
	{"forward_pass_timing.csv", []string{"timestamp_sec", "phase", "num_tokens", "forward_time_ms|duration_ms",
		"batch_size?"}, (*Data).takeForward},
	{"cpu_operations_timing.csv", []string{"timestamp_sec", "operation", "duration_ms", "context?"},
		(*Data).takeOperation},
	{"encoder_decoder_timing.csv", []string{"timestamp_sec", "component", "duration_ms"}, (*Data).takeComponent},
	{"batch_utilization.csv", []string{"timestamp_sec", "num_seqs", "max_num_seqs", "num_tokens", "max_tokens",
		"phase?", "running_queue_len?", "waiting_queue_len?"}, (*Data).takeBatch},
	{"preemption_events.csv", []string{"timestamp_sec", "request_id", "event", "reason?", "running_time_sec?"},
		(*Data).takeEvent},
	{"request_lifecycle.csv", []string{"request_id", "started_sec", "preempted_sec", "resumed_sec", "finished_sec",
		"total_time_sec?", "preemption_delay_sec?"}, (*Data).takeRequest},
	{"kv_cache_usage.csv", []string{"timestamp_sec", "usage_pct", "num_blocks?", "total_blocks?"}, (*Data).takeUsage},
	{"kv_cache_evictions.csv", []string{"timestamp_sec", "lifetime_sec", "idle_sec"}, (*Data).takeEviction},
	{"cuda_graph_captures.csv", []string{"runtime_mode", "num_tokens", "capture_time_sec|capture_time", "num_reqs?",
		"uniform?", "has_lora?"}, (*Data).takeCapture},
	{"cuda_graph_usage.csv", []string{"runtime_mode", "num_tokens", "replay_count", "num_reqs?", "uniform?",
		"has_lora?"}, (*Data).takeReplays},
	{"cuda_graph_timeline.csv", []string{"timestamp_sec", "descriptor", "duration_ms"}, (*Data).takeReplay},
	{"moe_expert_activations.csv", []string{"layer_idx", "expert_id", "activation_count"}, (*Data).takeActivations},
	{"moe_expert_coselection.csv", []string{"layer_idx", "expert_id_1", "expert_id_2", "coselection_count"},
		(*Data).takePair},
	{"moe_routing_weights_hist.csv", []string{"layer_idx", "token_idx", "expert_id", "weight"}, (*Data).takeWeight},
	{"moe_load_imbalance.csv", []string{"layer_idx", "timestamp_sec", "std_dev", "max_min_ratio"},
		(*Data).takeImbalance},
}

// places says where in a header the form's columns are, -1 for those that are missing and may be; nil if the header is
// not of this form.
func (f *form) places(header [][]byte) []int {
	at := make([]int, len(f.columns))
	for i, c := range f.columns {
		c, optional := strings.CutSuffix(c, "?")
		at[i] = -1
		for _, name := range strings.Split(c, "|") {
			for j, h := range header {
				if at[i] < 0 && strings.EqualFold(string(bytes.TrimSpace(h)), name) {
					at[i] = j
				}
			}
		}
		if at[i] < 0 && !optional {
			return nil
		}
	}
	return at
}

// formOf finds the form of a CSV file by its first line.
func formOf(head []byte) *form {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	line, _, _ := bytes.Cut(head, []byte("\n"))
	if line = bytes.TrimRight(line, "\r"); len(line) > maxHeader || bytes.IndexByte(line, ',') < 0 {
		return nil
	}
	header := split(nil, bytes.Clone(line))
	for _, f := range forms {
		if f.places(header) != nil {
			return f
		}
	}
	return nil
}

// maxHeader bounds the first line of a file. The longest real one has 140 bytes.
const maxHeader = 4 << 10
