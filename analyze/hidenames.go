package analyze

import (
	"crypto/sha256"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// plainWords are words that say nothing about the author of a name: those of engines' step markers, and those that a
// report recognises.
var plainWords = lists.Set(strings.Fields(`all allgather allreduce attention attn autograd aten backward batch batchdecode batchdraft batchjumpforward
	batchprefill batchverify block bs c cached context cpu ctx cudagraph cuda d decode decoder decoding diffusion draft dspark dummy eager embed
	embedding encoder engine evaluate execute executecontext executor extend expert experts ffn for forward function g gen generation getting
	gil gpu head holding i idle in inner inter is it iter iteration iterations l layer layernorm layers len linear llm lm m mixed mlp mm
	model moe n nccl ncclallgather ncclallreduce ncclbroadcast ncclreducescatter new norm num o of only optimizer out output p
	page pp prebuilt prefill profilerstep proj q k v qkv r recv reduce reduced reqs request requests rms rmsnorm rope router run runner s
	sample sampler sampling schedule scheduler self send seq seqs sk softmax sp spec sq sqsk sqsq step t target tok token tokens toks topk
	total tp train verify waiting warmup x zero grad`), func(word string) string { return word })

var (
	letterRun  = regexp.MustCompile(`[\pL\pM]+`)
	longNumber = regexp.MustCompile(`[0-9]{7}`) // may be of a person
	// ownOperator matches an operator of PyTorch and what emit_nvtx appends to it, except for arguments.
	ownOperator = regexp.MustCompile(`^(?:aten|c10d|prims)::\w+(?:, (?:seq|op_id) = \d+)*$`)
)

// HideNames replaces a name by 12 letters that are derived from it. Names that keep matches stay as they are; nil keeps
// none. Names that differ only in counters get the same letters, as they have the same name in a report. A reader who
// guesses a name can check whether the guess is right.
//
// Whatever a report recognises stays recognisable: step markers of engines with their numbers, names made only of words
// that they use, PyTorch's own operators, and whether a name belongs to a library. Other names keep, after their
// letters, the part of a model or the phase that the name tells.
func HideNames(keep *regexp.Regexp) func(name string) string {
	hidden := map[string]string{}
	return func(name string) string {
		if keep != nil && keep.MatchString(name) || ownOperator.MatchString(name) {
			return name
		}
		if _, marker := kernelname.ParseMarker(name); marker || onlyPlain(name) {
			return letterRun.ReplaceAllStringFunc(name, func(word string) string {
				if plainWords[strings.ToLower(word)] || marker && layerKeys[word] {
					return word
				}
				return letters(word)
			})
		}
		key := string(kernelname.AppendRangeCanonical(nil, name))
		text, ok := hidden[key]
		if !ok {
			if text = disguise(key, name); len(hidden) < 1<<20 {
				hidden[key] = text
			}
		}
		return text
	}
}

// layerKeys are what the markers of layer hooks have around a module and its inputs.
var layerKeys = map[string]bool{"Module": true, "Inputs": true}

func onlyPlain(name string) bool {
	telling := func(word string) bool { return !plainWords[strings.ToLower(word)] }
	return !slices.ContainsFunc(letterRun.FindAllString(name, -1), telling) &&
		strings.Trim(name, "0123456789") != "" && !longNumber.MatchString(name)
}

// letters derives 12 letters from a text: digits would be read as a counter.
func letters(text string) string {
	sum := sha256.Sum256([]byte(text))
	b := make([]byte, 12)
	for i := range b {
		b[i] = 'a' + sum[i]%26
	}
	return string(b)
}

// disguise is the letters of a name, from its canonical form, followed by words for its part of a model and its phase,
// chosen so that both are read from the result again.
func disguise(key, name string) string {
	component, phase := kernelname.RangeComponent(name), kernelname.BuiltinPhase(name)
	tail := ""
	if word := partWords[component]; word != "" {
		tail = "_" + word
	}
	if phase == "mixed" {
		tail = "_prefill_decode" + tail
	} else if phase != "" {
		tail = "_" + phase + tail
	}
	head := libraryOf(name)
	for salt := 0; ; salt++ {
		text := head + letters(key) + tail
		if salt == 8 || kernelname.RangeComponent(text) == component && kernelname.BuiltinPhase(text) == phase {
			return text
		}
		key += strconv.Itoa(salt) // the letters happen to be a word
	}
}

// libraryOf is the beginning of the hidden form of a name whose own beginning shows that a library or PyTorch wrote it.
func libraryOf(name string) string {
	const backward = "autograd::engine::evaluate_function: "
	op, operator := kernelname.Operator(name)
	switch {
	case strings.HasPrefix(name, backward):
		return backward
	case operator:
		space, _, _ := strings.Cut(op, "::")
		return letters(space) + "::"
	case workunit.Library(name) != "":
		return workunit.Library(name)
	case strings.Contains(name, "::"):
		return "X::" // no operator: those begin in lower case
	}
	return ""
}

// partWords are words for parts of a model.
var partWords = map[string]string{kernelname.CompAttention: "attn", kernelname.CompMoE: "moe",
	kernelname.CompFFN: "mlp", kernelname.CompNorm: "norm", kernelname.CompEmbedding: "embed"}

// ncclKernel matches the names of NCCL's own kernels, which are public.
var ncclKernel = regexp.MustCompile(`^nccl(?:Dev)?Kernel_[A-Z]\w*(?:\(|$)`)

// HideKernels replaces the name of a kernel by letters, as [HideNames] does that of a range. Names that keep matches
// and those of NCCL's kernels stay. Beside the letters stand words from which a report reads the same library,
// category, part of the model and collective, so that the copy's times of them are the same; precision and tile are
// gone.
func HideKernels(keep *regexp.Regexp) func(name string) string {
	hidden := map[string]string{}
	return func(name string) string {
		if keep != nil && keep.MatchString(name) || ncclKernel.MatchString(name) {
			return name
		}
		is := kernelname.Classify(name)
		text, ok := hidden[is.Canonical]
		if !ok {
			if text = disguiseKernel(&is); len(hidden) < 1<<20 {
				hidden[is.Canonical] = text
			}
		}
		return text
	}
}

// libraryHeads are beginnings of names by which a library is known, the least telling first.
var libraryHeads = map[string]string{"unknown": "X::",
	"triton-inductor": "triton__ triton_poi_fused_ triton_red_fused_ triton_tem_fused_ triton_mm_",
	"triton-jit":      " triton_ matmul_ogs_", "nccl": "nccl", "cuda": "memcpy_ memset_",
	"nvfuser": "nvfuser_ nvfuser_inner_", "deepep": "deep_ep:: deepep_ deepep_permute_",
	"nvshmem": "nvshmem_", "flashinfer": "flashinfer:: flashinfer_", "tensorrt-llm": "tensorrt_llm:: trtllm_",
	"vllm":     "vllm:: vllm_",
	"marlin":   "marlin:: marlin_ marlin_repack_",
	"deepgemm": "deep_gemm:: deep_gemm::transpose_ deepgemm_permute_", "flash-mla": "flash_mla:: flash_mla_",
	"flash-attention": "flash:: flash_fwd_", "sglang": "sglang:: sgl_", "cudnn": "cudnn:: cudnn_",
	"cublas": "ampere_ cublas::", "cupy": "cupy_", "aten": "aten:: aten_",
	"transformer-engine": "transformer_engine::", "cutlass": "cute:: cutlass_", "cub": "cub:: thrust::", "tensile": "cijk_"}

// categoryTails are ends of names by which a category is known, in all its parts of a model and its collectives. The
// last of most are words that other kernels have too.
var categoryTails = map[kernelname.Category]string{
	kernelname.Comm: "_allreduce _allgather _reducescatter _alltoall _p2p_broadcast _p2p_sendrecv _p2p_barrier " +
		"_p2p_reduce _p2p",
	kernelname.Memory: "_direct_copy_kernel _nchwtonhwc _slice", kernelname.KVCache: "_kv_cache _kv",
	kernelname.Attention:  "_attention _qk",
	kernelname.LinearAttn: "_linear_attn _decay", kernelname.MoEGEMM: "_moe_gemm",
	kernelname.MoERoute: "_moe_route _routed", kernelname.GEMM: "_gemm _qkv",
	kernelname.Norm: "_norm _variance", kernelname.Rope: "_rope",
	kernelname.Activation: "_silu_and_mul _activation _doactivation _gated",
	kernelname.Quant:      "_quant _nibble", kernelname.Sampling: "_sampling _vocab", kernelname.Softmax: "_softmax",
	kernelname.Prepare: "_prepare _embedding _tokens",
	kernelname.Reduce:  "_reduce _sum", kernelname.Elementwise: "_elementwise _hc", kernelname.Triton: "",
	kernelname.Other: "Kernel"}

// disguiseKernel is letters of a kernel's canonical name between words from which a report reads what it read before:
// of all heads and tails the first that change nothing, else those that change least.
func disguiseKernel(is *kernelname.Info) (best string) {
	heads, tails := strings.Split(libraryHeads[is.Library], " "), strings.Split(categoryTails[is.Category], " ")
	most, key := -1, is.Canonical
	for salt := 0; salt < 3; salt++ { // the letters may happen to be a word
		for _, tail := range tails {
			for _, head := range append(heads, "X::", "") {
				text := head + letters(key) + tail
				if kept := alike(is, text); kept > most {
					best, most = text, kept
				}
				if most == alikeAll {
					return best
				}
			}
		}
		key += strconv.Itoa(salt)
	}
	return best
}

const alikeAll = 63

// alike weighs what a name tells as the one that is hidden does: its category most, its library less than its part.
func alike(is *kernelname.Info, text string) (kept int) {
	again := kernelname.Classify(text)
	for i, same := range []bool{again.Weak == is.Weak,
		kernelname.ConvertsLayout(text) == kernelname.ConvertsLayout(is.Canonical),
		again.Library == is.Library, again.Component == is.Component, again.Collective == is.Collective,
		again.Category == is.Category} {
		if same {
			kept += 1 << i
		}
	}
	return kept
}
