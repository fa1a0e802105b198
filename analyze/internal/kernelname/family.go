package kernelname

import (
	"slices"
	"strings"
)

// family returns "library/operation[/dtype]": what stays when an autotuner or a
// heuristic swaps tile shapes, stages, clusters, split-K or vector width. A type
// that the name does not tell is left out.
func (v view) family(info Info) string {
	y := v.sym.unwrap()
	op, dtype := v.operation(info, y)
	if op == "" {
		op = string(info.Category)
	}
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
	case info.Category == MoEGEMM:
		return v.moeOp(), v.gemmType(y)
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
	dtype = typeNamed(y.text)
	if dtype == "" {
		dtype = flatType(name)
	}
	if dtype == "" && info.Library == libATen && len(y.args) > 0 && isPlainType(y.args[0]) {
		dtype = dtypeOf(y.args[0])
	}
	return trimTiles(y.base), dtype
}

// gemmOp tells a product from what goes with it.
func (v view) gemmOp(y symbol) string {
	name := lower(y.base)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(name, w) })
	}
	switch {
	case has("splitkreduce", "splitk_reduce"):
		return "splitk_reduce"
	case has("gemv", "dot_kernel") || v.isGemvx(y):
		return "gemv"
	case has("fprop", "dgrad", "wgrad", "conv1d", "conv2d", "conv3d", "convolve", "winograd"):
		return "conv"
	}
	return "gemm"
}

// isGemvx reports whether y is cuBLAS's internal::gemvx::kernel, whose own name
// says nothing.
func (v view) isGemvx(y symbol) bool {
	return y.base == "kernel" && strings.Contains(v.text, "gemv")
}

func (v view) moeOp() string {
	if strings.Contains(v.text, "swiglu") {
		return "moe_gemm_swiglu" // gate and up projection; the one without is down
	}
	return "moe_gemm"
}

// fmhaType reads the type after "qkv" or "q" of fmhasm100fkernel_qkve4m3obfloat16….
func fmhaType(name string) string {
	_, rest, _ := strings.Cut(name, "_q")
	t, _ := leadingType(strings.TrimPrefix(rest, "kv"))
	return t
}

// trimTiles drops the parts of a flat name that give a tile's shape.
func trimTiles(name string) string {
	if !strings.Contains(name, "x") {
		return name
	}
	kept := make([]string, 0, 8)
	for part := range strings.SplitSeq(name, "_") {
		if !isTile(part) {
			kept = append(kept, part)
		}
	}
	if len(kept) == 0 {
		return name
	}
	return strings.Join(kept, "_")
}

// isTile reports whether part reads 64x64, 128x128x8 and the like.
func isTile(part string) bool {
	crosses := 0
	for i := range len(part) {
		switch c := part[i]; {
		case isDigit(c):
		case c == 'x' && i > 0 && isDigit(part[i-1]) && i+1 < len(part):
			crosses++
		default:
			return false
		}
	}
	return crosses > 0
}
