package attribute

import (
	"fmt"
	"math"
	"strconv"

	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/match"
)

// Shares of the change from which a place is named.
const (
	toldStretch  = 0.1
	toldSporadic = 0.1
)

// where says in one line which neighbours changed in every step, and what single hiccups add: "+1.06 ms before kernels
// #66–#80 in every step, of +1.84 ms idle in all; +891 µs in 4 single hiccups (up to 6.65 ms before #38)".
func (s *stepper) where() {
	o := s.out
	change := max(math.Abs(o.Delta), math.Abs(o.Idle))
	if change < leastStretch*o.Base {
		return
	}
	way := sign(o.Delta)
	text := ""
	for i := range o.Stretches {
		if x := &o.Stretches[i]; x.Delta*way >= toldStretch*change {
			text = s.stretch(x)
			break
		}
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
	word, all := "before", o.Systematic
	if x.Part == comparison.PartKernel {
		word, all = "in", 0
		for i := range o.Rows {
			all += o.Rows[i].KernelMedian
		}
	}
	text := delta(x.Delta) + " " + word + " " + s.kernels(x.From, x.To, true) + " in every step"
	if x.Delta*all > 0 && math.Abs(all) >= 1.1*math.Abs(x.Delta) {
		what := "idle"
		if x.Part == comparison.PartKernel {
			what = "kernels"
		}
		text += ", of " + delta(all) + " " + what + " in all"
	}
	return text
}

// kernels numbers rows, and names the kernel of all of them: kernels #66–#80, kernel #12 softmax (added), the next
// step.
func (s *stepper) kernels(from, to int, named bool) string {
	o, rows := s.out, s.out.Rows
	if rows[from].Kind == comparison.RowEnd {
		return "the next step"
	}
	if rows[from].Kind == comparison.RowRest {
		return "other units' kernels"
	}
	added := true
	for i := from; i <= to; i++ {
		added = added && rows[i].Kind == comparison.RowAdded
	}
	number := func(r *comparison.StepRow) string {
		switch {
		case r.BasePosition != nil && !added:
			return "#" + strconv.FormatInt(*r.BasePosition, 10)
		case r.HeadPosition != nil:
			return "#" + strconv.FormatInt(*r.HeadPosition, 10)
		}
		return "the end"
	}
	text := "kernel " + number(&rows[from])
	if last := number(&rows[to]); from != to && last != number(&rows[from]) {
		text = "kernels " + number(&rows[from]) + "–" + last
	}
	name := rows[from].Name
	for i := from; i <= to; i++ {
		if n := rows[i].Name; n == nil || name == nil || *n != *name {
			name = nil
		}
	}
	if name != nil && named {
		text += " " + s.parts.pairName(o.Names[*name])
	}
	if added {
		text += " (added)"
	}
	return text
}

// single says in how many hiccups a sporadic change is.
func (s *stepper) single(way float64) string {
	list, other, units := s.out.HeadHiccups, s.out.BaseHiccups, s.out.HeadUnits
	side := ""
	if way < 0 {
		list, other, units = other, list, s.out.BaseUnits
		side = " of base"
	}
	gaps := func(list []comparison.Hiccup) (n int, longest *comparison.Hiccup) {
		for i := range list {
			if list[i].Part != comparison.PartGap {
				continue
			}
			if n++; longest == nil {
				longest = &list[i]
			}
		}
		return n, longest
	}
	n, longest := gaps(list)
	m, _ := gaps(other)
	if longest == nil || n <= m {
		return "idle in some steps only"
	}
	text := fmt.Sprintf("in %s%s", comparison.Count(int64(n), "single hiccup"), side)
	if n < maxStepHiccups {
		text += " in " + unit.Int(units) + " steps"
	} else {
		text = "in " + unit.Int(int64(n)) + " or more single hiccups" + side
	}
	return text + " (up to " + match.NS(longest.Excess) + " before " + s.kernels(longest.Row, longest.Row, false) + ")"
}
