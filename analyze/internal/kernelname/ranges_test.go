package kernelname

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestRangeCanonicalDropsCountersAndKeepsNames(t *testing.T) {
	for in, want := range map[string]string{
		// PyTorch's emit_nvtx
		"aten::mm, seq = 45536, op_id = 991473":                                    "aten::mm",
		"aten::copy_, op_id = 990350":                                              "aten::copy_",
		"aten::mm, op_id = 7, sizes = [[16, 4096], [4096, 128]]":                   "aten::mm, sizes = [[#, #], [#, #]]",
		"FSDP::pre_forward (blocks.10._checkpoint_wrapped_module), op_id = 994113": "FSDP::pre_forward (blocks.10._checkpoint_wrapped_module)",
		"AllToAll4D, seq = 46286, op_id = 993812":                                  "AllToAll4D",
		"c10d::alltoall_base_, op_id = 1000037":                                    "c10d::alltoall_base_",
		// counters at the end
		"token_17":           "token_#",
		"layer12, op_id = 3": "layer#",
		"Warm-up Step 1":     "Warm-up Step #",
		"NCCLproxy     0":    "NCCLproxy     #",
		"model.layers.31":    "model.layers.#",
		"ProfilerStep#12":    "ProfilerStep#",
		"iteration 3.5":      "iteration #",
		"request 0x7f3a12bc": "request #",
		"T1024":              "T#",
		"i7":                 "i7", // a word of one letter and a digit is a name
		"forward ":           "forward",
		// names that end in a number
		"cublasCreate_v2": "cublasCreate_v2",
		"to_fp16":         "to_fp16",
		"cast int8":       "cast int8",
		"quantize_nvfp4":  "quantize_nvfp4",
		"t5":              "t5",
		// counters inside
		"step_12_decode":                             "step_#_decode",
		"Step12 forward":                             "Step# forward",
		"epoch 2 of 9":                               "epoch # of #",
		"batch=8 len=1024 mode=fast":                 "batch=# len=# mode=fast",
		"iter 12 took 1.25 ms":                       "iter # took # ms",
		"req 3f2a9b1c-7d2e-4a6b-9c11-0123456789ab x": "req # x",
		"chatcmpl-0a1b2c3d4e5f60718293a4b5c6d7e8f9":  "chatcmpl-#",
		"alloc 0xdeadbeef bytes":                     "alloc # bytes",
		"kv_block_123456_copy":                       "kv_block_#_copy",
		// modules and names stay apart
		"model.layers.10.mlp":         "model.layers.10.mlp",
		"encoder.block.0.layer.1 fwd": "encoder.block.0.layer.1 fwd",
		"layer_12_attn":               "layer_12_attn",
		"3D_backbone":                 "3D_backbone",
		"conv2d forward":              "conv2d forward",
		"":                            "",
		"no digits, seq = x":          "no digits, seq = x",
		"a, seq = 12b":                "a, seq = 12b",
		// step markers
		"execute_context_2(14721)_generation_3(3)":                                           "execute_context_2(14721)_generation_3(3)",
		"execute_64_context_0(sq0sk0sqsq0sqsk0)_generation_64(sq64sk131072sqsq64sqsk131072)": "execute_64_context_0(sq0sk#sqsq#sqsk#)_generation_64(sq64sk#sqsq#sqsk#)",
		"step[DECODE bs=8 toks=8]":                                                           "step[DECODE bs=8 toks=8]",
		"step[DECODE bs=64 g_sq=128 g_sqsq=256 g_sqsk=262144 g_sk=131072]":                   "step[DECODE bs=64 g_sq=128 g_sqsq=# g_sqsk=# g_sk=#]",
		"[Executor] _forward_step 60000: 0 ctx reqs, 0 ctx tokens, 32 gen reqs":              "[Executor] _forward_step #: 0 ctx reqs, 0 ctx tokens, 32 gen reqs",
		"[Executor] _forward_step: 2 ctx reqs, 3 gen reqs":                                   "[Executor] _forward_step: 2 ctx reqs, 3 gen reqs",
		"prefill[bs=6 tok=17408 ctx=[4096, 4096, 4096]...+3]":                                "prefill[bs=6 tok=17408 ctx=#]",
		"decode[bs=117/128 tok=117 d=117]":                                                   "decode[bs=117/128 tok=117 d=117]",
		"LLM@decode_all":                                                                     "LLM@decode_all",
		"step[17]":                                                                           "step[#]", // begins like a marker and is none
		"execute_context_7":                                                                  "execute_context_#",
	} {
		got := rangeCanonical(in)
		if got != want {
			t.Errorf("rangeCanonical(%q) = %q, want %q", in, got, want)
		}
		if again := rangeCanonical(got); again != got {
			t.Errorf("rangeCanonical(%q) = %q: not idempotent", got, again)
		}
	}
}

