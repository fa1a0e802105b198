package diff

import (
	"github.com/nsys-llm/explain/diff/internal/infer"
)

// StatisticsPages are the names of the pages on how a comparison decides: one-capture, several-captures.
func StatisticsPages() []string { return infer.Pages() }

// StatisticsPage is one page on how a comparison decides what is real and what is noise, with formulae and references,
// as markdown.
func StatisticsPage(name string) (string, error) { return infer.Page(name) }
