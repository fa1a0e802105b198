package present

import (
	"math"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// pageRows bounds the rows of a table on the page.
const pageRows = 200

// Page returns the report for a browser: the answer first, then findings and warnings, then every section, in groups,
// with its charts and with more rows and columns than the text formats have room for. Findings link to the rows behind
// them. stepFile is the path, relative to the page, of the shown units for Perfetto; empty: there is none.
func Page(r *report.Report, stepFile string) doc.Document {
	v := NewView(r)
	l := layout{rows: pageRows, wide: true}
	v.cite(l)
	var d doc.Document
	d.Add(doc.Heading{Level: 1, ID: "report", Spans: doc.Spans(v.kindOfReport()+": ", doc.Name(r.Trace.Name))})
	d.Add(v.first()...)
	findings := doc.H(2, "findings", "Findings")
	findings.Group = groupAnswer
	d.Add(findings)
	d.Add(v.findings()[1:]...)
	d.Add(v.whatIfs(stepFile)...)
	if w := v.warnings(); len(w) > 0 {
		d.Add(doc.Details{ID: "warnings", Summary: doc.Spans(wording.Count(len(v.Warnings), "warning")), Blocks: w[1:]})
	}
	d.Add(v.inParts(l)...)
	d.Add(v.capture(l)...)
	return d
}

// whatIfs lists the changes from which a step would gain most, each as the flag of the command that replays it, and
// links to the step's single calls.
func (v *View) whatIfs(stepFile string) []doc.Block {
	if steps := v.Unit.Steps; steps == nil || len(steps.List) == 0 {
		return nil
	}
	h := doc.H(2, "whatif", "What if")
	h.Group = groupAnswer
	list, ceilings := []doc.Block{h}, v.Table("critical_path", tableWhatIfs)
	t := doc.Table{ID: tableWhatIfs, Columns: doc.Cols(">A step saves", "With")}
	for i := range ceilings.Entries() {
		change := ceilings.Str(i, "change")
		ns, _ := ceilings.Num(i, "time")
		share, _ := ceilings.Num(i, "share")
		t.Row(doc.Strong("≤ "+unit.Format(ns, report.Nanoseconds)+", "+unit.Percent(share)), doc.Name(quoted(change)))
	}
	if len(t.Rows) > 0 {
		list = append(list, t)
	}
	list = append(list, doc.Command{Text: "explain whatif TRACE"})
	if stepFile == "" {
		return append(list, doc.P("The step in ui.perfetto.dev:"),
			doc.Command{Text: "explain report.json --perfetto step.json"})
	}
	return append(list, doc.P("The median and the slowest step, call by call, for ui.perfetto.dev: ", doc.Link(stepFile,
		stepFile)))
}

// tableWhatIfs is the table of what changes would gain; the page shows it in a part of its own.
const tableWhatIfs = "what_ifs"

// quoted formats a flag with its value for a shell.
func quoted(change string) string {
	if flag, value, ok := strings.Cut(change, " "); ok {
		return flag + " '" + strings.ReplaceAll(value, "'", `'\''`) + "'"
	}
	return change
}

// listedFacts is how many key numbers are not folded.
const listedFacts = 10

// capture describes the whole capture: its key numbers, its origin, and the sections that have nothing to show.
func (v *View) capture(l layout) []doc.Block {
	h := doc.H(2, "capture", "Whole capture")
	h.Group = groupEvidence
	list := append([]doc.Block{h}, v.provenance()...)
	var facts, more doc.Fields
	for i, f := range v.facts() {
		of := &facts
		if i >= listedFacts {
			of = &more
		}
		value := doc.Spans(doc.Strong(f.value), " ", f.detail)
		of.Add(f.label, value)
	}
	if len(facts.Items) > 0 {
		list = append(list, facts)
	}
	fold := func(id, summary string, blocks []doc.Block) {
		if len(blocks) > 0 {
			list = append(list, doc.Details{ID: id, Summary: doc.Spans(summary), Blocks: blocks})
		}
	}
	if n := len(more.Items); n > 0 {
		fold("more-facts", wording.Count(n, "more key number"), []doc.Block{more})
	}
	list = append(list, v.captured(l)...)
	fold("evidence", "Evidence: "+wording.Count(len(v.Evidence), "file"), v.evidenceFiles())
	if a := v.absent(); len(a) > 0 {
		fold("absent", "Sections without data", a[1:])
	}
	return list
}

// drawnHistograms bounds the histograms of a section.
const drawnHistograms = 6

// durations draws the distributions of the kernels with the most time, from the histograms of their metrics. Text
// formats leave charts out.
func (v *View) durations(s *report.Section, l layout) []doc.Block {
	t := v.Table("kernels", "kernels")
	if s.ID != "kernels" || !l.wide || t.Entries() == 0 {
		return nil
	}
	var charts []doc.Block
	for i := range min(t.Entries(), drawnHistograms) {
		name := t.Str(i, "kernel_name")
		m := v.Metric("kernel.total_time", "kernel", name)
		if m == nil || m.Histogram == nil || len(m.Histogram.Bins) < 2 {
			continue
		}
		charts = append(charts, histogramChart("duration-"+strconv.Itoa(i), "Duration of "+v.name(name).Text,
			m.Histogram, report.Nanoseconds))
	}
	if len(charts) == 0 {
		return nil
	}
	return []doc.Block{doc.Details{Summary: doc.Spans("Distributions of the kernels with most time"), Blocks: charts}}
}

// histogramBins is the number of columns of a drawn histogram.
const histogramBins = 60

// histogramChart draws a sparse histogram with log-spaced bins as fewer columns of equal ratio, each the sum of some
// bins.
func histogramChart(id, title string, h *report.Histogram, xUnit string) doc.Chart {
	first, last := h.Bins[0][0], h.Bins[len(h.Bins)-1][0]
	step := max(1, (last-first+histogramBins)/histogramBins)
	n := int((last-first)/step) + 1
	s := doc.Series{Name: "count", Labels: make([]string, n), Values: make([]float64, n)}
	for i := range n {
		s.Labels[i] = strconv.FormatFloat(math.Pow(h.Growth, float64(first+int64(i)*step)), 'g', 5, 64)
	}
	for _, b := range h.Bins {
		s.Values[(b[0]-first)/step] += float64(b[1])
	}
	return doc.Chart{ID: id, Title: title, Kind: "histogram", Unit: report.Count, XUnit: xUnit,
		XTitle: "Logarithmic bins", Series: []doc.Series{s}}
}

// cite finds, for each metric that a finding cites, the row that shows it, or else the section.
func (v *View) cite(l layout) {
	v.links, v.anchors = map[string]string{}, map[string]map[int]string{}
	for _, f := range v.Findings {
		for _, ref := range f.Evidence {
			v.links[report.MetricKey(ref.ID, ref.Labels)] = "#" + f.Doc
			for i := range v.Sections {
				if v.Sections[i].ID == f.Doc {
					v.citeRow(&v.Sections[i], ref, l)
				}
			}
		}
	}
}

// citeRow links a metric with labels to the first row that contains all of their values.
func (v *View) citeRow(s *report.Section, ref report.MetricRef, l layout) {
	if len(ref.Labels) == 0 {
		return
	}
	for i := range s.Tables {
		t := &s.Tables[i]
		for n := range min(t.Entries(), l.of(s, i, t)) {
			if !holds(t, n, ref.Labels) {
				continue
			}
			id := "row-" + t.ID + "-" + strconv.Itoa(n)
			if v.anchors[t.ID] == nil {
				v.anchors[t.ID] = map[int]string{}
			}
			v.anchors[t.ID][n] = id
			v.links[report.MetricKey(ref.ID, ref.Labels)] = "#" + id
			return
		}
	}
}

// holds reports whether a row contains the value of every label: text in any column, a number only in the label's own
// column, because any count could equal a device number.
func holds(t *report.Table, row int, labels report.Labels) bool {
	for label, want := range labels {
		found := false
		for i, c := range t.Rows[row] {
			if s, ok := c.Str(); ok && s == want {
				found = true
			} else if n, ok := c.Int(); ok && strconv.FormatInt(n, 10) == want && i < len(t.Columns) &&
				strings.HasPrefix(t.Columns[i].ID, label) {
				found = true
			}
		}
		if !found {
			return false
		}
	}
	return true
}
