package tracetest

import (
	"encoding/binary"
	"strconv"
)

// Frame is a function of a call stack and the file it is in.
type Frame struct{ Function, Module string }

// Switch is a thread that comes onto a CPU or leaves it, a SCHED_EVENTS row.
type Switch struct {
	Thread *Thread
	At     int64 // ns
	CPU    int64
	In     bool
	Set    Row // overrides single columns
}

// Switch adds a switch of the scheduler.
func (b *Builder) Switch(s Switch) {
	row := Row{"start": Int(s.At), "cpu": Int(s.CPU), "isSchedIn": Int(0), "globalTid": s.Thread.globalValue(),
		"threadState": Int(0), "threadBlock": Null()}
	if s.In {
		row["isSchedIn"] = Int(1)
	}
	b.Row("SCHED_EVENTS", row.with(s.Set))
}

// Ran says that the thread was on the CPU from start to end: two switches.
func (th *Thread) Ran(cpu, start, end int64) {
	th.p.b.Switch(Switch{Thread: th, At: start, CPU: cpu, In: true})
	th.p.b.Switch(Switch{Thread: th, At: end, CPU: cpu})
}

// Sample is a sample of what a CPU was running: a COMPOSITE_EVENTS row, and a SAMPLING_CALLCHAINS row a frame.
type Sample struct {
	Thread *Thread
	At     int64 // ns
	CPU    int64
	Stack  []Frame // the innermost first
	Set    Row     // overrides single columns
}

// Sample adds a sample of a CPU.
func (b *Builder) Sample(s Sample) {
	b.samples++
	row := Row{"id": Int(b.samples), "start": Int(s.At), "cpu": Int(s.CPU), "threadState": Int(1),
		"globalTid": s.Thread.globalValue(), "cpuCycles": Int(1)}
	b.Row("COMPOSITE_EVENTS", row.with(s.Set))
	b.stack("SAMPLING_CALLCHAINS", b.samples, s.Stack)
}

func (b *Builder) stack(table string, id int64, frames []Frame) {
	for depth, f := range frames {
		b.Row(table, Row{"id": Int(id), "symbol": ID(f.Function), "module": ID(f.Module), "kernelMode": Int(0),
			"thumbCode": Int(0), "unresolved": Int(0), "originalIP": Int(4096 + int64(depth)), "stackDepth": Int(int64(depth))})
	}
}

// Counter is one value of a counter of a GPU, a GPU_METRICS row.
type Counter struct {
	GPU   int64
	Name  string // with its unit, e.g. "DRAM Read Throughput [Throughput %]"
	At    int64  // ns
	Value int64  // percent, or Hz of a clock
	Set   Row    // overrides single columns
}

// Counter adds a value of a counter. Counters are numbered in the order in which their names come.
func (b *Builder) Counter(c Counter) {
	kind := int64(72)<<8 | c.GPU
	key := strconv.FormatInt(kind, 10) + c.Name
	id, ok := b.counters[key]
	if !ok {
		if b.counters == nil {
			b.counters = map[string]int64{}
		}
		id = int64(len(b.counters)) + 1
		b.counters[key] = id
		b.Row("TARGET_INFO_GPU_METRICS", Row{"typeId": Int(kind), "sourceId": Int(72), "typeName": Text("GPU metrics"),
			"metricId": Int(id), "metricName": Text(c.Name)})
	}
	b.Row("GPU_METRICS", Row{"timestamp": Int(c.At), "typeId": Int(kind), "metricId": Int(id),
		"value": Int(c.Value)}.with(c.Set))
}

// Generic is an event of a plugin, a GENERIC_EVENTS row.
type Generic struct {
	At   int64  // ns
	Type int64  // typeId
	Data string // JSON
}

// Generic adds an event of a plugin.
func (b *Builder) Generic(g Generic) {
	b.Row("GENERIC_EVENTS", Row{"rawTimestamp": Int(g.At), "timestamp": Int(g.At), "typeId": Int(g.Type),
		"data": Text(g.Data)})
}

// PythonFrame is a line of a function in Python.
type PythonFrame struct {
	Function, File string
	Line           int64
}

// PythonSample is the Python stack of a thread at a moment, as --python-sampling writes it: an NVTX mark in a domain of
// its own, with the stack in its payload.
type PythonSample struct {
	Thread *Thread
	At     int64         // ns
	Stack  []PythonFrame // the innermost first
	Set    Row           // overrides single columns
}

// PythonDomain is the domain of Python's samples: its number in synthetic exports and its name in real ones.
const (
	PythonDomain     = 40
	PythonDomainName = "Python Periodic Sampling"
)

// PythonSample adds a sample of Python, and with the first of a process the name of the domain.
func (b *Builder) PythonSample(s PythonSample) {
	if b.python == nil {
		b.python = map[string]int64{}
	}
	id := func(text string) uint64 {
		if b.python[text] == 0 {
			b.python[text] = 1<<20 + int64(len(b.python))
			b.Row("StringIds", Row{"id": Int(b.python[text]), "value": Text(text)})
		}
		return uint64(b.python[text])
	}
	if domain := "domain of " + strconv.FormatInt(s.Thread.Process().GlobalPid(), 10); b.python[domain] == 0 {
		b.python[domain] = 1
		b.NVTX(NVTX{Thread: s.Thread, Type: DomainCreate, Start: 0, End: Open, Text: PythonDomainName, Domain: PythonDomain})
	}
	body := binary.LittleEndian.AppendUint64(nil, 1)
	body = binary.LittleEndian.AppendUint32(body, 1) // running
	body = binary.LittleEndian.AppendUint32(body, uint32(len(s.Stack)))
	for _, f := range s.Stack {
		for _, v := range []uint64{id(f.Function), id(f.File), uint64(f.Line)} {
			body = binary.LittleEndian.AppendUint64(body, v)
		}
	}
	b.NVTX(NVTX{Thread: s.Thread, Type: Mark, Start: s.At, End: Open, Domain: PythonDomain,
		Set: Row{"text": Null(), "binaryData": Blob(payload(PythonDomain, 1, body))}.with(s.Set)})
}
