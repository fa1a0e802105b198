package kernelcounters

import (
	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/ncu"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var Kernels = kit.Section{
	ID: "ncu", Group: report.GroupKernels, Title: "Nsight Compute", Evidence: []file.Kind{file.NCU},
	Derivation: "Launches of Nsight Compute's raw and details pages, grouped by kernel name. Shares and rates " +
		"are means weighted by duration; throughput is bytes over time where bytes were counted, else as ncu " +
		"prints it.",
	Findings: []kit.FindingDef{
		{ID: "high_dram", Title: "The profiled kernels saturate DRAM bandwidth"},
		{ID: "low_dram", Title: "The measured kernels use less than half of what device memory can transfer"},
		{ID: "latency_bound", Title: "Most of the measured time is in kernels bound by latency"},
		{ID: "few_measured", Title: "Nsight Compute measured kernels that take less than half of the trace's kernel time"},
		{ID: "top_kernel_bound", Title: "The top kernel is bound by one resource"},
	},
	Metrics: []report.MetricDef{
		kit.ExactCount("ncu.launches", report.None, report.Leave,
			"launches that Nsight Compute measured").By("", "kernel"),
		kit.TotalTime("ncu.duration", report.Lower, report.Leave,
			"sum of the durations of measured launches, each replayed alone").Summarised().By("", "kernel"),
		kit.Rate("ncu.dram_throughput", report.Higher, report.Leave,
			"bytes per second read from and written to device memory").Summarised().By("", "kernel"),
		report.Define("ncu.dram_bytes", report.Bytes, report.Lower, report.Noisy, report.Total, report.Leave,
			"bytes read from and written to device memory by the launches for which they were counted").By("kernel"),
		kit.Ratio("ncu.dram_ratio", report.None, report.Leave,
			"throughput of device memory, of its peak").Summarised().By("", "kernel"),
		kit.Ratio("ncu.sm_ratio", report.None, report.Leave,
			"throughput of the SMs, of its peak").Summarised().By("", "kernel"),
		kit.Ratio("ncu.memory_ratio", report.None, report.Leave,
			"throughput of the busiest part of the memory system, caches included, of its peak").By("", "kernel"),
		kit.Ratio("ncu.occupancy", report.Higher, report.Leave,
			"active warps per SM, of those it can hold").By("", "kernel"),
		report.Define("ncu.occupancy_limit", report.Ratio, report.Higher, report.Exact, report.Level, report.Leave,
			"warps that fit on an SM, of those it can hold: theoretical occupancy").By("kernel"),
		kit.Ratio("ncu.cache_hit_ratio", report.Higher, report.Leave, "hit rate of a cache: l1, l2").By("kernel,cache"),
		kit.Ratio("ncu.sector_use_ratio", report.Higher, report.Leave, "bytes that loads or stores of global memory "+
			"ask for, of the 32-byte sectors that they move").By("kernel,access"),
		kit.NoisyLevel("ncu.sectors_per_request", report.Lower, report.Leave, "32-byte sectors per request of a warp "+
			"to global memory: 4 where each thread has 4 bytes beside its neighbour's").By("kernel,access"),
		kit.ExactLevel("ncu.registers", report.None, report.Leave, "registers per thread").By("kernel"),
		kit.TotalTime("ncu.bound_time", report.None, report.Leave,
			"measured time of kernels by what limits them: compute, memory, balanced, latency, unknown").By("bound"),
		kit.NoisyCount("ncu.bound_kernels", report.None, report.Leave, "kernels by what limits them").By("bound"),
		kit.ExactCount("ncu.moe_kernels", report.None, report.Leave, "kernels that are part of a mixture of experts"),
		kit.TotalTime("ncu.moe_time", report.Lower, report.Leave,
			"measured time of kernels that are part of a mixture of experts"),
		kit.Ratio("ncu.trace_coverage", report.Higher, report.Leave,
			"share of the trace's kernel time whose kernels Nsight Compute measured"),
	},
	Tables: []report.Table{
		{ID: "ncu_kernels", Title: "Measured kernels", File: "ncu_kernels.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NameCol("kernel_name", "Kernel"),
			kit.Wide(kit.NameCol("short", "Short name")),
			kit.Wide(kit.TextCol("category", "Category")),
			kit.TextCol("bound", "Bound"),
			kit.CountCol("launches", "Launches"),
			kit.MeanCol("total", "Total", "total_time_ns", "total_time_us"),
			kit.RatioCol("share", "Share", "pct_measured_time"),
			kit.Wide(kit.MeanCol("mean", "Mean", "avg_duration_us")),
			kit.RatioCol("dram_ratio", "DRAM", "dram_throughput_pct"),
			kit.RatioCol("sm_ratio", "SM", "sm_throughput_pct"),
			kit.RatioCol("memory_ratio", "Memory", "mem_throughput_pct"),
			kit.FloatCol("dram_throughput", "DRAM throughput", report.BytesPerSec),
			kit.RatioCol("occupancy", "Occupancy", "achieved_occupancy_pct"),
			kit.Wide(kit.FloatCol("dram_bytes", "DRAM bytes", report.Bytes)),
			kit.Wide(kit.RatioCol("occupancy_limit", "Possible occupancy", "theoretical_occupancy_pct")),
			kit.Wide(kit.RatioCol("l1_hit_ratio", "L1 hits", "l1tex_hit_rate_pct")),
			kit.Wide(kit.RatioCol("l2_hit_ratio", "L2 hits", "l2_hit_rate_pct")),
			kit.Wide(kit.RatioCol("load_use", "Load sectors used", "load_efficiency_pct")),
			kit.Wide(kit.RatioCol("store_use", "Store sectors used", "store_efficiency_pct")),
			kit.Wide(kit.FloatCol("registers", "Registers", report.Count)),
			kit.Wide(kit.TextCol("grid", "Grid")),
			kit.Wide(kit.TextCol("block", "Block")),
			kit.Wide(kit.MeanCol("trace_time", "In the trace", "trace_time_ms")),
			kit.Wide(kit.RatioCol("trace_share", "Of the trace", "trace_pct")),
		}},
		{ID: "ncu_moe", Title: "Kernels of mixtures of experts", File: "ncu_moe.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NameCol("kernel_name", "Kernel"),
			kit.TextCol("bound", "Bound"),
			kit.CountCol("launches", "Launches"),
			kit.MeanCol("total", "Total", "total_time_us"),
			kit.FloatCol("dram_throughput", "DRAM throughput", report.BytesPerSec),
		}},
		{ID: "ncu_launches", Title: "Measured launches", File: "ncu_launches.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NameCol("kernel_name", "Kernel"),
			kit.IDCol("id", "ID"),
			kit.IDCol("device_id", "GPU"),
			kit.TextCol("grid", "Grid"),
			kit.TextCol("block", "Block"),
			kit.MeanCol("duration", "Duration", "duration_ns"),
			kit.FloatCol("dram_throughput", "DRAM throughput", report.BytesPerSec),
			kit.RatioCol("dram_ratio", "DRAM", "dram_throughput_pct"),
			kit.RatioCol("sm_ratio", "SM", "sm_throughput_pct"),
			kit.RatioCol("memory_ratio", "Memory", "mem_throughput_pct"),
			kit.RatioCol("occupancy", "Occupancy", "achieved_occupancy_pct"),
			kit.FloatCol("registers", "Registers", report.Count),
		}},
		{ID: "kernel_bandwidth_metrics", Title: "Bandwidth by kernel, as profilemate writes it",
			File: "kernel_bandwidth_metrics.csv", Merge: report.Leave, Columns: bandwidthColumns},
		{ID: "metrics_summary", Title: "Metrics by kernel, as llm-perf-opt writes them", File: "metrics_summary.csv", Merge: report.Leave,
			Columns: summaryColumns},
		{ID: "classification_summary", Title: "Classification by kernel, as llm-perf-opt writes it",
			File: "classification_summary.csv", Merge: report.Leave, Columns: []report.Column{
				kit.TextCol("kernel_id", "Kernel"),
				kit.TextCol("classification", "Classification"),
			}},
	},
	Run: nsightCompute,
}

