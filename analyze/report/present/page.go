package present

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// pageRows bounds the rows of a table on the page.
const pageRows = 200

// Page returns the report for a browser: the answer first, then findings and warnings, then every section, in groups,
// with its charts and with more rows and columns than the text formats have room for. Findings link to the rows behind
// them. stepFile is the path, relative to the page, of the shown units for Perfetto; empty: there is none.
func Page(r *report.Report, stepFile string) doc.Document {
	l := layout{v: NewView(r), rows: pageRows, wide: true, links: map[string]string{}, anchors: map[string]bool{}}
	l.cite()
	return l.document(stepFile)
}

// document lays out a report: the answer, findings and warnings, every section, and the whole capture.
func (l layout) document(stepFile string) (d doc.Document) {
	v := l.v
	kind := "Nsight Systems report: "
	if v.EvidenceOnly() {
		kind = "Evidence report: "
	}
	d.Add(doc.Heading{Level: 1, ID: "report", Spans: doc.Spans(kind, doc.Name(v.Trace.Name))})
	if !l.wide {
		d.Add(provenance(v)...)
	}
	d.Add(doc.Answer{Spans: answer(v)})
	d.Add(servingSteps(v)...)
	if figures := rankFigures(v); len(figures) > 0 {
		d.Add(figures...)
	} else {
		d.Add(stepBar(v), medianStep(v))
	}
	if l.wide {
		d.Add(topFindings(v)...)
	} else {
		d.Add(doc.Part(doc.H(2, "warnings", "Warnings"), warnings(v))...)
	}
	d.Add(doc.H(2, "findings", "Findings").In(groupAnswer))
	d.Add(l.findings()...)
	d.Add(whatIfs(v, stepFile)...)
	if l.wide {
		d.Add(doc.Fold("warnings", wording.Count(len(v.Warnings), "warning"), warnings(v)))
	}
	d.Add(l.inParts()...)
	d.Add(l.wholeCapture()...)
	return d
}

// whatIfs lists the changes from which a step would gain most, each as the flag of the command that replays it, and
// links to the step's single calls.
func whatIfs(v *View, stepFile string) []doc.Block {
	if steps := v.Unit.Steps; steps == nil || len(steps.List) == 0 {
		return nil
	}
	ceilings := v.Table("critical_path", tableWhatIfs)
	t := doc.Table{ID: tableWhatIfs, Columns: doc.Cols(">A step saves", "With")}
	for i := range ceilings.Entries() {
		ns, _ := ceilings.Num(i, "time")
		share, _ := ceilings.Num(i, "share")
		t.Row(doc.Strong("≤ "+unit.Format(ns, report.Nanoseconds)+", "+unit.Percent(share)),
			doc.Name(quoted(ceilings.Str(i, "change"))))
	}
	calls, command := doc.P("The step in ui.perfetto.dev:"), "explain report.json --perfetto step.json"
	if stepFile != "" {
		calls = doc.P("The median and the slowest step, call by call, for ui.perfetto.dev: ", doc.Link(stepFile, stepFile))
		command = ""
	}
	return []doc.Block{doc.H(2, "whatif", "What if").In(groupAnswer), t, doc.Command{Text: "explain whatif TRACE"}, calls,
		doc.Command{Text: command}}
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

// wholeCapture describes the whole capture: its key numbers, its origin, and the sections that have nothing to show.
func (l layout) wholeCapture() []doc.Block {
	list := []doc.Block{doc.H(2, "capture", "Whole capture").In(groupEvidence)}
	if l.wide {
		list = append(list, provenance(l.v)...)
	}
	var facts, more doc.Fields
	for i, f := range factsOf(l.v) {
		of := &facts
		if i >= listedFacts {
			of = &more
		}
		of.Add(f.label, doc.Strong(f.value), " ", f.detail)
	}
	list = append(list, facts, doc.Fold("more-facts", wording.Count(len(more.Items), "more key number"), more))
	capture := lists.Filter(l.v.Sections, func(s report.Section) bool { return shows(s) && s.Group == report.GroupCapture })
	list = append(list, l.folded(capture)...)
	return append(list, doc.Fold("evidence", "Evidence: "+wording.Count(len(l.v.Evidence), "file"), evidenceFiles(l.v)),
		doc.Fold("absent", "Sections without data", absent(l.v)))
}

// drawnHistograms bounds the histograms of a section.
const drawnHistograms = 6

// durations draws the distributions of the kernels with the most time, from the histograms of their metrics. Text
// formats leave charts out.
func durations(v *View) doc.Details {
	t := v.Table("kernels", "kernels")
	var charts []doc.Block
	for i := range min(t.Entries(), drawnHistograms) {
		name := t.Str(i, "kernel_name")
		if m := v.Metric("kernel.total_time", "kernel", name); m != nil && m.Histogram != nil && len(m.Histogram.Bins) > 1 {
			charts = append(charts, histogramChart("duration-"+strconv.Itoa(i), "Duration of "+v.names.span(name).Text, m.Histogram))
		}
	}
	return doc.Fold("", "Distributions of the kernels with most time", charts...)
}

// histogramBins is the number of columns of a drawn histogram.
const histogramBins = 60

// histogramChart draws a sparse histogram with log-spaced bins as fewer columns of equal ratio, each the sum of some
// bins.
func histogramChart(id, title string, h *report.Histogram) doc.Chart {
	first, last := h.Bins[0][0], h.Bins[len(h.Bins)-1][0]
	step := max(1, (last-first+histogramBins)/histogramBins)
	s := doc.Series{Name: "count"}
	for bin := first; bin <= last; bin += step {
		s.Add(strconv.FormatFloat(math.Pow(h.Growth, float64(bin)), 'g', 5, 64), 0)
	}
	for _, b := range h.Bins {
		s.Values[(b[0]-first)/step] += float64(b[1])
	}
	return doc.Chart{ID: id, Title: title, Kind: "histogram", Unit: report.Count, XUnit: report.Nanoseconds,
		XTitle: "Logarithmic bins", Series: []doc.Series{s}}
}

// cite finds, for each metric that a finding cites, the row that shows it, or else the section.
func (l layout) cite() {
	for _, f := range l.v.Findings {
		for _, ref := range f.Evidence {
			key := report.MetricKey(ref.ID, ref.Labels)
			l.links[key] = "#" + f.Doc
			s := lists.Find(l.v.Sections, func(s *report.Section) bool { return s.ID == f.Doc })
			if s != nil && len(ref.Labels) > 0 {
				l.links[key] = cmp.Or(l.rowOf(*s, ref.Labels), l.links[key])
			}
		}
	}
}

// rowOf links to the first row of a section that contains the values of all labels; empty if none does.
func (l layout) rowOf(s report.Section, labels report.Labels) string {
	for i, t := range s.Tables {
		for n := range min(t.Entries(), l.of(s, i, &t)) {
			if holds(&t, n, labels) {
				id := rowID(t.ID, n)
				l.anchors[id] = true
				return "#" + id
			}
		}
	}
	return ""
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
