package kernelcounters

import (
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/evidence/ncu"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
)

// table ranks the kernels by measured time.
func (s *ncuRun) table() {
	s.match()
	t := s.out.Table("ncu_kernels")
	for i := range s.data.Kernels {
		k := &s.data.Kernels[i]
		mean, share, traceTime, traceShare := report.Null, report.Null, report.Null, report.Null
		if k.Duration != nil {
			mean = report.F(*k.Duration / float64(max(1, len(s.data.Values(k, ncu.Duration)))))
			share = kit.Cell(stat.Ratio(*k.Duration, *s.total))
		}
		if s.shares != nil {
			traceTime, traceShare = report.F(s.times[i]), report.F(s.shares[i])
		}
		t.Row(
			kit.Text("kernel_name", k.Name), kit.Text("short", k.Info.Display),
			kit.Text("category", string(k.Info.Category)), kit.Text("bound", string(k.Bound())),
			kit.Int("launches", int64(len(k.Launches))), kit.Maybe("total", k.Duration), kit.Put("share", share),
			kit.Put("mean", mean), kit.Maybe("dram_ratio", k.Get(ncu.DRAMRatio)),
			kit.Maybe("sm_ratio", k.Get(ncu.SMRatio)), kit.Maybe("memory_ratio", k.Get(ncu.MemoryRatio)),
			kit.Maybe("dram_throughput", k.Throughput), kit.Maybe("occupancy", k.Get(ncu.Occupancy)),
			kit.Maybe("dram_bytes", k.Bytes), kit.Maybe("occupancy_limit", k.Get(ncu.OccupancyPossible)),
			kit.Maybe("l1_hit_ratio", k.Get(ncu.L1Hits)), kit.Maybe("l2_hit_ratio", k.Get(ncu.L2Hits)),
			kit.Maybe("load_use", k.Get(ncu.LoadUse)), kit.Maybe("store_use", k.Get(ncu.StoreUse)),
			kit.Maybe("registers", k.Get(ncu.Registers)), kit.Put("grid", text(k.Grid)),
			kit.Put("block", text(k.Block)), kit.Put("trace_time", traceTime),
			kit.Put("trace_share", traceShare))
	}
	t.Cut(s.in.Options.Top, "launches", "total", "share", "dram_bytes", "trace_time", "trace_share").Add()
}

// text is a cell of explain's own words, unknown if empty.
func text(s string) report.Cell {
	if s == "" {
		return report.Null
	}
	return report.S(s)
}

// bandwidthColumns are profilemate's.
var bandwidthColumns = []report.Column{
	kit.NameCol("kernel_name", "Kernel"), scaledCol("dram_read_bytes", report.Bytes, 0),
	scaledCol("dram_write_bytes", report.Bytes, 0),
	scaledCol("dram_throughput_pct", report.Ratio, 2), scaledCol("sm_throughput_pct", report.Ratio, 2),
	scaledCol("duration_ns", report.Nanoseconds, 0), scaledCol("bandwidth_gbps", report.BytesPerSec, -9),
}

// summaryColumns are llm-perf-opt's.
var summaryColumns = []report.Column{
	kit.TextCol("kernel_id", "Kernel"), kit.NameCol("kernel_name", "Name"), kit.TextCol("display_name", "Short name"),
	kit.TextCol("grid_size", "Grid"), kit.TextCol("block_size", "Block"), kit.IDCol("device", "GPU"),
	kit.TextCol("cc", "Compute capability"), kit.TextCol("process", "Process"), kit.IDCol("process_id", "Process id"),
	scaledCol("sm_throughput_pct", report.Ratio, 2), scaledCol("dram_throughput_pct", report.Ratio, 2),
	scaledCol("mem_throughput_pct", report.Ratio, 2),
	scaledCol("l1tex_throughput_pct", report.Ratio, 2), scaledCol("l2_throughput_pct", report.Ratio, 2),
	scaledCol("duration_us", report.Nanoseconds, -3),
	scaledCol("mem_busy_pct", report.Ratio, 2), scaledCol("max_bandwidth_pct", report.Ratio, 2),
	scaledCol("memory_throughput_gbs", report.BytesPerSec, -9),
	scaledCol("l1tex_hit_rate_pct", report.Ratio, 2), scaledCol("l2_hit_rate_pct", report.Ratio, 2),
	scaledCol("achieved_occupancy_pct", report.Ratio, 2), scaledCol("theoretical_occupancy_pct", report.Ratio, 2),
	kit.TextCol("classification", "Classification"), scaledCol("roofline_ai_flops_per_byte", "", 0),
	scaledCol("roofline_flops_per_s", report.Flop, 0),
}

// scaledCol is a column of a file format that others defined: one name, one scale.
func scaledCol(name, unit string, exp10 int) report.Column {
	return report.Column{ID: name, Title: name, Kind: report.Float, Unit: unit,
		CSV: []report.CSVCol{{Name: name, Exp10: exp10}}}
}

