package breakdown

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// computeRows returns the causes of a change of compute time. All kernels share one row if their common shift has the
// sign of the change and explains at least half of it, but for those that stand apart. The kernels of one category
// share one row if together they make up at least half of the change and no single kernel does.
func (s *story) computeRows() []comparison.AnswerRow {
	c, rows := s.parts.C, s.parts.split()
	class := rows.part(comparison.ClassCompute)
	d := class.Delta
	if c.Depth != comparison.DepthKernel {
		comm := rows.part(comparison.ClassComm)
		row := comparison.AnswerRow{Delta: d + comm.Delta, Part: comparison.AnswerBusy, What: "GPU busy",
			With: findings(c.Structure, comparison.FoundGraphs)}
		if base := class.Base + comm.Base; base > 0 {
			row.What += " " + unit.Change(row.Delta/base)
		}
		return []comparison.AnswerRow{row}
	}
	if shift, ok := s.common(); ok && !s.inOneCategory(class, shift.middle) {
		if list := s.commonRows(class, &shift); list != nil {
			return list
		}
	}
	if f := outside(s.parts.Head) - outside(s.parts.Base); f*d > 0 && math.Abs(f) > math.Abs(d)/2 {
		return []comparison.AnswerRow{{Delta: d, Part: comparison.AnswerKernels,
			What: more(d, "more", "less") + " time in kernels that are launched outside the steps"}}
	}
	kernels := s.kernelRows(all)
	if len(kernels) > 0 && math.Abs(kernels[0].Delta) < math.Abs(d)/2 {
		if whole, ok := s.wholeDelta(); ok && math.Abs(d-whole) > math.Abs(d)/2 {
			return []comparison.AnswerRow{{Delta: d, Part: comparison.AnswerKernels,
				What: "kernels run " + more(d, "less", "more") + " beside each other", With: []string{mostOfAll(&kernels[0])}}}
		}
		if r := rows.category(d); r != nil {
			others := func(k *comparison.AttributionRow, _ float64) bool { return k.Category != r.ID }
			return append([]comparison.AnswerRow{s.categoryRow(r)}, s.kernelRows(others)...)
		} else if math.Abs(kernels[0].Delta) < toldPart*math.Abs(c.Attribution.TotalDelta) {
			at := max(slices.IndexFunc(kernels, func(r comparison.AnswerRow) bool { return r.Delta*d > 0 }), 0)
			return []comparison.AnswerRow{{Delta: d, Part: comparison.AnswerKernels,
				What: "GPU compute " + rows.change(comparison.ClassCompute) + ", spread over many kernels",
				With: []string{mostOfAll(&kernels[at])}}}
		}
	}
	return kernels
}

func all(*comparison.AttributionRow, float64) bool { return true }

// commonRows returns a row of the kernels that shifted alike, and one of each other kernel that moved the step on its
// own by as much as a cause must have; nil if the shift is less than half of what these leave.
func (s *story) commonRows(class *comparison.AttributionRow, shift *kernelShift) []comparison.AnswerRow {
	a, d, base, who := &s.parts.C.Attribution, class.Delta, class.Base, "all kernels"
	least := max(toldPart*math.Abs(a.TotalDelta), namedShare*a.Base)
	list := s.kernelRows(func(r *comparison.AttributionRow, delta float64) bool {
		if shift.names[r.ID] || math.Abs(delta-shift.ratio()*r.Base) < least {
			return false
		}
		d, base, who = d-delta, base-r.Base, "all other kernels"
		return true
	})
	if shift.middle*d <= 0 || math.Abs(shift.ratio())*base < math.Abs(d)/2 {
		return nil
	}
	what := s.shiftText(who, shift, d/base)
	return append(list, comparison.AnswerRow{Delta: d, Part: comparison.AnswerKernels, What: what})
}

// oneCategory is the share of a change from which one category holds all of it, and of the compute time up to which
// that is not all there is.
const oneCategory = 0.95

// inOneCategory reports whether the kernels of one category changed and all others did not, though the first take most
// of the time; false if the GPU's clock went the same way.
func (s *story) inOneCategory(class *comparison.AttributionRow, shift float64) bool {
	clock, _, known := clockChange(s.parts.Base, s.parts.Head)
	if known && clock*shift > 0 && math.Abs(clock) >= clockAlike {
		return false
	}
	r := s.parts.split().category(class.Delta)
	return r != nil && math.Abs(class.Delta-r.Delta) <= (1-oneCategory)*math.Abs(class.Delta) &&
		r.Base <= oneCategory*class.Base
}

// wholeDelta is the change of what compute kernels take, beside other kernels or not, ns per unit; ok is false if a report
// lacks it.
func (s *story) wholeDelta() (sum float64, ok bool) {
	base, head := s.parts.Base.MergedCategories(), s.parts.Head.MergedCategories()
	time := func(c side.Work) float64 { return c.Time }
	sum = lists.Sum(lists.Filter(head, computes), time) - lists.Sum(lists.Filter(base, computes), time)
	return sum, len(base) > 0 && len(head) > 0
}

