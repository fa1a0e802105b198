package merge

import (
	"maps"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
)

// rule says what becomes of a metric when captures are merged.
type rule int

const (
	leave  rule = iota // no meaning for a whole run: it stays in the capture's own report
	sum                // added up
	most               // the largest
	ofUnit             // of one step: the slowest device's, as in the report of a capture
	carry              // of a device: as it is, under the device's number in the run
	ratio              // from the merged numerator and denominator, see ratios
	spread             // the median of single events, from their counts
)

// rules by metric id. Metrics with the label device are carried, those with a pid are left: pids are of a host, and the
// numbers of a rank are in its own report.
var rules = map[string]rule{
	"api.count": sum, "api.time": sum, "capture.devices": sum, "capture.processes": sum,
	"comm.bytes": sum, "comm.count": sum, "comm.time": sum, "comm.exposed_time": sum,
	"component.gpu_time": sum, "component.kernel_count": sum,
	"graph.coverage": ratio, "graph.kernels": sum, "graph.launches": sum, "graph.time": sum, "graph.unique": sum,
	"kernel.count": sum, "kernel.duration": spread, "kernel.share": ratio, "kernel.tiny_count": sum,
	"kernel.total_time": sum, "kernel.unnamed_time": sum,
	"launch.api_time": sum, "launch.count": sum, "launch.errors": sum,
	"memcpy.bytes": sum, "memcpy.count": sum, "memcpy.rule_count": sum, "memcpy.rule_time": sum,
	"memcpy.sync_count": sum, "memcpy.sync_time": sum, "memcpy.throughput": ratio, "memcpy.time": sum,
	"memcpy.tiny_count": sum, "memset.bytes": sum, "memset.count": sum, "memset.time": sum,
	"nvtx.count": sum, "nvtx.coverage": ratio, "nvtx.gpu_time": sum, "nvtx.gpu_time_self": sum, "nvtx.wall_time": sum,
	"path.collectives": sum, "path.event_waits": sum, "path.inferred": sum,
	"phase.gpu_time": sum, "phase.kernel_count": sum, "phase.launch_count": sum, "phase.wall_time": sum,
	"quality.longest_gap": most, "quality.longest_gap_ratio": most, "quality.lost_data_messages": sum,
	"quality.lost_kernels": most, "quality.open_ranges": sum, "quality.profiler_overhead": sum,
	"quality.profiler_overhead_ratio": most, "quality.skipped_rows": sum, "quality.unjoined_kernels": ratio,
	"quality.unknown_device": sum, "quality.unknown_process": sum,
	"sync.count": sum, "sync.record_count": sum, "sync.record_time": sum, "sync.total_time": sum,
	"sync.blocked_time": sum, "wait.count": sum, "wait.time": sum, "unit.count": ofUnit,
}

// carried are the families whose metrics of a device are carried.
var carried = []string{"gpu.", "gpu_memory.", "idle.", "stream.", "comm.", "kernel."}

func ruleOf(m *report.Metric) rule {
	_, pid := m.Labels["pid"]
	_, device := m.Labels["device"]
	switch {
	case pid:
		return leave
	case m.Scale == report.PerUnit || m.ID == "unit.count":
		return ofUnit
	case device:
		if slices.ContainsFunc(carried, func(p string) bool { return strings.HasPrefix(m.ID, p) }) {
			return carry
		}
		return leave
	}
	return rules[m.ID]
}

// ratioRule names what a ratio is made of. Where there is no metric of the numerator it follows from the ratio and the
// denominator of each capture, and where there is none of the denominator from the numerator.
type ratioRule struct{ above, below string }

var ratios = map[string]ratioRule{
	"kernel.share":             {"kernel.total_time", "kernel.total_time"}, // of a kernel; all of them
	"memcpy.throughput":        {"memcpy.bytes", "memcpy.time"},
	"nvtx.coverage":            {"", "kernel.total_time"},
	"quality.unjoined_kernels": {"", "kernel.count"},
	"graph.coverage":           {"graph.time", ""},
}

// statsOf says which counts the summary of a metric is made of: a family, and which of its keys; ok is false where its
// events are not counted.
func statsOf(m *report.Metric, kinds *kindsOf) (family string, keep func(key string) bool, ok bool) {
	all := func(string) bool { return true }
	one := func(of string) func(string) bool { return func(k string) bool { return k == of } }
	switch m.ID {
	case "kernel.total_time", "kernel.duration":
		switch m.Labels.Keys() {
		case "":
			return "kernel", all, m.ID == "kernel.duration"
		case "kernel":
			return "kernel", one(m.Labels["kernel"]), true
		}
	case "launch.api_time", "sync.total_time", "api.time", "wait.time", "memcpy.sync_time":
		switch m.Labels.Keys() {
		case "":
			calls := kinds.calls[m.ID]
			return "api", func(k string) bool { return calls[k] }, m.ID != "api.time"
		case "api":
			return "api", one(m.Labels["api"]), m.ID != "memcpy.sync_time"
		}
	case "memcpy.time":
		direction, kind := m.Labels["direction"], m.Labels["kind"]
		return "memcpy", func(k string) bool {
			d, n, _ := strings.Cut(k, "/")
			return (direction == "" || d == direction) && (kind == "" || n == kind)
		}, true
	}
	return "", nil, false
}

// kindsOf remembers which calls a family of metrics counts.
type kindsOf struct{ calls map[string]map[string]bool }

func (k *kindsOf) see(m *report.Metric) {
	api, ok := m.Labels["api"]
	if !ok {
		return
	}
	if k.calls == nil {
		k.calls = map[string]map[string]bool{}
	}
	if k.calls[m.ID] == nil {
		k.calls[m.ID] = map[string]bool{}
	}
	k.calls[m.ID][api] = true
}

