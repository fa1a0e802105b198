package present

import (
	"cmp"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// stepPart is a class of a unit's time in ns, and its share.
type stepPart struct {
	name        string
	time, share float64
}

// stepParts returns the parts of the mean unit from the unit section; nil if there is no unit.
func (v *View) stepParts() []stepPart {
	t := v.Table("unit", "unit_time")
	var list []stepPart
	for i := range t.Entries() {
		name := t.Str(i, "class")
		ns, ok := t.Num(i, "time")
		share, known := t.Num(i, "share")
		if ok && known {
			list = append(list, stepPart{name, ns, share})
		}
	}
	return list
}

// answer is one line: the number, its parts, and the kernel that takes most of it.
func answer(v *View) []doc.Span {
	for _, w := range v.Warnings {
		if w.Code == "no_kernels" || w.Code == "no_gpu_work" { // then nothing else matters
			return Prose(w.Text)
		}
	}
	if spans := stepAnswer(v); len(spans) > 0 {
		return spans
	}
	return windowAnswer(v)
}

// stepAnswer returns the answer if there are units of work.
func stepAnswer(v *View) []doc.Span {
	parts := v.stepParts()
	m := v.Metric("unit.time")
	if len(parts) == 0 || m == nil || m.Value == nil {
		return nil
	}
	mean, of := *m.Value, "" // the parts are those of the mean, so the answer is the mean too
	if m.Summary != nil {
		mean, of = m.Summary.Mean, "mean of "+unit.Int(m.Summary.N)
	}
	spans := doc.Spans(doc.Strong(unit.Format(mean, m.Unit)), " per ")
	if g := v.mainGroup(); g.Phase != "" && g.Phase != "step" {
		spans = append(spans, v.names.word(g.Phase), doc.Text(" "))
		of = "" // the table of kinds has the number, and the first screen little room
	}
	spans = append(spans, doc.Text("step"))
	if short, long := v.value("unit.mode_time", "mode", "short"), v.value("unit.mode_time", "mode", "long"); short != "" && long != "" {
		few, many := v.value("unit.mode_share", "mode", "short"), v.value("unit.mode_share", "mode", "long")
		if few == "" || many == "" { // merged reports of a run
			few, many = "some", "some"
		}
		of += "; " + few + " of them about " + short + " and " + many + " about " + long
	} else {
		of += outlier(m)
	}
	if of = strings.TrimPrefix(of, "; "); of != "" {
		spans = append(spans, doc.Text(" ("+of+")"))
	}
	idle, cause := 0.0, stepPart{}
	sep := ": "
	for _, p := range parts {
		if name, ok := strings.CutPrefix(p.name, "idle: "); ok {
			idle += p.share
			if p.share > cause.share {
				cause = stepPart{name, p.time, p.share}
			}
			continue
		}
		if p.share < namedShare && p.name != "compute" {
			continue
		}
		spans = append(spans, doc.Text(sep+unit.Percent(p.share)+" "+p.name))
		sep = ", "
		switch p.name {
		case "compute":
			spans = append(spans, topOfStep(v)...)
		case "exposed communication":
			spans = append(spans, doc.Text(waitingPart(v)))
		}
	}
	spans = append(spans, doc.Text(sep+"GPU idle "+unit.Percent(idle)))
	if cause.share > 0 {
		spans = append(spans, doc.Text(mostly(cause.share, idle)+cause.name))
	}
	return append(spans, doc.Text("."))
}

// outlier names one step that alone makes the mean 5 % longer, and is twice as long as the mean of the others.
func outlier(m *report.Metric) string {
	s := m.Summary
	if s == nil || s.N < leastForOutlier {
		return ""
	}
	rest := (float64(s.N)*s.Mean - s.Max) / float64(s.N-1)
	if s.Max < 2*rest || s.Mean < 1.05*rest {
		return ""
	}
	return "; one of them " + unit.Format(s.Max, m.Unit) + ", " + unit.Format(rest, m.Unit) + " without it"
}

const leastForOutlier = 4 // steps

// waitingPart states how much of communication is waiting for the last rank, which is not work. The collectives of
// several ranks or GPUs show it, those of one rank do not.
func waitingPart(v *View) string {
	wait, all := v.Metric("rank.wait_time"), v.Metric("rank.collective_time")
	switch {
	case wait != nil && all != nil && wait.Value != nil && all.Value != nil && *all.Value > 0:
		return " (of collectives " + unit.Percent(*wait.Value / *all.Value) + " is waiting for other ranks)"
	case len(v.All("comm.wait_time")) == 0:
		return " (waiting for other ranks included)"
	}
	return ""
}

// mostly introduces the largest part of a whole: "mostly" only if that is more than half.
func mostly(part, whole float64) string {
	if 2*part > whole {
		return ", mostly "
	}
	return ", the largest part "
}

// namedShare is the smallest share of a unit, 0 to 1, for which the answer names a class.
const namedShare = 0.02

// topOfStep names the compute kernel that takes most of a unit, and its share. Communication kernels are skipped,
// because they may only wait.
func topOfStep(v *View) []doc.Span {
	t := v.Table("unit", "unit_kernels")
	if t.Entries() == 0 {
		return nil
	}
	row := 0
	for row+1 < len(t.Rows) && t.Str(row, "category") == "comm" {
		row++
	}
	name, ok := t.Cell(row, "kernel_name").Str()
	share, known := t.Num(row, "share")
	if !ok || !known {
		return nil
	}
	return doc.Spans(" (", doc.ShortName(v.names.function(name), name), " "+unit.Percent(share)+")")
}

// windowAnswer returns the answer if there is GPU work but no unit of work.
func windowAnswer(v *View) []doc.Span {
	device, m := v.worst("gpu.idle_ratio")
	if m == nil || warned(v, "no_kernels") {
		return nil
	}
	spans := doc.Spans(doc.Strong(unit.Format(float64(v.Window.Length), report.Nanoseconds)),
		" of GPU work: idle "+ValueOf(m))
	if c := v.causes(device); len(c) > 0 {
		idle, _ := v.Num("gpu.idle_time", "device", device)
		spans = append(spans, doc.Text(mostly(*c[0].Value, idle)), v.names.word(c[0].Labels["cause"]))
	}
	if t := v.Table("kernels", "kernels"); t.Entries() > 0 {
		name := t.Str(0, "kernel_name")
		if share, ok := t.Num(0, "share"); ok {
			spans = append(spans, doc.Text("; "+unit.Percent(share)+" of the kernel time is "), v.names.span(name))
		}
	}
	return append(spans, doc.Text("."))
}

// stepBar draws the parts of the mean unit as one bar.
func stepBar(v *View) doc.Chart {
	s := doc.Series{Name: "mean step"}
	if m := v.Metric("unit.time"); m != nil && m.Summary != nil {
		s.Name = "mean of " + wording.Count(m.Summary.N, "step") + "; median " + unit.Format(m.Summary.P50, m.Unit)
	}
	for _, p := range v.stepParts() {
		if p.time > 0 {
			s.Add(p.name, p.time)
		}
	}
	return doc.Chart{ID: "step", Title: "What one step is made of", Kind: "stacked", Unit: report.Nanoseconds,
		Series: []doc.Series{s}}
}

// shownFindings is how many findings the first screen has.
const shownFindings = 3

// topFindings lists the first findings, one per row: what it could save, what it is and where, what to do.
func topFindings(v *View) []doc.Block {
	if len(v.Findings) == 0 {
		return nil
	}
	t := doc.Table{ID: "first-findings", Columns: doc.Cols(">Saves", "What and where", "Do")}
	for i := range v.Findings[:min(len(v.Findings), shownFindings)] {
		f := &v.Findings[i]
		saves := severityWord(f.Severity)
		if f.Worth != nil {
			saves = saving(f.Worth)
		}
		var do doc.Cell
		if len(f.Advice) > 0 {
			do = Prose(clip(f.Advice[0]))
		}
		t.Row(doc.Strong(saves).With(severityTones[f.Severity]), doc.Spans(Prose(f.Title), " ", doc.Code(f.ID)), do)
	}
	return []doc.Block{t, doc.P(doc.Link(wording.Count(len(v.Findings), "finding")+" with evidence", "#findings"))}
}

// saving formats the largest possible saving of a finding, and its share.
func saving(w *report.Worth) string {
	if w.Frame != "" && w.Frame != report.OfWindow {
		return unit.Percent(w.Share())
	}
	time := float64(w.Time) / float64(max(w.Units, 1))
	return "≤ " + unit.Format(time, report.Nanoseconds) + ", " + unit.Percent(w.Share())
}

// groupAnswer and groupEvidence are the first and the last part of the table of contents.
const (
	groupAnswer   = "Answer"
	groupEvidence = "Evidence"
)

// contents lists the other parts of the table of contents, in order.
var contents = []string{"Step", "GPU", "Host", groupEvidence}

// partOf is the part of the contents that a section stands in.
func partOf(s report.Section) string {
	title, _, _ := strings.Cut(cmp.Or(s.Group, groupEvidence), "/")
	return title
}

// inParts returns the sections that have something to show, but for those about the capture itself, by part and group:
// the first of each group open under its title, the others folded. Sections from files besides a trace are all folded.
func (l layout) inParts() (list []doc.Block) {
	shown := lists.Filter(l.v.Sections, func(s report.Section) bool { return shows(s) && s.Group != report.GroupCapture })
	lists.InOrder(shown, contents, partOf)
	for _, same := range lists.Groups(shown, func(s report.Section) string { return s.Group }) {
		first := same[0]
		if partOf(first) == groupEvidence && !l.v.EvidenceOnly() {
			list = append(list, l.ofEvidence(same)...)
			continue
		}
		list = append(append(list, doc.H(2, first.ID, first.Title).In(partOf(first))), l.section(first)...)
		list = append(list, l.folded(same[1:])...)
	}
	return list
}

// ofEvidence returns the sections from files besides a trace: a page folds them, in a text each has a heading.
func (l layout) ofEvidence(shown []report.Section) (list []doc.Block) {
	if l.wide {
		return append([]doc.Block{doc.H(2, "of-evidence", "Server, load and profiles").In(groupEvidence)}, l.folded(shown)...)
	}
	for _, s := range shown {
		list = append(list, doc.H(2, s.ID, s.Title), doc.Fold("", "Numbers", l.section(s)...))
	}
	return list
}

func (l layout) folded(sections []report.Section) (list []doc.Block) {
	for _, s := range sections {
		title := s.Title
		if s.Status == report.Error {
			title += ": failed"
		}
		list = append(list, doc.Fold(s.ID, title, l.section(s)...))
	}
	return list
}
