// Package output holds what explain writes: the formats of a report, and the folders of reports and comparisons.
package output

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/compat/export"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/present"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/diff/comparison"
	diffrender "github.com/nsys-llm/explain/diff/diffdoc"
)

// The formats of a report: each function writes the whole report in one format.

// HTML writes the report for a browser; step is the name of its step file to link to, empty for none.
func HTML(w io.Writer, r *report.Report, step string) error {
	return render.HTML(w, present.Page(r, step), r.Trace.Name+" – explain")
}

// Comment is the same page in fewer bytes, since a comment on a pull request holds 65,536 characters.
func Comment(w io.Writer, r *report.Report) error {
	return render.Markdown(w, present.Full(r, ""), render.MarkdownOptions{Compact: true})
}

// bytesOf writes the bytes that a function returns.
func bytesOf[T any](of func(T) ([]byte, error)) func(io.Writer, T) error {
	return func(w io.Writer, value T) error {
		b, err := of(value)
		if err == nil {
			_, err = w.Write(b)
		}
		return err
	}
}

// Terminal prints the summary for people. out is the folder the report was written to, or empty.
func Terminal(w io.Writer, res *analyze.Result, out string, t render.TerminalOptions) error {
	o := present.TerminalOptions{Out: out}
	if out != "" {
		files := Report(res)
		written := lists.Set(files, func(f File) string { return filepath.ToSlash(f.Name) })
		o.Files = slices.DeleteFunc(slices.Clone(mainFiles), func(name string) bool { return !written[name] })
		o.More = len(files) - len(o.Files)
	}
	return render.Terminal(w, present.Terminal(res.Report, o), t)
}

// Formats of --format, in the order of the help text.
var Formats = []string{"text", "md", "html", "json", "profilemate"}

// Print writes a report in one of the formats, or as text for people; out is the folder that it was written to, or
// empty.
func Print(w io.Writer, res *analyze.Result, format, out string, t render.TerminalOptions) error {
	switch format {
	case "json":
		return report.Write(w, res.Report)
	case "md":
		return Comment(w, res.Report)
	case "html":
		return HTML(w, res.Report, "")
	case "profilemate":
		return bytesOf(export.SummaryJSON)(w, res.Report)
	}
	return Terminal(w, res, out, t)
}

// Comparison lists what goes into the folder of a comparison; links lead to the pages of its sides.
func Comparison(c *comparison.Comparison, links diffrender.Links) []File {
	list := []File{
		FileOf("comparison.json", c, comparison.Write),
		{Name: "diff.html", Write: func(w io.Writer) error { return diffrender.WriteHTML(w, c, links) }},
		{Name: "comparison.md", Write: func(w io.Writer) error {
			return render.Markdown(w, diffrender.Browser(c, diffrender.Links{}), render.MarkdownOptions{})
		}},
		FileOf("comparison.csv", c, diffrender.WriteCSV),
	}
	if c.Study == nil { // there is nothing that a CI system could take for a test
		list = append(list, FileOf("junit.xml", c, diffrender.WriteJUnit))
	}
	return list
}

// ComparisonFormats are the values of --format for a comparison, in the order of the help text.
var ComparisonFormats = []string{"text", "md", "json", "junit", "csv"}

// PrintComparison writes a comparison in one of these formats or as html; as text for people if the format is none.
func PrintComparison(w io.Writer, c *comparison.Comparison, format string, t render.TerminalOptions) error {
	switch format {
	case "json":
		return comparison.Write(w, c)
	case "md":
		return render.Markdown(w, diffrender.Browser(c, diffrender.Links{}), render.MarkdownOptions{Compact: true})
	case "html":
		return diffrender.WriteHTML(w, c, diffrender.Links{})
	case "junit":
		return diffrender.WriteJUnit(w, c)
	case "csv":
		return diffrender.WriteCSV(w, c)
	}
	return render.Terminal(w, diffrender.Terminal(c), t)
}

// PageBeside returns the HTML report beside an input, which is a report's folder or its JSON, relative to the folder
// out; empty if there is none.
func PageBeside(path, out string) string {
	if info, err := os.Stat(path); err != nil {
		return ""
	} else if !info.IsDir() {
		path = filepath.Dir(path)
	}
	page := filepath.Join(path, "report.html")
	if !input.Exists(page) || !input.Exists(filepath.Join(path, "report.json")) {
		return ""
	}
	rel, err := filepath.Rel(out, page)
	if err != nil {
		return ""
	}
	return filepath.ToSlash(rel)
}

// TraceIn returns the trace in the folder of a capture and the evidence beside it: everything there that explain did
// not write about the trace. Any other path is returned as it is.
func TraceIn(path string) (trace string, beside []analyze.Evidence) {
	found := filepath.Join(path, input.CapturedTrace)
	if !input.Exists(found) {
		return path, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return found, nil
	}
	measured, _ := fs.Glob(os.DirFS(path), "ncu/*.csv")
	written := lists.Set(reportFiles, func(name string) string { return name })
	written["tables"], written["ncu"] = true, len(measured) == 0 // without measurements, ncu has explain's ncu/regions alone
	for _, e := range entries {
		at := filepath.Join(path, e.Name())
		if written[e.Name()] || e.Name() == input.CapturedTrace {
			continue
		}
		if e.IsDir() && analyze.HoldsEvidence(at) || !e.IsDir() && analyze.IsEvidence(at) {
			beside = append(beside, analyze.Evidence{Path: at})
		}
	}
	return found, beside
}
