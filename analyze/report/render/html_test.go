package render_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

func htmlPage(t tb, d doc.Document) *html.Node {
	t.Helper()
	return titledPage(t, d, "")
}

func titledPage(t tb, d doc.Document, title string) *html.Node {
	t.Helper()
	var b bytes.Buffer
	if err := render.HTML(&b, d, title); err != nil {
		t.Fatal(err)
	}
	n, err := html.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// chartsOf is one chart of every kind.
func chartsOf(name string) []doc.Block {
	var list []doc.Block
	for _, kind := range []string{"bar", "stacked", "histogram", "strip", "line", "scatter", "heat", "no such kind"} {
		list = append(list, doc.Chart{ID: "c-" + kind, Title: name, Kind: kind, Unit: "ns", XTitle: name, Series: []doc.Series{
			{Name: name, Labels: []string{"1", "2", name}, Values: []float64{1, 250, 0.5}},
		}})
	}
	return append(list, doc.Chart{ID: "c-flame", Title: name, Kind: "flame", Unit: "ns", Series: []doc.Series{
		{Name: name, Labels: []string{"depth", "start", "total", "self"}, Values: []float64{0, 0, 100, 40}},
		{Name: name, Labels: []string{"depth", "start", "total", "self"}, Values: []float64{1, 0, 60, 60}},
	}})
}

// elements of a page and how often each may occur where the content brings none of its own.
func checkHTML(t tb, root *html.Node) {
	t.Helper()
	ids := map[string]bool{}
	var scripts, styles []string
	policy := ""
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		switch n.Type {
		case html.CommentNode:
			t.Fatalf("a comment: %q", n.Data)
		case html.ElementNode:
			attr := map[string]string{}
			for _, a := range n.Attr {
				attr[a.Key] = a.Val
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcset" || a.Key == "src" || a.Namespace != "" {
					t.Fatalf("<%s %s=%q>", n.Data, a.Key, a.Val)
				}
			}
			if id := attr["id"]; id != "" {
				if ids[id] {
					t.Fatalf("id %q twice", id)
				}
				ids[id] = true
			}
			switch n.Data {
			case "script":
				scripts = append(scripts, n.FirstChild.Data)
			case "style":
				styles = append(styles, n.FirstChild.Data)
			case "img", "iframe", "object", "embed", "link", "base", "form", "foreignobject", "image", "use", "video", "audio":
				t.Fatalf("<%s>", n.Data)
			case "meta":
				if strings.EqualFold(attr["http-equiv"], "content-security-policy") {
					policy = attr["content"]
				}
			case "a":
				h := attr["href"]
				if scheme, _, ok := strings.Cut(h, ":"); ok && !strings.ContainsAny(scheme, "/?#") &&
					!strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
					t.Fatalf("a link to %q", h)
				}
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(root)
	if len(scripts) != 1 || len(styles) != 1 {
		t.Fatalf("%d scripts, %d style sheets", len(scripts), len(styles))
	}
	for _, s := range []string{scripts[0], styles[0]} {
		sum := sha256.Sum256([]byte(s))
		if !strings.Contains(policy, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
			t.Fatalf("the page's policy %q does not allow its own parts", policy)
		}
	}
	if !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") {
		t.Fatalf("policy %q", policy)
	}
}

func textOf(n *html.Node) string {
	var b strings.Builder
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
		if n.Type == html.ElementNode && (n.Data == "script" || n.Data == "style") {
			return
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(n)
	return b.String()
}

func find(n *html.Node, tag string) []*html.Node {
	var list []*html.Node
	if n.Type == html.ElementNode && n.Data == tag {
		list = append(list, n)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		list = append(list, find(c, tag)...)
	}
	return list
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// hostileFrame puts a text where only a page has places: ids, the contents, links to files, commands and the charts of a
// comparison and of a history.
func hostileFrame(name string) []doc.Block {
	values := []float64{1, 2}
	words := []string{name, name}
	series := func(style string) doc.Series {
		return doc.Series{Name: name, Style: style, Labels: words, Values: values, Words: words, Links: words, Note: name}
	}
	chart := func(kind string, styles ...string) doc.Chart {
		c := doc.Chart{ID: name, Title: name, Kind: kind, Unit: name, XTitle: name, Noise: 0.1}
		for _, style := range styles {
			c.Series = append(c.Series, series(style))
		}
		return c
	}
	return []doc.Block{
		doc.Heading{Level: 2, ID: "heading" + name, Group: "group" + name, Spans: doc.Spans(doc.Name(name), name)},
		doc.Table{ID: name, File: name, RowIDs: []string{"row" + name}, Columns: doc.Cols(name, name),
			Rows: [][]doc.Cell{doc.Row(doc.Link(name, name), name)}},
		doc.Details{ID: "details" + name, Summary: doc.Spans(doc.ShortName(name, name+name), name), Blocks: []doc.Block{doc.Command{Text: name}}},
		chart(name, name),
		chart("dots", name, "base"),
		chart("forest", "point", "low", "high", "noise", "limit"),
		chart("trend", "points", "level", "border", "change"),
		chart("stacked", name),
	}
}

func TestHostileTextInHTML(t *testing.T) {
	for _, name := range hostile {
		d := hostilePage(name, name)
		d.Add(chartsOf(name)...)
		d.Add(hostileTimeline(name))
		d.Add(doc.Answer{Spans: doc.Spans(doc.Name(name), doc.Text(name))})
		d.Add(hostileFrame(name)...)
		root := titledPage(t, d, name)
		checkHTML(t, root)
		if want := render.Visible(name); !strings.Contains(textOf(root), want) {
			t.Errorf("%q is not on the page literally", want)
		}
	}
}

func TestAnyTextInHTML(t *testing.T) {
	longtest.Draws(t, 30)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.String().Draw(t, "name")
		d := hostilePage(name, name)
		d.Add(chartsOf(name)...)
		d.Add(hostileTimeline(name))
		d.Add(hostileFrame(name)...)
		checkHTML(t, titledPage(t, d, name))
	})
}

