// Package diffdoc turns a comparison into documents, for a terminal, for a browser and for a pull request, and into CSV
// and JUnit. It selects and lays out, and computes nothing.
package diffdoc

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
)

// Bounds of the terminal's tables.
const (
	maxPrimary    = 6
	maxMeasuredUp = 16 // if there are only numbers
	termKernelMax = 8
	termGates     = 6
	termResidue   = 4
	maxWarnings   = 6
	maxJudged     = 4   // names of metrics in a sentence
	termText      = 330 // characters of a sentence
)

// Terminal returns what the command prints.
func Terminal(c *comparison.Comparison) doc.Document {
	var d doc.Document
	d.Add(doc.Heading{Level: 1, ID: "verdict", Spans: verdictLine(c)}, doc.P(doc.Strong(sidesText(&c.Answer))), warnedBy(c),
		causeList(&c.Answer, math.MaxInt), doc.P(paragraph(notes(c))), doc.P(sides(c)))
	d.Add(reasons(c)...)
	if shows(c) {
		d.Add(primaryTable(c, rowsToShow(c, mostPrimary(c))))
	}
	if c.Comparable { // parts of different work explain nothing
		if moved(c) {
			d.Add(attributionTable(c))
		}
		d.Add(kernelTable(c, changedKernels(c), termKernelMax, false), apiTable(c, true))
		d.Add(doc.Part(doc.H(2, "structure", "Structure"), structureList(c))...)
	}
	d.Add(rankBlocks(c, termRanks)...)
	d.Add(doc.Part(doc.H(2, "gates", "Gates that did not pass"), gateList(c, termGates))...)
	d.Add(doc.Part(doc.H(2, "waivers", "Waivers"), waiverList(c, termGates))...)
	checked := checkedText(c)
	if hidden := len(c.Primary) - mostPrimary(c); shows(c) && hidden > 0 {
		checked += " --format md shows " + wording.Count(hidden, "more metric") + "."
	}
	d.Add(residue(c, termResidue), doc.P(checked))
	return d
}

// mostPrimary is how many rows the first table shows.
func mostPrimary(c *comparison.Comparison) int {
	if c.Depth == comparison.DepthEvidence {
		return maxMeasuredUp
	}
	return maxPrimary
}

var (
	verdictTones = map[comparison.Verdict]doc.Tone{comparison.Pass: doc.Good, comparison.Warn: doc.Warn,
		comparison.Inconclusive: doc.Warn, comparison.Fail: doc.Bad, comparison.Error: doc.Bad}
	classTones = map[comparison.Class]doc.Tone{comparison.Improved: doc.Good, comparison.Regressed: doc.Bad,
		comparison.Unsettled: doc.Warn, comparison.Same: doc.Muted}
)

// classWord is the name of a class in its colour.
func classWord(c comparison.Class) doc.Span { return doc.Text(string(c)).With(classTones[c]) }

// changeWord is the class of a change by d. A study has no better and no worse, so it says the direction.
func changeWord(c *comparison.Comparison, class comparison.Class, d float64) doc.Span {
	if c.Study == nil || d == 0 || class == comparison.Same || class == comparison.Added || class == comparison.Removed {
		return classWord(class)
	}
	return doc.Text(string(comparison.DirectionOf("", d)))
}

// rowClass is the class of a row. A change that is neither better nor worse says its direction: in a study no change is
// meant to be either, and for some numbers neither way is.
func rowClass(c *comparison.Comparison, r *comparison.Row) doc.Span {
	sized := r.Base != nil && r.Head != nil && r.Class != comparison.Same && r.Class != comparison.Unsettled
	if sized && (c.Study != nil || r.Class == comparison.Added || r.Class == comparison.Removed) {
		return doc.Text(string(comparison.DirectionOf(r.Metric, comparison.Value(r.Delta))))
	}
	return classWord(r.Class)
}

// ratioText formats head over base as a change; empty if it is unknown.
func ratioText(ratio *float64) string {
	return report.Of(ratio, func(x float64) string { return unit.Change(x - 1) }, "")
}

