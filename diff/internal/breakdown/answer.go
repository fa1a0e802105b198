package breakdown

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/pairing"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// Parts are the parts of a comparison's change, of one kind of unit.
type Parts struct {
	C          *comparison.Comparison // is read, and never written
	Base, Head *side.Side             // of the attributed kind of unit
	Chosen     pairing.Chosen
	Limits     Limits
	Floor      float64 // change of the unit's time that noise alone rarely exceeds, a ratio of the base

	names *kernelNames
	fused *fused // nil until it is asked for
}

// Answer returns the comparison's result, once its gates stand: the number of the gate that decided, and what makes up
// that number's change. It takes the kind of unit of the headline or, if the headline has no kind, the one that
// contributes most to the change; the attribution that it returns is of the same kind.
func (x *Parts) Answer() (a comparison.Answer, by comparison.Attribution) {
	c := x.C
	x.names = &kernelNames{base: x.Base, head: x.Head}
	by = c.Attribution
	switch {
	case c.Identical:
		a.Direction, a.Notes = comparison.Unchanged, []string{"every number that both sides have is equal"}
	case !c.Comparable && len(c.Reasons) > 0:
		a.Direction, a.Notes = comparison.NotComparable, []string{c.Reasons[0].Text}
	case c.Depth == comparison.DepthEvidence:
		a = ofEvidence(c)
	case c.Row("unit.time.mean") == nil:
		a.Notes = []string{"nothing could be compared"}
	default:
		by = x.answer(&a)
	}
	for _, text := range []string{lacksText(c), loadText(c, a.Direction)} {
		switch {
		case text == "":
		case a.Direction == comparison.NotComparable:
			a.Notes = append(a.Notes, text)
		default:
			a.Notes = slices.Insert(a.Notes, 0, text)
		}
	}
	return a, by
}

// answer fills in the answer for units of work, and returns the attribution of the kind of unit that it is about.
func (x *Parts) answer(a *comparison.Answer) comparison.Attribution {
	c := x.C
	stories := x.stories()
	lead := stories[0]
	a.Of = lead.some()
	row := x.number(a, lead)
	if lead.parts != nil {
		lead.explain(a, lead.what == "" && (row == nil || row.Metric != comparison.MetricWork))
	}
	note := func(text string) {
		if text != "" && !slices.Contains(a.Notes, text) {
			a.Notes = append(a.Notes, text)
		}
	}
	if row != nil && (row.Metric == "unit.time.mean" || row.Metric == "unit.time.p50") && lead.parts != nil {
		note(lead.parts.alone(row))
	}
	if row != nil && row.Metric == comparison.MetricWork && lead.what == "" {
		a.Notes = append([]string{lead.changed(c.Verdict)}, a.Notes...)
	}
	if lead.what != "" {
		a.Notes = append([]string{lead.what}, a.Notes...)
	}
	for _, s := range stories[1:] {
		note(s.text(c.Verdict))
	}
	if work := c.Row(comparison.MetricWork); work != nil && row != work && work.Class == comparison.Regressed {
		note("base's work takes " + rowChange(work) + " at head's times")
	}
	if c.Has(comparison.GraphCaptureMismatch) && c.Depth == comparison.DepthUnit {
		note("CUDA graphs hide kernels on one side: single kernels are not compared")
	}
	if x.Base.Foreign() || x.Head.Foreign() {
		note(fmt.Sprintf("not every report has the kernels of GPU %d: single kernels are not compared", x.Chosen.Device))
	}
	note(x.Chosen.Moved)
	for _, text := range x.otherDevices() {
		note(text)
	}
	if !slices.ContainsFunc(stories, func(s *story) bool { return s.what != "" }) {
		note(mixText(c.Mix, x.Chosen.Kind))
	}
	note(unjudgedText(c, x.Base.Captures))
	note(x.elsewhere(a.String()))
	if text := settling(c, min(len(x.Base.Captures), len(x.Head.Captures))); text != "" {
		a.Notes = slices.Insert(a.Notes, 0, text)
	}
	by := c.Attribution
	if lead.parts != x && lead.what == "" {
		by = lead.parts.C.Attribution
		by.Kind = lead.parts.Chosen.Kind.String()
	}
	return by
}

// fewCaptures is the least number of captures a side that is advised if a change is large and uncertain.
const fewCaptures = 3

