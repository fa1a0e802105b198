package kernelcounters

import (
	"cmp"
	"regexp"

	"github.com/nsys-llm/explain/analyze/internal/evidence/ncu"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// columnFields are the columns of the tables that hold a field of a launch or of a kernel.
var columnFields = map[string]ncu.Field{
	"dram_ratio": ncu.DRAMRatio, "dram_throughput_pct": ncu.DRAMRatio,
	"sm_ratio": ncu.SMRatio, "sm_throughput_pct": ncu.SMRatio,
	"memory_ratio": ncu.MemoryRatio, "mem_throughput_pct": ncu.MemoryRatio,
	"occupancy": ncu.Occupancy, "achieved_occupancy_pct": ncu.Occupancy,
	"occupancy_limit": ncu.OccupancyPossible, "theoretical_occupancy_pct": ncu.OccupancyPossible,
	"l1_hit_ratio": ncu.L1Hits, "l1tex_hit_rate_pct": ncu.L1Hits,
	"l2_hit_ratio": ncu.L2Hits, "l2_hit_rate_pct": ncu.L2Hits,
	"l1tex_throughput_pct": ncu.L1Ratio, "l2_throughput_pct": ncu.L2Ratio,
	"load_use": ncu.LoadUse, "store_use": ncu.StoreUse, "registers": ncu.Registers,
	"dram_read_bytes": ncu.DRAMRead, "dram_write_bytes": ncu.DRAMWrite,
	"mem_busy_pct": ncu.MemBusy, "max_bandwidth_pct": ncu.MaxBandwidth,
}

// measured fills the columns of a table that hold a field.
func measured(t *kit.Table, get func(f ncu.Field) *float64) (row []kit.Field) {
	for _, c := range t.Columns {
		if f, ok := columnFields[c.ID]; ok {
			row = append(row, kit.Maybe(c.ID, get(f)))
		}
	}
	return row
}

// table ranks the kernels by measured time.
func (s *ncuRun) table() {
	s.match()
	t := s.out.Table("ncu_kernels")
	for _, k := range s.data.Kernels {
		row := append(measured(t, k.Get),
			kit.Text("kernel_name", k.Name), kit.Text("short", k.Info.Display),
			kit.Text("category", string(k.Info.Category)), kit.Text("bound", string(k.Bound())),
			kit.Int("launches", int64(len(k.Launches))),
			kit.Maybe("total", k.Duration), kit.Maybe("mean", meanDuration(k)),
			kit.Maybe("dram_throughput", k.Throughput), kit.Maybe("dram_bytes", k.Bytes),
			kit.Put("grid", report.OrNull(k.Grid)), kit.Put("block", report.OrNull(k.Block)))
		if k.Duration != nil {
			row = append(row, kit.Maybe("share", stat.Ratio(*k.Duration, *s.all.Duration)))
		}
		if s.shares != nil {
			row = append(row, kit.Float("trace_time", s.times[k]), kit.Float("trace_share", s.shares[k]))
		}
		t.Partial(row...)
	}
	t.Cut(s.in.Options.Top, "launches", "total", "share", "dram_bytes", "trace_time", "trace_share").Add()
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
	for _, l := range s.data.Launches {
		launches.Row(append(measured(launches, l.Get),
			kit.Text("kernel_name", l.Kernel.Name), kit.Int("id", l.ID),
			kit.Put("device_id", kit.Known(int64(l.Device))), kit.Put("grid", report.OrNull(l.Grid)), kit.Put("block", report.OrNull(l.Block)),
			kit.Maybe("duration", l.Get(ncu.Duration)), kit.Maybe("dram_throughput", l.DRAMThroughput()))...)
	}
	launches.Cut(s.in.Options.DetailRows, "duration").Attach()
	bandwidth, metrics, classes := s.out.Table("kernel_bandwidth_metrics"), s.out.Table("metrics_summary"),
		s.out.Table("classification_summary")
	for _, k := range s.data.Kernels {
		first := k.Launches[0]
		duration := meanDuration(k)
		bandwidth.Row(append(measured(bandwidth, k.Get),
			kit.Text("kernel_name", k.Name), kit.Maybe("duration_ns", duration),
			kit.Maybe("bandwidth_gbps", k.Throughput))...)
		pid := cmp.Or(first.PID, -1)
		id, class := kit.Text("kernel_id", k.ID), kit.Text("classification", k.Classification())
		metrics.Row(append(measured(metrics, k.Get), id, class, kit.Text("kernel_name", k.Name),
			kit.Put("display_name", report.OrNull(displayName(k.Name))), kit.Put("grid_size", report.OrNull(k.Grid)),
			kit.Put("block_size", report.OrNull(k.Block)), kit.Put("device", kit.Known(int64(first.Device))), kit.Put("cc", report.OrNull(first.CC)),
			kit.Put("process", report.OrNull(first.Process)), kit.Put("process_id", kit.Known(pid)),
			kit.Maybe("duration_us", duration), kit.Maybe("memory_throughput_gbs", k.Throughput),
			kit.Maybe("roofline_ai_flops_per_byte", k.Intensity), kit.Maybe("roofline_flops_per_s", k.FlopRate))...)
		classes.Row(id, class)
	}
	bandwidth.Attach()
	metrics.Attach()
	classes.Attach()
}

// meanDuration is the mean of the durations of a kernel's launches, unknown if there are none.
func meanDuration(k *ncu.Kernel) *float64 {
	return stat.Ratio(report.ValueOr(k.Duration, 0), float64(len(k.Values(ncu.Duration))))
}

// displayName is llm-perf-opt's: letters, digits and underscores, all else one underscore, 80 characters at most.
func displayName(name string) string {
	name = special.ReplaceAllString(name, "_")
	return name[:min(len(name), 80)]
}

var special = regexp.MustCompile(`\W+`)

// findings name the limits of the measured kernels, and the advice for them.
func (s *ncuRun) findings(coverage *float64) {
	if v := s.all.Get(ncu.DRAMRatio); v != nil {
		switch ref := kit.Refs("ncu.dram_ratio", "ncu.sm_ratio"); {
		case *v > highDRAM:
			s.out.Find("high_dram", ref,
				"They are bound by memory: quantise weights or the KV cache, fuse kernels that pass tensors through memory, or raise the batch so that weights are read once for more tokens.")
		case *v < lowDRAM:
			s.out.Find("low_dram",
				ref,
				"Memory is not what limits them on average: see which are bound by compute and which by latency, and whether a larger batch fills the GPU.")
		}
	}
	if total := report.ValueOr(s.all.Duration, 0); total > 0 && s.boundTime[ncu.Latency]/total >= latencyShare {
		s.out.Find("latency_bound",
			[]report.MetricRef{kit.Ref("ncu.bound_time", "bound", string(ncu.Latency)), kit.Ref("ncu.duration")},
			"Neither SMs nor memory are busy in them: give a launch more work (a larger batch, split-K, more blocks), "+
				"or have fewer of them (fusion).",
			"If the possible occupancy is low, registers or shared memory limit it; the sections Warp State "+
				"Statistics and Scheduler Statistics say what warps wait for.")
	}
	s.topFinding()
	if coverage != nil && *coverage < fewMeasuredShare {
		s.out.Find("few_measured", kit.Refs("ncu.trace_coverage"),
			"`explain report TRACE --ncu-targets kernels.yaml` lists the kernels that take the time, and writes the command that measures them.")
	}
}

// boundAdvice is the advice for a kernel, by its limit.
var boundAdvice = map[ncu.Bound][]string{
	ncu.Memory:   {"It waits for memory: move fewer bytes (a narrower data type for weights, activations or the KV cache, fusion with its neighbours), or use each byte for more (a larger batch, a kernel that tiles better)."},
	ncu.Compute:  {"It is limited by arithmetic: a narrower data type (fp8 instead of bf16), tensor cores if it does not use them, or less to compute."},
	ncu.Balanced: {"Arithmetic and memory are about equally busy: only less work makes it faster, by a better algorithm or a narrower data type for both."},
	ncu.Latency:  {"Neither arithmetic nor memory is busy: give it more parallel work (a larger batch, more and smaller blocks, split-K or split-KV), or fuse it into its neighbours."},
}

// cacheAdvice is for kernels that wait for memory other than DRAM.
var cacheAdvice = []string{"Its data comes from the caches or shared memory, and they are busy: make accesses contiguous across a warp (coalesced), load wider words, and keep values in registers."}

// topFinding reports the kernel with most time: in the trace if there is one, else as measured.
func (s *ncuRun) topFinding() {
	top, share := -1, 0.0
	for i, k := range s.data.Kernels {
		var v float64
		switch {
		case s.shares != nil:
			v = s.shares[k]
		case report.ValueOr(s.all.Duration, 0) > 0:
			v = report.ValueOr(k.Duration, 0) / *s.all.Duration
		}
		if v > share {
			top, share = i, v
		}
	}
	if share < topKernelShare || top >= s.emitted || s.data.Kernels[top].Bound() == ncu.Unknown {
		return
	}
	k := s.data.Kernels[top]
	advice, words := boundAdvice[k.Bound()], boundWords[k.Bound()]
	dram, sm := kit.Ref("ncu.dram_ratio", "kernel", k.Name), kit.Ref("ncu.sm_ratio", "kernel", k.Name)
	evidence := []report.MetricRef{sm, dram}
	if k.Bound() == ncu.Memory {
		evidence = []report.MetricRef{dram, sm}
		if v := k.Get(ncu.MemoryRatio); v != nil && *v > report.ValueOr(k.Get(ncu.DRAMRatio), 0) &&
			top < maxNCUDetails && !k.DRAMBound() {
			evidence = append([]report.MetricRef{kit.Ref("ncu.memory_ratio", "kernel", k.Name)}, evidence...)
			advice, words = cacheAdvice, "the caches"
		}
	}
	evidence = append(evidence, kit.Ref("ncu.duration", "kernel", k.Name))
	if access, use := worstAccess(k); k.Bound() == ncu.Memory && use < fewUsed && top < maxNCUDetails {
		words += ", and its " + access + "s use " + unit.Percent(use) + " of each sector"
		evidence = append(evidence, kit.Ref("ncu.sector_use_ratio", "kernel", k.Name, "access", access))
		advice = []string{"It moves bytes that nothing asks for: have neighbouring threads touch neighbouring addresses (the innermost index along a warp, structures of arrays), or go through shared memory."}
	}
	if v := k.Get(ncu.OccupancyPossible); k.Bound() == ncu.Latency && v != nil && *v < lowOccupancy &&
		top < maxNCUDetails {
		evidence = append(evidence, kit.Ref("ncu.occupancy_limit", "kernel", k.Name))
		advice = append(advice[:len(advice):len(advice)],
			"Few of its warps fit on an SM: it needs fewer registers or less shared memory per block.")
	}
	s.out.FindAs("top_kernel_bound", "The top kernel is bound by "+words, evidence, advice...)
}

// fewUsed is the share of the bytes moved, 0..1, below which unused bytes are a finding.
const fewUsed = 0.80

// worstAccess is the kind of access to global memory that uses the smallest part of the bytes that it moves; all kinds
// together if they were not measured apart.
func worstAccess(k *ncu.Kernel) (access string, use float64) {
	use = 1
	for _, x := range details {
		if v := k.Get(x.field); x.id == "ncu.sector_use_ratio" && v != nil && *v > 0 && *v < use {
			access, use = x.value, *v
		}
	}
	return access, use
}

var boundWords = map[ncu.Bound]string{ncu.Compute: "compute", ncu.Memory: "memory",
	ncu.Balanced: "compute and memory alike", ncu.Latency: "latency"}