// TestChartsSayTheirNumbers: whoever cannot see a chart reads its exact values beside it.
func TestChartsSayTheirNumbers(t *testing.T) {
	values := []float64{1, 250, 0.5, 1e9}
	for _, kind := range []string{"bar", "stacked", "histogram", "strip", "line", "scatter", "heat"} {
		root := htmlPage(t, doc.Document{doc.Chart{ID: "x", Title: "chart", Kind: kind, Unit: "ns",
			Series: []doc.Series{{Name: "a", Labels: []string{"1", "2", "3", "4"}, Values: values},
				{Name: "b", Labels: []string{"1", "2", "3", "4"}, Values: values}}}})
		var got []float64
		for _, n := range find(root, "data") {
			v, err := strconv.ParseFloat(attribute(n, "value"), 64)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, v)
		}
		want := []float64{1, 1, 250, 250, 0.5, 0.5, 1e9, 1e9}
		if !slices.Equal(got, want) {
			t.Errorf("%s: numbers %v, want %v", kind, got, want)
		}
		drawn := 0
		for _, svg := range find(root, "svg") {
			if attribute(svg, "role") == "img" {
				drawn++
				if attribute(svg, "aria-label") == "" {
					t.Errorf("%s: a drawing without a text", kind)
				}
			}
		}
		if drawn == 0 {
			t.Errorf("%s: nothing is drawn", kind)
		}
	}
}

// TestStackedBarsFillTheirWidth: 1, 2 and 5 of 8 take 12.5 %, 25 % and 62.5 % of the width, one after the other.
func TestStackedBarsFillTheirWidth(t *testing.T) {
	root := htmlPage(t, doc.Document{doc.Chart{ID: "x", Title: "chart", Kind: "stacked", Unit: "ns",
		Series: []doc.Series{{Name: "GPU 0", Labels: []string{"a", "b", "idle"}, Values: []float64{1, 2, 5}}}}})
	var got []string
	for _, r := range find(root, "rect") {
		if attribute(r, "x") != "" {
			got = append(got, attribute(r, "x")+" "+attribute(r, "width")+" "+attribute(r, "class"))
		}
	}
	if want := []string{"0% 12.5% c0", "12.5% 25% c1", "37.5% 62.5% k-idle"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAxisTicksAreRound(t *testing.T) {
	root := htmlPage(t, doc.Document{doc.Chart{ID: "x", Title: "chart", Kind: "line", Unit: "count",
		Series: []doc.Series{{Name: "a", Labels: []string{"0", "10"}, Values: []float64{3, 97}}}}})
	var got []string
	for _, svg := range find(root, "svg") {
		if attribute(svg, "class") == "yaxis" {
			for _, text := range find(svg, "text") {
				got = append(got, textOf(text))
			}
		}
	}
	if want := []string{"0", "20", "40", "60", "80"}; !slices.Equal(got, want) {
		t.Errorf("ticks %q, want %q", got, want)
	}
}

// TestLongNamesUnfold: a long name is shortened in the middle, and whole behind it.
func TestLongNamesUnfold(t *testing.T) {
	name := "begin_" + strings.Repeat("x", 200) + "_end"
	root := htmlPage(t, doc.Document{doc.P(doc.Name(name))})
	codes := find(root, "code")
	if len(codes) != 2 || textOf(codes[1]) != name {
		t.Fatalf("%d codes", len(codes))
	}
	if short := textOf(codes[0]); len(short) > 70 || !strings.HasPrefix(short, "begin_") || !strings.HasSuffix(short, "_end") {
		t.Errorf("shortened to %q", short)
	}
}

func BenchmarkHTML(b *testing.B) {
	d := doc.Document{}
	t := doc.Table{ID: "t", Columns: []doc.Column{{Title: "Name"}, {Title: "Value", Right: true}}}
	for i := range 10_000 {
		t.Rows = append(t.Rows, []doc.Cell{{doc.Name("kernel_" + strconv.Itoa(i))}, {doc.Text(strconv.Itoa(i))}})
	}
	d.Add(t)
	for b.Loop() {
		var out bytes.Buffer
		if err := render.HTML(&out, d, ""); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(out.Len()))
	}
}
