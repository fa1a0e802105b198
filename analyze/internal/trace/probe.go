package trace

import (
	"errors"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/trace/source"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Role is what a table is to the analyzer, whatever this version of nsys calls it.
type Role string

// Roles of tables.
const (
	RoleStrings     Role = "strings"
	RoleKernel      Role = "kernel"
	RoleAPI         Role = "api"
	RoleNVTX        Role = "nvtx"
	RoleMemcpy      Role = "memcpy"
	RoleMemset      Role = "memset"
	RoleGraph       Role = "graph"
	RoleGraphMade   Role = "graph made"
	RoleHostFunc    Role = "host function"
	RoleHostCall    Role = "host function call"
	RoleSync        Role = "sync"
	RoleEvent       Role = "event"
	RoleOverhead    Role = "overhead"
	RoleAlloc       Role = "alloc"
	RoleOS          Role = "os"
	RoleOSStack     Role = "os stack"
	RoleSched       Role = "sched"
	RoleSample      Role = "sample"
	RoleSampleStack Role = "sample stack"
	RoleCounter     Role = "counter"
	RoleCounters    Role = "counters"
	RoleGeneric     Role = "plugin events"
	RoleDiagnostics Role = "diagnostics"
	RoleProcesses   Role = "processes"
	RoleThreads     Role = "threads"
	RoleGPU         Role = "gpu"
	RoleDevices     Role = "devices"
	RoleSystem      Role = "system"
	RoleExport      Role = "export"
	RoleCapture     Role = "capture"
	RoleDetails     Role = "details"
	RoleSession     Role = "session"

	RoleMPI           Role = "mpi"
	RoleMPICollective Role = "mpi collective"
	RoleMPIP2P        Role = "mpi p2p"
	RoleMPIWait       Role = "mpi wait"
	RoleMPIRanks      Role = "mpi ranks"
	RoleMPIComm       Role = "mpi communicators"
	RolePayload       Role = "nvtx payload"
	RoleGenericTypes  Role = "plugin event types"
)

// roleSpec says which table plays a role: the first candidate that has the required columns, else, for event tables,
// any table whose name contains one of the hints. The candidates are those of nsys-llm-explainer plus what the versions
// 2022.1 to 2026.2 export.
type roleSpec struct {
	role       Role
	candidates []string
	required   []string
	hints      []string
}

// roles in the order in which tables are shown, the strings first.
var roles = []roleSpec{
	{RoleStrings, []string{"StringIds", "Strings", "StringIdsV2", "StringTable"}, []string{"id", "value"}, nil},
	{RoleKernel, []string{"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", "CUDA_GPU_KERNEL",
		"GPU_KERNEL"}, []string{"start", "end"}, []string{"KERNEL"}},
	{RoleAPI, []string{"CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER", "CUDA_API_RUNTIME", "CUDA_RUNTIME"},
		[]string{"start", "end"}, []string{"RUNTIME", "DRIVER", "CUDA_API"}},
	{RoleNVTX, []string{"NVTX_EVENTS", "NVTX_EVENTS_V2", "NVTX"}, []string{"start"}, []string{"NVTX"}},
	{RoleMemcpy, []string{"CUPTI_ACTIVITY_KIND_MEMCPY"}, []string{"start", "end"},
		[]string{"CUPTI_ACTIVITY_KIND_MEMCPY_V"}},
	{RoleMemset, []string{"CUPTI_ACTIVITY_KIND_MEMSET"}, []string{"start", "end"},
		[]string{"CUPTI_ACTIVITY_KIND_MEMSET_V"}},
	{RoleGraph, []string{"CUPTI_ACTIVITY_KIND_GRAPH_TRACE"}, []string{"start", "end"},
		[]string{"CUPTI_ACTIVITY_KIND_GRAPH_TRACE_V"}},
	{RoleGraphMade, []string{"CUDA_GRAPH_EVENTS"}, []string{"start", "graphExecId"}, nil},
	{RoleHostFunc, []string{"CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE_AND_HOST_LAUNCH"},
		[]string{"start", "end", "deviceId", "streamId"}, nil},
	{RoleHostCall, []string{"CUDA_HOST_CALLBACK"}, []string{"globalTid", "correlationId", "nameId"}, nil},
	{RoleSync, []string{"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"}, []string{"start", "end"},
		[]string{"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION_V"}},
	{RoleEvent, []string{"CUPTI_ACTIVITY_KIND_CUDA_EVENT"}, []string{"streamId", "correlationId", "eventId"}, nil},
	{RoleOverhead, []string{"PROFILER_OVERHEAD"}, []string{"start", "end"}, nil},
	{RoleAlloc, []string{"CUDA_GPU_MEMORY_USAGE_EVENTS"}, []string{"start", "bytes", "memoryOperationType"}, nil},
	{RoleOS, []string{"OSRT_API"}, []string{"start", "end", "nameId", "globalTid"}, nil},
	{RoleOSStack, []string{"OSRT_CALLCHAINS"}, []string{"id", "symbol", "stackDepth"}, nil},
	{RoleSched, []string{"SCHED_EVENTS"}, []string{"start", "cpu", "isSchedIn", "globalTid"}, nil},
	{RoleSample, []string{"COMPOSITE_EVENTS"}, []string{"id", "start", "globalTid"}, nil},
	{RoleSampleStack, []string{"SAMPLING_CALLCHAINS"}, []string{"id", "symbol", "stackDepth"}, nil},
	{RoleCounter, []string{"GPU_METRICS"}, []string{"timestamp", "typeId", "metricId", "value"}, nil},
	{RoleCounters, []string{"TARGET_INFO_GPU_METRICS"}, []string{"typeId", "metricId", "metricName"}, nil},
	{RoleGeneric, []string{"GENERIC_EVENTS"}, []string{"timestamp", "typeId", "data"}, nil},
	{RoleGenericTypes, []string{"GENERIC_EVENT_TYPES"}, []string{"typeId", "data"}, nil},
	{RoleDiagnostics, []string{"DIAGNOSTIC_EVENT"}, []string{"severity"}, nil},
	{RoleProcesses, []string{"PROCESSES"}, []string{"globalPid"}, nil},
	{RoleThreads, []string{"ThreadNames"}, []string{"nameId", "globalTid"}, nil},
	{RoleGPU, []string{"TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU"}, []string{"name"}, nil},
	{RoleDevices, []string{"TARGET_INFO_CUDA_DEVICE"}, []string{"gpuId", "cudaId", "pid"}, nil},
	{RoleSystem, []string{"TARGET_INFO_SYSTEM_ENV"}, []string{"name", "value"}, nil},
	{RoleExport, []string{"META_DATA_EXPORT", "EXPORT_META_DATA"}, []string{"name", "value"}, nil},
	{RoleCapture, []string{"META_DATA_CAPTURE"}, []string{"name", "value"}, nil},
	{RoleDetails, []string{"ANALYSIS_DETAILS"}, []string{"startTime", "stopTime"}, nil},
	{RoleSession, []string{"TARGET_INFO_SESSION_START_TIME"}, []string{"utcEpochNs"}, nil},
	{RoleMPI, []string{"MPI_OTHER_EVENTS"}, mpiColumns, nil},
	{RoleMPICollective, []string{"MPI_COLLECTIVES_EVENTS"}, mpiColumns, nil},
	{RoleMPIP2P, []string{"MPI_P2P_EVENTS"}, mpiColumns, nil},
	{RoleMPIWait, []string{"MPI_START_WAIT_EVENTS"}, mpiColumns, nil},
	{RoleMPIRanks, []string{"MPI_RANKS"}, []string{"globalPid", "rank"}, nil},
	{RoleMPIComm, []string{"MPI_COMMUNICATORS"}, mpiCommKept[:4], nil},
	{RolePayload, []string{"NVTX_PAYLOAD_SCHEMA_ENTRIES"}, []string{"domainId", "schemaId", "type", "name", "offset"}, nil},
}

var mpiColumns = []string{"start", "end", "globalTid", "textId"}

// mpiKept are what is read of calls of MPI, where it is there.
var mpiKept = append(slices.Clone(mpiColumns), "rootRank", "remoteRank", "tag", "commHandle")

// mpiCommKept are what is read of communicators of MPI; the first four have to be there.
var mpiCommKept = []string{"rank", "commHandle", "localRank", "localSize", "groupRoot", "groupRootUid"}

// probe finds the table of each role.
func probe(tables []source.Table) map[Role]source.Table {
	byName := make(map[string]source.Table, len(tables))
	names := make([]string, 0, len(tables))
	for _, t := range tables {
		byName[strings.ToLower(t.Name)] = t // SQLite does not tell the case of a name apart
		names = append(names, t.Name)
	}
	slices.Sort(names)
	found := make(map[Role]source.Table)
	for _, spec := range roles {
		for i, name := range append(append([]string{}, spec.candidates...), hinted(names, spec.hints)...) {
			t, ok := byName[strings.ToLower(name)]
			if ok = ok && t.HasAll(spec.required); ok && i >= len(spec.candidates) && spec.role == RoleKernel {
				// An operating system has kernels too
				ok = t.First("demangledName", "shortName", "mangledName", "name") != ""
			}
			if ok {
				found[spec.role] = t
				break
			}
		}
	}
	if _, ok := found[RoleStrings]; !ok {
		for _, name := range names { // any other table of ids and values
			t, upper := byName[strings.ToLower(name)], strings.ToUpper(name)
			if t.HasAll([]string{"id", "value"}) && !strings.HasPrefix(upper, "ENUM_") &&
				!strings.HasPrefix(upper, "TARGET_INFO_") && !strings.HasPrefix(upper, "META_DATA_") {
				found[RoleStrings] = t
				break
			}
		}
	}
	return found
}

// Names of columns in exports of different versions, the usual one first.
var (
	pidColumns  = []string{"globalPid", "pid", "processId"}
	tidColumns  = []string{"globalTid", "global_tid"}
	corrColumns = []string{"correlationId", "correlation_id"}
)

// columnsIn says which optional columns the tables have.
func columnsIn(tables map[Role]source.Table) Columns {
	has := func(role Role, names ...string) bool { return tables[role].First(names...) != "" }
	return Columns{
		KernelPID: has(RoleKernel, pidColumns...), KernelCorrelation: has(RoleKernel, corrColumns...),
		KernelDevice: has(RoleKernel, "deviceId"), KernelGraphNode: has(RoleKernel, graphNode),
		APIThread: has(RoleAPI, tidColumns...), APICorrelation: has(RoleAPI, corrColumns...), APIReturn: has(RoleAPI, "returnValue"),
		RangeEnd: has(RoleNVTX, "end"), RangeThread: has(RoleNVTX, tidColumns...), RangeType: has(RoleNVTX, "eventType"),
		CopyKinds: has(RoleMemcpy, "srcKind") && has(RoleMemcpy, "dstKind"), EveryLaunch: true,
	}
}

// unreadable names a table of GPU work that lacks a column it cannot be read without. Such a capture must not pass for
// one in which nothing ran.
func unreadable(tables []source.Table, found map[Role]source.Table) (table, column string) {
	for _, spec := range roles {
		if _, ok := found[spec.role]; ok || spec.role != RoleKernel && spec.role != RoleMemcpy &&
			spec.role != RoleMemset && spec.role != RoleGraph {
			continue
		}
		for _, t := range tables {
			if !slices.ContainsFunc(spec.candidates, func(n string) bool { return strings.EqualFold(n, t.Name) }) {
				continue
			}
			for _, c := range spec.required {
				if t.Column(c) == "" {
					return t.Name, c
				}
			}
		}
	}
	return "", ""
}

// leftOut are the tables of events that play no role: those with a time and at least one row. A report names what it
// does not look at, nor can read.
func (l *scanner) leftOut(tables []source.Table) (names []string) {
	used := map[string]bool{}
	for _, t := range l.tables {
		used[t.Name] = true
	}
	src := l.src
	if fast, ok := src.(*source.Paged); ok {
		src = fast.SQL // which finds the first row of a table without its other pages
	}
	for _, t := range tables {
		at := t.First("start", "timestamp", "rawTimestamp")
		if used[t.Name] || t.View || at == "" || len(names) == maxLeftOut {
			continue
		}
		if err := src.Scan(t, []string{at}, func([]cell) error { return errFound }); err != nil {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return names
}

const maxLeftOut = 64 // nsys has about forty kinds

// errFound ends a scan that looks for a single row.
var errFound = errors.New("found")

func hinted(names, hints []string) []string {
	return lists.Filter(names, func(name string) bool {
		upper := strings.ToUpper(name)
		return !strings.HasPrefix(upper, "ENUM_") && !strings.HasPrefix(upper, "TARGET_INFO_") &&
			slices.ContainsFunc(hints, func(hint string) bool { return strings.Contains(upper, hint) })
	})
}

// isNsys reports whether the tables look like an nsys export at all, and hasData whether anything was exported into it.
func isNsys(tables []source.Table, found map[Role]source.Table) (nsys, hasData bool) {
	_, strs := found[RoleStrings]
	for _, t := range tables {
		switch name := strings.ToUpper(t.Name); {
		case strings.HasPrefix(name, "CUPTI_ACTIVITY_"), strings.HasPrefix(name, "NVTX_"),
			strings.HasPrefix(name, "OSRT_"), strings.HasPrefix(name, "META_DATA_"), name == "EXPORT_META_DATA",
			name == "COMPOSITE_EVENTS", name == "SCHED_EVENTS", name == "THREADNAMES", name == "PROCESSES",
			name == "PROCESSSTREAMS":
			nsys, hasData = true, true
		case strings.HasPrefix(name, "TARGET_INFO_"), strings.HasPrefix(name, "ENUM_NSYS"), name == "STRINGIDS":
			nsys = true
		case t.First("start", "timestamp") != "": // of MPI, OpenACC, Vulkan, sampling of the GPU, …
			hasData = true
		}
	}
	for _, r := range []Role{RoleKernel, RoleAPI, RoleNVTX} {
		if _, ok := found[r]; ok && strs {
			nsys, hasData = true, true
		}
	}
	return nsys, hasData
}
