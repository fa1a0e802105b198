package trace

import "slices"

// Tables are the tables of a capture that were read.
type Tables []TableStat

// Has reports whether a table with that role holds rows.
func (list Tables) Has(role Role) bool {
	return slices.ContainsFunc(list, func(t TableStat) bool { return t.Role == role && t.Rows > 0 })
}

// Name is the name of the table with that role in this capture, or the name it usually has.
func (list Tables) Name(role Role) string {
	if i := slices.IndexFunc(list, func(t TableStat) bool { return t.Role == role }); i >= 0 {
		return list[i].Name
	}
	return usualTable[role]
}

// UsualTable is the name that the table with that role usually has.
func UsualTable(role Role) string { return usualTable[role] }

var usualTable = map[Role]string{
	RoleKernel:    "CUPTI_ACTIVITY_KIND_KERNEL",
	RoleAPI:       "CUPTI_ACTIVITY_KIND_RUNTIME",
	RoleNVTX:      "NVTX_EVENTS",
	RoleMemcpy:    "CUPTI_ACTIVITY_KIND_MEMCPY",
	RoleMemset:    "CUPTI_ACTIVITY_KIND_MEMSET",
	RoleGraph:     "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
	RoleGraphMade: "CUDA_GRAPH_EVENTS",
	RoleHostFunc:  "CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE_AND_HOST_LAUNCH",
	RoleSync:      "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
	RoleEvent:     "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
	RoleOverhead:  "PROFILER_OVERHEAD", RoleOS: "OSRT_API", RoleSched: "SCHED_EVENTS",
	RoleSample: "COMPOSITE_EVENTS", RoleSampleStack: "SAMPLING_CALLCHAINS", RoleCounter: "GPU_METRICS",
	RoleGeneric: "GENERIC_EVENTS",
	RoleAlloc:   "CUDA_GPU_MEMORY_USAGE_EVENTS",
}