// settling says what would settle a comparison that is inconclusive because a unit's time changed by more than its rule
// allows, but not for certain. It is empty otherwise, and if more captures of the same sort would settle nothing. A side
// has n captures or more.
func settling(c *comparison.Comparison, n int) string {
	if c.Verdict != comparison.Inconclusive || !c.Comparable || c.Has(comparison.SameCapture) ||
		c.Has(comparison.IncompleteCapture) || c.Has(comparison.HighOverhead) {
		return ""
	}
	if !slices.ContainsFunc(c.Gates, func(g comparison.Gate) bool {
		return g.CountsAs == comparison.Inconclusive && (g.Code == comparison.WideInterval || g.Code == comparison.TooFewUnits) &&
			comparison.OfTime(g.Metric)
	}) {
		return ""
	}
	need := "more captures"
	if n < fewCaptures {
		need = wording.Count(fewCaptures, "capture")
	}
	return need + " a side would settle it: explain capture --pair --until-decided 'BASE COMMAND' 'HEAD COMMAND'"
}

// number fills in the number that decided, and returns its row, or nil if the gate judged another number. If a median
// lies between two kinds of steps, or its change is not that of the mean, to which the causes add up, the mean is the
// number, unless only the median changed for certain.
func (x *Parts) number(a *comparison.Answer, lead *story) *comparison.Row {
	c := x.C
	row, gate := c.Headline()
	if time := c.Row("unit.time.mean"); time != nil && gate != nil && gate.Verdict == comparison.Inconclusive ||
		row != nil && row.Class == comparison.Unsettled && row.Unit != report.Nanoseconds {
		row, gate = time, nil // the reasons name a count that is not known
	}
	if gate != nil {
		a.Metric, a.From, a.To, a.Direction = gate.Metric, gate.Base, gate.Head, comparison.NotSettled
		if gate.Ratio != nil {
			a.Change = new(comparison.Value(gate.Ratio) - 1)
		}
		if gate.Verdict != comparison.Inconclusive && gate.Base != nil && gate.Head != nil {
			a.Direction = comparison.DirectionOf(gate.Metric, comparison.Value(gate.Head)-comparison.Value(gate.Base))
		}
		if r := c.Row(gate.Metric); r != nil {
			a.Unit = r.Unit
		}
		return nil
	}
	if c.Verdict == comparison.None { // a study is about the step
		row = c.Row("unit.time.p50")
	}
	row = cmp.Or(row, c.Row("unit.time.mean"))
	if p := lead.parts; row.Metric == "unit.time.p50" {
		mean := beside(c.Primary, row, "unit.time.mean")
		if mean != nil && (!comparison.Real(row) || mean.Class == row.Class) &&
			(a.Of != nil || p != nil && (bimodal(p.Base) || bimodal(p.Head)) || apart(row, mean)) {
			row = mean
		}
	}
	a.OfRow(row, c.Verdict)
	warned := func(g comparison.Gate) bool { return g.Of(row) && g.Verdict == comparison.Warn }
	if a.Direction == comparison.Unchanged && row.Class == comparison.Unsettled && slices.ContainsFunc(c.Gates, warned) {
		a.Direction = comparison.NotSettled
	}
	if row.Class == comparison.Unsettled && slices.ContainsFunc(c.Gates, func(g comparison.Gate) bool {
		return g.Of(row) && (g.Class == comparison.Regressed && g.Verdict == comparison.Fail || g.Class == comparison.Improved)
	}) { // its parts decide
		a.Direction = comparison.DirectionOf(row.Metric, comparison.Value(row.Delta))
	}
	if a.Direction == comparison.Unchanged {
		a.Resolution = resolution(c, row)
	}
	switch {
	case row.Metric == comparison.MetricWork:
	case row.Kind == "" && lead.parts != nil:
		a.Per = x.perKind(lead.parts.Chosen.Kind)
	default:
		for _, k := range x.Chosen.Kinds {
			if k.Name.String() == row.Kind {
				a.Per = x.perKind(k.Name)
			}
		}
	}
	return row
}

// beside returns the row of another metric of the same units; nil if there is none.
func beside(primary []comparison.Row, row *comparison.Row, metric string) *comparison.Row {
	return lists.Find(primary, func(r *comparison.Row) bool {
		return r.Metric == metric && r.Kind == row.Kind && r.Labels.String() == row.Labels.String()
	})
}

