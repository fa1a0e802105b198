package capturetest

import (
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// What the versions of nsys accept, as their --help lists it: 2022.4.2 and 2023.4.4 word for word, 2024.2 and 2025.6
// with what their user guides and release notes add. A name stands for --name.
const (
	profile2022 = `backtrace capture-range capture-range-end command-file cpu-core-events cpuctxsw cuda-flush-interval cuda-memory-usage
cuda-um-cpu-page-faults cuda-um-gpu-page-faults cudabacktrace delay duration duration-frames env-var event-sample event-sampling-frequency export
force-overwrite ftrace ftrace-keep-user-config gpu-metrics-device gpu-metrics-frequency gpu-metrics-set gpuctxsw help hotkey-capture
inherit-environment kill mpi-impl nic-metrics nvtx-capture nvtx-domain-include nvtx-domain-exclude opengl-gpu-workload os-events
osrt-backtrace-stack-size osrt-backtrace-threshold osrt-threshold output resolve-symbols run-as sample samples-per-backtrace sampling-period
session-new show-output start-frame-index stats stop-on-exit trace trace-fork-before-exec vulkan-gpu-workload wait`
	launch2022 = `command-file cuda-flush-interval cuda-memory-usage cuda-um-cpu-page-faults cuda-um-gpu-page-faults cudabacktrace
env-var help hotkey-capture inherit-environment mpi-impl nvtx-capture nvtx-domain-include nvtx-domain-exclude opengl-gpu-workload
osrt-backtrace-stack-size osrt-backtrace-threshold osrt-threshold resolve-symbols run-as session session-new show-output trace
trace-fork-before-exec vulkan-gpu-workload wait`
	start2022 = `backtrace capture-range capture-range-end cpu-core-events cpuctxsw event-sample event-sampling-frequency export force-overwrite
ftrace ftrace-keep-user-config gpu-metrics-device gpu-metrics-frequency gpu-metrics-set gpuctxsw help os-events output sample
samples-per-backtrace sampling-period session session-new stats stop-on-exit`
	session2022  = `help session`
	shutdown2022 = `help kill session`
	export2022   = `force-overwrite help lazy output quiet separate-strings type`
)

// added are the flags that commands have from a version on, besides those above.
var added = []struct{ since, commands, flags string }{
	{"2022", "profile launch", `cuda-graph-trace`},
	{"2023", "profile start", `event-sampling-interval flush-on-cudaprofilerstop gpu-video-device start-later`},
	{"2023", "profile launch", `python-backtrace python-nvtx-annotations python-sampling python-sampling-frequency`},
	{"2023", "export", `append tables times ts-normalize ts-shift`},
	{"2024", "profile launch start", `gpu-metrics-devices dask pytorch discard-environment storage-metrics`},
	{"2025", "profile launch", `cuda-event-trace cuda-trace-scope cuda-trace-all-apis`},
}

// commands are those of a version, each with the flags that it accepts.
func commands(version string) map[string]map[string]bool {
	sets := map[string]map[string]bool{}
	for command, flags := range map[string]string{
		"profile": profile2022, "launch": launch2022, "start": start2022, "stop": session2022,
		"shutdown": shutdown2022, "export": export2022,
	} {
		for _, more := range added {
			if version >= more.since && slices.Contains(strings.Fields(more.commands), command) {
				flags += " " + more.flags
			}
		}
		sets[command] = lists.Set(strings.Fields(flags), func(name string) string { return name })
	}
	return sets
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
