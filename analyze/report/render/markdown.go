package render

import (
	"cmp"
	"html"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// MarkdownOptions are the options of [Markdown]. report.md uses the zero value.
type MarkdownOptions struct {
	Compact bool // do not align table cells in the source: fewer bytes, same page
}

// longestText is the longest name of a text, in characters: a longer one is shortened in the middle.
const longestText = 100

// Markdown writes a document as GitHub-flavoured markdown. The only HTML in it are the lines of a folded part:
// <details>, <summary>…</summary> and </details>.
func Markdown(w io.Writer, d doc.Document, o MarkdownOptions) error {
	m := markdown{MarkdownOptions: o}
	lines := m.blocks(d)
	if len(lines) == 0 {
		return nil
	}
	for i := range lines {
		lines[i] = logLine(strings.TrimRight(lines[i], " "))
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

type markdown struct {
	MarkdownOptions
	second bool // directly after another list: needs other marks, or they would be one list
}

// blocks returns the lines of all blocks, with an empty line between two. A part that only has drawings gets no
// heading.
func (m markdown) blocks(list []doc.Block) []string {
	var lines []string
	part := -1      // line of a heading without content so far
	marked := false // the last block was a list
	for _, b := range list {
		_, items := b.(doc.List)
		_, fields := b.(doc.Fields)
		isList := items || fields
		m.second = isList && marked && !m.second
		text := m.block(b)
		if len(text) == 0 {
			continue
		}
		h, heading := b.(doc.Heading)
		if heading && h.Level <= 2 && part >= 0 {
			lines = lines[:part]
		}
		if part = -1; heading && h.Level == 2 {
			part = len(lines)
		}
		if len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, text...)
		marked = isList
	}
	if part > 0 {
		lines = lines[:part]
	}
	return lines
}

// mark returns the mark of the i-th item of a list, from 0.
func (m markdown) mark(ordered bool, i int) string {
	switch {
	case ordered && m.second:
		return strconv.Itoa(i+1) + ") "
	case ordered:
		return strconv.Itoa(i+1) + ". "
	case m.second:
		return "* "
	}
	return "- "
}

func (m markdown) block(b doc.Block) []string {
	switch b := b.(type) {
	case doc.Heading:
		text := inline(b.Spans, place{start: true})
		if i := strings.LastIndexByte(text, ' '); i >= 0 && strings.Trim(text[i+1:], "#") == "" {
			text = text[:i+1] + `\` + text[i+1:] // trailing number signs would close the heading
		}
		return notEmpty(strings.Repeat("#", min(max(b.Level, 1), 6))+" ", text)
	case doc.Command:
		return []string{inline(doc.Spans(doc.Code(b.Text)), place{start: true})}
	case doc.Answer:
		return m.block(doc.Paragraph(b))
	case doc.Paragraph:
		return notEmpty("", inline(b.Spans, place{start: true}))
	case doc.List:
		return m.list(b)
	case doc.Fields:
		var lines []string
		for _, f := range b.Items {
			value := inline(f.Value, place{})
			lines = append(lines,
				strings.TrimRight(m.mark(false, 0)+inline([]doc.Span{doc.Strong(f.Label + ":")}, place{})+" "+value, " "))
		}
		return lines
	case doc.Table:
		return m.table(b)
	case doc.Details:
		inner := m.blocks(b.Blocks)
		if len(inner) == 0 {
			return nil
		}
		lines := []string{"<details>", "<summary>" + m.summary(b.Summary) + "</summary>", ""}
		return append(append(lines, inner...), "", "</details>")
	case doc.Note:
		inner := m.blocks(b.Blocks)
		if len(inner) == 0 {
			return nil
		}
		kind := map[doc.NoteKind]string{doc.Info: "NOTE", doc.Caution: "WARNING", doc.Danger: "CAUTION"}[b.Kind]
		return prefix("> ", append([]string{"[!" + kind + "]"}, inner...))
	}
	return nil // charts
}

func notEmpty(mark, text string) []string {
	if text == "" {
		return nil
	}
	return []string{mark + text}
}

func prefix(p string, lines []string) []string {
	for i, l := range lines {
		lines[i] = strings.TrimRight(p+l, " ")
	}
	return lines
}

func (m markdown) list(l doc.List) []string {
	inner := m
	inner.second = false
	var lines []string
	for i, item := range l.Items {
		mark := m.mark(l.Ordered, i)
		lines = append(lines, strings.TrimRight(mark+inline(item.Spans, place{start: true}), " "))
		for _, b := range item.Blocks {
			if _, nested := b.(doc.List); !nested {
				lines = append(lines, "")
			}
			lines = append(lines, prefix(strings.Repeat(" ", len(mark)), inner.block(b))...)
		}
	}
	return lines
}

// summary writes spans as HTML text, because markdown is not parsed inside a summary line.
func (m markdown) summary(spans []doc.Span) string {
	var b strings.Builder
	for _, s := range spans {
		text := Visible(s.Text)
		switch s.Kind {
		case doc.KindName:
			b.WriteString("<code>" + html.EscapeString(wording.Shorten(cmp.Or(text, unnamed), longestText)) + "</code>")
		case doc.KindCode:
			b.WriteString("<code>" + html.EscapeString(text) + "</code>")
		default:
			words := strings.Split(text, " ")
			for i, word := range words {
				if words[i] = html.EscapeString(word); active.MatchString(word) {
					words[i] = "<code>" + words[i] + "</code>"
				}
			}
			b.WriteString(strings.Join(words, " "))
		}
	}
	return b.String()
}

func (m markdown) table(t doc.Table) []string {
	n := len(t.Columns)
	head := make([]string, n)
	width := make([]int, n)
	for i, c := range t.Columns {
		head[i] = inline([]doc.Span{doc.Text(c.Title)}, place{cell: true})
		width[i] = max(textWidth(head[i]), 3)
	}
	var rows [][]string
	for _, cells := range slices.Concat(t.Rows, t.Foot) {
		row := make([]string, n)
		for i := range row {
			row[i] = inline(lists.Nth(cells, i, nil), place{cell: true})
			width[i] = max(width[i], textWidth(row[i]))
		}
		rows = append(rows, row)
	}
	var lines []string
	if caption := inline(strong(t.Caption), place{start: true}); caption != "" {
		lines = append(lines, caption, "")
	}
	lines = append(lines, m.row(head, t.Columns, width), m.rule(t.Columns, width))
	for _, row := range rows {
		lines = append(lines, m.row(row, t.Columns, width))
	}
	return lines
}

// strong emphasises the plain text among spans.
func strong(spans []doc.Span) []doc.Span {
	out := merge(spans)
	for i := range out {
		if out[i].Kind == doc.KindText {
			out[i].Kind = doc.KindStrong
		}
	}
	return out
}

func (m markdown) row(cells []string, columns []doc.Column, width []int) string {
	var b strings.Builder
	for i, c := range cells {
		b.WriteString("| ")
		if !m.Compact {
			c = pad(c, width[i], columns[i].Right)
		}
		b.WriteString(c)
		b.WriteByte(' ')
	}
	return b.String() + "|"
}

func (m markdown) rule(columns []doc.Column, width []int) string {
	cells := make([]string, len(columns))
	for i, c := range columns {
		dashes := 3
		if !m.Compact {
			dashes = width[i]
		}
		cells[i] = strings.Repeat("-", dashes)
		if c.Right {
			cells[i] = cells[i][1:] + ":"
		}
	}
	return m.row(cells, columns, width)
}
