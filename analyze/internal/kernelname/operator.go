package kernelname

import "strings"

// Operator returns the operator of PyTorch that a range stands for, and whether it stands for one: a name of the form
// namespace::name ("aten::mm", "c10d::allreduce_", "flash_attn::_flash_attn_forward"), which begins in lower case, or
// the node of the backward pass after "autograd::engine::evaluate_function: ". The suffix that emit_nvtx writes
// (sequence number, op_id, sizes) is not part of it.
//
// Other libraries have ranges of this form too: it is certainly an operator only if the same process has an aten::
// range.
func Operator(text string) (op string, ok bool) {
	if i := strings.IndexByte(text, ','); i >= 0 {
		text = text[:i]
	}
	if node, found := strings.CutPrefix(text, backwardNode); found {
		return text, isIdentifier(node)
	}
	space, name, found := strings.Cut(text, "::")
	if !found || !isIdentifier(space) || space[0] >= 'A' && space[0] <= 'Z' {
		return "", false
	}
	for part := range strings.SplitSeq(name, "::") {
		if !isIdentifier(part) {
			return "", false
		}
	}
	return text, true
}

const backwardNode = "autograd::engine::evaluate_function: "

func isIdentifier(s string) bool {
	return s != "" && !isDigit(s[0]) && run(s, func(c byte) bool { return isAlnum(c) || c == '_' }) == len(s)
}
