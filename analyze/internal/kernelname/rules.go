package kernelname

import "strings"

// rule assigns a category to names that hold one of the patterns in any or words and none of those in not. Patterns are
// separated by spaces and match lower-case canonical text; "^" binds a pattern to the start of the text, "$" to its
// end, and "~" to the border of a word of letters and digits. A pattern in raw matches the original name, before casts
// were dropped. Patterns in words match whole words of the kernel's own name, in either spelling: see parseWords.
type rule struct {
	cat   Category
	any   string
	words string
	not   string
	comp  string // component, if it is not the category's own
	raw   string
}

// rules in order: the first that matches wins. Order and exceptions avoid mistakes of the engines' own classifiers.
var rules = compile([]rule{
	// Inductor lists every operator it fused, neighbours and custom calls too (…_moe_forward_…, …_all_reduce_…): such a
	// word does not tell the work of the kernel. So these rules come first and have words of their own.
	{cat: Attention, any: "^triton_tem_fused&flex_attention ^triton_tem_fused&_sdpa"},
	{cat: GEMM, any: "^triton_tem_fused ^triton_mm ^triton_bmm"},
	{cat: Norm, any: "^triton_red_fused&rsqrt ^triton_per_fused&rsqrt ^triton_poi_fused&rsqrt ^triton_red_fused&_norm ^triton_per_fused&_norm ^triton_poi_fused&_norm", not: "_normal"},
	{cat: Softmax, any: "^triton_red_fused&softmax ^triton_per_fused&softmax"},
	{cat: Activation,
		any:  "^triton_poi_fused&silu ^triton_poi_fused&gelu ^triton_poi_fused&sigmoid&mul ^triton_poi_fused&swiglu",
		comp: CompFFN},
	{cat: Prepare, any: "^triton_poi_fused&embedding", comp: CompEmbedding},
	{cat: Elementwise, any: "^triton_poi_fused ^triton_for_fused"},
	{cat: Sampling, any: "^triton_red_fused&argmax ^triton_per_fused&argmax"},
	{cat: Triton, any: "^triton_red_fused ^triton_per_fused ^triton_split_scan"},
	{cat: GEMM, any: "~nvfuser_matmul"},
	{cat: Memory, any: "~nvfuser_transpose"},
	{cat: Elementwise, any: "~nvfuser_pointwise"},
	{cat: Reduce, any: "~nvfuser_reduction ~nvfuser_inner ~nvfuser_outer"},

	// Kernels that prepare another one carry its name: these are not attention, not products.
	{cat: Quant, words: "^per_token_group_quant* ^per_token_quant* ^per_tensor_quant* ^per_channel_quant* ^per_block_quant* ^quantize_mmq* ^quantize_q8* ^cvt_fp16_to_fp4* ^shuffle&*bit make_sequential&*bit act_quant* convert_sf* kv&pack&quantize"},
	{cat: MoERoute, words: "moe&metadata append&experts remap&experts group_mask* tiles&indptr m_range* shuffle_mul_sum*"},
	{cat: Prepare, words: "advance_step* attn_metadata* build&metadata prepare&metadata update&metadata decode_metadata* verify_metadata* extend_metadata* ^prepare&inputs packed_mask* tree_mask* leaf_mask* pack&mask indices&paged indices&page indices&decode indices&prefill indices&kv indptr&kv"},
	{cat: Prepare, words: "build&mask create&mask create&masks block_table token_mapping* swa_indices* indices_and_lens* num_sampled*", not: "attention attn cache"},
	{cat: Memory, words: "concat&mla concat&mha", not: "attention attn cache quant"},
	{cat: Activation, words: "^silu_mul* silu_and_mul* gelu_and_mul* ^swiglu_mul* swiglu_and_mul* act_and_mul* ^act_mul* moe_activation* and_mul", not: "gemm matmul",
		comp: CompFFN},
	{cat: Activation, words: "silu_mul&quant gelu_mul&quant ^unary_gated*", comp: CompFFN}, // for a product, or of llama.cpp
	// llama.cpp's suffixes norm and neox name the order of pairs
	{cat: Rope, words: "^rope_norm ^rope_neox apply_mla_rope* mla&rope mla&q_rope indexer&q_rope rope&hadamard", not: "cache attn attention"},
	{cat: MoERoute, words: "^deepep_permute* ^deepep_post_reorder* ^deepep_compute_src2dst* ^deepep_run* moe_align* align_block_size moe_lora_align*"},

	// "reduce_kernel" is ATen's reduction, not communication; "dispatch" and "combine" alone are not DeepEP's (flash
	// attention has a combine).
	{cat: Comm, words: "a2a moe_comm* ep_dispatch* ep_combine* symmetric_memory oneshot one_shot twoshot two_shot 1shot 2shot lamport rsag* ipc_topo* push_param peer peers putmem* getmem* barrier broadcast_simple ^broadcast p2p internode intranode inter_node intra_node", not: "attn attention"},
	{cat: Comm, any: "^nccl ~rccl ~hccl nvshmem ~msccl mooncake deep_ep deepep userbuffers"},
	{cat: Comm, any: "allreduce all_reduce cross_device_reduce quick_reduce quickreduce oneshot_lamport multimem symm_mem"},
	{cat: Comm, any: "allgather all_gather reducescatter reduce_scatter alltoall all_to_all all2all a2a~"},

	// Plain "copy" and "fill" are words of compute kernels too: see the end.
	{cat: Memory, any: "[cuda&mem ^memcpy ^memset ~memset_ ~dma~ ^prefetch ~um_prefetch __amd_rocclr_"},
	{cat: Memory,
		any: "fillfunctor direct_copy_kernel _copy_kernel_cuda catarraybatchedcopy nchwtonhwc nhwctonchw unaryopfunctor&copy<"},

	// Before attention, whose names hold "flash", "mla" and "attn" as well; and
	// flashinfer's attention holds "PagedKVCache".
	{cat: KVCache,
		any: "_and_cache set_kv_buffer set_mla_kv_buffer store_kv_cache write_req_to_token copy_page_indices appendpagedkv append_paged"},
	{cat: KVCache, any: "kvcache kv_cache",
		not: "prefillwithkv decodewithkv batchprefill batchdecode singleprefill singledecode podwithkv fmha attn attention batchmla mha_ mqa"},
	{cat: KVCache,
		any: "ropequantinsert rope_insert updatekv reshape_paged swap_blocks copy_blocks gather_cache dequant_cache shift_k_cache shiftkcache"},

	{cat: KVCache, words: "kv&cache", not: "attention attn prefill decode podwith"},
	{cat: Prepare, words: "out_cache_loc cache_locs"},
	{cat: KVCache,
		words: "cache&write cache&store cache&copy copy&page copy&pages cache&gather cache&fill cache&set cache&append cache&insert cache&save cache&transfer cache&quantize cache&dequantize cache&select cache&commit index_k indexer_k_cache* kv&copy kv&store kv&write kv&fill kv&set kv&save kv&transfer kv&flatten kv&process kv&append kv&insert kv&quantize kv&dequantize kv&swap kv&load kv&offload kv&move kcache* vcache* kv&gather kv&scatter kv&reorder kv&broadcast kv_pool* page&transfer swa_write* kv_buffer* insert_k gather_k append_k store_k rope&store norm_rope_flashmla norm_rope_indexer hisparse* set_k_and_s* get_k_and_s* transfer_kernel* ^k_set_rows*", not: "attention attn"},

	// Words of linear attention that hold a word of attention.
	{cat: LinearAttn,
		any:   "linear_attn linear_attention linearattn lightning_attn lightning_attention ~gdn~ _gdn_ delta_rule gated_delta ~kda~ _kda_ flashkda fusedgdn fusedgdr gdrkernel",
		words: "gdn gdr kda ssd gla hgrn rwkv* wkv* dplr iplr retention delta_net* gated_delta* delta_rule* delta_attention delta_attn cp_delta* g_beta beta_g intra_chunk kkt wy qkvzba ssm rg_lru token_shift"},

	// Kernels that prepare inputs of attention are named after it too.
	{cat: GEMM, words: "mla&gemv mla&bmm", not: "attn attention"},
	{cat: Norm, words: "qk_norm* qknorm* q_norm*", not: "attn attention"},
	{cat: Attention,
		any: "flash_fwd flash_bwd flashattn flashattention flash_attn flash_attention ~flash:: fmha fmhasm flash_mla flashmla ::mla:: ~mla~ _mla_ mla_decode"},
	{cat: Attention,
		any: "batchprefill batchdecode singleprefill singledecode podwithkv batchmla batchpagedattention mergestate merge_attn_states attentionsum"},
	{cat: Attention, any: "attention ~attn attn_ _attn sdpa xqa mmha mqa_logits reduce_segments splitkv_mla",
		words: "attn mha mqa gqa mla dsa nsa bsa qsa flash flashdecode* varlen ^parallel&fwd ^parallel&bwd paged_decode* paged_prefill* batch_decode batch_prefill pa_fwd* pa_decode* pa_prefill* pa_ps* merge_state merge_states fwd_grouped_split* prefill_with decode_with vertical_slash* prefix_prefill* splitkv* lse att pa_bf16* pa_fp8* pa_fp16* ^bwd_kernel_d*"},
	{cat: Attention, words: "^fwd_kernel*", not: "penalt embed _ep_"},
	// The indexer of sparse attention chooses tokens to attend to, not the next token.
	{cat: Attention,
		words: "clean_logits fp8_index* index_score* indexer topk_transform* top_k_transform* top_k_per_row* topk_per_row* top_k_multi_row* topk_multi_row* select_block* topk_block* block_topk* topk&swa topk&lens verify&stage1 verify&stage2"},
	// Triton's attention kernels of SGLang; "_fwd_kernel" inside a longer name occurs everywhere
	// (_layer_norm_fwd_kernel), and _fwd_kernel_ep_* moves expert rows.
	{cat: MoERoute, any: "_fwd_kernel_ep_"},
	{cat: Attention,
		any: "^_fwd_kernel$ ^_fwd_kernel_# ^_fwd_kernel_stage ^_fwd_grouped_kernel ^_bwd_kernel$ ^_bwd_kernel_# ^_bwd_preprocess"},

	{cat: LinearAttn,
		words: "chunk&fwd chunk&bwd chunk&cumsum chunk&delta chunk_delta* comba short_conv* post_conv* conv_state* conv_window* fused&conv1d", any: "chunk_gated chunk_fwd chunk_scaled_dot_kkt chunk_local_cumsum chunk_cumsum chunk_scan chunk_state bmm_chunk state_passing chunk_kda"},
	{cat: LinearAttn,
		any: "fused_recurrent causal_conv1d mamba selective_scan selective_state ~ssd~ _ssd_ ~ssm~ recompute_w_u solve_tril merge_16x16"},

	{cat: Comm, any: "::internode ::intranode", not: "attn"},

	{cat: MoERoute, words: "group_gemm_starts ggemm_starts compute_strides* problem_sizes* arg_sorts* masked_m"},
	// A whole MoE layer in one kernel, and single products of one.
	{cat: MoEGEMM,
		words: "moe_dynamic* moe_static* moe_micro* moe_vec moe&bgmv moe&sgmv moe&gemv moe&gemm moe&matmul moe&mlp moe&ffn moe&lora moe&fc1 moe&fc2 moe&mm moe&flatmm moe&w4a* moe&w8a* moe&mma moe&imma moe&wmma moe&q2* moe&q3* moe&q4* moe&q5* moe&q6* moe&q8* moe&proj moe&gate_up moe&gateup moe&down expert&gemm expert&matmul experts&w4a16 experts&gemm fc12 grouped&matmul grouped&gemm grouped_mm* group_mm* grouped_gemv* mul_mat_id* *moe&stage1* *moe&stage2* moe&a4w* moe&a8w* moe&a16w*", any: "mfma_moe"},
	{cat: MoEGEMM, words: "mega_moe* megamoe*", not: "input quant dispatch"},
	{cat: MoEGEMM, words: "moe&nvfp4 moe&mxfp4 moe&fp4 moe&fp8 moe&int4 moe&int8",
		not: "quant topk align sum sort permut scatter gather rout reduce scale input act"},
	{cat: MoEGEMM, words: "fused_moe fused_experts", not: "fused_gate gate_kernel gating router routing topk align sort dispatch combine"},

	// Before gemm: "gemm" is in nearly all of these.
	{cat: MoEGEMM,
		any: "groupproblemshape moeproblemshape group_gemm groupgemm grouped_gemm groupedgemm gemm_grouped gemmgrouped moegemm moe_gemm gemm_moe moefcgemm"},
	{cat: MoEGEMM,
		any: "fused_moe_kernel fused_moe:: ~fmoe matmul_ogs moe_wna16 marlin_moe moe_mmk batched_triton_kernel moe_mxgemm"},
	{cat: MoEGEMM, any: "^bmm_e4m3 ^bmm_e2m1 ^bmm_e5m2 ^bmm_bfloat16 ^bmm_fp16 ^bmm_mx"}, // trtllm-gen
	{cat: MoEGEMM, any: "deep_gemm", raw: "gemmtype)1 gemmtype)2 gemmtype)3 gemmtype::mgrouped gemmtype::grouped"},

	{cat: Activation, any: "activationdeepseek doactivation doglu", comp: CompMoE},
	{cat: MoERoute,
		any: "moe expert topkgating topk_gating topk_softmax topk_sigmoid grouped_topk routing bitmatrix _compute_writeback_idx"},
	{cat: MoERoute,
		words: "expt* hash_topk* hash_top_k* biased_topk* gate&topk topk&deepseek compaction eplb load_factor* topk_id topk_ids* topk_weight* noaux* no_aux* group_topk* src2dst seg_indptr pre_reorder* post_reorder* shuffle_rows* row_id_map* compute_identity* mm_ids* unpermute* chunk_sort* sort_chunks* score_function* deepseek_v3_topk* shuffle_input_rows*"},
	{cat: MoERoute, words: "router route routes", not: "gemm gemv matmul"},
	{cat: MoERoute,
		any: "finalizekernel ~topk_forward _topk_forward ep_scatter ep_gather expandinputrows deepgemm_permute pack_bitmatrix", not: "sampl"},

	// A kernel that prepares the operands of a GEMM is not a GEMM.
	{cat: Quant,
		words: "downcast* upcast* mxfp* input_scale* hadamard* max_reduction* absmax* per_token_cast* per_block_cast* block_scale_interleave* ue8m0 cast_transpose* channel_scale* *swizzle&scaling *swizzle&scale outlier* outliers* cast&fp8 cvt&fp8 convert&fp8 convert&mxfp8 amax fp8&scale scale&128x128 scale&1x128 reconstruct* marlin&weight marlin&preprocess pack&int4 pack_int4* unpack_int4* pack&2bit pack&4bit pack&8bit cast_fp8* cast_mxfp8* low_precision*", not: "gemm matmul gemv matvec mma bmm tree"},
	{cat: Quant, any: "deep_gemm::transpose transpose_fp32 pack_fp32"},
	{cat: Quant, any: "dequantize dequant_ marlin_repack awq_repack gptq_shuffle shuffle_kernel_4bit group_quant group_fp8_quant quant_fp8 scaled_fp8_quant scaled_fp4_quant cvt_fp16_to_fp4", not: "gemm matmul gemv"},
	{cat: Prepare, words: "embedding_lora_a*"},
	{cat: GEMM, any: "nvjet gemm gemv matmul cublas xmma wgmma cijk_ wvsplitk splitkreduce splitk_reduce splitk_kernel"},
	{cat: GEMM, any: "marlin machete gptq ~awq~ deep_gemm w8a8 block_fp8 scaled_mm triton_mm ~mm~ qserve tinygemm fp8_linear dot_kernel reduce_1block_kernel spmm sddmm"},
	{cat: GEMM, words: "einsum* addmm mma mul_mat* conv2d conv3d bmm flatmm conv_transpose*"},
	{cat: GEMM, words: "lora", not: "reorder addbias add_bias"},
	{cat: GEMM, any: "fprop dgrad wgrad implicit_convolve conv2d_ _conv2d convolve winograd bgmv sgmv lora_shrink lora_expand", not: "_norm_"},
	{cat: GEMM, any: "cutlass::kernel cutlass::device_kernel cutlass_80_ cutlass_75_ cutlass_70_ cutlass_90_ cutlass3x"},

	// "norm" is in normal_kernel (random numbers), renorm (sampling) and
	// NormTwoOps (a gradient norm: a reduction).
	{cat: Norm, any: "norm rowwisemoments gammabeta welford_", not: "normal renorm normtwo normone normops"},
	{cat: Norm, any: "l2normalize normalize_l2", words: "ln_fwd ln_bwd normalize rms square_norm"},
	{cat: Prepare, words: "mrope_position* mrope_positions* prepare&rope"},
	{cat: Rope, any: "rotary rope compute_position_kernel", not: "propert"},

	// cuDNN names its convolutions after the type, the instruction and what is fused behind them (_relu_)
	{cat: GEMM, any: "cudnn&s884 cudnn&s1688 cudnn&s16816 cudnn&h884 cudnn&h1688 cudnn&i8816 scudnn cudnn&xmma cudnn&fprop cudnn&dgrad cudnn&wgrad"},
	{cat: Activation, any: "act_and_mul silu gelu swiglu geglu swish xielu", words: "*glu", comp: CompFFN},
	{cat: Activation, any: "relu sigmoid tanh_kernel tanh_backward activation mish_ softplus", words: "elu", comp: CompElementwise,
		not: "topk reorder"},

	{cat: Quant, any: "quant fp4 mxfp8 nvfp scaled_fp8 cvt_fp8 cast_to_fp8", not: "quantile"},

	{cat: Prepare, words: "metadata plan logits&offsets", not: "attn mqa mla"},
	{cat: Elementwise, words: "softcap*"},
	{cat: Sampling,
		any: "sampling topksampl toppsampl samplefrom ~sample_ gumbel multinomial argmax penalt renorm ~min_p ~top_p ~topp bitmask rejection logits logprob beam_search beamsearch ban_bad ban_repeat", not: "upsampl downsampl resampl"},
	{cat: Sampling,
		words: "greedy* top1 accept&draft accept&spec accept&tokens build&tree verify reject* rejection acceptance stop_token* token_mask* grammar* logit* argsort* curand* beam* temperature* bad_words* stop_words* verify_tree* build_tree* eos* top_k* gather_tree* bincount* length_criterion* log_p log_prob log_probs unfinished* top_p min_p"},
	{cat: Sampling, any: "topk radixsortkv bitonicsort exponential_"},
	{cat: Softmax, any: "softmax", words: "soft_max"},

	{cat: Reduce, words: "loss jsd kl_div* cross_entropy* histogram*"},
	{cat: Prepare,
		any: "embedding indexselect index_select vectorized_gather compute_grad_weight krn_partial sum_and_scatter num_of_partial_segments", comp: CompEmbedding},
	{cat: Prepare,
		any: "prepare advance_step copy_next gather scatter eagle kv_indices kv_indptr slot_mapping block_table seq_lens seqlen position index_put indexing_backward indexfunc nonzero"},

	{cat: Prepare,
		words: "req_to_token* req_index* cache_loc cache_locs last_loc masked_input* num_kv_splits* draft_tokens num_sampled* pack_seq* unpack_seq* post_update* get_rows* input_ids token_table token_pool page_table* pad_inputs* alloc_decode* alloc_extend* idx_mapping metadata draft spec token_ids seq_ids block_table* cu_seq* padding_offsets sequence_length padding_count take"},

	{cat: Reduce,
		any: "reduce devicescan deviceradixsort devicesegmented devicecompact deviceselect deviceunique devicehistogram devicemerge ~cub:: thrust:: tensor_kernel_scan cumsum nll_loss"},
	{cat: Elementwise,
		any: "elementwise gpu_kernel_impl multi_tensor_apply pointwise functor triu_tril where_kernel dropout masked_fill"},

	// Weak words, after everything that computes. Ids, tokens and lengths that are moved or filled are inputs of the
	// step.
	{cat: Prepare,
		words: "copy&ids copy&offsets copy&inputs copy&indices fill&id fill&ids fill&inputs causal_mask causal_masks fill&tokens pad&sequence pad&input pad&inputs pad&seq pack&input pack&inputs", not: "cache"},
	{cat: GEMM, words: "linear linears matvec mv proj proj* lm_head w2a* w3a* w4a* w8a*", not: "quant attn cross_entropy"},
	{cat: Comm, words: "send recv sendrecv signal", not: "attn"},
	{cat: KVCache, words: "cache caches", not: "attn attention sin_cache"},
	{cat: Memory, any: "memset transpose permute_kernel layout _copy copy_ fillfunctor", words: "copy fill zero zeros cpy concat cat pad im2col roll set_value* transfer offload writeback write_back to_cpu to_gpu to_host to_device rearrange reorder"},
	{cat: Norm, words: "ln mean_var"},
	{cat: Elementwise, any: "residual", words: "sub_mean add bias mul scale scales cast bcast clamp unary binary softcap upscale addcmul opt_step* adam* adamw*"},
})

