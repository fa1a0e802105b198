package render

import (
	"crypto/sha256"
	_ "embed" // the page's style and script
	"encoding/base64"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/wording"
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

// HTMLOptions are the options of [HTML].
type HTMLOptions struct {
	Title     string // of the window, untrusted text; empty: the first heading
	NameLimit int    // longest name in characters, shortened in the middle, in full on demand; 0 means 64
}

const defaultHTMLName = 64

// HTML writes a document as one self-contained page: style and script are included, it loads nothing, and its content
// security policy forbids anything else. All content is readable without scripts; the script adds sorting, searching
// and a choice of colours.
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
		Contents []linkGroup
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

// page is a page that is being written. Templates call its exported methods.
type page struct {
	*builder // current target of markup
	limit    int
	used     map[string]int  // ids of charts
	whole    map[string]bool // names that the page already shows in full
	err      error           // the first error of a template
}

// execute writes a template.
func (p *page) execute(name string, data any) {
	if err := pageTemplate.ExecuteTemplate(&p.b, name, data); err != nil && p.err == nil {
		p.err = err
	}
}

// capture returns what write writes, for a template to place.
func (p *page) capture(write func()) markup {
	outer := p.builder
	defer func() { p.builder = outer }()
	p.builder = &builder{}
	write()
	return p.markup()
}

// Blocks writes blocks, for templates.
func (p *page) Blocks(list []doc.Block) markup { return p.capture(func() { p.blocks(list) }) }

// Spans writes spans, for templates.
func (p *page) Spans(list []doc.Span) markup { return p.capture(func() { p.spans(list) }) }

// unique returns an id that no chart of the page has yet.
func (p *page) unique(id string) string {
	if p.used == nil {
		p.used = map[string]int{}
	}
	if p.used[id]++; p.used[id] > 1 {
		return id + "-" + strconv.Itoa(p.used[id])
	}
	return id
}

// link links to a part of the page.
type link struct {
	ID, Text string
	Below    bool // it is folded below the part before it
}

// linkGroup is a group of links.
type linkGroup struct {
	Title string // may be empty
	Links []link
}

// contents returns links to the parts of the page, in the groups that their headings name.
func (p *page) contents(blocks []doc.Block) []linkGroup {
	list := []linkGroup{{}}
	for _, b := range blocks {
		last := &list[len(list)-1]
		if d, ok := b.(doc.Details); ok && d.ID != "" {
			last.Links = append(last.Links, link{anchor(d.ID), p.plain(d.Summary), true})
		}
		h, ok := b.(doc.Heading)
		if !ok || h.Level != 2 || h.ID == "" {
			continue
		}
		if h.Group != "" && h.Group != list[len(list)-1].Title {
			list = append(list, linkGroup{Title: h.Group})
		}
		last = &list[len(list)-1]
		last.Links = append(last.Links, link{anchor(h.ID), p.plain(h.Spans), false})
	}
	if len(list[0].Links) == 0 {
		list = list[1:]
	}
	return list
}

// plain is the text of spans without markup.
func (p *page) plain(spans []doc.Span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(wording.Shorten(Visible(s.Text), p.limit))
	}
	return b.String()
}

// anchor keeps the characters that are allowed in an id.
func anchor(id string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (alnum(byte(r)) || r == '-' || r == '_' || r == '.') {
			return r
		}
		return '-'
	}, id)
}

// part is a heading of level 1 or 2 with the blocks that follow it.
type part struct {
	IsHeader bool
	LabelID  string // of its heading; empty: no heading
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

// blockView is a block with the data for its template.
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
		open, end := markup("<p>"), markup("</p>\n")
		if slices.ContainsFunc(b.Spans, p.unfolds) { // a paragraph must not contain details
			open, end = "<div class=\"p\">", "</div>\n"
		}
		p.put(open)
		p.spans(b.Spans)
		p.put(end)
	case doc.List:
		p.execute("list", view)
	case doc.Fields:
		p.execute("fields", view)
	case doc.Beside:
		p.execute("beside", view)
	case doc.Command:
		p.execute("command", view)
	case doc.Answer:
		p.execute("answer", view)
	case doc.Table:
		p.table(b)
	case doc.Details:
		p.execute("details", struct {
			blockView
			ID string
		}{view, anchor(b.ID)})
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

// unfolds reports whether a span is a name that is shown shortened and unfolds to the full one.
func (p *page) unfolds(s doc.Span) bool {
	shortened, full := p.shortened(s.Text, s.Full())
	return s.Kind == doc.KindName && shortened != full && !p.whole[full]
}

// shortened returns a name as it is shown, and in full.
func (p *page) shortened(s, full string) (shown, whole string) {
	s, full = Visible(s), Visible(full)
	if s == "" {
		s = unnamed
	}
	if full == "" {
		full = s
	}
	return wording.Shorten(s, p.limit), full
}

// name writes a name from the capture literally; a long one is shortened and unfolds to the full one.
func (p *page) name(s, full string) {
	shortened, full := p.shortened(s, full)
	if shortened == full {
		p.put("<code class=\"name\">" + escape(full) + "</code>")
		return
	}
	if p.whole[full] { // shown in full elsewhere: the script copies it from there
		p.put("<code class=\"name again\">" + escape(shortened) + "</code>")
		return
	}
	if p.whole == nil {
		p.whole = map[string]bool{}
	}
	p.whole[full] = true
	p.put("<details class=\"name\"><summary><code>" + escape(shortened) + "</code></summary><code>" + escape(full) +
		"</code></details>")
}
