package timeline

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// Rows are the rows of a table by a small key, such as their thread, in order of start. For each row its distance from
// the row before with the same key is kept: usually a byte.
type Rows struct {
	offset []int // by key, into steps
	steps  []byte
}

// NewRows groups n rows by key(i), which is trace.None for rows to leave out.
func NewRows(memory *spill.Arena, keys, n int, key func(i int) int32) Rows {
	x := Rows{offset: make([]int, keys+1)}
	last := make([]int, keys) // the row before, plus one
	each := func(visit func(key int32, step uint64)) {
		clear(last)
		for i := range n {
			if k := key(i); k != trace.None {
				visit(k, uint64(i+1-last[k]))
				last[k] = i + 1
			}
		}
	}
	each(func(k int32, step uint64) { x.offset[k+1] += (bits.Len64(step) + 6) / 7 })
	for k := range keys {
		x.offset[k+1] += x.offset[k]
	}
	x.steps = spill.Make[byte](memory, x.offset[keys])
	at := slices.Clone(x.offset)
	each(func(k int32, step uint64) { at[k] += binary.PutUvarint(x.steps[at[k]:], step) })
	return x
}

// Has reports whether a key has rows.
func (x *Rows) Has(key int32) bool { return x.offset[key+1] > x.offset[key] }

// Of goes to the first row of a key.
func (x *Rows) Of(key int32) RowWalk {
	w := RowWalk{Row: -1, steps: x.steps[x.offset[key]:x.offset[key+1]]}
	w.Next()
	return w
}

// Free releases the memory of the rows.
func (x *Rows) Free(memory *spill.Arena) {
	spill.Free(memory, x.steps)
	x.steps = nil
}

// RowWalk goes through the rows of a key.
type RowWalk struct {
	Row   int32 // trace.None behind the last one
	steps []byte
}

// Next goes to the next row.
func (w *RowWalk) Next() {
	if len(w.steps) == 0 {
		w.Row = trace.None
		return
	}
	step, n := uint64(w.steps[0]), 1
	if step >= 0x80 {
		step, n = binary.Uvarint(w.steps)
	}
	w.Row += int32(step)
	w.steps = w.steps[n:]
}
