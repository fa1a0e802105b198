package present

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// Full returns the whole report as a text: as [Page], with fewer rows and columns. It begins with what was analysed, and
// warnings come before findings.
func Full(r *report.Report, stepFile string) doc.Document {
	return layout{v: NewView(r), rows: fullRows}.document(stepFile)
}

// shows reports whether a section has something to show.
func shows(s report.Section) bool {
	return s.Status != report.Unavailable && s.Status != report.NotApplicable
}

// provenance describes what was analysed: where, how long and why this window, which unit of work, and which file from
// which program.
func provenance(v *View) []doc.Block {
	if v.EvidenceOnly() {
		return []doc.Block{doc.P("No trace was given: this report is of the evidence alone. Made by " + v.Tool.Name + " " + v.Tool.Version + ".")}
	}
	spans := windowOn(v)
	if v.Window.Why != "" {
		spans = doc.Spans(spans, " (", Prose(v.Window.Why), ")")
	}
	spans = append(spans, doc.Text(". "))
	if v.Unit.Kind != "" && v.Unit.Kind != "none" && len(v.Unit.Groups) > 0 {
		spans = doc.Spans(spans, "Step (unit of work): ", groupText(v, v.mainGroup()))
		how := map[string]string{"nvtx": "from step markers", "graph": "from CUDA graph launches",
			"kernel": "from the kernel sequence"}[v.Unit.Kind]
		if how != "" {
			spans = append(spans, doc.Text(", "+how))
		}
		if v.Unit.Kind == "nvtx" && v.Unit.Name != "" {
			spans = append(spans, doc.Text(" "), v.names.span(v.Unit.Name))
		}
		spans = append(spans, doc.Text(". "))
	}
	spans = append(spans, madeBy(v)...)
	if o := v.Capture.Overhead; o != nil {
		spans = append(spans, doc.Text(" "+OverheadText(o)))
	}
	return []doc.Block{doc.P(spans)}
}

// OverheadText states in a sentence how much time profiling cost.
func OverheadText(o *report.Overhead) string {
	what := map[string]string{"request": "A request", "client": "The load"}[o.Of]
	how := "longer"
	ratio := o.Ratio
	if ratio < 0 {
		how, ratio = "shorter", -ratio
	}
	text := what + " took " + unit.Percent(ratio) + " " + how + " under the profiler: " +
		unit.Format(o.Profiled, report.Nanoseconds) + " against " + unit.Format(o.Plain, report.Nanoseconds) + " without it"
	if o.Low == nil || o.High == nil {
		return text + " (one run of each: no interval)."
	}
	return text + " (95 % interval " + unit.Percent(*o.Low) + " to " + unit.Percent(*o.High) + ", " +
		unit.Int(o.ProfiledN) + " and " + unit.Int(o.PlainN) + " observations)."
}

// windowOn formats "Window of 1 s on 2 × NVIDIA H100 80GB HBM3".
func windowOn(v *View) []doc.Span {
	spans := doc.Spans("Nothing was analysed")
	if v.Window.Length > 0 {
		spans = doc.Spans("Window of ", doc.Strong(unit.Format(float64(v.Window.Length), report.Nanoseconds)))
	}
	name := func(g report.GPU) string { return report.ValueOr(g.Name, "") }
	if alike := lists.Groups(v.Environment.GPUs, name); len(alike) > 0 {
		spans = doc.Spans(spans, " on ", doc.Joined(" and ", alike, func(same []report.GPU) any {
			if name(same[0]) == "" {
				return wording.Count(len(same), "GPU")
			}
			return doc.Spans(unit.Int(len(same))+" × ", doc.Name(name(same[0])))
		}))
	}
	return append(spans, engine(v)...)
}

// engine names the serving engine and the packages, with their versions if known.
func engine(v *View) []doc.Span {
	if s := v.Environment.Software(); s != "" {
		return doc.Spans(", ", doc.Name(s))
	}
	return nil
}

// madeBy names the program and the trace file, and the maps that it was read with.
func madeBy(v *View) []doc.Span {
	size := unit.Format(float64(v.Trace.Bytes), report.Bytes)
	spans := doc.Spans("Made by " + v.Tool.Name + " " + v.Tool.Version + " from a " + size + " " + v.Trace.Kind + " file")
	for _, m := range v.Trace.Maps {
		spans = append(spans, doc.Text(", with the "+m.Kind+" map "), v.names.word(m.Name))
	}
	return append(spans, doc.Text("."))
}

