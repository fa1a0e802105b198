package render_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// tb is what checks need of testing.T and of rapid.T.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// hostile are names as an attacker would choose them, and a few that are merely awkward.
var hostile = []string{
	"",
	" ",
	"a|b",
	"(",
	"kernel=",
	`a\|b`,
	`a\\|b\`,
	"|",
	"`",
	"``",
	"`a``b`",
	"a`",
	" a ",
	`\`,
	"<img src=x onerror=alert(1)>",
	"<!-- comment -->",
	"</td></tr></table>",
	"</details>",
	"@org",
	"ping @org/team please",
	"me@example.com",
	"https://example.com/x",
	"www.example.com",
	"[link](https://example.com)",
	"![image](https://example.com/x.png)",
	"[ref]: https://example.com",
	"#1 GH-2 org/repo#3",
	"::error::boom",
	"::set-output name=x::y",
	"##[error]boom",
	"##vso[task.complete]",
	"a\nb\r\nc\td",
	"\x1b[31mred\x1b]0;title\x07",
	"\u202egnp.exe\u202c",
	"zero\u200bwidth\ufeff",
	"\xff\xfe\x00",
	"\u0301mark",
	"z\u0301\u0302\u0303\u0304\u0305\u0306algo",
	"$x$ $`y`$",
	"**bold** *em* _em_ __strong__ ~~del~~ ~one~",
	"# heading",
	"- item",
	"1. item",
	"> quote",
	"---",
	"===",
	"|-",
	":-:|:-",
	"```",
	"~~~",
	"    code",
	"&lt;&amp;&#64;org",
	":tada: :+1:",
	"- [ ] task",
	"[^1]",
	"=HYPERLINK(\"http://x\",\"y\")",
	"void at::native::elementwise_kernel<(int)128, (int)2, void at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<float, float, float>>>(int, T3)",
	"核函数_注意力",
	"trailing \\",
	strings.Repeat("`", 150),
	strings.Repeat("|", 150),
}

// node is an element of the page as a GFM parser sees it.
type node struct {
	name string
	text string // all text inside
	kids []*node
}

// all returns the elements of one name, in order.
func (n *node) all(name string) []*node {
	var list []*node
	for _, k := range n.kids {
		if k.name == name {
			list = append(list, k)
		}
		list = append(list, k.all(name)...)
	}
	return list
}

// allowed are the elements that render can make. Anything else came out of a text.
const allowed = " h1 h2 h3 h4 h5 h6 p ul ol li table thead tbody tr th td code strong blockquote details summary page "

// parse runs a GFM parser over markdown and returns the page. It fails on every element that render does not write.
func parse(t tb, markdown []byte) *node {
	t.Helper()
	var out bytes.Buffer
	md := goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList),
		goldmark.WithRendererOptions(html.WithXHTML(), html.WithUnsafe()))
	if err := md.Convert(markdown, &out); err != nil {
		t.Fatal(err)
	}
	dec := xml.NewDecoder(strings.NewReader("<page>" + out.String() + "</page>"))
	root := &node{name: "root"}
	stack := []*node{root}
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v\nmarkdown:\n%s\npage:\n%s", err, markdown, out.String())
		}
		top := stack[len(stack)-1]
		switch token := token.(type) {
		case xml.StartElement:
			n := &node{name: token.Name.Local}
			if !strings.Contains(allowed, " "+n.name+" ") {
				t.Fatalf("the page holds <%s>\nmarkdown:\n%s\npage:\n%s", n.name, markdown, out.String())
			}
			top.kids = append(top.kids, n)
			stack = append(stack, n)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.CharData:
			for _, n := range stack {
				n.text += string(token)
			}
		case xml.Comment, xml.ProcInst, xml.Directive:
			t.Fatalf("the page holds %#v\nmarkdown:\n%s", token, markdown)
		}
	}
	return root
}

// squeeze takes out all spaces: a renderer may add and collapse them in running text.
func squeeze(s string) string {
	return strings.NewReplacer(" ", "", "\n", "").Replace(s)
}

// shown is the text of a name on a page.
func shown(name string) string {
	if name == "" {
		return "(unnamed)"
	}
	return wording.Shorten(render.Visible(name), 100)
}

