package analyze

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/present"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// TestGroupsOfThePage: a section of the trace says what it stands with, one of evidence alone does not have to.
func TestGroupsOfThePage(t *testing.T) {
	known := map[string]int{report.GroupStep: 0, report.GroupTime: 0, report.GroupKernels: 0, report.GroupMemory: 0, report.GroupLate: 0,
		report.GroupRanges: 0, report.GroupCapture: 0}
	for _, s := range sections {
		_, ok := known[s.Group]
		if s.Group != "" && !ok || s.Group == "" && len(s.Evidence) == 0 && s.Asked == nil {
			t.Errorf("section %s is of group %q", s.ID, s.Group)
		}
		known[s.Group]++
	}
	for g, n := range known {
		if n < 2 {
			t.Errorf("%d sections of group %q", n, g)
		}
	}
}

// TestLengthOfReports: report.md has at most 300 lines in sight and 12 sections, whatever the capture.
func TestLengthOfReports(t *testing.T) {
	paths, _ := filepath.Glob("../testdata/*.sqlite")
	real, _ := filepath.Glob("../../shared/traces/*.sqlite")
	for _, path := range append(paths, longtest.Some(real, 8)...) {
		var b strings.Builder
		if err := render.Markdown(&b, present.Full(reportOnce(t, path), ""), render.MarkdownOptions{}); err != nil {
			t.Fatal(err)
		}
		seen, parts, depth := 0, 0, 0
		for _, line := range strings.Split(b.String(), "\n") {
			depth += strings.Count(line, "<details")
			if depth == 0 {
				seen++
			}
			if strings.HasPrefix(line, "## ") {
				parts++
			}
			depth -= strings.Count(line, "</details")
		}
		if seen > 300 || parts > 12 {
			t.Errorf("%s: report.md has %d lines in sight, and %d sections", path, seen, parts)
		}
	}
}