// tableRule says how rows of a table are merged: those with equal keys become one.
type tableRule struct {
	keys   []string // columns; of a table of devices device_id, which is renumbered
	sums   []string
	most   []string
	least  []string
	mean   [3]string // column, total, count: total over count
	mean2  [3]string
	rate   [3]string // column, amount, ns: amount per second
	share  [2]string // column, total: part of the column's sum
	by     [2]string // of weighted means: the weight; and the columns, separated by spaces
	counts string    // family whose counts give p50, p90 and p99 of the row, keyed by its first key
	order  string    // most of this column first; empty: by the keys
}

// others follows the rule of a table that ranks: what a capture cut from it is one row.
const others = "(others)"

// tableRules by section and table.
var tableRules = map[string]*tableRule{
	"overview/devices":     {keys: []string{"device_id"}},
	"overview/tables":      {keys: []string{"table", "role"}, sums: []string{"rows", "skipped"}},
	"gpu_time/gpu_time":    {keys: []string{"device_id"}},
	"gpu_time/idle_causes": {keys: []string{"device_id"}},
	"kernels/kernels": {keys: []string{"kernel_name", "short", "category", "library"}, sums: []string{"count", "total"},
		least: []string{"min"}, most: []string{"max"}, mean: [3]string{"mean", "total", "count"},
		share: [2]string{"share", "total"}, by: [2]string{"count", "avg_grid_size avg_block_size"}, counts: "kernel",
		order: "total"},
	"kernels/kernels_per_device": {keys: []string{"device_id", "kernel_name"}},
	"categories/categories": {keys: []string{"category"}, sums: []string{"count", "total"}, most: []string{"names"},
		mean: [3]string{"mean", "total", "count"}, share: [2]string{"share", "total"}, order: "total"},
	"categories/libraries": {keys: []string{"library"}, sums: []string{"count", "total"}, most: []string{"names"},
		mean: [3]string{"mean", "total", "count"}, share: [2]string{"share", "total"}, order: "total"},
	"components/components": {keys: []string{"component"}, sums: []string{"total", "count", "by_nvtx", "by_name"},
		share: [2]string{"share", "total"}, order: "total"},
	"unit/unit_groups":  {},
	"unit/unit_time":    {},
	"unit/unit_kernels": {},
	"unit/unit_api":     {},
	"launches/launches": {keys: []string{"api_name"}, sums: []string{"count", "total"}, most: []string{"max"},
		mean: [3]string{"mean", "total", "count"}, counts: "api", order: "count"},
	"launches/tiny_kernels": {keys: []string{"kernel_name"}, sums: []string{"count", "total"},
		mean: [3]string{"mean", "total", "count"}, order: "count"},
	"launches/cuda_api": {keys: []string{"api_name"}, sums: []string{"count", "total"}, least: []string{"min"},
		most: []string{"max"}, mean: [3]string{"mean", "total", "count"}, share: [2]string{"share", "total"}, counts: "api",
		order: "total"},
	"sync/sync": {keys: []string{"api_name"}, sums: []string{"count", "total"}, least: []string{"min"},
		most: []string{"max"}, mean: [3]string{"mean", "total", "count"}, counts: "api", order: "total"},
	"sync/waits": {keys: []string{"api_name", "kind"}, sums: []string{"count", "total"}, most: []string{"max"},
		mean: [3]string{"mean", "total", "count"}, counts: "api", order: "total"},
	"memcpy/memcpy": {keys: []string{"direction", "kind"}, sums: []string{"count", "total", "bytes"},
		most: []string{"max", "max_bytes"}, mean: [3]string{"mean", "total", "count"},
		mean2: [3]string{"mean_bytes", "bytes", "count"}, rate: [3]string{"throughput", "bytes", "total"}, order: "total"},
	"memcpy/memset": {keys: []string{"kind"}, sums: []string{"count", "total", "bytes"},
		most: []string{"max", "max_bytes"}, mean: [3]string{"mean", "total", "count"},
		mean2: [3]string{"mean_bytes", "bytes", "count"}, rate: [3]string{"throughput", "bytes", "total"}, order: "total"},
	"comm/comm": {keys: []string{"collective", "library"}, sums: []string{"count", "total", "exposed"},
		most: []string{"max"}, mean: [3]string{"mean", "total", "count"}, order: "total"},
	"comm/comm_devices":   {keys: []string{"device_id"}},
	"gpu_power/gpu_power": {keys: []string{"device_id"}},
	"nvtx/nvtx_ranges": {keys: []string{"range_name"}, sums: []string{"count", "gpu", "self", "kernels", "wall", "sum"},
		least: []string{"min"}, most: []string{"max"}, mean: [3]string{"mean", "sum", "count"},
		share: [2]string{"self_share", "self"}, order: "gpu"},
	"phases/phases": {keys: []string{"phase"}, sums: []string{"ranges", "gpu", "kernels", "launches", "wall"},
		order: "gpu"},
}

// Merges reports whether a metric of a capture has a place in a merged report, with some of its labels.
func Merges(d *report.MetricDef) bool {
	labels := d.Labels
	if len(labels) == 0 {
		labels = []string{""}
	}
	return slices.ContainsFunc(labels, func(keys string) bool {
		m := report.Metric{ID: d.ID, Scale: d.Scale, Labels: report.Labels{}}
		for _, k := range strings.Split(keys, ",") {
			if k != "" {
				m.Labels[k] = "x"
			}
		}
		return ruleOf(&m) != leave
	})
}

// Ruled are the ids of metrics that have a rule of their own, sorted.
func Ruled() []string { return slices.Sorted(maps.Keys(rules)) }
