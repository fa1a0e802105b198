package kernelname

import "testing"

func TestOperator(t *testing.T) {
	for text, want := range map[string]string{
		"aten::mm":                                 "aten::mm",
		"aten::mm, seq = 0, op_id = 5":             "aten::mm",
		"aten::mm, seq = #, sizes = [[#, #], [#]]": "aten::mm",
		"aten::_softmax_backward_data, op_id = 12": "aten::_softmax_backward_data",
		"c10d::alltoall_base_":                     "c10d::alltoall_base_",
		"flash_attn::_flash_attn_forward":          "flash_attn::_flash_attn_forward",
		"_C::rms_norm":                             "_C::rms_norm",
		"torch::jit::fused":                        "torch::jit::fused",
		backwardNode + "MmBackward0, op_id = 3":    backwardNode + "MmBackward0",
		"":                                         "",
		"mm":                                       "",
		"aten::":                                   "",
		"::mm":                                     "",
		"aten::mm forward":                         "",
		"FSDP::post_forward (blocks.2)":            "",
		"ExpressionEvaluator::evaluate":            "",
		"transform_replay.cpp::getMatchedLeafPos":    "",
		"nccl:all_to_all":                            "",
		"TransformReplay::replayCasP":                "",
		"2d::conv":                                   "",
		"GpuLower::Lower::ThreadPredicateMap::build": "",
	} {
		if got, ok := Operator(text); got != want && ok || ok != (want != "") {
			t.Errorf("Operator(%q) = %q, %v, want %q", text, got, ok, want)
		}
	}
}
