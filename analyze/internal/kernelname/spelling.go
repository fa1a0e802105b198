package kernelname

import (
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

// instanceNumber returns N of a leading "(instance N)".
func instanceNumber(s string) (string, bool) {
	s, ok := strings.CutPrefix(s, "(instance ")
	n := run(s, isDigit)
	return s[:n], ok && n > 0 && strings.HasPrefix(s[n:], ")")
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
	var b strings.Builder
	for i := 0; i < len(w); {
		n := addressLen(w[i:])
		if n == 0 || i > 0 && w[i-1] != '_' {
			b.WriteByte(w[i])
			i++
			continue
		}
		b.WriteByte('#')
		i += n
	}
	return b.String()
}

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
	for _, c := range name {
		if !isWord(c) && c != '#' {
			return name
		}
	}
	inductor := isInductor(string(name))
	cut := len(name)
	for {
		u := cut - 1
		for u >= 0 && name[u] != '_' {
			u--
		}
		if u <= 0 {
			break
		}
		if part := string(name[u+1 : cut]); !isSignature(part) && !(inductor && isCounter(part)) {
			break
		}
		cut = u
	}
	if cut == len(name) {
		return name
	}
	return append(name[:cut:cut], "_#"...)
}

// isInductor reports whether name is one that torch.compile gives:
// triton_poi_fused_…, triton_mm_…, or triton__… and triton_12 without description.
func isInductor(name string) bool {
	rest, ok := strings.CutPrefix(name, "triton_")
	if !ok || rest == "" {
		return false
	}
	if rest[0] == '_' || isDigit(rest[0]) || rest[0] == '#' {
		return true
	}
	kind, _, _ := strings.Cut(rest, "_")
	return slices.Contains([]string{"poi", "red", "per", "tem", "for", "mm", "bmm", "split", "unk"}, kind)
}

// isCounter reports whether part is a number, or the # that replaced one.
func isCounter(part string) bool {
	return part != "" && strings.Trim(part, "0123456789#") == ""
}

// isSignature reports whether part reads 0d1d2de…: at least two arguments, since "2d" alone is a word.
func isSignature(part string) bool {
	others, ok := strings.CutPrefix(part, "0d")
	return ok && strings.ContainsAny(others, "0123456789") && strings.Trim(others, "0123456789dec") == ""
}

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
