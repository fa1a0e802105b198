package kernelname

import (
	"strings"

	"github.com/nsys-llm/explain/analyze/report/wording"
)

// maxDisplay is the length of Info.Display, in runes.
const maxDisplay = 60

// display returns a short form of the name: no namespaces, generic wrappers
// replaced by what they run, ATen's by what they apply.
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

// xmmaNoise is what all variants of xmma kernels share.
var xmmaNoise = strings.NewReplacer(
	"_tilesize", "_", "_stage", "_s", "_warpsize1x2x1", "", "_warpsize1x4x1", "", "_warpsize2x2x1", "",
	"_warpsize2x1x1", "", "_warpsize4x1x1", "",
	"_ffma", "", "_aligna4", "", "_alignc4", "", "_aligna8", "", "_alignc8", "", "_execute_split_k_kernel", "_splitk",
	"_execute_kernel", "", "__5x_cublas", "")

// shorten keeps the start of s and the end, where tile shapes and flags tell variants apart.
func shorten(s string) string { return wording.ShortenTo(s, maxDisplay, 26) }
