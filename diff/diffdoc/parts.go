package diffdoc

import (
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
)

// primary is the table of the primary numbers, each with the rule that judged it and the result.
func (p commentPage) primary() (doc.Table, bool) {
	rows := rowsToShow(p.c, maxPrimary)
	t, ok := primaryTable(p.c, rows)
	if !ok {
		return t, false
	}
	n := len(t.Columns) - 1 // the verdict replaces the class; the method says how each was decided
	t.Columns = append(t.Columns[:n:n], doc.Column{Title: "Threshold"}, doc.Column{Title: "Verdict"})
	for i := range rows {
		cells := t.Rows[i]
		threshold, verdict := doc.Text(comparison.NoValue), doc.Text("not judged").With(doc.Muted)
		if g := p.gateOf(&rows[i]); g != nil {
			threshold = doc.Text(clip(g.Threshold))
			verdict = doc.Text(string(g.Verdict)).With(verdictTone(g.Verdict))
			if g.Waiver != nil {
				verdict.Text += ", waiver " + g.Waiver.Status
			}
			if g.Verdict == comparison.Fail {
				verdict.Kind = doc.KindStrong
			}
		}
		t.Rows[i] = append(cells[:n:n], doc.Cell{threshold}, doc.Cell{verdict})
	}
	return t, true
}

// gateOf returns the gate that judged a row, the last one if there are several.
func (p commentPage) gateOf(r *comparison.Row) *comparison.Gate {
	for i := len(p.c.Gates) - 1; i >= 0; i-- {
		if g := &p.c.Gates[i]; g.Metric == r.Metric && g.Labels.String() == r.Labels.String() {
			return g
		}
	}
	return nil
}

// why is the evidence: the parts of the change, the structure, the kernels and host calls that changed, and the gates
// that did not pass.
func (p commentPage) why() []doc.Block {
	c := p.c
	var list []doc.Block
	if c.Comparable {
		if moved(c) {
			if t, ok := attributionTable(c, commentParts, false); ok {
				list = append(list, t)
			}
		}
		if t, ok := kernelTable(c, changedKernels(c), commentKernels, false); ok {
			list = append(list, t)
		}
		if t, ok := apiTable(c, true); ok {
			if n := len(t.Rows) - commentKernels; n > 0 {
				t.Rows = t.Rows[:commentKernels]
				t.Last("and " + unit.Int(int64(n)) + " more")
			}
			list = append(list, t)
		}
		for _, b := range structureList(c) {
			if _, heading := b.(doc.Heading); !heading {
				list = append(list, b)
			}
		}
	}
	if len(list) > 0 {
		list = append([]doc.Block{doc.H(commentLevel+1, "why", "Why")}, list...)
	}
	for _, b := range append(gateList(c, commentGates), waiverList(c, commentGates)...) {
		if h, ok := b.(doc.Heading); ok {
			h.Level = commentLevel + 1
			b = h
		}
		list = append(list, b)
	}
	return list
}

// details returns the folded parts.
func (p commentPage) details() []doc.Block {
	c := p.c
	var list []doc.Block
	fold := func(summary string, blocks ...doc.Block) {
		if len(blocks) > 0 {
			list = append(list, doc.Details{Summary: doc.Spans(summary), Blocks: blocks})
		}
	}
	var same, changed, added []comparison.Kernel
	for _, k := range c.Kernels {
		switch k.Class {
		case comparison.Added, comparison.Removed:
			added = append(added, k)
		case comparison.Same:
			same = append(same, k)
		default:
			changed = append(changed, k)
		}
	}
	if t, ok := kernelTable(c, append(changed, same...), len(changed)+commentSame, true); ok {
		t.Caption = nil
		fold("Kernels ("+unit.Int(c.Counts.KernelsCompared)+" compared, "+unit.Int(c.Counts.KernelsPaired)+" paired)",
			t)
	}
	if t, ok := kernelTable(c, added, len(added), false); ok {
		t.Caption = nil
		fold("Kernels added or removed ("+unit.Int(int64(len(added)))+")", t)
	}
	if t, ok := mixTable(c); ok {
		fold("Mix of units", t)
	}
	if t, ok := unjudgedTable(c); ok {
		fold("Tokens, and time outside the units", t)
	}
	if len(c.Residue) > 0 {
		fold("Environment: what differs and was not compared", p.residueList())
	}
	if t, ok := p.waiverTable(); ok {
		fold(wording.Count(len(c.Waivers), "waiver"), t)
	}
	if t, ok := p.ruleTable(); ok {
		fold(wording.Count(len(c.Gates), "gate"), t)
	}
	if l, ok := decisions(c).(doc.List); ok && len(l.Items) > 0 {
		fold("Method: how each number was decided", l, p.method())
	}
	return list
}

