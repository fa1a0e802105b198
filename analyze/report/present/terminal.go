package present

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// TerminalOptions are the options of [Terminal].
type TerminalOptions struct {
	Out   string   // folder that was written, as the user named it; empty: none
	Files []string // names of the main files in it
	More  int      // number of other files in it
}

// Bounds that keep the summary under 40 lines at 100 columns.
const (
	termRows     = 4 // of devices and of kernels
	termFindings = 3
	termText     = 125 // characters of a warning or an advice
)

// Terminal returns the summary that a command prints: under 40 lines.
func Terminal(r *report.Report, o TerminalOptions) doc.Document {
	v := NewView(r)
	analysed := windowOn(v)
	if v.EvidenceOnly() {
		analysed = doc.Spans(wording.Count(len(v.Evidence), "file")+" of evidence, no trace", engine(v))
	}
	var d doc.Document
	d.Add(doc.Heading{Level: 1, Spans: doc.Spans(doc.Name(r.Trace.Name))},
		doc.P(append(analysed, doc.Text(windowModes[r.Window.Mode]+" · "+r.Tool.Name+" "+r.Tool.Version).With(doc.Muted))))
	if r.Window.Length == 0 && !v.EvidenceOnly() {
		d.Add(doc.P(Prose(clip(r.Window.Why))))
	}
	answer, serving := stepAnswer(v), servingSteps(v)
	d.Add(firstWarning(v), doc.P(answer, doc.Text(freeHost(v))))
	d.Add(serving...)
	d.Add(firstFindings(v)...)
	facts := doc.Table{ID: "key", Columns: doc.Cols("", ">", "")}
	devices, kernels := deviceTable(v), topKernels(v)
	if len(answer) > 0 {
		d.Add(stepTable(v))
		if !measured(v) {
			d.Add(headOf(v, v.Table("unit", "unit_kernels"), nil, "Kernels of a step", "kernel_name", "exclusive", "share", "count"))
			kernels = doc.Table{}
		}
		if len(v.devices()) < 2 {
			devices = doc.Table{}
		}
		facts.Caption = doc.Spans("Whole capture")
		devices.Caption = doc.Spans("Whole capture: ", devices.Caption)
		kernels.Caption = doc.Spans("Whole capture: ", kernels.Caption)
	}
	for _, f := range factsOf(v) {
		if !f.tabled && len(f.detail) > 0 && (len(serving) == 0 || !f.now) {
			facts.Row(f.label, doc.Strong(f.value), f.detail)
		}
	}
	d.Add(devices, kernels, facts, termEnd(o))
	return d
}

// windowModes say how the window was chosen.
var windowModes = map[string]string{"capture": ", the whole capture", "range": ", window by --from/--to",
	"nvtx": ", window by --window", "steady": ", window by --steady", "host": ", no GPU work in the capture"}

// freeHost states how much shorter a step is at most if the host takes no time.
func freeHost(v *View) string {
	t := v.Table("critical_path", tableWhatIfs)
	for i := range t.Entries() {
		share, _ := t.Num(i, "share")
		if ns, ok := t.Num(i, "time"); ok && t.Str(i, "change") == "--host-free" && share >= namedShare {
			return " A free host saves at most " + unit.Format(ns, report.Nanoseconds) + " (" + unit.Percent(share) + ")."
		}
	}
	return ""
}

// stepTable shows where the time of the mean step went, as in the answer.
func stepTable(v *View) doc.Table {
	parts := v.stepParts()
	times := lists.Map(parts, func(p stepPart) float64 { return p.time })
	scale := unit.Common(report.Nanoseconds, times...)
	t := doc.Table{ID: "step", Columns: doc.Cols("Mean step"),
		Rows: [][]doc.Cell{{{doc.Text(scale.Symbol)}}, {{doc.Text("%")}}}}
	for _, p := range parts {
		title := map[string]string{"exposed communication": "comm.", "exposed copy": "copy", "idle: dependency": "idle: dep."}[p.name]
		t.Columns = append(t.Columns, doc.Column{Title: cmp.Or(title, p.name), Right: true})
		t.Rows[0] = append(t.Rows[0], doc.Cell{doc.Text(scale.Format(p.time))})
		t.Rows[1] = append(t.Rows[1], doc.Cell{doc.Text(unit.Common(report.Ratio, p.share).Format(p.share))})
	}
	return t
}

// deviceTable shows where the time of each device went; of many devices those that idle most.
func deviceTable(v *View) doc.Table {
	t := v.Table("gpu_time", "gpu_time")
	if warned(v, "no_kernels") {
		return doc.Table{}
	}
	rows, caption := lists.Indexes[int](t.Entries()), "GPU time"
	if n := len(rows); n > termRows {
		idle := func(i int) float64 { x, _ := t.Num(i, "idle_ratio"); return x }
		lists.Sort(rows, func(a, b int) int { return cmp.Compare(idle(b), idle(a)) })
		caption += ", the " + strconv.Itoa(termRows) + " of " + strconv.Itoa(n) + " that idle most"
	}
	return headOf(v, t, rows, caption, "device_id", "compute", "exposed_comm", "exposed_copy", "idle", "idle_ratio")
}

func topKernels(v *View) doc.Table {
	t := v.Table("kernels", "kernels")
	ids := []string{"kernel_name", "short", "total", "share", "count", "mean", "p99"}
	if measured(v) { // Nsight Compute's verdict replaces the spread
		ids = append(ids[:len(ids)-1], "bound", "dram_ratio", "sm_ratio")
	}
	text := "Top kernels"
	if m := v.value("kernel.total_time"); m != "" {
		text += " of " + m + " kernel time"
	}
	return headOf(v, t, nil, text, ids...)
}

