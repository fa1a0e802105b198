package render

import (
	"crypto/sha256"
	_ "embed" // the page's style and script
	"encoding/base64"
	"html/template"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nsys-llm/explain/analyze/report/doc"
)

var (
	//go:embed page/page.css
	pageCSS string
	//go:embed page/page.js
	pageJS string
	//go:embed page/page.html
	pageHTML string
)

// pageTemplate writes the page and its blocks.
var pageTemplate = template.Must(template.New("").Funcs(template.FuncMap{
	"visible": Visible,
	"right":   func(c doc.Column) bool { return c.Align == doc.Right },
}).Parse(pageHTML))

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
	p := &page{builder: &builder{}, limit: o.NameLimit}
	title := o.Title
	if title == "" {
		title = "explain"
	}
	p.execute("page", struct {
		*page
		Title    string
		Policy   template.HTMLAttr
		Style    template.CSS
		Script   template.JS
		Contents []link
		Parts    []part
	}{
		p, Visible(title),
		template.HTMLAttr("content=\"default-src 'none'; style-src '" + hashOf(pageCSS) + "'; script-src '" +
			hashOf(pageJS) +
			"'; base-uri 'none'; form-action 'none'\""),
		template.CSS(pageCSS), template.JS(pageJS), p.contents(d.Blocks), partsOf(d.Blocks),
	})
	if p.err != nil {
		return p.err
	}
	_, err := io.WriteString(w, p.b.String())
	return err
}

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// page is a page on its way. Its exported methods are called by templates.
type page struct {
	*builder // where markup goes at the moment
	limit    int
	used     map[string]int // ids of charts
	err      error          // the first error of a template
}

// execute writes a template.
func (p *page) execute(name string, data any) {
	if err := pageTemplate.ExecuteTemplate(&p.b, name, data); err != nil && p.err == nil {
		p.err = err
	}
}

// capture is what write puts on the page, for a template to place.
func (p *page) capture(write func()) markup {
	outer := p.builder
	defer func() { p.builder = outer }()
	p.builder = &builder{}
	write()
	return p.markup()
}

// Blocks, for templates.
func (p *page) Blocks(list []doc.Block) markup { return p.capture(func() { p.blocks(list) }) }

// Spans, for templates.
func (p *page) Spans(list []doc.Span) markup { return p.capture(func() { p.spans(list) }) }

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

// link leads to a part of the page.
type link struct{ ID, Text string }

// contents are links to the parts of the page.
func (p *page) contents(blocks []doc.Block) []link {
	var list []link
	for _, b := range blocks {
		if h, ok := b.(doc.Heading); ok && h.Level == 2 && h.ID != "" {
			list = append(list, link{anchor(h.ID), p.plain(h.Spans)})
		}
	}
	return list
}

// plain is the text of spans without markup.
func (p *page) plain(spans []doc.Span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(Shorten(Visible(s.Text), p.limit))
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

// part is a heading of level 1 or 2 with what follows it.
type part struct {
	IsHeader bool
	LabelID  string // of its heading; empty: it begins without one
	Blocks   []doc.Block
}

func partsOf(blocks []doc.Block) []part {
	var list []part
	for i, b := range blocks {
		if h, ok := b.(doc.Heading); ok && h.Level == 1 {
			list = append(list, part{IsHeader: true})
		} else if ok && h.Level == 2 {
			list = append(list, part{LabelID: anchor(h.ID)})
		} else if i == 0 {
			list = append(list, part{})
		}
		last := &list[len(list)-1]
		last.Blocks = append(last.Blocks, b)
	}
	return list
}

func (p *page) blocks(list []doc.Block) {
	for _, b := range list {
		p.block(b)
	}
}

// blockView is a block, for its template.
type blockView struct {
	*page
	Block doc.Block
}

func (p *page) block(b doc.Block) {
	view := blockView{p, b}
	switch b := b.(type) {
	case doc.Heading:
		p.heading(b)
	case doc.Paragraph:
		p.put("<p>")
		p.spans(b.Spans)
		p.put("</p>\n")
	case doc.List:
		p.execute("list", view)
	case doc.Fields:
		p.execute("fields", view)
	case doc.Tiles:
		p.execute("tiles", view)
	case doc.Table:
		p.table(b)
	case doc.Details:
		p.execute("details", view)
	case doc.Note:
		kinds := map[doc.NoteKind]string{doc.Info: "info", doc.Caution: "caution", doc.Danger: "danger"}
		p.execute("note", struct {
			blockView
			Class string
		}{view, kinds[b.Kind]})
	case doc.Chart:
		p.chart(b)
	case doc.Timeline:
		p.timeline(b)
	}
}

func (p *page) heading(h doc.Heading) {
	level := num(min(max(h.Level, 1), 6))
	p.put("<h" + level)
	if h.ID != "" {
		p.put(" id=\"" + escape(anchor(h.ID)) + "\"")
	}
	p.put(">")
	p.spans(h.Spans)
	p.put("</h" + level + ">\n")
}

func (p *page) spans(spans []doc.Span) {
	for _, s := range spans {
		p.span(s)
	}
}

var toneClasses = map[doc.Tone]markup{doc.Good: "good", doc.Bad: "bad", doc.Warn: "warn", doc.Muted: "muted"}

func (p *page) span(s doc.Span) {
	if class := toneClasses[s.Tone]; class != "" {
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
		p.put("<a href=\"" + escape(dest) + "\" rel=\"noreferrer\">" + text(s.Text) + "</a>")
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
	shortened := Shorten(s, p.limit)
	if shortened == full {
		p.put("<code class=\"name\">" + escape(s) + "</code>")
		return
	}
	p.put("<details class=\"name\"><summary><code>" + escape(shortened) + "</code></summary><code>" + escape(full) +
		"</code></details>")
}

func (p *page) table(t doc.Table) {
	if len(t.Columns) == 0 {
		return
	}
	view := struct {
		blockView
		Label      string
		HasHead    bool
		Rows, Foot markup
	}{blockView: blockView{p, t}, Label: "Table"}
	if t.ID != "" {
		view.Label = strings.ReplaceAll(t.ID, "_", " ")
	}
	for _, c := range t.Columns {
		view.HasHead = view.HasHead || c.Title != ""
	}
	view.Rows = p.capture(func() {
		for i, row := range t.Rows {
			id := ""
			if i < len(t.RowIDs) {
				id = anchor(t.RowIDs[i])
			}
			p.row(t.Columns, row, id)
		}
	})
	view.Foot = p.capture(func() {
		for _, row := range t.Foot {
			p.row(t.Columns, row, "")
		}
	})
	p.execute("table", view)
}

func (p *page) row(columns []doc.Column, row []doc.Cell, id string) {
	p.put("<tr")
	if id != "" {
		p.put(" id=\"" + escape(id) + "\"")
	}
	p.put(">")
	for i, c := range columns {
		if c.Align == doc.Right {
			p.put("<td class=\"r\">")
		} else {
			p.put("<td>")
		}
		if i < len(row) {
			p.spans(row[i])
		}
		p.put("</td>")
	}
	p.put("</tr>\n")
}
