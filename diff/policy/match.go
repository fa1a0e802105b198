package policy

import (
	"regexp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// Within reports whether a change is at most what is tolerated, up to the rounding of binary fractions: 0.80 - 0.75 is
// no more than 0.05.
func Within(change, tolerated float64) bool { return change <= tolerated*(1+1e-9) }

// OnKernels reports whether a rule is about kernels one by one: by the label kernel alone, or by a match.
func OnKernels(r *Rule) bool {
	_, labelled := r.Labels["kernel"]
	return labelled && len(r.Labels) == 1 || len(r.Labels) == 0 && !r.Match.Empty()
}

// naming are the labels that Match looks at, in the order of preference.
var naming = []string{"kernel", "range", "api", "component", "collective", "process", "category", "finding"}

// Takes reports whether the rule selects a metric with these labels. also are further names of the kernel that the
// labels name, such as the one that tables show: any of them will do.
func (r *Rule) Takes(l report.Labels, also ...string) bool {
	if len(r.Labels) > 0 && len(r.Labels) != len(l) || len(r.Labels) == 0 && r.Match.Empty() && len(l) > 0 {
		return false
	}
	switch {
	case !labelled(r, l, also...):
		return false
	case r.Match.Empty():
		return true
	case len(r.Labels) == 0 && len(l) != 1:
		return false
	}
	m := r.names
	if m == nil {
		m = new(r.Match.Compile())
	}
	return m.Covers(l, also...)
}

// labelled reports whether labels, which may be more, are like those of a rule.
func labelled(r *Rule, l report.Labels, also ...string) bool {
	for key, pattern := range r.Labels {
		v, ok := l[key]
		if !ok || !glob(pattern, v) && !(key == kernelLabel && anyOf(also, func(n string) bool { return glob(pattern, n) })) {
			return false
		}
	}
	return true
}

// kernelLabel names a kernel, which goes by several names: the full one and the one that tables show.
const kernelLabel = "kernel"

func anyOf(names []string, ok func(string) bool) bool {
	return slices.ContainsFunc(names, func(n string) bool { return n != "" && ok(n) })
}

// TakesKind reports whether the rule's labels single out a kind of unit with these labels, which may be more.
func (r *Rule) TakesKind(l report.Labels) bool {
	return len(r.Labels) > 0 && r.Match.Empty() && labelled(r, l)
}

// TakesExactly reports whether the rule names these labels, all of them and without a pattern.
func (r *Rule) TakesExactly(l report.Labels) bool {
	return len(r.Labels) == len(l) && r.Takes(l) && !strings.ContainsAny(r.Labels.String(), "*?")
}

// Named reports whether the rule singles kernels out, rather than taking them all.
func (r *Rule) Named() bool {
	pattern, ok := r.Labels["kernel"]
	return ok && strings.Trim(pattern, "*?") != "" || !r.Match.Empty() && strings.Trim(r.Match.Glob, "*?") != "" ||
		r.Match.Regex != ""
}

// Covers reports whether a match is of what these labels name. also are further names of its kernel, and those of the
// kernel that it replaced: any will do.
func (m *nameMatch) Covers(l report.Labels, also ...string) bool {
	for _, key := range naming {
		if v, ok := l[key]; ok {
			return m.matches(v) || key == kernelLabel && anyOf(also, m.matches)
		}
	}
	return false
}

// Nearest are up to n of the names, those most similar to what the rule's patterns spell out.
func (r *Rule) Nearest(names []string, n int) []string {
	pattern := r.Match.String()
	for _, key := range naming {
		if v, ok := r.Labels[key]; ok {
			pattern += " " + v
		}
	}
	return wording.Similar(Cut(pattern), names, n)
}

// String is a match as a policy would write it.
func (m Match) String() string {
	switch {
	case m.Regex == "":
		return m.Glob
	case m.Glob == "":
		return "/" + m.Regex + "/"
	}
	return m.Glob + " /" + m.Regex + "/"
}

// Match selects metrics by the value of their naming label, by a glob in which only * and ? are special, or by an RE2
// expression. Kernel names hold brackets and commas, which is why a glob knows no others.
type Match struct {
	Glob  string
	Regex string
}

func (m Match) Empty() bool { return m.Glob == "" && m.Regex == "" }

// nameMatch is a match that is compiled for many names.
type nameMatch struct {
	glob string
	expr *regexp.Regexp // the empty one matches any name; nil if it is not valid, which matches none
}

func (m Match) Compile() nameMatch {
	expr, _ := regexp.Compile(m.Regex)
	return nameMatch{m.Glob, expr}
}

func (m *nameMatch) matches(s string) bool {
	return m.expr != nil && (m.glob == "" || glob(m.glob, s)) && m.expr.MatchString(s)
}

// glob reports whether s is pattern with * standing for any text and ? for any one character.
func glob(pattern, s string) bool {
	p, t := []rune(pattern), []rune(s)
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(t) {
		switch {
		case i < len(p) && (p[i] == '?' || p[i] == t[j]) && p[i] != '*':
			i++
			j++
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
