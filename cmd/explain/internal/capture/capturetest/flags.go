package capturetest

import (
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// What the versions of nsys accept, as their --help lists it: 2022.4.2 and 2023.4.4 word for word, 2024.2 and 2025.6
// with what their user guides and release notes add. A name stands for --name.
const (
	profile2022 = `backtrace capture-range capture-range-end command-file cpu-core-events cpuctxsw cuda-flush-interval cuda-graph-trace cuda-memory-usage
cuda-um-cpu-page-faults cuda-um-gpu-page-faults cudabacktrace delay duration duration-frames env-var event-sample event-sampling-frequency export
force-overwrite ftrace ftrace-keep-user-config gpu-metrics-device gpu-metrics-frequency gpu-metrics-set gpuctxsw help hotkey-capture
inherit-environment kill mpi-impl nic-metrics nvtx-capture nvtx-domain-include nvtx-domain-exclude opengl-gpu-workload os-events
osrt-backtrace-stack-size osrt-backtrace-threshold osrt-threshold output resolve-symbols run-as sample samples-per-backtrace sampling-period
session-new show-output start-frame-index stats stop-on-exit trace trace-fork-before-exec vulkan-gpu-workload wait`
	launch2022 = `command-file cuda-flush-interval cuda-graph-trace cuda-memory-usage cuda-um-cpu-page-faults cuda-um-gpu-page-faults cudabacktrace
env-var help hotkey-capture inherit-environment mpi-impl nvtx-capture nvtx-domain-include nvtx-domain-exclude opengl-gpu-workload
osrt-backtrace-stack-size osrt-backtrace-threshold osrt-threshold resolve-symbols run-as session session-new show-output trace
trace-fork-before-exec vulkan-gpu-workload wait`
	start2022 = `backtrace capture-range capture-range-end cpu-core-events cpuctxsw event-sample event-sampling-frequency export force-overwrite
ftrace ftrace-keep-user-config gpu-metrics-device gpu-metrics-frequency gpu-metrics-set gpuctxsw help os-events output sample
samples-per-backtrace sampling-period session session-new stats stop-on-exit`
	session2022  = `help session`
	shutdown2022 = `help kill session`
	export2022   = `force-overwrite help lazy output quiet separate-strings type`

	added2023       = ` event-sampling-interval flush-on-cudaprofilerstop gpu-video-device start-later`
	addedLaunch2023 = ` python-backtrace python-nvtx-annotations python-sampling python-sampling-frequency`
	addedExport2023 = ` append tables times ts-normalize ts-shift`
	added2024       = ` gpu-metrics-devices dask pytorch discard-environment storage-metrics`
	added2025       = ` cuda-event-trace cuda-trace-scope cuda-trace-all-apis`
)

// commands are those of a version, each with the flags that it accepts.
func commands(version string) map[string]map[string]bool {
	profile, launch, start, export := profile2022, launch2022, start2022, export2022
	if version >= "2023" {
		profile, launch, start, export = profile+added2023+addedLaunch2023, launch+addedLaunch2023, start+added2023,
			export+addedExport2023
	}
	if version >= "2024" {
		profile, launch, start = profile+added2024, launch+added2024, start+added2024
	}
	if version >= "2025" {
		profile, launch = profile+added2025, launch+added2025
	}
	sets := map[string]map[string]bool{
		"profile": set(profile), "launch": set(launch), "start": set(start), "stop": set(session2022),
		"shutdown": set(shutdown2022), "export": set(export),
	}
	if version < "2022" { // CUDA graphs came with 2022.1
		delete(sets["profile"], "cuda-graph-trace")
		delete(sets["launch"], "cuda-graph-trace")
	}
	return sets
}

func set(names string) map[string]bool {
	return lists.Set(strings.Fields(names), func(name string) string { return name })
}

// values that flags take, where nsys refuses others.
var values = map[string]string{
	"cuda-graph-trace": "graph node", "sample": "none process-tree system-wide cpu",
	"cpuctxsw": "none process-tree system-wide", "wait": "primary all",
	"capture-range": "none cudaProfilerApi nvtx hotkey", "kill": "none sigkill sigterm",
	"force-overwrite": "true false", "lazy": "true false",
	"trace-fork-before-exec": "true false", "cuda-memory-usage": "true false", "discard-environment": "true false",
	"type": "sqlite hdf text json",
}

// ncuFlags are what ncu 2022.3 and later accept, of those that take part here; true: it takes a value.
var ncuFlags = map[string]bool{
	"target-processes": true, "set": true, "section": true, "metrics": true, "nvtx": false, "nvtx-include": true,
	"nvtx-exclude": true, "kernel-name-base": true, "kernel-name": true,
	"launch-skip": true, "launch-count": true, "csv": false, "page": true, "log-file": true, "replay-mode": true,
	"export": true, "force-overwrite": false,
}