// Bounds that keep report.json small: the kernels with most time until one is reached. Fewer kernels have metrics for
// details.
const (
	maxNCUMetrics    = 120
	maxNCUDetails    = 30
	maxNCUNameBytes  = 24 << 10
	lowDRAM          = 0.50 // of peak, on average: profilemate's rule
	highDRAM         = 0.85
	latencyShare     = 0.50 // of the measured time, in kernels bound by latency
	topKernelShare   = 0.25
	lowOccupancy     = 0.30
	fewMeasuredShare = 0.50
)

const noLaunches = "the files hold no launch that Nsight Compute measured: see the warnings"

func nsightCompute(in *kit.Input, out *kit.Output) {
	d := in.Evidence.NCU
	out.FromEvidence(file.NCU, len(d.Launches), "ID", "Kernel Name")
	out.Int("ncu.launches", nil, int64(len(d.Launches)))
	if len(d.Launches) == 0 {
		out.Status(report.Unavailable, noLaunches)
		return
	}
	s := &ncuRun{in: in, out: out, data: d, all: ncu.All(d), boundTime: map[ncu.Bound]float64{}}
	s.whole()
	s.kernels()
	s.bounds()
	s.experts()
	s.table()
	s.details()
	coverage := s.trace()
	s.findings(coverage)
	s.sameDevice()
	out.Note("Nsight Compute replays each kernel alone, and unless told otherwise at the base clock and with cold caches: shares and bounds carry over to a running server, durations do not.")
	if d.Pages > 0 {
		out.Note("Launches that several pages hold, raw and details say, count once; a value that is on two pages is taken from the one that prints more digits.")
	}
}

