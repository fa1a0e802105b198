package kernelname

import (
	"cmp"
	"regexp"
	"strings"
)

// family returns "library/operation[/dtype]": the parts that stay equal when an autotuner or a heuristic changes tile
// shapes, stages, clusters, split-K or vector width. A type that the name does not tell is left out.
func (v view) family(info Info) string {
	y := v.sym.unwrap()
	op, dtype := v.operation(info, y)
	op = cmp.Or(op, string(info.Category))
	if dtype == "" {
		return info.Library + "/" + op
	}
	return info.Library + "/" + op + "/" + dtype
}

func (v view) operation(info Info, y symbol) (op, dtype string) {
	name := lower(y.base)
	switch {
	case info.Library == libNCCL:
		return info.Collective, flatType(name)
	case info.Library == libInductor, info.Library == libTritonJIT:
		return trimTiles(y.base), ""
	case info.Category == GEMM:
		return v.gemmOp(y), v.gemmType(y)
	case info.Category == MoEGEMM && strings.Contains(v.text, "swiglu"): // gate and up, not down
		return "moe_gemm_swiglu", v.gemmType(y)
	case info.Category == MoEGEMM:
		return "moe_gemm", v.gemmType(y)
	case strings.HasPrefix(name, "fmhasm"): // trtllm-gen: shapes run on after the types
		return "fmha", fmhaType(name)
	}
	if w, ok := v.sym.work(); ok {
		kind := "elementwise"
		if y.base == "reduce_kernel" {
			kind = "reduce"
		}
		if w.form != "" {
			kind += ":" + w.form
		}
		return kind + ":" + w.name + w.nth, dtypeOf(w.dtype)
	}
	dtype = cmp.Or(typeNamed(y.text), flatType(name))
	if dtype == "" && info.Library == libATen && len(y.args) > 0 && isPlainType(y.args[0]) {
		dtype = dtypeOf(y.args[0])
	}
	return trimTiles(y.base), dtype
}

// gemmOp tells a matrix product from its helper kernels.
func (v view) gemmOp(y symbol) string {
	name := lower(y.base)
	switch {
	case holds(name, "splitkreduce", "splitk_reduce", "reducesplitk"):
		return "splitk_reduce"
	case name == "globalkernel": // cuBLASLt's epilogue::impl
		return "epilogue"
	case holds(name, "gemv", "dot_kernel") || v.isGemvx(y):
		return "gemv"
	case holds(name, "fprop", "dgrad", "wgrad", "conv1d", "conv2d", "conv3d", "convolve", "winograd"):
		return "conv"
	}
	return "gemm"
}

// isGemvx reports whether y is cuBLAS's internal::gemvx::kernel, whose own name
// says nothing.
func (v view) isGemvx(y symbol) bool {
	return y.base == "kernel" && strings.Contains(v.text, "gemv")
}

// fmhaType reads the type after "qkv" or "q" of fmhasm100fkernel_qkve4m3obfloat16….
func fmhaType(name string) string {
	_, rest, _ := strings.Cut(name, "_q")
	t, _ := leadingType(strings.TrimPrefix(rest, "kv"))
	return t
}

// trimTiles drops the parts of a flat name that give a tile's shape or the number of cuDNN's choice (knob_7).
func trimTiles(name string) string {
	kept := make([]string, 0, 8)
	knob := false
	for part := range strings.SplitSeq(name, "_") {
		if number := knob; !number && !tile.MatchString(part) {
			kept = append(kept, part)
		}
		knob = part == "knob"
	}
	if len(kept) == 0 {
		return name
	}
	return strings.Join(kept, "_")
}

// tile is the form of 64x64, 128x128x8 and the like, and of a cluster of blocks: cga2x1x1.
var tile = regexp.MustCompile(`^(?:cga)?\d+(?:x\d+)+$`)

// Libraries whose kernels are read in a way of their own.
const (
	libNCCL      = "nccl"
	libInductor  = "triton-inductor"
	libTritonJIT = "triton-jit" // a bare lower_snake name: most likely @triton.jit
	libATen      = "aten"
)

