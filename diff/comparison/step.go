package comparison

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Step is the change of one unit of work, position by position: where in the step. The kernels of the head's sequence
// are laid beside those of the base's; rows come in the order in which they run. Times are means over units and
// captures, ns.
//
//	Delta = Σ of the rows' deltas
//
// Of the idle time, what changed in every step is told from what happens in some: the change of the medians by position
// (Systematic), and the rest of the change of the means (Sporadic).
type Step struct {
	Device     int64     `json:"device"`
	Base       float64   `json:"base"` // mean unit.time
	Head       float64   `json:"head"`
	Delta      float64   `json:"delta"`
	Idle       float64   `json:"idle"` // change of the mean idle time: Systematic + Sporadic
	Systematic float64   `json:"systematic"`
	Sporadic   float64   `json:"sporadic"`
	Filled     float64   `json:"filled,omitempty"` // part of Idle that longer work fills (below 0), or shorter leaves
	BaseUnits  int64     `json:"base_units"`
	HeadUnits  int64     `json:"head_units"`
	Where      string    `json:"where"` // one line; empty if no place stands out
	Stretches  []Stretch `json:"stretches"`
	// BaseHiccups and HeadHiccups are single gaps and kernels that took 5 % of the median unit more than their median.
	BaseHiccups []Hiccup  `json:"base_hiccups"`
	HeadHiccups []Hiccup  `json:"head_hiccups"`
	Names       []string  `json:"names"` // full names of kernels and ranges, which rows and boxes number
	Rows        []StepRow `json:"rows"`
	// Tree is the unit's time by ranges, kernels and idle time: each box behind the one around it, of which the first
	// is the unit. A box that holds others is their sum on each side.
	Tree []StepBox `json:"tree,omitempty"`
}

// StepBox is a part of a unit as package stacks makes them. A time that is left out is 0.
type StepBox struct {
	Parent   int     `json:"parent"` // place in Tree, -1 for the unit
	Kind     string  `json:"kind"`   // as in package stacks
	Name     *int    `json:"name,omitempty"`
	Category string  `json:"category,omitempty"` // of kernels; of idle time its cause
	Boxes    int     `json:"boxes,omitempty"`    // small ones that it is of, where the kind is others
	Base     float64 `json:"base,omitempty"`
	Head     float64 `json:"head,omitempty"`
}

// MaxStepBoxes bounds the boxes of a tree.
const MaxStepBoxes = 240

// Stretch is neighbouring positions that changed in every step.
type Stretch struct {
	Part  string  `json:"part"` // gap: before the kernels; kernel: of the kernels themselves
	From  int     `json:"from"` // places in Rows, both included
	To    int     `json:"to"`
	Delta float64 `json:"delta"` // change of the medians, ns
}

// Parts of a position.
const (
	PartGap    = "gap"
	PartKernel = "kernel"
)

// Hiccup is one gap or kernel of one unit.
type Hiccup struct {
	Row    int     `json:"row"`    // place in Rows
	Part   string  `json:"part"`   // gap or kernel
	Unit   int64   `json:"unit"`   // number of the unit in its capture
	Excess float64 `json:"excess"` // ns over the median
}

// StepRow is one position of both sequences, or of one of them. A time that is left out is 0.
type StepRow struct {
	Kind         string `json:"kind"`          // paired, added, removed, folded, end, rest
	BasePosition *int64 `json:"base_position"` // from 0; null if the base does not have it
	HeadPosition *int64 `json:"head_position"` // likewise
	Positions    int64  `json:"positions"`     // that the row is of: more than one where it is folded
	// place in Names: of the base's kernel, else the head's; null if it belongs to no kernel
	Name         *int    `json:"name"`
	HeadName     *int    `json:"head_name,omitempty"` // where it is another
	Category     string  `json:"category"`
	Cause        string  `json:"cause,omitempty"` // of idle time before it, where most of the change is
	BaseStart    float64 `json:"base_start"`
	HeadStart    float64 `json:"head_start"`
	BaseGap      float64 `json:"base_gap,omitempty"` // idle before it
	HeadGap      float64 `json:"head_gap,omitempty"`
	BaseCopies   float64 `json:"base_copies,omitempty"` // exposed copies before it
	HeadCopies   float64 `json:"head_copies,omitempty"`
	BaseKernel   float64 `json:"base_kernel,omitempty"` // that is its alone
	HeadKernel   float64 `json:"head_kernel,omitempty"`
	BaseHidden   float64 `json:"base_hidden,omitempty"` // in which it runs and the time is another kernel's
	HeadHidden   float64 `json:"head_hidden,omitempty"`
	Stream       int     `json:"stream,omitempty"` // number of its stream, in the order of their first kernels
	Delta        float64 `json:"delta"`
	GapMedian    float64 `json:"gap_median,omitempty"`    // change of the median
	KernelMedian float64 `json:"kernel_median,omitempty"` // likewise
}