func TestRangeCanonicalIsIdempotent(t *testing.T) {
	part := rapid.SampledFrom([]string{
		"aten::mm", "layer", "step", "iter", "id", "v", "fp", "int", "_", ".", " ", ",", "=", "#", "[", "]", "(", ")", "-", "/", ":", "0x", "x", "a", "f", "é",
		"0", "1", "12", "123", "4567", "3f2a9b1c", "-7d2e", ", seq = 4", ", op_id = 56", ", seq = ", "execute_context_1(2)_generation_3(4)", "step[DECODE bs=", "ProfilerStep#",
		"[Executor] _forward_step ", ": 1 ctx reqs, ", "2 gen reqs", "prefill[bs=1 ", "ctx=[1, 2]", "sk", "sqsq", "LLM@prefill",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(part, 0, 16).Draw(t, "parts"), "")
		once := rangeCanonical(text)
		if twice := rangeCanonical(once); twice != once {
			t.Fatalf("%q → %q → %q", text, once, twice)
		}
	})
}

// Names of one key are one name: a reader that has seen the key need not look at the rest.
func TestRangeKeySaysAllThatCounts(t *testing.T) {
	for in, want := range map[string]string{
		"aten::mm, seq = 45536, op_id = 991473":                       "aten::mm",
		"aten::mm, seq = 45536, op_id = 991473, sizes = [[1, 2], []]": "aten::mm, sizes = [[1, 2], []]",
		"a, seq = 12b, op_id = 7 x":                                   "a, seq = 12b, op_id = 7 x", "a, seq = 1 ": "a", "a, b": "a, b", ", seq = 1": "", "": "", "step, seq = 1": "step",
		"execute_context_2(14721)_generation_3(3), seq = 1": "execute_context_2(14721)_generation_3(3), seq = 1",
	} {
		if got := string(AppendRangeKey([]byte("x"), in)); got != "x"+want {
			t.Errorf("AppendRangeKey(x, %q) = %q, want x%s", in, got, want)
		}
		if got, ok := CutCounters(in); ok && got != want {
			t.Errorf("CutCounters(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestRangesOfOneKeyAreOne(t *testing.T) {
	part := rapid.SampledFrom([]string{
		"aten::mm", "layer", "step", "decode", "prefill", "r", "sampl", "Prof", "exec", "LLM@", "_", ".", " ", ",", "=", "#", "[", "]", "0x", "3f2a9b1c", "-7d2e", "0", "12", "4567",
		", seq = 4", ", op_id = 56", ", seq = ", "execute_context_1(2)_generation_3(4)", "ProfilerStep#",
	})
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(part, 0, 12).Draw(t, "parts")
		at := rapid.IntRange(0, len(parts)).Draw(t, "at")
		tag := rapid.SampledFrom([]string{", seq = 7", ", op_id = 123456", ", seq = 7, op_id = 8"}).Draw(t, "tag")
		one := strings.Join(parts, "")
		other := strings.Join(parts[:at], "") + tag + strings.Join(parts[at:], "")
		key := func(text string) string {
			if rest, ok := CutCounters(text); ok {
				return rest
			}
			return string(AppendRangeKey(nil, text))
		}
		if key(one) != key(other) && string(AppendRangeKey(nil, one)) != string(AppendRangeKey(nil, other)) {
			return
		}
		if a, b := rangeCanonical(one), rangeCanonical(other); a != b {
			t.Fatalf("%q → %q, %q → %q", one, a, other, b)
		}
		if a, b := BuiltinPhase(one), BuiltinPhase(other); a != b {
			t.Fatalf("%q → %q, %q → %q", one, a, other, b)
		}
	})
}

func TestAppendRangeCanonicalAppends(t *testing.T) {
	got := string(AppendRangeCanonical([]byte("a#"), "12 layer_3"))
	if got != "a## layer_#" {
		t.Errorf("got %q: what dst held is not to be read or changed", got)
	}
}

func TestRangeCanonicalAllocatesNothing(t *testing.T) {
	buf := make([]byte, 0, 128)
	for _, text := range []string{"aten::mm, seq = 45536, op_id = 991473", "forward", "execute_context_2(14721)_generation_3(3)", "step 12 of request 0x7f12"} {
		if n := testing.AllocsPerRun(100, func() { buf = AppendRangeCanonical(buf[:0], text) }); n != 0 {
			t.Errorf("%q: %v allocations", text, n)
		}
	}
}

func TestHugeRangesAreReadInLinearTime(t *testing.T) {
	for _, unit := range []string{"x1a", "1 , seq = 1", ", seq = 1", "1a", "1 ", "1.", "a_1-", "execute_context_1(", "step[DECODE bs=1 "} {
		if got := rangeCanonical(strings.Repeat(unit, 100_000/len(unit))); len(got) > 100_000 {
			t.Errorf("%q…: %d bytes", unit, len(got))
		}
	}
}

func TestRangeComponent(t *testing.T) {
	for name, want := range map[string]string{
		"scaled dot product attention": CompAttention,
		"self_attn":                    CompAttention,
		"Qwen3MoeAttention":            CompAttention,
		"qkv_proj":                     CompAttention,
		"computing softmax":            CompAttention,
		"mlp":                          CompFFN,
		"layers.3.feed_forward":        CompFFN,
		"moe.mlp":                      CompMoE,
		"Qwen3MoeMLP":                  CompMoE,
		"topk_softmax":                 CompMoE,
		"fused experts":                CompMoE,
		"routing":                      CompMoE,
		"input_layernorm":              CompNorm,
		"post_attention_layernorm":     CompNorm,
		"aten::layer_norm, seq = 1":    CompNorm,
		"FSDP::pre_forward (encoder.final_layer_norm), op_id = 5": CompNorm,
		"rms_norm_0":      CompNorm,
		"norm + residual": CompNorm,
		"embed_tokens":    CompEmbedding,
		"aten::embedding": CompEmbedding,
		"lm_head":         CompEmbedding,
		"tokenizer":       "",
		"step_token":      "",
		"token_17":        "",
		"sample_topk":     "",
		"normal_":         "",
		"aten::mm":        "",
		"smoestuff":       "",
		"":                "",
	} {
		if got := RangeComponent(name); got != want {
			t.Errorf("RangeComponent(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestBuiltinPhase(t *testing.T) {
	for name, want := range map[string]string{
		"execute_context_2(100)_generation_0(0)":              phasePrefill,
		"execute_context_0(0)_generation_8(8)":                PhaseDecode,
		"execute_context_1(100)_generation_8(8)":              phaseMixed,
		"step[EXTEND bs=1 toks=107]":                          phasePrefill,
		"step[DECODE bs=8]":                                   PhaseDecode,
		"[Executor] _forward_step 3: 0 ctx reqs, 32 gen reqs": PhaseDecode,
		"LLM@prefill":      phasePrefill,
		"LLM@decode_all":   PhaseDecode,
		"Prefill":          phasePrefill,
		"decode step":      PhaseDecode,
		"generation_3":     PhaseDecode,
		"decoder.layers.3": "",
		"decoder decode":   PhaseDecode,
		"prefill+decode":   phaseMixed,
		"_sample_async":    phaseSampling,
		"upsample":         "",
		"draft_model":      phaseDraft,
		"_schedule":        phaseSchedule,
		"ProfilerStep#12":  "",
		"aten::mm":         "",
		"":                 "",
		// a scheduler runs the steps, and is no phase of its own
		"scheduler.run_batch": "", "scheduler.recv_requests": "", "schedule: allocate_slots": phaseSchedule,
		"schedule_prefill": phaseSchedule, "schedule_decoding": phaseSchedule,
	} {
		if got := BuiltinPhase(name); got != want {
			t.Errorf("BuiltinPhase(%q) = %q, want %q", name, got, want)
		}
	}
}

func rangeCanonical(text string) string { return string(AppendRangeCanonical(nil, text)) }