// apart reports whether the changes of a median and of a mean differ by as much as a cause must have to be told.
func apart(median, mean *comparison.Row) bool {
	m, d := comparison.Value(median.Delta), comparison.Value(mean.Delta)
	return math.Abs(m-d) > max(toldPart*max(math.Abs(m), math.Abs(d)), namedShare*comparison.Value(mean.Base))
}

// resolution is the smallest loss that the gate of a row would have failed. It is nil if no gate of the row passed, or
// if the row changed by more than that either way.
func resolution(c *comparison.Comparison, row *comparison.Row) *float64 {
	passed := lists.Find(c.Gates, func(g *comparison.Gate) bool {
		return g.Of(row) && g.Verdict == comparison.Pass && g.Resolution != nil && row.Ratio != nil &&
			math.Abs(comparison.Value(row.Ratio)-1) <= comparison.Value(g.Resolution)
	})
	return comparison.Value(passed).Resolution
}

// perKind describes a kind of unit, with both batch sizes if the head's is another: decode step, batch 16 → 32. It names
// no phase and no batch size that only one side has.
func (x *Parts) perKind(k side.Kind) string {
	if u := &x.C.Unit; k == x.Chosen.Kind {
		k.Phase = u.Phase
		if u.Batch == nil {
			k.Batch = -1
		}
	}
	if h := x.C.Unit.HeadBatch; h != nil && k == x.Chosen.Kind {
		return strings.Replace(perKind(k), "batch "+unit.Int(k.Batch), "batch "+unit.Int(k.Batch)+" → "+unit.Int(*h), 1)
	}
	return perKind(k)
}

// perKind describes a kind of unit: decode step, batch 16.
func perKind(k side.Kind) string {
	phase, _, _ := strings.Cut(k.Phase, ":")
	text := phase + " step"
	switch phase {
	case "", "step":
		text = "step"
	case "prefill":
		text = phase
	}
	if k.Batch >= 0 {
		text += ", batch " + unit.Int(k.Batch)
	}
	if k.Tokens >= 0 {
		text += ", " + unit.Int(k.Tokens) + " prompt tokens"
	}
	return text
}

// toldPart is the least share of the change for which a cause gets a row.
const toldPart = 0.1

// explain fills in the causes, and the notes beside them. If closes is set, Rest makes the rows sum to the change.
func (s *story) explain(a *comparison.Answer, closes bool) {
	c := s.parts.C
	t := &c.Attribution
	list, against := s.effects(a.Direction == comparison.Slower || a.Direction == comparison.Faster)
	a.Rows = append(a.Rows, list[:min(len(list), comparison.MaxAnswerRows)]...)
	if closes && len(t.Rows) > 0 {
		rest := t.TotalDelta
		for i := range a.Rows {
			rest -= a.Rows[i].Delta
		}
		a.Rest = &rest
		median := comparison.Value(a.To) - comparison.Value(a.From)
		d := t.TotalDelta
		apart := math.Abs(median-d) > toldPart*max(math.Abs(median), math.Abs(d))
		if a.Metric == "unit.time.p50" && len(a.Rows) > 0 && apart {
			a.Notes = append(a.Notes, "these causes are of the mean step: "+delta(d))
		}
	}
	if against != "" {
		a.Notes = append(a.Notes, against)
	}
	text := a.String()
	form := ""
	if s.what == "" {
		form = otherForm(s.parts.Base, s.parts.Head)
	}
	for _, t := range []string{warmups(s.parts.Base, s.parts.Head), stalls(s.parts.Base, s.parts.Head),
		structural(c.Structure, text), replaced(c.Kernels, s.parts.names, namedShare*t.Base, text), form} {
		if t != "" {
			a.Notes = append(a.Notes, t)
		}
	}
}

