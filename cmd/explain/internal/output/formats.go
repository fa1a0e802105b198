package output

import (
	"io"
	"path/filepath"
	"slices"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/compat/export"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/present"
	"github.com/nsys-llm/explain/analyze/report/render"
)

// The formats of a report: each function writes the whole report in one format.

// HTML writes the report for a browser; step is the name of its step file to link to, empty for none.
func HTML(w io.Writer, r *report.Report, step string) error {
	return render.HTML(w, present.Page(r, step), render.HTMLOptions{Title: r.Trace.Name + " – explain"})
}

// Comment is the same page in fewer bytes, since a comment on a pull request holds 65,536 characters.
func Comment(w io.Writer, r *report.Report) error {
	return render.Markdown(w, present.Full(r, ""), render.MarkdownOptions{Compact: true})
}

// Summary writes profilemate's summary.json.
func Summary(w io.Writer, r *report.Report) error {
	b, err := export.SummaryJSON(r)
	return written(w, b, err)
}

func written(w io.Writer, b []byte, err error) error {
	if err == nil {
		_, err = w.Write(b)
	}
	return err
}

// Terminal prints the summary for people. out is the folder the report was written to, or empty.
func Terminal(w io.Writer, res *analyze.Result, out string, t render.TerminalOptions) error {
	o := present.TerminalOptions{Out: out}
	if out != "" {
		files := Report(res)
		for _, name := range mainFiles {
			if slices.ContainsFunc(files, func(f File) bool { return filepath.ToSlash(f.Name) == name }) {
				o.Files = append(o.Files, name)
			}
		}
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
		return Summary(w, res.Report)
	}
	return Terminal(w, res, out, t)
}
