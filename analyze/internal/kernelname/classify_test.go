package kernelname

import (
	"testing"
	"unicode/utf8"
)

// decided is a kernel name and what a person says it is. Names are written as
// nsys prints them, as c++filt does (what torch's profiler shows), or bare.
type decided struct {
	name      string
	category  Category
	library   string
	component string
	family    string // "" where the test does not care
}

// collectivesDecided: the collective is the expectation instead of a family.
var collectivesDecided = []struct{ name, library, collective string }{
	{"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)", libNCCL, CollAllReduce},
	{"ncclDevKernel_AllReduce_Sum_f32_TREE_LL(ncclDevKernelArgsStorage<4096ul>)", libNCCL, CollAllReduce},
	{"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", libNCCL, CollAllGather},
	{"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", libNCCL, CollReduceScatter},
	{"ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)", libNCCL, CollBroadcast},
	{"ncclDevKernel_Reduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", libNCCL, CollReduce},
	{"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", libNCCL, CollSendRecv},
	{"ncclKernel_AllReduce_RING_LL_Sum_half(ncclDevComm*, unsigned long, ncclWork*)", libNCCL, CollAllReduce},
	{"ncclSymkDevKernel_AllReduce_RSxLD_AGxST_sum_bf16(ncclSymDevArgs)", libNCCL, CollAllReduce},
	{"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*, vllm::RankSignals, vllm::Signal*, __nv_bfloat16*, int, int)", "vllm", CollAllReduce},
	{"void vllm::cross_device_reduce_2stage<__half, (int)8>(vllm::RankData *, vllm::RankSignals, vllm::Signal *, T1 *, int, int)", "vllm", CollAllReduce},
	{"void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(flashinfer::trtllm_allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 4, false, false>(flashinfer::trtllm_allreduce_fusion::AllReduceFusionParams<__nv_bfloat16>)", "flashinfer", CollAllReduce},
	{"void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_twoshot_sync<(tensorrt_llm::kernels::ar_fusion::AllReduceFusionPattern)2, __nv_bfloat16, 8, true>(tensorrt_llm::kernels::ar_fusion::AllReduceFusionParams)", "tensorrt-llm", CollAllReduce},
	{"void tensorrt_llm::kernels::ar_fusion::moe::moereduce_allreduce_fusion_kernel_oneshot_lamport<3, __nv_bfloat16>(Params)", "tensorrt-llm", CollAllReduce},
	{"multimem_all_reduce_kernel", libTritonJIT, CollAllReduce},
	{"void deep_ep::internode_ll::dispatch<(bool)1, (bool)0, (int)7168>(void *, void *, int *, long *, int *, int *)", "deepep", CollAllToAll},
	{"void deep_ep::internode_ll::combine<(bool)0, (int)7168, (int)9, (int)4>(void *, void *, int *, void *, const void *)", "deepep", CollAllToAll},
	{"void deep_ep::intranode::cached_notify_combine<4>(void**, int*, int, int, int, int**, int)", "deepep", CollAllToAll},
	{"void tensorrt_llm::kernels::moeAllToAllKernel<true>(tensorrt_llm::kernels::MoeCommWorldInfo)", "tensorrt-llm", CollAllToAll},
	{"nvshmemi_barrier_kernel", "nvshmem", CollBarrier},
}

func TestCommunicationKernelsSayTheirCollective(t *testing.T) {
	for _, d := range collectivesDecided {
		got := Classify(d.name)
		if got.Category != Comm || !got.Comm || got.Component != CompComm {
			t.Errorf("%s: category %q, comm %v, component %q", d.name, got.Category, got.Comm, got.Component)
		}
		if got.Library != d.library || got.Collective != d.collective {
			t.Errorf("%s: got %s/%s, want %s/%s", d.name, got.Library, got.Collective, d.library, d.collective)
		}
	}
}

