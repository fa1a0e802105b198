package kernelname

import (
	"slices"
	"strings"
)

// AppendRangeCanonical appends to dst the key by which NVTX ranges of one meaning are grouped: numbers that count calls
// become #, numbers that name places in the model stay.
//
//   - ", seq = N" and ", op_id = N" (PyTorch's emit_nvtx) go;
//   - addresses, UUIDs and hexadecimal ids become #;
//   - so does a number at the end ("token_17", "Warm-up Step 3"), in a value's
//     place ("bs=8", "sizes = [[16, 32]]", "epoch 2 of 9"), after a word that
//     counts ("step_12_decode"), or of four digits and more;
//   - other numbers inside a name stay: "blocks.10.attn" and "blocks.11.attn" are
//     two modules, "AllToAll4D", "c10d" and "cublasCreate_v2" are names;
//   - step markers (ParseMarker) keep the sizes of the batch, which state the work of the step, and lose the numbers
//     that count steps: ProfilerStep#12 → ProfilerStep#, "[Executor] _forward_step 7: 2 ctx reqs…" → "[Executor]
//     _forward_step #: 2 ctx reqs…"; so do steps written by hand (ParseStep). Detailed markers also lose the running
//     sums of key lengths (sk, sqsq, sqsk, ctx), which differ at every step.
//
// The key of a key is the key itself. text is read once from left to right, and only dst is allocated, but for detailed
// markers.
func AppendRangeCanonical(dst []byte, text string) []byte {
	text = strings.TrimRight(text, " ")
	if mayMark(text) {
		if m, ok := ParseMarker(text); ok {
			return appendMarker(dst, text, m)
		}
	}
	if head, fields := stepFields(text); fields != "" {
		if _, ok := parseScript(head); ok {
			return append(AppendRangeCanonical(dst, head), text[len(head):]...)
		}
	}
	base := len(dst)
	from := 0 // text[from:] is not copied yet
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == ',':
			if n := tagLen(text[i:]); n > 0 {
				dst = append(dst, text[from:i]...)
				i += n
				from = i
				i--
			}
		case isDigit(c):
			start, end, ok := counter(text, i)
			if ok {
				dst = append(dst, text[from:max(from, start)]...)
				if len(dst) == base || dst[len(dst)-1] != '#' { // once if several counters meet
					dst = append(dst, '#')
				}
				from = end
			}
			i = end - 1
		}
	}
	dst = append(dst, text[from:]...)
	for len(dst) > base && dst[len(dst)-1] == ' ' {
		dst = dst[:len(dst)-1]
	}
	if mayMark(text) { // what had too many digits for a marker may be one now
		key := string(dst[base:])
		if m, ok := ParseMarker(key); ok {
			return appendMarker(dst[:base], key, m)
		}
	}
	return dst
}

// tagLen returns the length of a leading ", seq = N" or ", op_id = N" of s that
// the end or another comma follows, or 0.
func tagLen(s string) int {
	rest, ok := strings.CutPrefix(s, seq)
	if !ok {
		rest, ok = strings.CutPrefix(s, opID)
	}
	digits := run(rest, isDigit)
	if !ok || digits == 0 || digits < len(rest) && rest[digits] != ',' {
		return 0
	}
	return len(s) - len(rest) + digits
}

// appendUntagged appends to dst what is left of s without what tagLen finds.
func appendUntagged(dst []byte, s string) []byte {
	for {
		i := strings.IndexByte(s, ',')
		if i < 0 {
			return append(dst, s...)
		}
		dst = append(dst, s[:i]...)
		n := tagLen(s[i:])
		if n == 0 {
			dst = append(dst, ',')
			n = 1
		}
		s = s[i+n:]
	}
}

// counter looks at the number that begins at text[i] and reports whether it counts something. If so text[start:end] is
// to be replaced, else reading continues at end.
func counter(text string, i int) (start, end int, ok bool) {
	var prev byte
	if i > 0 {
		prev = text[i-1]
	}
	if !isAlnum(prev) {
		if n := addressLen(text[i:]); n > 0 && hexEnd(text, i+n) {
			return i, i + n, true
		}
	}
	end = i + run(text[i:], isDigit)
	var next byte
	if end < len(text) {
		next = text[end]
	}
	if isHex(prev) && !isDigit(prev) || isHex(next) && !isDigit(next) || end-i >= minHexID {
		if s, e := hexID(text, i, end); e > s {
			return s, e, true
		}
	}
	switch {
	case end-i >= longNumber:
	case atEnd(text[end:]):
		if gluedShort(text, i, end) {
			return i, end, false
		}
	case isLetter(next):
		return i, end, false // 3D, 4x4, 2nd
	case isValuePlace(prev):
		end += decimals(text[end:])
	case !counts(text[:i]):
		return i, end, false
	}
	return i, end, true
}

// longNumber is the number of digits from which a number counts as a counter anywhere.
const longNumber = 4

