package kernelname

import (
	"slices"
	"strings"
)

// oneWord spells names that change case inside a word.
var oneWord = strings.NewReplacer("MoE", "Moe", "RoPE", "Rope")

// words is s as lower-case words with "_" around each: "void ns::TopKPerRow" is "_void_ns_top_k_per_row_". A word ends
// where the case goes up ("RMSNorm" is rms_norm, "Sm90Fused" sm90_fused, "W8A8" one word) and at what is no letter and
// no digit. "MoE", "MoEs" and "RoPE" are one word.
func words(s string) string {
	s = oneWord.Replace(s)
	out := make([]byte, 1, len(s)+len(s)/4+2)
	out[0] = '_'
	border := func() {
		if out[len(out)-1] != '_' {
			out = append(out, '_')
		}
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case !isAlnum(c):
			border()
			continue
		case isUpper(c) && i > 0:
			nextLower := i+1 < len(s) && isLower(s[i+1])
			if isLower(s[i-1]) || nextLower {
				border()
			}
		}
		out = append(out, c|0x20) // digits have the bit already
	}
	border()
	return string(out)
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }

// parseWords reads patterns of whole words: "mega_moe" matches where these words follow each other, "attn*" also where
// one only begins so, "*attn" where it ends so, and "chunk&fwd" where both are. "^" binds to the first word of the
// function's own name.
func parseWords(s string) []wordPattern {
	var out []wordPattern
	for field := range strings.FieldsSeq(s) {
		var p wordPattern
		for lit := range strings.SplitSeq(field, "&") {
			lit, first := strings.CutPrefix(lit, "^")
			lit, begins := strings.CutSuffix(lit, "*")
			lit, ends := strings.CutPrefix(lit, "*")
			if !begins {
				lit += "_"
			}
			if !ends {
				lit = "_" + lit
			}
			p = append(p, wordPart{lit: lit, first: first})
		}
		out = append(out, p)
	}
	return out
}

// wordPattern matches where all its parts are found, in any order.
type wordPattern []wordPart

type wordPart struct {
	lit   string
	first bool // at the start of the function's own name
}

func anyWords(ps []wordPattern, v *view) bool {
	return slices.ContainsFunc(ps, func(p wordPattern) bool { return p.in(v) })
}

func (p wordPattern) in(v *view) bool {
	for _, q := range p {
		if q.first && !strings.HasPrefix(v.base, q.lit) || !q.first && !strings.Contains(v.words, q.lit) {
			return false
		}
	}
	return true
}
