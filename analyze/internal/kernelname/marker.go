package kernelname

import "strings"

// Engines that emit step markers.
const (
	EngineVLLM    = "vllm" // and SGLang where it prints vLLM's form
	EngineSGLang  = "sglang"
	EngineTRTLLM  = "tensorrt-llm"
	EngineATOM    = "atom"
	EnginePyTorch = "pytorch" // torch.profiler's step
	EngineLLM     = "llm"     // the convention LLM@prefill, LLM@decode…
	EngineMLC     = "mlc"
)

// Unknown is the value of a number that the Marker's text does not state.
const Unknown int64 = -1

// Marker is the content of the name of a range that an engine puts around a step. Numbers that it does not state are
// Unknown; others are never negative.
type Marker struct {
	Engine string // an Engine constant
	Phase  string // a Phase constant; "" if the marker does not tell
	Whole  bool   // the range spans a phase of many steps (LLM@decode_all), not one step

	PrefillRequests int64
	PrefillTokens   int64 // prompt tokens computed in this step
	DecodeRequests  int64
	DecodeTokens    int64 // tokens the decoding requests computed: more than requests if drafts are verified
	Batch           int64 // requests in the step, without padding
	Step            int64 // the engine's own number of the step
}

func unknownMarker(engine string) Marker {
	return Marker{
		Engine: engine, PrefillRequests: Unknown, PrefillTokens: Unknown,
		DecodeRequests: Unknown, DecodeTokens: Unknown, Batch: Unknown, Step: Unknown,
	}
}

// mayMark is a fast check: false means that text is certainly not a marker.
func mayMark(text string) bool {
	if len(text) < len("LLM@x") {
		return false
	}
	for _, begin := range markers[text[0]].begin {
		if strings.HasPrefix(text, begin) {
			return true
		}
	}
	return false
}

// markers are how markers begin, and how they are read, by their first byte.
var markers = [256]struct {
	begin []string
	parse func(text string) (Marker, bool)
}{
	'e': {[]string{"exec", "eag"}, parseVLLM}, 's': {[]string{"step["}, parseSGLang}, 'p': {[]string{"pref"}, parseATOM},
	'd': {[]string{"deco", "dumm", "draf", "dspa"}, parseATOM}, 'L': {[]string{"LLM@"}, parseLLM},
	'P': {[]string{"Prof"}, parseProfilerStep}, '[': {[]string{"[Ex"}, parseTRTLLM}, '_': {[]string{"_for"}, parseTRTLLM},
	'B': {[]string{"BatchD", "BatchJ", "BatchP", "BatchV"}, parseMLC}, '{': {[]string{"{'Mo"}, parseLayers},
}

// ParseMarker reads the step markers that engines emit:
//
//	execute_context_2(14721)_generation_3(3)                   vLLM: requests(tokens)
//	execute_17_context_2(sq14sk20sqsq…sqsk…)_generation_3(…)   vLLM, SGLang: detailed
//	execute_new_2_cached_3                                     vLLM 0.11 to 0.13: new requests, and others
//	execute_diffusion_…                                        vLLM
//	step[DECODE bs=8], step[EXTEND bs=2 toks=107], step[MIXED bs=2 c=1 g=1 …]   SGLang
//	[Executor] _forward_step 7: 2 ctx reqs, 100 ctx tokens, 3 gen reqs          TensorRT-LLM
//	_forward_step: 2 ctx reqs, 3 gen reqs                      TensorRT-LLM, its first flow
//	prefill[bs=2 tok=14721 ctx=[…]], decode[bs=117/128 tok=117 p=1 d=116]       ATOM: p prompts and d decoding requests
//	dummy_prefill[bs=2 tok=8], dummy_decode[bs=8]              ATOM: steps of no request
//	draft[1/3 bs=8], dspark[bs=8 T=3]                          ATOM
//	BatchPrefill total_seq_len=512, BatchDecode num_seqs=8     MLC-LLM
//	{'Module': 'Qwen3ForCausalLM', 'Inputs': [[512], …]}       layer hooks of vLLM and SGLang: the outermost module
//	LLM@prefill, LLM@decode_all, LLM@decode_step
//	ProfilerStep#12                                            torch.profiler
//
// The number in execute_N_context is tokens for vLLM and requests for SGLang, so it is not used. Text that only begins
// like a marker is not one.
func ParseMarker(text string) (Marker, bool) {
	if !mayMark(text) {
		return Marker{}, false
	}
	text = strings.TrimRight(text, " ")
	if m, ok := markers[text[0]].parse(text); ok {
		return m, true
	}
	return Marker{}, false
}

