package kernelname

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestExportsOfOneKernelAreEqual(t *testing.T) {
	for _, same := range [][]string{
		{ // Nsight Compute 2022.3 and 2024.2
			"void one_warptiling<(int)128, (int)128, (int)32>(int, int, int, float *, float *, float *)",
			"void one_warptiling<128, 128, 32>(int, int, int, float *, float *, float *)",
		},
		{ // nsys, c++filt, GCC's spelling of the namespace
			"void at::native::<unnamed>::f<std::array<char *, (unsigned long)3>, (bool)0, (bool)1, (int)-2>(T1)",
			"void at::native::(anonymous namespace)::f<std::array<char*, 3ul>, false, true, -2>(std::array<char*, 3ul>)",
			"void at::native::{anonymous}::f<std::array<char*,3ul>,false,true,-2 >(std::array<char*, 3ul>)",
			"at::native::<unnamed>::f<std::array<char*, 3>, 0, 1, -2>",
		},
		{ // lambdas and the functions around them
			"void at::native::elementwise_kernel<(int)128, (int)2, void at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda() (instance 3)]::operator ()() const::[lambda() (instance 7)]::operator ()() const::[lambda(float) (instance 1)]>(at::TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)",
			"void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}>(at::TensorIteratorBase&, at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1} const&)::{lambda(int)#1}>(int, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda>)",
		},
		{ // const in front or behind
			"void k<cublasGemvTensorStridedBatched<const __nv_bfloat16>>(T1)",
			"void k<cublasGemvTensorStridedBatched<__nv_bfloat16 const> >(cublasGemvTensorStridedBatched<__nv_bfloat16 const>)",
		},
		{ // NCCL changed the parameters of its kernels
			"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
			"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
			"ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
		},
		{ // enumerators, unsigned arguments, a return type that is computed
			"enable_if<!T7, void>::type ns::kernel<(ns::Mode)0, (unsigned int)128>(T13)",
			"std::enable_if<!(false), void>::type ns::kernel<(ns::Mode)0, 128u>(ns::Params)",
			"void ns::kernel<0, 128>(ns::Params)",
		},
		{"triton_poi_fused_add_3", "triton_poi_fused_add_17", "triton_poi_fused_add_3_0d1d2de"},
		{"triton_spl_fused_cumsum_exp_sub_3", "triton_spl_fused_cumsum_exp_sub_17"}, // a split scan
		{"_fwd_kernel_0d1d2d3de4c", "_fwd_kernel_0d1d2d3d4d"},
		{"kernel_object_at_0x7f12ab34_tensor", "kernel_object_at_0x7fffab04_tensor"},
		{"void f<1>(int, float *", "void f<1>(int, float *)"}, // cut off
		{"  void   f< 1 ,2 >( int )", "f<1, 2>"},
		{"void f<1>(int) [clone .kd]", "f<1>"},
		{"aten::mm, seq = 4, op_id = 9", "aten::mm"},
	} {
		want := Canonical(same[0])
		for _, s := range same[1:] {
			if got := Canonical(s); got != want {
				t.Errorf("%q\n  → %q, want %q as of %q", s, got, want, same[0])
			}
		}
	}
}

func TestDistinctKernelsStayApart(t *testing.T) {
	for _, pair := range [][2]string{
		{"_fwd_grouped_kernel_stage1", "_fwd_grouped_kernel_stage2"},
		{"void vllm::cross_device_reduce_1stage<float, 2>(float*)", "void vllm::cross_device_reduce_2stage<float, 2>(float*)"},
		{"kernel_unified_attention_2d", "kernel_unified_attention_3d"},
		{"void f<at::native::pow(at::It &)::[lambda(float) (instance 1)]>(T1)", "void f<at::native::pow(at::It &)::[lambda(float) (instance 2)]>(T1)"},
		{"void f<g(int)::[lambda(float) (instance 1)]>(T1)", "void f<g(int)::[lambda(c10::Half) (instance 1)]>(T1)"},
		{"Fan1(float *, float *, int, int)", "Fan2(float *, float *, float *, int, int, int)"},
		{"nvfuser_none_f0_c0_r0_g0", "nvfuser_none_f1_c0_r0_g0"},
		{"#12", "#13"},
	} {
		if a, b := Canonical(pair[0]), Canonical(pair[1]); a == b {
			t.Errorf("%q and %q are both %q", pair[0], pair[1], a)
		}
	}
}

