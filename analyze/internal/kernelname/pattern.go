package kernelname

import (
	"slices"
	"strings"
)

// compiledRule is a rule with its patterns parsed.
type compiledRule struct {
	rule
	anyOf, noneOf, rawOf patterns
	wordsOf              []wordPattern
	weak                 bool
}

func weak(rs []rule) []compiledRule {
	list := compile(rs)
	for i := range list {
		list[i].weak = true
	}
	return list
}

func compile(rs []rule) []compiledRule {
	out := make([]compiledRule, len(rs))
	for i, r := range rs {
		out[i] = compiledRule{rule: r, anyOf: parsePatterns(r.any), noneOf: parsePatterns(r.not),
			rawOf: parsePatterns(r.raw), wordsOf: parseWords(r.words)}
	}
	return out
}

func (r *compiledRule) matches(v *view) bool {
	return (r.anyOf.in(v.text) || anyWords(r.wordsOf, v)) && !r.noneOf.in(v.text) &&
		(r.raw == "" || r.rawOf.in(v.raw))
}

// patterns match where one of them does.
type patterns []pattern

// pattern matches where all its parts are found, in any order.
type pattern []part

// part is a literal and what it is bound to.
type part struct {
	lit        string
	start, end bool // ^ and $: the text's
	left       bool // ~ before: no letter or digit to the left
	right      bool // ~ after: none to the right
}

// parsePatterns reads "^abc def~ gh&ij": parts joined by "&" must all be there.
func parsePatterns(s string) patterns {
	var out patterns
	for field := range strings.FieldsSeq(s) {
		var p pattern
		for lit := range strings.SplitSeq(field, "&") {
			var q part
			lit, q.start = strings.CutPrefix(lit, "^")
			lit, q.left = strings.CutPrefix(lit, "~")
			lit, q.end = strings.CutSuffix(lit, "$")
			lit, q.right = strings.CutSuffix(lit, "~")
			q.lit = lit
			p = append(p, q)
		}
		out = append(out, p)
	}
	return out
}

func (ps patterns) in(text string) bool {
	return slices.ContainsFunc(ps, func(p pattern) bool { return p.in(text) })
}

func (p pattern) in(text string) bool {
	return !slices.ContainsFunc(p, func(q part) bool { return !q.in(text) })
}

func (q part) in(text string) bool {
	switch {
	case q.start && q.end:
		return text == q.lit
	case q.start:
		return strings.HasPrefix(text, q.lit) && q.bordered(text, 0)
	case q.end:
		return strings.HasSuffix(text, q.lit) && q.bordered(text, len(text)-len(q.lit))
	case !q.left && !q.right:
		return strings.Contains(text, q.lit)
	}
	for at := 0; ; at++ {
		i := strings.Index(text[at:], q.lit)
		if i < 0 {
			return false
		}
		if at += i; q.bordered(text, at) {
			return true
		}
	}
}

// bordered reports whether the literal at index i has the borders it asks for.
func (q part) bordered(text string, i int) bool {
	if q.left && i > 0 && isAlnum(text[i-1]) {
		return false
	}
	j := i + len(q.lit)
	return !q.right || j >= len(text) || !isAlnum(text[j])
}

func isAlnum(c byte) bool { return isLetter(c) || isDigit(c) }
