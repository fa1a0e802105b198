package tracetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Serving is what a profile of a vLLM server looks like: two tensor-parallel ranks on an H100 each, pids 4101 and 4102,
// 66 steps under vLLM's step markers execute_context_N(M)_generation_K(L), CUDA graphs traced by node.
//
//   - Load: copies of weights from pageable memory, fills, library loads; 0.3 s, with gaps of 40 ms and, while the graphs are
//     captured, one of 107 ms, nearly a third of the whole capture.
//   - Warm-up: 3 steps (prefill 2048, prefill 512, decode 8) that take 6, 3 and 2 times as long as later ones.
//   - 4 rounds of 15 steps: prefill 512, 4 x decode 8, prefill 2048, 4 x decode 16, a mixed step (512 prompt tokens and 16
//     decodes), 4 x decode 32. So 16 decode steps of each of 3 batch sizes, 4 prefills of each size, 4 mixed steps.
//   - Tail: 3 x decode 8, a device synchronization, a memset 5 ms later.
//
// Prefill and mixed steps launch every kernel, under NVTX ranges for the parts of each layer, and call NCCL's
// all-reduce on a stream of its own, which overlaps the next kernel in part. Decode steps launch one graph, whose
// all-reduces are vLLM's own, and then five kernels for logits and sampling. Each step copies three inputs from pinned
// memory first and the sampled tokens to pinned memory last, and waits for these (cudaEventSynchronize, or
// cudaStreamSynchronize after prefill). All-reduces end on both ranks at once; other durations jitter by up to 2 %.
// Rank 1's host runs a few µs behind.
func Serving(opts ...Option) *Builder { return serving("Node", opts) }

// ServingGraphMode is [Serving] as --cuda-graph-trace=graph records it: each decode step's graph is one
// CUPTI_ACTIVITY_KIND_GRAPH_TRACE row instead of its kernels, over the same time. All else is the same.
func ServingGraphMode(opts ...Option) *Builder { return serving("Graph", opts) }

// Streams of the serving recipes.
const (
	mainStream = 7
	commStream = 21
)

// step is one step of the server's schedule.
type step struct {
	contexts, contextTokens, generations int64
	slow                                 int64 // how many times as long as usual
}

func (s step) marker() string {
	return fmt.Sprintf("execute_context_%d(%d)_generation_%d(%d)", s.contexts, s.contextTokens, s.generations,
		s.generations)
}

func (s step) decode() bool { return s.contexts == 0 }

// servingSteps is the schedule that [Serving] documents.
func servingSteps() []step {
	decode := func(n int64) step { return step{generations: n, slow: 1} }
	prefill := func(tokens int64) step { return step{contexts: 1, contextTokens: tokens, slow: 1} }
	steps := []step{
		{contexts: 1, contextTokens: 2048, slow: 6},
		{contexts: 1, contextTokens: 512, slow: 3},
		{generations: 8, slow: 2},
	}
	for range 4 {
		steps = append(steps, prefill(512))
		steps = append(steps, slices.Repeat([]step{decode(8)}, 4)...)
		steps = append(steps, prefill(2048))
		steps = append(steps, slices.Repeat([]step{decode(16)}, 4)...)
		steps = append(steps, step{contexts: 1, contextTokens: 512, generations: 16, slow: 1})
		steps = append(steps, slices.Repeat([]step{decode(32)}, 4)...)
	}
	return append(steps, decode(8), decode(8), decode(8))
}

func serving(graphMode string, opts []Option) *Builder {
	b := New(opts...)
	serverMachine(b, 2, graphMode)
	s := &server{b: b, rng: rand.New(rand.NewPCG(20260101, 7)), whole: graphMode == "Graph"}
	b.Process(4000, "VLLM::EngineCore").Thread(4000, "VLLM::EngineCor")
	for i := range int64(2) {
		p := b.Process(4101+i, fmt.Sprintf("VLLM::Worker_TP%d", i))
		r := &rank{device: i, th: p.Thread(4101+i, fmt.Sprintf("VLLM::Worker_TP%d", i)), free: map[int64]int64{}}
		p.Thread(4151+i, "pt_nccl_watchdg")
		s.ranks = append(s.ranks, r)
	}
	s.load()
	for _, st := range servingSteps() {
		s.step(st)
	}
	s.tail()
	return b
}