// hostilePage puts a name and a text into every place that a document has.
func hostilePage(name, text string) doc.Document {
	cell := func(s ...doc.Span) doc.Cell { return s }
	table := doc.Table{
		Caption: doc.Spans(doc.Strong(text)),
		Columns: []doc.Column{{Title: text}, {Title: "n", Right: true}, {Title: "text"}, {Title: "both"}},
		Rows: [][]doc.Cell{
			{cell(doc.Name(name)), cell(doc.Text("1")), cell(doc.Text(text)), cell(doc.Text(text), doc.Name(name), doc.Text(text))},
			{cell(doc.Name(name), doc.Text(" "), doc.Code(name)), nil, cell(doc.Strong(text))},
		},
		Foot: [][]doc.Cell{{cell(doc.Text("others")), cell(doc.Text("2")), nil, cell(doc.Name(name))}},
	}
	var d doc.Document
	d.Add(
		doc.Heading{Level: 2, Spans: doc.Spans(doc.Text(text), doc.Name(name))},
		doc.P(doc.Name(name), doc.Text(text), doc.Name(name)),
		doc.P(doc.Text(text)),
		doc.P(doc.Strong(text), doc.Text(text), doc.Strong(text)),
		table,
		doc.List{Items: []doc.Item{
			{Spans: doc.Spans(doc.Text(text)), Blocks: []doc.Block{doc.List{Items: []doc.Item{{Spans: doc.Spans(doc.Name(name), doc.Text(text))}}}}},
			{Spans: doc.Spans(doc.Strong(text), doc.Name(name))},
		}},
		doc.List{Ordered: true, Items: []doc.Item{{Spans: doc.Spans(doc.Text(text))}}},
		doc.Fields{Items: []doc.Field{{Label: text, Value: doc.Spans(doc.Name(name), doc.Text(text))}}},
		doc.Details{Summary: doc.Spans(doc.Text(text), doc.Name(name)), Blocks: []doc.Block{doc.P(doc.Text(text)), table}},
		doc.Note{Kind: doc.Caution, Blocks: []doc.Block{doc.P(doc.Text(text)), doc.List{Items: []doc.Item{{Spans: doc.Spans(doc.Name(name))}}}, table}},
	)
	return d
}

// checkPage holds a rendered hostilePage against what went in: every name is a code span of its own with exactly the
// name's visible text, every cell is in its place, and the text of every part reads as it was written.
func checkPage(t tb, markdown []byte, name, text string) {
	t.Helper()
	fail := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Fatalf("%s: %q, want %q\nname %q text %q\nmarkdown:\n%s", what, got, want, name, text, markdown)
		}
	}
	page := parse(t, markdown)
	words := squeeze(render.Visible(text))
	both := squeeze(shown(name))
	lone := func(what string, n *node) {
		t.Helper()
		codes := n.all("code")
		if name == "" {
			fail(what, n.text, shown(name))
			return
		}
		if len(codes) != 1 {
			t.Fatalf("%s: %d code spans\nname %q\nmarkdown:\n%s", what, len(codes), name, markdown)
		}
		fail(what, codes[0].text, shown(name))
		fail(what, n.text, shown(name))
	}
	tables := page.all("table")
	if len(tables) != 3 {
		t.Fatalf("%d tables\nmarkdown:\n%s", len(tables), markdown)
	}
	for _, table := range tables {
		rows := table.all("tr")
		if len(rows) != 4 {
			t.Fatalf("%d rows\nmarkdown:\n%s", len(rows), markdown)
		}
		for i, r := range rows {
			if len(r.kids) != 4 {
				t.Fatalf("row %d has %d cells\nmarkdown:\n%s", i, len(r.kids), markdown)
			}
		}
		fail("column title", squeeze(rows[0].kids[0].text), words)
		lone("name in a cell", rows[1].kids[0])
		fail("cell after a name", rows[1].kids[1].text, "1")
		fail("text in a cell", squeeze(rows[1].kids[2].text), words)
		fail("both in a cell", squeeze(rows[1].kids[3].text), words+both+words)
		fail("strong in a cell", squeeze(rows[2].kids[2].text), words)
		fail("foot", rows[3].kids[0].text+rows[3].kids[1].text+rows[3].kids[2].text, "others2")
		lone("name in the foot", rows[3].kids[3])
	}
	heads := page.all("h2")
	if len(heads) != 1 {
		t.Fatalf("%d headings\nmarkdown:\n%s", len(heads), markdown)
	}
	fail("heading", squeeze(heads[0].text), words+both)
	if n := len(page.all("blockquote")); n != 1 {
		t.Fatalf("%d quotes\nmarkdown:\n%s", n, markdown)
	}
	sums := page.all("summary")
	if len(sums) != 1 {
		t.Fatalf("%d summaries\nmarkdown:\n%s", len(sums), markdown)
	}
	fail("summary", squeeze(sums[0].text), words+both)
	for i, line := range strings.Split(string(markdown), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "::") || strings.Contains(line, "##[") || strings.Contains(line, "##vso[") {
			t.Fatalf("line %d is a command of a CI log: %q", i+1, line)
		}
	}
	// The paragraph that is a name, a text and the name again.
	fail("paragraph", squeeze(page.all("p")[0].text), both+words+both)
	items := page.all("li")
	if want := 6; len(items) != want {
		t.Fatalf("%d list items, want %d\nmarkdown:\n%s", len(items), want, markdown)
	}
	fail("nested item", squeeze(items[1].text), both+words)
}