// isValuePlace reports whether a number after c, or at the start (0), is a value
// and not part of a name.
func isValuePlace(c byte) bool { return c == 0 || strings.IndexByte(" =#:[(,@/-+<{'\"", c) >= 0 }

// decimals returns the length of a leading ".5" or ".5.1" of s that no letter follows.
func decimals(s string) int {
	n := 0
	for n+1 < len(s) && s[n] == '.' && isDigit(s[n+1]) {
		m := n + 1 + run(s[n+1:], isDigit)
		if isWordAt(s, m) {
			break
		}
		n = m
	}
	return n
}

// atEnd reports whether only text that will be cut follows.
func atEnd(s string) bool {
	for s != "" {
		if s[0] == ' ' {
			s = s[1:]
			continue
		}
		n := tagLen(s)
		if n == 0 {
			return false
		}
		s = s[n:]
	}
	return true
}

// gluedShort reports whether text[i:end] belongs to the word before it, as in
// v2, fp16, bf16, int8, t5: two digits or fewer after two letters or fewer, or
// after the name of a number type.
func gluedShort(text string, i, end int) bool {
	w := wordBefore(text[:i])
	return w != "" && end-i <= 2 && (len(w) <= 2 || slices.Contains(numberTypes, w))
}

var numberTypes = []string{"int", "uint", "float", "nvfp", "mxfp"}

// wordBefore returns the letters that s ends in, at most eleven.
func wordBefore(s string) string {
	i := len(s)
	for i > 0 && len(s)-i <= len("microbatch") && isLetter(s[i-1]) {
		i--
	}
	return s[i:]
}

// counts reports whether s ends in a word that counts, "_" or not after it.
func counts(s string) bool {
	w := wordBefore(strings.TrimSuffix(s, "_"))
	return slices.ContainsFunc(counting, func(word string) bool { return strings.EqualFold(w, word) })
}

var counting = []string{"id", "req", "seq", "step", "iter", "batch", "token", "epoch", "chunk", "request", "iteration",
	"microbatch"}

// Lengths of a hexadecimal id: a short hash, and SHA-256 with room to spare.
const (
	minHexID = 8
	maxHexID = 80
)

// hexID returns the hexadecimal id around the digits text[i:end], with the
// groups of a UUID that follow, or an empty span. An id mixes digits and letters.
func hexID(text string, i, end int) (start, stop int) {
	for start = i; start > 0 && i-start < maxHexID && isHex(text[start-1]); {
		start--
	}
	stop = end + run(clip(text[end:], maxHexID), isHex)
	if stop-start < minHexID || !hexStart(text, start) || !hexEnd(text, stop) {
		return i, i
	}
	for stop < len(text) && text[stop] == '-' {
		n := stop + 1 + run(clip(text[stop+1:], maxHexID), isHex)
		if n-stop-1 != 4 && n-stop-1 != 12 || isWordAt(text, n) {
			break
		}
		stop = n
	}
	return start, stop
}

// hexStart reports whether an id can begin at text[i]: after no letter or
// digit, nor after the "#" that replaced the beginning of its word.
func hexStart(text string, i int) bool {
	if i == 0 {
		return true
	}
	if text[i-1] == '#' {
		return i == 1 || text[i-2] == ' '
	}
	return !isAlnum(text[i-1]) && text[i-1] < 0x80
}

// hexEnd reports whether an id can end before text[i].
func hexEnd(text string, i int) bool {
	return i == len(text) || !isAlnum(text[i]) && text[i] < 0x80 && text[i] != '#'
}

// Prefixes of the counters of PyTorch's emit_nvtx.
const (
	seq  = ", seq = "
	opID = ", op_id = "
)

// CutCounters returns text without the counters of emit_nvtx at its end, and whether there were any. The rest is a key
// of the same kind as AppendRangeKey's.
func CutCounters(text string) (rest string, ok bool) {
	rest = text
	if mayMark(text) || len(text) > maxRange {
		return text, false
	}
	for {
		i := len(rest)
		for i > 0 && isDigit(rest[i-1]) {
			i--
		}
		switch { // comparing in place: this is done for each of millions of ranges
		case i == len(rest):
			return rest, len(rest) < len(text)
		case i >= len(opID) && rest[i-len(opID):i] == opID:
			rest = rest[:i-len(opID)]
		case i >= len(seq) && rest[i-len(seq):i] == seq:
			rest = rest[:i-len(seq)]
		default:
			return rest, len(rest) < len(text)
		}
	}
}

// AppendRangeKey appends to dst a key of text that is much cheaper than its canonical form: text without the counters
// of PyTorch's emit_nvtx, ", seq = N" and ", op_id = N". Ranges of equal key have equal canonical names
// (AppendRangeCanonical) and equal phases (BuiltinPhase), so that one answer holds for all of them.
func AppendRangeKey(dst []byte, text string) []byte {
	if mayMark(text) || len(text) > maxRange {
		return append(dst, text...)
	}
	return appendUntagged(dst, strings.TrimRight(text, " "))
}
