// Package trace is the only reader of Nsight Systems SQLite exports. It opens a file without changing it or creating
// anything beside it, finds out which tables and columns this export has, and loads the events into typed columns that
// the rest of the analyzer shares read-only.
//
// All times are nanoseconds on the capture's own clock and may be negative. Event tables are sorted by start. Rows with
// NULL times, end before start or times that no capture can hold are counted in [Trace.Tables] and left out.
package trace

import (
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/internal/trace/source"
	"github.com/nsys-llm/explain/analyze/internal/trace/span"
)

// None is the index that stands for "unknown" in every index column.
const None int32 = -1

// Trace is one loaded capture.
type Trace struct {
	File   File
	Tables Tables // every table that was read, in a fixed order
	// LeftOut are the tables of events that were not read, because no part of the report needs them.
	LeftOut []string

	Procs []Proc
	// Programs are the names of all processes in the capture, including those without work on a device, by the global
	// id without the bits of the thread, shifted down.
	Programs map[int64]string
	Threads  []Thread
	GPUs     []GPUInfo // adapters the capture lists, which need not be the devices that did work
	Meta     Meta

	Kernels Kernels
	Copies  Copies
	Sets    Sets
	Graphs  Graphs // whole CUDA graph launches, if graphs were traced as one (--cuda-graph-trace=graph)
	// HostFuncs are functions that the host ran for a stream, which waited for their end: of cudaLaunchHostFunc, and
	// host nodes of graphs. HostFuncNames are their names, if the capture has them.
	HostFuncs     Work
	HostFuncNames map[HostFunc]string
	GraphsMade    []int64 // when executable CUDA graphs were made, ns, ascending
	API           API     // CUDA runtime and driver calls
	Ranges        Ranges  // NVTX push/pop and start/end ranges
	Syncs         Syncs   // CUPTI_ACTIVITY_KIND_SYNCHRONIZATION

	OS          Observed // calls of the operating system's functions (OSRT_API)
	OSStacks    Frames   // the call stacks of some of them
	Sched       Observed // threads that come onto a CPU and leave it (SCHED_EVENTS)
	Samples     Observed // of CPUs (COMPOSITE_EVENTS)
	SampleStack Frames   // their call stacks
	// The Python code that threads ran, by time, and the number of samples whose stack is missing or in another form.
	Python       []PythonSample
	PythonFrames []PythonFrame
	PythonUnread int64

	Counted  Observed // values of GPU counters (GPU_METRICS)
	Counters []Counter

	Power       []Power // by adapter and moment (GENERIC_EVENTS of the plugin nvml_metrics)
	PowerUnread int64   // events about power that state no field in a known unit

	MPI  []MPICall  // by start
	NCCL []NCCLCall // by start
	// MPIComms are in the order of the export.
	MPIComms []MPIComm
	Ranks    map[int64]Rank // by global pid

	Events      Events   // CUDA events recorded
	Overhead    Observed // time that the profiler spent on itself (PROFILER_OVERHEAD)
	Allocs      []Alloc  // by start; of captures with --cuda-memory-usage
	Diagnostics []Diagnostic

	// Has says which optional columns this export has.
	Has Columns

	source source.Source
	temp   string
	ranges source.Table // of ranges, where the few raw names that are shown are read again
	texts  texts
	arena  *spill.Arena
}

// RanKernels reports whether the capture holds kernels or whole CUDA graphs: without any, idle time means nothing.
func (t *Trace) RanKernels() bool { return t.Kernels.Len() > 0 || t.Graphs.Len() > 0 }

// ProcOf is the process of a thread, or None.
func (t *Trace) ProcOf(thread int32) int32 {
	if thread == None {
		return None
	}
	return t.Threads[thread].Proc
}

// Memory allocates the arrays with an element per event. They are gone when the trace is closed.
func (t *Trace) Memory() *spill.Arena { return t.arena }

// DropCallIDs frees the correlation ids of API calls, which are not needed once launches are joined.
func (t *Trace) DropCallIDs() {
	spill.Free(t.arena, t.API.corr.low)
	spill.Free(t.arena, t.API.corr.high)
	t.API.corr = numbers{}
}

