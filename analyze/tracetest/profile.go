package tracetest

import (
	"bufio"
	"fmt"
	"io"
)

// Profile is a trace of the PyTorch profiler of any size, laid out as PyTorch writes it: the events of the host by start,
// then those of the GPU in the order in which they end, each launch and its kernel tied by a flow. Two threads launch
// into a stream each.
type Profile struct {
	Steps   int
	Kernels int  // of a step
	Stacks  bool // with the functions of Python around each operator
}

// Events of the trace that are read of each kernel: two operators, a launch and the kernel.
const profileEvents = 4

// Events is how many events a report is made of.
func (p Profile) Events() int { return p.Steps * (1 + profileEvents*p.Kernels) }

const (
	profileGap    = 20_000 // ns from launch to launch
	profileKernel = 18_000 // ns of a kernel, and a little more or less
)

// Write writes the trace.
func (p Profile) Write(w io.Writer) error {
	b := bufio.NewWriterSize(w, 1<<20)
	fmt.Fprint(b, `{
  "schemaVersion": 1,
  "deviceProperties": [
    {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85029158912, "computeMajor": 9, "computeMinor": 0, "numSms": 132}
  ],
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1767189312000000000,
  "traceEvents": [
  {"name": "process_name", "ph": "M", "ts": 0, "pid": 4101, "tid": 0, "args": {"name": "python"}}`)
	step := int64(p.Kernels) * profileGap
	for s := range p.Steps {
		at := int64(s) * step
		p.event(b, "user_annotation", fmt.Sprintf("ProfilerStep#%d", s), 4101, 4101, at, step-1000, `"External id": %d`, s)
		for k := range p.Kernels {
			n, t := s*p.Kernels+k, at+int64(k)*profileGap
			thread := 4101 + k%2
			if p.Stacks {
				p.event(b, "python_function", fmt.Sprintf("vllm/model_executor/layers/linear.py(%d): forward", 100+k%50), 4101, thread,
					t+100, 15_000, `"Python parent id": %d, "Python id": %d, "Ev Idx": %[2]d`, n, n+1)
			}
			p.event(b, "cpu_op", fmt.Sprintf("aten::op_%d", k%40), 4101, thread, t+200, 14_000,
				`"External id": %d, "Record function id": 0, "Input Dims": [[%d, 4096], [4096, 4096]], "Ev Idx": %[1]d`, n, 1+k%7)
			p.event(b, "cpu_op", fmt.Sprintf("aten::inner_%d", k%40), 4101, thread, t+400, 13_000,
				`"External id": %d, "Record function id": 0, "Ev Idx": %[1]d`, n)
			p.event(b, "cuda_runtime", "cudaLaunchKernel", 4101, thread, t+600, 4000+int64(n%97), `"External id": %d, "cbid": 211, "correlation": %[1]d`, n+1)
			p.flow(b, "s", n+1, 4101, thread, t+600)
		}
	}
	for n := range p.Steps * p.Kernels {
		stream := 7 + n%2*6
		t := int64(n)*profileGap + 9000 + int64(n*7919%3001) // not always behind the one before
		p.event(b, "kernel", fmt.Sprintf("void gemm_%d<float, 128, 64>(float const*, float*, int)", n%60), 0, stream, t,
			profileKernel+int64(n*31%1009), `"External id": %d, "queued": 0, "device": 0, "context": 1,
      "stream": %d, "correlation": %[1]d, "registers per thread": 64, "shared memory": %d, "blocks per SM": 1.5,
      "warps per SM": 12, "grid": [%d, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %%": 19,
      "graph id": 0, "graph node id": 0`, n+1, stream, n%5*1024, 132*(1+n%4))
		p.flow(b, "f", n+1, 0, stream, t)
	}
	fmt.Fprint(b, "\n  ]\n}\n")
	return b.Flush()
}

func (p Profile) event(w io.Writer, category, name string, pid, tid int, at, length int64, args string, of ...any) {
	fmt.Fprintf(w, ",\n  {\n    \"ph\": \"X\", \"cat\": %q, \"name\": %q, \"pid\": %d, \"tid\": %d,\n    \"ts\": %d.%03d, \"dur\": %d.%03d,\n    \"args\": {\n      ",
		category, name, pid, tid, at/1000, at%1000, length/1000, length%1000)
	fmt.Fprintf(w, args, of...)
	fmt.Fprint(w, "\n    }\n  }")
}

func (p Profile) flow(w io.Writer, phase string, id, pid, tid int, at int64) {
	fmt.Fprintf(w, ",\n  {\n    \"ph\": %q, \"id\": %d, \"pid\": %d, \"tid\": %d, \"ts\": %d.%03d,\n    \"cat\": \"ac2g\", \"name\": \"ac2g\"\n  }",
		phase, id, pid, tid, at/1000, at%1000)
}
