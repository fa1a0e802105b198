package kernelname

import "strings"

// symbol is a canonical, unqualified name taken apart.
type symbol struct {
	text string   // all of it
	base string   // the function's own name
	args []string // its template arguments
}

// maxArgs bounds how many template arguments are read.
const maxArgs = 64

// parseSymbol takes s apart. The function in "a<…>::b<…>" is b; in "f<…>::operator()::{lambda()#1}", which encloses a
// lambda, it is f.
func parseSymbol(s string) symbol {
	seg := s
	if i := lambdaAt(s); i >= 0 {
		seg = s[:i]
	}
	if i := lastSegment(seg); i > 0 {
		seg = seg[i:]
	}
	sym := symbol{text: s, base: seg}
	if i := strings.IndexByte(seg, '<'); i > 0 && !strings.HasPrefix(seg[i:], anonymous) {
		sym.base = seg[:i]
		sym.args = splitArgs(seg[i+1:])
	}
	return sym
}

// lambdaAt returns where "::{lambda" or "::operator()" follows at the top level, or -1.
func lambdaAt(s string) int {
	return scanTop(s, func(i int) bool {
		return strings.HasPrefix(s[i:], "::{lambda") || strings.HasPrefix(s[i:], "::operator(")
	})
}

// lastSegment returns the index after the last "::" at the top level, or 0.
func lastSegment(s string) int {
	last := 0
	scanTop(s, func(i int) bool {
		if strings.HasPrefix(s[i:], "::") && i+2 < len(s) {
			last = i + 2
		}
		return false
	})
	return last
}

// splitArgs splits s, which follows a "<", at its top-level commas, up to the
// ">" that closes the list or the end.
func splitArgs(s string) []string {
	var args []string
	start := 0
	end := scanTop(s, func(i int) bool {
		switch s[i] {
		case '>':
			return true
		case ',':
			args = append(args, strings.TrimSpace(s[start:i]))
			start = i + 1
			return len(args) == maxArgs
		}
		return false
	})
	if end < 0 {
		end = len(s)
	}
	if start < end {
		args = append(args, strings.TrimSpace(s[start:end]))
	}
	return args
}

// scanTop calls f for each index that is inside no bracket, until f returns true; it returns that index, or -1.
func scanTop(s string, f func(i int) bool) int {
	depth := 0
	for i := range len(s) {
		if depth == 0 && f(i) {
			return i
		}
		switch s[i] {
		case '<', '(', '{', '[':
			depth++
		case '>', ')', '}', ']':
			if depth > 0 {
				depth--
			}
		}
	}
	return -1
}

// unwrap returns the kernel that a generic entry point runs, which stands in its template arguments:
// "Kernel2<cutlass_80_…>" and "device_kernel<FlashAttnFwdSm90<…>>".
func (y symbol) unwrap() symbol {
	for range 3 {
		if len(y.args) == 0 || !isWrapper(y.base) {
			break
		}
		inner := parseSymbol(y.args[0])
		if inner.base == "" || isDigit(inner.base[0]) {
			break
		}
		y = inner
	}
	return y
}

// ownName returns the kernel's name with its namespaces but without template arguments, and the name alone. For a
// generic entry point they are those of the kernel that it runs.
func ownName(s string) (head, base string) {
	y := parseSymbol(s).unwrap()
	s = y.text
	if i := lambdaAt(s); i >= 0 {
		s = s[:i]
	}
	own := make([]byte, 0, 64)
	scanTop(s, func(i int) bool {
		if strings.IndexByte("<({[", s[i]) < 0 {
			own = append(own, s[i])
		}
		return false
	})
	return string(own), y.base
}

func isWrapper(base string) bool {
	switch base {
	case "Kernel", "Kernel2", "device_kernel", "_kernel_agent":
		return true
	}
	return strings.HasPrefix(base, "enable_sm") // of vLLM and FlashAttention: enable_sm100f_only, enable_sm89_to_sm90
}

// work is the operation that an ATen wrapper (elementwise_kernel, reduce_kernel) applies.
type work struct {
	name  string // "MulFunctor", "direct_copy", "sum_functor"
	dtype string // as spelled: "float", "BFloat16"; "" if the name does not say
	form  string // "scalar" if one operand is a constant
	nth   string // lambda number if it is not 1
}

// maxNest bounds how deep functors are followed.
const maxNest = 8

