package kernelname

import (
	"cmp"
	_ "embed"
	"strings"
)

// rule assigns a category to names that hold one of the patterns in any or words and none of those in not.
type rule struct {
	cat      Category
	comp     string // component, if it is not the category's own
	any, not patterns
	raw      patterns // of the original name, before casts were dropped; nil: any name
	words    patterns // of whole words of the kernel's own name, in either spelling
	weak     bool     // of words that other kernels have too
}

// The rules in order: the first that matches wins. Order and exceptions avoid mistakes of the engines' own classifiers.
// Weak rules come last.
var (
	//go:embed rules.txt
	ruleText string
	//go:embed rules_weak.txt
	weakText string
	rules    = append(readRules(ruleText, false), readRules(weakText, true)...)
)

// readRules reads rules, one a line: a category, and after each " | " the name of a field and what it holds. Patterns
// are separated by spaces and match lower-case canonical text; "^" binds a pattern to the start of the text, "$" to its
// end, and "~" to the border of a word of letters and digits; for those in words see parseWords. A line that starts
// with # is a comment.
func readRules(text string, weak bool) (list []rule) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		category, fields, _ := strings.Cut(line, " | ")
		r := rule{cat: Category(category), weak: weak}
		for field := range strings.SplitSeq(fields, " | ") {
			switch name, value, _ := strings.Cut(field, " "); name {
			case "comp":
				r.comp = value
			case "any":
				r.any = parsePatterns(value)
			case "not":
				r.not = parsePatterns(value)
			case "raw":
				r.raw = parsePatterns(value)
			case "words":
				r.words = parseWords(value)
			default:
				panic("kernelname: a rule with a field " + name)
			}
		}
		list = append(list, r)
	}
	return list
}

// other and jit stand for names that match no rule.
var (
	other = rule{cat: Other}
	jit   = rule{cat: Triton}
)

// components of the categories that have one.
var components = map[Category]string{
	Comm: CompComm, Memory: CompMemory, KVCache: CompKVCache, Attention: CompAttention, LinearAttn: CompAttention,
	MoEGEMM: CompMoE, MoERoute: CompMoE, GEMM: CompGEMM, Norm: CompNorm, Rope: CompRope, Quant: CompQuant,
	Sampling: CompSampling, Elementwise: CompElementwise, Activation: CompFFN,
}

func (r *rule) component() string {
	return cmp.Or(r.comp, components[r.cat], CompOther)
}

// rule returns the rule of the dictionary for the kernel, else the first rule that matches.
func (v *view) rule() *rule {
	r := v.ruled()
	switch c, ok := known(v.head); {
	case ok && c != r.cat:
		return &rule{cat: c}
	case ok && r.weak:
		return &rule{cat: r.cat, comp: r.comp}
	}
	return r
}

// ruled is the first rule that matches, without the dictionary.
func (v *view) ruled() *rule {
	for i := range rules {
		if r := &rules[i]; r.matches(v) {
			return r
		}
	}
	if isJITName(v.name) {
		return &jit
	}
	return &other
}

// isJITName reports whether a name looks like a @triton.jit function: a bare lower_snake identifier. C and C++ kernels
// come with parameters, except extern "C" ones, for which there are other rules.
func isJITName(s string) bool {
	return run(s, func(c byte) bool { return isDigit(c) || c == '_' || isLower(c) }) == len(s) &&
		strings.Contains(s, "_") && !strings.HasPrefix(s, "nvfuser")
}
