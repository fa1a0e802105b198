package present

import (
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// first is the first screen of the page: what a step costs and what it is made of, what to do about it, and the key
// numbers.
func (v *View) first() []doc.Block {
	var list []doc.Block
	if spans := v.answer(); len(spans) > 0 {
		note := doc.Note{Kind: doc.Info, Blocks: []doc.Block{doc.P(spans...)}}
		if len(v.Findings) > 0 {
			kinds := map[report.Severity]doc.NoteKind{report.High: doc.Danger, report.Medium: doc.Caution}
			note.Kind = kinds[v.Findings[0].Severity]
		}
		list = append(list, note)
	}
	if c, ok := v.stepBar(); ok {
		list = append(list, c)
	}
	list = append(list, v.medianStep()...)
	list = append(list, v.topFindings()...)
	if t := v.tiles(); len(t.Items) > 0 {
		t.Slim = true
		list = append(list, t)
	}
	return list
}

// stepPart is a class of a unit's time, ns, and its share.
type stepPart struct {
	name        string
	time, share float64
}

// stepParts are what the mean unit is made of, as the unit section has it; nil where there is no unit.
func (v *View) stepParts() []stepPart {
	t := v.Table("unit", "unit_time")
	var list []stepPart
	for i := range Entries(t) {
		name, _ := CellOf(t, i, "class").Str()
		ns, ok := CellOf(t, i, "time").Num()
		share, known := CellOf(t, i, "share").Num()
		if ok && known {
			list = append(list, stepPart{name, ns, share})
		}
	}
	return list
}

// answer is one line: the number, what it is made of, the kernel that takes most of it, and what to do first.
func (v *View) answer() []doc.Span {
	for i := range v.Warnings {
		if c := v.Warnings[i].Code; c == "no_kernels" || c == "no_gpu_work" { // nothing else matters then
			return Prose(v.Warnings[i].Text)
		}
	}
	spans := v.stepAnswer()
	if len(spans) == 0 {
		spans = v.windowAnswer()
	}
	if len(v.Findings) == 0 {
		return spans
	}
	if len(spans) > 0 {
		spans = append(spans, doc.Text(" "))
	}
	f := &v.Findings[0]
	spans = append(spans, doc.Strong("First: "))
	spans = append(spans, Prose(f.Title)...)
	if w := worth(f.Worth); w != "" {
		spans = append(spans, doc.Text(" ("+w+")"))
	}
	spans = append(spans, doc.Text("."))
	if len(f.Advice) > 0 {
		spans = append(append(spans, doc.Text(" ")), Prose(firstSentence(f.Advice[0]))...)
	}
	return spans
}

// stepAnswer is the answer where there are units of work.
func (v *View) stepAnswer() []doc.Span {
	parts := v.stepParts()
	m := v.Metric("unit.time")
	if len(parts) == 0 || m == nil || m.Value == nil {
		return nil
	}
	mean := *m.Value // the parts are those of the mean, so the answer is too
	if m.Summary != nil {
		mean = m.Summary.Mean
	}
	spans := doc.Spans(doc.Strong(unit.Format(mean, m.Unit)), doc.Text(" per "))
	if g := v.mainGroup(); g.Phase != "" && g.Phase != "step" {
		spans = append(spans, v.word(g.Phase), doc.Text(" "))
	}
	spans = append(spans, doc.Text("step"))
	if m.Summary != nil {
		text := " (the mean of " + unit.Int(m.Summary.N) + "; median " + unit.Format(m.Summary.P50, m.Unit) + ")"
		spans = append(spans, doc.Text(text))
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
		if p.name == "compute" {
			spans = append(spans, v.topOfStep()...)
		}
	}
	spans = append(spans, doc.Text(sep+"GPU idle "+unit.Percent(idle)))
	if cause.share > 0 {
		spans = append(spans, doc.Text(", mostly "+cause.name))
	}
	return append(spans, doc.Text("."))
}

// namedShare is the share of a unit from which a class is worth a word in the answer.
const namedShare = 0.02

// topOfStep names the kernel that takes most of a unit.
func (v *View) topOfStep() []doc.Span {
	t := v.Table("unit", "unit_kernels")
	if Entries(t) == 0 {
		return nil
	}
	name, ok := CellOf(t, 0, "kernel_name").Str()
	share, known := CellOf(t, 0, "share").Num()
	if !ok || !known {
		return nil
	}
	return doc.Spans(doc.Text(" (most of it "), v.name(name), doc.Text(", "+unit.Percent(share)+" of a step)"))
}

// windowAnswer is the answer where there is GPU work and no unit of work.
func (v *View) windowAnswer() []doc.Span {
	device, m := v.worst("gpu.idle_ratio")
	if m == nil || v.warned("no_kernels") {
		return nil
	}
	spans := doc.Spans(doc.Strong(unit.Format(float64(v.Window.Length), report.Nanoseconds)),
		doc.Text(" of GPU work: idle "+ValueOf(m)))
	if c := v.causes(device); len(c) > 0 {
		spans = append(spans, doc.Text(", mostly "), v.word(c[0].Labels["cause"]))
	}
	if t := v.Table("kernels", "kernels"); Entries(t) > 0 {
		name, _ := CellOf(t, 0, "kernel_name").Str()
		if share, ok := CellOf(t, 0, "share").Num(); ok {
			spans = append(spans, doc.Text("; "+unit.Percent(share)+" of the kernel time is "), v.name(name))
		}
	}
	return append(spans, doc.Text("."))
}

// firstSentence is what stands before the first full stop that ends a sentence.
func firstSentence(s string) string {
	if i := strings.Index(s, ". "); i >= 0 {
		return s[:i+1]
	}
	return s
}

// stepBar draws what the mean unit is made of, as one bar.
func (v *View) stepBar() (doc.Chart, bool) {
	s := doc.Series{Name: "mean step"}
	for _, p := range v.stepParts() {
		s.Labels, s.Values = append(s.Labels, p.name), append(s.Values, p.time)
	}
	return doc.Chart{ID: "step", Title: "What one step is made of", Kind: "stacked", Unit: report.Nanoseconds,
		Series: []doc.Series{s}}, len(s.Values) > 0
}

// shownFindings is how many findings the first screen has.
const shownFindings = 3

// topFindings are the findings that come first, each with what it is worth, in one line.
func (v *View) topFindings() []doc.Block {
	if len(v.Findings) == 0 {
		return nil
	}
	l := doc.List{Ordered: true}
	for i := range v.Findings[:min(len(v.Findings), shownFindings)] {
		f := &v.Findings[i]
		spans := append(doc.Spans(doc.Strong(severityWord(f.Severity)+":").With(severityTone(f.Severity)), doc.Text(" ")),
			Prose(f.Title)...)
		l.Items = append(l.Items, doc.Item{Spans: append(spans, v.brief(*f)...)})
	}
	all := doc.P(doc.Link(findingCount(v.Findings), "#findings"))
	return []doc.Block{l, all}
}

// findingCount is "All 5 findings: 1 high, 1 medium, 3 low".
func findingCount(list []report.Finding) string {
	count := map[report.Severity]int64{}
	for _, f := range list {
		count[f.Severity]++
	}
	var parts []string
	for _, s := range []report.Severity{report.High, report.Medium, report.Low} {
		if n := count[s]; n > 0 {
			parts = append(parts, unit.Int(n)+" "+string(s))
		}
	}
	if len(list) == 1 {
		return "The finding with its evidence"
	}
	return "All " + Plural(int64(len(list)), "finding") + ": " + strings.Join(parts, ", ")
}

// The groups of the page's contents.
const (
	groupAnswer   = "Answer"
	groupStep     = "Step"
	groupGPU      = "GPU"
	groupHost     = "Host"
	groupEvidence = "Evidence"
)

// groups are the sections of the groups of the page, in the order of the page; what is in none is evidence.
var groups = []struct {
	title    string
	sections []string
}{
	{groupStep, []string{"ranks", "unit", "unit_positions", "critical_path", "steady", "device_steps"}},
	{groupGPU, []string{"gpu_time", "kernels", "ncu", "roofline", "categories", "components", "memcpy", "gpu_memory",
		"graphs", "comm", "streams", "idle", "activity", "gpu_counters", "gpu_power"}},
	{groupHost, []string{"host_idle", "launches", "sync", "nvtx", "torch_ops", "regions", "phases", "processes"}},
}

// GroupOf is the part of the page's contents that a section stands in.
func GroupOf(section string) string {
	for _, g := range groups {
		if slices.Contains(g.sections, section) {
			return g.title
		}
	}
	return groupEvidence
}

// grouped are the sections of the page with something to show, by group; within a group they keep the report's order.
func (v *View) grouped(l layout) []doc.Block {
	var list []doc.Block
	for _, title := range []string{groupStep, groupGPU, groupHost, groupEvidence} {
		for i := range v.Sections {
			s := &v.Sections[i]
			if without(s) || GroupOf(s.ID) != title {
				continue
			}
			list = append(list, inGroup(v.section(s, l), title)...)
		}
	}
	return list
}

// inGroup marks the first heading of blocks as one of a group.
func inGroup(list []doc.Block, title string) []doc.Block {
	if len(list) > 0 {
		if h, ok := list[0].(doc.Heading); ok {
			h.Group = title
			list[0] = h
		}
	}
	return list
}
