package mutant

import (
	"fmt"
	"math/rand/v2"

	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Synthetic captures to make mutants of, each with seeded noise: 0.5 % on kernels, 5 % on the host. Their comments
// give what a step is; Units of [Recipe] finds them.

// Recipe is a synthetic capture and how its units are told.
type Recipe struct {
	Name  string
	Build func(seed uint64) *tracetest.Builder
	Units func(c *Capture) error
}

// Recipes are the synthetic captures.
func Recipes() []Recipe {
	return []Recipe{
		{"markers", Markers, func(c *Capture) error { return c.Mark("^execute_context") }},
		{"loop", Loop, func(c *Capture) error { return c.Cut(Short(embed)) }},
		{"graphs", Graphs, func(c *Capture) error { return c.Cut(Short(embed)) }},
		{"ranks", Ranks, func(c *Capture) error { return c.Cut(Short(embed)) }},
		{"training", Training, func(c *Capture) error { return c.Cut(Short(embed)) }},
	}
}

// Capture builds and reads the capture, and finds its units. dir is a folder for the file.
func (r Recipe) Capture(dir string, seed uint64) (*Capture, error) {
	path := dir + "/" + r.Name + ".sqlite"
	if err := r.Build(seed).Write(path); err != nil {
		return nil, err
	}
	c, err := Read(path)
	if err != nil {
		return nil, err
	}
	return c, r.Units(c)
}

// Kernels of the recipes.
const (
	embed   = "void at::native::indexSelectLargeIndex<c10::BFloat16, long, unsigned int, (int)2, (int)2, (int)-2, (bool)1>(T1 *, long)"
	norm    = "void vllm::rms_norm_kernel<c10::BFloat16>(T1 *, const T1 *, const T1 *, float, int, int)"
	gemm    = "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT"
	gemm2   = "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn"
	flash   = "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)128, (int)128, (int)64, (int)4, cutlass::bfloat16_t>>(flash::Flash_fwd_params)"
	flashB  = "void flash::flash_bwd_dq_dk_dv_loop_kernel<Flash_bwd_kernel_traits<(int)128, (int)64, (int)128>>(flash::Flash_bwd_params)"
	silu    = "void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16>, (bool)1>(T1 *, const T1 *, int)"
	argmax  = "void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, (int)4>>(T3)"
	adam    = "void at::native::multi_tensor_apply_kernel<at::native::TensorListMetadata<(int)4>, at::native::FusedAdamMathFunctor<float, (int)4>>(T1, T2)"
	reduce  = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
	softmax = "void at::native::cunn_SoftMaxForward<(int)4, float, float, float, at::native::SoftMaxForwardEpilogue>(T4 *, const T2 *, int)"
)

// machine is one process on one GPU: where its host and its stream are in time.
type machine struct {
	b     *tracetest.Builder
	th    *tracetest.Thread
	rng   *rand.Rand
	dev   int64
	host  int64
	free  int64
	graph []tracetest.Kernel // being recorded
}

func newMachine(b *tracetest.Builder, pid, dev int64, seed uint64) *machine {
	b.GPU(tracetest.GPU{ID: dev, Name: "NVIDIA H100 80GB HBM3"})
	b.Diagnostic(tracetest.Diagnostic{Source: 2, Severity: 1, Text: "Profiling has started."})
	return &machine{
		b: b, th: b.Process(pid, "engine").Thread(pid, "engine"), dev: dev, host: 1_000_000,
		rng: rand.New(rand.NewPCG(seed, uint64(dev))),
	}
}

func (m *machine) noisy(ns int64, sd float64) int64 {
	return max(1, int64(float64(ns)*(1+sd*m.rng.NormFloat64())+0.5))
}

// kernel of ns launched by a call of 2.5 µs, one every 4 µs.
func (m *machine) kernel(name string, ns int64) {
	k := tracetest.Kernel{Place: tracetest.Place{Device: m.dev}, Name: name}
	k.Start = max(m.host+3_000, m.free+1_000)
	k.End = k.Start + m.noisy(ns, 0.005)
	m.free = k.End
	if m.graph != nil {
		m.graph = append(m.graph, k)
		return
	}
	call := m.noisy(2_500, 0.05)
	m.th.Launch(name, m.host, m.host+call, k)
	m.host += call + m.noisy(1_500, 0.05)
}

func (m *machine) copy(kind tracetest.CopyKind) {
	c := tracetest.Memcpy{Place: tracetest.Place{Device: m.dev}, Bytes: 4096, Kind: kind}
	c.Src, c.Dst = tracetest.Pinned, tracetest.DeviceMemory
	if kind == tracetest.DtoH {
		c.Src, c.Dst = c.Dst, c.Src
	}
	c.Start = max(m.host+3_000, m.free+1_000)
	c.End = c.Start + 1_500
	m.free = c.End
	m.th.Memcpy(m.host, m.host+3_000, c)
	m.host += 4_000
}

// sync waits for the stream.
func (m *machine) sync() {
	end := max(m.free, m.host) + 3_000
	m.th.StreamSynchronize(m.host, end, m.dev, 7)
	m.host = end + 1_000
}

// replay launches what body runs as one CUDA graph.
func (m *machine) replay(body func()) {
	m.graph = []tracetest.Kernel{{}}
	at := m.host
	m.host += 6_000
	body()
	nodes := m.graph[1:]
	m.graph = nil
	m.th.GraphLaunch(at, m.host, nodes...)
	m.host += 1_000
}

// layers of a model at a scale of its kernels' time: 105 µs each.
func (m *machine) layers(n int, scale float64) {
	t := func(ns int64) int64 { return int64(float64(ns) * scale) }
	for range n {
		m.kernel(norm, t(5_000))
		m.kernel(gemm, t(30_000))
		m.kernel(flash, t(20_000))
		m.kernel(gemm2, t(40_000))
		m.kernel(silu, t(10_000))
	}
}

// Markers is a server under vLLM's step markers: 60 steps of 4 layers, in turn a prefill of 512 tokens (three
// times the time), three decodes of batch 16 and two of batch 32 (1.4 times). The host waits for the token of each
// step.
func Markers(seed uint64) *tracetest.Builder {
	b := tracetest.New()
	m := newMachine(b, 101, 0, seed)
	for step := range 60 {
		text, scale := "execute_context_0(0)_generation_16(16)", 1.0
		switch step % 6 {
		case 0:
			text, scale = "execute_context_1(512)_generation_0(0)", 3
		case 4, 5:
			text, scale = "execute_context_0(0)_generation_32(32)", 1.4
		}
		m.host += m.noisy(20_000, 0.05)
		from := m.host
		m.kernel(embed, 6_000)
		m.layers(4, scale)
		m.kernel(argmax, 7_000)
		m.copy(tracetest.DtoH)
		m.sync()
		m.th.Range(text, from-200, m.host)
	}
	return b
}

// Loop is a decode loop without markers: 40 steps of 5 layers, with 30 µs of host between.
func Loop(seed uint64) *tracetest.Builder {
	b := tracetest.New()
	m := newMachine(b, 102, 0, seed)
	for range 40 {
		m.host += m.noisy(30_000, 0.05)
		m.kernel(embed, 6_000)
		m.layers(5, 1)
		m.kernel(softmax, 9_000)
		m.kernel(argmax, 7_000)
		m.copy(tracetest.DtoH)
		m.sync()
	}
	return b
}

// Graphs is decoding with one CUDA graph a step, traced by node: 64 steps, two kernels of sampling after each graph.
func Graphs(seed uint64) *tracetest.Builder {
	b := tracetest.New()
	m := newMachine(b, 103, 0, seed)
	for range 64 {
		m.host += m.noisy(15_000, 0.05)
		m.copy(tracetest.HtoD)
		m.replay(func() {
			m.kernel(embed, 4_000)
			m.layers(4, 0.5)
		})
		m.kernel(softmax, 6_000)
		m.kernel(argmax, 5_000)
		m.copy(tracetest.DtoH)
		m.sync()
	}
	return b
}

// Ranks is two processes on a GPU each: 32 steps of 3 layers, with an all-reduce after each that both ranks end
// together.
func Ranks(seed uint64) *tracetest.Builder {
	b := tracetest.New()
	ranks := []*machine{newMachine(b, 104, 0, seed), newMachine(b, 105, 1, seed)}
	for range 32 {
		for _, m := range ranks {
			m.host += m.noisy(20_000, 0.05)
			m.kernel(embed, 6_000)
		}
		for range 3 {
			last := int64(0)
			for _, m := range ranks {
				m.layers(1, 1)
				last = max(last, m.free+1_000, m.host+3_000)
			}
			for _, m := range ranks {
				start := max(m.host+3_000, m.free+1_000)
				m.free = start - 1_000
				m.exactly(reduce, start, last+18_000)
			}
		}
		for _, m := range ranks {
			m.kernel(argmax, 7_000)
			m.copy(tracetest.DtoH)
			m.sync()
		}
	}
	return b
}

// exactly launches a kernel that ends at a time.
func (m *machine) exactly(name string, start, end int64) {
	k := tracetest.Kernel{Place: tracetest.Place{Device: m.dev}, Name: name, Start: start, End: end}
	m.th.Launch(name, m.host, m.host+2_500, k)
	m.free = end
	m.host += 4_000
}

// Training is a training loop: 16 steps of a forward pass of 6 layers, a backward pass and an optimizer in four
// kernels. The host runs ahead of the GPU and waits for the loss once a step. Ranges name the passes, as a user
// writes them.
func Training(seed uint64) *tracetest.Builder {
	b := tracetest.New()
	m := newMachine(b, 106, 0, seed)
	for range 16 {
		m.host += m.noisy(40_000, 0.05)
		m.copy(tracetest.HtoD)
		from := m.host
		m.kernel(embed, 8_000)
		m.layers(6, 1)
		m.kernel(softmax, 12_000)
		m.th.Range("forward", from-100, m.host)
		from = m.host
		for range 6 {
			m.kernel(silu, 10_000)
			m.kernel(gemm2, 70_000)
			m.kernel(flashB, 60_000)
			m.kernel(gemm, 60_000)
			m.kernel(norm, 6_000)
		}
		m.th.Range("backward", from-100, m.host)
		for range 4 {
			m.kernel(adam, 25_000)
		}
		m.copy(tracetest.DtoH)
		m.sync()
	}
	return b
}

// Marker is the text of a batch's marker, as [Markers] has it.
func Marker(batch int) string { return fmt.Sprintf("execute_context_0(0)_generation_%d(%[1]d)", batch) }
