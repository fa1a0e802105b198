package breakdown

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/pairing"
)

// Least shares of the change for a place to be named.
const (
	toldStretch  = 0.1
	toldSporadic = 0.1
)

// where says in one line which neighbours changed in every step, and what hiccups add: "+1.06 ms before kernels
// #66–#80 in every step, of +1.84 ms idle in all; +891 µs in 4 hiccups, up to 6.65 ms before #38".
func (s *stepper) where() {
	o := s.out
	change := max(math.Abs(o.Delta), math.Abs(o.Idle))
	if change < leastStretch*o.Base {
		return
	}
	way := sign(o.Delta)
	text := ""
	told := func(x *comparison.Stretch) bool { return x.Delta*way >= toldStretch*change }
	if x := lists.Find(o.Stretches, told); x != nil {
		text = s.stretch(x)
	}
	if change > 0 && o.Sporadic*way >= toldSporadic*change {
		if text != "" {
			text += "; "
		}
		text += delta(o.Sporadic) + " " + s.single(way)
	}
	o.Where = text
}

func (s *stepper) stretch(x *comparison.Stretch) string {
	o := s.out
	word, what, all := "before", "idle", o.Systematic
	if x.Part == comparison.PartKernel {
		word, what = "in", "kernels"
		all = lists.Sum(o.Rows, func(r comparison.StepRow) float64 { return r.KernelMedian })
	}
	text := delta(x.Delta) + " " + word + " " + s.kernels(x.From, x.To, true) + " in every step"
	if x.Delta*all > 0 && math.Abs(all) >= 1.1*math.Abs(x.Delta) {
		text += ", of " + delta(all) + " " + what + " in all"
	}
	return text
}

// kernels names rows by number, with the kernel's name if it is one: kernels #66–#80, kernel #12 softmax (added), the
// next step.
func (s *stepper) kernels(from, to int, named bool) string {
	o, rows := s.out, s.out.Rows
	if rows[from].Kind == comparison.RowEnd {
		return "the next step"
	}
	if rows[from].Kind == comparison.RowRest {
		return "other units' kernels"
	}
	rows = rows[from : to+1]
	added := !slices.ContainsFunc(rows, func(r comparison.StepRow) bool { return r.Kind != comparison.RowAdded })
	number := func(r *comparison.StepRow) string {
		switch {
		case r.BasePosition != nil && !added:
			return numbered(comparison.Value(r.BasePosition))
		case r.HeadPosition != nil:
			return numbered(comparison.Value(r.HeadPosition))
		}
		return "the end"
	}
	first, last := number(&rows[0]), number(&rows[to-from])
	text := "kernel " + first
	if last != first {
		text = "kernels " + first + "–" + last
	}
	names := lists.Set(rows, func(r comparison.StepRow) string { return o.NameOf(r.Name) })
	if name := o.NameOf(rows[0].Name); named && name != "" && len(names) == 1 {
		text += " " + s.kernelNames.pair(name)
	}
	if added {
		text += " (added)"
	}
	return text
}

func numbered(position int64) string { return "#" + strconv.FormatInt(position, 10) }

// single says how many hiccups hold a sporadic change.
func (s *stepper) single(way float64) string {
	list, other, units := s.out.HeadHiccups, s.out.BaseHiccups, s.out.HeadUnits
	side := ""
	if way < 0 {
		list, other, units = other, list, s.out.BaseUnits
		side = " of base"
	}
	ofGap := func(h comparison.Hiccup) bool { return h.Part == comparison.PartGap }
	gaps := lists.Filter(list, ofGap) // the longest first
	n := len(gaps)
	if n <= lists.Count(other, ofGap) {
		return "idle in some steps only"
	}
	text := "in " + wording.Count(n, "hiccup") + side + " in " + unit.Int(units) + " steps"
	if n >= maxStepHiccups {
		text = "in " + unit.Int(int64(n)) + " or more hiccups" + side
	}
	return text + ", up to " + pairing.NS(gaps[0].Excess) + " before " + s.kernels(gaps[0].Row, gaps[0].Row, false)
}

