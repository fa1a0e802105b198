// Package kernelname reads the names in a trace. For a kernel it gives the kind of work, the library, and the spelling
// under which it is grouped and paired (Classify, Canonical); for NVTX ranges and the step markers of inference engines
// see AppendRangeCanonical, RangeComponent, ParseMarker and BuiltinPhase.
//
// Everything here is a pure function of a string. A name is evidence, not proof: if it does not tell, the kernel stays
// "other" or "gemm", and nothing is guessed.
package kernelname

import (
	"cmp"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/wording"
)

// Category is the kind of work a kernel does.
type Category string

// The categories, in the order in which rules are tried.
const (
	Comm       Category = "comm"        // collectives, point to point, expert dispatch
	Memory     Category = "memory"      // copies, fills, layout changes
	KVCache    Category = "kv_cache"    // reads and writes of the paged KV cache
	Attention  Category = "attention"   // softmax attention, its split-KV reductions and indexers
	LinearAttn Category = "linear_attn" // state space models, gated delta rule, causal conv1d
	MoEGEMM    Category = "moe_gemm"    // matrix products grouped by expert
	MoERoute   Category = "moe_route"   // gating, permuting to experts and back
	GEMM       Category = "gemm"        // matrix products and convolutions, split-K reductions
	Norm       Category = "norm"        // layer, RMS, group norm, fused adds included
	Rope       Category = "rope"        // rotary embedding
	Activation Category = "activation"  // silu, gelu, their gated forms
	Quant      Category = "quant"       // quantising, dequantising, scale layouts
	Sampling   Category = "sampling"    // logits to token: top-k/p, sorting, penalties
	// A softmax by itself: the name does not say whether of attention, router, loss or sampler
	Softmax     Category = "softmax"
	Prepare     Category = "prepare"     // inputs of a step: gathers, embeddings, index arithmetic
	Reduce      Category = "reduce"      // reductions, scans, sorts of no other category
	Elementwise Category = "elementwise" // pointwise arithmetic
	Triton      Category = "triton"      // compiled by Triton, purpose unknown
	Other       Category = "other"       // the name does not say
)

// Categories lists them all, in that order.
var Categories = []Category{
	Comm, Memory, KVCache, Attention, LinearAttn, MoEGEMM, MoERoute, GEMM, Norm, Rope, Activation, Quant, Sampling,
	Softmax, Prepare, Reduce, Elementwise, Triton, Other,
}

// Named reports whether the category names a kind of work.
func (c Category) Named() bool { return c != Other && c != Triton }

// Components of a transformer, as far as names tell them.
const (
	CompAttention   = "attention"
	CompFFN         = "ffn"
	CompMoE         = "moe"
	CompGEMM        = "gemm" // a matrix product: of which part, its name does not say
	CompNorm        = "norm"
	CompEmbedding   = "embedding"
	CompSampling    = "sampling"
	CompComm        = "communication"
	CompKVCache     = "kv_cache"
	CompRope        = "rope"
	CompQuant       = "quant"
	CompElementwise = "elementwise"
	CompMemory      = "memory"
	CompOther       = "other"
)

// Info is what the name of a kernel tells.
type Info struct {
	Category   Category
	Weak       bool   // Category comes only from a word that other kernels also have
	Library    string // who wrote it, see libraries
	Component  string // a Comp constant; a kernel fused of several parts has its first
	Comm       bool   // Category is Comm
	Collective string // AllReduce, AllGather, …: a Coll constant; "" unless Comm
	Canonical  string // grouping key, see Canonical
	Family     string // library/operation[/dtype]: equal for tile variants of one operation
	Display    string // at most 60 runes, for people; distinct kernels may rarely share one
}

// maxRead bounds how many bytes of a name rules look at. Names state their work early; very long names are hostile.
const maxRead = 8 << 10

// Classify returns what name tells. Call it once per distinct name: a long one takes a few tens of microseconds.
func Classify(name string) Info { return classify(name, (*view).rule) }

// ClassifyAs is Classify for a kernel whose category is known otherwise.
func ClassifyAs(name string, category Category) Info {
	return classify(name, func(*view) *rule { return &rule{cat: category} })
}

