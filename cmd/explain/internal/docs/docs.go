// Package docs is everything that explain says about itself outside help texts: the pages of sections, of comparisons
// and of the work around them, and one search that finds each name that an output prints. The pages of examples/docs
// are made from it. It reads no capture and no report.
package docs

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/policy"
	"github.com/nsys-llm/explain/examples"
	"github.com/nsys-llm/explain/gate/history/change"
)

//go:embed pages/*.md
var files embed.FS

// Page is one page of the documentation.
type Page struct {
	Name  string // what `explain doc` takes
	Title string // its first heading
	Group string // the list it stands in
	Text  string // markdown
}

// Groups of pages, in the order of the list.
const (
	GroupUse      = "Using explain"
	GroupSections = "Sections of the report"
	GroupMore     = "How it decides, how it is built"
)

// Pages lists every page: how to use explain, the sections in the order of the report, how it decides. Callers do not
// change it.
var Pages = sync.OnceValue(func() (list []Page) {
	add := func(group, name, text string) {
		title, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
		list = append(list, Page{Name: name, Title: title, Group: group, Text: withExamples(text)})
	}
	own := func(group, names string) {
		for name := range strings.FieldsSeq(names) {
			text, _ := files.ReadFile("pages/" + name + ".md")
			add(group, name, string(text))
		}
	}
	own(GroupUse, "report diff gate whatif capture pytorch ranks agents exit-codes environment words reasons privacy")
	add(GroupUse, "evidence", analyze.EvidencePage())
	for _, s := range analyze.Sections() {
		if text, err := analyze.SectionPage(s.ID); err == nil {
			add(GroupSections, s.ID, text)
		}
	}
	add(GroupMore, "policy", policy.Page())
	add(GroupMore, "change-points", change.Page)
	own(GroupMore, "statistics speed architecture")
	return list
})

// source is where the files of the project are that pages link to.
const source = "https://github.com/nsys-llm/explain/blob/main/"

var links = strings.NewReplacer("](../../", "]("+source, "](../", "]("+source+"examples/")

// Linked is the text of a page for readers without the project's files: links to them lead to the web.
func Linked(text string) string { return links.Replace(text) }

// ByName is the page of a name, in which spaces, signs and case do not matter.
func ByName(name string) (Page, bool) {
	p := lists.Find(Pages(), func(p *Page) bool { return squeezed(p.Name) == squeezed(name) })
	if p == nil {
		return Page{}, false
	}
	return *p, true
}

// task is what somebody wants to do, and the command that does it.
type task struct{ want, command string }

// tasks are the ways into explain, the first one first.
var tasks = []task{
	{"see a regression, its cause and its page", "explain demo"},
	{"know where the time of a step goes", "explain trace.sqlite --out report/"},
	{"know whether a change made the step slower, and why", "explain diff base.sqlite head.sqlite"},
	{"compare GPUs, batches or engines (report each with --server-log)", "explain diff a.sqlite b.sqlite --study gpu"},
	{"know what a remedy could gain at most", "explain whatif trace.sqlite"},
	{"judge every pull request", "explain gate --base base.sqlite --head head.sqlite"},
	{"say what fails, and what is tolerated", "explain policy init a1.sqlite a2.sqlite a3.sqlite"},
	{"find the commit that made it slower", "explain bisect --help"},
	{"follow the step over months", "explain history --help"},
	{"know which rank the others wait for", "explain ranks/*.sqlite --out report/"},
	{"record a capture", "explain capture --dry-run --out run/ -- python serve.py"},
	{"measure what clients see", "explain load --help"},
	{"share a capture without its secrets; --names all hides names too", "explain scrub trace.sqlite clean.sqlite"},
	{"let an agent ask", "explain mcp --help"},
	{"look up a name from an output", "explain doc gpu_idle"},
}

// TaskList is the tasks as lines of a shell, each with what it is for behind it.
func TaskList() string {
	width := lists.Most(tasks, func(t task) int { return len(t.command) })
	var b strings.Builder
	for _, t := range tasks {
		fmt.Fprintf(&b, "%-*s  # %s\n", width, t.command, t.want)
	}
	return b.String()
}

// included is a line of a page in place of which stands an example.
var included = regexp.MustCompile(`(?m)^\{\{(.+)\}\}$`)

// withExamples is the text of a page with the examples that it includes.
func withExamples(text string) string {
	return included.ReplaceAllStringFunc(text, func(line string) string {
		file, _ := examples.Files.ReadFile(strings.Trim(line, "{}"))
		return strings.TrimSuffix(string(file), "\n")
	})
}

// Example is the text of the example of a name: its file, with or without the ending (same-runner), or the system that
// it is for (gitlab). Empty if there is none, and if there are several for the system.
func Example(name string) string {
	files, _ := fs.Glob(examples.Files, "*/*")
	found := lists.Filter(files, func(file string) bool {
		base := strings.ToLower(path.Base(file))
		names := []string{base, strings.TrimSuffix(base, path.Ext(base)), path.Dir(file)}
		return slices.Contains(names, strings.ToLower(name))
	})
	if len(found) != 1 {
		return ""
	}
	text, _ := examples.Files.ReadFile(found[0])
	return "# " + source + "examples/" + found[0] + "\n\n" + string(text)
}