// effects returns the causes of the change of the unit's time, largest first. If the change itself is neither settled
// nor told as one, a cause is named only if it exceeds the noise floor of the unit's time, or if its kernels alone show
// the change, unless all of these go the other way; if there is next to none, only those that exceed the floor, a gain
// and a loss, and a kernel that is known to have changed in time in which the device idled.
func (s *story) effects(told bool) (list []comparison.AnswerRow, note string) {
	x, rows := s.parts, s.parts.split()
	a := &x.C.Attribution
	still := math.Abs(a.TotalDelta) < pairing.LeastPart*a.Base
	if a.Base <= 0 || still && s.what != "" {
		if s.what != "" {
			list = otherRuns(x.Base, x.Head, x.names)
		}
		return list, ""
	}
	class := timeClass(rowsOf(x.C.Primary, x.Chosen.Kind))
	settled := told || class == comparison.Regressed || class == comparison.Improved
	compute := rows.part(comparison.ClassCompute)
	all := append(s.computeRows(), s.waitRows()...)
	if d := rows.part(comparison.ClassComm).Delta; x.C.Depth == comparison.DepthKernel && d != 0 {
		all = append(all, comparison.AnswerRow{Delta: d, Part: comparison.AnswerComm,
			What: "exposed communication " + rows.change(comparison.ClassComm),
			With: append(findings(x.C.Structure, comparison.FoundCommunication), s.commText(d)...)})
	}
	fill := false
	for _, r := range all {
		kernel := r.Part == comparison.AnswerKernel || r.Part == comparison.AnswerKernels
		loud := math.Abs(r.Delta) > x.Floor*a.Base || !still && (settled || kernel && s.ownEvidence(r.Delta))
		if f := comparison.Value(x.C.Step).Filled; !loud && math.Abs(r.Delta) >= namedShare*a.Base && 2*math.Abs(f) >= math.Abs(r.Delta) {
			fill = fill || kernel && f*r.Delta < 0 && s.ownEvidence(r.Delta)
			loud = fill && (kernel || r.Part == comparison.AnswerIdle)
		}
		if loud && math.Abs(r.Delta) >= toldPart*math.Abs(a.TotalDelta) {
			list = append(list, r)
		}
	}
	explains := func(r comparison.AnswerRow) bool {
		return still || settled || r.Delta*a.TotalDelta > 0 || math.Abs(r.Delta) > x.Floor*a.Base
	}
	if !slices.ContainsFunc(list, explains) {
		list = nil
	}
	lists.Sort(list, func(p, q comparison.AnswerRow) int {
		return cmp.Or(cmp.Compare(sign(q.Delta*a.TotalDelta), sign(p.Delta*a.TotalDelta)),
			cmp.Compare(math.Abs(q.Delta), math.Abs(p.Delta)))
	})
	if len(list) > 0 && list[0].Part == comparison.AnswerIdle &&
		math.Abs(compute.Delta) < causePart*math.Abs(a.TotalDelta) {
		note = "GPU compute " + rows.change(comparison.ClassCompute) + " (" + delta(compute.Delta) + ")"
		if math.Abs(compute.Delta) <= commonLeast*compute.Base {
			note = "GPU compute unchanged (" + rows.change(comparison.ClassCompute) + ")"
		}
	}
	return list, note
}

// findings returns the texts of the structural findings with this identifier.
func findings(found []comparison.Structural, id string) []string {
	return texts(found, func(s comparison.Structural) bool { return s.ID == id || strings.HasPrefix(s.ID, id+"/") })
}

func texts(found []comparison.Structural, is func(comparison.Structural) bool) []string {
	return lists.Map(lists.Filter(found, is), func(s comparison.Structural) string { return s.Text })
}

// waitRows returns the idle time and the exposed copies: one row if a blocking call and its copy make the GPU wait,
// else a row each. Waiting for other streams and devices gets its own row if it is a large enough part of the change.
func (s *story) waitRows() []comparison.AnswerRow {
	total, rows := math.Abs(s.parts.C.Attribution.TotalDelta), s.parts.split()
	idle, copies := rows.part(comparison.ClassIdle).Delta, rows.part(comparison.ClassCopy).Delta
	other := rows.part("dependency").Delta + rows.part("unknown").Delta
	var list []comparison.AnswerRow
	causes := report.StepCauses
	if math.Abs(other) >= toldPart*total && math.Abs(idle-other) >= toldPart*total {
		idle -= other
		causes = slices.DeleteFunc(slices.Clone(causes), func(c string) bool { return c == "dependency" || c == "unknown" })
		list = append(list, comparison.AnswerRow{Delta: other, Part: comparison.AnswerIdle,
			What: "GPU idle: work waits for other streams or devices"})
	}
	row := s.parts.idleRow(idle, causes)
	moved := s.parts.copied(copies)
	calls := blocked(s.parts.C.Structure, rows.part("sync").Delta, idle)
	if len(calls) > 0 {
		row.What = "GPU " + more(idle, "waits", "waits less")
		row.With = append(calls, row.With...)
		if len(moved) > 0 && idle*copies >= 0 {
			row.Delta += copies
			row.With = slices.Insert(row.With, len(calls), moved...)
			copies = 0
		}
	}
	if copies != 0 {
		list = append(list, comparison.AnswerRow{Delta: copies, Part: comparison.AnswerCopy,
			What: "exposed copies " + rows.change(comparison.ClassCopy), With: moved})
	}
	return append(list, row)
}