// weakRules come last: words that other kernels have too.
var weakRules = weak([]rule{
	{cat: Norm, words: "mean_var var variance rstd"},
	{cat: Elementwise, words: "sinkhorn* mhc hc"},
	{cat: Quant, words: "had to_fp8 to_int8 to_fp4 e2m1 e4m3 e5m2 nibble* sf"},
	{cat: LinearAttn, words: "recurrent recurrence intra_states inter_states ssm_states state_update* decay dh0"},
	{cat: Attention, words: "swa score scores qk lse heads mqa decode&split decode&paged decode&stage* decode_stage1* sparse&decode prefill compress&dsv4 compressor*", not: "threshold"},
	{cat: KVCache, words: "kv ring_append k_cache v_cache store&dsv4 append&dsv4", not: "kv_len"},
	{cat: MoERoute, words: "routed ep top2 top4 top8"},
	{cat: Sampling, words: "token_count* thinking* budget accept* next_token* vocab threshold* candidates candidate ngram* propose* selector"},
	{cat: Activation, words: "gated gate act"},
	{cat: Prepare,
		words: "embed* emb lookup token tokens offset offsets indices ids padding input inputs input_* hidden_states seq sequence seqs lens lengths request requests req mask_index speculat* committed alloc bind unbind slot slots schedule", not: "transform"},
	{cat: Reduce, words: "tile_scan*"},
	{cat: Memory,
		words: "transform reshape slice split stack flatten repeat tile broadcast shuffle permute pack unpack swap clone restore"},
	{cat: GEMM, words: "qkv conv conv1d"},
	{cat: GEMM, any: "^kernel_cutlass_", raw: "tiledmma mmaatom"},
	{cat: Reduce,
		words: "sum mean max min amin amax count count_* histogram sort logsumexp pool pooling scan cumulative hash"},
	{cat: Elementwise,
		words: "sub div exp log sqrt rsqrt pow neg abs sign round square where mask masked fused_add loop&fusion arange range to_fp32 to_f32 to_fp16 to_f16 to_bf16 to_half to_float"},
})