// ncuRun is the state of the section.
type ncuRun struct {
	in      *kit.Input
	out     *kit.Output
	data    *ncu.Data
	all     *ncu.Kernel // all launches together
	emitted int         // kernels, the first ones, that have metrics of their own
	// boundTime is the time of kernels by what limits them, ns
	boundTime map[ncu.Bound]float64
	// shares are of the trace's kernel time, times the same in ns; nil without a trace
	shares, times map[*ncu.Kernel]float64
}

// metricFields are the fields behind the metrics.
var metricFields = map[string]ncu.Field{
	"ncu.duration": ncu.Duration, "ncu.dram_ratio": ncu.DRAMRatio, "ncu.sm_ratio": ncu.SMRatio,
	"ncu.memory_ratio": ncu.MemoryRatio, "ncu.occupancy": ncu.Occupancy, "ncu.occupancy_limit": ncu.OccupancyPossible,
	"ncu.registers": ncu.Registers,
}

// details are metrics of a kernel by a label of their own: hit rates of caches, and how well accesses to global memory
// use the bytes that they move.
var details = []struct {
	id, label, value string
	field            ncu.Field
}{
	{"ncu.cache_hit_ratio", "cache", "l1", ncu.L1Hits},
	{"ncu.cache_hit_ratio", "cache", "l2", ncu.L2Hits},
	{"ncu.sector_use_ratio", "access", "load", ncu.LoadUse},
	{"ncu.sector_use_ratio", "access", "store", ncu.StoreUse},
	{"ncu.sectors_per_request", "access", "load", ncu.LoadSectors},
	{"ncu.sectors_per_request", "access", "store", ncu.StoreSectors},
}

var throughputColumns = []string{"dram__bytes_read.sum", "dram__bytes_write.sum", "gpu__time_duration.sum",
	"dram__bytes.sum.per_second"}

// whole emits the metrics over all launches together.
func (s *ncuRun) whole() {
	s.field("ncu.duration", nil, s.all.Duration, s.all)
	s.throughput(nil, s.all)
	for _, id := range []string{"ncu.dram_ratio", "ncu.sm_ratio", "ncu.memory_ratio", "ncu.occupancy"} {
		s.field(id, nil, s.all.Get(metricFields[id]), s.all)
	}
}

// field emits a metric of the launches of a kernel, or of all; its n is how many launches have the field.
func (s *ncuRun) field(id string, labels report.Labels, value *float64, k *ncu.Kernel) *report.Metric {
	values := k.Values(metricFields[id])
	s.out.FromEvidence(file.NCU, len(values), metricFields[id].Column())
	m := s.out.Metric(id, labels, value)
	if labels != nil || id == "ncu.duration" {
		m.Summary = stat.Summarize(values)
	}
	return m
}

func (s *ncuRun) throughput(labels report.Labels, k *ncu.Kernel) {
	values := k.Throughputs()
	s.out.FromEvidence(file.NCU, len(values), throughputColumns...)
	m := s.out.Metric("ncu.dram_throughput", labels, k.Throughput)
	if labels != nil {
		m.Summary = stat.Summarize(values)
	}
}

// kernels emits the metrics of the kernels with most time.
func (s *ncuRun) kernels() {
	room := kit.Budget{Names: maxNCUMetrics, Bytes: maxNCUNameBytes}
	for i, k := range s.data.Kernels {
		if !room.Take(k.Name) {
			s.out.Note("Metrics by kernel cover the kernels with most measured time; the tables have all of them.")
			return
		}
		s.emitted = i + 1
		l := kit.Labels("kernel", k.Name)
		s.out.FromEvidence(file.NCU, len(k.Launches), "ID", "Kernel Name")
		s.out.Int("ncu.launches", l, int64(len(k.Launches)))
		s.field("ncu.duration", l, k.Duration, k)
		s.throughput(l, k)
		s.field("ncu.dram_ratio", l, k.Get(ncu.DRAMRatio), k)
		s.field("ncu.sm_ratio", l, k.Get(ncu.SMRatio), k)
		if i >= maxNCUDetails {
			continue
		}
		for _, id := range []string{"ncu.memory_ratio", "ncu.occupancy", "ncu.occupancy_limit", "ncu.registers"} {
			if v := k.Get(metricFields[id]); v != nil {
				s.field(id, l, v, k).Summary = nil
			}
		}
		if k.Bytes != nil {
			s.out.FromEvidence(file.NCU, len(k.Launches), throughputColumns[:2]...)
			s.out.Metric("ncu.dram_bytes", l, k.Bytes)
		}
		for _, x := range details {
			if v := k.Get(x.field); v != nil {
				s.out.FromEvidence(file.NCU, len(k.Values(x.field)), x.field.Column())
				s.out.Metric(x.id, kit.Labels("kernel", k.Name, x.label, x.value), v)
			}
		}
	}
}