func TestCanonicalSpelling(t *testing.T) {
	for in, want := range map[string]string{
		"void flash::f<Flash_traits<(int)128, cutlass::bfloat16_t>, (bool)0>(flash::Params)": "flash::f<Flash_traits<128, cutlass::bfloat16_t>, 0>",
		"ampere_sgemm_128x64_tn": "ampere_sgemm_128x64_tn",
		"void <unnamed>::softmax_warp_forward<float, (int)8>(T2 *, const T1 *)":                     "<unnamed>::softmax_warp_forward<float, 8>",
		"void at::reduce<S<float>::operator ()(at::It &)::[lambda(float, float) (instance 1)]>(T3)": "at::reduce<S<float>::operator()::{lambda(float, float)#1}>",
		"void f<void>(void)":                    "f<void>",
		"void f<void (*)(int), unsigned int>()": "f<void (*)(int), unsigned int>",
		"void f<&ns::operator<<(int, int)>(T)":  "f<&ns::operator<<>",
		"triton_poi_fused_max_pool_2d_add_1_2":  "triton_poi_fused_max_pool_2d_add_#",
		"triton_red_fused_0":                    "triton_red_fused_#",
		"topk_v2":                               "topk_v2",
		"[CUDA memcpy HtoD]":                    "[CUDA memcpy HtoD]",
		"Memcpy HtoD (Pageable -> Device)":      "Memcpy HtoD (Pageable -> Device)",
		"Memset (Device)":                       "Memset (Device)",
		"":                                      "",
		"void":                                  "void",
		"f(int)(int)":                           "f",
		"ns::f::operator()":                     "ns::f::operator()",
		"void ns::f(int)::[lambda(int) (instance 1)]::operator ()(int) const": "ns::f::{lambda(int)#1}::operator()",
	} {
		if got := Canonical(in); got != want {
			t.Errorf("Canonical(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestUnqualifiedJoinsNsightComputeNames(t *testing.T) {
	for nsys, ncu := range map[string]string{
		"void at::native::elementwise_kernel<(int)128, (int)4, void at::native::gpu_kernel_impl_nocast<at::native::CUDAFunctor_add<c10::BFloat16>>(at::TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)":                                                                        "void elementwise_kernel<128, 4, void gpu_kernel_impl_nocast<CUDAFunctor_add<BFloat16>>(TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)",
		"void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda() (instance 3)]::operator ()() const::[lambda() (instance 7)]::operator ()() const::[lambda(float) (instance 1)], std::array<char *, (unsigned long)2>, (int)4>(int, T1)": "void unrolled_elementwise_kernel<direct_copy_kernel_cuda(TensorIteratorBase &)::[lambda() (instance 3)]::operator ()() lambda() (instance 7)]::operator ()() lambda(float) (instance 1)], array<char *, 2>, 4>(int, T1)",
		"void at::native::<unnamed>::CatArrayBatchedCopy<at::native::<unnamed>::OpaqueType<(unsigned int)2>, unsigned int, (int)4, (int)64, (int)64>(T1 *)":                                                                                                                                            "void unnamed>::CatArrayBatchedCopy<unnamed>::OpaqueType<2>, unsigned int, 4, 64, 64>(T1 *, unnamed>::CatArrInputTensorMetadata<T1, T2, T4, T5>)",
		"void at::native::vectorized_elementwise_kernel<(int)4, at::native::<unnamed>::silu_kernel(at::TensorIteratorBase &)::[lambda() (instance 1)]::operator ()() const::[lambda(c10::BFloat16) (instance 1)], std::array<char *, (unsigned long)2>>(int, T2, T3)":                                  "void vectorized_elementwise_kernel<4, unnamed>::silu_kernel(TensorIteratorBase &)::[lambda() (instance 1)]::operator ()() lambda(BFloat16) (instance 1)], array<char *, 2>>(int, T2, T3)",
		"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x256_32x3_tn_align8>(T1::Params)":                                                                                                                                                                                      "void Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x256_32x3_tn_align8>(Params)",
	} {
		if a, b := Unqualified(nsys), Unqualified(ncu); a != b {
			t.Errorf("nsys %q\n ncu %q", a, b)
		}
	}
}

// TestCanonicalIsIdempotent builds names out of what names are made of, in any order.
func TestCanonicalIsIdempotent(t *testing.T) {
	part := rapid.SampledFrom([]string{
		"void", "const", "f", "kernel", "at::native::", "<", ">", "(", ")", "[", "]", "{", "}", ",", " ", "*", "&", "::", "->", "#", "_",
		"<unnamed>", "(anonymous namespace)", "{anonymous}", "unnamed>::", "[lambda(", "{lambda(", "(instance 3)", "(int)4", "(bool)0", "(ns::E)1", "3ul",
		"true", "false", "operator", "operator ()", "operator<", "lambda", "triton_poi_fused_add", "_0d1d2de", "_12", "0x7f12", "enable_if<!T7, void>::type",
		", seq = 4", ", op_id = 5", "[clone .kd]", "[CUDA ", " -> ", "é", "1", "d",
	})
	rapid.Check(t, func(t *rapid.T) {
		name := strings.Join(rapid.SliceOfN(part, 0, 24).Draw(t, "parts"), "")
		once := Canonical(name)
		if twice := Canonical(once); twice != once {
			t.Fatalf("%q → %q → %q", name, once, twice)
		}
		if info := Classify(name); info.Canonical != once || info.Category == "" || info.Library == "" || info.Component == "" || info.Family == "" {
			t.Fatalf("%q → %+v", name, info)
		}
	})
}

func TestHugeNamesAreReadInLinearTime(t *testing.T) {
	for _, unit := range []string{"(", "a(", "a<b(", "<", "(a)1", "a,", "[lambda(", "operator<", "{lambda()#1}::", "0x1_", "void ", "f<(int)4>::", "_0d1d2", "a<unnamed>::"} {
		name := strings.Repeat(unit, 100_000/len(unit))
		info := Classify(name)
		if len(info.Display) > 4*maxDisplay || len(info.Canonical) > 2*len(name) {
			t.Errorf("%q…: display %d, canonical %d bytes", unit, len(info.Display), len(info.Canonical))
		}
	}
}

// Uncast drops casts before numbers and nothing else; Function is the function's own name.
func TestUncastAndFunction(t *testing.T) {
	for name, want := range map[string][2]string{
		"void one<(int)128, (unsigned long)4, (bool)1>(int, float *)": {"void one<128, 4, 1>(int, float *)", "one"},
		"void one<128>(int, float *)":                                 {"void one<128>(int, float *)", "one"},
		"basic(int)":                                                  {"basic(int)", "basic"},
		"void f<(ns::Kind)-2>(T1::Params)":                            {"void f<-2>(T1::Params)", "f"},
		"fused_moe_kernel":                                            {"fused_moe_kernel", "fused_moe_kernel"},
		"void at::native::<unnamed>::reduce_kernel<(int)512, at::native::ReduceOp<float>>(T3)": {"void at::native::<unnamed>::reduce_kernel<512, at::native::ReduceOp<float>>(T3)", "reduce_kernel"},
		"f(int)4": {"f(int)4", "f(int)4"},
		"((((":    {"((((", "(((("},
		"<(int":   {"<(int", "<(int"},
	} {
		if got := Uncast(name); got != want[0] || Uncast(got) != got {
			t.Errorf("Uncast(%q) = %q, want %q", name, got, want[0])
		}
		if got := Function(name); want[1] != name && got != want[1] {
			t.Errorf("Function(%q) = %q, want %q", name, got, want[1])
		}
	}
}
