package tracetest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// OldestSchema names, in [Schema], the generation before exports carried any metadata: no META_DATA tables, no
// PROCESSES, no ENUM tables, no mangledName.
const OldestSchema = "oldest"

// DefaultSchema is the schema version that [New] writes unless told otherwise.
const DefaultSchema = "3.16.1"

// products maps a schema version to the Nsight Systems release that exports it. These are the versions [Schema] takes.
var products = []struct{ schema, product string }{
	{"3.0.0", "2022.4.2.1"},
	{"3.6.0", "2023.4.1.97"},
	{"3.7.2", "2023.4.4.54"},
	{"3.11.1", "2024.2.3.38"},
	{"3.16.1", "2024.6.2.225"},
	{"3.17.2", "2025.1.3.140"},
	{"3.23.3", "2025.5.1.121"},
	{"3.24.14", "2026.1.1.204"},
	{"3.25.0", "2026.2.1.210"},
}

// version is a schema version as one comparable number; 0 is the oldest generation.
type version int

func parseVersion(s string) (version, error) {
	if s == OldestSchema {
		return 0, nil
	}
	v := version(0)
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return 0, fmt.Errorf("schema version %q is not MAJOR.MINOR.MICRO", s)
	}
	for _, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 || n > 999 {
			return 0, fmt.Errorf("schema version %q is not MAJOR.MINOR.MICRO", s)
		}
		v = v*1000 + version(n)
	}
	return v, nil
}

func productOf(schema string) (string, bool) {
	for _, p := range products {
		if p.schema == schema {
			return p.product, true
		}
	}
	return "", false
}

// column is one column of a table in one schema version.
type column struct {
	name    string
	decl    string // INTEGER, TEXT or REAL
	notNull bool
	primary bool
}

// tableDef is one table in one schema version; columns in the order of the real exports.
type tableDef struct {
	name    string
	columns []column
}

func (t *tableDef) index(name string) int {
	return slices.IndexFunc(t.columns, func(c column) bool { return c.name == name })
}

