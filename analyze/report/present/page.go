package present

import (
	"strconv"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
)

// pageRows bounds the rows of a table on the page.
const pageRows = 1000

// Page is the report for a browser: key numbers as tiles, warnings and findings, every section with its charts and with
// more rows and columns than the text voices have room for. Findings lead to the rows they stand on.
func Page(r *report.Report) doc.Document {
	v := newView(r)
	l := layout{rows: pageRows, wide: true, files: "tables/"}
	v.cite(l)
	var d doc.Document
	d.Add(doc.Heading{Level: 1, ID: "report", Spans: doc.Spans(doc.Text(v.kindOfReport()+": "), doc.Name(r.Trace.Name))})
	d.Add(v.provenance()...)
	if t := v.tiles(); len(t.Items) > 0 {
		d.Add(t)
	}
	d.Add(v.evidenceFiles()...)
	d.Add(v.warnings()...)
	d.Add(v.findings()...)
	for i := range r.Sections {
		if !without(&r.Sections[i]) {
			d.Add(v.section(&r.Sections[i], l)...)
		}
	}
	d.Add(v.absent()...)
	return d
}

func (v *view) tiles() doc.Tiles {
	var t doc.Tiles
	for _, f := range v.facts() {
		t.Items = append(t.Items, doc.Tile{Label: f.label, Value: doc.Spans(doc.Text(f.value)), Detail: f.detail})
	}
	return t
}

// cite finds for each metric that a finding stands on the row that shows it, or else the section.
func (v *view) cite(l layout) {
	v.links, v.anchors = map[string]string{}, map[string]map[int]string{}
	for _, f := range v.Findings {
		for _, ref := range f.Evidence {
			v.links[key(ref.ID, ref.Labels)] = "#" + f.Doc
			for i := range v.Sections {
				if v.Sections[i].ID == f.Doc {
					v.citeRow(&v.Sections[i], ref, l)
				}
			}
		}
	}
}

// citeRow links a metric with labels to the first row that holds all of their values.
func (v *view) citeRow(s *report.Section, ref report.MetricRef, l layout) {
	if len(ref.Labels) == 0 {
		return
	}
	for i := range s.Tables {
		t := &s.Tables[i]
		for n := range min(entries(t), l.rows) {
			if !holds(t.Rows[n], ref.Labels) {
				continue
			}
			id := "row-" + t.ID + "-" + strconv.Itoa(n)
			if v.anchors[t.ID] == nil {
				v.anchors[t.ID] = map[int]string{}
			}
			v.anchors[t.ID][n] = id
			v.links[key(ref.ID, ref.Labels)] = "#" + id
			return
		}
	}
}

func holds(row []report.Cell, labels report.Labels) bool {
	for _, want := range labels {
		found := false
		for _, c := range row {
			if s, ok := c.Str(); ok && s == want {
				found = true
			} else if n, ok := c.Int(); ok && strconv.FormatInt(n, 10) == want {
				found = true
			}
		}
		if !found {
			return false
		}
	}
	return true
}