// DropRanges frees the columns of ranges: from then on there are none, but their distinct names and [Ranges.Any].
func (t *Trace) DropRanges() {
	t.Ranges.dropped = t.Ranges.Any()
	span.Free(t.arena, &t.Ranges.Span)
	t.Ranges.place.free(t.arena)
	t.Ranges.name.free(t.arena)
}

// File is the file that the trace was read from.
type File = source.File

// InputError says in one sentence what is wrong with an input file and how to fix it.
type InputError = source.InputError

// cell is one value of one row.
type cell = pages.Cell

// TableStat counts the rows of one table.
type TableStat struct {
	Role    Role
	Name    string
	Rows    int64
	Skipped int64 // NULL times, end before start, or times no capture can hold
	Odd     int64 // copies and memsets with an impossible size, kind or rate
}

// Columns that an export may lack.
type Columns struct {
	KernelPID, KernelCorrelation, KernelDevice, KernelGraphNode bool
	APIThread, APICorrelation, APIReturn                        bool
	RangeEnd, RangeThread, RangeType                            bool
	CopyKinds                                                   bool // srcKind and dstKind
	EveryLaunch                                                 bool // all calls that start work are recorded
}

// Proc is one process, identified by the whole upper part of its globalPid: virtual machine, hardware and pid.
type Proc struct {
	Global int64 // globalPid with the thread bits cleared
	PID    int64 // bits 24 to 47, as printed by nsys
	Name   string
}

// Thread is one thread, identified by its globalTid.
type Thread struct {
	Global int64
	Proc   int32
	TID    int64 // bits 0 to 23
	Name   string
}

// GPUInfo is one adapter from TARGET_INFO_GPU or, in the oldest exports, TARGET_INFO_CUDA_GPU. Zero means not stated.
type GPUInfo struct {
	ID, CUDADevice   int64
	Name, Chip       string
	SMs              int64
	MemoryBytes      int64
	MemoryBandwidth  int64 // bytes per second
	ClockHz          int64
	CapMajor, CapMin int64
	Fingerprint      string // of its UUID, which tells the machine
}

// Meta holds the few safe facts read from the capture's metadata, by an allow-list of keys. Empty means not stated.
type Meta struct {
	ExporterVersion, SchemaVersion string
	CaptureVersion                 string
	GraphTrace                     string // graph or node, as the capture was configured
	TraceSet                       []string
	Driver, CUDA, OS, CPU          string
	Arch                           string
	SessionStart                   int64  // ns since 1970; 0: not stated
	Source                         string // nsys, pytorch or pytorch-rocm
	Cut                            bool   // the file was read up to where it is cut off
	Resolution                     int64  // of times in ns; 0: not stated
	Loose                          int64  // places of the file that are not JSON, or repeat a key
	Captured                       int64  // how long the recording took, in ns
}

// HostFunc is the launch of a host function: its process and correlation id.
type HostFunc struct{ Global, Corr int64 }

// Alloc is memory that was allocated or freed.
type Alloc struct {
	Start, Bytes, Address int64
	Owner                 int64 // global pid; 0 unknown
	Device                int32 // deviceId, or -1
	Kind                  int32 // ENUM_CUDA_MEM_KIND: 0 pageable, 1 pinned, 2 device, 3 array, 4 managed, 5 and 6 static
	Free                  bool
	// Pool is the address of the memory pool that served it, with its size and the part of that in use, in bytes; 0 and
	// -1 if there is none.
	Pool, PoolSize, PoolUsed int64
}

// Diagnostic is a message nsys recorded about the capture, reduced to its severity: its text may hold anything.
type Diagnostic struct {
	Severity int64
	Code     string // a known kind of message, or empty
}

// Work is the data that every GPU activity has.
type Work struct {
	Span
	places []workPlace // of which there are few
	place  codes       // indexes places
	corr   numbers
}

// workPlace is the place of a GPU activity. Its numbers are None if the row does not say.
type workPlace struct {
	device int32
	proc   owner
	stream int64
	node   bool  // as a node of a CUDA graph
	graph  int64 // that graph
}