// tableSpecs lists every table the builder knows, in the order real exports create them.
//
// A line is NAME [@since] [<until], then the columns. A column is name[:type][!][*][@since][<until]: type T (TEXT), R
// (REAL) or INTEGER where none is given, ! for NOT NULL, * for PRIMARY KEY, and the schema versions between which it
// exists (until is exclusive). The versions are those at which the column was first seen in real exports.
const tableSpecs = `
StringIds
  id!* value:T!
NVTX_PAYLOAD_SCHEMAS @3.20.2
  domainId schemaId name:T type flags numEntries payloadSize alignTo
NVTX_PAYLOAD_SCHEMA_ENTRIES @3.20.2
  domainId! schemaId! idx! flags type name:T description:T arrayOrUnionDetail offset
TARGET_INFO_SYSTEM_ENV @2.9.1
  globalVid!@2.9.1<3.4.0 globalVid@3.4.0 devStateName:T! name:T! nameEnum! value:T!
TARGET_INFO_SESSION_START_TIME @2.9.1
  utcEpochNs utcTime:T localTime:T systemClockNs@3.24.7
ANALYSIS_DETAILS @2.9.1
  globalVid! duration! startTime! stopTime!
PROCESSES @2.9.1
  globalPid pid name:T
ProcessStreams
  globalPid! filenameId! contentId!
CUPTI_ACTIVITY_KIND_CUDA_EVENT @3.0.0
  timestamp@3.24.14 deviceId! contextId! greenContextId@3.7.2 streamId! correlationId globalPid eventId! eventSyncId@3.17.2
CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE_AND_HOST_LAUNCH @3.24.7
  start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid graphNodeId graphId
CUDA_HOST_CALLBACK @3.24.7
  start! end! eventClass! globalTid correlationId nameId
CUDA_GRAPH_EVENTS @3.7.2
  start! end! eventClass! globalTid nameId! graphId originalGraphId graphExecId
PROFILER_OVERHEAD
  start! end! globalTid correlationId<2.9.1 nameId! returnValue!<3.24.7 overheadType!@3.24.7
CUDA_GPU_MEMORY_USAGE_EVENTS
  start! globalPid! deviceId! contextId! address! pc! bytes! memKind! memoryOperationType! correlationId nameId localMemoryPoolAddress localMemoryPoolReleaseThreshold localMemoryPoolSize localMemoryPoolUtilizedSize
CUPTI_ACTIVITY_KIND_OVERHEAD @3.24.7
  start! end! eventClass! globalTid correlationId nameId overheadType!
CUPTI_ACTIVITY_KIND_RUNTIME
  start! end! eventClass! globalTid correlationId nameId! returnValue! callchainId
NVTX_EVENTS
  start! end eventType! rangeId category color text:T globalTid endGlobalTid textId domainId uint64Value int64Value
  doubleValue:R uint32Value int32Value floatValue:R jsonTextId jsonText:T binaryData:T@3.16.1
CUPTI_ACTIVITY_KIND_MEMSET
  start! end! deviceId! contextId! greenContextId@3.7.2 streamId! correlationId globalPid value! bytes! graphNodeId memKind
CUPTI_ACTIVITY_KIND_MEMCPY
  start! end! deviceId! contextId! greenContextId@3.7.2 streamId! correlationId globalPid bytes! copyKind! deprecatedSrcId
  srcKind dstKind srcDeviceId srcContextId dstDeviceId dstContextId migrationCause graphNodeId virtualAddress@2.9.1
  copyCount@3.17.2
CUPTI_ACTIVITY_KIND_SYNCHRONIZATION
  start! end! deviceId! contextId! greenContextId@3.7.2 streamId! correlationId globalPid deprecatedSyncType@3.17.1
  syncType! eventId! eventSyncId@3.17.1
CUPTI_ACTIVITY_KIND_KERNEL
  start! end! deviceId! contextId! greenContextId@3.7.2 streamId! correlationId globalPid demangledName! shortName!
  mangledName@2.9.1 launchType cacheConfig registersPerThread! gridX! gridY! gridZ! blockX! blockY! blockZ!
  staticSharedMemory! dynamicSharedMemory! localMemoryPerThread! localMemoryTotal! gridId! sharedMemoryExecuted
  graphNodeId sharedMemoryLimitConfig qmdBulkReleaseDone@3.24.14 qmdPreexitDone@3.24.14 qmdLastCtaDone@3.24.14
  graphId@3.24.14 clusterX@3.24.14 clusterY@3.24.14 clusterZ@3.24.14 clusterSchedulingPolicy@3.24.14
  maxPotentialClusterSize@3.24.14 maxActiveClusters@3.24.14 sharedMemoryRequestedPercentage@3.24.14
  tensorSizeMinusOneElements:T!@3.24.18
CUPTI_ACTIVITY_KIND_GRAPH_TRACE @3.0.0
  start! end! deviceId! contextId! greenContextId@3.7.2 streamId! correlationId globalPid graphId! graphExecId!
OSRT_API
  start! end! eventClass! globalTid correlationId<2.9.1 nameId! returnValue! nestingLevel callchainId! argumentsId!@3.23.3
OSRT_CALLCHAINS
  id! symbol! module! kernelMode thumbCode unresolved specialEntry originalIP unwindMethod stackDepth!
SCHED_EVENTS
  start! cpu! isSchedIn! globalTid threadState@3.13.2 threadBlock@3.13.2
COMPOSITE_EVENTS
  id!* start! cpu threadState globalTid cpuCycles!
SAMPLING_CALLCHAINS
  id! symbol! module! kernelMode thumbCode unresolved specialEntry originalIP unwindMethod stackDepth!
GPU_METRICS @3.7.2
  timestamp typeId! metricId! value!
TARGET_INFO_GPU_METRICS @3.7.2
  typeId! sourceId! typeName:T! metricId! metricName:T!
GENERIC_EVENT_SOURCES @3.7.2
  sourceId! data:T!
GENERIC_EVENT_TYPES @3.7.2
  typeId! sourceId! data:T!
GENERIC_EVENTS @3.7.2
  rawTimestamp timestamp typeId! data:T!
OSRT_FILE_ACCESS_EVENTS @3.23.3
  fileAccessId! threadId! startedAt! endedAt! eventType! apiCallId! bytesProcessed!
OSRT_FILE_ACCESS_DESCRIPTORS @3.23.3
  fileAccessId! processId! openedAt! closedAt! filePath:T!
DIAGNOSTIC_EVENT @3.11.1
  timestamp! timestampType! source! severity! text:T! globalPid
ThreadNames
  nameId! priority globalTid
TARGET_INFO_GPU
  vmId! id! name:T busLocation:T isDiscrete l2CacheSize totalMemory memoryBandwidth clockRate smCount pwGpuId uuid:T luid
  chipName:T cuDevice ctxswDevPath:T ctrlDevPath:T revision nodeMask constantMemory maxIPC maxRegistersPerBlock
  maxShmemPerBlock maxShmemPerBlockOptin maxShmemPerSm maxRegistersPerSm threadsPerWarp asyncEngines maxWarpsPerSm
  maxBlocksPerSm maxThreadsPerBlock maxBlockDimX maxBlockDimY maxBlockDimZ maxGridDimX maxGridDimY maxGridDimZ
  computeMajor computeMinor smMajor smMinor
TARGET_INFO_CUDA_DEVICE @3.17.1
  gpuId cudaId! pid! uuid:T@3.24.7 numMultiprocessors@3.24.7
TARGET_INFO_CUDA_CONTEXT_INFO @3.7.2
  nullStreamId! hwId! vmId! processId! deviceId! contextId! parentContextId isGreenContext numMultiprocessors@3.24.7
  numTpcs@3.24.18 tpcMask@3.24.18 workqueueResourceId@3.24.18 workqueueConcurrencyLimit@3.24.18
  workqueueSharingScope@3.24.18
TARGET_INFO_CUDA_NULL_STREAM <3.4.0
  streamId! hwId! vmId! processId! deviceId! contextId!
TARGET_INFO_CUDA_STREAM
  streamId! hwId! vmId! processId! contextId! priority! flag!
EXPORT_META_DATA @2.9.1 <3.4.0
  name:T! value:T
META_DATA_CAPTURE @3.4.0
  name:T! value:T
META_DATA_EXPORT @3.4.0
  name:T! value:T
`

