package render

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// place is the context of inline markdown, which decides what must be escaped.
type place struct {
	cell  bool // in a table cell: | separates
	start bool // at the start of a block: #, -, 1. and the like open other blocks
}

// inline writes spans as one line of GitHub-flavoured markdown.
func inline(spans []doc.Span, p place) string {
	var b strings.Builder
	for _, s := range merge(spans) {
		at := place{cell: p.cell, start: p.start && b.Len() == 0}
		part := ""
		switch s.Kind {
		case doc.KindName:
			part = codeSpan(wording.Shorten(Visible(s.Text), longestText), p.cell)
		case doc.KindCode:
			part = codeSpan(Visible(s.Text), p.cell)
		case doc.KindStrong:
			if part = textMD(strings.Trim(s.Text, " "), place{cell: p.cell}); part != "" {
				part = "**" + part + "**"
			}
		case doc.KindLink:
			part = textMD(s.Text, place{cell: p.cell})
			if dest, ok := safeDest(s.Behind()); ok && part != "" {
				part = "[" + part + "](" + dest + ")"
			}
		default:
			part = textMD(s.Text, at)
		}
		if part == "" {
			continue
		}
		b.WriteString(separator(b.String(), part, s.Kind))
		b.WriteString(part)
	}
	return strings.Trim(b.String(), " ")
}

// merge joins adjacent spans of plain text, so that they are checked together: "@" and "org" are a mention.
func merge(spans []doc.Span) []doc.Span {
	var out []doc.Span
	for _, s := range spans {
		if n := len(out); n > 0 && s.Kind == doc.KindText && out[n-1].Kind == doc.KindText {
			out[n-1].Text += s.Text
			continue
		}
		out = append(out, s)
	}
	return out
}

// separator returns the space needed between two parts so that neither changes the meaning of the other: code spans
// must not touch, and emphasis only opens and closes reliably beside a space.
func separator(before, part string, k doc.Kind) string {
	if before == "" || part[0] == ' ' || before[len(before)-1] == ' ' {
		return ""
	}
	last := before[len(before)-1]
	touching := last == '`' && part[0] == '`'
	// Some parsers let an address begin before a backtick
	address := last != '(' && part[0] == '`' && strings.Contains(part, "@")
	closing := strings.HasSuffix(before, "**") && strings.IndexByte(".,;:!?)", part[0]) < 0
	opening := k == doc.KindStrong && last != '('
	if touching || address || closing || opening {
		return " "
	}
	return ""
}

// codeSpan writes s, which is already visible, as a code span that contains exactly s: the fence is longer than any run
// of backticks inside, and spaces that markdown would strip are protected.
func codeSpan(s string, cell bool) string {
	if s == "" {
		return unnamed
	}
	runs := strings.FieldsFunc(s, func(r rune) bool { return r != '`' })
	fence := strings.Repeat("`", 1+lists.Most(runs, func(run string) int { return len(run) }))
	first, last := s[0], s[len(s)-1]
	if first == '`' || last == '`' || first == ' ' && last == ' ' && strings.Trim(s, " ") != "" {
		s = " " + s + " "
	}
	if cell { // GFM removes the backslash before it looks for code spans
		s = strings.ReplaceAll(s, "|", `\|`)
	}
	return fence + s + fence
}

// textMD writes explain's own text so that it reads as written: markup characters are escaped, and words that GitHub
// would turn into a mention, a reference, a link, an emoji or a formula become code spans.
func textMD(s string, p place) string {
	s = Visible(s)
	var b strings.Builder
	for i, word := range strings.Split(s, " ") {
		if i > 0 {
			b.WriteByte(' ')
		}
		if word == "" {
			continue
		}
		if !transformed(word) {
			escapeWord(&b, word, place{cell: p.cell, start: p.start && strings.Trim(b.String(), " ") == ""})
			continue
		}
		core := strings.TrimRight(word, ".,;:!?)")
		if !transformed(core) {
			core = word
		}
		b.WriteString(codeSpan(core, p.cell))
		escapeWord(&b, word[len(core):], place{cell: p.cell})
	}
	return b.String()
}

// transformed reports whether GitHub would transform a word of plain text: @mention or address, #1 and GH-1 references,
// links, :emoji:, $formula$. Most words lack the characters, which are found faster than the expression.
func transformed(word string) bool {
	return strings.ContainsAny(word, ":$.@#-") && active.MatchString(word)
}

var active = regexp.MustCompile(`://|\$|(?i:www\.|gh-[0-9])|@[0-9A-Za-z]|#[0-9]|:[0-9A-Za-z_+-]+:`)

func alnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// escapeWord writes a word with backslashes before the characters that are markup in this place.
func escapeWord(b *strings.Builder, word string, p place) {
	rest := word
	if p.start {
		rest = escapeStart(b, word)
	}
	skipped := len(word) - len(rest)
	for i := 0; i < len(rest); i++ {
		c := rest[i]
		at := i + skipped
		switch c {
		case '\\', '`', '*', '[', ']', '~':
			b.WriteByte('\\')
		case '<':
			if i+1 < len(rest) && (alnum(rest[i+1]) && rest[i+1] > '9' || strings.IndexByte("/!?", rest[i+1]) >= 0) {
				b.WriteByte('\\')
			}
		case '_':
			if at == 0 || at == len(word)-1 || !alnum(word[at-1]) || !alnum(word[at+1]) {
				b.WriteByte('\\')
			}
		case '&':
			if i+1 < len(rest) && (alnum(rest[i+1]) || rest[i+1] == '#') {
				b.WriteByte('\\')
			}
		case '|':
			if p.cell {
				b.WriteByte('\\')
			}
		}
		b.WriteByte(c)
	}
}

// escapeStart escapes what would open another block at the start of a line, and returns the rest.
func escapeStart(b *strings.Builder, word string) string {
	if strings.Trim(word, "#-+=|:") == "" || word[0] == '>' || strings.HasPrefix(word, "::") {
		b.WriteByte('\\')
		b.WriteByte(word[0])
		return word[1:]
	}
	number := strings.TrimLeft(word, "0123456789")
	if digits := word[:len(word)-len(number)]; digits != "" && (number == "." || number == ")") {
		b.WriteString(digits + `\` + number)
		return ""
	}
	return word
}

// safeDest returns a link's destination with everything except plain URL characters percent-encoded, and whether it is
// a relative path or an http(s) address.
func safeDest(dest string) (string, bool) {
	if dest == "" {
		return "", false
	}
	if i := strings.IndexAny(dest, ":/?#"); i >= 0 && dest[i] == ':' {
		if scheme := strings.ToLower(dest[:i]); scheme != "http" && scheme != "https" {
			return "", false
		}
	}
	var b strings.Builder
	for i := 0; i < len(dest); i++ {
		c := dest[i]
		if alnum(c) || strings.IndexByte("-._~:/?#@!$&'+,;=%", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String(), !strings.HasPrefix(dest, "//")
}
