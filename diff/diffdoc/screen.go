package diffdoc

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
)

// The first screen of a comment: what a reader sees before anything is unfolded, at most screenLines lines.
const (
	screenLines = 15
	screenRows  = 4 // of the numbers that were judged
	barWidth    = 8 // squares of a change of maxBar or more
	maxBar      = 0.4
)

// screen is the first screen under its title: what was compared, what was judged, the cause, the judged numbers, how to
// accept and how to see it again.
func (p commentPage) screen() []doc.Block {
	c := p.c
	var list []doc.Block
	if spans := p.compared(); len(spans) > 0 {
		list = append(list, doc.P(spans...))
	}
	list = append(list, doc.P(gatesText(c)...))
	list = append(list, answerBlocks(c)...)
	list = append(list, p.notes()...)
	list = append(list, reasons(c)...)
	if t, ok := p.judged(); ok {
		list = append(list, t)
	}
	return append(list, p.next()...)
}

// compared is the line of what was compared: commits, GPUs, captures, and as of when the policy judged.
func (p commentPage) compared() []doc.Span {
	f := &p.o.Provenance
	var parts [][]doc.Span
	switch {
	case f.BaseSHA != "" && f.HeadSHA != "":
		spans := doc.Spans(doc.Code(shortSHA(f.BaseSHA)), doc.Text(" vs "), doc.Code(shortSHA(f.HeadSHA)))
		if f.Nearness != "" {
			spans = append(spans, doc.Text(" ("), doc.Name(f.Nearness), doc.Text(")"))
		}
		parts = append(parts, spans)
	case f.HeadSHA != "":
		parts = append(parts, doc.Spans(doc.Code(shortSHA(f.HeadSHA))))
	}
	if f.Hardware != "" {
		parts = append(parts, doc.Spans(doc.Name(f.Hardware)))
	}
	b, h := int64(p.c.Base.Captures), int64(p.c.Head.Captures)
	switch {
	case b == h && b > 0:
		parts = append(parts, doc.Spans(doc.Text(comparison.Count(b, "capture")+" a side")))
	case b > 0:
		parts = append(parts, doc.Spans(doc.Text(unit.Int(b)+" → "+comparison.Count(h, "capture"))))
	}
	if f.Policy != "" {
		parts = append(parts, doc.Spans(doc.Text("policy: "), doc.Name(f.Policy)))
	}
	var spans []doc.Span
	for i, part := range parts {
		if i > 0 {
			spans = append(spans, doc.Text(" · "))
		}
		spans = append(spans, part...)
	}
	return spans
}

// judged are the rows that a rule judged, what did not pass first, each with a bar of its change.
func (p commentPage) judged() (doc.Table, bool) {
	type row struct {
		*comparison.Row
		gate *comparison.Gate
	}
	var rows []row
	for i := range p.c.Primary {
		r := &p.c.Primary[i]
		if g := p.gateOf(r); g != nil && p.c.Comparable {
			rows = append(rows, row{r, g})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return comparison.Rank(b.gate.Verdict) - comparison.Rank(a.gate.Verdict)
	})
	t := doc.Table{ID: "judged", Columns: []doc.Column{
		{Title: "Per unit of work"}, {Title: "Base", Align: doc.Right}, {Title: "Head", Align: doc.Right},
		{Title: "", Align: doc.Right}, {Title: ""}, {Title: "Limit"}, {Title: "Verdict"},
	}}
	if p.c.Unit.Kind == "" || p.c.Unit.Kind == "none" || p.c.Depth == comparison.DepthEvidence {
		t.Columns[0].Title = "Metric"
	}
	kinds := severalKinds(p.c)
	for _, r := range rows[:min(len(rows), screenRows)] {
		name, ratio := metricCell(shown(p.c, r.Metric), nil), ""
		if kinds && r.Kind != "" {
			name = kindCell(r.Row)
		}
		if r.Ratio != nil {
			ratio = unit.Change(comparison.Value(r.Ratio) - 1)
		}
		verdict := doc.Text(string(r.gate.Verdict)).With(verdictTone(r.gate.Verdict))
		if w := r.gate.Waiver; w != nil {
			verdict.Text += ", waiver " + w.Status
		}
		if r.gate.Verdict == comparison.Fail {
			verdict.Kind = doc.KindStrong
		}
		t.Rows = append(t.Rows, []doc.Cell{name, {doc.Text(format(r.Base, r.Unit))}, {doc.Text(format(r.Head, r.Unit))},
			{doc.Text(ratio)}, {doc.Text(bar(r.Row))}, {doc.Text(clip(r.gate.Threshold))}, {verdict}})
	}
	if n := len(rows) - len(t.Rows); n > 0 {
		t.Foot = append(t.Foot, []doc.Cell{doc.Spans(doc.Text("and " + unit.Int(int64(n)) + " more"))})
	}
	return t, len(t.Rows) > 0
}

