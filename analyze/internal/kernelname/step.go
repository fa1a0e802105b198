package kernelname

import "strings"

// Programs whose ranges surround a step without describing it.
const (
	EngineSGLangLoop = "sglang scheduler"    // its Nsight ranges
	EngineVLLMScopes = "vllm scopes"         // VLLM_NVTX_SCOPES_FOR_PROFILING
	EngineTRTLLMLoop = "tensorrt-llm runner" // flows that print no sizes, and the C++ runtime
	EngineLMDeploy   = "lmdeploy"
	EngineScript     = "script" // written by hand, and Megatron's Prefill and Decode
	// EngineLayers begins the Engine of the ranges that layer hooks of vLLM and SGLang put around a model. The name
	// of the outermost module follows it.
	EngineLayers = "layers of "
)

// stepNames are names of ranges around a step that tell nothing else.
var stepNames = map[string]string{
	"scheduler.run_batch":           EngineSGLangLoop,
	"gpu_model_runner: forward":     EngineVLLMScopes,
	"_forward_step":                 EngineTRTLLMLoop,
	"[Executor] _forward_step":      EngineTRTLLMLoop,
	"_forward_step_inter_pp":        EngineTRTLLMLoop,
	"_forward_step_mm_encoder_only": EngineTRTLLMLoop,
	"executeContext":                EngineTRTLLMLoop,
	"forward_cudagraph":             EngineLMDeploy,
	"forward_eager":                 EngineLMDeploy,
	"draft_model_forward":           EngineLMDeploy,
}

// ParseStep reads ranges that surround a step but are not an engine's marker (ParseMarker):
//
//	scheduler.run_batch, gpu_model_runner: forward, _forward_step, forward_cudagraph    engines
//	Prefill, Decode, decode_step_3, Decode/step_003, [Decode step 3], step 7, ITER_12   by hand
//	decode_step_3 bs=8 tokens=8                                                         with sizes
//
// A number, or the # that AppendRangeCanonical writes for it, counts steps. A phase without a number may span many
// steps (Whole). The word context means the part of a prompt, as in TensorRT-LLM.
func ParseStep(text string) (Marker, bool) {
	text = strings.TrimRight(text, " ")
	if engine, ok := stepNames[text]; ok {
		m := unknownMarker(engine)
		if text == "draft_model_forward" {
			m.Phase = phaseDraft
		}
		return m, true
	}
	head, fields := stepFields(text)
	m, ok := parseScript(head)
	if ok && fields != "" {
		m.Batch, m.PrefillTokens = sizes(fields)
	}
	return m, ok
}

// maxScript bounds the name of a step that was written by hand, in bytes.
const maxScript = 40

// scriptPhases are the words for phases in such names.
var scriptPhases = map[string]string{"prefill": phasePrefill, "context": phasePrefill, "decode": PhaseDecode,
	"decoding": PhaseDecode, "generation": PhaseDecode}

// parseScript reads a name that consists of a phase, words that count steps, and a number.
func parseScript(text string) (Marker, bool) {
	m := unknownMarker(EngineScript)
	if len(text) < len("iter1") || len(text) > maxScript {
		return m, false
	}
	counts, numbers := false, false
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case isLetter(c):
			word := lower(text[i : i+run(text[i:], isLetter)])
			phase, tells := scriptPhases[word]
			switch {
			case tells && m.Phase == "":
				m.Phase = phase
			case word == "step", word == "iter", word == "iteration", word == "token":
				counts = true
			default:
				return m, false
			}
			i += len(word)
		case isDigit(c) || c == '#':
			if numbers {
				return m, false
			}
			numbers = true
			i += run(text[i:], func(c byte) bool { return isDigit(c) || c == '#' })
		case strings.IndexByte(" _-/:[]()", c) >= 0:
			i++
		default:
			return m, false
		}
	}
	m.Whole = !counts && !numbers
	return m, m.Phase != "" || counts && numbers
}

// stepFields divides a name into itself and the fields key=N that follow; without fields, it is all head.
func stepFields(text string) (head, fields string) {
	i := strings.IndexByte(text, '=')
	if i < 0 || len(text) > maxRange {
		return text, ""
	}
	at := strings.LastIndexAny(text[:i], " ([,")
	if at < 0 {
		return text, ""
	}
	return strings.TrimRight(text[:at], " ,(["), text[at+1:]
}

// sizes reads the number of requests and of tokens among fields key=N, whatever stands between them.
func sizes(fields string) (batch, tokens int64) {
	batch, tokens = Unknown, Unknown
	for i := strings.IndexByte(fields, '='); i >= 0; i = strings.IndexByte(fields, '=') {
		key := lower(fields[:i])
		key = key[strings.LastIndexAny(key, " ,;([")+1:]
		n, rest, ok := leadingNumber(fields[i+1:])
		if fields = rest; !ok {
			continue
		}
		switch key {
		case "bs", "batch", "batch_size", "num_seqs", "num_reqs", "reqs", "requests":
			batch = n
		case "tok", "toks", "tokens", "num_tokens":
			tokens = n
		}
	}
	return batch, tokens
}

// parseMLC reads BatchDecode num_seqs=8, BatchPrefill total_seq_len=7 and the like. Names that end in "getting
// requests" are host work.
func parseMLC(text string) (Marker, bool) {
	m := unknownMarker(EngineMLC)
	word, fields, _ := strings.Cut(text, " ")
	m.Phase = mlcPhases[word]
	m.Batch, m.PrefillTokens = sizes(fields)
	return m, m.Phase != "" && (fields == "" || strings.Contains(fields, "="))
}

// mlcPhases maps the words of MLC-LLM.
var mlcPhases = map[string]string{"BatchPrefill": phasePrefill, "BatchDecode": PhaseDecode, "BatchVerify": PhaseDecode,
	"BatchJumpForward": PhaseDecode, "BatchDraft": phaseDraft}

// parseLayers reads {'Module': 'Qwen3ForCausalLM', …, 'Inputs': [[512], …]…}, which hooks print around every module.
// The outermost module has no dot in its name. The first number of its inputs is the tokens of the step, of prompts or
// of decoding.
func parseLayers(text string) (Marker, bool) {
	rest, ok := strings.CutPrefix(text, "{'Module': '")
	name, rest, closed := strings.Cut(rest, "'")
	if !ok || !closed || name == "" || strings.ContainsRune(name, '.') {
		return Marker{}, false
	}
	m := unknownMarker(EngineLayers + name)
	_, inputs, _ := strings.Cut(rest, "'Inputs': [[")
	if n, after, ok := leadingNumber(inputs); ok && after != "" && (after[0] == ']' || after[0] == ',') {
		m.PrefillTokens = n
	}
	return m, true
}