func warnings(v *View) (l doc.List) {
	for _, w := range v.byWeight() {
		spans := Prose(w.Text)
		where := w.Section
		if s := lists.Find(v.Sections, func(s *report.Section) bool { return s.ID == where }); s != nil {
			where = s.Title
		}
		if where != "" {
			spans = doc.Spans(doc.Strong(where+":"), " ", spans)
		}
		l.Add(spans)
	}
	return l
}

// severityTones colour severities, for renderers with colours.
var severityTones = map[report.Severity]doc.Tone{report.High: doc.Bad, report.Medium: doc.Warn}

func severityWord(s report.Severity) string {
	return strings.ToUpper(string(s[:min(1, len(s))])) + string(s[min(1, len(s)):])
}

// findings lists the findings with the metrics behind them, then those whose worth is unknown.
func (l layout) findings() []doc.Block {
	list := doc.List{Ordered: true, Items: lists.Map(l.v.Findings, func(f report.Finding) doc.Item {
		return l.grounds(stated(&f, f.Title), f.ID, f.Evidence, f.Advice)
	})}
	remarks := doc.List{Items: lists.Map(l.v.Remarks, func(r report.Remark) doc.Item {
		return l.grounds(Prose(r.Title), r.ID, r.Evidence, r.Advice)
	})}
	none := doc.Paragraph{}
	if len(list.Items) == 0 {
		none = doc.P("No rule found anything to report that is worth 1 % of the time or more.")
	}
	return []doc.Block{list, none, doc.Fold("", wording.Count(len(remarks.Items), "remark")+
		": worth less than 1 %, part of a finding, or of unknown worth", remarks)}
}

// grounds is a finding or a remark with its evidence and advice.
func (l layout) grounds(spans []doc.Span, id string, evidence []report.MetricRef, advice []string) doc.Item {
	item, sub := doc.Item{Spans: doc.Spans(spans, " ", doc.Code(id))}, doc.List{}
	if e := l.evidence(evidence); len(e) > 0 {
		sub.Add("Evidence: ", e)
	}
	for _, a := range advice {
		sub.Add(Prose(a))
	}
	item.Blocks = doc.Some(sub)
	return item
}

// evidence writes metric references with their values; references with the same labels name them once.
func (l layout) evidence(refs []report.MetricRef) []doc.Span {
	var spans []doc.Span
	for i, ref := range refs {
		m := l.v.index.Metric(ref.ID, ref.Labels)
		if m == nil {
			continue
		}
		if len(spans) > 0 {
			spans = append(spans, doc.Text(", "))
		}
		id := doc.Code(ref.ID)
		if dest := l.links[report.MetricKey(ref.ID, ref.Labels)]; dest != "" {
			id = doc.Link(ref.ID, dest)
		}
		value := cmp.Or(ValueOf(m), "unknown")
		if s := m.Summary; s != nil && m.Scale == report.PerUnit { // worth and shares are of means
			value = "mean " + unit.Format(s.Mean, unitOf(m))
		}
		spans = append(spans, id, doc.Text(" "+value))
		if last := i == len(refs)-1 || refs[i+1].Labels.String() != ref.Labels.String(); last && len(ref.Labels) > 0 {
			spans = doc.Spans(spans, " (", l.v.names.labels(ref.Labels), ")")
		}
	}
	return spans
}

// labels writes labels as "cause host, device 0".
func (n *names) labels(l report.Labels) []doc.Span {
	return doc.Joined(", ", slices.Sorted(maps.Keys(l)), func(k string) any {
		switch k {
		case "device":
			return doc.Spans("GPU ", n.word(l[k]))
		case "kernel", "range", "api":
			return n.span(l[k])
		}
		return doc.Spans(k+" ", n.word(l[k]))
	})
}

// absent names the sections that have nothing to show, grouped by reason.
func absent(v *View) (l doc.List) {
	missing := lists.Filter(v.Sections, func(s report.Section) bool { return !shows(s) })
	for _, same := range lists.Groups(missing, func(s report.Section) string { return s.Reason }) {
		titles := lists.Map(same, func(s report.Section) string { return s.Title })
		l.Add(doc.Strong(strings.Join(titles, ", ")+":"), " ", Prose(same[0].Reason))
	}
	return l
}