func computes(category side.Work) bool { return category.Name != side.Communication }

// outside is the compute time of kernels that run during the steps and are launched outside them, ns per unit: as far as
// the device computes for longer than the steps' own kernels take.
func outside(s *side.Side) float64 {
	compute := lists.Filter(s.MergedCategories(), computes)
	return lists.Sum(compute, func(c side.Work) float64 { return max(0, c.Alone-c.Time) })
}

// guessClocks names what usually slows or speeds up all kernels of a device alike.
const guessClocks = " (clocks, power or temperature?)"

// medianAlike is the distance of the change of a sum from that of its median part up to which one number says both.
const medianAlike = 0.005

// shiftText says that these kernels changed alike, and whether the GPU's clock did. If only a few steps or one kind of
// step changed, the clock is not the cause; nor need it be if the sides differ on purpose. together is the change of their
// sum, -1 and up, from which the median kernel's can differ.
func (s *story) shiftText(who string, of *kernelShift, together float64) string {
	shift := of.ratio()
	word := more(shift, "slower", "faster")
	if text := otherLengths(allTimes(s.parts.Base), allTimes(s.parts.Head)); text != "" {
		return text
	}
	if !s.inMost(of.names) {
		which := "some"
		if s.some() != nil {
			which = "these"
		}
		return fmt.Sprintf("%s of %s steps %s, %s over all steps", who, which, word, unit.Change(shift))
	}
	text := fmt.Sprintf("%s %s, by %s", who, word, strings.TrimLeft(unit.Change(shift), "+-"))
	if math.Abs(together-shift) > medianAlike {
		text += " in the median"
	}
	x := s.parts
	if other := unmoved(&x.Chosen, x.Base, x.Head, shift); other != nil {
		return text + ", but not those of " + perKind(other.Name)
	}
	clock, text2, known := clockChange(x.Base, x.Head)
	switch {
	case !known && x.C.Study != nil:
		return text
	case !known:
		return text + guessClocks
	case math.Abs(clock-shift) <= max(math.Abs(shift)/4, clockAlike):
		return comparison.Clocks + ": " + text + ", as the GPU's clock went " + text2
	case math.Abs(clock) < clockAlike:
		return text + ", at unchanged clocks (" + text2 + ")"
	}
	return text + ", of which the GPU's clock explains " + unit.Change(clock) + " (" + text2 + ")"
}

// kernelRows returns the changes of the compute kernels that keep takes, the largest first; a kernel and its
// replacements share a row.
func (s *story) kernelRows(keep func(r *comparison.AttributionRow, delta float64) bool) []comparison.AnswerRow {
	deltas, joined := map[string]float64{}, map[string]bool{}
	f, kernels := s.parts.fuse(), s.parts.C.Kernels
	of := f.of
	for i := range f.rows {
		if f.rows[i].Kind == comparison.KindKernel {
			deltas[f.rows[i].ID] = f.rows[i].Delta
		}
	}
	for i := range kernels {
		if kernels[i].SplitOf != nil {
			joined[kernelID(&kernels[i])] = true
		}
	}
	var list []comparison.AnswerRow
	rows := recharged(f.rows, of)
	for i := range rows {
		r := &rows[i]
		if r.Kind != comparison.KindKernel || r.Category == side.Communication || joined[r.ID] || r.Delta == 0 {
			continue
		}
		row := s.kernelRow(r, of[r.ID])
		if x := f.places[r.ID]; x != nil {
			row = x.cause(r, s.parts.names)
		}
		if k := of[r.ID]; k != nil && k.BaseName != nil && k.HeadName != nil {
			if n := splits(kernels, k); n > 1 {
				row.What = fmt.Sprintf("kernel %s%s%d kernels, %s among them", s.parts.names.shown(comparison.Value(k.BaseName)), splitWord, n,
					s.parts.names.shown(comparison.Value(k.HeadName)))
				for _, id := range slices.Sorted(maps.Keys(joined)) {
					if comparison.Value(of[id].SplitOf) == comparison.Value(k.BaseName) {
						row.Delta += deltas[id]
					}
				}
			}
		}
		if keep(r, row.Delta) {
			list = append(list, row)
		}
	}
	lists.Falling(list, func(r comparison.AnswerRow) float64 { return math.Abs(r.Delta) })
	return list
}

