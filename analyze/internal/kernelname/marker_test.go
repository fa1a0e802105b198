package kernelname

import "testing"

const un = Unknown

func TestMarkersOfEngines(t *testing.T) {
	for text, want := range map[string]Marker{
		"execute_context_2(14721)_generation_0(0)":                                                          {EngineVLLM, phasePrefill, false, 2, 14721, 0, 0, 2, un},
		"execute_context_0(0)_generation_64(64)":                                                            {EngineVLLM, PhaseDecode, false, 0, 0, 64, 64, 64, un},
		"execute_context_2(6144)_generation_3(9)":                                                           {EngineVLLM, phaseMixed, false, 2, 6144, 3, 9, 5, un},
		"execute_context_0(0)_generation_0(0)":                                                              {EngineVLLM, phaseIdle, false, 0, 0, 0, 0, 0, un},
		"execute_6147_context_2(sq6144sk7144sqsq20971520sqsk23019520)_generation_3(sq3sk6144sqsq3sqsk6144)": {EngineVLLM, phaseMixed, false, 2, 6144, 3, 3, 5, un},
		"execute_2_context_0(sq0sk#sqsq#sqsk#)_generation_2(sq2sk#sqsq#sqsk#)":                              {EngineVLLM, PhaseDecode, false, 0, 0, 2, 2, 2, un},
		"execute_diffusion_step":                                                                            {EngineVLLM, phaseDiffusion, false, un, un, un, un, un, un},
		"step[DECODE bs=8]":                                                                                 {EngineSGLang, PhaseDecode, false, 0, 0, 8, un, 8, un},
		"step[DECODE bs=8 toks=8]":                                                                          {EngineSGLang, PhaseDecode, false, 0, 0, 8, 8, 8, un},
		"step[EXTEND bs=2 toks=14721]":                                                                      {EngineSGLang, phasePrefill, false, 2, 14721, 0, 0, 2, un},
		"step[MIXED bs=2]":                                                                                  {EngineSGLang, phaseMixed, false, un, un, un, un, 2, un},
		"step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 g_sk=12 g_sqsq=1 g_sqsk=12]": {EngineSGLang, phaseMixed, false, 1, 5, 1, 1, 2, un},
		"step[DECODE bs=64 g_sq=128 g_sqsq=256 g_sqsk=262144 g_sk=131072]":                             {EngineSGLang, PhaseDecode, false, 0, 0, 64, 128, 64, un},
		"step[TARGET_VERIFY bs=4]": {EngineSGLang, PhaseDecode, false, 0, 0, 4, un, 4, un},
		"step[IDLE]":               {EngineSGLang, phaseIdle, false, un, un, un, un, un, un},
		"[Executor] _forward_step 60000: 0 ctx reqs, 0 ctx tokens, 32 gen reqs": {EngineTRTLLM, PhaseDecode, false, 0, 0, 32, un, 32, 60000},
		"[Executor] _forward_step 7: 2 ctx reqs, 3 gen reqs":                    {EngineTRTLLM, phaseMixed, false, 2, un, 3, un, 5, 7},
		"[Executor] _forward_step: 2 ctx reqs, 0 gen reqs":                      {EngineTRTLLM, phasePrefill, false, 2, un, 0, un, 2, un},
		"[Executor] _forward_step #: 2 ctx reqs, 0 gen reqs":                    {EngineTRTLLM, phasePrefill, false, 2, un, 0, un, 2, un},
		"prefill[bs=2 tok=14721 ctx=[7803, 6918]]":                              {EngineATOM, phasePrefill, false, 2, 14721, 0, 0, 2, un},
		"decode[bs=117/128 tok=117 d=117]":                                      {EngineATOM, PhaseDecode, false, 0, 0, 117, 117, 117, un},
		"decode[bs=32 tok=128 d=32 spec=3 sqsq=512 sqsk=262144 sk=65536]":       {EngineATOM, PhaseDecode, false, 0, 0, 32, 128, 32, un},
		"eager_decode[bs=3]":                             {EngineATOM, PhaseDecode, false, 0, 0, 3, un, 3, un},
		"LLM@prefill":                                    {EngineLLM, phasePrefill, false, un, un, un, un, un, un},
		"LLM@decode_all":                                 {EngineLLM, PhaseDecode, true, un, un, un, un, un, un},
		"LLM@decode_step":                                {EngineLLM, PhaseDecode, false, un, un, un, un, un, un},
		"execute_new_2_cached_3":                         {EngineVLLM, phaseMixed, false, 2, un, 3, un, 5, un},
		"execute_new_0_cached_8":                         {EngineVLLM, PhaseDecode, false, 0, un, 8, un, 8, un},
		"execute_new_1_cached_0":                         {EngineVLLM, phasePrefill, false, 1, un, 0, un, 1, un},
		"step[PREBUILT bs=1]":                            {EngineSGLang, phasePrebuilt, false, un, un, un, un, 1, un},
		"_forward_step: 2 ctx reqs, 3 gen reqs":          {EngineTRTLLM, phaseMixed, false, 2, un, 3, un, 5, un},
		"decode[bs=9/16 tok=520 p=1 d=8]":                {EngineATOM, phaseMixed, false, 1, un, 8, un, 9, un},
		"dummy_prefill[bs=2 tok=8]":                      {EngineATOM, phaseIdle, false, 2, 8, 0, 0, 2, un},
		"dummy_eager_decode[bs=2]":                       {EngineATOM, phaseIdle, false, 0, 0, 2, un, 2, un},
		"draft[1/3 bs=8]":                                {EngineATOM, phaseDraft, false, un, un, un, un, 8, un},
		"dspark[bs=8 T=3]":                               {EngineATOM, phaseDraft, false, un, un, un, un, 8, un},
		"BatchDecode num_seqs=8":                         {EngineMLC, PhaseDecode, false, un, un, un, un, 8, un},
		"BatchPrefill num_seqs=2, num_tokens=600":        {EngineMLC, phasePrefill, false, un, 600, un, un, 2, un},
		"{'Module': 'Llama', 'Inputs': [[512], [512]]}":  {EngineLayers + "Llama", "", false, un, 512, un, un, un, un},
		"{'Module': 'top', 'Inputs': [[8, 4096]], 'S':}": {EngineLayers + "top", "", false, un, 8, un, un, un, un},
		"ProfilerStep#12":                                {EnginePyTorch, "", false, un, un, un, un, un, 12},
		"ProfilerStep#":                                  {EnginePyTorch, "", false, un, un, un, un, un, un},
	} {
		got, ok := ParseMarker(text)
		if !ok || got != want {
			t.Errorf("ParseMarker(%q)\n got %+v, %v\nwant %+v", text, got, ok, want)
		}
	}
}

