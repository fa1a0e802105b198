// Package wording writes counts and long names into sentences, alike in every output.
package wording

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// Count writes a number with its noun: "1 warning", "2,000 warnings", "2 copies".
func Count[T int | int64](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok && !strings.ContainsAny(stem[len(stem)-1:], "aeiou") {
		return unit.Int(n) + " " + stem + "ies"
	}
	return unit.Int(n) + " " + noun + "s"
}

// Mean writes a count that may be a mean, with three digits if it is not whole: "1,832", "2.02".
func Mean(n float64) string {
	if n == math.Trunc(n) && math.Abs(n) < 1e15 {
		return unit.Int(int64(n))
	}
	return strconv.FormatFloat(n, 'g', max(3, len(strconv.Itoa(int(math.Abs(n))))), 64)
}

// Means writes counts per something, from → to if there are two: "0 → 1 per unit". It says so if one is a mean:
// "0.517 per step on average".
func Means(per string, counts ...float64) string {
	var list []string
	for _, n := range counts {
		list = append(list, Mean(n))
		if n != math.Trunc(n) && !strings.HasSuffix(per, averaged) {
			per += averaged
		}
	}
	return strings.Join(list, " → ") + " " + per
}

const averaged = " on average"

// Shorten is the one way in which names are shortened for people, to at most limit characters; a limit below 1 means
// none. Of a template it first drops what all kernels have and none differs in: namespaces, casts, the return type and
// parameters. If that is not enough, it keeps the start and the end, with … between them.
func Shorten(s string, limit int) string {
	if limit >= 1 && utf8.RuneCountInString(s) > limit && strings.Contains(s, "<") {
		s = plainTemplate(s)
	}
	return ShortenTo(s, limit, limit-limit*2/3-1)
}

var (
	qualifiers = regexp.MustCompile(`(?:\b[A-Za-z_]\w*|<unnamed>|\(anonymous namespace\)|\{anonymous\})::`)
	casts      = regexp.MustCompile(`\((?:bool|(?:unsigned |signed )?(?:char|short|int|long))\)(-?\w)`)
)

// plainTemplate is a kernel's name without namespaces, casts, return type and parameters.
func plainTemplate(s string) string {
	s = casts.ReplaceAllString(qualifiers.ReplaceAllString(strings.TrimPrefix(s, "void "), ""), "$1")
	at := strings.LastIndex(s, ">(")
	if at > 0 && strings.HasSuffix(s, ")") && !strings.ContainsAny(s[at+2:], "<>{}[]") {
		s = s[:at+1]
	}
	return s
}

// ShortenTo only cuts: it keeps tail characters at the end.
func ShortenTo(s string, limit, tail int) string {
	if limit < 1 || utf8.RuneCountInString(s) <= limit {
		return s
	}
	r, tail := []rune(s), max(tail, 0)
	return strings.TrimRight(string(r[:limit-tail-1]), " ,…") + "…" + strings.TrimLeft(string(r[len(r)-tail:]), "…") // it may be cut already
}

// Some lists names, and says how many more there are of all.
func Some(names []string, all int) string {
	text := strings.Join(names, ", ")
	if more := all - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Wrap breaks a text at its blanks into lines of at most width characters; a longer word is a line of its own.
func Wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line+" "+word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// Edits is how many bytes must be added, removed, replaced or swapped with their neighbour to make b of a: the optimal
// string alignment distance.
func Edits(a, b string) int {
	var earlier, last []int
	row := lists.Indexes[int](len(b) + 1)
	for i := range len(a) {
		earlier, last, row = last, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			row[j+1] = 1 + min(last[j], last[j+1], row[j])
			if a[i] == b[j] {
				row[j+1] = last[j]
			} else if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], earlier[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

// mostCompared bounds the part of a name that is compared, in bytes.
const mostCompared = 256

// Similar are up to n of the names, those that have most in common with a pattern: the longest runs of each of its words,
// whatever the case. Of equals the first ones.
func Similar(pattern string, names []string, n int) []string {
	words := strings.FieldsFunc(strings.ToLower(pattern), func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c)
	})
	type scored struct {
		name   string
		common int
	}
	list := lists.Map(names, func(name string) scored {
		start := strings.ToLower(name[:min(len(name), mostCompared)])
		return scored{name, lists.Sum(words, func(w string) int { return commonRun(w, start) })}
	})
	lists.Sort(list, func(a, b scored) int { return cmp.Compare(b.common, a.common) })
	return lists.Map(list[:min(n, len(list))], func(s scored) string { return s.name })
}

// commonRun is the length of the longest text that a and b both hold, in bytes.
func commonRun(a, b string) int {
	longest := 0
	ends := make([]int, len(b)+1) // of the common text that ends before a[i] and b[k]
	for i := range len(a) {
		for k := len(b) - 1; k >= 0; k-- {
			if a[i] != b[k] {
				ends[k+1] = 0
				continue
			}
			ends[k+1] = ends[k] + 1
			longest = max(longest, ends[k+1])
		}
	}
	return longest
}

// plain are words that a POSIX shell takes as they are.
var plain = regexp.MustCompile(`^[A-Za-z0-9_@+=:,./-]+$`)

// ShellWord is a word as it is pasted into a POSIX shell: in single quotes, unless it is plain.
func ShellWord(s string) string {
	if plain.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
