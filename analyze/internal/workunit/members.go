package workunit

import (
	"math"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// Members says for each piece of a device's work which unit it belongs to, or trace.None. Neighbours mostly belong to one
// unit: so it is kept as runs of them, unless these are many.
type Members struct {
	ends, units []int32 // by run: the piece after its last, and the unit
	dense       []int32 // by piece; instead of runs
}

// runRatio is how many pieces a run must have on average to be worth it.
const runRatio = 8

// NewMembers takes over a list of units by piece, which [spill.Make] made.
func NewMembers(memory *spill.Arena, of []int32) Members {
	runs := 0
	for i := range of {
		if i == 0 || of[i] != of[i-1] {
			runs++
		}
	}
	if runs*runRatio > len(of) {
		return Members{dense: of}
	}
	m := Members{ends: make([]int32, 0, runs), units: make([]int32, 0, runs)}
	for i := range of {
		if i+1 == len(of) || of[i+1] != of[i] {
			m.ends, m.units = append(m.ends, int32(i+1)), append(m.units, of[i])
		}
	}
	spill.Free(memory, of)
	return m
}

// membersOf takes over lists by device; of none it makes none.
func membersOf(memory *spill.Arena, lists [][]int32) []Members {
	if lists == nil {
		return nil
	}
	all := make([]Members, len(lists))
	for d, of := range lists {
		all[d] = NewMembers(memory, of)
	}
	return all
}

func (m *Members) free(memory *spill.Arena) {
	spill.Free(memory, m.dense)
	*m = Members{}
}

// Walk asks for pieces one after the other, from the first.
func (m *Members) Walk() Walk { return Walk{members: m} }

// Walk is a walk through the pieces of a device.
type Walk struct {
	members *Members
	run     int
	end     int // pieces before it are of unit
	unit    int32
}

// Of is the unit of the i-th piece, or trace.None; i may not go back.
func (w *Walk) Of(i int) int32 {
	if i < w.end {
		return w.unit
	}
	return w.advance(i)
}

// Run is the unit of the i-th piece and the first piece behind it that may be of another, n at most; i may not go back.
func (w *Walk) Run(i, n int) (unit int32, end int) {
	if unit = w.Of(i); w.members.dense != nil {
		return unit, i + 1
	}
	return unit, min(w.end, n)
}

func (w *Walk) advance(i int) int32 {
	m := w.members
	if m.dense != nil {
		return m.dense[i]
	}
	for ; w.run < len(m.ends); w.run++ {
		if int(m.ends[w.run]) > i {
			w.end, w.unit = int(m.ends[w.run]), m.units[w.run]
			return w.unit
		}
	}
	w.end, w.unit = math.MaxInt, trace.None
	return trace.None
}