func TestWhatOnlyBeginsLikeAMarkerIsNone(t *testing.T) {
	for _, text := range []string{
		"", "e", "exec", "execute_", "execute_context_7", "execute_context_1(2)_generation_3(4) more", "execute_context_1(2)_generation_3",
		"execute_context_99999999999999999999(1)_generation_0(0)", "execute_context_-1(2)_generation_3(4)", "execute_model",
		"step[", "step[17]", "step[DECODE]", "step[DECODE bs=]", "step[DECODE bs=x]", "step[DECODE bs=8", "step[OTHER bs=8]", "step 12",
		"[Executor] _forward_step", "[Executor] _forward_step 7: 2 ctx reqs", "[Executor] _prepare_inputs",
		"prefill", "prefill[", "prefill[tok=2]", "decode[bs=1", "decode_step", "eager_mode",
		"execute_new_2", "execute_new_2_cached_3 x", "BatchDecode getting requests", "BatchNorm x=1", "dummy_draft[", "capture_graph_bs_8",
		"{'Module': 'model.layers.0.mlp', 'Inputs': [[8, 4096]]}", "{'Module': ''}", "{'Module", "_forward", "_forward_step", "schedule: allocate_slots",
		"LLM@", "LLM@other", "ProfilerStep", "ProfilerStep#x", "aten::mm, seq = 1", "#execute_context_1(2)_generation_3(4)",
	} {
		if m, ok := ParseMarker(text); ok {
			t.Errorf("ParseMarker(%q) = %+v", text, m)
		}
	}
	if m, ok := ParseMarker("ProfilerStep#1 "); !ok || m.Step != 1 {
		t.Errorf("white space at the end: %+v, %v", m, ok)
	}
}

func TestMarkersKeepTheirMeaningWhenCanonical(t *testing.T) {
	for _, text := range []string{
		"execute_64_context_0(sq0sk0sqsq0sqsk0)_generation_64(sq64sk131072sqsq64sqsk131072)",
		"step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 g_sk=12 g_sqsq=1 g_sqsk=12]",
		"[Executor] _forward_step 60000: 0 ctx reqs, 0 ctx tokens, 32 gen reqs",
		"prefill[bs=6 tok=17408 ctx=[4096, 4096, 4096]...+3]",
		"execute_new_12_cached_34", "decode[bs=9/16 tok=520 p=1 d=8]", "BatchDecode num_seqs=8", "_forward_step: 2 ctx reqs, 3 gen reqs",
		"{'Module': 'Qwen3ForCausalLM', 'TrainableParams': {'a': 17}, 'Inputs': [[512], [512]], 'StaticParams': {}}",
	} {
		before, ok1 := ParseMarker(text)
		after, ok2 := ParseMarker(rangeCanonical(text))
		before.Step = Unknown // what counts steps is what goes
		if !ok1 || !ok2 || before != after {
			t.Errorf("%q: %+v, then %+v", text, before, after)
		}
	}
}

