package tracetest

import "fmt"

// Process is a captured process. It numbers its own API calls: correlation ids are unique in a process only.
type Process struct {
	b           *Builder
	hw, vm      int64
	pid         int64
	name        string
	threads     []*Thread
	correlation int64
}

// ProcessOption says more about a process.
type ProcessOption func(*Process)

// OnMachine puts a process on another machine than the first: hardware id 0 to 127, VM id 0 to 255. Processes without
// it are on hardware 0, VM 1, as in every real capture of one machine.
func OnMachine(hw, vm int64) ProcessOption { return func(p *Process) { p.hw, p.vm = hw, vm } }

// machineID is the global id of a machine: hardware id in bits 56-63, VM id in bits 48-55.
func machineID(hw, vm int64) int64 { return hw<<56 | vm<<48 }

// Process adds a process, a PROCESSES row. pid is 0 to 2^24-1.
func (b *Builder) Process(pid int64, name string, opts ...ProcessOption) *Process {
	p := &Process{b: b, vm: 1, pid: pid, name: name}
	for _, o := range opts {
		o(p)
	}
	if pid < 0 || pid >= 1<<24 || p.hw < 0 || p.hw > 127 || p.vm < 0 || p.vm > 255 {
		b.fail(fmt.Errorf("process %d on hardware %d, VM %d does not fit a global id", pid, p.hw, p.vm))
	}
	for _, other := range b.processes {
		if other.GlobalPid() == p.GlobalPid() {
			b.fail(fmt.Errorf("process %d is there twice", pid))
		}
	}
	b.processes = append(b.processes, p)
	b.Row("PROCESSES", Row{"globalPid": Int(p.GlobalPid()), "pid": Int(pid), "name": Text(name)})
	return p
}

// GlobalPid is the process's id as it stands in the globalPid columns: machine, then pid in bits 24-47.
func (p *Process) GlobalPid() int64 { return machineID(p.hw, p.vm) | p.pid<<24 }

func (p *Process) globalValue() Value {
	if p == nil {
		return Null()
	}
	return Int(p.GlobalPid())
}

// Thread is a thread of a process.
type Thread struct {
	p   *Process
	tid int64
}

// Thread adds a thread, with a ThreadNames row unless name is empty. Only the low 24 bits of tid are kept, as in real
// exports; a process's main thread has its pid.
func (p *Process) Thread(tid int64, name string) *Thread {
	th := &Thread{p: p, tid: tid & 0xFFFFFF}
	p.threads = append(p.threads, th)
	if name != "" {
		p.b.Row("ThreadNames", Row{"nameId": ID(name), "priority": Int(20), "globalTid": Int(th.GlobalTid())})
	}
	return th
}

// Process returns the process the thread belongs to.
func (th *Thread) Process() *Process { return th.p }

// GlobalTid is the thread's id as it stands in the globalTid columns: the process's, with the tid in the low 24 bits.
func (th *Thread) GlobalTid() int64 { return th.p.GlobalPid() | th.tid }

func (th *Thread) globalValue() Value {
	if th == nil {
		return Null()
	}
	return Int(th.GlobalTid())
}

// Call adds an API call with a correlation id of its own, which it returns.
func (th *Thread) Call(name string, start, end int64) int64 {
	th.p.correlation++
	th.p.b.API(API{Thread: th, Name: name, Start: start, End: end, Correlation: th.p.correlation})
	return th.p.correlation
}

// Launch adds a kernel and the cudaLaunchKernel call from apiStart to apiEnd that launched it. It fills the kernel's
// name, process and correlation id, and returns the latter.
func (th *Thread) Launch(name string, apiStart, apiEnd int64, k Kernel) int64 {
	k.Name, k.Process, k.Correlation = name, th.p, th.Call("cudaLaunchKernel_v7000", apiStart, apiEnd)
	th.p.b.Kernel(k)
	return k.Correlation
}

// Memcpy adds a copy and the cudaMemcpyAsync call that asked for it, and returns their correlation id.
func (th *Thread) Memcpy(apiStart, apiEnd int64, m Memcpy) int64 {
	m.Process, m.Correlation = th.p, th.Call("cudaMemcpyAsync_v3020", apiStart, apiEnd)
	th.p.b.Memcpy(m)
	return m.Correlation
}

// Memset adds a fill and the cudaMemsetAsync call that asked for it, and returns their correlation id.
func (th *Thread) Memset(apiStart, apiEnd int64, m Memset) int64 {
	m.Process, m.Correlation = th.p, th.Call("cudaMemsetAsync_v3020", apiStart, apiEnd)
	th.p.b.Memset(m)
	return m.Correlation
}

