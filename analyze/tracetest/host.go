package tracetest

// NVTXType is the kind of an NVTX event, as in ENUM_NSYS_EVENT_TYPE.
type NVTXType int64

// Kinds of NVTX events. Only PushPop and StartEnd are ranges.
const (
	Mark         NVTXType = 34
	NVTXThread   NVTXType = 39
	PushPop      NVTXType = 59
	StartEnd     NVTXType = 60
	DomainCreate NVTXType = 75
)

// NVTX is one NVTX_EVENTS row.
type NVTX struct {
	Thread     *Thread // nil leaves globalTid NULL
	Type       NVTXType
	Start, End int64 // ns; End is [Open] for events that have none
	Text       string
	ByID       bool    // write the text to StringIds and its id to textId, where others have it in text
	Domain     int64   // domainId
	EndThread  *Thread // of a StartEnd range that another thread ended
	Set        Row     // overrides single columns
}

// NVTX adds an NVTX event.
func (b *Builder) NVTX(e NVTX) {
	row := Row{
		"start": Int(e.Start), "end": endTime(e.End), "eventType": Int(int64(e.Type)),
		"globalTid": e.Thread.globalValue(), "endGlobalTid": e.EndThread.globalValue(), "domainId": Int(e.Domain),
	}
	if e.ByID {
		row["textId"] = ID(e.Text)
	} else {
		row["text"] = Text(e.Text)
	}
	b.Row("NVTX_EVENTS", row.with(e.Set))
}

// Overhead is time the profiler itself took from the application: a PROFILER_OVERHEAD row.
type Overhead struct {
	Thread     *Thread
	Name       string // e.g. "CUPTI buffer flush"
	Start, End int64  // ns
	Type       int64  // ENUM_CUPTI_OVERHEAD_TYPE, written from schema 3.24.7 on
	Set        Row    // overrides single columns
}

// Overhead adds a piece of profiler overhead.
func (b *Builder) Overhead(o Overhead) {
	row := Row{
		"start": Int(o.Start), "end": Int(o.End), "globalTid": o.Thread.globalValue(), "nameId": ID(o.Name),
		"returnValue": Int(0), "overheadType": Int(o.Type),
	}
	b.Row("PROFILER_OVERHEAD", row.with(o.Set))
}

// Diagnostic is a message of the profiler, a DIAGNOSTIC_EVENT row. Schemas from 3.11.1 on have it.
type Diagnostic struct {
	Process  *Process
	At       int64 // ns
	Source   int64 // 1 injection, 2 daemon, 3 analysis
	Severity int64 // 1 info, 2 warning, 3 error, 4 verbose
	Text     string
	Set      Row // overrides single columns
}

// Diagnostic adds a message of the profiler.
func (b *Builder) Diagnostic(d Diagnostic) {
	row := Row{
		"timestamp": Int(d.At), "timestampType": Int(2), "source": Int(d.Source), "severity": Int(d.Severity),
		"text": Text(d.Text), "globalPid": d.Process.globalValue(),
	}
	b.Row("DIAGNOSTIC_EVENT", row.with(d.Set))
}

// OSRT is a call of an operating-system function, an OSRT_API row.
type OSRT struct {
	Thread     *Thread
	Name       string // e.g. "poll"
	Start, End int64  // ns
	Return     int64
	Stack      []Frame // the innermost first; an OSRT_CALLCHAINS row a frame
	Set        Row     // overrides single columns
}

// OSRT adds a call of an operating-system function.
func (b *Builder) OSRT(o OSRT) {
	stack := int64(0)
	if len(o.Stack) > 0 {
		b.stacks++
		stack = b.stacks
		b.stack("OSRT_CALLCHAINS", stack, o.Stack)
	}
	row := Row{
		"start": Int(o.Start), "end": Int(o.End), "eventClass": Int(27), "globalTid": o.Thread.globalValue(),
		"nameId": ID(o.Name), "returnValue": Int(o.Return), "nestingLevel": Int(0), "callchainId": Int(stack),
		"argumentsId": Int(0), "correlationId": Int(0),
	}
	b.Row("OSRT_API", row.with(o.Set))
}

// GraphEvent is the making of a CUDA graph, a CUDA_GRAPH_EVENTS row. Real ones can lie before the capture's start, at
// negative times.
type GraphEvent struct {
	Thread *Thread
	Name   string // "Graph Creation" or "GraphExec Creation"
	At     int64  // ns
	Class  int64  // ENUM_NSYS_EVENT_CLASS: 95 graph creation, 94 graph exec creation
	Graph  int64  // graphId; 0 is NULL
	Exec   int64  // graphExecId; 0 is NULL
	Set    Row    // overrides single columns
}

// GraphEvent adds the making of a CUDA graph.
func (b *Builder) GraphEvent(g GraphEvent) {
	row := Row{
		"start": Int(g.At), "end": Int(g.At), "eventClass": Int(or(g.Class, 95)), "globalTid": g.Thread.globalValue(),
		"nameId": ID(g.Name), "graphId": optInt(g.Graph), "graphExecId": optInt(g.Exec),
	}
	b.Row("CUDA_GRAPH_EVENTS", row.with(g.Set))
}

// HostFunc is a function that the host ran for a stream, which waited for it: a row of the device's side, and one of
// the thread that ran it.
type HostFunc struct {
	Place
	Start, End int64   // ns
	Runs       *Thread // the driver's; nil: it has no row
	Name       string
	GraphNode  int64 // of a graph's host node; 0 is NULL
}

// HostFunc adds a function that the host ran for a stream.
func (b *Builder) HostFunc(f HostFunc) {
	b.Row("CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE_AND_HOST_LAUNCH", f.row(f.Start, f.End).with(Row{"graphNodeId": optInt(f.GraphNode)}))
	if f.Runs != nil {
		b.Row("CUDA_HOST_CALLBACK", Row{"start": Int(f.Start), "end": Int(f.End), "eventClass": Int(0),
			"globalTid": f.Runs.globalValue(), "correlationId": optInt(f.Correlation), "nameId": ID(f.Name)})
	}
}