// schemaTables returns the tables of a version, in creation order.
func schemaTables(v version) ([]tableDef, error) {
	var tables []tableDef
	skip := false
	for line := range strings.Lines(tableSpecs) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if line[0] != ' ' {
			ok, err := covers(v, strings.Join(fields[1:], ""))
			if err != nil {
				return nil, fmt.Errorf("table %s: %w", fields[0], err)
			}
			skip = !ok
			if ok {
				tables = append(tables, tableDef{name: fields[0]})
			}
			continue
		}
		if skip {
			continue
		}
		t := &tables[len(tables)-1]
		for _, f := range fields {
			c, ok, err := parseColumn(v, f)
			if err != nil {
				return nil, fmt.Errorf("table %s: %w", t.name, err)
			}
			if ok {
				t.columns = append(t.columns, c)
			}
		}
	}
	return tables, nil
}

// parseColumn reads one column of tableSpecs and says whether version v has it.
func parseColumn(v version, s string) (column, bool, error) {
	head, bounds := s, ""
	if i := strings.IndexAny(s, "@<"); i >= 0 {
		head, bounds = s[:i], s[i:]
	}
	ok, err := covers(v, bounds)
	if err != nil {
		return column{}, false, fmt.Errorf("column %s: %w", head, err)
	}
	c := column{decl: "INTEGER"}
	head, c.primary = strings.CutSuffix(head, "*")
	head, c.notNull = strings.CutSuffix(head, "!")
	name, kind, _ := strings.Cut(head, ":")
	c.name = name
	switch kind {
	case "T":
		c.decl = "TEXT"
	case "R":
		c.decl = "REAL"
	}
	return c, ok, nil
}

// covers says whether v lies in the range that bounds spells: "@since", "<until" or both.
func covers(v version, bounds string) (bool, error) {
	since, until, capped := strings.Cut(bounds, "<")
	if since != "" {
		from, err := parseVersion(strings.TrimPrefix(since, "@"))
		if err != nil || v < from {
			return false, err
		}
	}
	if capped {
		to, err := parseVersion(until)
		if err != nil || v >= to {
			return false, err
		}
	}
	return true, nil
}
