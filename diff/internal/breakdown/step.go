package breakdown

import (
	"cmp"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/pairing"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// Step aligns the units of both sides, position by position. Rows sum to the change of the mean unit, ns: a kernel that
// only one side has gets its own row. It is nil if the units cannot be aligned.
func Step(onBase, onHead *side.Side) *comparison.Step {
	base, head := onBase.Sequence(), onHead.Sequence()
	if base == nil || head == nil || base.Device != head.Device {
		return nil
	}
	names := map[string]string{} // by the head's name: the base's other name for the kernel
	for _, p := range pairing.Kernels(onBase, onHead) {
		if p.Both() && p.Base.Name != p.Head.Name {
			names[p.Head.Name] = p.Base.Name
		}
	}
	of := pairing.Positions(base, head, names)
	if of == nil {
		return nil
	}
	return stepOf(base, head, of, &kernelNames{base: onBase, head: onHead})
}

// stepOf is the change between two sequences. of holds, for each position of the head, the base's position, or -1.
func stepOf(base, head *side.Sequence, of []int32, names *kernelNames) *comparison.Step {
	s := &stepper{base: base, head: head, kernelNames: names}
	s.out = &comparison.Step{Device: base.Device, Base: base.Time, Head: head.Time, Delta: head.Time - base.Time,
		BaseUnits: base.Units, HeadUnits: head.Units}
	s.rows(of)
	s.tree(of)
	s.idle()
	s.stretches()
	s.hiccups()
	s.where()
	return s.out
}

type stepper struct {
	base, head *side.Sequence
	out        *comparison.Step
	// The row of each position, and of the end as the last.
	baseRow, headRow []int
	kernelNames      *kernelNames
	names            lists.Numbering[string] // of out.Names
}

func (s *stepper) name(text string) *int {
	n := int(s.names.Of(text))
	s.out.Names = s.names.Keys
	return &n
}

// rows lists the pairs in the head's order; a removed kernel follows the kernel that runs before it in the base.
func (s *stepper) rows(of []int32) {
	type pair struct{ base, head int }
	back := slices.Repeat([]int{-1}, len(s.base.Positions))
	for k, i := range of {
		if i >= 0 {
			back[i] = k
		}
	}
	var list []pair
	removed := func(from int) { // from this position of the base up to the next paired one
		for i := from; i < len(back) && back[i] < 0; i++ {
			list = append(list, pair{i, -1})
		}
	}
	removed(0)
	for k, i := range of {
		list = append(list, pair{int(i), k})
		if i >= 0 {
			removed(int(i) + 1)
		}
	}
	s.baseRow, s.headRow = make([]int, len(s.base.Positions)+1), make([]int, len(s.head.Positions)+1)
	var gaps []gapChange
	for _, p := range list {
		gaps = append(gaps, changeOf(s.positions(p.base, p.head)))
		if p.base >= 0 {
			s.baseRow[p.base] = len(s.out.Rows)
		}
		if p.head >= 0 {
			s.headRow[p.head] = len(s.out.Rows)
		}
		s.out.Rows = append(s.out.Rows, s.row(p.base, p.head))
	}
	s.out.Filled = filled(append(gaps, changeOf(&s.base.End, &s.head.End)))
	s.fold()
	end := between(&s.base.End, &s.head.End)
	end.Kind = comparison.RowEnd
	s.baseRow[len(s.base.Positions)], s.headRow[len(s.head.Positions)] = len(s.out.Rows), len(s.out.Rows)
	rest := comparison.StepRow{Kind: comparison.RowRest, Positions: 1, BaseKernel: s.base.Rest, HeadKernel: s.head.Rest,
		BaseStart: s.base.Time, HeadStart: s.head.Time, Delta: s.head.Rest - s.base.Rest}
	s.out.Rows = append(s.out.Rows, end, rest)
}

// positions returns the positions of a pair, an empty one for a side that lacks it.
func (s *stepper) positions(b, h int) (base, head *side.Position) {
	base, head = &side.Position{}, &side.Position{}
	if b >= 0 {
		base = &s.base.Positions[b]
	}
	if h >= 0 {
		head = &s.head.Positions[h]
	}
	return base, head
}

func (s *stepper) row(b, h int) comparison.StepRow {
	whole := func(i int) *int64 { return new(int64(i)) }
	base, head := s.positions(b, h)
	r := between(base, head)
	r.Category = cmp.Or(base.Category, head.Category)
	switch {
	case b < 0:
		r.Kind, r.HeadPosition, r.Name, r.Stream = comparison.RowAdded, whole(h), s.name(head.Name), head.Stream
		return r
	case h < 0:
		r.Kind = comparison.RowRemoved
	default:
		r.Kind, r.HeadPosition = comparison.RowPaired, whole(h)
	}
	r.BasePosition, r.Name, r.Stream = whole(b), s.name(base.Name), base.Stream
	if h >= 0 && head.Name != base.Name {
		r.HeadName = s.name(head.Name)
	}
	return r
}

func between(base, head *side.Position) comparison.StepRow {
	r := comparison.StepRow{Positions: 1, BaseStart: base.Start, HeadStart: head.Start, BaseGap: base.Idle(),
		HeadGap: head.Idle(), BaseCopies: base.Copies, HeadCopies: head.Copies, BaseKernel: base.Alone,
		HeadKernel: head.Alone, BaseHidden: base.Hidden, HeadHidden: head.Hidden, Delta: head.Sum() - base.Sum(),
		GapMedian:    head.GapMedian - base.GapMedian,
		KernelMedian: head.AloneMedian - base.AloneMedian}
	most := 0.0
	for c := range head.Gap {
		if d := (head.Gap[c] - base.Gap[c]) * sign(r.HeadGap-r.BaseGap); d > most {
			most, r.Cause = d, report.StepCauses[c]
		}
	}
	return r
}

func sign(v float64) float64 {
	if v < 0 {
		return -1
	}
	return 1
}

// keptRows is the number of rows with the largest change, which are never folded.
const keptRows = 100

// fold joins neighbours of one category and stream if there are too many rows; the pairs that changed most keep rows of
// their own. If that is not enough, it joins larger and larger groups of any category.
func (s *stepper) fold() {
	rows := s.out.Rows
	if len(rows) <= comparison.MaxStepRows {
		return
	}
	order := lists.Indexes[int](len(rows))
	lists.Falling(order, func(i int) float64 { return math.Abs(rows[i].Delta) })
	kept := make([]bool, len(rows))
	for _, i := range order[:keptRows] {
		kept[i] = true
	}
	to := make([]int, len(rows))
	for each := 1; ; each *= 2 { // groups of up to this many neighbours, of any category
		var out []comparison.StepRow
		for i := range rows {
			if i > 0 && !kept[i] && !kept[i-1] &&
				(rows[i].Category == rows[i-1].Category && rows[i].Stream == rows[i-1].Stream || each > 1 &&
					out[len(out)-1].Positions < int64(each)) {
				join(&out[len(out)-1], &rows[i])
			} else {
				out = append(out, rows[i])
			}
			to[i] = len(out) - 1
		}
		if len(out) <= comparison.MaxStepRows {
			s.out.Rows = out
			break
		}
	}
	for _, list := range [][]int{s.baseRow, s.headRow} {
		for i := range list {
			list[i] = to[list[i]]
		}
	}
}

// join adds a row to the one before it.
func join(r, next *comparison.StepRow) {
	r.Kind = comparison.RowFolded
	if r.Category != next.Category {
		r.Category = ""
	}
	r.Positions += next.Positions
	r.BaseGap, r.HeadGap = r.BaseGap+next.BaseGap, r.HeadGap+next.HeadGap
	r.BaseCopies, r.HeadCopies = r.BaseCopies+next.BaseCopies, r.HeadCopies+next.HeadCopies
	r.BaseKernel, r.HeadKernel = r.BaseKernel+next.BaseKernel, r.HeadKernel+next.HeadKernel
	r.BaseHidden, r.HeadHidden = r.BaseHidden+next.BaseHidden, r.HeadHidden+next.HeadHidden
	r.Delta += next.Delta
	r.GapMedian, r.KernelMedian = r.GapMedian+next.GapMedian, r.KernelMedian+next.KernelMedian
	if r.BasePosition == nil {
		r.BasePosition, r.BaseStart = next.BasePosition, next.BaseStart
	}
	if r.HeadPosition == nil {
		r.HeadPosition, r.HeadStart = next.HeadPosition, next.HeadStart
	}
	r.Cause = cmp.Or(r.Cause, next.Cause)
}

// idle separates what changed in every step from what happens in some.
func (s *stepper) idle() {
	s.out.Idle = lists.Sum(s.out.Rows, func(r comparison.StepRow) float64 { return r.HeadGap - r.BaseGap })
	s.out.Systematic = lists.Sum(s.out.Rows, func(r comparison.StepRow) float64 { return r.GapMedian })
	s.out.Sporadic = s.out.Idle - s.out.Systematic
}

// Limits on what a step lists.
const (
	maxStretches   = 5
	leastStretch   = 0.002 // share of the shorter unit
	maxStepHiccups = 16
)

// stretches finds the neighbours that changed most in every step, gaps and kernels apart. It repeatedly takes the
// stretch whose sum less the mean change of all positions is largest (J. Kadane's algorithm), where change is dense.
func (s *stepper) stretches() {
	least := leastStretch * min(s.out.Base, s.out.Head)
	for _, part := range []string{comparison.PartGap, comparison.PartKernel} {
		of := func(r *comparison.StepRow) float64 {
			if part == comparison.PartGap {
				return r.GapMedian
			}
			return r.KernelMedian
		}
		for _, way := range []float64{1, -1} {
			values := make([]float64, len(s.out.Rows))
			mean := 0.0
			for i := range values {
				values[i] = way * of(&s.out.Rows[i])
				mean += values[i] / float64(len(values))
			}
			for range maxStretches {
				from, to, sum := densest(values, max(mean, least/float64(len(values))))
				if sum < least {
					break
				}
				s.out.Stretches = append(s.out.Stretches, comparison.Stretch{Part: part, From: from, To: to, Delta: way * sum})
				for i := from; i <= to; i++ {
					values[i] = math.Inf(-1)
				}
			}
		}
	}
	lists.Falling(s.out.Stretches, func(x comparison.Stretch) float64 { return math.Abs(x.Delta) })
	s.out.Stretches = s.out.Stretches[:min(len(s.out.Stretches), maxStretches)]
}

// densest finds the stretch of values, each less toll, with the largest sum; the returned sum is that of the values.
func densest(values []float64, toll float64) (from, to int, sum float64) {
	best, run, start := 0.0, 0.0, 0
	for i, v := range values {
		if run <= 0 {
			run, start = 0, i
		}
		if run += v - toll; run > best {
			best, from, to = run, start, i
		}
	}
	if best <= 0 {
		return 0, 0, 0
	}
	return from, to, lists.Total(values[from : to+1])
}

// hiccups lists the hiccups of both sides by row, the longest first.
func (s *stepper) hiccups() {
	list := func(x *side.Sequence, row []int) []comparison.Hiccup {
		var out []comparison.Hiccup
		for _, h := range x.Hiccups {
			part := comparison.PartGap
			if h.Part == 1 {
				part = comparison.PartKernel
			}
			out = append(out, comparison.Hiccup{Row: row[h.Position], Part: part, Unit: h.Unit, Excess: h.Excess})
		}
		lists.Sort(out, func(a, b comparison.Hiccup) int { return cmp.Compare(b.Excess, a.Excess) })
		return out[:min(len(out), maxStepHiccups)]
	}
	s.out.BaseHiccups, s.out.HeadHiccups = list(s.base, s.baseRow), list(s.head, s.headRow)
}
