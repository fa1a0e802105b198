package kernelname

// PyTorch's own kernels and what its compiler makes: see decided_test.go.

var decidedATen = []decided{
	{"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::CopyFunctor<int, long, 2, 1, 1>, at::native::Copy<int, long> >(at::native::(anonymous namespace)::TensorListMetadata<2>)", Memory, libATen, CompMemory, ""},
	{"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<1>, at::native::(anonymous namespace)::LpNormFunctor<float, (at::native::NormType)1, float, 1, 1, 0>, float*, int>(float*)", Reduce, libATen, CompOther, ""},
	{"void at::native::lpnorm_cleanup<float, (at::native::NormType)1, float, float>(float const*)", Reduce, libATen, CompOther, ""},
	{"void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::ParallelForAgent<thrust::cuda_cub::__uninitialized_fill::functor<thrust::device_ptr<int>, int>, unsigned long>, unsigned long>(unsigned long)", Memory, "cub", CompMemory, ""},
	{"void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::ParallelForAgent<thrust::cuda_cub::__transform::unary_transform_f<float*, float*, op>, long>, long>(long)", Elementwise, "cub", CompElementwise, ""},
	{"void cub::CUB_200700_800_900_NS::detail::for_each::static_kernel<cub::detail::for_each::policy_hub_t::policy_350_t, long, thrust::cuda_cub::__tabulate::functor<int*, at::op, long> >(long)", Elementwise, "cub", CompElementwise, ""},
	{"void at::native::vectorized_elementwise_kernel<(int)4, at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float>>, std::array<char *, (unsigned long)3>>(int, T2, T3)", Elementwise, libATen, CompElementwise, "aten/elementwise:MulFunctor/f32"},
	{"void at::native::unrolled_elementwise_kernel<at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>, 4, TrivialOffsetCalculator<2, unsigned int>>(int, at::native::CUDAFunctor_add<c10::BFloat16>)", Elementwise, libATen, CompElementwise, "aten/elementwise:CUDAFunctor_add/bf16"},
	{"void at::native::elementwise_kernel<(int)128, (int)4, void at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda() (instance 3)]::operator ()() const::[lambda() (instance 12)]::operator ()() const::[lambda(c10::BFloat16) (instance 1)]>(at::TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)", Memory, libATen, CompMemory, "aten/elementwise:direct_copy/bf16"},
	{"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>, std::array<char*, 1ul> >(int, at::native::FillFunctor<int>, std::array<char*, 1ul>)", Memory, libATen, CompMemory, "aten/elementwise:FillFunctor/i32"},
	{"void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 4, 64, 64>(at::native::(anonymous namespace)::OpaqueType<2u>*)", Memory, libATen, CompMemory, ""},
	{"void at::native::vectorized_elementwise_kernel<(int)8, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase &, at::native::GeluType)::[lambda() (instance 1)]::operator ()() const::[lambda() (instance 4)]::operator ()() const::[lambda(c10::BFloat16) (instance 1)], std::array<char *, (unsigned long)2>>(int, T2, T3)", Activation, libATen, CompFFN, "aten/elementwise:Gelu/bf16"},
	{"void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda()#6}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)", Activation, libATen, CompFFN, "aten/elementwise:silu/bf16"},
	{"void at::native::vectorized_elementwise_kernel<(int)4, at::native::sigmoid_kernel_cuda(at::TensorIteratorBase &)::[lambda() (instance 2)]::operator ()() const::[lambda() (instance 2)]::operator ()() const::[lambda(float) (instance 1)], std::array<char *, (unsigned long)2>>(int, T2, T3)", Activation, libATen, CompElementwise, ""},
	{"void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, unsigned int, float, (int)4>>(T3)", Reduce, libATen, CompOther, "aten/reduce:MeanOps/f32"},
	{"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::NormTwoOps<float, float, float>, unsigned int, float, 4, 4> >(at::native::ReduceOp<float>)", Reduce, libATen, CompOther, ""},
	{"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4, 4> >(at::native::ReduceOp<float>)", Sampling, libATen, CompSampling, ""},
	{"void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(at::cuda::detail::TensorInfo<float const, unsigned int>)", Sampling, libATen, CompSampling, ""},
	{"void at::native::bitonicSortKVInPlace<2, -1, 16, 16, float, long, at::native::GTOp<float, true>, unsigned int>(at::cuda::detail::TensorInfo<float, unsigned int>)", Sampling, libATen, CompSampling, ""},
	{"void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4, void at::native::templates::cuda::exponential_kernel<at::CUDAGeneratorImpl*>(at::TensorIteratorBase&, double, at::CUDAGeneratorImpl*)::{lambda()#1}::operator()() const::{lambda(curandStatePhilox4_32_10*)#2}>(long)", Sampling, libATen, CompSampling, ""},
	{"void <unnamed>::softmax_warp_forward<float, float, float, (int)8, (bool)0, (bool)0>(T2 *, const T1 *, int, int, int, const bool *, int, bool)", Softmax, libATen, CompOther, "aten/softmax_warp_forward/f32"},
	{"void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float, float, float, at::native::(anonymous namespace)::SoftMaxForwardEpilogue>(float*, float const*, int)", Softmax, libATen, CompOther, ""},
	{"void at::native::<unnamed>::vectorized_layer_norm_kernel<float, float, (bool)0>(int, T2, const T1 *, const T1 *, const T1 *, T2 *, T2 *, T1 *)", Norm, libATen, CompNorm, ""},
	{"void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<float>(long, float, float const*, float*, float*)", Norm, libATen, CompNorm, ""},
	{"void at::native::<unnamed>::indexSelectLargeIndex<float, long, unsigned int, (int)2, (int)2, (int)-2, (bool)1>(at::cuda::detail::TensorInfo<T1, T3>)", Prepare, libATen, CompEmbedding, ""},
	{"void at::native::vectorized_gather_kernel<(int)16, long>(char *, char *, T2 *, int, long, long, long, long, bool)", Prepare, libATen, CompEmbedding, ""},
	{"void at::native::_scatter_gather_elementwise_kernel<(int)128, (int)8, void at::native::_cuda_scatter_gather_internal_kernel<(bool)0, at::native::OpaqueType<(int)4>>::operator ()<at::native::TensorAssign>(at::TensorIterator &, long, long, long, const T1 &)::[lambda(int) (instance 1)]>(int, T3)", Prepare, libATen, CompOther, ""},
	{"void at::native::index_elementwise_kernel<(int)128, (int)4, void at::native::gpu_index_kernel<void at::native::index_kernel_impl<at::native::OpaqueType<(int)4>>(at::TensorIteratorBase &, c10::ArrayRef<long>, c10::ArrayRef<long>)::[lambda(char *, const char *, long) (instance 1)]>(at::TensorIteratorBase &, c10::ArrayRef<long>, c10::ArrayRef<long>, const T1 &)::[lambda(int) (instance 1)]>(long, T3)", Elementwise, libATen, CompElementwise, ""},
	{"void at_cuda_detail::cub::DeviceScanKernel<at_cuda_detail::cub::DeviceScanPolicy<long>::Policy600, const long *, long *, at_cuda_detail::cub::ScanTileState<long, (bool)1>, std::plus<long>, at_cuda_detail::cub::NullType, int, long>(T2, T3, T4, int, T5, T6, T7)", Reduce, libATen, CompOther, ""},
	{"void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<float, long, int>::Policy900, false, float, long, int, int>(int*)", Reduce, "cub", CompOther, ""},
	{"void at::native::<unnamed>::multi_tensor_apply_kernel<at::native::<unnamed>::TensorListMetadata<(int)2>, at::native::<unnamed>::TernaryOpScalarFunctor<float, (int)2, (int)2, (int)0>, at::native::LerpFunctor<float>, float>(T1, T2, T3...)", Elementwise, libATen, CompElementwise, ""},
	{"void at::native::<unnamed>::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(T1 *, T1 *, const T1 *, const T3 *)", Reduce, libATen, CompOther, ""},
	{"void at::native::triu_tril_kernel<bool, int, (bool)0, (int)8, (bool)0>(at::cuda::detail::TensorInfo<T1, T2>)", Elementwise, libATen, CompElementwise, ""},
	{"void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4, void at::native::templates::cuda::normal_and_transform<c10::BFloat16, float, 4ul, at::CUDAGeneratorImpl*>(at::TensorIteratorBase&)::{lambda(curandStatePhilox4_32_10*)#2}>(long)", Elementwise, libATen, CompElementwise, "aten/elementwise:normal_and_transform#2/bf16"},
}