// Device is the deviceId of event i.
func (w *Work) Device(i int) int32 { return w.places[w.place.at(i)].device }

// Stream is the streamId of event i, unique within its process and device, or -1.
func (w *Work) Stream(i int) int64 { return w.places[w.place.at(i)].stream }

// Proc indexes Trace.Procs, or is None.
func (w *Work) Proc(i int) int32 { return w.places[w.place.at(i)].proc.index }

// Corr is the correlationId, unique within a process, or -1.
func (w *Work) Corr(i int) int64 { return w.corr.at(i) }

// Kernels are the rows of CUPTI_ACTIVITY_KIND_KERNEL.
type Kernels struct {
	Work
	Names   []KernelName
	Configs []LaunchConfig
	name    codes
	config  codes
}

// KernelName is one distinct kernel name.
type KernelName struct {
	Name  string // demangledName, else shortName, mangledName, name, else #<id>
	Short string // shortName if the export has it
}

// LaunchConfig is one distinct launch configuration.
type LaunchConfig struct {
	Grid, Block                 [3]int32
	Registers                   int32
	SharedStatic, SharedDynamic int32 // bytes
	Occupancy                   int32 // estimated by the profiler, in percent; None if it did not
}

// Name indexes Names.
func (k *Kernels) Name(i int) int32 { return k.name.at(i) }

// Config indexes Configs.
func (k *Kernels) Config(i int) int32 { return k.config.at(i) }

// InGraph reports whether the kernel ran as a node of a CUDA graph.
func (k *Kernels) InGraph(i int) bool { return k.places[k.place.at(i)].node }

// InGraphs reports whether any kernel did, as in captures that trace the nodes of graphs.
func (k *Kernels) InGraphs() bool {
	return slices.ContainsFunc(k.places, func(p workPlace) bool { return p.node })
}

// Graph is the id of the CUDA graph that the kernel ran in, or -1: outside of graphs, or not known.
func (k *Kernels) Graph(i int) int64 { return k.places[k.place.at(i)].graph }

// Copies are the rows of CUPTI_ACTIVITY_KIND_MEMCPY.
type Copies struct {
	Work
	shapes []copyShape
	shape  codes
	bytes  numbers
}

// Bytes moved by copy i.
func (c *Copies) Bytes(i int) int64 { return c.bytes.at(i) }

// Kind is the copyKind: 1 HtoD, 2 DtoH, 8 DtoD, 10 PtoP, … (ENUM_CUDA_MEMCPY_OPER).
func (c *Copies) Kind(i int) int { return int(c.shapes[c.shape.at(i)].kind) }

// SrcKind is the memory kind of the source (ENUM_CUDA_MEM_KIND: 0 pageable, 1 pinned, 2 device, 4 managed, …), or -1.
func (c *Copies) SrcKind(i int) int { return int(c.shapes[c.shape.at(i)].src) }

// DstKind is the memory kind of the destination, or -1.
func (c *Copies) DstKind(i int) int { return int(c.shapes[c.shape.at(i)].dst) }

// Sets are the rows of CUPTI_ACTIVITY_KIND_MEMSET.
type Sets struct {
	Work
	bytes numbers
	kind  numbers
}

// Bytes set by memset i.
func (s *Sets) Bytes(i int) int64 { return s.bytes.at(i) }

// MemKind is the kind of memory set, or -1.
func (s *Sets) MemKind(i int) int { return int(s.kind.at(i)) }

// Graphs are the rows of CUPTI_ACTIVITY_KIND_GRAPH_TRACE: GPU work whose kernels are hidden.
type Graphs struct {
	Work
	graph, exec numbers
}

// Graph is the graphId of row i.
func (g *Graphs) Graph(i int) int64 { return g.graph.at(i) }

// Exec is the graphExecId of row i.
func (g *Graphs) Exec(i int) int64 { return g.exec.at(i) }

// API are CUDA runtime and driver calls on host threads.
type API struct {
	Span
	Names  []APIName
	places []callPlace
	place  codes
	corr   numbers
	name   codes
}

// callPlace is the thread of a call and how the call ended.
type callPlace struct {
	thread owner
	ret    int32
}

