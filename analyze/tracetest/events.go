package tracetest

import (
	"cmp"
	"math"
	"strings"
)

// Open is the end of a range that nobody closed before the capture ended, and of a mark: NULL in the file.
const Open int64 = math.MinInt64

// endTime is an end column: NULL for Open.
func endTime(t int64) Value {
	if t == Open {
		return Null()
	}
	return Int(t)
}

// NoStream is the stream id of an operation on a whole context, as CUPTI writes it.
const NoStream = 4294967295

// Place is where a piece of GPU work ran and who asked for it.
type Place struct {
	Process     *Process // nil leaves globalPid NULL
	Device      int64    // 0-based device number
	Context     int64    // 0 means 1, the first context of a process
	Stream      int64    // 0 means 7, the stream real exports give to CUDA's default stream
	Correlation int64    // the API call that asked for it; 0 leaves it NULL
}

func (p Place) row(start, end int64) Row {
	return Row{
		"start": Int(start), "end": Int(end), "deviceId": Int(p.Device), "contextId": Int(or(p.Context, 1)),
		"greenContextId": Int(0), "streamId": Int(or(p.Stream, 7)), "correlationId": optInt(p.Correlation),
		"globalPid": p.Process.globalValue(),
	}
}

// Kernel is one CUPTI_ACTIVITY_KIND_KERNEL row.
type Kernel struct {
	Place
	Start, End         int64    // ns
	Name               string   // demangled, with templates and arguments
	Short              string   // default: Name without return type, namespaces, templates and arguments
	Mangled            string   // default: Name
	Grid, Block        [3]int64 // zeros mean 1; a zero Block means 128 threads
	Registers          int64    // per thread; 0 means 32
	StaticShared       int64    // bytes
	DynamicShared      int64    // bytes
	GraphNode, GraphID int64    // of a kernel that ran in a CUDA graph traced by node; 0 is NULL
	Set                Row      // overrides single columns
}

// Kernel adds a kernel.
func (b *Builder) Kernel(k Kernel) {
	short, mangled := k.Short, k.Mangled
	if short == "" {
		short = cmp.Or(shortName(k.Name), k.Name)
	}
	if mangled == "" {
		mangled = k.Name
	}
	if k.Block == [3]int64{} {
		k.Block[0] = 128
	}
	row := Row{
		"demangledName": ID(k.Name), "shortName": ID(short), "mangledName": ID(mangled),
		"registersPerThread": Int(or(k.Registers, 32)), "gridX": Int(or(k.Grid[0], 1)),
		"gridY": Int(or(k.Grid[1], 1)), "gridZ": Int(or(k.Grid[2], 1)), "blockX": Int(or(k.Block[0], 1)),
		"blockY": Int(or(k.Block[1], 1)), "blockZ": Int(or(k.Block[2], 1)), "staticSharedMemory": Int(k.StaticShared),
		"dynamicSharedMemory": Int(k.DynamicShared), "gridId": Int(int64(len(b.rows)) + 1),
		"graphNodeId": optInt(k.GraphNode), "graphId": optInt(k.GraphID),
	}.with(k.row(k.Start, k.End))
	b.Row("CUPTI_ACTIVITY_KIND_KERNEL", row.with(k.Set))
}

// usual is what a row holds in columns that it does not name, by table.
var usual = map[string]Row{"CUPTI_ACTIVITY_KIND_KERNEL": {
	"launchType": Int(1), "cacheConfig": Int(1), "localMemoryPerThread": Int(0), "localMemoryTotal": Int(0),
	"sharedMemoryExecuted": Int(32768), "sharedMemoryLimitConfig": Int(0), "clusterX": Int(0), "clusterY": Int(0),
	"clusterZ": Int(0), "clusterSchedulingPolicy": Int(1), "maxPotentialClusterSize": Int(0),
	"maxActiveClusters": Int(0), "tensorSizeMinusOneElements": Text("[]"),
}}

// shortName is the base name of a demangled kernel name, as CUPTI gives it.
func shortName(name string) string {
	var s strings.Builder
	depth := 0
	for _, r := range strings.ReplaceAll(name, "<unnamed>", "unnamed") {
		switch {
		case r == '<':
			depth++
		case r == '>' && depth > 0:
			depth--
		case r == '(' && depth == 0:
			return lastName(s.String())
		case depth == 0:
			s.WriteRune(r)
		}
	}
	return lastName(s.String())
}

func lastName(s string) string {
	if i := strings.LastIndexAny(strings.TrimSpace(s), ": "); i >= 0 {
		return strings.TrimSpace(s)[i+1:]
	}
	return s
}

// API is one CUDA API call, a CUPTI_ACTIVITY_KIND_RUNTIME row.
type API struct {
	Thread      *Thread // nil leaves globalTid NULL
	Name        string  // with its version suffix, e.g. "cudaLaunchKernel_v7000"
	Start, End  int64   // ns
	Correlation int64   // 0 leaves it NULL
	Return      int64   // CUDA error code, 0 for success
	Driver      bool    // a driver API call, eventClass 1, where others are runtime calls, 0
	Set         Row     // overrides single columns
}

