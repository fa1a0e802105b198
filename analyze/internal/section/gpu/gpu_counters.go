package gpu

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Counters is the section on the GPUs' own counters.
var Counters = kit.Section{
	ID: "gpu_counters", Group: report.GroupTime, Title: "GPU counters", Needs: []trace.Role{trace.RoleCounter},
	Derivation: "Counters that nsys samples on the device (GPU_METRICS). A value stands for the time since the one before " +
		"it; every number is a mean weighted with time. Counters are of the whole device, whichever kernel ran.",
	Metrics: []report.MetricDef{
		kit.Ratio("gpu.counter", report.None, report.Device, "mean of a counter over the window, weighted with time, "+
			"as a share of what the device can do").By("counter,device"),
		kit.Ratio("gpu.counter_in_units", report.None, report.Leave, "the same within the kept units of the main "+
			"kind, and of each phase, on the device of the slowest").By("counter", "counter,phase"),
		kit.Ratio("gpu.bandwidth_ratio", report.None, report.Leave, "share of the device's memory bandwidth that was "+
			"used within these units: counters of DRAM reads and writes together").By("", "phase"),
		kit.Ratio("kernel.counter", report.None, report.Leave, "mean of a counter while the kernel ran, weighted with "+
			"time; for kernels shorter than a sample, neighbours count too").By("counter,kernel"),
		kit.Rate("gpu.clock", report.Higher, report.Device,
			"frequency of a clock of the device while it worked, Hz: mean weighted with time").By("clock,device"),
		kit.Rate("gpu.clock_low", report.Higher, report.Device, "frequency that the clock was at or below for a tenth "+
			"of the time in which the device worked, Hz").By("clock,device"),
	},
	Tables: []report.Table{
		{ID: "gpu_counters", Title: "Counters", File: "gpu_counters.csv", Merge: report.Leave, Columns: []report.Column{
			kit.IDCol("device_id", "GPU"),
			kit.NameCol("counter", "Counter"),
			kit.RatioCol("window", "Window", "pct_window"),
			kit.RatioCol("units", "In units", "pct_in_units"),
			kit.CountCol("samples", "Samples"),
		}},
		{ID: "kernel_counters", Title: "Counters by kernel", File: "kernel_counters.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NameCol("kernel_name", "Kernel"),
			kit.NsCol("time", "Time sampled", "time_ns"),
			kit.RatioCol("sm_active", "SM active", "pct_sm_active"),
			kit.RatioCol("sm_issue", "SM issue", "pct_sm_issue"),
			kit.RatioCol("tensor_active", "Tensor active", "pct_tensor_active"),
			kit.RatioCol("dram_read", "DRAM read", "pct_dram_read"),
			kit.RatioCol("dram_write", "DRAM write", "pct_dram_write"),
		}},
		{ID: "gpu_clocks", Title: "Clocks while the device worked", File: "gpu_clocks.csv", Merge: report.Leave, Columns: []report.Column{
			kit.IDCol("device_id", "GPU"),
			kit.NameCol("clock", "Clock"),
			kit.FloatCol("mean", "Mean", report.PerSecond),
			kit.FloatCol("low", "A tenth of the time below", report.PerSecond),
			kit.FloatCol("most", "Highest", report.PerSecond),
			kit.CountCol("samples", "Samples"),
		}},
	},
	Run: counters,
}

// kernelCounters are the counters shown for kernels, as columns of their table.
var kernelCounters = [...]string{"sm_active", "sm_issue", "tensor_active", "dram_read", "dram_write"}

const (
	countedKernels = 15   // kernels with most time that have counters of their own
	throttled      = 0.90 // of the highest value: a clock below it for a tenth of the working time is throttled
	leastCounted   = 20   // samples, below which throttling is not judged
)

// series are the samples of one counter of one device.
type series struct {
	device int32
	name   string // sm_active, dram_read, …; for a clock gpc, sys, …
	clock  bool
	of     *trace.Observed
	rows   []int32
}