// Named reports whether the names of the calls could be resolved: without them it is unknown which of them launched
// work, or waited.
func (a *API) Named() bool {
	known := func(n APIName) bool { return !strings.HasPrefix(n.Name, "#") }
	return len(a.Names) == 0 || slices.ContainsFunc(a.Names, known)
}

// Thread indexes Trace.Threads, or is None.
func (a *API) Thread(i int) int32 { return a.places[a.place.at(i)].thread.index }

// Corr is the correlationId, or -1. It must not be used after [Trace.DropCallIDs].
func (a *API) Corr(i int) int64 { return a.corr.at(i) }

// Name indexes Names.
func (a *API) Name(i int) int32 { return a.name.at(i) }

// Return is the call's return value; 0 is success.
func (a *API) Return(i int) int32 { return a.places[a.place.at(i)].ret }

// Ranges are NVTX ranges: push/pop and start/end.
type Ranges struct {
	Span
	Names  []RangeName
	Sizes  []string // sizes of operators' inputs, as PyTorch writes them: each list once
	places []rangePlace
	place  codes
	name   codes
	row    steps
	number numbers // of operators, as autograd counts them; empty if the capture has none

	dropped bool // there were ranges until [Trace.DropRanges]
}

// RangeName is one distinct canonical name together with one tag.
type RangeName struct {
	Text string // canonical: counters, addresses and sequence numbers replaced by #
	Tag  uint32 // the value of Options.Tag for the raw text
}

// rangePlace is the thread of a range, and what else most ranges share.
type rangePlace struct {
	thread         owner
	sizes          int32
	open, backward bool
	text           int64 // id of the text of the sizes, or None
}

// Any reports whether the capture has ranges.
func (r *Ranges) Any() bool { return r.Len() > 0 || r.dropped }

// Thread indexes Trace.Threads (of the start, for a start/end range), or is None.
func (r *Ranges) Thread(i int) int32 { return r.places[r.place.at(i)].thread.index }

// Name indexes Names.
func (r *Ranges) Name(i int) int32 { return r.name.at(i) }

// Open reports whether the range was still open at the end of the capture; its end is then the last moment seen.
func (r *Ranges) Open(i int) bool { return r.places[r.place.at(i)].open }

// InputSizes indexes Sizes, or is None: the sizes of the inputs of an operator of PyTorch.
func (r *Ranges) InputSizes(i int) int32 { return r.places[r.place.at(i)].sizes }

// Numbered reports whether the capture has numbers of autograd.
func (r *Ranges) Numbered() bool { return len(r.number.low) > 0 }

// Sequence is the number of an operator of PyTorch in autograd, which its backward calls share, or -1.
func (r *Ranges) Sequence(i int) int64 {
	if !r.Numbered() {
		return int64(None)
	}
	return r.number.at(i)
}

// Backward reports whether it is marked as part of autograd's backward pass.
func (r *Ranges) Backward(i int) bool { return r.places[r.place.at(i)].backward }

// Syncs are the rows of CUPTI_ACTIVITY_KIND_SYNCHRONIZATION.
type Syncs struct {
	Work
	event, epoch numbers
}

// Stream is the stream that is waited for or that waits, unique within its process and device; -1: none, or all.
func (s *Syncs) Stream(i int) int64 {
	if id := s.Work.Stream(i); id < math.MaxUint32 {
		return id
	}
	return int64(None)
}

// Event is the eventId, unique within a process, or -1.
func (s *Syncs) Event(i int) int64 { return s.event.at(i) }

// Epoch is the eventSyncId: which of the event's records is waited for, if the export says so; else -1.
func (s *Syncs) Epoch(i int) int64 { return s.epoch.at(i) }

// Events are the rows of CUPTI_ACTIVITY_KIND_CUDA_EVENT, by correlation id: an event that was recorded into a stream.
// The rows have no times before schema 3.24; the call that recorded has.
type Events []Event

// Event is an event recorded into a stream. Numbers are -1 if the row does not say.
type Event struct {
	Corr         int64 // correlationId of the call
	Event, Epoch int64 // eventId and eventSyncId
	Stream       int64
	Device, Proc int32 // deviceId; index into Trace.Procs, or None
}