// The share of a cause that its places must hold, and the most places to list.
const (
	placed     = 0.8
	mostPlaces = 4
)

// kernelPlaces lists the positions that hold most of a kernel's change: at #5, #19, #33, #46. It is empty if the
// sequence is not known, or if there are too many places.
func kernelPlaces(o *comparison.Step, id string, d float64) string {
	if o == nil {
		return ""
	}
	change := func(r comparison.StepRow) float64 { return r.HeadKernel - r.BaseKernel }
	rows := lists.Filter(o.Rows, func(r comparison.StepRow) bool {
		return isOf(o, &r, id) && r.Positions == 1 && change(r)*d > 0
	})
	sum := lists.Sum(rows, change)
	lists.Falling(rows, func(r comparison.StepRow) float64 { return math.Abs(change(r)) })
	var numbers []int64
	held := 0.0
	for _, r := range rows {
		held += change(r)
		numbers = append(numbers, comparison.Value(cmp.Or(r.BasePosition, r.HeadPosition)))
		if math.Abs(held) >= placed*math.Abs(sum) {
			break
		}
	}
	if math.Abs(sum) < math.Abs(d)/2 {
		return ""
	}
	slices.Sort(numbers)
	return placesText(numbers)
}

// placesText lists a few positions: at #5, #19.
func placesText(numbers []int64) string {
	if len(numbers) == 0 || len(numbers) > mostPlaces {
		return ""
	}
	return "at " + strings.Join(lists.Map(numbers, numbered), ", ")
}

// isOf reports whether a row is of a kernel, or of one side of a replacement, by its id.
func isOf(o *comparison.Step, r *comparison.StepRow, id string) bool {
	base, head, replaced := strings.Cut(id, " → ")
	if !replaced {
		head = base
	}
	name := o.NameOf(r.Name)
	return name != "" && (name == base || name == head || o.NameOf(r.HeadName) == head)
}

// kernelHiccups says in how many runs a kernel takes longer than in the others, if these hold at least half of its
// change: in 1 hiccup in 9 steps, up to 8.4 s.
func kernelHiccups(o *comparison.Step, id string, d float64) string {
	if o == nil {
		return ""
	}
	list, units, side := o.HeadHiccups, o.HeadUnits, ""
	if d < 0 {
		list, units, side = o.BaseHiccups, o.BaseUnits, " of base"
	}
	n, sum, most := 0, 0.0, 0.0
	for _, h := range list {
		if h.Part == comparison.PartKernel && isOf(o, &o.Rows[h.Row], id) {
			n, sum, most = n+1, sum+h.Excess, max(most, h.Excess)
		}
	}
	if n == 0 || sum/float64(units) < math.Abs(d)/2 {
		return ""
	}
	hiccups := wording.Count(n, "hiccup") + side
	return fmt.Sprintf("in %s in %s steps, up to %s", hiccups, unit.Int(units), pairing.NS(most))
}

// idlePlace says before which kernels a change of idle time lies, or how much of it lies where: before #60, (+1.292 ms
// before kernels #62–#80 in every step, +891 µs in 4 hiccups). It is empty if no place stands out.
func idlePlace(o *comparison.Step, names *kernelNames, d float64) string {
	if o == nil || d == 0 {
		return ""
	}
	where := ""
	var parts []string
	s := &stepper{out: o, kernelNames: names}
	told := func(g *comparison.Stretch) bool { return g.Part == comparison.PartGap && g.Delta*d >= toldStretch*d*d }
	if g := lists.Find(o.Stretches, told); g != nil {
		where = "before " + strings.Replace(s.kernels(g.From, g.To, true), "kernel #", "#", 1)
		if math.Abs(g.Delta) < placed*math.Abs(d) {
			parts = append(parts, delta(g.Delta)+" "+where+" in every step")
			where = ""
		}
	}
	if o.Sporadic*d >= toldSporadic*d*d {
		parts = append(parts, delta(o.Sporadic)+" "+s.single(sign(d)))
	}
	if len(parts) > 0 {
		where += " (" + strings.Join(parts, ", ") + ")"
	}
	return strings.TrimPrefix(where, " ")
}
