package gpu

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Power is the section on the power draw of the GPUs.
var Power = kit.Section{
	ID: "gpu_power", Group: report.GroupTime, Title: "GPU power", Needs: []trace.Role{trace.RoleGeneric},
	Derivation: "Power that NVML states while nsys captures (GENERIC_EVENTS of the plugin nvml_metrics). A value stands for " +
		"the time since the one before; means are weighted with time, and energy is power times time.",
	Metrics: []report.MetricDef{
		report.Define("gpu.power", report.Watts, report.None, report.Noisy, report.Level, report.Device,
			"power of the device over the window: mean weighted with time").By("device"),
		report.Define("gpu.energy", report.Joules, report.Lower, report.Noisy, report.Total, report.Device,
			"energy of the device in the window: gpu.power times gpu.window; unknown below 90 % of the window "+
				"sampled").By("device"),
		report.Define("unit.energy", report.Joules, report.Lower, report.Noisy, report.PerUnit, report.OfStep,
			"energy that the device takes for a kept unit of the main kind, or of the phase: mean; unknown below 90 "+
				"% of their time sampled").By("device", "device,phase"),
		report.Define("unit.energy_per_token", report.Joules, report.Lower, report.Noisy, report.PerUnit, report.OfStep,
			"energy that the device takes for a token of decode: that of its kept decode units over their requests, "+
				"a token each; of a model on several devices the sum is that of the token").By("device,phase"),
	},
	Tables: []report.Table{
		{ID: "gpu_power", Title: "Power", File: "gpu_power.csv", Columns: []report.Column{
			kit.IDCol("device_id", "GPU").Merged(report.Device),
			kit.FloatCol("power", "Mean", report.Watts).Merged(report.Same),
			kit.FloatCol("most", "Highest", report.Watts).Merged(report.Same),
			kit.FloatCol("energy", "Energy", report.Joules).Merged(report.Same),
			kit.FloatCol("unit_energy", "Per unit", report.Joules).Merged(report.Same),
			kit.CountCol("samples", "Samples").Merged(report.Same),
		}},
	},
	Run: power,
}

// sampledEnough is the share of a time, 0..1, that must be sampled for its energy to be known.
const sampledEnough = 0.9

// drawn is the power of one device, by moment.
type drawn []trace.Power

func (d drawn) count() int           { return len(d) }
func (d drawn) time(i int) int64     { return d[i].At }
func (d drawn) number(i int) float64 { return d[i].Watts }

// energy in joules of n intervals, given in ns, together; nil if too little of them was sampled.
func (w *weighted) energy(time, n int64) *float64 {
	if w.time == 0 || n <= 0 || float64(w.time) < sampledEnough*float64(time) {
		return nil
	}
	return new(w.sum * (float64(time) / float64(w.time)) / (1e9 * float64(n)))
}

func power(in *kit.Input, out *kit.Output) {
	t := in.Trace
	byDevice, unnamed := map[int32]drawn{}, 0
	for _, p := range t.Power {
		device := deviceOf(t, p.Adapter)
		if p.Adapter < 0 {
			if len(in.Timeline.Devices) != 1 {
				unnamed++
				continue
			}
			device = in.Timeline.Devices[0].ID
		}
		byDevice[device] = append(byDevice[device], p)
	}
	if unnamed > 0 {
		out.Note(fmt.Sprintf("%d values of power name no GPU, and the capture has several: they are left out.", unnamed))
	}
	if t.PowerUnread > 0 {
		out.Note(fmt.Sprintf("%d events about power state no value in watts or milliwatts: they are left out.",
			t.PowerUnread))
	}
	if len(byDevice) == 0 {
		out.Status(report.NotApplicable, "the capture's plugin events state no power: capture with --enable=nvml_metrics")
		return
	}
	out.From(trace.RoleGeneric, len(t.Power), "timestamp", "typeId", "data")
	table := out.Table("gpu_power")
	c := &counted{in: in, out: out}
	for _, device := range slices.Sorted(maps.Keys(byDevice)) {
		d := byDevice[device]
		lists.Sort(d, func(a, b trace.Power) int { return cmp.Compare(a.At, b.At) })
		l := func() report.Labels { return kit.Labels("device", strconv.Itoa(int(device))) }
		var w weighted
		from := 0
		w.add(d, &from, in.Span.Start, in.Span.End)
		out.Metric("gpu.power", l(), w.mean()).N = int64(len(d))
		energy := w.energy(in.Span.End-in.Span.Start, 1)
		out.Metric("gpu.energy", l(), energy).N = int64(len(d))
		unit := c.unitEnergy(device, d)
		most := slices.MaxFunc(d, func(a, b trace.Power) int { return cmp.Compare(a.Watts, b.Watts) }).Watts
		table.Row(kit.Int("device_id", int64(device)), kit.Maybe("power", w.mean()), kit.Float("most", max(0, most)),
			kit.Maybe("energy", energy), kit.Maybe("unit_energy", unit), kit.Int("samples", int64(len(d))))
	}
	table.Add()
}

// unitEnergy emits the energy of the kept units of a device, of the main kind and of each phase, and per token of
// decode. It returns that of the main kind.
func (c *counted) unitEnergy(device int32, d drawn) (main *float64) {
	x := c.in.Units
	for _, phase := range c.phases() {
		var w weighted
		var n, time, tokens int64
		from, known := 0, true
		c.eachUnit(device, phase, func(u *workunit.Unit) {
			w.add(d, &from, u.Start, u.End)
			n++
			time += u.Time()
			batch := x.Groups[u.Group].Batch
			known = known && batch > 0
			tokens += batch
		})
		if n == 0 {
			continue
		}
		l := kit.Labels("device", strconv.Itoa(int(device)))
		if phase != "" {
			l["phase"] = phase
		}
		unit := w.energy(time, n)
		if phase == "" {
			main = unit
		}
		c.out.Metric("unit.energy", l, unit).N = n
		if phase == "decode" {
			if !known {
				tokens = 0
			}
			c.out.Metric("unit.energy_per_token", l, w.energy(time, tokens)).N = n
		}
	}
	return main
}