func (x *series) time(i int) int64  { return x.of.Start(int(x.rows[i])) }
func (x *series) value(i int) int64 { return x.of.Number(int(x.rows[i])) }

func (x *series) count() int           { return len(x.rows) }
func (x *series) number(i int) float64 { return float64(x.value(i)) }

// counterName reads a name such as "SM Active [Throughput %]" or "GPC Clock Frequency [MHz]". Counters that are neither
// a share nor a clock are left out.
func counterName(name string) (short string, clock, ok bool) {
	at := strings.IndexAny(name, "[(")
	unit := ""
	if at >= 0 {
		name, unit = name[:at], name[at:]
	}
	short = strings.Join(strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}), "_")
	if head, found := strings.CutSuffix(strings.TrimSuffix(short, "_frequency"), "_clock"); found {
		return head, true, true
	}
	for _, known := range []string{"sm_active", "sm_issue", "tensor_active", "dram_read", "dram_write", "pcie_rx", "pcie_tx",
		"gr_active"} {
		if strings.HasPrefix(short, known) && !strings.Contains(short, "warp") {
			return known, false, true
		}
	}
	return short, false, strings.Contains(unit, "%") || strings.HasPrefix(short, "nvlink")
}

// gatherCounters sorts the samples by device and counter.
func gatherCounters(in *kit.Input) []*series {
	t := in.Trace
	type key struct{ kind, metric int64 }
	names := map[key]string{}
	for _, c := range t.Counters {
		names[key{c.Type, c.Metric}] = c.Name
	}
	type subject struct {
		device int32
		name   string
		clock  bool
	}
	of, list := make([]*series, len(t.Counted.Subjects)), kit.NewTally[subject, series]()
	for i, s := range t.Counted.Subjects {
		short, clock, ok := counterName(names[key{s.Global, s.What}])
		if !ok || short == "" {
			continue
		}
		device := deviceOf(t, int32(s.Global&0xff))
		if x := list.At(subject{device, short, clock}); x.of == nil { // of two counters of one name the first counts
			*x = series{device: device, name: short, clock: clock, of: &t.Counted}
			of[i] = x
		}
	}
	for i := range t.Counted.Len() {
		if x := of[t.Counted.Subject(i)]; x != nil && t.Counted.Number(i) >= 0 {
			x.rows = append(x.rows, int32(i))
		}
	}
	lists.Sort(list.Values, func(a, b *series) int {
		return cmp.Or(cmp.Compare(a.device, b.device), strings.Compare(a.name, b.name))
	})
	return list.Values
}

// deviceOf is the deviceId of an adapter of the machine.
func deviceOf(t *trace.Trace, adapter int32) int32 {
	for _, g := range t.GPUs {
		if g.ID == int64(adapter) {
			return int32(g.CUDADevice)
		}
	}
	return adapter
}

// weighted accumulates a mean over time.
type weighted struct {
	sum  float64 // value × ns
	time int64
}

func (w *weighted) mean() *float64 { return stat.Ratio(w.sum, w.time) }

// samples are values by moment: each holds for the time since the one before.
type samples interface {
	count() int
	time(i int) int64
	number(i int) float64
}

// add adds the time from start to end. from is the sample to begin at; the call moves it to the first that ends after
// start, so calls must come in ascending order.
func (w *weighted) add(s samples, from *int, start, end int64) {
	n := s.count()
	for *from < n && s.time(*from) <= start {
		*from++
	}
	for i := max(*from, 1); i < n && s.time(i-1) < end; i++ {
		if ns := min(end, s.time(i)) - max(start, s.time(i-1)); ns > 0 {
			w.sum += s.number(i) * float64(ns)
			w.time += ns
		}
	}
}

// share of a counter in percent.
func share(v *float64) *float64 {
	if v == nil {
		return nil
	}
	return new(*v / 100)
}

