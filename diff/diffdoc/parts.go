package diffdoc

import (
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
)

// judgedTable is the table of the primary numbers, each with the rule that judged it and the result.
func judgedTable(c *comparison.Comparison) doc.Table {
	rows := rowsToShow(c, maxPrimary)
	t := primaryTable(c, rows)
	if len(t.Rows) == 0 {
		return t
	}
	n := len(t.Columns) - 1 // the verdict replaces the class; the method says how each was decided
	t.Columns = append(t.Columns[:n:n], doc.Cols("Threshold", "Verdict")...)
	for i := range rows {
		threshold, verdict := comparison.NoValue, doc.Text("not judged").With(doc.Muted)
		if g := gateOf(c, &rows[i]); g != nil {
			threshold = clip(g.Threshold)
			verdict = doc.Text(string(g.Verdict)).With(verdictTones[g.Verdict])
			if g.Waiver != nil {
				verdict.Text += ", waiver " + g.Waiver.Status
			}
			if g.Verdict == comparison.Fail {
				verdict.Kind = doc.KindStrong
			}
		}
		t.Rows[i] = append(t.Rows[i][:n:n], doc.Row(threshold, verdict)...)
	}
	return t
}

// gateOf returns the gate that judged a row, the last one if there are several.
func gateOf(c *comparison.Comparison, r *comparison.Row) *comparison.Gate {
	for i := len(c.Gates) - 1; i >= 0; i-- {
		if g := &c.Gates[i]; g.Metric == r.Metric && g.Labels.String() == r.Labels.String() {
			return g
		}
	}
	return nil
}

// whyBlocks is the evidence: the parts of the change, the structure, the kernels and host calls that changed, and the
// gates that did not pass.
func whyBlocks(c *comparison.Comparison) []doc.Block {
	var why []doc.Block
	if c.Comparable {
		if moved(c) {
			why = append(why, attributionTable(c, commentParts, false))
		}
		api := apiTable(c, true)
		if n := len(api.Rows) - commentKernels; n > 0 {
			api.Rows = api.Rows[:commentKernels]
			andMore(&api, n)
		}
		why = append(why, kernelTable(c, changedKernels(c), commentKernels, false), api, structureList(c))
	}
	return append(doc.Part(doc.H(commentLevel+1, "why", "Why"), why...), notPassed(c, commentLevel+1, commentGates)...)
}

// detailBlocks returns the folded parts.
func detailBlocks(c *comparison.Comparison) []doc.Block {
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
	all := kernelTable(c, append(changed, same...), len(changed)+commentSame, true)
	fresh := kernelTable(c, added, len(added), false)
	all.Caption, fresh.Caption = nil, nil
	var residues doc.List // a line for each field, so that a long list is cut between lines
	for _, r := range c.Residue {
		residues.Add(words(r.Field)+": ", residueValue(r.Base), " → ", residueValue(r.Head))
	}
	how := doc.Some(decisions(c))
	if len(how) > 0 {
		how = append(how, methodText(c))
	}
	return doc.Some(
		doc.Fold("", "Kernels ("+unit.Int(c.Counts.KernelsCompared)+" compared, "+unit.Int(c.Counts.KernelsPaired)+" paired)", all),
		doc.Fold("", "Kernels added or removed ("+unit.Int(int64(len(added)))+")", fresh),
		doc.Fold("", "Mix of units", mixTable(c)),
		doc.Fold("", "Tokens, and time outside the units", unjudgedTable(c)),
		doc.Fold("", "Environment: what else differs", residues),
		doc.Fold("", wording.Count(len(c.Waivers), "waiver"), waiverTable(c)),
		doc.Fold("", wording.Count(len(c.Gates), "gate"), ruleTable(c)),
		doc.Fold("", "Method: how each number was decided", how...),
	)
}

// waiverTable lists every waiver of the policy and its status.
func waiverTable(c *comparison.Comparison) doc.Table {
	t := doc.Table{ID: "waivers", Columns: doc.Cols("Rule", "Kernels", ">Ceiling", "Expires", "Issue", "Reason",
		"Status")}
	name := func(s string) doc.Span {
		if s == "" {
			return doc.Text(comparison.NoValue)
		}
		return doc.Name(s)
	}
	for _, w := range c.Waivers {
		status := doc.Text(words(w.Status))
		if w.Status != "applied" {
			status = status.With(doc.Warn)
		}
		t.Row(name(w.Rule), name(w.Match), name(w.Ceiling), name(w.Expires), name(w.Issue), clip(w.Reason), status)
	}
	return t
}

// ruleTable counts the results of each rule, in the order in which rules first judged.
func ruleTable(c *comparison.Comparison) doc.Table {
	var rules []*comparison.Gate
	counts := map[string]map[comparison.Verdict]int64{}
	key := func(g *comparison.Gate) string { return g.Rule + "\x00" + g.Threshold + "\x00" + g.Level }
	for i := range c.Gates {
		g := &c.Gates[i]
		if counts[key(g)] == nil {
			counts[key(g)] = map[comparison.Verdict]int64{}
			rules = append(rules, g)
		}
		counts[key(g)][g.Verdict]++
	}
	t := doc.Table{ID: "rules", Columns: doc.Cols("Rule", "Metric", "Level", ">Checked", "Result")}
	for _, g := range rules {
		var parts []string
		total := int64(0)
		for _, v := range []comparison.Verdict{comparison.Fail, comparison.Error, comparison.Inconclusive,
			comparison.Warn, comparison.Pass} {
			if n := counts[key(g)][v]; n > 0 {
				parts = append(parts, unit.Int(n)+" "+string(v))
				total += n
			}
		}
		t.Row(ruleSpans(g), doc.Code(g.Metric), g.Level, unit.Int(total), strings.Join(parts, ", "))
	}
	return t
}

// methodText names the statistics that decided the numbers, and where they are documented.
func methodText(c *comparison.Comparison) doc.Paragraph {
	text := "Several captures a side are tested with the spread between captures. "
	if unreplicated(c) {
		text = "One capture on a side: a duration fails only if its change is larger than the rule, larger than the noise floor and certain by the units inside the captures. "
	}
	var names []string
	for _, r := range c.Primary {
		if x := r.Interval; x != nil && len(names) < maxPrimary && !slices.Contains(names, clip(x.Method)) {
			names = append(names, clip(x.Method))
		}
	}
	slices.Sort(names)
	if len(names) > 0 {
		text += "Intervals: " + strings.Join(names, "; ") + ". "
	}
	return doc.P(text, doc.Code("explain doc statistics"), " has the formulae.")
}