// parseVLLM reads execute_context_N(M)_generation_K(L), its detailed form, and execute_new_N_cached_K. ATOM's
// eager_decode[…] begins with the same letter.
func parseVLLM(text string) (Marker, bool) {
	m := unknownMarker(EngineVLLM)
	switch {
	case !strings.HasPrefix(text, "execute_"):
		return parseATOM(text)
	case strings.HasPrefix(text, "execute_diffusion_"):
		m.Phase = phaseDiffusion
		return m, true
	}
	c := cursor{s: text, ok: true}
	c.lit("execute_")
	if c.try("new_") { // one that is not new decodes, which is usual, or continues a prompt that was cut into chunks
		m.PrefillRequests = c.number()
		c.lit("_cached_")
		m.DecodeRequests = c.number()
	} else {
		if c.s != "" && isDigit(c.s[0]) {
			c.number()
			c.lit("_")
		}
		c.lit("context_")
		m.PrefillRequests, m.PrefillTokens = c.group()
		c.lit("_generation_")
		m.DecodeRequests, m.DecodeTokens = c.group()
	}
	m.sum()
	return m, c.ok && c.s == ""
}

// group reads R(T), R(T_S) with the sum S of squared lengths, or R(sqTsk…).
func (c *cursor) group() (requests, tokens int64) {
	requests = c.number()
	c.lit("(")
	if c.try("sq") {
		tokens = c.number()
		for _, name := range []string{"sk", "sqsq", "sqsk"} {
			if c.try(name) && !c.try("#") { // as AppendRangeCanonical writes it
				c.number()
			}
		}
	} else if tokens = c.number(); c.try("_") && !c.try("#") {
		c.number()
	}
	c.lit(")")
	return requests, tokens
}

// sum fills totals and phase from the requests of both kinds.
func (m *Marker) sum() {
	m.Batch, m.Phase = m.PrefillRequests+m.DecodeRequests, phaseIdle
	switch prefill, decode := m.PrefillRequests > 0, m.DecodeRequests > 0; {
	case prefill && decode:
		m.Phase = phaseMixed
	case prefill:
		m.Phase = phasePrefill
	case decode:
		m.Phase = PhaseDecode
	}
}

// parseTRTLLM reads "[Executor] _forward_step 7: 2 ctx reqs, 100 ctx tokens, 3
// gen reqs"; older versions print neither the step's number nor the tokens.
func parseTRTLLM(text string) (Marker, bool) {
	m := unknownMarker(EngineTRTLLM)
	c := cursor{s: text, ok: true}
	c.try("[Executor] ")
	c.lit("_forward_step")
	if c.try(" ") && !c.try("#") {
		m.Step = c.number()
	}
	c.lit(": ")
	m.PrefillRequests = c.number()
	c.lit(" ctx reqs, ")
	n := c.number()
	if c.try(" ctx tokens, ") {
		m.PrefillTokens = n
		n = c.number()
	}
	c.lit(" gen reqs")
	m.DecodeRequests = n
	m.sum()
	return m, c.ok && (c.s == "" || c.s[0] == ',')
}

// parseLLM reads LLM@prefill, LLM@decode, LLM@decode_all, LLM@decode_step and the like.
func parseLLM(text string) (Marker, bool) {
	m := unknownMarker(EngineLLM)
	switch what := text[len("LLM@"):]; {
	case strings.HasPrefix(what, "prefill"):
		m.Phase = phasePrefill
	case strings.HasPrefix(what, "decode"):
		m.Phase = PhaseDecode
		m.Whole = !strings.Contains(what, "step")
	}
	return m, m.Phase != ""
}

// parseProfilerStep reads ProfilerStep#12, and ProfilerStep# as AppendRangeCanonical writes it.
func parseProfilerStep(text string) (Marker, bool) {
	m := unknownMarker(EnginePyTorch)
	c := cursor{s: text, ok: true}
	c.lit("ProfilerStep#")
	if c.s != "" {
		m.Step = c.number()
	}
	return m, c.ok && c.s == ""
}
