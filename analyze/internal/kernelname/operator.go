package kernelname

import (
	"regexp"
	"strings"
)

// Operator returns the operator of PyTorch that a range stands for, and whether it stands for one: a name of the form
// namespace::name ("aten::mm", "c10d::allreduce_", "flash_attn::_flash_attn_forward"), which begins in lower case, or
// the node of the backward pass after "autograd::engine::evaluate_function: ". The suffix that emit_nvtx writes
// (sequence number, op_id, sizes) is not part of it.
//
// Other libraries have ranges of this form too: it is certainly an operator only if the same process has an aten::
// range.
func Operator(text string) (op string, ok bool) {
	op, _, _ = strings.Cut(text, ",")
	return op, strings.Contains(op, "::") && operator.MatchString(op)
}

const backwardNode = "autograd::engine::evaluate_function: "

var operator = regexp.MustCompile(`^(?:` + backwardNode + `[A-Za-z_]\w*|[a-z_]\w*(?:::[A-Za-z_]\w*)+)$`)
