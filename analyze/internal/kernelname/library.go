package kernelname

// Libraries a kernel can come from.
const (
	libNCCL       = "nccl"
	libNVSHMEM    = "nvshmem"
	libDeepEP     = "deepep"
	libCUBLAS     = "cublas"
	libCUTLASS    = "cutlass"
	libCUDNN      = "cudnn"
	libFlashInfer = "flashinfer"
	libFlashAttn  = "flash-attention"
	libFlashMLA   = "flash-mla"
	libDeepGEMM   = "deepgemm"
	libMarlin     = "marlin"
	libTRTLLM     = "tensorrt-llm"
	libVLLM       = "vllm"
	libSGLang     = "sglang"
	libATen       = "aten"
	libCUB        = "cub"
	libNVFuser    = "nvfuser"
	libInductor   = "triton-inductor"
	libTritonJIT  = "triton-jit" // a bare lower_snake name: most likely @triton.jit
	libTensile    = "tensile"
	libCUDA       = "cuda" // copies and sets of the driver itself
	libUnknown    = "unknown"
)

// libraries in order: the first that matches wins. A library inside another's
// wrapper comes before the wrapper: cutlass::device_kernel<flash::…> is
// flash-attention's, cutlass::Kernel2<cutlass_80_…> says CUTLASS although
// cuBLAS ships many of those.
var libraries = []struct {
	lib string
	any patterns
}{
	{libNCCL, parsePatterns("^nccl ~rccl")},
	{libCUDA, parsePatterns("[cuda ^memcpy ^memset __amd_rocclr_")},
	{libInductor,
		parsePatterns("^triton_poi_ ^triton_red_ ^triton_per_ ^triton_tem_ ^triton_for_ ^triton_mm ^triton_bmm ^triton_split_scan ^triton__ ^triton_#")},
	{libTritonJIT, parsePatterns("matmul_ogs")},
	{libNVFuser, parsePatterns("~nvfuser_")},
	{libDeepEP, parsePatterns("deep_ep:: deepep")},
	{libNVSHMEM, parsePatterns("nvshmem")},
	{libFlashInfer, parsePatterns("flashinfer")},
	{libTRTLLM, parsePatterns("tensorrt_llm trtllm fmhasm fmha_v2_ ^bmm_e4m3 ^bmm_e2m1 ^bmm_e5m2 ^bmm_bfloat16 ^bmm_fp16 ^bmm_mx moe::dev:: xqa mmha userbuffers")},
	{libVLLM, parsePatterns("~vllm")},
	{libMarlin, parsePatterns("marlin")},
	{libDeepGEMM, parsePatterns("deep_gemm deepgemm")},
	{libFlashMLA, parsePatterns("flash_mla flash_fwd_splitkv_mla flash_fwd_mla splitkv_mla")},
	{libFlashAttn, parsePatterns("~flash:: ~flash_fwd flash_bwd flashattn flashattention flash_attn")},
	{libSGLang, parsePatterns("~sgl ~sglang")},
	{libCUDNN, parsePatterns("cudnn xmma_fprop implicit_convolve xmma_dgrad xmma_wgrad")},
	{libCUBLAS, parsePatterns("nvjet cublas gemvx:: gemv2 gemvnsp gemvt ~gemmsn_ ^ampere_ ^volta_ ^turing_ ^maxwell_ ^hopper_ xmma_gemm splitkreduce_kernel dot_kernel reduce_1block_kernel")},
	{libATen, parsePatterns("at::native at_cuda_detail at::cuda ~aten cunn_ vectorized_elementwise_kernel unrolled_elementwise_kernel elementwise_kernel ^reduce_kernel catarraybatchedcopy softmax_warp_ distribution_elementwise multi_tensor_apply indexing_backward")},
	{libCUTLASS, parsePatterns("cutlass cute::")},
	{libCUB, parsePatterns("~cub:: thrust:: deviceradixsort devicescan devicereduce")},
	{libTensile, parsePatterns("~cijk_")},
}

// library returns who wrote the kernel, as far as the name says.
func (v view) library() string {
	for i := range libraries {
		if libraries[i].any.in(v.text) {
			return libraries[i].lib
		}
	}
	if isJITName(v.name) {
		return libTritonJIT
	}
	return libUnknown
}

// Collectives that communication kernels perform.
const (
	CollAllReduce     = "AllReduce"
	CollAllGather     = "AllGather"
	CollReduceScatter = "ReduceScatter"
	CollAllToAll      = "AllToAll" // expert dispatch and combine included
	CollBroadcast     = "Broadcast"
	CollReduce        = "Reduce"
	CollSendRecv      = "SendRecv"
	CollBarrier       = "Barrier"
	CollOther         = "Other"
)

// collectives in order: ReduceScatter and AllReduce before the Reduce they hold.
var collectives = []struct {
	name string
	any  patterns
}{
	{CollReduceScatter, parsePatterns("reducescatter reduce_scatter")},
	{CollAllReduce, parsePatterns("allreduce all_reduce cross_device_reduce quick_reduce quickreduce oneshot twoshot")},
	{CollAllGather, parsePatterns("allgather all_gather")},
	{CollAllToAll, parsePatterns("alltoall all_to_all all2all a2a~ dispatch combine deep_ep deepep")},
	{CollBroadcast, parsePatterns("broadcast bcast")},
	{CollSendRecv, parsePatterns("sendrecv send_recv ~send~ ~recv~")},
	{CollBarrier, parsePatterns("barrier")},
	{CollReduce, parsePatterns("reduce")},
}

func collective(text string) string {
	for i := range collectives {
		if collectives[i].any.in(text) {
			return collectives[i].name
		}
	}
	return CollOther
}
