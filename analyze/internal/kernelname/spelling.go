package kernelname

import (
	"regexp"
	"slices"
	"strings"
)

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// isWord reports whether c can be part of an identifier or a number.
func isWord(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '_' || c == '$' || c >= 0x80
}

func isWordAt(s string, i int) bool { return 0 <= i && i < len(s) && isWord(s[i]) }

// run is how many bytes at the start of s are of a kind.
func run(s string, is func(c byte) bool) int {
	n := 0
	for n < len(s) && is(s[n]) {
		n++
	}
	return n
}

// maxCast is the longest cast looked for, in bytes.
const maxCast = 240

// isCast reports whether s[open:end+1] is "(type)" before a number.
func isCast(s string, open, end int) bool {
	if end-open > maxCast || end+1 >= len(s) {
		return false
	}
	if c := s[end+1]; !isDigit(c) && (c != '-' || end+2 >= len(s) || !isDigit(s[end+2])) {
		return false
	}
	inner := s[open+1 : end]
	if inner == "" || isDigit(inner[0]) {
		return false
	}
	return run(inner, func(c byte) bool { return isWord(c) || strings.IndexByte(": <>*&,", c) >= 0 }) == len(inner)
}

// trimNumber cuts a literal's suffix: 128u → 128, 3ul → 3; an address is "#".
func trimNumber(w string) string {
	n := run(w, isDigit)
	if strings.Trim(w[n:], "uUlL") == "" {
		return w[:n]
	}
	return trimAddresses(w)
}

// trimAddresses replaces each 0x… that starts a part of w by "#".
func trimAddresses(w string) string {
	if !holds(w, "0x", "0X") {
		return w
	}
	return address.ReplaceAllString(w, "$1#")
}

var address = regexp.MustCompile(`(^|_)0[xX][0-9a-fA-F]+`)

// addressLen returns the length of a leading 0x… of s, or 0.
func addressLen(s string) int {
	if len(s) < 3 || s[0] != '0' || s[1]|0x20 != 'x' || !isHex(s[2]) {
		return 0
	}
	return 2 + run(s[2:], isHex)
}

// stripCounters replaces the counters of compilers: Triton's signature suffix (name_0d1d2de, from its versions before
// 3) and Inductor's trailing number (triton_poi_fused_add_12). Hand-written names keep their numbers.
func stripCounters(name []byte) []byte {
	if len(name) == 0 || slices.ContainsFunc(name, func(c byte) bool { return !isWord(c) && c != '#' }) {
		return name
	}
	counters := signatures
	if inductor.Match(name) {
		counters = numbers
	}
	at := counters.FindIndex(name[1:])
	if at == nil {
		return name
	}
	return append(name[:at[0]+1:at[0]+1], "_#"...)
}

var (
	// inductor is how names begin that torch.compile gives: triton_poi_fused_…, triton_mm_…, or triton__… and
	// triton_12 without description.
	inductor = regexp.MustCompile(`^triton_(?:[_0-9#]|(?:poi|red|per|tem|for|mm|bmm|spl|unk)(?:_|$))`)
	// signatures read 0d1d2de…: at least two arguments, since "2d" alone is a word. Numbers may be # already.
	signatures = regexp.MustCompile(`(?:_0d[0-9dec]*[0-9][0-9dec]*)+$`)
	numbers    = regexp.MustCompile(`(?:_(?:0d[0-9dec]*[0-9][0-9dec]*|[0-9#]+))+$`)
)

// Unqualified returns the canonical name without namespaces, as an ncu that
// prints "void reduce_kernel<…>" for "void at::native::reduce_kernel<…>" has
// it: the key to join its rows by. Two libraries may share one.
func Unqualified(name string) string { return unqualify(Canonical(name)) }

// unqualify drops each "ident::" and "<unnamed>::" that qualifies an
// identifier. A function that encloses a lambda is not a qualifier.
func unqualify(c string) string {
	out := make([]byte, 0, len(c))
	for i := 0; i < len(c); {
		if strings.HasPrefix(c[i:], anonymous+"::") && !isWordAt(c, i-1) {
			i += len(anonymous) + 2
			continue
		}
		if !isWord(c[i]) {
			out = append(out, c[i])
			i++
			continue
		}
		start := i
		i += run(c[i:], isWord)
		if strings.HasPrefix(c[i:], "::") && (isWordAt(c, i+2) && !strings.HasPrefix(c[i+2:], "operator") ||
			strings.HasPrefix(c[i+2:], anonymous)) {
			i += 2
			continue
		}
		out = append(out, c[start:i]...)
	}
	return string(out)
}

// Uncast drops only the casts that older demanglers print before template arguments that are numbers:
// "f<(int)128>(int)" becomes "f<128>(int)". Names of a current nsys or ncu stay unchanged.
func Uncast(name string) string {
	out := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		if name[i] == '(' && !(i > 0 && (isWord(name[i-1]) || name[i-1] == '>')) {
			window := name[i:min(len(name), i+maxCast+1)]
			if end := strings.IndexByte(window, ')'); end > 0 && isCast(name, i, i+end) {
				i += end
				continue
			}
		}
		out = append(out, name[i])
	}
	return string(out)
}
