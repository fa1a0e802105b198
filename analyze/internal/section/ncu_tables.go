package section

import (
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/evidence/ncu"
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
			share = cell(stat.Ratio(*k.Duration, *s.total))
		}
		if s.shares != nil {
			traceTime, traceShare = report.F(s.times[i]), report.F(s.shares[i])
		}
		t.Row(report.S(k.Name), report.S(k.Info.Display), report.S(string(k.Info.Category)), report.S(string(k.Bound())), report.I(int64(len(k.Launches))),
			cell(k.Duration), share, mean, cell(k.Get(ncu.DRAMRatio)), cell(k.Get(ncu.SMRatio)), cell(k.Get(ncu.MemoryRatio)), cell(k.Throughput), cell(k.Get(ncu.Occupancy)), cell(k.Bytes),
			cell(k.Get(ncu.OccupancyPossible)), cell(k.Get(ncu.L1Hits)), cell(k.Get(ncu.L2Hits)), cell(k.Get(ncu.Registers)), text(k.Grid), text(k.Block), traceTime, traceShare)
	}
	t.Cut(s.in.Options.Top, "launches", "total", "share", "dram_bytes", "trace_time", "trace_share").Add()
}

// text is a cell of explain's own words, unknown where there are none.
func text(s string) report.Cell {
	if s == "" {
		return report.Null
	}
	return report.S(s)
}

// bandwidthColumns are profilemate's.
var bandwidthColumns = []report.Column{
	nameCol("kernel_name", "Kernel"), scaledCol("dram_read_bytes", report.Bytes, 0), scaledCol("dram_write_bytes", report.Bytes, 0),
	scaledCol("dram_throughput_pct", report.Ratio, 2), scaledCol("sm_throughput_pct", report.Ratio, 2), scaledCol("duration_ns", report.Nanoseconds, 0), scaledCol("bandwidth_gbps", report.BytesPerSec, -9),
}

// summaryColumns are llm-perf-opt's.
var summaryColumns = []report.Column{
	textCol("kernel_id", "Kernel"), nameCol("kernel_name", "Name"), textCol("display_name", "Short name"), textCol("grid_size", "Grid"), textCol("block_size", "Block"), idCol("device", "GPU"),
	textCol("cc", "Compute capability"), textCol("process", "Process"), idCol("process_id", "Process id"),
	scaledCol("sm_throughput_pct", report.Ratio, 2), scaledCol("dram_throughput_pct", report.Ratio, 2), scaledCol("mem_throughput_pct", report.Ratio, 2),
	scaledCol("l1tex_throughput_pct", report.Ratio, 2), scaledCol("l2_throughput_pct", report.Ratio, 2), scaledCol("duration_us", report.Nanoseconds, -3),
	scaledCol("mem_busy_pct", report.Ratio, 2), scaledCol("max_bandwidth_pct", report.Ratio, 2), scaledCol("memory_throughput_gbs", report.BytesPerSec, -9),
	scaledCol("l1tex_hit_rate_pct", report.Ratio, 2), scaledCol("l2_hit_rate_pct", report.Ratio, 2), scaledCol("achieved_occupancy_pct", report.Ratio, 2), scaledCol("theoretical_occupancy_pct", report.Ratio, 2),
	textCol("classification", "Classification"), scaledCol("roofline_ai_flops_per_byte", "", 0), scaledCol("roofline_flops_per_s", report.Flop, 0),
}

// scaledCol is a column of a file that others defined: one name, one scale.
func scaledCol(name, unit string, exp10 int) report.Column {
	return report.Column{ID: name, Title: name, Kind: report.Float, Unit: unit, CSV: []report.CSVCol{{Name: name, Exp10: exp10}}}
}

// details are the tables that are files only: a row per launch, and those in the shapes that profilemate and llm-perf-opt defined. Where
// they have one launch of a kernel, its first, these have the means of all.
func (s *ncuRun) details() {
	launches := s.out.Table("ncu_launches")
	for i := range s.data.Launches {
		l := &s.data.Launches[i]
		device := report.Null
		if l.Device >= 0 {
			device = report.I(int64(l.Device))
		}
		launches.Row(report.S(s.data.Kernels[l.Kernel].Name), report.I(l.ID), device, text(l.Grid), text(l.Block), cell(l.Get(ncu.Duration)), cell(l.DRAMThroughput()),
			cell(l.Get(ncu.DRAMRatio)), cell(l.Get(ncu.SMRatio)), cell(l.Get(ncu.MemoryRatio)), cell(l.Get(ncu.Occupancy)), cell(l.Get(ncu.Registers)))
	}
	launches.Cut(maxDetailRows, "duration").Attach()
	bandwidth, metrics, classes := s.out.Table("kernel_bandwidth_metrics"), s.out.Table("metrics_summary"), s.out.Table("classification_summary")
	for i := range s.data.Kernels {
		k := &s.data.Kernels[i]
		first := &s.data.Launches[k.Launches[0]]
		duration := meanOf(s.data.Values(k, ncu.Duration))
		bandwidth.Row(report.S(k.Name), cell(k.Get(ncu.DRAMRead)), cell(k.Get(ncu.DRAMWrite)), cell(k.Get(ncu.DRAMRatio)), cell(k.Get(ncu.SMRatio)), duration, cell(k.Throughput))
		device, pid := report.Null, report.Null
		if first.Device >= 0 {
			device = report.I(int64(first.Device))
		}
		if first.PID > 0 {
			pid = report.I(first.PID)
		}
		metrics.Row(text(k.ID), report.S(k.Name), text(displayName(k.Name)), text(k.Grid), text(k.Block), device, text(first.CC), text(first.Process), pid,
			cell(k.Get(ncu.SMRatio)), cell(k.Get(ncu.DRAMRatio)), cell(k.Get(ncu.MemoryRatio)), cell(k.Get(ncu.L1Ratio)), cell(k.Get(ncu.L2Ratio)), duration,
			cell(k.Get(ncu.MemBusy)), cell(k.Get(ncu.MaxBandwidth)), cell(k.Throughput), cell(k.Get(ncu.L1Hits)), cell(k.Get(ncu.L2Hits)), cell(k.Get(ncu.Occupancy)), cell(k.Get(ncu.OccupancyPossible)),
			text(k.Classification()), cell(k.Intensity), cell(k.FlopRate))
		classes.Row(text(k.ID), text(k.Classification()))
	}
	bandwidth.Attach()
	metrics.Attach()
	classes.Attach()
}

// meanOf is the mean of values, unknown where there are none.
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
