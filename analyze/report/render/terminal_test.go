package render_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

func terminal(t tb, d doc.Document, o render.TerminalOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := render.Terminal(&b, d, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// sample uses every block once.
func sample() doc.Document {
	var d doc.Document
	long := "void at::native::elementwise_kernel<(int)128, (int)2, void at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<float, float, float>>>(int, T3)"
	d.Add(
		doc.Heading{Level: 1, Spans: doc.Spans(doc.Text("Report of "), doc.Name("serve.sqlite"))},
		doc.P(doc.Text("Running text that is long enough to be wrapped at the width of the terminal, with a "), doc.Strong("strong"), doc.Text(" word and a name "), doc.Name(long), doc.Text(".")),
		doc.H(2, "gpus", "GPUs"),
		doc.Table{
			Caption: doc.Spans(doc.Text("Top kernels")),
			Columns: []doc.Column{{Title: "Kernel"}, {Title: "Total (ms)", Right: true},
				{Title: "Grid", Wide: true}, {Title: "Share (%)", Right: true}},
			Rows: [][]doc.Cell{
				{doc.Spans(doc.Name(long)), doc.Spans(doc.Text("1,234.50")), doc.Spans(doc.Text("(128, 1, 1)")), doc.Spans(doc.Text("50.9").With(doc.Bad))},
				{doc.Spans(doc.Name("核函数_注意力")), doc.Spans(doc.Text("3.12")), nil, doc.Spans(doc.Text("<0.1"))},
				{doc.Spans(doc.Name("::error::boom\n\x1b[31m")), doc.Spans(doc.Text("0.01")), nil, nil},
			},
			Foot: [][]doc.Cell{{doc.Spans(doc.Text("others (12)")), doc.Spans(doc.Text("10.00"))}},
		},
		doc.Fields{Items: []doc.Field{
			{Label: "Launches", Value: doc.Spans(doc.Text("4,006 (13,359/s)"))},
			{Label: "Sync", Value: doc.Spans(doc.Text("33 calls, 324.5 ms, mostly "), doc.Name("cudaStreamSynchronize"), doc.Text(" and others that make this line wrap at the end"))},
		}},
		doc.List{Items: []doc.Item{
			{Spans: doc.Spans(doc.Strong("HIGH"), doc.Text(" A finding")), Blocks: []doc.Block{doc.List{Ordered: true, Items: []doc.Item{{Spans: doc.Spans(doc.Text("do this"))}, {Spans: doc.Spans(doc.Text("then that"))}}}}},
			{Spans: doc.Spans(doc.Text("Another finding"))},
		}},
		doc.Details{Summary: doc.Spans(doc.Text("How this was computed")), Blocks: []doc.Block{doc.P(doc.Text("Sum of end - start."))}},
		doc.Note{Kind: doc.Caution, Blocks: []doc.Block{doc.P(doc.Text("The capture is cut, so the numbers of the last step are those of a part of it.").With(doc.Warn))}},
		doc.Chart{ID: "c"},
	)
	return d
}

func TestTerminal(t *testing.T) {
	golden(t, "terminal_100.txt", []byte(terminal(t, sample(), render.TerminalOptions{})))
	golden(t, "terminal_60.txt", []byte(terminal(t, sample(), render.TerminalOptions{Width: 60})))
	golden(t, "sample.md", markdown(t, sample(), render.MarkdownOptions{}))
}

func TestColourChangesNothingElse(t *testing.T) {
	plain := terminal(t, sample(), render.TerminalOptions{Width: 80})
	coloured := terminal(t, sample(), render.TerminalOptions{Width: 80, Color: true})
	if strings.Contains(plain, "\x1b") {
		t.Errorf("escape sequence without colour: %q", plain)
	}
	if !strings.Contains(coloured, "\x1b[31m50.9\x1b[0m") {
		t.Errorf("no colour: %q", coloured)
	}
	if got := regexp.MustCompile("\x1b\\[[0-9]+m").ReplaceAllString(coloured, ""); got != plain {
		t.Errorf("without colours:\n%s\nwant:\n%s", got, plain)
	}
}

func checkTerminal(t tb, name, text string, width int) {
	t.Helper()
	out := terminal(t, hostilePage(name, text), render.TerminalOptions{Width: width})
	for i, line := range strings.Split(out, "\n") {
		columns := 0
		for _, r := range line {
			if !unicode.IsPrint(r) {
				t.Fatalf("line %d holds %q", i+1, r)
			}
			if !unicode.Is(unicode.M, r) {
				columns++
			}
		}
		if columns > max(width, 40) && !strings.HasPrefix(line, `\u{3a}`) {
			t.Fatalf("line %d is wider than %d: %q", i+1, width, line)
		}
		if strings.HasPrefix(strings.TrimSpace(line), "::") || strings.Contains(line, "##[") {
			t.Fatalf("line %d is a command of a CI log: %q", i+1, line)
		}
		if strings.HasSuffix(line, " ") {
			t.Fatalf("line %d ends in a space", i+1)
		}
	}
}

func TestHostileTextInATerminal(t *testing.T) {
	longtest.Draws(t, 30)
	for _, name := range hostile {
		for _, text := range hostile {
			checkTerminal(t, name, text, 80)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		checkTerminal(t, rapid.String().Draw(t, "name"), rapid.String().Draw(t, "text"), rapid.IntRange(40, 140).Draw(t, "width"))
	})
}

func TestVisibleIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s") + rapid.SampledFrom(hostile).Draw(t, "hostile")
		once := render.Visible(s)
		if twice := render.Visible(once); twice != once {
			t.Fatalf("%q becomes %q, then %q", s, once, twice)
		}
	})
	for _, c := range []struct{ s, want string }{
		{"a\nb\r\x00\x7f", "a␤b␍␀␡"},
		{"\u202ea\u2066", `\u{202e}a\u{2066}`},
		{"a\u200bb\ufeff", `a\u{200b}b\u{feff}`},
		{"\x9b1m\xff", `\x{9b}1m\x{ff}`},
		{"\u009b1m", `\u{9b}1m`},
		{"a\u00a0b", `a\u{a0}b`},
		{"##[error]", `#\u{23}[error]`},
		{"## [x]", "## [x]"},
		{"naïve 核 µs ×", "naïve 核 µs ×"},
	} {
		if got := render.Visible(c.s); got != c.want {
			t.Errorf("Visible(%q) = %q, want %q", c.s, got, c.want)
		}
	}
}
