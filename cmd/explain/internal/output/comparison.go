package output

import (
	"io"

	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/diff/comparison"
	diffrender "github.com/nsys-llm/explain/diff/diffdoc"
)

// Comparison lists what goes into the folder of a comparison.
func Comparison(c *comparison.Comparison) []File {
	format := func(name string, write func(io.Writer, *comparison.Comparison) error) File {
		return File{name, func(w io.Writer) error { return write(w, c) }}
	}
	list := []File{
		format("comparison.json", comparison.Write),
		format("diff.html", diffrender.WriteHTML),
		format("comparison.md", writeComparisonMD),
		format("comparison.csv", diffrender.WriteCSV),
	}
	if c.Study == nil { // there is nothing that a CI system could take for a test
		list = append(list, format("junit.xml", diffrender.WriteJUnit))
	}
	return list
}

func writeComparisonMD(w io.Writer, c *comparison.Comparison) error {
	return diffrender.WriteMarkdown(w, c, render.MarkdownOptions{})
}