// residueList has a line for each field, so that a long list is cut between lines.
func (p commentPage) residueList() doc.List {
	var l doc.List
	for _, r := range p.c.Residue {
		l.Add(strings.ReplaceAll(r.Field, "_", " ")+": ", residueValue(r.Base), " → ", residueValue(r.Head))
	}
	return l
}

// waiverTable lists every waiver of the policy and its status.
func (p commentPage) waiverTable() (doc.Table, bool) {
	t := doc.Table{ID: "waivers", Columns: doc.Cols("Rule", "Kernels", ">Ceiling", "Expires", "Issue", "Reason",
		"Status")}
	name := func(s string) doc.Cell {
		if s == "" {
			return doc.Cell{doc.Text(comparison.NoValue)}
		}
		return doc.Cell{doc.Name(s)}
	}
	for _, w := range p.c.Waivers {
		status := doc.Text(strings.ReplaceAll(w.Status, "_", " "))
		if w.Status != "applied" {
			status = status.With(doc.Warn)
		}
		t.Row(name(w.Rule), name(w.Match), name(w.Ceiling), name(w.Expires), name(w.Issue), clip(w.Reason), status)
	}
	return t, len(t.Rows) > 0
}

// ruleTable counts the results of each rule, in the order in which rules first judged.
func (p commentPage) ruleTable() (doc.Table, bool) {
	type rule struct {
		gate *comparison.Gate
		n    map[comparison.Verdict]int64
	}
	var rules []*rule
	byName := map[string]*rule{}
	for i := range p.c.Gates {
		g := &p.c.Gates[i]
		key := g.Rule + "\x00" + g.Threshold + "\x00" + g.Level
		r, ok := byName[key]
		if !ok {
			r = &rule{gate: g, n: map[comparison.Verdict]int64{}}
			byName[key] = r
			rules = append(rules, r)
		}
		r.n[g.Verdict]++
	}
	t := doc.Table{
		ID:      "rules",
		Columns: doc.Cols("Rule", "Metric", "Level", ">Checked", "Result"),
	}
	for _, r := range rules {
		var parts []string
		total := int64(0)
		for _, v := range []comparison.Verdict{comparison.Fail, comparison.Error, comparison.Inconclusive,
			comparison.Warn, comparison.Pass} {
			if n := r.n[v]; n > 0 {
				parts = append(parts, unit.Int(n)+" "+string(v))
				total += n
			}
		}
		t.Row(ruleSpans(r.gate), doc.Code(r.gate.Metric), r.gate.Level, unit.Int(total), strings.Join(parts, ", "))
	}
	return t, len(t.Rows) > 0
}

// method names the statistics that decided the numbers, and where they are documented.
func (p commentPage) method() doc.Block {
	text := "Several captures a side are tested with the spread between captures. "
	if unreplicated(p.c) {
		text = "One capture on a side: a duration fails only where its change is larger than the rule, larger than the noise floor and certain by the units inside the captures. "
	}
	methods := map[string]bool{}
	var names []string
	for i := range p.c.Primary {
		if x := p.c.Primary[i].Interval; x != nil && !methods[x.Method] && len(names) < maxPrimary {
			methods[x.Method] = true
			names = append(names, clip(x.Method))
		}
	}
	slices.Sort(names)
	if len(names) > 0 {
		text += "Intervals: " + strings.Join(names, "; ") + ". "
	}
	return doc.P(text, doc.Code("explain doc statistics"), " has the formulae.")
}
