package render

import (
	"cmp"
	"io"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// TerminalOptions are the options of [Terminal].
type TerminalOptions struct {
	Width int  // columns, at least 40; 0 means 100
	Color bool // write colours and bold; the caller knows whether it writes to a terminal and whether NO_COLOR is set
}

// Terminal writes a document as text for a terminal: aligned, wrapped and shortened to the width. It writes escape
// sequences only if Color is set, and never from a name.
func Terminal(w io.Writer, d doc.Document, o TerminalOptions) error {
	t := terminal{width: max(cmp.Or(o.Width, 100), 40), color: o.Color}
	var b strings.Builder
	for _, l := range t.blocks(d) {
		b.WriteString(t.line(l) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// style is the parameter of an SGR escape sequence, or empty.
type style string

const (
	bold  style = "1"
	faint style = "2"
)

var toneStyles = map[doc.Tone]style{doc.Good: "32", doc.Bad: "31", doc.Warn: "33", doc.Muted: faint}

// frag is visible text in one style. A name may still be shortened.
type frag struct {
	text  string
	style style
	name  bool
}

// row is one line of output.
type row []frag

func (r row) width() int {
	return lists.Sum(r, func(f frag) int { return textWidth(f.text) })
}

type terminal struct {
	width int
	color bool
}

// narrower returns a terminal with n columns less.
func (t terminal) narrower(n int) terminal {
	t.width = max(t.width-n, 20)
	return t
}

// line formats a row, with escape sequences if the terminal has colours.
func (t terminal) line(r row) string {
	var text, b strings.Builder
	for _, f := range r {
		text.WriteString(f.text)
	}
	whole := strings.TrimRight(text.String(), " ")
	safe := logLine(whole)
	if !t.color || safe != whole {
		return safe
	}
	left := len(whole) // trailing spaces are not written
	for _, f := range r {
		part := f.text[:min(left, len(f.text))]
		left -= len(part)
		if f.style == "" || strings.TrimSpace(part) == "" {
			b.WriteString(part)
			continue
		}
		b.WriteString("\x1b[" + string(f.style) + "m" + part + "\x1b[0m")
	}
	return b.String()
}

// blocks returns the lines of all blocks: an empty line between two, none after a heading.
func (t terminal) blocks(list []doc.Block) []row {
	var lines []row
	open := false // the last block was a heading
	for _, b := range list {
		part := t.block(b)
		if len(part) == 0 {
			continue
		}
		if len(lines) > 0 && !open {
			lines = append(lines, nil)
		}
		lines = append(lines, part...)
		_, open = b.(doc.Heading)
	}
	return lines
}

func (t terminal) block(b doc.Block) []row {
	switch b := b.(type) {
	case doc.Heading:
		return t.wrap(b.Spans, bold)
	case doc.Command:
		return t.wrap(doc.Spans(doc.Code(b.Text)), "")
	case doc.Answer:
		return t.wrap(b.Spans, bold)
	case doc.Paragraph:
		return t.wrap(b.Spans, "")
	case doc.List:
		return t.list(b)
	case doc.Fields:
		return t.fields(b)
	case doc.Table:
		return t.table(b)
	case doc.Details:
		return append(t.wrap(b.Summary, bold), t.hang("  ", "", t.narrower(2).blocks(b.Blocks))...)
	case doc.Note:
		word, tone := "Note: ", style("")
		switch b.Kind {
		case doc.Caution:
			word, tone = "Warning: ", toneStyles[doc.Warn]
		case doc.Danger:
			word, tone = "Caution: ", toneStyles[doc.Bad]
		}
		return t.hang(word, tone, t.narrower(len(word)).blocks(b.Blocks))
	}
	return nil // charts
}

// hang puts a mark before the first line, and as many spaces before the others.
func (t terminal) hang(mark string, s style, lines []row) []row {
	before := frag{text: mark, style: s}
	for i, l := range lines {
		if i == 0 || len(l) > 0 {
			lines[i] = append(row{before}, l...)
		}
		before = frag{text: strings.Repeat(" ", textWidth(mark))}
	}
	return lines
}

func (t terminal) list(l doc.List) []row {
	var lines []row
	for i, item := range l.Items {
		mark := "- "
		if l.Ordered {
			mark = strconv.Itoa(i+1) + ". "
		}
		in := t.narrower(len(mark))
		lines = append(lines, t.hang(mark, "", append(in.wrap(item.Spans, ""), in.blocks(item.Blocks)...))...)
	}
	return lines
}

func (t terminal) fields(f doc.Fields) []row {
	width := lists.Most(f.Items, func(item doc.Field) int { return textWidth(Visible(item.Label)) })
	width = min(width, t.width/3)
	var lines []row
	for _, item := range f.Items {
		mark := pad(fit(Visible(item.Label), width), width, false) + "  "
		lines = append(lines, t.hang(mark, bold, t.narrower(width+2).wrap(item.Value, ""))...)
	}
	return lines
}

// frags returns spans as visible text. Names are shortened to limit columns.
func (t terminal) frags(spans []doc.Span, base style, limit int) row {
	var r row
	for _, s := range spans {
		f := frag{text: Visible(s.Text), style: base, name: s.Kind == doc.KindName}
		switch {
		case s.Tone != doc.Plain:
			f.style = toneStyles[s.Tone]
		case s.Kind == doc.KindStrong:
			f.style = bold
		}
		if f.name {
			f.text = fit(cmp.Or(f.text, unnamed), limit)
		}
		r = append(r, f)
	}
	return r
}

// wrap breaks spans into lines at spaces; a word longer than a line is cut.
func (t terminal) wrap(spans []doc.Span, base style) []row {
	var lines []row
	var line, word row
	used, wordWidth := 0, 0
	newline := func() {
		lines = append(lines, line)
		line, used = nil, 0
	}
	flush := func() {
		if len(word) == 0 {
			return
		}
		if used > 0 && used+1+wordWidth > t.width {
			newline()
		}
		if used > 0 {
			line = append(line, frag{text: " ", style: word[0].style})
			used++
		}
		line = append(line, word...)
		used += wordWidth
		word, wordWidth = nil, 0
	}
	for _, f := range t.frags(spans, base, max(t.width*3/5, 20)) {
		for i, part := range strings.Split(f.text, " ") {
			if i > 0 {
				flush()
			}
			for part != "" {
				piece := prefixOf(part, t.width)
				w := textWidth(piece)
				if wordWidth > 0 && wordWidth+w > t.width {
					flush()
					newline()
				}
				word = append(word, frag{text: piece, style: f.style})
				wordWidth += w
				part = part[len(piece):]
			}
		}
	}
	flush()
	if len(line) > 0 {
		newline()
	}
	return lines
}
