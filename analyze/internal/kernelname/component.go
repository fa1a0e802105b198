package kernelname

import (
	"regexp"
	"strings"
)

// maxRange bounds how many bytes of a range's name are searched for words.
const maxRange = 1 << 10

// RangeComponent returns the transformer component that the name of an NVTX range tells, or "". The words and their
// order are profilemate's, with these exceptions, because the plain order fails on names that models have:
//
//   - a name that ends in norm is a norm ("post_attention_layernorm");
//   - moe comes before ffn ("moe.mlp"), and before a bare softmax ("topk_softmax");
//   - "token" counts with "emb" only: "tokenizer" and "token_17" are not an embedding;
//   - topk in sampling is not routing; "normal" is not a norm.
func RangeComponent(rangeName string) string {
	s := lower(clip(rangeName, maxRange))
	has := func(words ...string) bool { return holds(s, words...) }
	switch {
	case endsInNorm(s):
		return CompNorm
	case has("attention", "attn", "qkv"):
		return CompAttention
	case has("moe") && moeWord.MatchString(clip(rangeName, maxRange)) || has("expert", "routing") ||
		has("topk") && !has("sampl", "logit"):
		return CompMoE
	case has("ffn", "mlp", "feed_forward", "feedforward"):
		return CompFFN
	case has("layernorm", "layer_norm", "rms_norm", "rmsnorm") || has("norm") && !has("normal"):
		return CompNorm
	case has("embed", "lm_head", "tok_emb", "token_emb", "token emb"):
		return CompEmbedding
	case has("softmax"):
		return CompAttention
	}
	return ""
}

// endsInNorm reports whether the last word of s is a norm: numbers, # and closing punctuation after it are ignored.
func endsInNorm(s string) bool {
	if i := strings.Index(s, ", "); i >= 0 {
		s = s[:i] // ", seq = N, op_id = N"
	}
	return strings.HasSuffix(strings.TrimRight(s, "0123456789#_.:)]}>'\" "), "norm")
}

// moeWord is moe at the start of a word: after no letter, or with a capital after a small letter.
var moeWord = regexp.MustCompile(`(?:^|[^A-Za-z])(?i:moe)|[a-z]M(?i:oe)`)

// Phases of inference that names tell.
const (
	phasePrefill   = "prefill"
	PhaseDecode    = "decode"
	phaseMixed     = "mixed" // prefill and decode in one step
	phaseSampling  = "sampling"
	phaseDraft     = "draft"    // the small model of speculative decoding
	phaseSchedule  = "schedule" // host work between steps
	phaseDiffusion = "diffusion"
	phaseIdle      = "idle"     // a step of no request
	phasePrebuilt  = "prebuilt" // requests whose prompt another server computed join the batch
)

// BuiltinPhase returns the phase of inference that a range's name tells, or "". A step marker's own phase comes first;
// then, as in profilemate, "prefill", and "decode" or "generation"; both at once are mixed. "decoder" is a part of a
// model, not a phase, and "scheduler" is the program that runs the steps.
func BuiltinPhase(rangeName string) string {
	if m, ok := ParseMarker(rangeName); ok && m.Phase != "" {
		return m.Phase
	}
	s := lower(clip(rangeName, maxRange))
	if strings.HasPrefix(s, "schedule_") {
		return phaseSchedule // lmdeploy's schedule_prefill and schedule_decoding are host work
	}
	s = strings.ReplaceAll(strings.ReplaceAll(s, "decoder", " "), "scheduler", " ")
	prefill, decode := holds(s, "prefill"), holds(s, "generation", "decode")
	switch {
	case prefill && decode:
		return phaseMixed
	case prefill:
		return phasePrefill
	case decode:
		return PhaseDecode
	case holds(s, "draft", "speculat", "eagle"):
		return phaseDraft
	case holds(s, "sampl") && !holds(s, "resampl", "downsampl", "upsampl"):
		return phaseSampling
	case holds(s, "schedule"): // a scheduler's ranges go around all that it does
		return phaseSchedule
	}
	return ""
}
