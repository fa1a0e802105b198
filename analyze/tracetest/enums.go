package tracetest

// enumRow is one row of an ENUM table.
type enumRow struct {
	id          int64
	name, label string
}

// enumTable is a lookup table that every export with metadata carries, used or not.
type enumTable struct {
	name         string
	since, until version // until 0 means still there
	rows         []enumRow
}

// enumTables are the lookup tables of a real export that the CUDA and NVTX columns refer to. The event type and event
// class tables hold only the rows that those columns can name; real ones are longer.
var enumTables = []enumTable{
	{name: "ENUM_NSYS_EVENT_TYPE", rows: []enumRow{
		{0, "Unknown", "Unknown"},
		{33, "NvtxCategory", "NvtxCategory"},
		{34, "NvtxMark", "NvtxMark"},
		{39, "NvtxThread", "NvtxThread"},
		{59, "NvtxPushPopRange", "NvtxPushPopRange"},
		{60, "NvtxStartEndRange", "NvtxStartEndRange"},
		{70, "NvtxtPushPopRange", "NvtxtPushPopRange"},
		{75, "NvtxDomainCreate", "NvtxDomainCreate"},
	}},
	{name: "ENUM_NSYS_EVENT_CLASS", rows: []enumRow{
		{0, "TRACE_PROCESS_EVENT_CUDA_RUNTIME", "CUDA runtime"},
		{1, "TRACE_PROCESS_EVENT_CUDA_DRIVER", "CUDA driver"},
		{3, "TRACE_PROCESS_EVENT_TSP_OVERHEAD", "TSP overhead"},
		{27, "TRACE_PROCESS_EVENT_OS_RUNTIME", "OSRT runtime"},
		{77, "TRACE_PROCESS_EVENT_CUDA_GRAPH_NODE_CREATION", "CUDA graph node creation"},
		{94, "TRACE_PROCESS_EVENT_CUDA_GRAPHEXEC_CREATION", "CUDA graph exec creation"},
		{95, "TRACE_PROCESS_EVENT_CUDA_GRAPH_CREATION", "CUDA graph creation"},
		{96, "TRACE_PROCESS_EVENT_CUDA_GRAPH_CLONE", "CUDA graph clone"},
	}},
	{name: "ENUM_CUDA_MEMCPY_OPER", rows: []enumRow{
		{0, "CUDA_MEMCPY_KIND_UNKNOWN", "Unknown"},
		{1, "CUDA_MEMCPY_KIND_HTOD", "Host-to-Device"},
		{2, "CUDA_MEMCPY_KIND_DTOH", "Device-to-Host"},
		{3, "CUDA_MEMCPY_KIND_HTOA", "Host-to-Array"},
		{4, "CUDA_MEMCPY_KIND_ATOH", "Array-to-Host"},
		{5, "CUDA_MEMCPY_KIND_ATOA", "Array-to-Array"},
		{6, "CUDA_MEMCPY_KIND_ATOD", "Array-to-Device"},
		{7, "CUDA_MEMCPY_KIND_DTOA", "Device-to-Array"},
		{8, "CUDA_MEMCPY_KIND_DTOD", "Device-to-Device"},
		{9, "CUDA_MEMCPY_KIND_HTOH", "Host-to-Host"},
		{10, "CUDA_MEMCPY_KIND_PTOP", "Peer-to-Peer"},
		{11, "CUDA_MEMCPY_KIND_UVM_HTOD", "Unified Host-to-Device"},
		{12, "CUDA_MEMCPY_KIND_UVM_DTOH", "Unified Device-to-Host"},
		{13, "CUDA_MEMCPY_KIND_UVM_DTOD", "Unified Device-to-Device"},
	}},
	{name: "ENUM_CUDA_MEM_KIND", rows: []enumRow{
		{0, "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable"},
		{1, "CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned"},
		{2, "CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device"},
		{3, "CUDA_MEMOPR_MEMORY_KIND_ARRAY", "Array"},
		{4, "CUDA_MEMOPR_MEMORY_KIND_MANAGED", "Managed"},
		{5, "CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC", "Device Static"},
		{6, "CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC", "Managed Static"},
		{7, "CUDA_MEMOPR_MEMORY_KIND_UNKNOWN", "Unknown"},
	}},
	// The misspelling is NVIDIA's; it was put right in 3.1.7.
	{name: "ENUM_CUDA_KRENEL_LAUNCH_TYPE", until: 3_001_007, rows: launchTypes},
	{name: "ENUM_CUDA_KERNEL_LAUNCH_TYPE", since: 3_001_007, rows: launchTypes},
	{name: "ENUM_CUDA_SHARED_MEM_LIMIT_CONFIG", rows: []enumRow{
		{0, "CUDA_SHARED_MEM_LIMIT_DEFAULT", "Default"},
		{1, "CUDA_SHARED_MEM_LIMIT_OPTIN", "Opt in"},
	}},
	{name: "ENUM_CUDA_FUNC_CACHE_CONFIG", rows: []enumRow{
		{0, "CU_FUNC_CACHE_PREFER_NONE", "None"},
		{1, "CU_FUNC_CACHE_PREFER_SHARED", "Shared"},
		{2, "CU_FUNC_CACHE_PREFER_L1", "L1"},
		{3, "CU_FUNC_CACHE_PREFER_EQUAL", "Equal"},
	}},
	{name: "ENUM_CUPTI_STREAM_TYPE", since: 3_004_000, rows: []enumRow{
		{0, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_UNKNOWN", "Unknown stream type"},
		{1, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT", "Default stream"},
		{2, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING", "Non-blocking stream"},
		{3, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL", "Null stream"},
	}},
	{name: "ENUM_CUPTI_SYNC_TYPE", rows: []enumRow{
		{0, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN", "Unknown"},
		{1, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE", "Event sync"},
		{2, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT", "Stream wait sync"},
		{3, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE", "Stream sync"},
		{4, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE", "Context sync"},
	}},
	{name: "ENUM_CUPTI_OVERHEAD_TYPE", since: 3_024_007, rows: []enumRow{
		{0, "OVERHEAD_UNDEFINED", "Undefined"},
		{1, "OVERHEAD_UNKNOWN", "Unknown"},
		{2, "OVERHEAD_DRIVER_COMPILER", "Driver JIT compiler (CUDA)"},
		{3, "OVERHEAD_CUPTI_BUFFER_FLUSH", "Buffer flush (Profiler)"},
		{4, "OVERHEAD_CUPTI_INSTRUMENTATION", "Instrumentation (Profiler)"},
		{5, "OVERHEAD_CUPTI_RESOURCE", "Resource creation/destruction (Profiler)"},
		{6, "OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING", "Runtime module loading (CUDA)"},
		{7, "OVERHEAD_LAZY_FUNCTION_LOADING", "Lazy function loading (CUDA)"},
		{8, "OVERHEAD_COMMAND_BUFFER_FULL", "Command buffer full (CUDA)"},
	}},
	{name: "ENUM_DIAGNOSTIC_SEVERITY_LEVEL", since: 3_011_001, rows: []enumRow{
		{0, "UnknownLevel", "Unknown"}, {1, "Info", "Info"}, {2, "Warning", "Warning"}, {3, "Error", "Error"},
		{4, "Verbose", "Verbose"},
	}},
	{name: "ENUM_DIAGNOSTIC_SOURCE_TYPE", since: 3_011_001, rows: []enumRow{
		{0, "UnknownSource", "Unknown source"}, {1, "Injection", "Injection"}, {2, "Daemon", "Daemon"},
		{3, "Analysis", "Analysis"},
	}},
	{name: "ENUM_DIAGNOSTIC_TIMESTAMP_SOURCE", since: 3_011_001, rows: []enumRow{
		{0, "UnknownTimestamp", "Unknown timestamp"}, {1, "TargetTimestamp", "Target timestamp"},
		{2, "HostTimestamp", "Host timestamp"},
	}},
}

var launchTypes = []enumRow{
	{0, "CUDA_KERNEL_LAUNCH_TYPE_UNKNOWN", "Unknown"},
	{1, "CUDA_KERNEL_LAUNCH_TYPE_REGULAR", "Regular"},
	{2, "CUDA_KERNEL_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE", "Coop Single Device"},
	{3, "CUDA_KERNEL_LAUNCH_TYPE_COOPERATIVE_MULTI_DEVICE", "Coop Multi Device"},
}

// exists says whether exports of version v carry the table. The oldest ones carry none.
func (e enumTable) exists(v version) bool {
	return v > 0 && v >= e.since && (e.until == 0 || v < e.until)
}