// applied returns the operation that the template argument s applies.
func applied(s string, depth int) work {
	y := parseSymbol(s)
	if depth >= maxNest {
		return work{name: y.base}
	}
	n := len(y.args)
	switch base := y.base; {
	case n > 0 && (strings.HasPrefix(base, "gpu_") || strings.HasPrefix(base, "opmath_")):
		return applied(y.args[0], depth+1)
	case n >= 2 && (base == "ReduceOp" || base == "func_wrapper_t"):
		w := applied(y.args[1], depth+1)
		w.dtype = y.args[0]
		return w
	case n == 4 && (base == "BinaryFunctor" || base == "AUnaryFunctor" || base == "BUnaryFunctor"):
		w := applied(y.args[3], depth+1)
		w.dtype = y.args[0]
		if base != "BinaryFunctor" {
			w.form = "scalar"
		}
		return w
	}
	w := work{name: trimImpl(y.base)}
	if n > 0 {
		w.dtype = y.args[0]
	}
	if params, nth, ok := lastLambda(s); ok {
		t, rest, _ := strings.Cut(params, ", ")
		if t == "bool" && rest != "" { // where's condition
			t, _, _ = strings.Cut(rest, ", ")
		}
		if t != "" && !strings.HasPrefix(t, "curandState") {
			w.dtype = t
		}
		if nth != "1" {
			w.nth = "#" + nth
		}
	}
	return w
}

// trimImpl cuts the suffixes that ATen gives the host functions around lambdas.
func trimImpl(s string) string {
	for _, suffix := range []string{"_kernel_cuda", "_kernel_impl", "CUDAKernelImpl", "_cuda_out", "_kernel", "_cuda"} {
		if t, ok := strings.CutSuffix(s, suffix); ok && t != "" {
			return t
		}
	}
	return s
}

// lastLambda returns the parameters and number of the innermost lambda of s.
func lastLambda(s string) (params, nth string, ok bool) {
	const head = "{lambda("
	i := strings.LastIndex(s, head)
	if i < 0 {
		return "", "", false
	}
	params, rest, _ := strings.Cut(s[i+len(head):], ")#")
	nth, _, ok = strings.Cut(rest, "}")
	return params, nth, ok
}

// isATenWrapper reports whether base applies a functor given as an argument.
func isATenWrapper(base string) bool {
	return strings.Contains(base, "elementwise_kernel") || base == "reduce_kernel" ||
		base == "distribution_elementwise_grid_stride_kernel" || base == "multi_tensor_apply_kernel"
}

// work returns the operation that an ATen wrapper applies: its first argument that is not a number, a plain type or one
// of the wrapper's own helpers.
func (y symbol) work() (work, bool) {
	if !isATenWrapper(y.base) {
		return work{}, false
	}
	for i, a := range y.args {
		b := parseSymbol(a)
		if b.base == "" || isDigit(b.base[0]) || b.base[0] == '-' || isPlainType(a) {
			continue
		}
		switch b.base {
		case "array", "Array", "TrivialOffsetCalculator", "OffsetCalculator", "TensorListMetadata",
			"TensorListScalarListMetadata", "FusedOptimizerTensorListMetadata":
			continue
		}
		w := applied(a, 0)
		if y.base == "_scatter_gather_elementwise_kernel" && len(b.args) > 0 {
			w.name = scatterOrGather(a, &b)
		}
		if strings.Contains(w.dtype, "*") || y.base == "_scatter_gather_elementwise_kernel" ||
			y.base == "index_elementwise_kernel" {
			w.dtype = "" // addresses or indexes: of what, the name does not say
		}
		if y.base == "multi_tensor_apply_kernel" && i+1 < len(y.args) {
			op := parseSymbol(y.args[i+1])
			if !isPlainType(strings.TrimRight(y.args[i+1], "*")) && op.base != "" && !isDigit(op.base[0]) {
				w.name += ":" + op.base
			}
		}
		return w, true
	}
	return work{}, false
}

// scatterOrGather names what ATen's "…_kernel<is_scatter_like, T>::operator()<op>" does: gather, scatter or
// scatter:ReduceAdd; or "…_fill_…_kernel<T>::operator()<op>", which writes one value: scatter_fill.
func scatterOrGather(s string, y *symbol) string {
	name := "scatter"
	switch {
	case strings.Contains(y.base, "_fill"):
		name = "scatter_fill"
	case y.args[0] == "0":
		return "gather"
	}
	_, op, _ := strings.Cut(s, "::operator()<")
	op, _, _ = strings.Cut(op, ">")
	if op == "" || op == "TensorAssign" {
		return name
	}
	return name + ":" + op
}

// Function is the kernel function's own name, without namespaces, template arguments and parameters, as ncu prints it
// with --print-kernel-base function. Many kernels may share one.
func Function(name string) string { return parseSymbol(Unqualified(name)).base }
