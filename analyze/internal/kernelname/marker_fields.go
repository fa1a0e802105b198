package kernelname

import (
	"fmt"
	"math"
	"regexp"
	"strings"
)

// cursor reads a marker from left to right; the first mismatch clears ok.
type cursor struct {
	s  string
	ok bool
}

func (c *cursor) lit(want string) {
	rest, ok := strings.CutPrefix(c.s, want)
	c.s, c.ok = rest, c.ok && ok
}

func (c *cursor) try(want string) bool {
	rest, ok := strings.CutPrefix(c.s, want)
	if ok {
		c.s = rest
	}
	return ok
}

func (c *cursor) number() int64 {
	n, rest, ok := leadingNumber(c.s)
	c.s, c.ok = rest, c.ok && ok
	return n
}

// leadingNumber reads the number s starts with; it is not ok if there is none or if it does not fit.
func leadingNumber(s string) (n int64, rest string, ok bool) {
	i := 0
	for ; i < len(s) && isDigit(s[i]); i++ {
		d := int64(s[i] - '0')
		if n > (math.MaxInt64-d)/10 {
			return 0, s, false
		}
		n = n*10 + d
	}
	return n, s[i:], i > 0
}

// parseSGLang reads step[MODE bs=N toks=N …].
func parseSGLang(text string) (Marker, bool) {
	m := unknownMarker(EngineSGLang)
	body, ok := bracketed(text, "step[")
	mode, fields, _ := strings.Cut(body, " ")
	m.Phase = sglangPhases[mode]
	bs := field(fields, "bs", Unknown)
	if !ok || m.Phase == "" || bs == Unknown && m.Phase != phaseIdle {
		return m, false
	}
	m.Batch = bs
	toks := field(fields, "toks", Unknown)
	switch m.Phase {
	case phasePrefill:
		m.PrefillRequests, m.DecodeRequests, m.DecodeTokens = bs, 0, 0
		m.PrefillTokens = field(fields, "c_sq", toks)
	case PhaseDecode:
		m.DecodeRequests, m.PrefillRequests, m.PrefillTokens = bs, 0, 0
		m.DecodeTokens = field(fields, "g_sq", toks)
	case phaseMixed:
		m.PrefillRequests, m.DecodeRequests = field(fields, "c", Unknown), field(fields, "g", Unknown)
		m.PrefillTokens, m.DecodeTokens = field(fields, "c_sq", Unknown), field(fields, "g_sq", Unknown)
	}
	return m, true
}

// sglangPhases maps SGLang's forward modes.
var sglangPhases = map[string]string{
	"EXTEND": phasePrefill, "PREFILL": phasePrefill, "SPLIT_PREFILL": phasePrefill, "DLLM_EXTEND": phasePrefill,
	"DECODE": PhaseDecode, "TARGET_VERIFY": PhaseDecode, "DRAFT_EXTEND": phaseDraft, "DRAFT_EXTEND_V2": phaseDraft,
	"MIXED": phaseMixed, "IDLE": phaseIdle, "PREBUILT": phasePrebuilt,
}

// parseATOM reads prefill[…], decode[…], eager_decode[…], the same after dummy_, draft[…] and dspark[…].
func parseATOM(text string) (Marker, bool) {
	m := unknownMarker(EngineATOM)
	name, dummy := strings.CutPrefix(text, "dummy_")
	word, _, _ := strings.Cut(name, "[")
	body, ok := bracketed(name, word+"[")
	bs := field(body, "bs", Unknown)
	if !ok || bs == Unknown {
		return m, false
	}
	m.Batch = bs
	tok := field(body, "tok", Unknown)
	switch word {
	case "prefill":
		m.Phase = phasePrefill
		m.PrefillRequests, m.PrefillTokens, m.DecodeRequests, m.DecodeTokens = bs, tok, 0, 0
	case "decode", "eager_decode":
		m.Phase = PhaseDecode
		m.DecodeRequests, m.DecodeTokens, m.PrefillRequests, m.PrefillTokens = bs, tok, 0, 0
		if p, d := field(body, "p", 0), field(body, "d", 0); p > 0 && d > 0 {
			m.Phase = phaseMixed
			m.PrefillRequests, m.DecodeRequests, m.PrefillTokens, m.DecodeTokens = p, d, Unknown, Unknown
		}
	case "draft", "dspark":
		m.Phase = phaseDraft
	default:
		return m, false
	}
	if dummy {
		m.Phase = phaseIdle
	}
	return m, true
}

// bracketed returns the text between head, which ends in "[", and the "]" that closes it at the end.
func bracketed(text, head string) (string, bool) {
	body, ok := strings.CutPrefix(text, head)
	end := scanTop(body, func(i int) bool { return body[i] == ']' })
	if !ok || end < 0 || end+1 < len(body) {
		return "", false
	}
	return body[:end], true
}

// field returns the number of "key=N" among s's fields, which are outside of its lists; other if there is none.
func field(s, key string, other int64) int64 {
	for at := 0; ; {
		i := strings.Index(s[at:], key)
		if i < 0 {
			return other
		}
		i += at
		at = i + len(key)
		inList := strings.Count(s[:i], "[") > strings.Count(s[:i], "]")
		if (i == 0 || s[i-1] == ' ') && at < len(s) && s[at] == '=' && !inList {
			if n, _, ok := leadingNumber(s[at+1:]); ok {
				return n
			}
			return other
		}
	}
}

// appendMarker appends the canonical form of the marker text, see AppendRangeCanonical.
func appendMarker(dst []byte, text string, m Marker) []byte {
	switch m.Engine {
	case EnginePyTorch:
		return append(dst, "ProfilerStep#"...)
	case EngineMLC:
		return append(dst, text...)
	case EngineTRTLLM:
		return append(dst, forwardStep.ReplaceAllString(text, "${1}#")...)
	}
	if model, ok := strings.CutPrefix(m.Engine, EngineLayers); ok {
		dst = fmt.Appendf(dst, "{'Module': '%s'", model)
		if m.PrefillTokens != Unknown {
			dst = fmt.Appendf(dst, ", 'Inputs': [[%d]]", m.PrefillTokens)
		}
		return append(dst, '}')
	}
	if !holds(text, "sk", "sqsq", "ctx=") {
		return append(dst, text...)
	}
	return append(dst, counted.ReplaceAllStringFunc(text, func(field string) string {
		switch name := field[:strings.IndexAny(field, "[0123456789")]; name {
		case "sqsq", "sqsk", "sk", "sqsq=", "sqsk=", "sk=", "ctx=": // running sums, which differ at every step
			return name + "#"
		}
		return field
	})...)
}

// counted are words with a number, and the list of contexts (with "...+3" if it was cut).
var counted = regexp.MustCompile(`[A-Za-z]+=?\d+|ctx=\[[^\[\]]*\](?:\.\.\.\+\d+)?`)

// forwardStep is the number of a step of TensorRT-LLM.
var forwardStep = regexp.MustCompile(`^(\[Executor\] _forward_step )\d+`)