// blocked returns the blocking calls that increase or decrease along with idle time, and with that of blocking calls.
func blocked(found []comparison.Structural, sync, idle float64) []string {
	return texts(found, func(s comparison.Structural) bool {
		return strings.HasPrefix(s.ID, comparison.FoundBlocking) && sync*idle > 0 &&
			(comparison.Value(s.Head)-comparison.Value(s.Base))*idle > 0
	})
}

// copied returns the copies that increase or decrease along with exposed copies; for each direction, only the pageable
// ones if those changed. A copy that the base never makes is named however rare it is, and copies in some units only with
// these.
func (x *Parts) copied(d float64) []string {
	list := texts(x.C.Structure, func(s comparison.Structural) bool {
		id, direction, ok := strings.Cut(s.ID, "/")
		return ok && (id == comparison.FoundPageable || id == comparison.FoundCopies) &&
			(comparison.Value(s.Head)-comparison.Value(s.Base))*d >= 0 &&
			(id == comparison.FoundPageable || len(findings(x.C.Structure, comparison.FoundPageable+"/"+direction)) == 0)
	})
	if d <= 0 {
		return list
	}
	for _, way := range directions(x.Base, x.Head) {
		if b, h, ok := copiesOf(x.Base, x.Head, way, false); ok && b.Count == 0 && h.Count > 0 && len(list) == 0 {
			list = append(list, "new "+way+" copies, "+wording.Means("per unit", h.Count)+", "+unit.Format(h.Bytes, report.Bytes))
		}
	}
	for i := range x.C.Parts {
		if p := &x.C.Parts[i]; p.Kind == report.PartCopy && p.Unit == x.Chosen.Kind.String() && p.Hits != nil && p.Delta >= d/2 {
			list = append(list, p.Name+" copies in "+p.Hits.String())
		}
	}
	return list
}

// idleRow says which cause of this idle time changed most, where, and which host calls changed with it.
func (x *Parts) idleRow(d float64, causes []string) comparison.AnswerRow {
	rows := x.split()
	row := comparison.AnswerRow{Delta: d, Part: comparison.AnswerIdle, What: "GPU idle"}
	if f := comparison.Value(x.C.Step).Filled; f*d > 0 && math.Abs(f) >= math.Abs(d)/2 {
		row.What = more(d, "GPU idle that work no longer fills", "GPU idle, filled by work that takes longer")
		return row
	}
	best, most := 0.0, ""
	for _, cause := range causes {
		if r := rows.part(cause); r.Delta*d > 0 && math.Abs(r.Delta) > math.Abs(best) {
			best, most = r.Delta, cause
		}
	}
	switch most {
	case "host", "launch":
		row.What = more(d, "GPU idle, host slower", "GPU idle, host faster")
		why, call, place := rows.hostText(best), callText(x.C.API, d), idleRange(x.Base, x.Head, d)
		switch {
		case most == "host" && why != "":
			row.With = []string{strings.TrimSuffix("of it "+why+" "+place, " ")}
		case place != "" || len(call) > 0:
			row.Where, row.With = place, call
		default:
			row.What += " between calls"
		}
	case "sync":
		row.What = "GPU idle while the host waits in blocking calls"
		if call := blockingCall(x.C.API, d); call != "" {
			row.What = "GPU idle by " + call
		}
	case "dependency":
		row.What = "GPU idle: work waits for other streams or devices"
	}
	row.Where = strings.Trim(row.Where+" "+idlePlace(x.C.Step, x.names, d), " ")
	return row
}