// libraries in order: the first that matches wins. A library inside another's wrapper comes before the wrapper:
// cutlass::device_kernel<flash::…> is flash-attention's, cutlass::Kernel2<cutlass_80_…> is CUTLASS although cuBLAS
// ships many of those.
var libraries = []named{
	{libNCCL, parsePatterns("^nccl ~rccl")},
	{"cuda", parsePatterns("[cuda ^memcpy ^memset __amd_rocclr_")},
	{libInductor,
		parsePatterns("^triton_poi_ ^triton_red_ ^triton_per_ ^triton_tem_ ^triton_for_ ^triton_mm ^triton_bmm ^triton_spl_ ^triton_unk_ ^triton__ ^triton_#")},
	{libTritonJIT, parsePatterns("matmul_ogs")},
	{"nvfuser", parsePatterns("~nvfuser_")},
	{"cupy", parsePatterns("^cupy_")},
	{"deepep", parsePatterns("deep_ep:: deepep")},
	{"nvshmem", parsePatterns("nvshmem")},
	{"flashinfer", parsePatterns("flashinfer")},
	{"tensorrt-llm", parsePatterns(`tensorrt_llm trtllm fmhasm fmha_v2_ ^bmm_e4m3 ^bmm_e2m1 ^bmm_e5m2 ^bmm_bfloat16 ^bmm_fp16 ^bmm_mx moe::dev::
		xqa mmha userbuffers`)},
	{"vllm", parsePatterns("~vllm")},
	{"marlin", parsePatterns("marlin")},
	{"transformer-engine", parsePatterns("transformer_engine::")},
	{"deepgemm", parsePatterns("deep_gemm deepgemm")},
	{"flash-mla", parsePatterns("flash_mla flash_fwd_splitkv_mla flash_fwd_mla splitkv_mla")},
	{"flash-attention", parsePatterns("~flash:: ~flash_fwd flash_bwd flashattn flashattention flash_attn")},
	{"sglang", parsePatterns("~sgl ~sglang")},
	{"cudnn", parsePatterns("cudnn xmma_fprop implicit_convolve xmma_dgrad xmma_wgrad")},
	{"cublas", parsePatterns(`nvjet cublas gemvx:: gemv2 gemvnsp gemvt ~gemmsn_ ^ampere_ ^volta_ ^turing_ ^maxwell_ ^hopper_ xmma_gemm
		splitkreduce_kernel dot_kernel reduce_1block_kernel epilogue::impl:: ~magma_sgemmex ~magma_lds128`)},
	{libATen, parsePatterns("at::native at_cuda_detail at::cuda ~aten cunn_ vectorized_elementwise_kernel unrolled_elementwise_kernel elementwise_kernel ^reduce_kernel catarraybatchedcopy softmax_warp_ distribution_elementwise multi_tensor_apply indexing_backward")},
	{"cutlass", parsePatterns("cutlass cute::")},
	{"cub", parsePatterns("~cub:: thrust:: deviceradixsort devicescan devicereduce")},
	{"tensile", parsePatterns("~cijk_")},
}

// library returns the author of the kernel, as far as the name tells.
func (v view) library() string {
	lib := firstOf(libraries, v.text)
	if lib == "" && isJITName(v.name) {
		return libTritonJIT
	}
	return cmp.Or(lib, "unknown")
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
var collectives = []named{
	{CollReduceScatter, parsePatterns("reducescatter reduce_scatter")},
	{CollAllReduce, parsePatterns("allreduce all_reduce cross_device_reduce quick_reduce quickreduce oneshot twoshot")},
	{CollAllGather, parsePatterns("allgather all_gather")},
	{CollAllToAll, parsePatterns("alltoall all_to_all all2all a2a~ dispatch combine deep_ep deepep")},
	{CollBroadcast, parsePatterns("broadcast bcast")},
	{CollSendRecv, parsePatterns("sendrecv send_recv ~send~ ~recv~")},
	{CollBarrier, parsePatterns("barrier")},
	{CollReduce, parsePatterns("reduce")},
}

// named is what names that match are of.
type named struct {
	name string
	any  patterns
}

// firstOf is the first of a list that a text matches, or empty.
func firstOf(list []named, text string) string {
	for i := range list {
		if list[i].any.in(text) {
			return list[i].name
		}
	}
	return ""
}