func classify(name string, ruleOf func(*view) *rule) Info {
	info := Info{Canonical: Canonical(name)}
	v := newView(name, info.Canonical)
	r := ruleOf(&v)
	info.Category, info.Component, info.Weak = r.cat, r.component(), r.weak
	info.Library = v.library()
	if info.Category == Comm {
		info.Comm = true
		info.Collective = cmp.Or(firstOf(collectives, v.text), CollOther)
	}
	info.Family = v.family(info)
	info.Display = v.display(info.Canonical)
	return info
}

// view is a name in the forms that rules and renderers read.
type view struct {
	name string // as it came
	raw  string // the same in lower case, for the parts that Canonical drops
	text string // lower case, canonical
	sym  symbol // canonical, unqualified, taken apart
	// The kernel's own name and its namespaces, without template arguments, and that name alone: see words
	words, base string
	head        string // the name and its namespaces as spelled
}

func newView(name, canonical string) view {
	name, canonical = clip(name, maxRead), clip(canonical, maxRead)
	told := told(canonical)
	v := view{
		name: name,
		raw:  lower(name),
		text: lower(told),
		sym:  parseSymbol(unqualify(canonical)),
	}
	head, base := ownName(told)
	v.head, v.words, v.base = head, words(head), words(base)
	return v
}

// told is the work that a canonical name tells. The suffix that CuTe DSL appends to the class is the layout of its
// operands (…Kernel_object_at__CopyAtom_…), and neither Gemma, a model, nor FBGEMM, a library, is a "gemm".
func told(canonical string) string {
	if i := strings.Index(canonical, "_object_at_"); i > 0 {
		canonical = canonical[:i]
	}
	return noGemm.Replace(canonical)
}

var noGemm = strings.NewReplacer("gemma", "gema", "Gemma", "Gema", "fbgemm", "fbgm")

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// lower is strings.ToLower for ASCII: byte offsets stay.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] |= 0x20
		}
	}
	return string(b)
}

// maxDisplay is the length of Info.Display, in runes.
const maxDisplay = 60

// display returns a short form of the name: without namespaces; generic wrappers are replaced by the code that they
// run, ATen's by the function that they apply.
func (v view) display(canonical string) string {
	y := v.sym.unwrap()
	if w, ok := v.sym.work(); ok {
		return shorten(v.sym.wrapperName() + "<" + w.String() + ">")
	}
	name := y.base
	switch {
	case name == "" || strings.ContainsAny(name, "[("):
		return shorten(canonical)
	case v.isGemvx(y):
		name = "gemv_kernel"
	case strings.Contains(name, "_xmma_"):
		name = xmmaNoise.Replace(name)
	case strings.HasPrefix(name, "cudnn_generated_"):
		name = cudnnNoise.Replace(name)
	}
	if len(y.args) == 0 {
		return shorten(name)
	}
	return shorten(name + "<" + strings.Join(y.args, ", ") + ">")
}

// String returns "scalar MulFunctor<float>#2".
func (w work) String() string {
	s := w.name
	if w.form != "" {
		s = w.form + " " + s
	}
	if w.dtype != "" {
		s += "<" + w.dtype + ">"
	}
	return s + w.nth
}

// wrapperName returns "vectorized_elementwise" of "vectorized_elementwise_kernel".
func (y symbol) wrapperName() string {
	if y.base == "distribution_elementwise_grid_stride_kernel" {
		return "distribution"
	}
	return strings.Replace(y.base, "_kernel", "", 1)
}

// xmmaNoise is the text that all variants of xmma kernels share.
var xmmaNoise = strings.NewReplacer(
	"_tilesize", "_", "_stage", "_s", "_warpsize1x2x1", "", "_warpsize1x4x1", "", "_warpsize2x2x1", "",
	"_warpsize2x1x1", "", "_warpsize4x1x1", "",
	"_ffma", "", "_aligna4", "", "_alignc4", "", "_aligna8", "", "_alignc8", "", "_execute_split_k_kernel", "_splitk",
	"_execute_kernel", "", "__5x_cublas", "")

// cudnnNoise is the text that the kernels that cuDNN generates share: without it, forward and backward differ.
var cudnnNoise = strings.NewReplacer("cudnn_generated_fort_native_", "", "cudnn_generated_oss_", "", "_cga1x1x1", "",
	"_kernel0_0", "")

// shorten keeps the start and the end of s, where tile shapes and flags tell variants apart.
func shorten(s string) string { return wording.ShortenTo(s, maxDisplay, 26) }