func TestStepsWithoutSizes(t *testing.T) {
	for text, want := range map[string]Marker{
		"scheduler.run_batch":       unknownMarker(EngineSGLangLoop),
		"gpu_model_runner: forward": unknownMarker(EngineVLLMScopes),
		"[Executor] _forward_step":  unknownMarker(EngineTRTLLMLoop),
		"executeContext":            unknownMarker(EngineTRTLLMLoop),
		"forward_cudagraph":         unknownMarker(EngineLMDeploy),
		"draft_model_forward":       script(EngineLMDeploy, phaseDraft, false),
		"Prefill":                   script(EngineScript, phasePrefill, true),
		"Decode":                    script(EngineScript, PhaseDecode, true),
		"generation":                script(EngineScript, PhaseDecode, true),
		"context":                   script(EngineScript, phasePrefill, true),
		"decode_step":               script(EngineScript, PhaseDecode, false),
		"decode_step_3":             script(EngineScript, PhaseDecode, false),
		"decode_step_#":             script(EngineScript, PhaseDecode, false),
		"Decode/step_003":           script(EngineScript, PhaseDecode, false),
		"decode_token_5":            script(EngineScript, PhaseDecode, false),
		"DECODE_ITER_3":             script(EngineScript, PhaseDecode, false),
		"[Prefill]":                 script(EngineScript, phasePrefill, true),
		"[Decode step 3]":           script(EngineScript, PhaseDecode, false),
		"step 7":                    script(EngineScript, "", false),
		"Step_7":                    script(EngineScript, "", false),
		"ITER_12":                   script(EngineScript, "", false),
	} {
		if got, ok := ParseStep(text); !ok || got != want {
			t.Errorf("ParseStep(%q)\n got %+v, %v\nwant %+v", text, got, ok, want)
		}
		if got, ok := ParseStep(rangeCanonical(text)); !ok || got != want {
			t.Errorf("ParseStep of the canonical form %q\n got %+v, %v\nwant %+v", rangeCanonical(text), got, ok, want)
		}
	}
	for _, text := range []string{"decode_step_3 bs=8 tokens=9", "Decode step 3 (batch_size=8, tokens=9)", "decode[batch=8;tok=9]"} {
		if m, ok := ParseStep(rangeCanonical(text)); !ok || m.Phase != PhaseDecode || m.Batch != 8 || m.PrefillTokens != 9 {
			t.Errorf("%q, canonical %q: %+v, %v", text, rangeCanonical(text), m, ok)
		}
	}
	for _, text := range []string{"decode_step_3 bs=x tokens=9", "decode_step_3 bs= tokens=9", "decode_step_3 =, tokens=9"} { // the field without a number is left out
		if m, ok := ParseStep(text); !ok || m.Batch != Unknown || m.PrefillTokens != 9 {
			t.Errorf("%q: %+v, %v", text, m, ok)
		}
	}
	for _, text := range []string{"decode_step_3 bs=", "decode_step_3 bs=x"} {
		if m, ok := ParseStep(text); !ok || m.Batch != Unknown {
			t.Errorf("%q: %+v, %v", text, m, ok)
		}
	}
	if m, ok := ParseMarker("BatchDecode a=b"); !ok || m.Phase != PhaseDecode || m.Batch != Unknown {
		t.Errorf("%+v, %v", m, ok)
	}
	if got := rangeCanonical("decode_step_3 bs=8"); got != "decode_step_# bs=8" {
		t.Errorf("canonical %q", got)
	}
	for _, text := range []string{
		"", "step", "step 1 of 2", "decoder", "prefill decode", "decode_step_3_attention", "scheduler.recv_requests", "steps 3", "token_7_processing",
		"layer 3", "iter", "mm:pd:generate", "schedule_decoding", "aten::mm, sizes=3", "a=1",
	} {
		if m, ok := ParseStep(text); ok {
			t.Errorf("ParseStep(%q) = %+v", text, m)
		}
	}
}

func script(engine, phase string, whole bool) Marker {
	m := unknownMarker(engine)
	m.Phase, m.Whole = phase, whole
	return m
}
