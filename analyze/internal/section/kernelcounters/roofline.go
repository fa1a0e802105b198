package kernelcounters

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/ncu"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var Roofline = kit.Section{
	ID: "roofline", Group: report.GroupKernels, Title: "Roofline", Evidence: []file.Kind{file.NCU},
	Derivation: "Operations counted by Nsight Compute (a fused multiply-add is two) over time and over bytes of " +
		"device memory, against the device's dense peaks: from its attributes or the roofline section in the " +
		"file, else from a table of data sheets.",
	Metrics: []report.MetricDef{
		report.Define("ncu.flop", report.Flop, report.None, report.Exact, report.Total, report.Leave,
			"floating point operations of the measured launches of a kernel").By("kernel"),
		kit.Rate("ncu.flop_rate", report.Higher, report.Leave, "floating point operations per second").By("kernel"),
		kit.Ratio("ncu.roofline_ratio", report.Higher, report.Leave,
			"rate of operations, of what the device allows at the kernel's arithmetic intensity").By("kernel"),
		report.Define("ncu.peak_dram_throughput", report.PerSecond, report.None, report.Exact, report.Level, report.Leave,
			"most bytes per second that device memory can transfer").By("device"),
		report.Define("ncu.peak_flop_rate", report.PerSecond, report.None, report.Exact, report.Level, report.Leave,
			"most operations per second of a data type, dense").By("device,precision"),
	},
	Tables: []report.Table{
		{ID: "roofline", Title: "Kernels under the roofline", File: "roofline.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NameCol("kernel_name", "Kernel"),
			kit.Wide(kit.NameCol("short", "Short name")),
			kit.TextCol("precision", "Mostly"),
			kit.FloatCol("flop", "Operations", report.Flop),
			kit.FloatCol("flop_rate", "Per second", report.Flop),
			kit.FloatCol("intensity", "FLOP/byte", ""),
			kit.FloatCol("dram_throughput", "DRAM throughput", report.BytesPerSec),
			kit.FloatCol("attainable", "Attainable per second", report.Flop),
			kit.TextCol("roof", "Roof"),
			kit.RatioCol("ratio", "Of the roof", "roofline_pct"),
		}},
		{ID: "roofline_peaks", Title: "Peaks of the devices", File: "roofline_peaks.csv", Merge: report.Leave, Columns: []report.Column{
			kit.IDCol("device_id", "GPU"),
			kit.NameCol("name", "Name"),
			kit.TextCol("what", "Of"),
			kit.FloatCol("bytes_per_second", "Bandwidth", report.BytesPerSec),
			kit.FloatCol("flop_per_second", "Operations per second", report.Flop),
			kit.TextCol("source", "Source"),
		}},
		{ID: "roofline_data", Title: "Utilisation by kernel, as profilemate writes it", File: "roofline_data.csv", Merge: report.Leave,
			Columns: []report.Column{
				kit.NameCol("kernel_name", "Kernel"),
				scaledCol("sm_utilization", report.Ratio, 2),
				scaledCol("memory_utilization", report.Ratio, 2),
				kit.TextCol("bottleneck", "Bottleneck"),
				scaledCol("bandwidth_gbps", report.BytesPerSec, -9),
			}},
	},
	Run: roofline,
}

const noFlops = "no page counts the floating point operations of a kernel: profile with `ncu --set full`, and add `--metrics regex:sm__ops_path_tensor_src_.*` for tensor cores"

func roofline(in *kit.Input, out *kit.Output) {
	d := in.Evidence.NCU
	rooflineData(d, out)
	if len(d.Launches) == 0 {
		out.Status(report.Unavailable, noLaunches)
		return
	}
	roofs := d.Roofs()
	rooflinePeaks(roofs, out)
	t := out.Table("roofline")
	var points []*ncu.Kernel // of the chart
	known := 0.0
	for _, k := range d.Kernels {
		if k.Flops == nil {
			continue
		}
		known += report.ValueOr(k.Duration, 0)
		of := func(r *ncu.Roof) bool { return r.Device == k.Launches[0].Device }
		roof := cmp.Or(lists.Find(roofs, of), &ncu.Roof{})
		rate, memory := roof.Attainable(k)
		var share *float64
		name := report.Null
		if rate != nil && k.FlopRate != nil {
			share = stat.Ratio(*k.FlopRate, *rate)
			name = report.S(map[bool]string{true: "memory", false: "compute"}[memory])
		}
		t.Row(
			kit.Text("kernel_name", k.Name), kit.Text("short", k.Info.Display),
			kit.Put("precision", report.OrNull(k.Main())), kit.Maybe("flop", k.Flops), kit.Maybe("flop_rate", k.FlopRate),
			kit.Maybe("intensity", k.Intensity), kit.Maybe("dram_throughput", k.Throughput),
			kit.Maybe("attainable", rate), kit.Put("roof", name), kit.Maybe("ratio", share))
		if t.Len() > maxNCUDetails {
			continue
		}
		if k.Intensity != nil && k.FlopRate != nil && *k.FlopRate > 0 && *k.Intensity > 0 {
			points = append(points, k)
		}
		l := kit.Labels("kernel", k.Name)
		out.FromEvidence(file.NCU, len(k.Launches), "sm__sass_thread_inst_executed_op_*_pred_on.sum",
			"sm__ops_path_tensor_*.sum", "gpu__time_duration.sum")
		out.Metric("ncu.flop", l, k.Flops)
		out.Known("ncu.flop_rate", l, k.FlopRate)
		out.Known("ncu.roofline_ratio", l, share)
	}
	if t.Len() == 0 {
		out.Status(report.Partial, noFlops)
		return
	}
	t.Cut(in.Options.Top, "flop").Add()
	out.Coverage(stat.Ratio(known, report.ValueOr(ncu.All(d).Duration, 0)))
	rooflineChart(points, roofs, out)
	out.Note("Peaks are dense and at the device's highest clock. Nsight Compute locks the clock to its base unless told otherwise (--clock-control none), which keeps compute-bound kernels below the roof.")
}

