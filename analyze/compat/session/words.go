package session

import (
	"regexp"
	"slices"
	"strings"
)

// Files of a session hold what a program put there: operation names, reasons, contexts, request ids. Words that come
// out of this package are from these lists, anything else is Other, so that no text of a file reaches a report.

// Other stands for a word that is on no list.
const Other = "other"

var (
	phaseWords     = []string{"prefill", "decode", "mixed", "idle"}
	operationWords = []string{"scheduling", "model_execution", "batch_preparation", "prepare_inputs", "sampling",
		"tokenization", "detokenization", "output_processing"}
	componentWords = []string{"encoder", "decoder", "cross_attention"}
	reasonWords    = []string{"recompute", "swap", "kv_cache_full"}
	modeWords      = []string{"NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"}
	typeWords      = []string{"encoder_decoder", "decoder_only", "unknown"}
)

func word(list []string, s []byte) string {
	if i := slices.IndexFunc(list, func(w string) bool { return strings.EqualFold(w, string(s)) }); i >= 0 {
		return list[i]
	}
	return Other
}

// enumWord is the word of a Python enum member, which some versions write with its class: PreemptionMode.RECOMPUTE.
func enumWord(list []string, s []byte) string {
	text := string(s)
	return word(list, []byte(text[strings.LastIndexByte(text, '.')+1:]))
}

// contextPhase finds the phase in the context of an operation: "phase=decode".
func contextPhase(s []byte) string {
	if p, ok := strings.CutPrefix(string(s), "phase="); ok {
		if w := word(phaseWords, []byte(p)); w != Other {
			return w
		}
	}
	return ""
}

// Batch is what a CUDA graph was captured for.
type Batch struct {
	Mode    string // of modeWords, or Other
	Tokens  int64  // -1: not known
	Reqs    int64  // -1: any number
	Uniform bool   // every request has the same number of tokens
	LoRA    bool
}

// descriptor reads "FULL:BatchDescriptor(num_tokens=8, num_reqs=8, uniform=True, has_lora=False)".
func descriptor(s []byte) (Batch, bool) {
	mode, rest, ok := strings.Cut(string(s), ":")
	tokens := tokensField.FindStringSubmatch(rest)
	if !ok || tokens == nil {
		return Batch{}, false
	}
	b := Batch{Mode: enumWord(modeWords, []byte(mode)), Tokens: whole(tokens[1]), Reqs: -1,
		Uniform: strings.Contains(rest, "uniform=True"), LoRA: strings.Contains(rest, "has_lora=True")}
	if reqs := reqsField.FindStringSubmatch(rest); reqs != nil {
		b.Reqs = whole(reqs[1])
	}
	return b, true
}

var (
	tokensField = regexp.MustCompile(`num_tokens=([0-9]{1,9})\b`)
	reqsField   = regexp.MustCompile(`num_reqs=([0-9]{1,9})\b`)
)

// whole is a number of at most nine digits, -1 for anything else.
func whole(s string) int64 {
	if s == "" || len(s) > 9 {
		return -1
	}
	var n int64
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return -1
		}
		n = n*10 + int64(c-'0')
	}
	return n
}
