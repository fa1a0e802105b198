package render

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page's style and script
	"encoding/base64"
	"html"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nsys-llm/explain/analyze/report/doc"
)

//go:embed page/page.css
var pageCSS string

//go:embed page/page.js
var pageJS string

// HTMLOptions are the choices of [HTML].
type HTMLOptions struct {
	Title     string // of the window, hostile text; the first heading if empty
	NameLimit int    // longest name in characters, shortened in the middle, the full one on demand; 0 means 64
}

const defaultHTMLName = 64

// HTML writes a document as one self-contained page: style and script are in it, it loads nothing, and its own content
// security policy forbids whatever it did not bring. All of its content is there with scripts switched off; the script
// adds sorting, searching and a choice of colours.
func HTML(w io.Writer, d doc.Document, o HTMLOptions) error {
	if o.NameLimit == 0 {
		o.NameLimit = defaultHTMLName
	}
	p := page{limit: o.NameLimit}
	title := o.Title
	if title == "" {
		title = "explain"
	}
	p.put("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
	p.put(`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '` + hashOf(pageCSS) + `'; script-src '` + hashOf(pageJS) + `'; base-uri 'none'; form-action 'none'">` + "\n")
	p.put("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n")
	p.put("<title>" + text(title) + "</title>\n<style>" + pageCSS + "</style>\n</head>\n<body>\n")
	p.put("<a class=\"skip\" href=\"#main\">Skip to the content</a>\n")
	p.contents(d.Blocks)
	p.put("<main id=\"main\">\n")
	p.parts(d.Blocks)
	p.put("</main>\n<script>" + pageJS + "</script>\n</body>\n</html>\n")
	_, err := w.Write(p.b.Bytes())
	return err
}

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// text makes any text safe in element content and in double-quoted attributes.
func text(s string) string { return html.EscapeString(Visible(s)) }

type page struct {
	b     bytes.Buffer
	limit int
	used  map[string]int // ids of charts
}

// unique is an id that no chart of the page has yet.
func (p *page) unique(id string) string {
	if p.used == nil {
		p.used = map[string]int{}
	}
	if p.used[id]++; p.used[id] > 1 {
		return id + "-" + strconv.Itoa(p.used[id])
	}
	return id
}

func (p *page) put(s string) { p.b.WriteString(s) }

// contents are links to the parts of the page.
func (p *page) contents(blocks []doc.Block) {
	p.put("<nav aria-label=\"Contents\"><ol>\n")
	for _, b := range blocks {
		if h, ok := b.(doc.Heading); ok && h.Level == 2 && h.ID != "" {
			p.put("<li><a href=\"#" + anchor(h.ID) + "\">" + p.plain(h.Spans) + "</a></li>\n")
		}
	}
	p.put("</ol></nav>\n")
}

// plain is the text of spans without markup.
func (p *page) plain(spans []doc.Span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(text(Shorten(Visible(s.Text), p.limit)))
	}
	return b.String()
}

// anchor keeps what an id may hold.
func anchor(id string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (alnum(byte(r)) || r == '-' || r == '_' || r == '.') {
			return r
		}
		return '-'
	}, id)
}

// parts puts what follows a heading of level 2 into a section of its own.
func (p *page) parts(blocks []doc.Block) {
	open := ""
	for i, b := range blocks {
		if h, ok := b.(doc.Heading); ok && h.Level <= 2 {
			p.put(open)
			open = "</section>\n"
			if h.Level == 1 {
				open = "</header>\n"
				p.put("<header>\n")
			} else {
				p.put("<section aria-labelledby=\"" + anchor(h.ID) + "\">\n")
			}
		} else if i == 0 {
			open = "</section>\n"
			p.put("<section>\n")
		}
		p.block(b)
	}
	p.put(open)
}

func (p *page) blocks(list []doc.Block) {
	for _, b := range list {
		p.block(b)
	}
}

func (p *page) block(b doc.Block) {
	switch b := b.(type) {
	case doc.Heading:
		level := strconv.Itoa(min(max(b.Level, 1), 6))
		id := ""
		if b.ID != "" {
			id = " id=\"" + anchor(b.ID) + "\""
		}
		p.put("<h" + level + id + ">")
		p.spans(b.Spans)
		p.put("</h" + level + ">\n")
	case doc.Paragraph:
		p.element("p", b.Spans)
	case doc.List:
		p.list(b)
	case doc.Fields:
		p.put("<dl>\n")
		for _, f := range b.Items {
			p.put("<dt>" + text(f.Label) + "</dt>")
			p.element("dd", f.Value)
		}
		p.put("</dl>\n")
	case doc.Tiles:
		p.tiles(b)
	case doc.Table:
		p.table(b)
	case doc.Details:
		p.put("<details><summary>")
		p.spans(b.Summary)
		p.put("</summary>\n")
		p.blocks(b.Blocks)
		p.put("</details>\n")
	case doc.Note:
		p.put("<div class=\"note " + map[doc.NoteKind]string{doc.Info: "info", doc.Caution: "caution", doc.Danger: "danger"}[b.Kind] + "\" role=\"note\">\n")
		p.blocks(b.Blocks)
		p.put("</div>\n")
	case doc.Chart:
		p.chart(b)
	}
}