func counters(in *kit.Input, out *kit.Output) {
	list := gatherCounters(in)
	if len(list) == 0 {
		out.Status(report.NotApplicable, "explain reads none of the capture's counters")
		return
	}
	c := &counted{in: in, out: out, list: list}
	out.From(trace.RoleCounter, in.Trace.Counted.Len(), "timestamp", "typeId", "metricId", "value")
	c.devices()
	c.units()
	c.kernels()
	c.clocks()
}

type counted struct {
	in   *kit.Input
	out  *kit.Output
	list []*series
}

func (c *counted) devices() {
	t := c.out.Table("gpu_counters")
	for _, x := range c.list {
		if x.clock {
			continue
		}
		var window, units weighted
		from := 0
		window.add(x, &from, c.in.Span.Start, c.in.Span.End)
		from = 0
		c.eachUnit(x.device, "", func(u *workunit.Unit) { units.add(x, &from, u.Start, u.End) })
		labels := kit.Labels("device", strconv.Itoa(int(x.device)), "counter", x.name)
		c.out.Metric("gpu.counter", labels, share(window.mean())).N = int64(len(x.rows))
		t.Row(kit.Int("device_id", int64(x.device)), kit.Text("counter", x.name), kit.Maybe("window", share(window.mean())),
			kit.Maybe("units", share(units.mean())), kit.Int("samples", int64(len(x.rows))))
	}
	t.Add()
}

// eachUnit visits the kept units of a device by start: those of a phase, or of the main kind.
func (c *counted) eachUnit(device int32, phase string, visit func(u *workunit.Unit)) {
	var list []*workunit.Unit
	x := c.in.Units
	for i := range x.Units {
		u := &x.Units[i]
		if u.Device == device && u.State == workunit.Kept && u.Group >= 0 &&
			(phase == "" && int(u.Group) == x.Primary || phase != "" && x.Groups[u.Group].Phase == phase) {
			list = append(list, u)
		}
	}
	lists.Sort(list, func(a, b *workunit.Unit) int { return cmp.Compare(a.Start, b.Start) })
	for _, u := range list {
		visit(u)
	}
}

// phases are the main kind, as "", and the phases of the units.
func (c *counted) phases() []string {
	x := c.in.Units
	list := lists.Map(x.PhaseMains(), func(g int) string { return x.Groups[g].Phase })
	return append([]string{""}, slices.DeleteFunc(list, func(phase string) bool { return phase == "" })...)
}

// units emits the counters within units, on the device with most of their time.
func (c *counted) units() {
	for _, phase := range c.phases() {
		device, most := int32(-1), int64(0)
		for _, s := range c.list {
			var time int64
			c.eachUnit(s.device, phase, func(u *workunit.Unit) { time += u.Time() })
			if time > most {
				device, most = s.device, time
			}
		}
		labels := report.Labels{}
		if phase != "" {
			labels["phase"] = phase
		}
		var memory weighted
		both := 0
		for _, s := range c.list {
			if s.clock || s.device != device {
				continue
			}
			var w weighted
			from := 0
			c.eachUnit(device, phase, func(u *workunit.Unit) { w.add(s, &from, u.Start, u.End) })
			if w.time == 0 {
				continue
			}
			c.out.Metric("gpu.counter_in_units", kit.And(labels, "counter", s.name), share(w.mean())).N = int64(len(s.rows))
			if s.name == "dram_read" || s.name == "dram_write" {
				memory.sum, memory.time = memory.sum+w.sum, max(memory.time, w.time)
				both++
			}
		}
		if both == 2 {
			c.out.Metric("gpu.bandwidth_ratio", labels, share(memory.mean()))
		}
	}
}

