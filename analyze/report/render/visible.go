// Package render writes documents as markdown, as HTML and as terminal text, and report tables as CSV. It computes
// nothing, and package present decides about content.
//
// Names from a capture are untrusted text. Every format guarantees:
//
//   - They are shown as literal text: no markup, no link, no mention, no escape sequence comes from a name.
//   - Characters that cannot be seen or that reorder what is around them (control, bidirectional, zero-width, format
//     and unassigned characters, lone surrogates, bytes that are not UTF-8) are written as visible ASCII or control
//     pictures, see [Visible].
//   - No output line starts with the workflow commands of a CI log, and none contains them if that is enough.
//
// Explain's own words go through the same escapes, because they can quote a name.
package render

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMarks is how many combining marks may sit on one character. Real scripts need up to three.
const maxMarks = 4

// Visible replaces every character without a shape: newline by ␤, carriage return by ␍, other control characters by
// their pictures, invisible, reordering and unassigned characters by \u{hex}, invalid bytes by \x{hex}. A combining
// mark without a base and the fifth mark on one base become \u{hex} too. Two number signs that would start a command of
// a CI log (##[, ##vso[) are separated. Everything else is kept. Visible(Visible(s)) is Visible(s).
func Visible(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	marks := maxMarks // a mark at the start or after a space has no base
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		at := i
		i += size
		mark := unicode.Is(unicode.M, r)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x{%x}`, s[at])
		case r == '\n':
			b.WriteRune('␤')
		case r < 0x20:
			b.WriteRune(0x2400 + r)
		case r == 0x7f:
			b.WriteRune('␡')
		case hidden(r) || mark && marks >= maxMarks:
			fmt.Fprintf(&b, `\u{%x}`, r)
			marks = maxMarks
			continue
		case r == '#' && logCommand(s[:at], s[at:]):
			b.WriteString(`\u{23}`)
		default:
			b.WriteRune(r)
		}
		switch {
		case mark:
			marks++
		case r == ' ':
			marks = maxMarks
		default:
			marks = 0
		}
	}
	return b.String()
}

// plain reports whether s is printable ASCII without a number sign, as nearly every name is.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] > 0x7e || s[i] == '#' {
			return false
		}
	}
	return true
}

// hidden reports whether a character is invisible, or changes how others are shown.
func hidden(r rune) bool {
	return r != ' ' && !unicode.IsPrint(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) ||
		unicode.Is(unicode.Variation_Selector, r) ||
		r == '\u2800' // BRAILLE PATTERN BLANK
}

// logCommand reports whether rest, which starts with a number sign, is the second one of ##[command], ##vso[command] or
// the like. CI runners look for these anywhere in a line.
func logCommand(before, rest string) bool {
	if !strings.HasSuffix(before, "#") {
		return false
	}
	rest = strings.TrimLeftFunc(rest[1:], func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' })
	return strings.HasPrefix(rest, "[")
}

// unnamed replaces an empty name.
const unnamed = "(unnamed)"

// logLine breaks up a workflow command ("::error::") at the start of an output line. It must be the last step on a
// line, and leaves all other lines unchanged.
func logLine(line string) string {
	rest := strings.TrimLeft(line, " ")
	if !strings.HasPrefix(rest, "::") {
		return line
	}
	return line[:len(line)-len(rest)] + `\u{3a}` + rest[1:]
}
