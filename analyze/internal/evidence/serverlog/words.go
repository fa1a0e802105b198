package serverlog

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// version is the start of b that looks like a version: 0.6.3.post1, 0.14.0rc1.dev3+g12ab.
func version(b []byte) string {
	v := strings.TrimRight(string(versionForm().Find(b)), ".+")
	if !strings.Contains(v, ".") {
		return ""
	}
	return v
}

var (
	versionForm = pattern.New(`^[0-9][0-9a-z.+]{0,47}`)
	// modelWord is the form that Hugging Face gives the names of owners and models.
	modelWord = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$`)
	className = pattern.New(`^[A-Z][A-Za-z0-9_]{0,79}$`)
)

// ModelID is the name of a model without its location: org/name stays, of a path the last part, of a snapshot in
// Hugging Face's cache the model's own name. Empty if none of these is found.
func ModelID(s string) string {
	if strings.Contains(s, "://") || len(s) > 1024 {
		return ""
	}
	s = strings.TrimRight(strings.ReplaceAll(s, `\`, "/"), "/")
	parts := strings.Split(s, "/")
	for _, p := range parts {
		if id, ok := strings.CutPrefix(p, "models--"); ok {
			return ModelID(strings.Replace(id, "--", "/", 1))
		}
	}
	if n := len(parts); n != 2 || parts[0] == "" || parts[0] == "." || parts[0] == ".." || parts[0] == "~" {
		parts = parts[n-1:]
	}
	if slices.ContainsFunc(parts, func(p string) bool { return p == "None" || !modelWord().MatchString(p) }) {
		return ""
	}
	return strings.Join(parts, "/")
}

// listed is a word if a list has it, else empty.
func listed(list []string, s string) string {
	if slices.Contains(list, s) {
		return s
	}
	return ""
}

// listedOrOther is a word if a list has it, "other" if not; empty for the word that says none.
func listedOrOther(list []string, s, none string) string {
	if s == "" || s == none {
		return ""
	}
	return cmp.Or(listed(list, s), "other")
}

var dtypes = []string{"bfloat16", "float16", "float32", "half", "auto", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc",
	"float8_e4m3fn", "float8_e5m2", "uint8", "int8", "fp4_e2m1", "nvfp4"}

func dtype(s string) string { return listed(dtypes, strings.TrimPrefix(s, "torch.")) }

var quantizations = []string{"aqlm", "awq", "deepspeedfp", "tpu_int8", "fp8", "ptpc_fp8", "fbgemm_fp8", "fp_quant",
	"modelopt", "modelopt_fp4", "modelopt_fp8", "modelopt_mixed", "marlin",
	"gguf", "gptq_marlin_24", "gptq_marlin", "gptq_bitblas", "awq_marlin", "gptq", "compressed-tensors", "bitsandbytes",
	"bitblas", "hqq", "qqq", "experts_int8", "neuron_quant", "ipex",
	"quark", "moe_wna16", "torchao", "auto-round", "rtn", "inc", "mxfp4", "mxfp8", "petit_nvfp4", "nvfp4", "w8a8_fp8",
	"w8a8_int8", "w4afp8", "qoq", "blockwise_int8", "squeezellm", "cpu_awq", "cpu_gptq"}

func quantization(s string) string { return listedOrOther(quantizations, s, "None") }

var attentionBackends = []string{"FLASH_ATTN", "FLASHINFER", "XFORMERS", "TRITON_ATTN", "TRITON_ATTN_VLLM_V1",
	"FLASH_ATTN_VLLM_V1", "FLEX_ATTENTION", "FLASHMLA", "FLASHMLA_SPARSE", "CUTLASS_MLA",
	"FLASH_ATTN_MLA", "FLASHINFER_MLA", "TRITON_MLA", "TORCH_SDPA", "TORCH_SDPA_VLLM_V1", "ROCM_FLASH", "ROCM_ATTN",
	"ROCM_AITER_FA", "ROCM_AITER_MLA", "ROCM_AITER_UNIFIED_ATTN", "PALLAS", "TREE_ATTN",
	"DUAL_CHUNK_FLASH_ATTN", "DIFFERENTIAL_FLASH_ATTN", "HPU_ATTN", "IPEX", "FLASHINFER_MLA_SPARSE", "FA3", "FA4",
	"TRITON", "TRTLLM_MLA", "TRTLLM_MHA", "TORCH_NATIVE", "AITER", "ASCEND", "WAVE", "NSA", "DSA", "INTEL_AMX",
	"XPU_ATTN", "CPU_ATTN"}

// attentionBackend is a backend with a known name, in vLLM's current spelling; empty for anything else, since many
// lines begin with "Using".
func attentionBackend(s string) string {
	s = strings.ToUpper(s)
	s = strings.TrimSuffix(strings.TrimSuffix(s, " ATTENTION"), " ATTN")
	switch s {
	case "FLASH", "FLASH ATTENTION", "FLASHATTENTION":
		s = "FLASH_ATTN"
	case "TRITON MLA":
		s = "TRITON_MLA"
	}
	return listed(attentionBackends, strings.TrimPrefix(s, "ATTENTIONBACKENDENUM."))
}

var graphModes = []string{"NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"}

// graphMode is one of vLLM's modes of CUDA graphs, also where it is written as CUDAGraphMode.FULL or
// <CUDAGraphMode.FULL: 2>.
func graphMode(s string) string {
	s = strings.TrimPrefix(strings.Trim(s, "<> `"), "CUDAGraphMode.")
	s, _, _ = strings.Cut(s, ":")
	return listed(graphModes, s)
}

var specMethods = []string{"ngram", "eagle", "eagle3", "mtp", "deepseek_mtp", "medusa", "mlp_speculator", "draft_model",
	"dflash", "suffix", "standalone", "nextn", "ngram_gpu", "lookahead", "qwen3_next_mtp", "ernie_mtp", "mimo_mtp",
	"glm4_moe_mtp", "longcat_flash_mtp"}

func specMethod(s string) string {
	return listedOrOther(specMethods, strings.ToLower(s), "none")
}

var architectureEnds = []string{"ForCausalLM", "ForConditionalGeneration", "ForSequenceClassification",
	"ForRewardModel", "LMHeadModel", "MTP", "Model", "ForEmbedding"}

// architecture is the name of a model's class.
func architecture(b []byte) string {
	s := strings.TrimRight(string(b[:min(len(b), 96)]), ". ")
	ends := func(end string) bool { return strings.HasSuffix(s, end) }
	if !className().MatchString(s) || !slices.ContainsFunc(architectureEnds, ends) {
		return ""
	}
	return s
}
