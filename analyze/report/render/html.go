package render

import (
	"cmp"
	"crypto/sha256"
	_ "embed" // the page's style and script
	"encoding/base64"
	"io"
	"slices"
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
)

// longestName of a page, in characters: a longer one is shortened in the middle, and shown in full on demand.
const longestName = 64

// HTML writes a document as one self-contained page: style and script are included, it loads nothing, and its content
// security policy forbids anything else. All content is readable without scripts; the script adds sorting, searching
// and a choice of colours. title is that of the window, untrusted text; empty: explain.
func HTML(w io.Writer, d doc.Document, title string) error {
	p := &page{&builder{}, map[string]bool{}, map[markup]int{}}
	p.put(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '` + hashOf(pageCSS) +
		`'; script-src '` + hashOf(pageJS) + `'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>` + text(cmp.Or(title, "explain")) + `</title>
<style>` + markup(pageCSS) + `</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<nav aria-label="Contents">
<details open><summary>Contents</summary>
`)
	p.contents(d)
	p.put(`</details>
</nav>
<main id="main">
`)
	p.parts(d)
	p.put(`</main>
<script>` + markup(pageJS) + `</script>
</body>
</html>
`)
	_, err := io.WriteString(w, p.b.String())
	return err
}

func hashOf(s string) markup {
	sum := sha256.Sum256([]byte(s))
	return markup("sha256-" + base64.StdEncoding.EncodeToString(sum[:]))
}

type page struct {
	*builder
	whole map[string]bool // names that the page already shows in full
	used  map[markup]int  // ids of charts and tables
}

// unique returns an id that no chart and no table of the page has yet.
func (p *page) unique(id markup) markup {
	if p.used[id]++; p.used[id] > 1 {
		return id + "-" + num(p.used[id])
	}
	return id
}

// contents writes links to the parts of the page, in the groups that their headings name.
func (p *page) contents(blocks []doc.Block) {
	group, listing := "", false
	link := func(of markup, id string, words []doc.Span) {
		if !listing {
			p.put("<ol>\n")
			listing = true
		}
		p.put("<li" + of + "><a href=\"#" + anchor(id) + "\">")
		for _, s := range words {
			p.put(text(shortName(s.Text)))
		}
		p.put("</a></li>\n")
	}
	end := func() {
		if listing {
			p.put("</ol>\n")
			listing = false
		}
	}
	for _, b := range blocks {
		switch b := b.(type) {
		case doc.Details:
			if b.ID != "" {
				link(" class=\"below\"", b.ID, b.Summary)
			}
		case doc.Heading:
			if b.Level != 2 || b.ID == "" {
				continue
			}
			if b.Group != "" && b.Group != group {
				end()
				group = b.Group
				p.put("<p class=\"group\">" + text(group) + "</p>\n")
			}
			link("", b.ID, b.Spans)
		}
	}
	end()
}

// anchor keeps the characters that are allowed in an id.
func anchor(id string) markup {
	return markup(strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (alnum(byte(r)) || r == '-' || r == '_' || r == '.') {
			return r
		}
		return '-'
	}, id))
}

// parts writes each heading of level 1 or 2 with the blocks that follow it as a part of the page.
func (p *page) parts(blocks []doc.Block) {
	end := markup("")
	for i, b := range blocks {
		switch h, ok := b.(doc.Heading); {
		case ok && h.Level == 1:
			p.put(end + "<header>\n")
			end = "</header>\n"
		case ok && h.Level == 2:
			p.put(end + "<section" + attr("aria-labelledby", anchor(h.ID)) + ">\n")
			end = "</section>\n"
		case i == 0:
			p.put("<section>\n")
			end = "</section>\n"
		}
		p.block(b)
	}
	p.put(end)
}

// inside writes blocks between two tags.
func (p *page) inside(open markup, blocks []doc.Block, end markup) {
	p.put(open)
	for _, b := range blocks {
		p.block(b)
	}
	p.put(end + "\n")
}

// around writes spans between two tags.
func (p *page) around(open markup, spans []doc.Span, end markup) {
	p.put(open)
	p.spans(spans)
	p.put(end)
}

var noteClasses = map[doc.NoteKind]markup{doc.Info: "info", doc.Caution: "caution", doc.Danger: "danger"}

func (p *page) block(b doc.Block) {
	switch b := b.(type) {
	case doc.Heading:
		level := num(min(max(b.Level, 1), 6))
		p.around("<h"+level+attr("id", anchor(b.ID))+">", b.Spans, "</h"+level+">\n")
	case doc.Paragraph:
		if slices.ContainsFunc(b.Spans, p.unfolds) { // a paragraph must not contain details
			p.around("<div class=\"p\">", b.Spans, "</div>\n")
		} else {
			p.around("<p>", b.Spans, "</p>\n")
		}
	case doc.List:
		p.list(b)
	case doc.Fields:
		p.put("<dl>\n")
		for _, f := range b.Items {
			p.around("<dt>"+text(f.Label)+"</dt><dd>", f.Value, "</dd>\n")
		}
		p.put("</dl>\n")
	case doc.Command:
		p.put("<p class=\"command\"><code>" + text(b.Text) + "</code></p>\n")
	case doc.Answer:
		p.around("<div class=\"p answer\">", b.Spans, "</div>\n")
	case doc.Table:
		p.table(b)
	case doc.Details:
		p.around("<details"+attr("id", anchor(b.ID))+"><summary>", b.Summary, "</summary>\n")
		p.inside("", b.Blocks, "</details>")
	case doc.Note:
		p.inside("<div class=\"note "+noteClasses[b.Kind]+"\" role=\"note\">\n", b.Blocks, "</div>")
	case doc.Chart:
		chart(p, b)
	case doc.Timeline:
		drawTimeline(p, &b)
	}
}

func (p *page) list(l doc.List) {
	tag := markup("ul>\n")
	if l.Ordered {
		tag = "ol>\n"
	}
	p.put("<" + tag)
	for _, item := range l.Items {
		p.around("<li>", item.Spans, "")
		p.inside("", item.Blocks, "</li>")
	}
	p.put("</" + tag)
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
		p.name(s.Text, s.Behind())
	case doc.KindCode:
		p.put("<code>" + text(s.Text) + "</code>")
	case doc.KindStrong:
		p.put("<strong>" + text(s.Text) + "</strong>")
	case doc.KindLink:
		dest, ok := safeDest(s.Behind())
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
	shown, full := shortened(s.Text, s.Behind())
	return s.Kind == doc.KindName && shown != full && !p.whole[full]
}

// shortened returns a name as it is shown, and in full.
func shortened(s, full string) (shown, whole string) {
	s = cmp.Or(Visible(s), unnamed)
	return wording.Shorten(s, longestName), cmp.Or(Visible(full), s)
}

// name writes a name from the capture literally; a long one is shortened and unfolds to the full one.
func (p *page) name(s, full string) {
	shown, full := shortened(s, full)
	if shown == full {
		p.put("<code class=\"name\">" + escape(full) + "</code>")
		return
	}
	if p.whole[full] { // shown in full elsewhere: the script copies it from there
		p.put("<code class=\"name again\">" + escape(shown) + "</code>")
		return
	}
	p.whole[full] = true
	p.put("<details class=\"name\"><summary><code>" + escape(shown) + "</code></summary><code>" + escape(full) +
		"</code></details>")
}
