package render_test

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

func markdown(t tb, d doc.Document, o render.MarkdownOptions) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := render.Markdown(&b, d, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestHostileTextIsLiteralEverywhere(t *testing.T) {
	for _, name := range hostile {
		for _, text := range longtest.Some(append(hostile, "plain words"), 5) {
			checkPage(t, markdown(t, hostilePage(name, text), render.MarkdownOptions{}), name, text)
		}
		checkPage(t, markdown(t, hostilePage(name, "x"), render.MarkdownOptions{Compact: true}), name, "x")
	}
}

func TestAnyTextIsLiteral(t *testing.T) {
	piece := rapid.SampledFrom(append([]string{"`", "|", "\\", "*", "_", "<", ">", "[", "]", "(", ")", "#", "@", "a", "Z", "0", " ", ".", ":", "-", "&", "~", "!", "$", "\n"}, hostile...))
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces"), "")
	})
	rapid.Check(t, func(t *rapid.T) {
		name, words := text.Draw(t, "name"), text.Draw(t, "text")
		var b bytes.Buffer
		if err := render.Markdown(&b, hostilePage(name, words), render.MarkdownOptions{}); err != nil {
			t.Fatal(err)
		}
		checkPage(t, b.Bytes(), name, words)
	})
}

func FuzzMarkdown(f *testing.F) {
	for i, name := range hostile {
		f.Add(name, hostile[(i*7+3)%len(hostile)])
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		if len(name)+len(text) > 4096 {
			return
		}
		checkPage(t, markdown(t, hostilePage(name, text), render.MarkdownOptions{}), name, text)
	})
}

func TestOwnWordsStayReadable(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"Window of 1.5 s on 2 GPUs (0.68 % idle).", "Window of 1.5 s on 2 GPUs (0.68 % idle)."},
		{"1.5 s of kernel_time - 3 ms", "1.5 s of kernel_time - 3 ms"},
		{"-5 ms, A & B, a -> b", "-5 ms, A & B, a -> b"},
		{"~5 ms < 6 ms", `\~5 ms < 6 ms`},
		{"<0.1 of <b>", `<0.1 of \<b>`},
		{"> 5", `\> 5`},
		{"ask @org/team, see #412.", "ask `@org/team`, see `#412`."},
		{"see https://example.com/x.", "see `https://example.com/x`."},
		{"::error::x", "`::error::x`"},
		{":: x", `\:: x`},
		{"1. first", `1\. first`},
		{"# no heading", `\# no heading`},
	} {
		var d doc.Document
		d.Add(doc.P(doc.Text(c.text)))
		if got := strings.TrimSpace(string(markdown(t, d, render.MarkdownOptions{}))); got != c.want {
			t.Errorf("%q is written %q, want %q", c.text, got, c.want)
		}
	}
}

func TestMentionSplitOverSpansIsStillInert(t *testing.T) {
	var d doc.Document
	d.Add(doc.P(doc.Text("ask @"), doc.Text("org")))
	if got := string(markdown(t, d, render.MarkdownOptions{})); got != "ask `@org`\n" {
		t.Errorf("%q", got)
	}
}

func TestLinksLeadOnlyToPathsAndWeb(t *testing.T) {
	for _, c := range []struct{ dest, want string }{
		{"tables/kernels.csv", "[kernels](tables/kernels.csv)\n"},
		{"https://example.com/a b?(x)", "[kernels](https://example.com/a%20b?%28x%29)\n"},
		{"javascript:alert(1)", "kernels\n"},
		{"JAVASCRIPT:alert(1)", "kernels\n"},
		{"data:text/html,x", "kernels\n"},
		{"//example.com", "kernels\n"},
		{"", "kernels\n"},
		{"x)\n[y](z", "[kernels](x%29%0A%5By%5D%28z)\n"},
	} {
		var d doc.Document
		d.Add(doc.P(doc.Link("kernels", c.dest)))
		if got := string(markdown(t, d, render.MarkdownOptions{})); got != c.want {
			t.Errorf("%q: %q, want %q", c.dest, got, c.want)
		}
	}
}

func TestLongNamesKeepBothEnds(t *testing.T) {
	var d doc.Document
	d.Add(doc.P(doc.Name("head_" + strings.Repeat("x", 300) + "_tail")))
	got := strings.Trim(string(markdown(t, d, render.MarkdownOptions{})), "`\n")
	if want := "head_" + strings.Repeat("x", 61) + "…" + strings.Repeat("x", 28) + "_tail"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestEmptyDocument(t *testing.T) {
	if got := markdown(t, doc.Document{}, render.MarkdownOptions{}); len(got) != 0 {
		t.Errorf("%q", got)
	}
	var b bytes.Buffer
	if err := render.Terminal(&b, doc.Document{}, render.TerminalOptions{}); err != nil || b.Len() != 0 {
		t.Errorf("%q, %v", b.String(), err)
	}
}