// verdictWord is a verdict as in headings. A study has none.
func verdictWord(v comparison.Verdict) doc.Span {
	if v == comparison.None {
		return doc.Strong("STUDY")
	}
	return doc.Strong(strings.ToUpper(string(v))).With(verdictTones[v])
}

// verdictLine is the verdict with the number that decided it.
func verdictLine(c *comparison.Comparison) []doc.Span {
	spans := doc.Spans(verdictWord(c.Verdict))
	switch {
	case c.Study != nil && c.Study.Step != nil:
		step, more, _ := strings.Cut(c.Study.String(), ",")
		if step += stepInterval(c); more != "" {
			step += "," + more
		}
		return append(spans, doc.Text(" of "+c.Study.About()+": "+step))
	case c.FirstRun():
		return append(spans, budgetsLine(c)...)
	case c.Verdict == comparison.Fail && overBudget(c) || nothingFailed(c):
		g := &standing(c)[0]
		spans = doc.Spans(spans, " ", gateMetric(c, g), ": "+clip(g.Reason))
		if g.Verdict == comparison.Inconclusive && c.Verdict == comparison.Fail {
			spans = append(spans, doc.Text(" (the policy lets that fail)"))
		}
		if size := c.Answer.Size(); size != "" {
			spans = append(spans, doc.Text("; against the base: "+size))
		}
		return spans
	case !c.Comparable:
		return append(spans, doc.Text(" not comparable"))
	}
	if r := decisive(c); r != nil && r.Code == comparison.SameCapture && c.Identical && c.Verdict != comparison.Fail {
		return doc.Spans(doc.Strong("EQUAL").With(doc.Good), " in every number: "+clip(r.Text)+" (", spans, " "+string(r.Code)+")")
	} else if r != nil {
		why := " " + string(r.Code) + ": " + clip(r.Text)
		if c.Verdict == comparison.Fail {
			why += " (the policy lets that fail)"
		}
		return append(spans, doc.Text(why))
	}
	if _, gate := c.Headline(); gate != nil && (c.Answer.Metric == gate.Metric || gate.Verdict == comparison.Fail) {
		return doc.Spans(spans, " ", gateMetric(c, gate), ": "+clip(gate.Reason))
	}
	if c.Study != nil {
		spans = append(spans, doc.Text(" of "+c.Study.About()+":"))
	}
	if size := c.Answer.Size(); size != "" {
		spans = append(spans, doc.Text(" "+size))
	}
	return spans
}

// stepInterval is where the ratio of the steps that a study states truly lies; empty if that is not known.
func stepInterval(c *comparison.Comparison) string {
	row := cmp.Or(c.Row("unit.time.p50"), c.Row("unit.time.mean"))
	if row == nil || row.Interval == nil {
		return ""
	}
	return fmt.Sprintf(" (%s %.4g … %.4g)", intervalTitle([]comparison.Row{*row}), row.Interval.Low, row.Interval.High)
}

// budgetsLine is the result of the budgets if there is no baseline: failures come first.
func budgetsLine(c *comparison.Comparison) []doc.Span {
	gates, all := standing(c), c.Counts.GatesChecked
	if len(gates) == 0 {
		return keptBudgets(c)
	}
	text := " " + wording.Count(all, "budget") + ": "
	if n := len(gates); int64(n) < all {
		text = " " + unit.Int(n) + " of" + text
	}
	spans := doc.Spans(text, gateMetric(c, &gates[0]), ": "+clip(gates[0].Reason))
	if n := len(gates) - 1; n > 0 {
		spans = append(spans, doc.Text(", and "+unit.Int(n)+" more"))
	}
	if budgetsOnly(c) {
		return spans
	}
	return append(spans, doc.Text("; no baseline to compare with"))
}

// budgetsOnly reports whether the policy has no rule that needs a baseline, so that none is missed.
func budgetsOnly(c *comparison.Comparison) bool { return c.FirstRun() && c.Policy.Rules == 0 }

