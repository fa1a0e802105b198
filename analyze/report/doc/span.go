package doc

import "fmt"

// Kind of a span.
type Kind int8

const (
	KindText   Kind = iota // explain's own words
	KindName               // text out of a capture: shown literally, may be shortened in the middle
	KindStrong             // own words, emphasised
	KindCode               // own words, literal: a flag, a metric id, a file name; never shortened
	KindLink               // own words that lead to Dest
)

// Span is a piece of text of one kind and tone. It is four words, which the compiler keeps in registers: documents are
// made of hundreds of calls that hand spans on, and what only few spans have is behind a pointer.
type Span struct {
	Kind   Kind
	Tone   Tone
	Text   string
	behind *string // see Behind; nil if there is none
}

// Behind is where a link leads, a relative path or an http(s) address, or the whole of a name that stands for a longer
// one, for renderers that can show it on demand; empty if there is none.
func (s Span) Behind() string {
	if s.behind == nil {
		return ""
	}
	return *s.behind
}

// Tone is the meaning of a colour, for renderers that have colours. It never carries information alone.
type Tone int8

const (
	Plain Tone = iota
	Good
	Bad
	Warn
	Muted
)

// Text is explain's own words.
func Text(s string) Span { return Span{Kind: KindText, Text: s} }

// Name is text out of a capture.
func Name(s string) Span { return Span{Kind: KindName, Text: s} }

// ShortName is text that stands for a longer one out of a capture.
func ShortName(s, full string) Span { return Span{Kind: KindName, Text: s, behind: &full} }

// Strong is explain's own words, emphasised.
func Strong(s string) Span { return Span{Kind: KindStrong, Text: s} }

// Code is a literal of explain's own: a flag, a metric id, a file name.
func Code(s string) Span { return Span{Kind: KindCode, Text: s} }

// Link is explain's own words that lead to a relative path or an http(s) address.
func Link(text, dest string) Span { return Span{Kind: KindLink, Text: text, behind: &dest} }

// With returns the span in another tone.
func (s Span) With(t Tone) Span {
	s.Tone = t
	return s
}

// Spans collects the parts of a text: Spans("a ", Name(n)). A part is a string of explain's own words, a [Span] or
// several of them.
func Spans(parts ...any) []Span {
	list := make([]Span, 0, len(parts))
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			list = append(list, Text(p))
		case Span:
			list = append(list, p)
		case []Span:
			list = append(list, p...)
		default:
			panic(fmt.Sprintf("doc: a text of %T", p))
		}
	}
	return list
}

// Joined are the items of a list as spans, each shown as a part of [Spans], with a separator between two.
func Joined[T any](sep string, list []T, show func(item T) any) (spans []Span) {
	for i, item := range list {
		if i > 0 {
			spans = append(spans, Text(sep))
		}
		spans = append(spans, Spans(show(item))...)
	}
	return spans
}

// Names are names out of a capture, separated by commas.
func Names(list []string) []Span {
	return Joined(", ", list, func(n string) any { return Name(n) })
}

// P is a paragraph of the given parts, see [Spans].
func P(parts ...any) Paragraph { return Paragraph{Spans: Spans(parts...)} }

// H is a heading of the given level in explain's own words.
func H(level int, id, text string) Heading {
	return Heading{Level: level, ID: id, Spans: []Span{Text(text)}}
}