// recharged returns rows in which a kernel that only one side runs holds what it adds to the others: of the time in which
// it runs beside kernels of both sides, and which is counted once, it holds none. The sum stays as it is.
func recharged(list []comparison.AttributionRow, of map[string]*comparison.Kernel) []comparison.AttributionRow {
	list = slices.Clone(list)
	for _, way := range []float64{1, -1} {
		var own, hidden float64 // of the kernels of one side; by which more of the others is hidden
		each := make([]float64, len(list))
		for i := range list {
			r, k := &list[i], of[list[i].ID]
			if r.Kind != comparison.KindKernel || k == nil || k.SplitOf != nil || r.Category == side.Communication {
				continue
			}
			switch {
			case k.Base != nil && k.Head != nil && (k.Delta-r.Delta)*way > 0:
				each[i] = k.Delta - r.Delta
				hidden += each[i]
			case (k.Base == nil) != (k.Head == nil) && r.Delta*way > 0:
				each[i] = -r.Delta
				own += r.Delta
			}
		}
		if own == 0 || hidden == 0 {
			continue
		}
		moved := min(math.Abs(own), math.Abs(hidden))
		for i := range each {
			switch {
			case each[i]*way > 0:
				r, part := &list[i], moved/math.Abs(hidden)
				r.Delta, r.Base = r.Delta+each[i]*part, r.Base+(comparison.Value(of[r.ID].Base)-r.Base)*part
			case each[i]*way < 0:
				list[i].Delta += each[i] * moved / math.Abs(own)
			}
		}
	}
	return list
}

// mostOfAll names the kernel that changed most of several.
func mostOfAll(r *comparison.AnswerRow) string {
	return "most of all " + strings.TrimPrefix(r.What, "kernel ") + " (" + delta(r.Delta) + ")"
}

// categoryRow returns the change of all kernels of a category.
func (s *story) categoryRow(c *comparison.AttributionRow) comparison.AnswerRow {
	row := comparison.AnswerRow{Delta: c.Delta, Part: comparison.AnswerKernels,
		What: c.ID + " kernels " + unit.Change(c.Delta/max(c.Base, 1))}
	if math.Abs(comparison.Value(c.CountEffect)) > math.Abs(c.Delta)/2 {
		row.What = more(c.Delta, "more ", "fewer ") + c.ID + " kernels"
	}
	if r := lists.Find(s.parts.C.Attribution.Rows, func(r *comparison.AttributionRow) bool {
		return r.Kind == comparison.KindKernel && r.Category == c.ID && r.Delta*c.Delta > 0
	}); r != nil {
		row.With = []string{mostOfAll(new(s.kernelRow(r, nil)))}
	}
	return row
}

const splitWord = " replaced by "

// splits counts the kernels that replaced a paired kernel.
func splits(kernels []comparison.Kernel, k *comparison.Kernel) int {
	return 1 + lists.Count(kernels, func(o comparison.Kernel) bool {
		return o.SplitOf != nil && comparison.Value(o.SplitOf) == comparison.Value(k.BaseName)
	})
}

// category returns the category that makes up at least half of a change of compute time, or nil.
func (s split) category(d float64) *comparison.AttributionRow {
	return s.largest(func(r *comparison.AttributionRow) bool {
		return r.Kind == comparison.KindCategory && r.ID != side.Communication && r.Delta*d > 0 && math.Abs(r.Delta) >= math.Abs(d)/2
	})
}

// kernelRow names a kernel, its replacement, whether it runs more often or takes longer, where in the step, and what
// changed in its launches. k is nil if nothing more is known of the kernel.
func (s *story) kernelRow(r *comparison.AttributionRow, k *comparison.Kernel) comparison.AnswerRow {
	row := comparison.AnswerRow{Delta: r.Delta, Part: comparison.AnswerKernel, What: "kernel " + s.parts.names.pair(r.ID)}
	if k != nil && k.Launch != "" {
		row.With = []string{k.Launch}
	}
	switch {
	case k != nil && k.Base != nil && k.Head != nil && math.Abs(r.Delta-k.Delta) > math.Abs(r.Delta)/2: // r's is what is not hidden
		if k.Delta*r.Delta > r.Delta*r.Delta {
			row.What += " " + unit.Change(k.Delta/max(comparison.Value(k.Base), 1))
		}
		row.What += ", " + more(k.Delta-r.Delta, "more", "less") + " of it beside other kernels"
	case k != nil && k.BaseCount == nil && k.HeadCount != nil:
		row.What += ", new: " + wording.Means("per unit", comparison.Value(k.HeadCount))
	case k != nil && k.HeadCount == nil:
		row.What += ", no longer run"
	case k != nil && k.BaseCount != nil && comparison.Value(k.BaseCount) != comparison.Value(k.HeadCount) && math.Abs(k.CountEffect) > math.Abs(k.Delta)/2:
		row.What += ", runs " + perUnit(comparison.Value(k.BaseCount), comparison.Value(k.HeadCount))
	case r.Base > 0:
		row.What += " " + unit.Change(r.Delta/r.Base)
		if text := cmp.Or(kernelHiccups(s.parts.C.Step, r.ID, r.Delta), oneRun(r, k)); text != "" {
			row.With = append(row.With, text)
		}
	}
	row.Where = kernelPlaces(s.parts.C.Step, r.ID, r.Delta)
	return row
}