// kernels emits the counters of the kernels with most time.
func (c *counted) kernels() {
	names := c.in.KernelStats().Names
	names = names[:min(len(names), countedKernels)]
	place := map[int32]int{}
	for i, n := range names {
		place[int32(n.Key)] = i
	}
	sums := make([][len(kernelCounters)]weighted, len(names))
	k := &c.in.Trace.Kernels
	for _, d := range c.in.Timeline.Devices {
		for column, name := range kernelCounters {
			at := slices.IndexFunc(c.list, func(s *series) bool { return s.device == d.ID && s.name == name && !s.clock })
			if at < 0 {
				continue
			}
			s, from := c.list[at], 0
			for w := range d.Len() {
				if d.Kind(w) != timeline.KernelWork {
					continue
				}
				if p, ok := place[k.Name(d.Row(w))]; ok {
					sums[p][column].add(s, &from, d.Start(w), d.End(w))
				}
			}
		}
	}
	t := c.out.Table("kernel_counters")
	for i, n := range names {
		var time int64
		row := []kit.Field{kit.Text("kernel_name", c.in.Kinds[n.Key].Display)}
		for at, name := range kernelCounters {
			v := share(sums[i][at].mean())
			time = max(time, sums[i][at].time)
			row = append(row, kit.Maybe(name, v))
			if v != nil {
				c.out.Metric("kernel.counter", kit.Labels("kernel", k.Names[n.Key].Name, "counter", name), v)
			}
		}
		if time > 0 {
			t.Row(append(row, kit.Int("time", time))...)
		}
	}
	t.Add()
}

// clocks emits the clocks while the device worked, and warns if a device slowed down.
func (c *counted) clocks() {
	t := c.out.Table("gpu_clocks")
	for _, d := range c.in.Timeline.Devices {
		for _, s := range c.list {
			if !s.clock || s.device != d.ID || len(s.rows) < 2 {
				continue
			}
			mean, low, most := s.whileBusy(d)
			if mean == nil {
				continue
			}
			l := kit.Labels("clock", s.name, "device", deviceID(d))
			c.out.Metric("gpu.clock", l, mean).N = int64(len(s.rows))
			c.out.Float("gpu.clock_low", l, low)
			t.Row(kit.Int("device_id", int64(d.ID)), kit.Text("clock", s.name), kit.Maybe("mean", mean), kit.Float("low", low),
				kit.Float("most", most), kit.Int("samples", int64(len(s.rows))))
			if len(s.rows) >= leastCounted && low < throttled*most {
				c.out.Warn("throttled", "The "+s.name+" clock of GPU "+deviceID(d)+" was at "+
					strconv.FormatFloat(low/1e6, 'f', 0, 64)+" MHz or below for a tenth of its working time, and reached "+
					strconv.FormatFloat(most/1e6, 'f', 0, 64)+" MHz: power, temperature or other work slowed it down. "+
					"Lock the clocks (nvidia-smi --lock-gpu-clocks) before comparing captures.")
			}
		}
	}
	t.Add()
}

// whileBusy is the mean of a clock while the device worked, its tenth percentile over that time, and its highest value.
// Values below 1 MHz are ignored: the counter is zero if it is missing.
func (s *series) whileBusy(d *timeline.Device) (mean *float64, low, most float64) {
	v := timeline.Visitor{Moments: make([]int64, len(s.rows))}
	for i := range v.Moments {
		v.Moments[i] = s.time(i)
	}
	d.Visit(nil, &v)
	type piece struct{ value, time int64 }
	var w weighted
	var pieces []piece
	for i := 1; i < len(s.rows); i++ {
		ns := v.Times[i].Busy() - v.Times[i-1].Busy()
		if ns <= 0 || s.value(i) < 1e6 {
			continue
		}
		w.sum += float64(s.value(i)) * float64(ns)
		w.time += ns
		pieces = append(pieces, piece{s.value(i), ns})
		most = max(most, float64(s.value(i)))
	}
	lists.Sort(pieces, func(a, b piece) int { return cmp.Compare(a.value, b.value) })
	var passed int64
	for _, p := range pieces {
		if passed += p.time; passed*10 >= w.time {
			low = float64(p.value)
			break
		}
	}
	return w.mean(), low, most
}