// details are the tables that are written as files only: a row per launch, and those in the formats of profilemate and
// llm-perf-opt. Those tools list only the first launch of a kernel; here the values are means over all its launches.
func (s *ncuRun) details() {
	launches := s.out.Table("ncu_launches")
	for i := range s.data.Launches {
		l := &s.data.Launches[i]
		device := report.Null
		if l.Device >= 0 {
			device = report.I(int64(l.Device))
		}
		launches.Row(
			kit.Text("kernel_name", s.data.Kernels[l.Kernel].Name), kit.Int("id", l.ID),
			kit.Put("device_id", device), kit.Put("grid", text(l.Grid)), kit.Put("block", text(l.Block)),
			kit.Maybe("duration", l.Get(ncu.Duration)), kit.Maybe("dram_throughput", l.DRAMThroughput()),
			kit.Maybe("dram_ratio", l.Get(ncu.DRAMRatio)), kit.Maybe("sm_ratio", l.Get(ncu.SMRatio)),
			kit.Maybe("memory_ratio", l.Get(ncu.MemoryRatio)), kit.Maybe("occupancy", l.Get(ncu.Occupancy)),
			kit.Maybe("registers", l.Get(ncu.Registers)))
	}
	launches.Cut(s.in.Options.DetailRows, "duration").Attach()
	bandwidth, metrics, classes := s.out.Table("kernel_bandwidth_metrics"), s.out.Table("metrics_summary"),
		s.out.Table("classification_summary")
	for i := range s.data.Kernels {
		k := &s.data.Kernels[i]
		first := &s.data.Launches[k.Launches[0]]
		duration := meanOf(s.data.Values(k, ncu.Duration))
		bandwidth.Row(
			kit.Text("kernel_name", k.Name), kit.Maybe("dram_read_bytes", k.Get(ncu.DRAMRead)),
			kit.Maybe("dram_write_bytes", k.Get(ncu.DRAMWrite)),
			kit.Maybe("dram_throughput_pct", k.Get(ncu.DRAMRatio)),
			kit.Maybe("sm_throughput_pct", k.Get(ncu.SMRatio)), kit.Put("duration_ns", duration),
			kit.Maybe("bandwidth_gbps", k.Throughput))
		device, pid := report.Null, report.Null
		if first.Device >= 0 {
			device = report.I(int64(first.Device))
		}
		if first.PID > 0 {
			pid = report.I(first.PID)
		}
		metrics.Row(
			kit.Put("kernel_id", text(k.ID)), kit.Text("kernel_name", k.Name),
			kit.Put("display_name", text(displayName(k.Name))), kit.Put("grid_size", text(k.Grid)),
			kit.Put("block_size", text(k.Block)), kit.Put("device", device), kit.Put("cc", text(first.CC)),
			kit.Put("process", text(first.Process)), kit.Put("process_id", pid),
			kit.Maybe("sm_throughput_pct", k.Get(ncu.SMRatio)),
			kit.Maybe("dram_throughput_pct", k.Get(ncu.DRAMRatio)),
			kit.Maybe("mem_throughput_pct", k.Get(ncu.MemoryRatio)),
			kit.Maybe("l1tex_throughput_pct", k.Get(ncu.L1Ratio)),
			kit.Maybe("l2_throughput_pct", k.Get(ncu.L2Ratio)), kit.Put("duration_us", duration),
			kit.Maybe("mem_busy_pct", k.Get(ncu.MemBusy)),
			kit.Maybe("max_bandwidth_pct", k.Get(ncu.MaxBandwidth)),
			kit.Maybe("memory_throughput_gbs", k.Throughput), kit.Maybe("l1tex_hit_rate_pct", k.Get(ncu.L1Hits)),
			kit.Maybe("l2_hit_rate_pct", k.Get(ncu.L2Hits)),
			kit.Maybe("achieved_occupancy_pct", k.Get(ncu.Occupancy)),
			kit.Maybe("theoretical_occupancy_pct", k.Get(ncu.OccupancyPossible)),
			kit.Put("classification", text(k.Classification())),
			kit.Maybe("roofline_ai_flops_per_byte", k.Intensity), kit.Maybe("roofline_flops_per_s", k.FlopRate))
		classes.Row(kit.Put("kernel_id", text(k.ID)), kit.Put("classification", text(k.Classification())))
	}
	bandwidth.Attach()
	metrics.Attach()
	classes.Attach()
}

// meanOf is the mean of values, unknown if there are none.
func meanOf(values []float64) report.Cell {
	if len(values) == 0 {
		return report.Null
	}
	var sum float64
	for _, v := range values {
		sum += v
	}
	return report.F(sum / float64(len(values)))
}

// displayName is llm-perf-opt's: letters, digits and underscores, all else one underscore, 80 characters at most.
func displayName(name string) string {
	const most = 80
	var b strings.Builder
	last := byte(0)
	for i := range len(name) {
		c := name[i]
		if c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			if last == 1 {
				continue
			}
			c, last = '_', 1
		} else {
			last = 0
		}
		b.WriteByte(c)
		if b.Len() == most {
			break
		}
	}
	return b.String()
}
