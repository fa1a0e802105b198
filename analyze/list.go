package analyze

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/evidence"
	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/trace/source"
	"github.com/nsys-llm/explain/analyze/merge"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/render"
)

// SectionInfo names a section of the report and the tables that it may have, without rows.
type SectionInfo struct {
	ID, Title string
	Tables    []report.Table
}

// Sections lists the sections in the order of the report.
func Sections() []SectionInfo {
	return lists.Map(sections, func(s *kit.Section) SectionInfo { return SectionInfo{s.ID, s.Title, s.Tables} })
}

// NameKind says what a name in a capture tells by itself: a range that it marks a step of an engine, a kernel its
// category; empty if it tells neither. section is the page about that.
func NameKind(name string) (section, text string) {
	if m, ok := kernelname.ParseMarker(name); ok {
		return "unit", strings.TrimSpace("the NVTX range of a "+m.Phase) + " step, as " + m.Engine + " marks it"
	}
	switch kind := kernelname.Classify(name); {
	case kind.Category.Named() && !kind.Weak:
		return "categories", "if this is a kernel, its name says category " + string(kind.Category)
	case strings.Contains(strings.ToLower(name), "kernel"):
		return "categories", "if this is a kernel, its name does not say its category"
	}
	return "", ""
}

// RunSection is the section that only the report of a run of many ranks has.
func RunSection() SectionInfo { return SectionInfo{"ranks", "Ranks", merge.Tables} }

// SectionPage is the documentation of a section, as markdown.
func SectionPage(id string) (string, error) {
	for _, family := range pages {
		if b, err := family.ReadFile(id + ".md"); err == nil {
			return string(b), nil
		}
	}
	return "", fmt.Errorf("no section %q", id)
}

// FindingPage is the id and the page of the section that explains a finding: the first in the order of the report.
func FindingPage(finding string) (section, page string, found bool) {
	for _, s := range sections {
		if slices.ContainsFunc(s.Findings, func(d kit.FindingDef) bool { return d.ID == finding }) {
			page, err := SectionPage(s.ID)
			return s.ID, page, err == nil
		}
	}
	return "", "", false
}

// FindingIDs lists the findings that sections declare, in the order of the report.
func FindingIDs() []string {
	var ids lists.Numbering[string]
	for _, s := range sections {
		for _, d := range s.Findings {
			ids.Of(d.ID)
		}
	}
	return ids.Keys
}

// EvidencePage says which files beside a trace are read, as markdown.
func EvidencePage() string { return evidence.Page() }

// Metrics lists every metric, by id. A metric that several sections emit has the labels of all of them.
func Metrics() []report.MetricDef {
	byID := map[string]*report.MetricDef{}
	add := func(section string, defs []report.MetricDef) {
		for _, d := range defs {
			m := byID[d.ID]
			if m == nil {
				m = new(d)
				m.Lifecycle, m.Labels = cmp.Or(d.Lifecycle, report.Stable), nil
				byID[d.ID] = m
			}
			m.Stats = m.Stats || d.Stats
			labels := d.Labels
			if len(labels) == 0 {
				labels = []string{""}
			}
			for _, l := range labels {
				lists.Place[int32](&m.Labels, l)
			}
			lists.Place[int32](&m.Sections, section)
		}
	}
	for _, s := range sections {
		add(s.ID, s.Metrics)
	}
	add("ranks", merge.Metrics) // of reports that are merged of several captures
	return lists.Map(slices.Sorted(maps.Keys(byID)), func(id string) report.MetricDef {
		slices.Sort(byID[id].Labels)
		return *byID[id]
	})
}

// PrintSchema writes which tables of the capture explain uses and then every table with its columns, row count and time
// span. It prints names and numbers of the schema only, no content.
func PrintSchema(ctx context.Context, w io.Writer, path string, opt Options) error {
	d, err := trace.Describe(ctx, path, trace.FileOptions{Getenv: opt.Getenv})
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("Tables explain uses:\n")
	for _, u := range d.Used {
		fmt.Fprintf(&b, "- %s: %s\n", u.Role, render.Visible(u.Name))
	}
	b.WriteString("\nAll tables:\n")
	for _, t := range d.Tables {
		fmt.Fprintf(&b, "- %s (rows=%d", render.Visible(t.Name), t.Rows)
		if t.Timed {
			fmt.Fprintf(&b, ", t=[%d,%d]", t.First, t.Last)
		}
		columns := lists.Map(t.Columns, func(c source.ColumnShape) string {
			return " " + render.Visible(c.Name) + ":" + render.Visible(strings.ToLower(c.Type))
		})
		b.WriteString("):" + strings.Join(columns, ",") + "\n")
	}
	_, err = io.WriteString(w, b.String())
	return err
}
