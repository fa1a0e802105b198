package render

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"github.com/nsys-llm/explain/analyze/report/wording"
)

// runeWidth is the number of terminal columns of a visible character: 0, 1 or 2. A character of ambiguous East Asian
// width counts as 1, as in terminals outside East Asia.
func runeWidth(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// textWidth is the number of terminal columns of a text without control characters.
func textWidth(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// fit shortens s in the middle to at most the given number of columns.
func fit(s string, columns int) string {
	if textWidth(s) <= columns {
		return s
	}
	if columns < 1 {
		return ""
	}
	if s = wording.Shorten(s, columns); textWidth(s) <= columns { // unless characters are wide
		return s
	}
	head := prefixOf(s, (columns-1)*2/3)
	rest := []rune(s[len(head):])
	tail := len(rest)
	for room := columns - 1 - textWidth(head); tail > 0 && runeWidth(rest[tail-1]) <= room; tail-- {
		room -= runeWidth(rest[tail-1])
	}
	return head + "…" + string(rest[tail:])
}

// pad fills s with spaces up to the given number of columns, on the left if right is set.
func pad(s string, columns int, right bool) string {
	n := columns - textWidth(s)
	if n <= 0 {
		return s
	}
	if right {
		return strings.Repeat(" ", n) + s
	}
	return s + strings.Repeat(" ", n)
}
