package kernelname

import (
	"slices"
	"strings"
	"testing"
)

// TestDictionaryIsInOrder: four columns, sorted, no symbol twice, every category one of ours, and every symbol found
// as a template with parameters too.
func TestDictionaryIsInOrder(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(symbolText, "\n"), "\n")
	if lines[0] != "symbol\tcategory\tproject\tread_in" {
		t.Fatalf("heading %q", lines[0])
	}
	last := ""
	for _, line := range lines[1:] {
		f := strings.Split(line, "\t")
		if len(f) != 4 || slices.Contains(f, "") {
			t.Errorf("%q: want symbol, category, project, read_in", line)
			continue
		}
		if f[0] <= last {
			t.Errorf("%s after %s: sort the file, each symbol once", f[0], last)
		}
		last = f[0]
		want := Category(f[1])
		if !want.Named() || !slices.Contains(Categories, want) {
			t.Errorf("%s: no category %q", f[0], want)
		}
		for _, name := range []string{f[0], "void " + f[0] + "<128, float>(float*, int)"} {
			if got := Classify(name).Category; got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	}
	if len(lines) < 1700 {
		t.Errorf("%d lines", len(lines))
	}
}

// TestRulesAloneKnowTheDictionary holds how well the rules do without it: that is how they do on names nobody wrote
// down.
func TestRulesAloneKnowTheDictionary(t *testing.T) {
	const wantShare = 0.92
	right := 0
	for symbol, want := range Symbols() {
		v := newView(symbol, Canonical(symbol))
		if v.ruled().cat == want {
			right++
		}
	}
	share := float64(right) / float64(len(Symbols()))
	t.Logf("%d of %d (%.1f %%)", right, len(Symbols()), 100*share)
	if share < wantShare {
		t.Errorf("rules know %.3f of the dictionary, want %.2f", share, wantShare)
	}
}

// TestWordsInsideWordsMislead: names in which one category's word is part of another word.
func TestWordsInsideWordsMislead(t *testing.T) {
	for name, want := range map[string]Category{
		"_gemma_rmsnorm_fused":                      Norm, // gemm
		"void ns::GemmaQKNormKernel<8u, __half>(P)": Norm,
		"_gemma_rope_tables":                        Rope,
		"void ns::gemm_gelu<__half>(P)":             GEMM,
		"kernel_cutlass_kernel_pkgGdnVerifyKernel_object_at__CopyAtom_ThrID10_0":     LinearAttn, // copy
		"kernel_cutlass_kernel_pkgQKRMSNormKernel_object_at__CopyAtom_TiledMMA_gemm": Norm,
		"_flash_prefill_inner_kernel":                  Attention, // fill
		"_prefill_page_indices":                        Prepare,
		"void mul_mat_vec_iq<(ggml_type)20, 1>(P)":     GEMM, // _mul_
		"_add_mul_pair":                                Elementwise,
		"void ns::MoEPersistentGroupedMlpKernel<P>(P)": MoEGEMM, // moe
		"_moe_layer_gate_up_gemm":                      MoEGEMM,
		"void ns::moe_comm::moeA2AWaitKernel<P>(P)":    Comm,
		"_per_tensor_quant_mla_fp8_pass":               Quant, // mla
		"void ns::TopKPerRowVerify<512>(P)":            Attention,
		"void ns::NormalDistribution<float>(P)":        Other, // norm
		"void ns::rootMeanSquareNorm<float>(P)":        Norm,  // renorm
		"_paged_attention_block_table_kernel":          Attention,
		"rope_norm<true, false, float>(P)":             Rope,
	} {
		if got := Classify(name).Category; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestWordsOfNames(t *testing.T) {
	for name, want := range map[string]string{
		"":                     "_",
		"fused_moe_kernel":     "_fused_moe_kernel_",
		"vllm::topKPerRow":     "_vllm_top_k_per_row_",
		"FusedAddRMSNorm":      "_fused_add_rms_norm_",
		"MoEDynamicKernel":     "_moe_dynamic_kernel_",
		"mlaRoPEInplaceKernel": "_mla_rope_inplace_kernel_",
		"moeA2ADispatchKernel": "_moe_a2a_dispatch_kernel_",
		"Sm90FusedGdrFwd":      "_sm90_fused_gdr_fwd_",
		"gemm_W8A16_perc":      "_gemm_w8a16_perc_",
		"a__b::~c":             "_a_b_c_",
	} {
		if got := words(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestNamespacesTellKernelsOfOneNameApart: TensorRT-LLM's experts and its beam search both finalize.
func TestNamespacesTellKernelsOfOneNameApart(t *testing.T) {
	for name, want := range map[string]Category{
		"void moe::dev::finalize::finalizeKernel<P>(P)":           MoERoute,
		"tensorrt_llm::kernels::finalizeKernel(P)":                Sampling,
		"void moe::dev::permute::permuteKernel<P>(P)":             MoERoute,
		"void acme::permuteKernel<float>(float*)":                 Memory,
		"void deep_ep::elastic::combine_impl<true, 3>(P)":         Comm,
		"ns::speculative_decoding::<unnamed>::copyTokensIds(P)":   Prepare,
		"ns::speculative_decoding::acceptDraftTokensKernel<T>(P)": Sampling,
	} {
		if got := Classify(name).Category; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestSomebodySaysTheCategory: what depends on it follows.
func TestSomebodySaysTheCategory(t *testing.T) {
	info := ClassifyAs("void acme::push_rows<float>(float*)", Comm)
	if info.Category != Comm || !info.Comm || info.Collective != CollOther || info.Component != CompComm {
		t.Errorf("%+v", info)
	}
	if info = ClassifyAs("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(P)", GEMM); info.Comm || info.Collective != "" ||
		info.Component != CompGEMM {
		t.Errorf("%+v", info)
	}
}