// keptBudgets is the first budget that was checked, and how many there are.
func keptBudgets(c *comparison.Comparison) []doc.Span {
	all := c.Counts.GatesChecked
	g := lists.Find(c.Gates, func(g *comparison.Gate) bool { return g.Verdict == comparison.Pass && g.Head != nil })
	if g == nil {
		text := wording.Count(all, "budget") + " checked"
		if !budgetsOnly(c) {
			text = "no baseline: " + text
		}
		return doc.Spans(" " + text)
	}
	text := " " + format(g.Head, unitOf(c, g)) + ", budget " + strings.TrimPrefix(limitText(g.Threshold), "at most ")
	if all > 1 {
		text += ", and " + wording.Count(all-1, "budget") + " more"
	}
	if !budgetsOnly(c) {
		text += " (no baseline)"
	}
	return doc.Spans(" ", gateMetric(c, g), text)
}

// warnedBy says which rule makes the verdict a warning, unless the verdict's line or the list of the structure does.
func warnedBy(c *comparison.Comparison) (p doc.Paragraph) {
	if c.Verdict != comparison.Warn || !c.Comparable || len(c.Overrides) > 0 {
		return p
	}
	gates := slices.DeleteFunc(standing(c), func(g comparison.Gate) bool {
		return g.Metric == comparison.MetricStructure
	})
	if len(gates) == 0 {
		return p
	}
	reason, _, _ := strings.Cut(gates[0].Reason, "; ")
	more := "."
	if n := len(gates) - 1; n > 0 {
		more = ", and " + unit.Int(n) + " more."
	}
	return doc.P("Warned by the rule ", doc.Name(gates[0].Rule), ": ", gateMetric(c, &gates[0]), " "+clip(reason)+more)
}

// overBudget reports whether budgets alone decide the verdict: they hold for the head, whatever the change was.
func overBudget(c *comparison.Comparison) bool {
	list := standing(c)
	return len(list) > 0 && !slices.ContainsFunc(list, func(g comparison.Gate) bool {
		return !strings.HasPrefix(g.Threshold, "<=") && !strings.HasPrefix(g.Threshold, ">=")
	})
}

// nothingFailed reports whether gates that could not judge decide a verdict, and the answer does not say so.
func nothingFailed(c *comparison.Comparison) bool {
	list := standing(c)
	return c.Comparable && len(list) > 0 && c.Answer.Direction != comparison.NotSettled &&
		!slices.ContainsFunc(list, func(g comparison.Gate) bool { return g.Verdict != comparison.Inconclusive })
}

// standing returns the gates that decide the verdict, or that decided it before a label accepted it; none if it is a
// pass.
func standing(c *comparison.Comparison) []comparison.Gate {
	verdict := c.Verdict
	if len(c.Overrides) > 0 {
		verdict = c.Overrides[0].From
	}
	return lists.Filter(c.Gates, func(g comparison.Gate) bool {
		return g.CountsAs == verdict && c.Verdict != comparison.Pass
	})
}

// decisive returns the reason for the verdict if no gate decides it; else nil.
func decisive(c *comparison.Comparison) *comparison.Reason {
	if slices.ContainsFunc(c.Gates, func(g comparison.Gate) bool { return g.CountsAs == c.Verdict }) {
		return nil
	}
	return lists.Find(c.Reasons, func(r *comparison.Reason) bool {
		return r.Code == comparison.SameCapture || r.Code == comparison.IncompleteCapture ||
			r.Code == comparison.HighOverhead || r.Code == comparison.MissingKind
	})
}

func format(v *float64, u string) string {
	return report.Of(v, func(x float64) string { return unit.Format(x, u) }, comparison.NoValue)
}