// other and jit stand for names that match no rule.
var (
	other = compiledRule{rule: rule{cat: Other}}
	jit   = compiledRule{rule: rule{cat: Triton}}
)

// components of the categories that have one.
var components = map[Category]string{
	Comm: CompComm, Memory: CompMemory, KVCache: CompKVCache, Attention: CompAttention, LinearAttn: CompAttention,
	MoEGEMM: CompMoE, MoERoute: CompMoE, GEMM: CompGEMM, Norm: CompNorm, Rope: CompRope, Quant: CompQuant,
	Sampling: CompSampling, Elementwise: CompElementwise, Activation: CompFFN,
}

func (r *compiledRule) component() string {
	if r.comp != "" {
		return r.comp
	}
	if c, ok := components[r.cat]; ok {
		return c
	}
	return CompOther
}

// rule returns the rule of the dictionary for the kernel, else the first rule that matches.
func (v *view) rule() *compiledRule {
	r := v.ruled()
	switch c, ok := known(v.head); {
	case ok && c != r.cat:
		return &compiledRule{rule: rule{cat: c}}
	case ok && r.weak:
		return &compiledRule{rule: r.rule}
	}
	return r
}

// ruled is the first rule that matches, without the dictionary.
func (v *view) ruled() *compiledRule {
	for i := range rules {
		if r := &rules[i]; r.matches(v) {
			return r
		}
	}
	for i := range weakRules {
		if r := &weakRules[i]; r.matches(v) {
			return r
		}
	}
	if isJITName(v.name) {
		return &jit
	}
	return &other
}

// isJITName reports whether a name looks like a @triton.jit function: a bare lower_snake identifier. C and C++ kernels
// come with parameters, except extern "C" ones, for which there are other rules.
func isJITName(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isDigit(c) && c != '_' && (c < 'a' || 'z' < c) {
			return false
		}
	}
	return strings.Contains(s, "_") && !strings.HasPrefix(s, "nvfuser")
}