// bar draws a change that was found to be one: red where it is worse, green where it is better, a square for each 5 %
// up to 40 %.
func bar(r *comparison.Row) string {
	square := map[comparison.Class]string{comparison.Regressed: "🟥", comparison.Improved: "🟩"}[r.Class]
	if square == "" || r.Ratio == nil {
		return ""
	}
	share := min(math.Abs(comparison.Value(r.Ratio)-1), maxBar) / maxBar
	return strings.Repeat(square, max(int(math.Round(share*barWidth)), 1))
}

// next says how a verdict is accepted, and when that takes effect, and how to see the comparison again.
func (p commentPage) next() []doc.Block {
	var list []doc.Block
	label := doc.Spans(doc.Text("the label "), doc.Name(p.o.AcceptLabel), doc.Text(" (at once, for what stands here)"))
	var spans []doc.Span
	switch {
	case p.c.Verdict == comparison.Inconclusive && p.o.AcceptLabel != "":
		spans = label
	case p.c.Verdict == comparison.Fail:
		if p.o.AcceptLabel != "" {
			spans = label
		}
		for i, w := range p.waivers() {
			switch {
			case i == 0 && len(spans) > 0:
				spans = append(spans, doc.Text(", or in the base branch's policy under "), doc.Code("waivers:"), doc.Text(" (once merged)"))
			case i == 0:
				spans = append(spans, doc.Text("in the base branch's policy under "), doc.Code("waivers:"), doc.Text(" (once merged)"))
			default:
				spans = append(spans, doc.Text(" and"))
			}
			spans = append(spans, doc.Text(" "), doc.Name(w))
		}
		if p.o.Provenance.Policy == DefaultRules && len(p.waivers()) > 0 {
			spans = append(spans, doc.Text("; a new policy begins with "), doc.Code("version: 1"), doc.Text(" and "),
				doc.Code("preset: llm-serving"))
		}
	}
	if len(spans) > 0 {
		list = append(list, doc.P(append(doc.Spans(doc.Text("To accept this: ")), spans...)...))
	}
	if p.o.Reproduce != "" {
		list = append(list, doc.P(doc.Text("To reproduce: "), doc.Name(p.o.Reproduce)))
	}
	return list
}

// waivers are the entries of the policy that accept every failure, one for each rule, as a policy file takes them. The
// ceiling is that of the rule's worst change; what is no relative change, a budget or something that is new, has none.
func (p commentPage) waivers() []string {
	var rules []string
	worst := map[string]float64{}
	for i := range p.c.Gates {
		g := &p.c.Gates[i]
		if g.Verdict != comparison.Fail && (g.Verdict != comparison.Warn || g.Level != comparison.LevelError) ||
			p.o.Provenance.Policy == FlagRules {
			continue
		}
		if _, seen := worst[g.Rule]; !seen {
			rules = append(rules, g.Rule)
		}
		share := math.Inf(1)
		if b := comparison.Value(g.Base); b != 0 && g.Head != nil && !strings.ContainsAny(g.Threshold, "<>") {
			share = math.Abs(comparison.Value(g.Head)-b) / math.Abs(b)
		}
		worst[g.Rule] = max(worst[g.Rule], share)
	}
	day := "YYYY-MM-DD"
	if !p.o.Today.IsZero() {
		day = p.o.Today.AddDate(0, 1, 0).Format(time.DateOnly)
	}
	for i, rule := range rules {
		text := "- {rule: " + rule
		if share := worst[rule]; !math.IsInf(share, 1) {
			text += fmt.Sprintf(", ceiling: %.0f%%", math.Ceil(share*100))
		}
		rules[i] = text + ", expires: " + day + ", reason: say why}"
	}
	return rules
}

// acceptedBy says in the title by what a failure passes; empty where nothing accepted one.
func (p commentPage) acceptedBy() []doc.Span {
	if len(p.c.Overrides) > 0 {
		o := p.c.Overrides[0]
		spans := doc.Spans(doc.Text(", accepted by "), doc.Name(o.Label))
		if o.By != "" {
			spans = append(spans, doc.Text(" of "), doc.Name(o.By))
		}
		return spans
	}
	if n := accepted(p.c); n > 0 {
		for _, w := range p.c.Waivers {
			if w.Status == comparison.WaiverApplied {
				text := ", " + comparison.Count(n, "gate") + " accepted by a waiver until "
				return doc.Spans(doc.Text(text), doc.Name(w.Expires))
			}
		}
	}
	return nil
}