// sides names what was compared.
func sides(c *comparison.Comparison) []doc.Span {
	spans := doc.Names(c.Head.Names)
	if !c.FirstRun() {
		spans = doc.Spans(doc.Names(c.Base.Names), " → ", spans)
	}
	spans = append(spans, engines(c)...)
	if c.FirstRun() {
		return append(spans, doc.Text(" · "+wording.Count(c.Head.Captures, "capture")))
	}
	if c.Unit.Kind != "" && c.Unit.Kind != "none" {
		spans = append(spans, doc.Text(" · per unit of work ("+c.Unit.Kind))
		if c.Unit.Name != "" {
			spans = append(spans, doc.Text(" "), doc.Name(c.Unit.Name))
		}
		if c.Unit.Phase != "" {
			spans = append(spans, doc.Text(", "), doc.Name(c.Unit.Phase))
		}
		text := ""
		if c.Unit.Batch != nil {
			text += ", batch " + unit.Int(comparison.Value(c.Unit.Batch))
		}
		if c.Unit.HeadBatch != nil {
			text += " → " + unit.Int(comparison.Value(c.Unit.HeadBatch))
		}
		if c.Unit.Tokens != nil {
			text += ", " + unit.Int(comparison.Value(c.Unit.Tokens)) + " prompt tokens"
		}
		text += ")" + gpuText(&c.Unit) + ": " + unit.Int(c.Unit.BaseN) + " → " + wording.Count(c.Unit.HeadN, "unit")
		if b, h := c.Unit.BaseCoverage, c.Unit.HeadCoverage; b != nil && h != nil {
			text += ", which cover " + arrow(unit.Percent(*b), unit.Percent(*h)) + " of GPU compute time"
		}
		spans = append(spans, doc.Text(text))
	}
	if c.Unreplicated() {
		return append(spans, doc.Text(" · unreplicated: one capture on a side"))
	}
	return append(spans, doc.Text(" · "+strconv.Itoa(c.Base.Captures)+" → "+wording.Count(c.Head.Captures, "capture")))
}

// gpuText names the GPU that is compared, of several.
func gpuText(u *comparison.Unit) string {
	if u.BaseGPU == nil || u.HeadGPU == nil {
		return ""
	}
	of := func(g *comparison.OneGPU) string { return "GPU " + unit.Int(g.Device) + " of " + unit.Int(g.Of) }
	return " on " + arrow(of(u.BaseGPU), of(u.HeadGPU))
}

// engines names the engines of both sides with their versions. If one is unknown, it says which.
func engines(c *comparison.Comparison) []doc.Span {
	b, h := c.Base.Engine, c.Head.Engine
	of := func(side, engine string) []doc.Span {
		if engine == "" {
			return doc.Spans(side + ": engine unknown")
		}
		return doc.Spans(side+": ", doc.Name(engine))
	}
	switch {
	case b == "" && h == "":
		return nil
	case b == h || c.FirstRun():
		return doc.Spans(" · ", doc.Name(h))
	case b == "" || h == "":
		return doc.Spans(" · ", of("base", b), " → ", of("head", h))
	}
	return doc.Spans(" · ", doc.Name(b), " → ", doc.Name(h))
}

// reasons lists why the sides are not comparable, or not conclusive, and what limits trust in them.
func reasons(c *comparison.Comparison) []doc.Block {
	why, doubts := doc.Note{Kind: doc.Info}, doc.Note{Kind: doc.Caution}
	budgetsSay := c.Verdict == comparison.Pass || len(standing(c)) > 0 // no rule on changes made it worse
	if !c.Comparable && !(c.FirstRun() && budgetsSay) {
		why.Kind = doc.Caution
	}
	list := c.Reasons
	if len(list) > 0 && len(c.Answer.Notes) > 0 && !c.Comparable && !c.Identical && !c.FirstRun() {
		list = list[1:] // the answer already states the first one
	}
	for _, r := range list {
		if r.Code == comparison.NoBaseline && budgetsOnly(c) {
			continue
		}
		why.Blocks = append(why.Blocks, doc.P(doc.Code(string(r.Code)), ": "+r.Text))
	}
	for i, r := range c.Warnings {
		if i == maxWarnings {
			more := wording.Count(len(c.Warnings)-i, "more warning")
			doubts.Blocks = append(doubts.Blocks, doc.P(more+" in the JSON of the comparison"))
			break
		}
		doubts.Blocks = append(doubts.Blocks, doc.P(doc.Code(string(r.Code)), ": "+clip(r.Text)))
	}
	return doc.Some(why, doubts)
}