func (p *page) element(tag string, spans []doc.Span) {
	p.put("<" + tag + ">")
	p.spans(spans)
	p.put("</" + tag + ">\n")
}

func (p *page) list(l doc.List) {
	tag := "ul"
	if l.Ordered {
		tag = "ol"
	}
	p.put("<" + tag + ">\n")
	for _, item := range l.Items {
		p.put("<li>")
		p.spans(item.Spans)
		p.blocks(item.Blocks)
		p.put("</li>\n")
	}
	p.put("</" + tag + ">\n")
}

func (p *page) tiles(t doc.Tiles) {
	p.put("<dl class=\"tiles\">\n")
	for _, i := range t.Items {
		p.put("<div><dt>" + text(i.Label) + "</dt><dd class=\"value\">")
		p.spans(i.Value)
		p.put("</dd>")
		if len(i.Detail) > 0 {
			p.put("<dd class=\"detail\">")
			p.spans(i.Detail)
			p.put("</dd>")
		}
		p.put("</div>\n")
	}
	p.put("</dl>\n")
}

func (p *page) spans(spans []doc.Span) {
	for _, s := range spans {
		p.span(s)
	}
}

func toneClass(t doc.Tone) string {
	return map[doc.Tone]string{doc.Good: "good", doc.Bad: "bad", doc.Warn: "warn", doc.Muted: "muted"}[t]
}

func (p *page) span(s doc.Span) {
	if class := toneClass(s.Tone); class != "" {
		p.put("<span class=\"" + class + "\">")
		defer p.put("</span>")
	}
	switch s.Kind {
	case doc.KindName:
		p.name(s.Text, s.Full())
	case doc.KindCode:
		p.put("<code>" + text(s.Text) + "</code>")
	case doc.KindStrong:
		p.put("<strong>" + text(s.Text) + "</strong>")
	case doc.KindLink:
		dest, ok := safeDest(s.Dest())
		if !ok {
			p.put(text(s.Text))
			return
		}
		p.put("<a href=\"" + html.EscapeString(dest) + "\" rel=\"noreferrer\">" + text(s.Text) + "</a>")
	default:
		p.put(text(s.Text))
	}
}

// name shows a name of the capture literally; a long one shortened, with the whole of it on demand.
func (p *page) name(s, full string) {
	s, full = Visible(s), Visible(full)
	if s == "" {
		s = unnamed
	}
	if full == "" {
		full = s
	}
	short := Shorten(s, p.limit)
	if short == full {
		p.put("<code class=\"name\">" + html.EscapeString(s) + "</code>")
		return
	}
	p.put("<details class=\"name\"><summary><code>" + html.EscapeString(short) + "</code></summary><code>" + html.EscapeString(full) + "</code></details>")
}

func (p *page) table(t doc.Table) {
	if len(t.Columns) == 0 {
		return
	}
	label := "Table"
	if t.ID != "" {
		label = strings.ReplaceAll(t.ID, "_", " ")
	}
	p.put("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" + text(label) + "\"><table")
	p.put(">\n")
	if len(t.Caption) > 0 {
		p.put("<caption>")
		p.spans(t.Caption)
		p.put("</caption>\n")
	}
	head := false
	for _, c := range t.Columns {
		head = head || c.Title != ""
	}
	if head {
		p.put("<thead><tr>")
		for _, c := range t.Columns {
			p.put("<th scope=\"col\"" + right(c) + ">" + text(c.Title) + "</th>")
		}
		p.put("</tr></thead>\n")
	}
	p.put("<tbody>\n")
	for i, row := range t.Rows {
		id := ""
		if i < len(t.RowIDs) && t.RowIDs[i] != "" {
			id = " id=\"" + anchor(t.RowIDs[i]) + "\""
		}
		p.row(t.Columns, row, id)
	}
	p.put("</tbody>\n")
	if len(t.Foot) > 0 {
		p.put("<tfoot>\n")
		for _, row := range t.Foot {
			p.row(t.Columns, row, "")
		}
		p.put("</tfoot>\n")
	}
	p.put("</table></div>\n")
}

func right(c doc.Column) string {
	if c.Align == doc.Right {
		return " class=\"r\""
	}
	return ""
}

func (p *page) row(columns []doc.Column, row []doc.Cell, id string) {
	p.put("<tr" + id + ">")
	for i, c := range columns {
		p.put("<td" + right(c) + ">")
		if i < len(row) {
			p.spans(row[i])
		}
		p.put("</td>")
	}
	p.put("</tr>\n")
}