// secondary lists, by section, the tables that the page folds: those that repeat other sections by process or by
// device, and those that the page's first lines sum up.
var secondary = map[string][]string{
	"overview":  {"capture", "window", "tables"},
	"kernels":   {"kernels_per_device"},
	"processes": {"processes_kernels", "kernels_by_pid", "sync_by_pid", "nvtx_by_pid"},
	"phases":    {"phases_by_pid"},
	"launches":  {"launches_by_pid", "tiny_kernels", "cuda_api"},
	"activity":  {"activity"},
	"unit":      {"unit_api", "units"},
	"regions":   {"regions", "region_kernels"},
}

// section returns one section of the page, without its title.
func (l layout) section(s report.Section) []doc.Block {
	var blocks []doc.Block
	switch s.Status {
	case report.Partial:
		blocks = append(blocks, doc.Note{Kind: doc.Caution, Blocks: []doc.Block{doc.P("Partial: ", Prose(s.Reason))}})
	case report.Error:
		blocks = append(blocks, doc.Note{Kind: doc.Danger, Blocks: []doc.Block{doc.P("This section failed: ", Prose(s.Reason))}})
	}
	blocks = append(append(blocks, coverage(s)), l.charts(s)...)
	var empty, foldTitles []string
	var fold []doc.Block
	for i := range s.Tables {
		t := &s.Tables[i]
		if t.ID == tableWhatIfs && l.v.Unit.Steps != nil || t.ID == "idle_causes" { // gpu_time has its columns too
			continue
		}
		if len(t.Rows) == 0 {
			empty = append(empty, t.Title)
			continue
		}
		part := l
		part.rows = l.of(s, i, t)
		table := part.tableDoc(t)
		if slices.Contains(secondary[s.ID], t.ID) || t.ID == "unit_groups" && len(servingSteps(l.v)) > 0 { // the first screen shows the kinds
			table.Caption = doc.Spans(t.Title)
			fold, foldTitles = append(fold, table, part.moreRows(t)), append(foldTitles, t.Title)
			continue
		}
		if len(s.Tables) > 1 || t.Title != s.Title {
			table.Caption = doc.Spans(t.Title)
		}
		blocks = append(blocks, table, part.moreRows(t))
		if s.ID == "kernels" && t.ID == "kernels" && l.v.names.numbered {
			blocks = append(blocks, doc.P("Names are shortened; kernels whose short names are equal are numbered. Full names: ", doc.Code(tableFiles+t.File), "."))
		}
	}
	if len(empty) > 0 {
		blocks = append(blocks, doc.P("No rows: "+strings.Join(empty, ", ")+"."))
	}
	if len(foldTitles) == 1 {
		first := fold[0].(doc.Table)
		first.Caption, fold[0] = nil, first
	}
	blocks = append(blocks, doc.Fold("", strings.Join(foldTitles, ", "), fold...),
		doc.Fold("", "Method and limits", method(s)...))
	return doc.Some(blocks...)
}

// charts returns the drawings of a section. Text formats leave them out.
func (l layout) charts(s report.Section) (list []doc.Block) {
	dots := false
	if s.ID == "unit" && l.wide {
		list = unitDots(l.v)
		if l.v.Table("ranks", "ranks") != nil {
			list = append(list, stepBar(l.v))
		}
		dots = len(list) > 0
	}
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
			underRoof(l.v, &chart)
		}
		list = append(list, chart)
	}
	switch s.ID {
	case "kernels":
		list = append(list, durations(l.v))
	case "unit_positions":
		list = append(list, stepFigures(l.v)...)
	}
	return list
}

// of is how many rows of the i-th table of a section are shown: all if only a few would be left out, because a file for
// those would be a nuisance.
func (l layout) of(s report.Section, i int, t *report.Table) int {
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
func coverage(s report.Section) doc.Paragraph {
	if s.Coverage == nil || *s.Coverage == 1 {
		return doc.Paragraph{}
	}
	text := "Coverage: " + unit.Percent(*s.Coverage)
	for _, n := range s.Notes {
		if what, ok := strings.CutPrefix(n, "Coverage is "); ok {
			return doc.P(text+", ", Prose(what))
		}
	}
	return doc.P(text + ".")
}

// method describes how a section was computed: definitions and limits, its derivation, and the files that hold its
// tables.
func method(s report.Section) []doc.Block {
	var notes doc.List
	for _, n := range s.Notes {
		notes.Add(Prose(n))
	}
	files := lists.Filter(s.Tables, func(t report.Table) bool { return t.File != "" })
	all := doc.Paragraph{}
	if len(files) > 0 {
		all = doc.P("All columns: ", doc.Joined(", ", files, func(t report.Table) any { return doc.Code(tableFiles + t.File) }))
	}
	return doc.Some(doc.P(Prose(s.Derivation)), notes, all)
}