// bounds adds up kernels and their time by limit.
func (s *ncuRun) bounds() {
	count := map[ncu.Bound]int64{}
	for _, k := range s.data.Kernels {
		count[k.Bound()]++
		s.boundTime[k.Bound()] += report.ValueOr(k.Duration, 0)
	}
	series := report.Series{Name: "time", Labels: []string{}, Values: []float64{}}
	for _, b := range ncu.Bounds {
		if count[b] == 0 && b == ncu.Unknown {
			continue
		}
		l := kit.Labels("bound", string(b))
		s.out.FromEvidence(file.NCU, int(count[b]), ncu.Duration.Column(), ncu.SMRatio.Column(), ncu.DRAMRatio.Column())
		s.out.Int("ncu.bound_kernels", l, count[b])
		if s.all.Duration != nil {
			s.out.Float("ncu.bound_time", l, s.boundTime[b])
			series.Labels, series.Values = append(series.Labels, string(b)), append(series.Values, s.boundTime[b])
		}
	}
	if total := s.all.Duration; total != nil {
		s.out.Chart(report.Chart{ID: "ncu_bounds", Title: "Measured time by what limits the kernel", Kind: "bar",
			Unit: report.Nanoseconds, Series: []report.Series{series}})
		s.out.Coverage(stat.Ratio(*total-s.boundTime[ncu.Unknown], *total))
	}
	if count[ncu.Unknown] == int64(len(s.data.Kernels)) {
		s.out.Status(report.Partial, "no kernel has both SM and DRAM throughput, so what limits them is unknown: profile with --set full, or the sections SpeedOfLight and MemoryWorkloadAnalysis")
	}
}

// experts lists the kernels of mixtures of experts.
func (s *ncuRun) experts() {
	t := s.out.Table("ncu_moe")
	var time *float64
	for _, k := range s.data.Kernels {
		if !k.MoE() {
			continue
		}
		if k.Duration != nil {
			time = new(report.ValueOr(time, 0) + *k.Duration)
		}
		t.Row(
			kit.Text("kernel_name", k.Name), kit.Text("bound", string(k.Bound())),
			kit.Int("launches", int64(len(k.Launches))), kit.Maybe("total", k.Duration),
			kit.Maybe("dram_throughput", k.Throughput))
	}
	s.out.FromEvidence(file.NCU, t.Len(), "Kernel Name", "gpu__time_duration.sum")
	s.out.Int("ncu.moe_kernels", nil, int64(t.Len()))
	if t.Len() > 0 {
		s.out.Metric("ncu.moe_time", nil, time)
		t.Attach()
	}
}

// trace emits how much of the trace's kernel time was measured, and each kernel's share of it.
func (s *ncuRun) trace() *float64 {
	if s.shares == nil {
		return nil
	}
	sum := lists.Sum(s.data.Kernels, func(k *ncu.Kernel) float64 { return s.shares[k] })
	s.out.FromEvidence(file.NCU, len(s.data.Kernels), "Kernel Name")
	s.out.Float("ncu.trace_coverage", nil, sum)
	return &sum
}

// sameDevice warns if kernels were measured on a model of GPU other than the trace's.
func (s *ncuRun) sameDevice() {
	if s.in.NoTrace {
		return
	}
	traced := lists.Set(s.in.Timeline.Devices, func(d *timeline.Device) string { return s.in.Trace.GPU(d.ID).Name })
	delete(traced, "")
	for i := range s.data.Devices {
		if name := s.data.Devices[i].Name; name != "" && len(traced) > 0 && !traced[name] {
			s.out.Warn("ncu_other_gpu", "Nsight Compute measured on another model of GPU ("+name+") than the trace was captured on: what limits a kernel there need not limit it here")
		}
	}
}

// match fills in how much time each kernel takes in the trace.
func (s *ncuRun) match() {
	m := kit.NewNcuMatch(s.in.Evidence, s.in.Trace.Kernels.Names)
	if m == nil || s.in.NoTrace {
		return
	}
	stats := s.in.KernelStats()
	if stats.All.Total <= 0 {
		return
	}
	s.shares, s.times = map[*ncu.Kernel]float64{}, map[*ncu.Kernel]float64{}
	for _, e := range stats.Names {
		if k := m.Find(s.in.Trace.Kernels.Names[e.Key].Name); k != nil {
			s.times[k] += float64(e.Total)
			s.shares[k] += float64(e.Total) / float64(stats.All.Total)
		}
	}
}
