package kernelname

import (
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

func (r *rule) matches(v *view) bool {
	words := func(p pattern) bool { return p.inWords(v) }
	return (r.any.in(v.text) || slices.ContainsFunc(r.words, words)) && !r.not.in(v.text) && (r.raw == nil || r.raw.in(v.raw))
}

// patterns match if one of them does.
type patterns []pattern

// pattern matches if all its parts are found, in any order.
type pattern []part

// part is a literal, and where it must stand.
type part struct {
	lit        string
	start, end bool // ^ and $: the text's
	left       bool // ~ before: no letter or digit to the left
	right      bool // ~ after: none to the right
}

// parse reads patterns, separated by spaces: the parts of one, joined by "&", must all be there.
func parse(s string, part func(lit string) part) (list patterns) {
	for field := range strings.FieldsSeq(s) {
		list = append(list, lists.Map(strings.Split(field, "&"), part))
	}
	return list
}

// parsePatterns reads "^abc def~ gh&ij".
func parsePatterns(s string) patterns {
	return parse(s, func(lit string) (q part) {
		lit, q.start = strings.CutPrefix(lit, "^")
		lit, q.left = strings.CutPrefix(lit, "~")
		lit, q.end = strings.CutSuffix(lit, "$")
		q.lit, q.right = strings.CutSuffix(lit, "~")
		return q
	})
}

func (ps patterns) in(text string) bool {
	return slices.ContainsFunc(ps, func(p pattern) bool { return p.in(text) })
}

func (p pattern) in(text string) bool {
	return !slices.ContainsFunc(p, func(q part) bool { return !q.in(text) })
}

func (q part) in(text string) bool {
	if q.start {
		return strings.HasPrefix(text, q.lit) && q.stands(text, 0)
	}
	for at := 0; ; at++ {
		i := strings.Index(text[at:], q.lit)
		if i < 0 {
			return false
		}
		if at += i; q.stands(text, at) {
			return true
		}
	}
}

// stands reports whether the literal at index i has the borders it asks for.
func (q part) stands(text string, i int) bool {
	j := i + len(q.lit)
	if q.left && i > 0 && isAlnum(text[i-1]) || q.right && j < len(text) && isAlnum(text[j]) {
		return false
	}
	return !q.end || j == len(text)
}

func isAlnum(c byte) bool { return isLetter(c) || isDigit(c) }

// holds reports whether a text has one of the words anywhere.
func holds(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// oneWord spells names that change case inside a word.
var oneWord = strings.NewReplacer("MoE", "Moe", "RoPE", "Rope")

// words is s as lower-case words with "_" around each: "void ns::TopKPerRow" is "_void_ns_top_k_per_row_". A word ends
// at a change to upper case ("RMSNorm" is rms_norm, "Sm90Fused" sm90_fused, "W8A8" one word) and at any character that
// is not a letter or a digit. "MoE", "MoEs" and "RoPE" are one word.
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
		case c >= 'A' && c <= 'Z' && i > 0:
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

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }

// parseWords reads patterns of whole words: "mega_moe" matches these words in sequence, "attn*" a word that begins so,
// "*attn" a word that ends so, and "chunk&fwd" a name with both. "^" binds to the first word of the function's own
// name.
func parseWords(s string) patterns {
	return parse(s, func(lit string) part {
		lit, first := strings.CutPrefix(lit, "^")
		lit, begins := strings.CutSuffix(lit, "*")
		lit, ends := strings.CutPrefix(lit, "*")
		if !begins {
			lit += "_"
		}
		if !ends {
			lit = "_" + lit
		}
		return part{lit: lit, start: first}
	})
}

// inWords reports whether a pattern of parseWords matches.
func (p pattern) inWords(v *view) bool {
	return !slices.ContainsFunc(p, func(q part) bool {
		if q.start {
			return !q.in(v.base)
		}
		return !q.in(v.words)
	})
}
