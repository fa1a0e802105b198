package present

import (
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// Full returns the whole report as a text: provenance, the answer, warnings, findings and key numbers, then the
// sections in their groups, the first of each open and the others folded. Last come the sections that have nothing to
// show, with their reasons, and how the numbers were computed.
func Full(r *report.Report) doc.Document {
	v := NewView(r)
	l := layout{rows: fullRows}
	var d doc.Document
	d.Add(doc.Heading{Level: 1, ID: "report", Spans: doc.Spans(v.kindOfReport()+": ", doc.Name(r.Trace.Name))})
	d.Add(v.provenance()...)
	d.Add(v.evidenceFiles()...)
	if answer := v.stepAnswer(); len(answer) > 0 {
		d.Add(doc.P(answer))
	}
	d.Add(v.servingSteps()...)
	d.Add(v.warnings()...)
	d.Add(v.findings()...)
	if t, ok := v.keyTable(); ok {
		d.Add(doc.H(2, "key", "Whole capture"), t)
	}
	d.Add(v.captured(l)...)
	if v.EvidenceOnly() {
		for i := range r.Sections {
			if s := &r.Sections[i]; !without(s) {
				d.Add(doc.H(2, s.ID, s.Title))
				d.Add(v.section(s, l)...)
			}
		}
	} else {
		d.Add(v.inParts(l)...)
	}
	d.Add(v.absent()...)
	d.Add(v.methods()...)
	return d
}

// captured returns the sections about the capture itself, folded.
func (v *View) captured(l layout) (list []doc.Block) {
	for i := range v.Sections {
		if s := &v.Sections[i]; s.Group == report.GroupCapture && !without(s) {
			list = append(list, v.folded(s, l))
		}
	}
	return list
}

// methods is the appendix of a text: how each section was computed, and which files hold all rows and columns.
func (v *View) methods() []doc.Block {
	list := []doc.Block{doc.H(2, "methods", "Method and limits")}
	for i := range v.Sections {
		if s := &v.Sections[i]; !without(s) {
			if how := v.method(s); len(how) > 0 {
				list = append(list, doc.Details{Summary: doc.Spans(s.Title), Blocks: how})
			}
		}
	}
	if len(list) == 1 {
		return nil
	}
	return list
}

// keyTable is the table of key numbers.
func (v *View) keyTable() (doc.Table, bool) {
	t := doc.Table{ID: "key", Columns: doc.Cols("Key number", ">Value", "Detail")}
	for _, f := range v.facts() {
		t.Row(f.label, doc.Strong(f.value), f.detail)
	}
	return t, len(t.Rows) > 0
}

// provenance describes what was analysed: where, how long and why this window, which unit of work, and which file from
// which program.
func (v *View) provenance() []doc.Block {
	var blocks []doc.Block
	if v.EvidenceOnly() {
		return []doc.Block{doc.P("No trace was given: this report is of the evidence alone. Made by " + v.Tool.Name + " " + v.Tool.Version + ".")}
	}
	spans := v.windowOn()
	if v.Window.Why != "" {
		spans = append(spans, doc.Text(" ("))
		spans = append(append(spans, Prose(v.Window.Why)...), doc.Text(")"))
	}
	spans = append(spans, doc.Text(". "))
	if v.Unit.Kind != "" && v.Unit.Kind != "none" && len(v.Unit.Groups) > 0 {
		spans = append(spans, doc.Text("Step (unit of work): "))
		spans = append(spans, v.group(v.mainGroup())...)
		how := map[string]string{"nvtx": "from step markers", "graph": "from CUDA graph launches",
			"kernel": "from the kernel sequence"}[v.Unit.Kind]
		if how != "" {
			spans = append(spans, doc.Text(", "+how))
		}
		if v.Unit.Kind == "nvtx" && v.Unit.Name != "" {
			spans = append(spans, doc.Text(" "), v.name(v.Unit.Name))
		}
		spans = append(spans, doc.Text(". "))
	}
	spans = append(spans, v.madeBy()...)
	if o := v.Capture.Overhead; o != nil {
		spans = append(spans, doc.Text(" "+OverheadText(o)))
	}
	blocks = append(blocks, doc.P(spans))
	return blocks
}

// windowOn formats "Window of 1 s on 2 × NVIDIA H100 80GB HBM3".
func (v *View) windowOn() []doc.Span {
	spans := doc.Spans("Nothing was analysed")
	if v.Window.Length > 0 {
		spans = doc.Spans("Window of ", doc.Strong(unit.Format(float64(v.Window.Length), report.Nanoseconds)))
	}
	var names []string
	count := map[string]int64{}
	for _, g := range v.Environment.GPUs {
		name := ""
		if g.Name != nil {
			name = *g.Name
		}
		if count[name] == 0 {
			names = append(names, name)
		}
		count[name]++
	}
	for i, n := range names {
		sep := " on "
		if i > 0 {
			sep = " and "
		}
		if n == "" {
			spans = append(spans, doc.Text(sep+wording.Count(count[n], "GPU")))
			continue
		}
		spans = append(spans, doc.Text(sep+unit.Int(count[n])+" × "), doc.Name(n))
	}
	return append(spans, v.engine()...)
}

// engine names the serving engine and the packages, with their versions if known.
func (v *View) engine() []doc.Span {
	if s := v.Environment.Software(); s != "" {
		return doc.Spans(", ", doc.Name(s))
	}
	return nil
}

// madeBy names the program, the trace file, and the versions of what wrote it.
func (v *View) madeBy() []doc.Span {
	var spans []doc.Span
	add := func(text string, name *string) {
		if name != nil && *name != "" {
			spans = append(spans, doc.Text(text), v.word(*name))
		}
	}
	size := unit.Format(float64(v.Trace.Bytes), report.Bytes)
	spans = append(spans, doc.Text("Made by "+v.Tool.Name+" "+v.Tool.Version+" from a "+size+" "+v.Trace.Kind+" file"))
	add(", exported by nsys ", v.Trace.ExporterVersion)
	add(", schema ", v.Trace.SchemaVersion)
	if e := v.Environment; e.CaptureVersion != nil && (e.ExporterVersion == nil ||
		*e.ExporterVersion != *e.CaptureVersion) {
		add(", captured by nsys ", e.CaptureVersion)
	}
	add(", driver ", v.Environment.Driver)
	add(", CUDA ", v.Environment.CUDA)
	add(", graphs traced per ", v.Environment.GraphTrace)
	for _, m := range v.Trace.Maps {
		spans = append(spans, doc.Text(", with the "+m.Kind+" map "), v.word(m.Name))
	}
	return append(spans, doc.Text("."))
}

func (v *View) warnings() []doc.Block {
	if len(v.Warnings) == 0 {
		return nil
	}
	var l doc.List
	for _, w := range v.Warnings {
		item := doc.Item{Spans: Prose(w.Text)}
		if where := v.sectionTitle(w.Section); where != "" {
			item.Spans = doc.Spans(doc.Strong(where+":"), " ", item.Spans)
		}
		l.Items = append(l.Items, item)
	}
	return []doc.Block{doc.H(2, "warnings", "Warnings"), l}
}

func (v *View) sectionTitle(id string) string {
	for i := range v.Sections {
		if v.Sections[i].ID == id {
			return v.Sections[i].Title
		}
	}
	return id
}

// severityTone colours a severity, for renderers with colours.
func severityTone(s report.Severity) doc.Tone {
	switch s {
	case report.High:
		return doc.Bad
	case report.Medium:
		return doc.Warn
	}
	return doc.Plain
}

func severityWord(s report.Severity) string {
	return strings.ToUpper(string(s[:min(1, len(s))])) + string(s[min(1, len(s)):])
}

// findings lists the findings with the metrics behind them, then those whose worth is unknown.
func (v *View) findings() []doc.Block {
	blocks := []doc.Block{doc.H(2, "findings", "Findings")}
	l := doc.List{Ordered: true}
	for _, f := range v.Findings {
		item := doc.Item{Spans: doc.Spans(doc.Strong(severityWord(f.Severity)+":").With(severityTone(f.Severity)), " ",
			Prose(f.Title))}
		if w := worth(f.Worth); w != "" {
			item.Spans = append(item.Spans, doc.Text(" ("+w+")"))
		}
		l.Items = append(l.Items, v.grounds(item, f.ID, f.Evidence, f.Advice))
	}
	if len(l.Items) > 0 {
		blocks = append(blocks, l)
	} else {
		blocks = append(blocks, doc.P("No rule found anything to report that is worth 1 % of the time or more."))
	}
	var remarks doc.List
	for _, r := range v.Remarks {
		remarks.Items = append(remarks.Items, v.grounds(doc.Item{Spans: Prose(r.Title)}, r.ID, r.Evidence, r.Advice))
	}
	if len(remarks.Items) > 0 {
		blocks = append(blocks, doc.Details{Summary: doc.Spans(wording.Count(len(remarks.Items),
			"remark") + ": worth less than 1 %, part of a finding, or of no worth that is known"),
			Blocks: []doc.Block{remarks}})
	}
	return blocks
}

// grounds adds the evidence and the advice of a finding or a remark.
func (v *View) grounds(item doc.Item, id string, evidence []report.MetricRef, advice []string) doc.Item {
	item.Spans = append(item.Spans, doc.Text(" "), doc.Code(id))
	sub := doc.List{}
	if e := v.evidence(evidence); len(e) > 0 {
		sub.Add(doc.Spans("Evidence: ", e))
	}
	for _, a := range advice {
		sub.Add(Prose(a))
	}
	if len(sub.Items) > 0 {
		item.Blocks = append(item.Blocks, sub)
	}
	return item
}

// evidence writes metric references with their values; references with the same labels name them once.
func (v *View) evidence(refs []report.MetricRef) []doc.Span {
	var spans []doc.Span
	for i, ref := range refs {
		m := v.index.Metric(ref.ID, ref.Labels)
		if m == nil {
			continue
		}
		if len(spans) > 0 {
			spans = append(spans, doc.Text(", "))
		}
		value := ValueOf(m)
		if value == "" {
			value = "unknown"
		}
		id := doc.Code(ref.ID)
		if dest := v.links[report.MetricKey(ref.ID, ref.Labels)]; dest != "" {
			id = doc.Link(ref.ID, dest)
		}
		spans = append(spans, id, doc.Text(" "+value))
		if last := i == len(refs)-1 || refs[i+1].Labels.String() != ref.Labels.String(); last && len(ref.Labels) > 0 {
			spans = append(append(append(spans, doc.Text(" (")), v.labels(ref.Labels)...), doc.Text(")"))
		}
	}
	return spans
}

// labels writes labels as "cause host, device 0".
func (v *View) labels(l report.Labels) []doc.Span {
	var spans []doc.Span
	for i, k := range sortedKeys(l) {
		if i > 0 {
			spans = append(spans, doc.Text(", "))
		}
		switch {
		case k == "device":
			spans = append(spans, doc.Text("GPU "), v.word(l[k]))
		case k == "kernel" || k == "range" || k == "api":
			spans = append(spans, v.name(l[k]))
		default:
			spans = append(spans, doc.Text(k+" "), v.word(l[k]))
		}
	}
	return spans
}

// without reports whether a section has nothing to show.
func without(s *report.Section) bool {
	return s.Status == report.Unavailable || s.Status == report.NotApplicable
}

// absent names the sections that have nothing to show, grouped by reason.
func (v *View) absent() []doc.Block {
	var reasons []string
	titles := map[string][]string{}
	for i := range v.Sections {
		if s := &v.Sections[i]; without(s) {
			if titles[s.Reason] == nil {
				reasons = append(reasons, s.Reason)
			}
			titles[s.Reason] = append(titles[s.Reason], s.Title)
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	var l doc.List
	for _, r := range reasons {
		l.Add(doc.Spans(doc.Strong(strings.Join(titles[r], ", ")+":"), " ", Prose(r)))
	}
	return []doc.Block{doc.H(2, "absent", "Sections without data"),
		doc.Details{Summary: doc.Spans(wording.Count(len(reasons), "reason")), Blocks: []doc.Block{l}}}
}

// secondary lists, by section, the tables that the page folds: those that repeat other sections by process or by
// device, and those that the page's first lines sum up.
var secondary = map[string]map[string]bool{
	"overview":  {"capture": true, "window": true, "tables": true},
	"kernels":   {"kernels_per_device": true},
	"processes": {"processes_kernels": true, "kernels_by_pid": true, "sync_by_pid": true, "nvtx_by_pid": true},
	"phases":    {"phases_by_pid": true},
	"launches":  {"launches_by_pid": true, "tiny_kernels": true, "cuda_api": true},
	"activity":  {"activity": true},
	"unit":      {"unit_api": true, "units": true},
	"regions":   {"regions": true, "region_kernels": true},
}

// section returns one section of the page, without its title.
func (v *View) section(s *report.Section, l layout) []doc.Block {
	var blocks []doc.Block
	switch s.Status {
	case report.Partial:
		blocks = append(blocks, doc.Note{Kind: doc.Caution, Blocks: []doc.Block{doc.P("Partial: ", Prose(s.Reason))}})
	case report.Error:
		blocks = append(blocks, doc.Note{Kind: doc.Danger,
			Blocks: []doc.Block{doc.P("This section failed: ", Prose(s.Reason))}})
	}
	blocks = append(blocks, coverage(s)...)
	if s.ID == "unit" && l.wide {
		blocks = append(blocks, v.unitDots()...)
		if v.Table("ranks", "ranks") != nil {
			blocks = append(blocks, v.stepBar()...)
		}
	}
	dots := len(blocks) > 0 && s.ID == "unit" && l.wide
	for _, c := range s.Charts {
		if dots && c.ID == "unit_time" {
			continue // the dots show those units
		}
		chart := doc.Chart{ID: c.ID, Title: c.Title, Kind: c.Kind, Unit: c.Unit, XUnit: c.XUnit, XTitle: c.XTitle}
		for _, e := range c.Series {
			chart.Series = append(chart.Series, doc.Series{Name: e.Name, Style: e.Style, Labels: e.Labels,
				Values: e.Values, Category: e.Category})
		}
		if c.ID == "roofline" {
			v.underRoof(&chart)
		}
		blocks = append(blocks, chart)
	}
	blocks = append(blocks, v.durations(s, l)...)
	blocks = append(blocks, v.stepFigures(s)...)
	var empty []string
	var fold []doc.Block
	var foldTitles []string
	for i := range s.Tables {
		t := &s.Tables[i]
		if l.wide && t.ID == tableWhatIfs && v.Unit.Steps != nil || t.ID == "idle_causes" { // gpu_time has its columns too
			continue
		}
		if len(t.Rows) == 0 {
			empty = append(empty, t.Title)
			continue
		}
		l := l
		l.rows = l.of(s, i, t)
		table := v.tableDoc(t, l)
		if secondary[s.ID][t.ID] || t.ID == "unit_groups" && l.wide && len(v.servingSteps()) > 0 { // the first screen shows the kinds
			table.Caption = doc.Spans(t.Title)
			fold, foldTitles = append(fold, table), append(foldTitles, t.Title)
			if more, ok := moreRows(t, l); ok {
				fold = append(fold, more)
			}
			continue
		}
		if len(s.Tables) > 1 || t.Title != s.Title {
			table.Caption = doc.Spans(t.Title)
		}
		blocks = append(blocks, table)
		if more, ok := moreRows(t, l); ok {
			blocks = append(blocks, more)
		}
		if s.ID == "kernels" && t.ID == "kernels" && v.numbered {
			blocks = append(blocks, doc.P("Names are shortened; kernels whose short names are equal are numbered. Full names: ", doc.Code(tableFiles+t.File), "."))
		}
	}
	if len(empty) > 0 {
		blocks = append(blocks, doc.P("No rows: "+strings.Join(empty, ", ")+"."))
	}
	if len(fold) > 0 {
		if len(foldTitles) == 1 {
			first := fold[0].(doc.Table)
			first.Caption, fold[0] = nil, first
		}
		blocks = append(blocks, doc.Details{Summary: doc.Spans(strings.Join(foldTitles, ", ")), Blocks: fold})
	}
	if how := v.method(s); len(how) > 0 && l.wide { // else it is in the appendix
		blocks = append(blocks, doc.Details{Summary: doc.Spans("Method and limits"), Blocks: how})
	}
	return blocks
}

// of is how many rows of the i-th table of a section are shown: all if only a few would be left out, because a file for
// those would be a nuisance.
func (l layout) of(s *report.Section, i int, t *report.Table) int {
	rows := l.rows
	if s.ID != "kernels" || i > 0 {
		rows = (rows + 2) / 3
	}
	if n := t.Entries(); n <= rows+5 {
		return max(n, 1)
	}
	return rows
}

// coverage states what share of the data a section covers, unless it is all, in the words of the defining note.
func coverage(s *report.Section) []doc.Block {
	if s.Coverage == nil || *s.Coverage == 1 {
		return nil
	}
	spans := doc.Spans("Coverage: " + unit.Percent(*s.Coverage))
	for _, n := range s.Notes {
		if what, ok := strings.CutPrefix(n, "Coverage is "); ok {
			return []doc.Block{doc.P(append(append(spans, doc.Text(", ")), Prose(what)...))}
		}
	}
	return []doc.Block{doc.P(append(spans, doc.Text(".")))}
}

// method describes how a section was computed: definitions and limits, its derivation, and the files that hold its
// tables.
func (v *View) method(s *report.Section) []doc.Block {
	var blocks []doc.Block
	if s.Derivation != "" {
		blocks = append(blocks, doc.P(Prose(s.Derivation)))
	}
	var notes doc.List
	for _, n := range s.Notes {
		notes.Add(Prose(n))
	}
	if len(notes.Items) > 0 {
		blocks = append(blocks, notes)
	}
	var files []doc.Span
	for _, t := range s.Tables {
		if t.File == "" {
			continue
		}
		if len(files) > 0 {
			files = append(files, doc.Text(", "))
		}
		files = append(files, doc.Code(tableFiles+t.File))
	}
	if len(files) > 0 {
		blocks = append(blocks, doc.P("All columns: ", files))
	}
	return blocks
}