// rooflineData is profilemate's roofline_data.csv: the kernels with known SM throughput and bandwidth.
func rooflineData(d *ncu.Data, out *kit.Output) {
	t := out.Table("roofline_data")
	for _, k := range d.Kernels {
		sm, dram := k.Get(ncu.SMRatio), k.Get(ncu.DRAMRatio)
		if sm == nil || k.Throughput == nil {
			continue
		}
		limit := "memory"
		switch {
		case dram == nil:
			limit = "unknown"
		case *sm > *dram:
			limit = "compute"
		}
		t.Row(
			kit.Text("kernel_name", k.Name), kit.Maybe("sm_utilization", sm),
			kit.Maybe("memory_utilization", dram), kit.Text("bottleneck", limit),
			kit.Maybe("bandwidth_gbps", k.Throughput))
	}
	t.Attach()
}

func rooflinePeaks(roofs []ncu.Roof, out *kit.Output) {
	t := out.Table("roofline_peaks")
	for i := range roofs {
		r := &roofs[i]
		label := "unknown"
		if r.Device >= 0 {
			label = strconv.Itoa(r.Device)
		}
		row := func(what, from, column string, value float64) {
			t.Partial(kit.Put("device_id", kit.Known(int64(r.Device))), kit.Put("name", report.OrNull(r.Name)), kit.Text("what", what),
				kit.Float(column, value), kit.Text("source", from))
			out.FromEvidence(file.NCU, 1, from)
		}
		if p := r.Bandwidth; p != nil {
			row("device memory", p.From, "bytes_per_second", p.Value)
			out.Float("ncu.peak_dram_throughput", kit.Labels("device", label), p.Value)
		}
		for _, p := range r.Limits() {
			row(p.Precision, p.From, "flop_per_second", p.Value)
			out.Float("ncu.peak_flop_rate", kit.Labels("device", label, "precision", p.Precision), p.Value)
		}
		if r.Bandwidth == nil {
			out.Note("The peaks of a device are unknown: the files do not name it (the raw page does), or it is in no table.")
		}
	}
	if t.Len() > 0 {
		t.Add()
	}
}

// rooflineChart draws operations per second over operations per byte: a point per kernel under the device's ceilings.
// Each ceiling rises with the memory bandwidth up to its flat part.
func rooflineChart(points []*ncu.Kernel, roofs []ncu.Roof, out *kit.Output) {
	if len(points) == 0 {
		return
	}
	c := report.Chart{ID: "roofline", Title: "Roofline: operations per second over operations per byte",
		Kind: "scatter", Unit: report.FlopPerSec, XUnit: report.Count, XTitle: "Operations per byte of device memory"}
	intensities := lists.Map(points, func(k *ncu.Kernel) float64 { return *k.Intensity })
	low, high := slices.Min(intensities), slices.Max(intensities)
	r := &roofs[0] // the devices of a machine are of one model
	for _, l := range r.Limits() {
		s := report.Series{Name: "roof: " + l.Precision, Style: "line"}
		at := func(intensity, rate float64) {
			s.Labels, s.Values = append(s.Labels, strconv.FormatFloat(intensity, 'g', -1, 64)), append(s.Values, rate)
		}
		if r.Bandwidth != nil {
			ridge := l.Value / r.Bandwidth.Value
			at(min(low, ridge/10), min(low, ridge/10)*r.Bandwidth.Value)
			at(ridge, l.Value)
			at(max(high, ridge*10), l.Value)
		} else {
			at(low/2, l.Value)
			at(high*2, l.Value)
		}
		c.Series = append(c.Series, s)
	}
	for _, k := range points {
		c.Series = append(c.Series, report.Series{Name: k.Info.Display, Style: "points",
			Labels: []string{strconv.FormatFloat(*k.Intensity, 'g', -1, 64)}, Values: []float64{*k.FlopRate}})
	}
	out.Chart(c)
}
