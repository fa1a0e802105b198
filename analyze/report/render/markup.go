package render

import (
	"html"
	"math"
	"strconv"
	"strings"
)

// markup is HTML or SVG that is safe to put on a page. A constant of this package converts by itself; a string variable
// does not compile, so that all text from outside must go through [text] or [escape].
type markup string

// text makes any text visible, and safe in element content and in double-quoted attributes.
func text(s string) markup { return escape(Visible(s)) }

// escape is like text, for a string that is already visible.
func escape(s string) markup { return markup(html.EscapeString(s)) }

// attr is an attribute with its leading space; nothing if its value is empty.
func attr(name, value markup) markup {
	if value == "" {
		return ""
	}
	return " " + name + "=\"" + value + "\""
}

func num(n int) markup { return markup(strconv.Itoa(n)) }

// short formats a position in a drawing, rounded to a tenth.
func short(v float64) markup { return float(math.Round(v*10)/10 + 0) } // + 0: never -0

func float(v float64) markup { return markup(strconv.FormatFloat(v, 'f', -1, 64)) }

// percent formats a position as a percentage of the whole.
func percent(v, whole float64) markup {
	if whole == 0 || math.IsNaN(v) {
		return "0%"
	}
	return float(math.Round(v/whole*1e5)/1e3) + "%"
}

// builder collects markup.
type builder struct{ b strings.Builder }

func (w *builder) put(s markup) { w.b.WriteString(string(s)) }

func (w *builder) markup() markup { return markup(w.b.String()) }