// commText names the communication kernel of which most of this change of exposed time is, and says whether it takes
// longer or another part of it overlaps with compute.
func (s *story) commText(d float64) []string {
	most := split(s.parts.C.Attribution.Rows).largest(func(r *comparison.AttributionRow) bool {
		return r.Kind == comparison.KindKernel && r.Category == side.Communication && r.Delta*d >= causePart*d*d
	})
	if most == nil {
		return nil
	}
	k := lists.Find(s.parts.C.Kernels, func(k *comparison.Kernel) bool { return kernelID(k) == most.ID })
	text := s.parts.names.pair(most.ID)
	switch {
	case k == nil:
		return nil
	case k.Base == nil || k.Head == nil:
		text = strings.TrimPrefix(s.kernelRow(most, k).What, "kernel ")
	case math.Abs(k.Delta) <= causePart*math.Abs(most.Delta):
		text += " takes as long, and " + more(most.Delta, "less", "more") + " of it overlaps with compute"
	case k.Delta*most.Delta > 0:
		text += " " + unit.Change(k.Delta/max(comparison.Value(k.Base), 1))
		if runs := oneRun(most, k); runs != "" {
			text += ": " + runs
		}
	default:
		return nil
	}
	return []string{text}
}

// oneRun says what a run of a kernel takes that runs equally often on both sides: 4 × 74.93 → 112.5 µs. It is empty if
// other kernels hide a part of the runs, so that these do not add up to the change.
func oneRun(r *comparison.AttributionRow, k *comparison.Kernel) string {
	if k == nil || k.Base == nil || k.Head == nil || math.Abs(k.Delta-r.Delta) > hiddenRuns*math.Abs(r.Delta) {
		return ""
	}
	runs, runsHead := comparison.Value(k.BaseCount), comparison.Value(k.HeadCount)
	times := unit.Format(runs, report.Count)
	if runs < 1 || times != unit.Format(runsHead, report.Count) {
		return ""
	}
	return times + " × " + comparison.FromTo(comparison.Value(k.Base)/runs, comparison.Value(k.Head)/runsHead, report.Nanoseconds)
}

// hiddenRuns is the share of a kernel's change, 0 to 1, from which on its runs do not add up to it.
const hiddenRuns = 0.01

// kernelNames are the display names of kernels for sentences.
type kernelNames struct {
	base, head *side.Side
	brief      map[string]string // by full name; nil until the first is asked for
}

// pair returns the display name of a kernel, or of a kernel and its replacement.
func (k *kernelNames) pair(id string) string {
	names := lists.Map(strings.Split(id, " → "), k.shown)
	return strings.Join(names, " → ")
}

// kernelID returns the id that a kernel's attribution row has.
func kernelID(k *comparison.Kernel) string {
	switch {
	case k.BaseName == nil:
		return comparison.Value(k.HeadName)
	case k.HeadName == nil || comparison.Value(k.BaseName) == comparison.Value(k.HeadName):
		return comparison.Value(k.BaseName)
	}
	return comparison.Value(k.BaseName) + " → " + comparison.Value(k.HeadName)
}

// longName is the length, in bytes, above which a sentence shortens a kernel's display name.
const longName = 40

// shown returns a kernel's display name; a long one is shortened as far as it stays unique: without its template
// arguments, or with part of them.
func (k *kernelNames) shown(name string) string {
	if k.brief == nil {
		k.brief = brief(k.base.DisplayNames(), k.head.DisplayNames())
	}
	if text, ok := k.brief[name]; ok {
		return text
	}
	return wording.Shorten(name, 60)
}

// brief returns short names by full name, all different.
func brief(sides ...map[string]string) map[string]string {
	display := map[string]string{}
	for _, names := range sides {
		maps.Copy(display, names)
	}
	forms := []func(name string) string{
		func(name string) string {
			text := display[name]
			if cut := strings.IndexByte(text, '<'); cut > 0 && len(text) > longName {
				return text[:cut]
			}
			return text
		},
		func(name string) string { return wording.Shorten(display[name], 60) },
		func(name string) string { return display[name] },
		func(name string) string { return name },
	}
	names, left := map[string]string{}, slices.Sorted(maps.Keys(display))
	for _, form := range forms {
		users := map[string]int{}
		for _, name := range slices.Sorted(maps.Keys(display)) {
			users[form(name)]++
		}
		left = slices.DeleteFunc(left, func(name string) bool {
			if users[form(name)] > 1 {
				return false
			}
			names[name] = form(name)
			return true
		})
	}
	return names
}
