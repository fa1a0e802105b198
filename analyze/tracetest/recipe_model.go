package tracetest

// Kernel names as a vLLM server on Hopper shows them.
const (
	nvjetBig   = "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT"
	nvjetSmall = "nvjet_tst_64x8_64x16_4x1_v_bz_splitK_TNT"
	splitK     = "void cublasLt::splitKreduce_kernel<(int)32, (int)16, int, __nv_bfloat16, __nv_bfloat16, float, (bool)0, __nv_bfloat16>(cublasLt::cublasSplitKParams<T6>, const T4 *, const T3 *, T2 *)"
	embed      = "void at::native::<unnamed>::indexSelectLargeIndex<c10::BFloat16, long, unsigned int, (int)2, (int)2, (int)-2, (bool)1>(T1 *, long)"
	rmsNorm    = "void vllm::rms_norm_kernel<c10::BFloat16>(T1 *, const T1 *, const T1 *, float, int, int)"
	addNorm    = "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, (int)8>(T1 *, T1 *, const T1 *, float, int, int)"
	rope       = "void vllm::rotary_embedding_kernel<c10::BFloat16, (bool)1>(const long *, T1 *, T1 *, const T1 *, int, long, long, int, int, int)"
	cacheKV    = "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>(const T1 *, const T1 *, T2 *, T2 *, const long *, int, int, int, int, int, int)"
	flash      = "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<(int)2, cute::tuple<cute::C<(int)1>>, cutlass::bfloat16_t, float>, flash::VarlenDynamicPersistentTileScheduler<(int)128>>>>(T1::Params)"
	flashMerge = "void cutlass::device_kernel<flash::enable_sm80_to_sm89<flash::FlashAttnFwdCombine<cute::tuple<cute::C<(int)8>, cute::C<(int)128>>, (int)5, (int)256, (int)1, (bool)0, cutlass::bfloat16_t, float, cutlass::arch::Sm90>>>(T1::Params)"
	silu       = "void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16>, (bool)1>(T1 *, const T1 *, int)"
	gating     = "void vllm::moe::topkGatingSoftmax<(int)4, (int)64, (int)4, (int)16, int>(const float *, const bool *, float *, int, T5 *, int *, int, int, int)"
	align      = "void vllm::moe::moe_align_block_size_kernel<int>(const T1 *, int *, int *, int *, int, int, unsigned long, int *)"
	fusedMoE   = "fused_moe_kernel"
	moeSum     = "void vllm::moe::moe_sum_kernel<c10::BFloat16, (int)4>(T1 *, const T1 *, int)"
	oneStage   = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, (int)2>(vllm::RankData *, vllm::RankSignals, vllm::Signal *, T1 *, int, int)"
	allGather  = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
	softmax    = "void at::native::<unnamed>::cunn_SoftMaxForward<(int)4, float, float, float, at::native::<unnamed>::SoftMaxForwardEpilogue>(T4 *, const T2 *, int)"
	argmax     = "void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, (int)4>>(T3)"
	fill       = "void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<c10::BFloat16>, std::array<char *, (unsigned long)1>>(int, T2, T3)"
)

// op is one kernel of a model's step.
type op struct {
	name  string
	ns    int64 // on an idle GPU, for one token block
	comm  bool  // ends on all ranks at once
	side  bool  // runs on the communication stream; the next kernel starts before its end
	part  string
	grid  [3]int64
	block int64
}

// modelLayers is the depth of the recipes' model: a first layer with a dense feed-forward part, then experts.
const modelLayers = 4

// modelStep is the kernels of one forward pass, from the embedding to the last norm. Decoding, with few tokens, uses
// other kernels than prefill, and the one-stage all-reduce where prefill calls NCCL.
func modelStep(tokens int64, decode bool) []op {
	blocks := max(1, tokens/128)
	scale := func(base int64) int64 { // ns
		if decode {
			return base + base*tokens/64
		}
		return base * (2 + blocks)
	}
	var ops []op
	add := func(part, name string, base int64) {
		ops = append(ops, op{name: name, ns: scale(base), part: part, grid: [3]int64{max(tokens, 8), 1, 1}, block: 256})
	}
	gemm := func(part string, base int64) {
		if decode {
			add(part, nvjetSmall, base)
			return
		}
		ops = append(ops, op{name: nvjetBig, ns: scale(base), part: part, grid: [3]int64{blocks * 22, 6, 1},
			block: 384})
	}
	reduce := func(part string) {
		if decode {
			ops = append(ops, op{name: oneStage, ns: 4_200 + 20*tokens, comm: true, part: part,
				grid: [3]int64{36, 1, 1}, block: 512})
			return
		}
		ops = append(ops, op{name: allReduce, ns: scale(9_000), comm: true, side: true, part: part,
			grid: [3]int64{24, 1, 1}, block: 544})
	}
	add("embed", embed, 1_800)
	for layer := range modelLayers {
		part := partName(layer, "attention")
		if layer == 0 {
			add(part, rmsNorm, 1_500)
		} else {
			add(part, addNorm, 1_700)
		}
		gemm(part, 6_400)
		add(part, rope, 1_300)
		add(part, cacheKV, 1_200)
		add(part, flash, 7_500)
		if decode {
			add(part, flashMerge, 1_900)
		}
		gemm(part, 5_100)
		reduce(part)
		if layer == 0 {
			part = partName(layer, "mlp")
			add(part, addNorm, 1_700)
			gemm(part, 9_800)
			add(part, silu, 1_600)
			gemm(part, 7_900)
		} else {
			part = partName(layer, "moe")
			add(part, addNorm, 1_700)
			gemm(part, 2_100)
			add(part, gating, 1_900)
			add(part, align, 2_300)
			add(part, fusedMoE, 11_800)
			add(part, silu, 1_600)
			add(part, fusedMoE, 8_900)
			add(part, moeSum, 1_400)
		}
		reduce(part)
	}
	add("norm", addNorm, 1_700)
	return ops
}

func partName(layer int, part string) string {
	return "model.layers." + string(rune('0'+layer)) + "." + part
}

// sampleOps are the kernels that follow the model: logits, their gathering from the ranks, and the choice of tokens.
func sampleOps(requests int64) []op {
	grid := [3]int64{requests, 1, 1}
	return []op{
		{name: nvjetSmall, ns: 14_000 + 60*requests, part: "logits", grid: [3]int64{500, 1, 1}, block: 384},
		{name: splitK, ns: 2_400, part: "logits", grid: [3]int64{64, 1, 1}, block: 512},
		{name: allGather, ns: 9_500 + 30*requests, comm: true, part: "logits", grid: [3]int64{4, 1, 1}, block: 544},
		{name: softmax, ns: 6_000 + 40*requests, part: "sample", grid: grid, block: 1024},
		{name: argmax, ns: 5_200 + 20*requests, part: "sample", grid: grid, block: 512},
	}
}