// serverMachine writes what the capture knows about the machine, with so many GPUs, and itself.
func serverMachine(b *Builder, gpus int64, graphMode string) {
	for i := range gpus {
		b.GPU(GPU{ID: i, Name: "NVIDIA H100 80GB HBM3"})
	}
	b.Env("CpuCores", "104")
	b.Env("CpuArchitecture", "x86_64")
	b.Env("CpuDescription", "Intel(R) Xeon(R) Platinum 8480+")
	b.Env("NvDriverVersion", "570.133.20")
	b.Env("HardwarePlatform", "x86_64")
	b.Env("SoftwarePlatform", "L4X")
	b.Env("OsDescription", "Ubuntu 22.04.5 LTS")
	b.Env("CudaDriverVersion", "12080")
	b.Env("SoftwareReleaseVersion", "5.15.0-136-generic")
	b.CaptureMeta("CUDA_GRAPH_TRACE_OPTIONS:MODE", graphMode)
	b.CaptureMeta("CUDA_TRACE_SCOPE", "ProcessTree")
}

// server simulates the ranks in lockstep.
type server struct {
	b     *Builder
	rng   *rand.Rand
	ranks []*rank
	whole bool // trace graphs as a whole
}

// rank is one worker: where its host thread and its streams are in time.
type rank struct {
	device int64
	th     *Thread
	now    int64           // ns, host
	free   map[int64]int64 // ns, by stream: end of its last work
}

func (r *rank) place(stream int64) Place { return Place{Device: r.device, Stream: stream} }

// after is when work on a stream can start at the earliest: asked for, the stream free, and a µs to get there.
func (r *rank) after(stream int64) int64 { return max(r.now+1_100, r.free[stream]+700) }

// jitter is ns, give or take 2 %.
func (s *server) jitter(ns int64) int64 { return ns + (ns*s.rng.Int64N(401)-200*ns)/10_000 }

// call lets an API call of about ns pass on the rank's host and returns its start and end.
func (s *server) call(r *rank, ns int64) (start, end int64) {
	start = r.now + 300 + s.rng.Int64N(500)
	r.now = start + s.jitter(ns)
	return start, r.now
}

func (s *server) copy(r *rank, kind CopyKind, bytes int64, host MemKind) int64 {
	m := Memcpy{Place: r.place(mainStream), Bytes: bytes, Kind: kind, Src: host, Dst: DeviceMemory}
	if kind == DtoH {
		m.Src, m.Dst = DeviceMemory, host
	}
	from, to := s.call(r, 3_500)
	m.Start = r.after(mainStream)
	m.End = m.Start + 900 + s.jitter(bytes/40) // 40 GB/s
	r.free[mainStream] = m.End
	r.th.Memcpy(from, to, m)
	return m.End
}

// load is the start of the server: weights, buffers, libraries, graphs.
func (s *server) load() {
	for i, r := range s.ranks {
		r.now = 5_000_000 + int64(i)*90_000
		for j := range int64(4) {
			from, to := s.call(r, 2_600_000)
			s.b.API(API{Thread: r.th, Name: "cuLibraryLoadData", Start: from, End: to, Driver: true})
			end := s.copy(r, HtoD, 48<<20, Pageable)
			r.th.StreamSynchronize(r.now+900, end+6_000, r.device, mainStream)
			r.now = end + 6_000
			k := Kernel{Place: r.place(mainStream), Grid: [3]int64{4096, 1, 1}}
			from, to = s.call(r, 6_000)
			k.Start = r.after(mainStream)
			k.End = k.Start + s.jitter(30_000)
			r.free[mainStream] = k.End
			r.th.Launch(fill, from, to, k)
			r.now += 42_000_000 + j*1_000_000
		}
		for g := range int64(3) {
			s.b.GraphEvent(GraphEvent{Thread: r.th, Name: "Graph Creation", At: r.now + g*20_000, Graph: g + 1})
			s.b.GraphEvent(GraphEvent{Thread: r.th, Name: "GraphExec Creation", At: r.now + g*20_000 + 9_000, Class: 94,
				Graph: g + 1, Exec: g + 11})
		}
		s.b.Overhead(Overhead{Thread: r.th, Name: "CUPTI buffer flush", Start: r.now + 100_000, End: r.now + 1_300_000,
			Type: 3})
		r.now += 62_000_000
	}
}

