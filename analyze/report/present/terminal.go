package present

import (
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// TerminalOptions are the choices of [Terminal].
type TerminalOptions struct {
	Out   string   // folder that was written, as the user named it; empty if none was
	Files []string // names of the main files in it
	More  int      // how many other files are in it
}

// Bounds that keep the summary under 40 lines at 100 columns.
const (
	termDevices  = 4
	termKernels  = 5
	termFindings = 3
	termText     = 175 // characters of a warning or an advice
)

// Terminal is the summary that a command prints: under 40 lines.
func Terminal(r *report.Report, o TerminalOptions) doc.Document {
	v := NewView(r)
	var d doc.Document
	d.Add(
		doc.Heading{Level: 1, Spans: doc.Spans(doc.Name(r.Trace.Name))},
		doc.P(append(v.analysed(), doc.Text(windowMode(r.Window)+" · "+r.Tool.Name+" "+r.Tool.Version).With(doc.Muted))...),
	)
	if r.Window.Length == 0 && r.Window.Why != "" && !v.EvidenceOnly() {
		d.Add(doc.P(Prose(clip(r.Window.Why))...))
	}
	if t, ok := v.deviceTable(); ok {
		d.Add(t)
	}
	if t, ok := v.topKernels(); ok {
		d.Add(t)
	}
	facts := doc.Table{ID: "key", Columns: []doc.Column{{}, {Align: doc.Right}, {}}}
	for _, f := range v.facts() {
		if !f.tabled && len(f.brief) > 0 {
			facts.Rows = append(facts.Rows, []doc.Cell{{doc.Text(f.label)}, {doc.Strong(f.value)}, f.brief})
		}
	}
	if len(facts.Rows) > 0 {
		d.Add(facts)
	}
	d.Add(v.termFindings()...)
	d.Add(v.termEnd(o))
	return d
}

func windowMode(w report.Window) string {
	switch w.Mode {
	case "capture":
		return ", the whole capture"
	case "range", "nvtx", "steady":
		return ", window by " + map[string]string{"range": "--from/--to", "nvtx": "--window",
			"steady": "--steady"}[w.Mode]
	case "host":
		return ", no GPU work in the capture"
	}
	return ""
}

// deviceTable is where the time of each device went. With many devices it shows the most idle ones.
func (v *View) deviceTable() (doc.Table, bool) {
	devices := v.devices()
	if len(devices) == 0 {
		return doc.Table{}, false
	}
	hidden := 0
	if len(devices) > termDevices {
		hidden = len(devices) - termDevices + 1
		devices = append([]string(nil), devices...)
		sort.SliceStable(devices, func(i, j int) bool {
			a, _ := v.Num("gpu.idle_ratio", "device", devices[i])
			b, _ := v.Num("gpu.idle_ratio", "device", devices[j])
			return a > b
		})
		devices = devices[:termDevices-1]
	}
	columns := []struct {
		title, id, cause string
	}{
		{"Compute", "gpu.compute_time", ""}, {"Comm.", "gpu.exposed_comm_time", ""},
		{"Copy", "gpu.exposed_copy_time", ""}, {"Idle", "gpu.idle_time", ""},
		{"sync", "gpu.idle_cause_time", "sync"}, {"host", "gpu.idle_cause_time", "host"},
		{"launch", "gpu.idle_cause_time", "launch"},
		{"dep.", "gpu.idle_cause_time", "dependency"}, {"unknown", "gpu.idle_cause_time", "unknown"},
	}
	value := func(device, id, cause string) (float64, bool) {
		if cause != "" {
			return v.Num(id, "device", device, "cause", cause)
		}
		return v.Num(id, "device", device)
	}
	var all []float64
	for _, d := range devices {
		for _, c := range columns {
			x, _ := value(d, c.id, c.cause)
			all = append(all, x)
		}
	}
	scale := unit.Common(report.Nanoseconds, all...)
	t := doc.Table{ID: "gpus", Caption: doc.Spans(doc.Text("GPU time in " + scale.Symbol +
		" (comm. and copy: where nothing computes; idle: by cause)"))}
	t.Columns = []doc.Column{{Title: "GPU", Align: doc.Right}, {Title: "Idle %", Align: doc.Right}}
	for _, c := range columns {
		t.Columns = append(t.Columns, doc.Column{Title: c.title, Align: doc.Right, Wide: c.cause != ""})
	}
	for _, d := range devices {
		ratio := Unknown
		if x, ok := v.Num("gpu.idle_ratio", "device", d); ok {
			ratio = unit.Common(report.Ratio, x).Format(x)
		}
		row := []doc.Cell{{v.word(d)}, {doc.Text(ratio)}}
		for _, c := range columns {
			x, ok := value(d, c.id, c.cause)
			text := Unknown
			if ok {
				text = scale.Format(x)
			}
			row = append(row, doc.Cell{doc.Text(text)})
		}
		t.Rows = append(t.Rows, row)
	}
	if hidden > 0 {
		t.Foot = append(t.Foot, []doc.Cell{{doc.Text("+" + strconv.Itoa(hidden))}})
	}
	return t, true
}

// topKernels is the head of the kernels table.
func (v *View) topKernels() (doc.Table, bool) {
	t := v.Table("kernels", "kernels")
	if Entries(t) == 0 {
		return doc.Table{}, false
	}
	head := report.Table{ID: t.ID, TotalRows: t.TotalRows}
	var pick []int
	ids := []string{"kernel_name", "short", "total", "share", "count", "mean", "p99"}
	if column(t, "bound") >= 0 { // Nsight Compute's word takes the place of the spread
		ids = append(ids[:len(ids)-1], "bound", "dram_ratio", "sm_ratio")
	}
	for _, id := range ids {
		if i := column(t, id); i >= 0 {
			c := t.Columns[i]
			c.Wide = false
			pick = append(pick, i)
			head.Columns = append(head.Columns, c)
		}
	}
	for _, row := range t.Rows[:min(Entries(t), termKernels)] {
		var cells []report.Cell
		for _, i := range pick {
			cells = append(cells, at(row, i))
		}
		head.Rows = append(head.Rows, cells)
	}
	out := v.tableDoc(&head, layout{rows: termKernels})
	text := "Top kernels"
	if m := v.value("kernel.total_time"); m != "" {
		text += " of " + m + " kernel time"
	}
	out.Caption = doc.Spans(doc.Text(text))
	return out, true
}

// headline is the first piece of a finding's evidence: "GPU 1: 74.3 %".
func (v *View) headline(f report.Finding) []doc.Span {
	for _, ref := range f.Evidence {
		m := v.metrics[key(ref.ID, ref.Labels)]
		value := ValueOf(m)
		if value == "" || m.Unit == report.Count {
			continue // a number without its noun says nothing
		}
		var spans []doc.Span
		if c := ref.Labels["category"]; c != "" && len(ref.Labels) == 1 {
			return append(doc.Spans(v.word(c)), doc.Text(": "+value))
		}
		if len(ref.Labels) == 1 && (ref.Labels["device"] != "" || ref.Labels["phase"] != "" ||
			ref.Labels["pid"] != "") {
			spans = append(v.labels(ref.Labels), doc.Text(": "))
		}
		return append(spans, doc.Text(value))
	}
	return nil
}

// termFindings are the most severe findings with their main number, the first with its first advice.
func (v *View) termFindings() []doc.Block {
	if len(v.Findings) == 0 {
		return nil
	}
	var l doc.List
	for i, f := range v.Findings {
		if i == termFindings {
			break
		}
		spans := append(doc.Spans(doc.Strong(severityWord(f.Severity)+":").With(severityTone(f.Severity)),
			doc.Text(" ")), Prose(clip(f.Title))...)
		if e := v.headline(f); len(e) > 0 {
			spans = append(append(append(spans, doc.Text(" (")), e...), doc.Text(")"))
		}
		if i == 0 && len(f.Advice) > 0 {
			spans = append(append(spans, doc.Text(". ")), Prose(clip(f.Advice[0]))...)
		}
		l.Items = append(l.Items, doc.Item{Spans: spans})
	}
	text := "Findings"
	if n := len(v.Findings); n > termFindings {
		text += " (" + strconv.Itoa(termFindings) + " of " + strconv.Itoa(n) + ")"
	}
	return []doc.Block{doc.H(2, "findings", text), l}
}

// termEnd is the first warning and what was written.
func (v *View) termEnd(o TerminalOptions) doc.Fields {
	var f doc.Fields
	if n := len(v.Warnings); n > 0 {
		var spans []doc.Span
		for _, s := range Prose(clip(v.Warnings[0].Text)) {
			spans = append(spans, s.With(doc.Warn))
		}
		if n > 1 {
			spans = append(spans, doc.Text(" (+"+strconv.Itoa(n-1)+" more)").With(doc.Muted))
		}
		f.Items = append(f.Items, doc.Field{Label: "Warnings", Value: spans})
	}
	if o.Out != "" {
		text := o.Out
		for i, name := range o.Files {
			text += []string{": ", ", "}[min(i, 1)] + name
		}
		if o.More > 0 {
			text += " and " + Plural(int64(o.More), "other file")
		}
		f.Items = append(f.Items, doc.Field{Label: "Wrote", Value: doc.Spans(doc.Text(text))})
	}
	return f
}

// clip keeps the start of a long text: whole sentences, else whole clauses, else whole words.
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
	return strings.TrimRight(s, " ,;:.") + " …"
}