// GraphLaunch adds a cudaGraphLaunch call and the kernels of the graph, traced by node: all share the call's
// correlation id, which it returns. A kernel without GraphNode gets its position in the list, from 1.
func (th *Thread) GraphLaunch(apiStart, apiEnd int64, nodes ...Kernel) int64 {
	id := th.Call("cudaGraphLaunch_v10000", apiStart, apiEnd)
	for i, k := range nodes {
		k.Process, k.Correlation, k.GraphNode = th.p, id, or(k.GraphNode, int64(i)+1)
		th.p.b.Kernel(k)
	}
	return id
}

// GraphLaunchWhole adds a cudaGraphLaunch call and the run of the graph, traced as a whole. It returns their
// correlation id.
func (th *Thread) GraphLaunchWhole(apiStart, apiEnd int64, g GraphTrace) int64 {
	g.Process, g.Correlation = th.p, th.Call("cudaGraphLaunch_v10000", apiStart, apiEnd)
	th.p.b.GraphTrace(g)
	return g.Correlation
}

// StreamSynchronize adds a cudaStreamSynchronize call and its synchronization of a stream of a device.
func (th *Thread) StreamSynchronize(start, end, device, stream int64) int64 {
	return th.sync("cudaStreamSynchronize_v3020", StreamSync, start, end, device, stream)
}

// EventSynchronize adds a cudaEventSynchronize call and its synchronization.
func (th *Thread) EventSynchronize(start, end, device, stream int64) int64 {
	return th.sync("cudaEventSynchronize_v3020", EventSync, start, end, device, stream)
}

// DeviceSynchronize adds a cudaDeviceSynchronize call and its synchronization of a device.
func (th *Thread) DeviceSynchronize(start, end, device int64) int64 {
	return th.sync("cudaDeviceSynchronize_v3020", ContextSync, start, end, device, NoStream)
}

// EventRecord adds a cudaEventRecord call and the event that it records into a stream. event is not 0.
func (th *Thread) EventRecord(start, end, device, stream, event int64) int64 {
	id := th.Call("cudaEventRecord_v3020", start, end)
	th.p.b.Event(Event{Place: Place{Process: th.p, Device: device, Stream: stream, Correlation: id}, ID: event, At: start})
	return id
}

// StreamWaitEvent adds a cudaStreamWaitEvent call: what is launched into the stream from then on waits for the event.
func (th *Thread) StreamWaitEvent(start, end, device, stream, event int64) int64 {
	return th.await("cudaStreamWaitEvent_v3020", StreamWaitEvent, start, end, device, stream, event)
}

func (th *Thread) await(api string, t SyncType, start, end, device, stream, event int64) int64 {
	id := th.Call(api, start, end)
	th.p.b.Sync(Sync{Place: Place{Process: th.p, Device: device, Stream: stream, Correlation: id}, Start: start,
		End: end, Type: t, Event: event})
	return id
}

func (th *Thread) sync(api string, t SyncType, start, end, device, stream int64) int64 {
	id := th.Call(api, start, end)
	th.p.b.Sync(Sync{Place: Place{Process: th.p, Device: device, Stream: stream, Correlation: id}, Start: start,
		End: end, Type: t})
	return id
}

// Range adds an NVTX push/pop range with its text inline. end may be [Open].
func (th *Thread) Range(text string, start, end int64) {
	th.p.b.NVTX(NVTX{Thread: th, Type: PushPop, Start: start, End: end, Text: text})
}

// RangeByID is Range with the text in StringIds, as PyTorch's ranges have it.
func (th *Thread) RangeByID(text string, start, end int64) {
	th.p.b.NVTX(NVTX{Thread: th, Type: PushPop, Start: start, End: end, Text: text, ByID: true})
}

// StartEnd adds an NVTX start/end range with its text inline. end may be [Open].
func (th *Thread) StartEnd(text string, start, end int64) {
	th.p.b.NVTX(NVTX{Thread: th, Type: StartEnd, Start: start, End: end, Text: text})
}

// Mark adds an NVTX mark, which has no end.
func (th *Thread) Mark(text string, at int64) {
	th.p.b.NVTX(NVTX{Thread: th, Type: Mark, Start: at, End: Open, Text: text})
}

// OSRT adds a call of an operating-system function.
func (th *Thread) OSRT(name string, start, end int64) {
	th.p.b.OSRT(OSRT{Thread: th, Name: name, Start: start, End: end})
}