// moved reports whether the time of a unit changed, so that there is a change to explain.
func moved(c *comparison.Comparison) bool {
	return slices.ContainsFunc(c.Primary, func(r comparison.Row) bool {
		return strings.HasPrefix(r.Metric, "unit.time") && r.Class != comparison.Same
	})
}

// checkedText says how much was checked, even if nothing changed.
func checkedText(c *comparison.Comparison) string {
	if c.FirstRun() {
		return gatesText(c) + judgedAlone(c)
	}
	text := gatesText(c) + " Compared " + wording.Count(c.Counts.MetricsCompared, "metric")
	if c.Counts.KernelsCompared > 0 {
		text += ", " + wording.Count(c.Counts.KernelsCompared, "kernel") + " (" + unit.Int(c.Counts.KernelsPaired) + " paired)"
	}
	if c.Counts.UnitsBase > 0 || c.Counts.UnitsHead > 0 {
		text += ", " + unit.Int(c.Counts.UnitsBase) + " → " + wording.Count(c.Counts.UnitsHead, "unit")
	}
	return text + "."
}

// judgedAlone names what was judged on the head alone: the metrics of the budgets.
func judgedAlone(c *comparison.Comparison) string {
	checked := lists.Filter(c.Gates, func(g comparison.Gate) bool { return g.Checked() })
	byMetric := lists.Groups(checked, func(g comparison.Gate) string { return g.Metric })
	names := lists.Map(byMetric, func(same []comparison.Gate) string { return same[0].Metric })
	if len(names) == 0 {
		return ""
	}
	return " Judged on the head alone: " + wording.Some(names[:min(len(names), maxJudged)], len(names)) + "."
}

// gatesText counts the results of the gates.
func gatesText(c *comparison.Comparison) string {
	if c.Study != nil {
		return "A study has no verdict: no gate was asked."
	}
	passed, warned := "passed", "warned"
	if why := decisive(c); why != nil && why.Code == comparison.SameCapture {
		passed = "passed, which proves nothing, since base and head are not two captures"
	}
	if a := accepted(c); a > 0 {
		passed += " (" + unit.Int(a) + " by a waiver)"
	}
	if s := lists.Count(c.Gates, warnsOfStructure); s > 0 {
		warned += " (" + unit.Int(s) + " of them about structure)"
	}
	words := []verdictCount{{comparison.Pass, passed}, {comparison.Warn, warned}, {comparison.Fail, "failed"},
		{comparison.Inconclusive, "inconclusive"}}
	checked := lists.Filter(c.Gates, func(g comparison.Gate) bool { return g.Checked() })
	results := tally(checked, words, func(g comparison.Gate) comparison.Verdict { return g.Verdict })
	text := wording.Count(c.Counts.GatesChecked, "gate") + " checked"
	if len(results) > 0 {
		text += ": " + strings.Join(results, ", ")
	}
	if left := int64(len(c.Gates)) - c.Counts.GatesChecked; left > 0 {
		text += "; " + unit.Int(left) + " had nothing to judge"
		if !c.Comparable && !c.FirstRun() {
			text += ", since the sides are not comparable"
		}
	}
	if w := idleWaivers(c); w > 0 {
		text += "; " + wording.Count(w, "waiver") + " unused or expired"
	}
	return text + "."
}

// verdictCount is a verdict, and the words that follow the number of those that have it.
type verdictCount struct {
	verdict comparison.Verdict
	words   string
}

// tally says how many items have each verdict: "2 failed", "1 warned". It leaves out verdicts that no item has.
func tally[T any](list []T, say []verdictCount, of func(T) comparison.Verdict) (parts []string) {
	for _, v := range say {
		if n := lists.Count(list, func(x T) bool { return of(x) == v.verdict }); n > 0 {
			parts = append(parts, unit.Int(n)+" "+v.words)
		}
	}
	return parts
}

// clip keeps the start of a long sentence.
func clip(s string) string { return clipTo(s, termText) }

// clipTo keeps at most limit characters.
func clipTo(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	if r := []rune(s); len(r) > limit {
		return strings.TrimRight(string(r[:limit-2]), " ,;:.") + " …"
	}
	return s
}
