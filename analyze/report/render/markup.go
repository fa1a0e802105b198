package render

import (
	"html/template"
	"math"
	"strconv"
	"strings"
)

// markup is HTML or SVG that is safe to put on a page. A constant of this package becomes markup by itself; a string
// variable does not compile, so that every text from outside has to go through [text] or [escape].
//
// html/template does the same at run time and writes the page and its blocks (page/page.html). It does not write what
// there is very much of, which are cells, spans and the shapes of drawings: the rows of a large table take it about 20
// times as long.
type markup = template.HTML

// text makes any text safe in element content and in double-quoted attributes, and visible.
func text(s string) markup { return escape(Visible(s)) }

// escape is text for what is visible already.
func escape(s string) markup { return markup(template.HTMLEscapeString(s)) }

// num writes a whole number.
func num(n int) markup { return markup(strconv.Itoa(n)) }

// short writes a place in a drawing, to a tenth.
func short(v float64) markup { return float(math.Round(v*10)/10 + 0) } // + 0: never -0

func float(v float64) markup { return markup(strconv.FormatFloat(v, 'f', -1, 64)) }

// percent is a place in an area of the given whole.
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