// step runs one step on all ranks.
func (s *server) step(st step) {
	starts := make([]int64, len(s.ranks))
	for i, r := range s.ranks {
		r.now += s.jitter(130_000) + int64(i)*3_000 // scheduling
		starts[i] = r.now
		for _, bytes := range []int64{4096, 8192, 32768} {
			s.copy(r, HtoD, bytes, Pinned)
		}
		r.th.Range("prepare_inputs", starts[i]+200, r.now+200)
	}
	ops := modelStep(st.contextTokens+st.generations, st.decode())
	for i := range ops {
		ops[i].ns *= st.slow
	}
	if st.decode() {
		s.replay(ops, st.generations)
	} else {
		s.launch(ops)
	}
	s.launch(sampleOps(st.contexts + st.generations))
	for i, r := range s.ranks {
		end := s.copy(r, DtoH, 8*(st.contexts+st.generations), Pinned) + 5_000
		if st.decode() {
			r.th.EventSynchronize(r.now+400, end, r.device, mainStream)
		} else {
			r.th.StreamSynchronize(r.now+400, end, r.device, mainStream)
		}
		r.now = end
		r.th.Range(st.marker(), starts[i], r.now+1_000)
		r.now += 1_500
	}
}

// launch runs ops one API call each, under an NVTX range per part.
func (s *server) launch(ops []op) {
	for len(ops) > 0 {
		n := slices.IndexFunc(ops, func(o op) bool { return o.part != ops[0].part })
		if n < 0 {
			n = len(ops)
		}
		begins := make([]int64, len(s.ranks))
		for i, r := range s.ranks {
			begins[i] = r.now + 100
		}
		for _, o := range ops[:n] {
			s.eager(o)
		}
		for i, r := range s.ranks {
			s.b.NVTX(NVTX{Thread: r.th, Type: PushPop, Start: begins[i], End: r.now + 100, Text: ops[0].part,
				ByID: true})
			r.now += 150
		}
		ops = ops[n:]
	}
}

// eager runs one kernel on all ranks, launched by a call of its own.
func (s *server) eager(o op) {
	kernels := make([]Kernel, len(s.ranks))
	calls := make([][2]int64, len(s.ranks))
	last := int64(0)
	for i, r := range s.ranks {
		from, to := s.call(r, 4_600)
		calls[i] = [2]int64{from, to}
		stream, start := int64(mainStream), r.after(mainStream)
		if o.side {
			stream, start = commStream, max(start, r.after(commStream))+900
		}
		kernels[i] = s.kernel(r, o, stream, start)
		last = max(last, kernels[i].End)
	}
	for i, r := range s.ranks {
		k := &kernels[i]
		if o.comm {
			k.End = last
		}
		r.free[k.Stream] = k.End
		if o.side { // the main stream waits for most of it
			r.free[mainStream] = k.End - o.ns/4
		}
		r.th.Launch(o.name, calls[i][0], calls[i][1], *k)
	}
}

func (s *server) kernel(r *rank, o op, stream, start int64) Kernel {
	return Kernel{
		Place: r.place(stream), Name: o.name, Start: start, End: start + s.jitter(o.ns), Grid: o.grid,
		Block: [3]int64{o.block, 1, 1},
	}
}

// replay runs ops as one CUDA graph on all ranks.
func (s *server) replay(ops []op, batch int64) {
	nodes := make([][]Kernel, len(s.ranks))
	calls := make([][2]int64, len(s.ranks))
	for i, r := range s.ranks {
		begin := r.now + 100
		calls[i][0], calls[i][1] = s.call(r, 14_000)
		r.free[mainStream] = r.after(mainStream) + 1_500
		s.b.NVTX(NVTX{Thread: r.th, Type: PushPop, Start: begin, End: r.now + 100, Text: "model.forward", ByID: true})
	}
	for n, o := range ops {
		last := int64(0)
		for i, r := range s.ranks {
			k := s.kernel(r, o, mainStream, r.free[mainStream]+650)
			k.GraphNode, k.GraphID = batch<<32|int64(n+1), batch
			nodes[i] = append(nodes[i], k)
			last = max(last, k.End)
		}
		for i, r := range s.ranks {
			k := &nodes[i][n]
			if o.comm {
				k.End = last
			}
			r.free[mainStream] = k.End
		}
	}
	for i, r := range s.ranks {
		if !s.whole {
			r.th.GraphLaunch(calls[i][0], calls[i][1], nodes[i]...)
			continue
		}
		r.th.GraphLaunchWhole(calls[i][0], calls[i][1], GraphTrace{
			Place: r.place(mainStream), Start: nodes[i][0].Start, End: nodes[i][len(ops)-1].End, Graph: batch,
			Exec: batch + 100,
		})
	}
}

// tail is the end of the capture.
func (s *server) tail() {
	for _, r := range s.ranks {
		r.th.DeviceSynchronize(r.now+20_000, r.now+30_000, r.device)
		r.now += 5_000_000
		from, to := s.call(r, 3_000)
		start := r.after(mainStream)
		r.th.Memset(from, to, Memset{Place: r.place(mainStream), Start: start, End: start + 2_000, Bytes: 1 << 20})
	}
}
