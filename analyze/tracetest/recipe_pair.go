package tracetest

import (
	"math/rand/v2"
	"slices"
)

// Base is a vLLM server on one H100, pid 5101, that decodes: 30 steps of 16 requests and 62 kernels each under the
// marker execute_context_0(0)_generation_16(16), one every 2.4 ms. A step copies its inputs from pinned memory,
// launches the model as one CUDA graph (traced by node: 4 layers, 4 attention kernels of 75 µs), then four kernels for
// logits and sampling, copies the tokens to pinned memory and waits for them. Durations jitter by up to 2 %.
func Base(opts ...Option) *Builder { return pair(opts, false) }

// Head is the server of [Base] after a change that does two kinds of harm. A step takes 0.28 ms (12 %) longer:
//
//   - Attention runs FlashAttention 2's kernel instead of FlashAttention 3's: 4 x 112.5 µs a step for 4 x 75, +150 µs.
//   - The sampler reads a value back before the softmax: a copy to pageable memory, cudaStreamSynchronize, and 120 µs
//     of Python in which nothing is launched. The GPU waits for all of it, about 128 µs.
func Head(opts ...Option) *Builder { return pair(opts, true) }

// What [Base] and [Head] are made of.
const (
	pairSteps   = 30
	pairBatch   = 16
	pairScale   = 8 // kernels last as long as those of a model of usual size
	readBackNS  = 120_000
	flashSplitK = "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<(int)128, (int)64, (int)128, (int)4, (bool)0, (bool)0, cutlass::bfloat16_t>, (bool)1, (bool)0, (bool)0, (bool)1>(flash::Flash_fwd_params)"
)

func pair(opts []Option, head bool) *Builder {
	b := New(opts...)
	seed := uint64(1)
	if head {
		seed = 2
	}
	serverMachine(b, 1, "Node")
	s := &server{b: b, rng: rand.New(rand.NewPCG(20260701, seed))}
	th := b.Process(5101, "VLLM::EngineCore").Thread(5101, "VLLM::EngineCor")
	r := &rank{th: th, now: 5_000_000, free: map[int64]int64{}}
	s.ranks = []*rank{r}
	for range pairSteps {
		s.pairStep(r, head)
	}
	return b
}

// pairStep runs one step of [Base] or [Head].
func (s *server) pairStep(r *rank, head bool) {
	st := step{generations: pairBatch}
	r.now += s.jitter(90_000) // scheduling
	start := r.now
	for _, bytes := range []int64{4096, 8192, 32768} {
		s.copy(r, HtoD, bytes, Pinned)
	}
	r.th.Range("prepare_inputs", start+200, r.now+200)
	alone := func(ops []op) []op { // no other rank to talk to
		return slices.DeleteFunc(ops, func(o op) bool { return o.comm })
	}
	model := alone(modelStep(pairBatch, true))
	for i := range model {
		model[i].ns *= pairScale
		if head && model[i].name == flash {
			model[i].name, model[i].ns = flashSplitK, model[i].ns*3/2
		}
	}
	s.replay(model, pairBatch)
	sample := alone(sampleOps(pairBatch))
	logits := slices.IndexFunc(sample, func(o op) bool { return o.part != "logits" })
	s.launch(sample[:logits])
	if head {
		end := s.copy(r, DtoH, 64, Pageable) + 5_000
		r.th.StreamSynchronize(r.now+400, end, r.device, mainStream)
		r.now = end + s.jitter(readBackNS)
	}
	s.launch(sample[logits:])
	end := s.copy(r, DtoH, 8*pairBatch, Pinned) + 5_000
	r.th.EventSynchronize(r.now+400, end, r.device, mainStream)
	r.now = end
	r.th.Range(st.marker(), start, r.now+1_000)
	r.now += 1_500
}