// Kinds of row.
const (
	RowPaired  = "paired"
	RowAdded   = "added"
	RowRemoved = "removed"
	RowFolded  = "folded"
	RowEnd     = "end"
	RowRest    = "rest"
)

// MaxStepRows bounds the rows; what is beyond is folded.
const MaxStepRows = 1000

// NameOf is a name that a row numbers; empty if it numbers none.
func (s *Step) NameOf(n *int) string {
	if n == nil {
		return ""
	}
	return s.Names[*n]
}

// names reports whether a number is that of a name, or none.
func (s *Step) names(n *int) bool { return n == nil || *n >= 0 && *n < len(s.Names) }

// validate checks that rows close and that places are in range.
func (s *Step) validate() error {
	if s == nil {
		return nil
	}
	if len(s.Rows) > MaxStepRows+2 {
		return errors.New("comparison: step is not one that explain writes")
	}
	sum := 0.0
	for i := range s.Rows {
		r := &s.Rows[i]
		if r.Positions < 1 || r.Stream < 0 || !s.names(r.Name) || !s.names(r.HeadName) ||
			!slices.Contains([]string{RowPaired, RowAdded, RowRemoved, RowFolded, RowEnd, RowRest}, r.Kind) {
			return fmt.Errorf("comparison: step: row %d is not valid", i)
		}
		sum += r.Delta
	}
	if math.Abs(sum-s.Delta) > closeEnough || math.Abs(s.Head-s.Base-s.Delta) > closeEnough ||
		math.Abs(s.Systematic+s.Sporadic-s.Idle) > closeEnough {
		return fmt.Errorf("comparison: step does not close: rows %g, %g + %g of %g, %g → %g is %g", sum, s.Systematic,
			s.Sporadic, s.Idle, s.Base, s.Head, s.Delta)
	}
	if err := s.validateTree(); err != nil {
		return err
	}
	inside := func(row int) bool { return row >= 0 && row < len(s.Rows) }
	for _, x := range s.Stretches {
		if !inside(x.From) || !inside(x.To) || x.From > x.To ||
			x.Part != PartGap && x.Part != PartKernel {
			return fmt.Errorf("comparison: step: a stretch of rows %d to %d", x.From, x.To)
		}
	}
	for _, h := range slices.Concat(s.BaseHiccups, s.HeadHiccups) {
		if !inside(h.Row) || h.Part != PartGap && h.Part != PartKernel {
			return fmt.Errorf("comparison: step: a hiccup in row %d", h.Row)
		}
	}
	return nil
}

// validateTree checks that boxes stand behind those around them and sum to them, and that the first is the unit.
func (s *Step) validateTree() error {
	base, head, holds := make([]float64, len(s.Tree)), make([]float64, len(s.Tree)), make([]bool, len(s.Tree))
	for i := len(s.Tree) - 1; i >= 0; i-- {
		b := &s.Tree[i]
		if b.Parent >= i || (b.Parent < 0) != (i == 0) || !s.names(b.Name) || b.Boxes < 0 {
			return fmt.Errorf("comparison: step: box %d is not valid", i)
		}
		if holds[i] && (math.Abs(base[i]-b.Base) > closeEnough || math.Abs(head[i]-b.Head) > closeEnough) {
			return fmt.Errorf("comparison: step: box %d is %g → %g, those in it %g → %g", i, b.Base, b.Head, base[i], head[i])
		}
		if i > 0 {
			holds[b.Parent] = true
			base[b.Parent] += b.Base
			head[b.Parent] += b.Head
		} else if math.Abs(b.Base-s.Base) > closeEnough || math.Abs(b.Head-s.Head) > closeEnough {
			return fmt.Errorf("comparison: step: the tree is of %g → %g, the step %g → %g", b.Base, b.Head, s.Base, s.Head)
		}
	}
	return nil
}