func TestTheTypeOfACollectiveIsPartOfItsFamily(t *testing.T) {
	for name, want := range map[string]string{
		"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)":   "nccl/AllReduce/bf16",
		"ncclDevKernel_AllReduce_Sum_f8e4m3_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "nccl/AllReduce/e4m3",
		"ncclDevKernel_AllReduce_Sum_u32_RING_LL(ncclDevKernelArgsStorage<4096ul>)":    "nccl/AllReduce/u32",
		"ncclDevKernel_AllReduce_MinMax_i64_TREE_LL(ncclDevKernelArgsStorage<4096ul>)": "nccl/AllReduce/i64",
	} {
		if got := Classify(name).Family; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestNamesDecidedByHand(t *testing.T) {
	all := [][]decided{decidedAttention, decidedMatrix, decidedMoE, decidedSmall, decidedATen, decidedTriton}
	n := len(collectivesDecided)
	for _, group := range all {
		n += len(group)
		for _, d := range group {
			checkDecided(t, d)
		}
	}
	if n < 120 {
		t.Errorf("only %d names", n)
	}
}

func checkDecided(t *testing.T, d decided) {
	t.Helper()
	got := Classify(d.name)
	if got.Category != d.category {
		t.Errorf("%s:\n category %q, want %q", d.name, got.Category, d.category)
	}
	if got.Library != d.library {
		t.Errorf("%s:\n library %q, want %q", d.name, got.Library, d.library)
	}
	if got.Component != d.component {
		t.Errorf("%s:\n component %q, want %q", d.name, got.Component, d.component)
	}
	if d.family != "" && got.Family != d.family {
		t.Errorf("%s:\n family %q, want %q", d.name, got.Family, d.family)
	}
	if got.Collective != "" || got.Comm {
		t.Errorf("%s: no communication, got %q", d.name, got.Collective)
	}
	if n := utf8.RuneCountInString(got.Display); (n == 0) != (d.name == "") || n > maxDisplay {
		t.Errorf("%s: display %q has %d runes", d.name, got.Display, n)
	}
}

// TestWrappersShowTheirWork holds short names and families of kernels that differ only in what a wrapper applies.
func TestWrappersShowTheirWork(t *testing.T) {
	const unroll = "void at::native::elementwise_kernel_manual_unroll<128, 8, at::native::gpu_kernel_impl_nocast<"
	const scatter = "void at::native::_scatter_gather_elementwise_kernel<128, 4, at::native::_cuda_scatter_gather_internal_kernel"
	const where = "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::where_kernel_impl(at::TensorIterator&)::{lambda()#1}::operator()() const::{lambda()#7}::operator()() const::"
	for _, c := range []struct{ name, display, family string }{
		{unroll + "at::native::CUDAFunctor_add<c10::BFloat16> >(at::TensorIteratorBase&, at::native::CUDAFunctor_add<c10::BFloat16> const&)::{lambda(int, bool)#1}>(int)",
			"elementwise_manual_unroll<CUDAFunctor_add<BFloat16>>", "aten/elementwise:CUDAFunctor_add/bf16"},
		{unroll + "at::native::neg_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda(c10::BFloat16)#1}>(at::TensorIteratorBase&, int const&)::{lambda(int, bool)#1}>(int)",
			"elementwise_manual_unroll<neg<BFloat16>>", "aten/elementwise:neg/bf16"},
		{where + "{lambda(bool, float, float)#1}, at::detail::Array<char*, 4>>(int)",
			"vectorized_elementwise<where<float>>", "aten/elementwise:where/f32"},
		{where + "{lambda(bool, long, long)#1}, at::detail::Array<char*, 4>>(int)",
			"vectorized_elementwise<where<long>>", "aten/elementwise:where/i64"},
		{"void at::native::index_elementwise_kernel<128, 4, at::native::index_copy_kernel_impl<at::native::OpaqueType<8> >(at::TensorIterator&, long, long, long)::{lambda(int)#1}>(long)",
			"index_elementwise<index_copy>", "aten/elementwise:index_copy"}, // the int is the element's number
		{"void cutlass::Kernel2<vllm::enable_sm89_to_sm90<cutlass::gemm::kernel::GemmUniversal<cutlass::gemm::GemmShape<128, 128, 64>, cutlass::float_e4m3_t>>>(cutlass::Params)",
			"GemmUniversal<GemmShape<128, 128, 64>, float_e4m3_t>", "vllm/gemm/e4m3"},
		{scatter + "<true, at::native::OpaqueType<4> >::operator()<at::native::TensorAssign>(at::TensorIterator&, long)::{lambda(int)#1}>(int)",
			"_scatter_gather_elementwise<scatter>", "aten/elementwise:scatter"},
		{scatter + "<true, float>::operator()<at::native::ReduceAdd>(at::TensorIterator&, long)::{lambda(int)#1}>(int)",
			"_scatter_gather_elementwise<scatter:ReduceAdd>", "aten/elementwise:scatter:ReduceAdd"},
		{"void at::native::_scatter_gather_elementwise_kernel<128, 4, at::native::_cuda_scatter_fill_internal_kernel<at::native::OpaqueType<4> >::operator()<at::native::TensorAssign>(at::TensorIterator&, at::native::OpaqueType<4>, long, long)::{lambda(int)#1}>(int)",
			"_scatter_gather_elementwise<scatter_fill>", "aten/elementwise:scatter_fill"},
		{scatter + "<false, at::native::OpaqueType<4> >::operator()<at::native::TensorAssign>(at::TensorIterator&, long)::{lambda(int)#1}>(int)",
			"_scatter_gather_elementwise<gather>", "aten/elementwise:gather"},
		{"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<1>, at::native::(anonymous namespace)::LpNormFunctor<float, (at::native::NormType)1, float, 1, 1, 0>, float*, int>(float*)",
			"multi_tensor_apply<LpNormFunctor<float>>", "aten/elementwise:LpNormFunctor/f32"},
	} {
		if got := Classify(c.name); got.Display != c.display || got.Family != c.family {
			t.Errorf("%s: %q, %q, want %q, %q", c.name, got.Display, got.Family, c.display, c.family)
		}
	}
}

// TestGeneratedAttentionHasItsOwnName holds that cuDNN's forward and backward kernels have short names of their own, and
// that the number of its choice and the tile that goes with it are no part of the family.
func TestGeneratedAttentionHasItsOwnName(t *testing.T) {
	const head, family = "cudnn_generated_fort_native_sdpa_sm90_flash_", "cudnn/cudnn_generated_fort_native_sdpa_sm90_flash_"
	for _, c := range []struct{ name, display, family string }{
		{"fprop_wgmma_f16_knob_7_64x128x128_4x1x1_cga1x1x1_kernel0_0", "sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1",
			"fprop_wgmma_f16_knob_kernel0_0/f16"},
		{"fprop_wgmma_f16_knob_3_64x64x128_4x1x1_cga1x1x1_kernel0_0", "sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x64x128_4x1x1",
			"fprop_wgmma_f16_knob_kernel0_0/f16"},
		{"bprop_wgmma_f16_knob_7_64x128x128_4x1x1_cga1x1x1_kernel0_0", "sdpa_sm90_flash_bprop_wgmma_f16_knob_7_64x128x128_4x1x1",
			"bprop_wgmma_f16_knob_kernel0_0/f16"},
	} {
		if got := Classify(head + c.name); got.Display != c.display || got.Family != family+c.family {
			t.Errorf("%s: %q, %q", c.name, got.Display, got.Family)
		}
	}
}