// measured reports whether Nsight Compute states what limits the top kernels.
func measured(v *View) bool {
	t := v.Table("kernels", "kernels")
	return t != nil && t.Column("bound") >= 0
}

// headOf returns the first of some rows of a table, nil for all, with only the named columns.
func headOf(v *View, t *report.Table, rows []int, caption string, ids ...string) doc.Table {
	if t.Entries() == 0 {
		return doc.Table{}
	}
	if rows == nil {
		rows = lists.Indexes[int](t.Entries())
	}
	rows = rows[:min(len(rows), termRows)]
	head := report.Table{ID: t.ID, TotalRows: t.TotalRows, Rows: make([][]report.Cell, len(rows))}
	for _, id := range ids {
		i := t.Column(id)
		if i < 0 {
			continue
		}
		c := t.Columns[i]
		c.Wide = false
		head.Columns = append(head.Columns, c)
		for k, row := range rows {
			head.Rows[k] = append(head.Rows[k], at(t.Rows[row], i))
		}
	}
	out := layout{v: v, rows: termRows}.tableDoc(&head)
	out.Caption = doc.Spans(caption)
	return out
}

// stated is a finding in one sentence: its severity, its title, and in brackets its worth.
func stated(f *report.Finding, title string) []doc.Span {
	return doc.Spans(doc.Strong(severityWord(f.Severity)+":").With(severityTones[f.Severity]), " ", Prose(title), worth(f.Worth))
}

// worth states how much time a finding could save: of a step if there are units, else of the window.
func worth(w *report.Worth) string {
	switch {
	case w == nil:
		return ""
	case w.Frame != "" && w.Frame != report.OfWindow:
		return " (" + unit.Percent(w.Share()) + " of the " + w.Frame + ")"
	}
	n, of := float64(max(w.Units, 1)), " window"
	if w.Units > 0 && w.Frame != report.OfWindow {
		of = " step"
		if !w.Replayed {
			of += ", not replayed"
		}
	}
	return " (worth up to " + unit.Format(float64(w.Time)/n, report.Nanoseconds) + " of the " +
		unit.Format(float64(w.Of)/n, report.Nanoseconds) + of + ")"
}

// firstFindings lists the most severe findings with their id, the first one with its first advice. If one is
// shortened, the heading says where it is whole.
func firstFindings(v *View) []doc.Block {
	var l doc.List
	short := false
	for i, f := range v.Findings[:min(len(v.Findings), termFindings)] {
		short = short || clip(f.Title) != f.Title
		spans := doc.Spans(stated(&f, clip(f.Title)), doc.Text(" ["+f.ID+"]").With(doc.Muted))
		if i == 0 && len(f.Advice) > 0 {
			short = short || clip(f.Advice[0]) != f.Advice[0]
			spans = doc.Spans(spans, ". ", Prose(clip(f.Advice[0])))
		}
		l.Add(spans)
	}
	text := "Findings"
	if s := v.value("steady.window"); s != "" {
		text += " of the steady part, " + s
	}
	if n := len(v.Findings); n > termFindings {
		text += " (" + strconv.Itoa(termFindings) + " of " + strconv.Itoa(n) + "; explain doc ID says more)"
	}
	if short {
		text += "; in full with --out, in report.md"
	}
	return doc.Part(doc.H(2, "findings", text), l)
}

// firstWarning shows the weightiest warning, and the number of others.
func firstWarning(v *View) (f doc.Fields) {
	n := len(v.Warnings)
	if n == 0 {
		return f
	}
	spans := Prose(clip(v.byWeight()[0].Text))
	for i := range spans {
		spans[i].Tone = doc.Warn
	}
	if n > 1 {
		spans = append(spans, doc.Text(" (+"+strconv.Itoa(n-1)+" more)").With(doc.Muted))
	}
	f.Add("Warnings", spans)
	return f
}

// weighty are the warnings after which no number means what it says: what was put together is not of one run, or much
// of the capture is missing. The weightiest is first; those not listed keep their order after them.
var weighty = []string{"mixed_gpus", "log_other_run", "mixed_environment", "time_unit", "gpu_activity_missing",
	"cut_file", "hidden_graph_launches", "lost_kernels", "config_mismatch", "ncu_other_gpu"}

// byWeight returns the warnings of the report, the weightiest first.
func (v *View) byWeight() []report.Warning {
	list := slices.Clone(v.Warnings)
	lists.InOrder(list, weighty, func(w report.Warning) string { return w.Code })
	return list
}

func warned(v *View, code string) bool {
	return slices.ContainsFunc(v.Warnings, func(w report.Warning) bool { return w.Code == code })
}

func termEnd(o TerminalOptions) doc.Fields {
	var f doc.Fields
	if o.Out != "" {
		text := o.Out
		if len(o.Files) > 0 {
			text += ": " + strings.Join(o.Files, ", ")
		}
		if o.More > 0 {
			text += " and " + wording.Count(o.More, "other file")
		}
		f.Add("Wrote", text)
	}
	return f
}

// clip shortens a text: to whole sentences, else whole clauses, else whole words; it closes what it cuts: code, a
// bracket.
func clip(s string) string {
	if utf8.RuneCountInString(s) <= termText {
		return s
	}
	s = string([]rune(s)[:termText-2])
	if i := strings.LastIndex(s, ". "); i > termText/5 {
		return s[:i+1]
	}
	for _, end := range []string{": ", "; ", ", ", " "} {
		if i := strings.LastIndex(s, end); i > termText/2 || end == " " && i > 0 {
			s = s[:i]
			break
		}
	}
	s = strings.TrimRight(s, " ,;:.")
	if strings.Count(s, "`")%2 == 1 {
		s += "`"
	}
	if strings.Count(s, "(") > strings.Count(s, ")") {
		return s + " …)"
	}
	return s + " …"
}