// API adds an API call.
func (b *Builder) API(a API) {
	class := int64(0)
	if a.Driver {
		class = 1
	}
	row := Row{
		"start": Int(a.Start), "end": Int(a.End), "eventClass": Int(class), "globalTid": a.Thread.globalValue(),
		"correlationId": optInt(a.Correlation), "nameId": ID(a.Name), "returnValue": Int(a.Return),
	}
	b.Row("CUPTI_ACTIVITY_KIND_RUNTIME", row.with(a.Set))
}

// CopyKind is the direction of a copy, as in ENUM_CUDA_MEMCPY_OPER.
type CopyKind int64

// Copy directions.
const (
	HtoD CopyKind = 1
	DtoH CopyKind = 2
	DtoD CopyKind = 8
	HtoH CopyKind = 9
	PtoP CopyKind = 10
)

// MemKind is a kind of memory, as in ENUM_CUDA_MEM_KIND.
type MemKind int64

// Kinds of memory.
const (
	Pageable     MemKind = 0
	Pinned       MemKind = 1
	DeviceMemory MemKind = 2
	Managed      MemKind = 4
)

// Memcpy is one copy, a CUPTI_ACTIVITY_KIND_MEMCPY row.
type Memcpy struct {
	Place
	Start, End int64 // ns
	Bytes      int64
	Kind       CopyKind
	Src, Dst   MemKind // Pageable is the zero value: say DeviceMemory for the device's side
	GraphNode  int64   // 0 is NULL
	Set        Row     // overrides single columns
}

// Memcpy adds a copy.
func (b *Builder) Memcpy(m Memcpy) {
	row := m.row(m.Start, m.End).with(Row{
		"bytes": Int(m.Bytes), "copyKind": Int(int64(m.Kind)), "srcKind": Int(int64(m.Src)),
		"dstKind": Int(int64(m.Dst)), "graphNodeId": optInt(m.GraphNode), "copyCount": Int(1),
	})
	b.Row("CUPTI_ACTIVITY_KIND_MEMCPY", row.with(m.Set))
}

// Memset is one fill, a CUPTI_ACTIVITY_KIND_MEMSET row.
type Memset struct {
	Place
	Start, End int64 // ns
	Bytes      int64
	Value      int64
	GraphNode  int64 // 0 is NULL
	Set        Row   // overrides single columns
}

// Memset adds a fill of device memory.
func (b *Builder) Memset(m Memset) {
	row := m.row(m.Start, m.End).with(Row{
		"value": Int(m.Value), "bytes": Int(m.Bytes), "graphNodeId": optInt(m.GraphNode),
		"memKind": Int(int64(DeviceMemory)),
	})
	b.Row("CUPTI_ACTIVITY_KIND_MEMSET", row.with(m.Set))
}

// SyncType is the kind of a synchronization, as in ENUM_CUPTI_SYNC_TYPE.
type SyncType int64

// Kinds of synchronization. StreamWaitEvent does not block the host.
const (
	EventSync       SyncType = 1
	StreamWaitEvent SyncType = 2
	StreamSync      SyncType = 3
	ContextSync     SyncType = 4
)

// Sync is one CUPTI_ACTIVITY_KIND_SYNCHRONIZATION row.
type Sync struct {
	Place            // Stream 0 means 7; use NoStream for ContextSync
	Start, End int64 // ns
	Type       SyncType
	Event      int64 // event id; 0 means none
	Set        Row   // overrides single columns
}

// Sync adds a synchronization.
func (b *Builder) Sync(s Sync) {
	row := s.row(s.Start, s.End).with(Row{
		"syncType": Int(int64(s.Type)), "eventId": Int(or(s.Event, NoStream)), "eventSyncId": Int(0),
		"greenContextId": Null(),
	})
	b.Row("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", row.with(s.Set))
}

// Event is an event recorded into a stream, a CUPTI_ACTIVITY_KIND_CUDA_EVENT row. Schemas from 3.0.0 on have it.
type Event struct {
	Place
	ID  int64 // eventId
	At  int64 // ns, written from schema 3.24.14 on
	Set Row   // overrides single columns
}

// Event adds an event recorded into a stream.
func (b *Builder) Event(e Event) {
	row := e.row(e.At, e.At)
	delete(row, "start")
	delete(row, "end")
	row = row.with(Row{"timestamp": Int(e.At), "eventId": Int(e.ID), "eventSyncId": Int(0)})
	b.Row("CUPTI_ACTIVITY_KIND_CUDA_EVENT", row.with(e.Set))
}

// GraphTrace is one run of a whole CUDA graph, a CUPTI_ACTIVITY_KIND_GRAPH_TRACE row: what --cuda-graph-trace=graph
// records in place of the graph's kernels. Schemas from 3.0.0 on have it.
type GraphTrace struct {
	Place
	Start, End int64 // ns
	Graph      int64 // graphId
	Exec       int64 // graphExecId
	Set        Row   // overrides single columns
}

// GraphTrace adds a run of a whole graph.
func (b *Builder) GraphTrace(g GraphTrace) {
	row := g.row(g.Start, g.End).with(Row{"graphId": Int(g.Graph), "graphExecId": Int(g.Exec)})
	b.Row("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", row.with(g.Set))
}
