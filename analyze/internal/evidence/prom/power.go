package prom

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/stat"
)

// Power is the power draw of the GPUs, as exporters beside the server (DCGM, nvidia-smi) or Triton itself state it.
type Power struct {
	GPUs   int      // 0: not stated
	Watts  *float64 // of all GPUs together, mean over the dumps
	Joules *float64 // of all GPUs together, between the first and the last dump; nil unless two dumps state it
	Series int
}

// scaled is a metric, with its factor to watts or joules.
type scaled struct {
	name   string
	factor float64
}

// powerNames are gauges of DCGM, nvidia-smi and Triton. Only the first that a dump has is used.
var powerNames = []scaled{
	{"DCGM_FI_DEV_POWER_USAGE", 1}, {"DCGM_FI_DEV_POWER_USAGE_INSTANT", 1}, {"nvidia_smi_power_draw_watts", 1},
	{"nvidia_gpu_power_usage_milliwatts", 1e-3}, {"nv_gpu_power_usage", 1},
}

// energyNames are counters, since the driver was loaded or since Triton was started.
var energyNames = []scaled{{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 1e-3}, {"nv_energy_consumption", 1}}

// isPower reports whether a name is a gauge of power or a counter of energy.
func isPower(name string) bool {
	named := func(s scaled) bool { return s.name == name }
	return slices.ContainsFunc(powerNames, named) || slices.ContainsFunc(energyNames, named)
}

// takePower takes power and energy by GPU. A GPU that has several series, for instances or pods, counts once.
func (x *dump) takePower(byName map[string][]sample) {
	byGPU := func(names []scaled) map[string]float64 {
		m := map[string]float64{}
		for _, n := range names {
			if len(m) > 0 {
				break
			}
			for _, s := range byName[n.name] {
				if v, ok := value(s); ok {
					gpu := cmp.Or(s.get("UUID"), s.get("uuid"), s.get("gpu_uuid"), s.get("gpu"), s.get("minor_number"))
					m[gpu] = max(m[gpu], v*n.factor)
					x.used[n.name] = true
				}
			}
		}
		return m
	}
	x.watts, x.joules = byGPU(powerNames), byGPU(energyNames)
}

// powerOf sums up the power in dumps, in their order; for energy, if the first and the last have the same GPUs.
func powerOf(dumps []*dump) (p Power) {
	var watts, n float64
	var first, last *dump
	for _, x := range dumps {
		if len(x.watts) > 0 {
			watts, n = watts+sum(x.watts), n+1
			p.GPUs = max(p.GPUs, len(x.watts))
			p.Series += len(x.watts)
		}
		if len(x.joules) > 0 {
			first, last = cmp.Or(first, x), x
			p.GPUs = max(p.GPUs, len(x.joules))
			p.Series += len(x.joules)
		}
	}
	p.Watts = stat.Ratio(watts, n)
	if first == last || len(first.joules) != len(last.joules) {
		return p
	}
	between, falls := 0.0, 0
	for _, gpu := range slices.Sorted(maps.Keys(last.joules)) {
		was, ok := first.joules[gpu]
		if !ok {
			return p
		}
		if last.joules[gpu] < was {
			falls++
		}
		between += last.joules[gpu] - was
	}
	if falls == 0 || falls == len(last.joules) { // the dumps may come in either order; else a driver was reloaded
		p.Joules = new(math.Abs(between))
	}
	return p
}

func sum(m map[string]float64) (s float64) {
	for _, gpu := range slices.Sorted(maps.Keys(m)) { // sorted, so that sums round alike every time
		s += m[gpu]
	}
	return s
}