var decidedTriton = []decided{
	{"triton_spl_fused__to_copy_cat_cumsum_ones_sub_unsqueeze_4", Triton, libInductor, CompOther, "triton-inductor/triton_spl_fused__to_copy_cat_cumsum_ones_sub_unsqueeze_#"},
	{"triton_unk_fused__to_copy_add_mean_mul_pow_rsqrt_0", Norm, libInductor, CompNorm, "triton-inductor/triton_unk_fused__to_copy_add_mean_mul_pow_rsqrt_#"}, // a cooperative reduction
	{"triton_unk_fused_argmax_1", Sampling, libInductor, CompSampling, "triton-inductor/triton_unk_fused_argmax_#"},
	{"triton_unk_fused_moe_forward_view_2", Triton, libInductor, CompOther, ""}, // beside a custom op
	{"triton_poi_fused_mul_silu_slice_1", Activation, libInductor, CompFFN, "triton-inductor/triton_poi_fused_mul_silu_slice_#"},
	{"triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0", Norm, libInductor, CompNorm, ""},
	{"triton_per_fused_native_layer_norm_12", Norm, libInductor, CompNorm, "triton-inductor/triton_per_fused_native_layer_norm_#"},
	{"triton_poi_fused_add_5", Elementwise, libInductor, CompElementwise, ""},
	{"triton_poi_fused_all_reduce_view_3", Elementwise, libInductor, CompElementwise, ""},       // beside an all-reduce, not one
	{"triton_poi_fused_moe_forward_view_2", Elementwise, libInductor, CompElementwise, ""},      // beside a custom op
	{"triton_poi_fused_cat_unified_attention_4", Elementwise, libInductor, CompElementwise, ""}, // likewise
	{"triton_per_fused__softmax_7", Softmax, libInductor, CompOther, ""},                        //
	{"triton_poi_fused_embedding_0", Prepare, libInductor, CompEmbedding, ""},                   //
	{"triton_red_fused_argmax_0", Sampling, libInductor, CompSampling, ""},                      //
	{"triton_red_fused_amax_clamp_mul_9", Triton, libInductor, CompOther, ""},                   //
	{"triton_tem_fused_flex_attention_6", Attention, libInductor, CompAttention, ""},            //
	{"_save_partial_states_kernel", Triton, libTritonJIT, CompOther, "triton-jit/_save_partial_states_kernel"},
	{"some_user_kernel", Triton, libTritonJIT, CompOther, ""},
	{"_topk_topp_kernel", Sampling, libTritonJIT, CompSampling, ""},
	{"fused_sigmoid_gating_delta_rule_update_kernel", LinearAttn, libTritonJIT, CompAttention, ""},
}
