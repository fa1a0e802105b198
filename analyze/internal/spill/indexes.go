package spill

import "math"

// Indexes is a list of indexes from -1 up, all -1 at first: of 16 bits each until one of them needs more.
type Indexes struct {
	arena  *Arena
	narrow []uint16 // the index plus 1
	wide   []uint32 // likewise; nil as long as 16 bits do
}

// NewIndexes makes a list of n.
func NewIndexes(a *Arena, n int) Indexes { return Indexes{arena: a, narrow: Make[uint16](a, n)} }

// Len is how many there are.
func (l *Indexes) Len() int { return max(len(l.narrow), len(l.wide)) }

// At is the i-th index.
func (l *Indexes) At(i int) int32 {
	if l.wide != nil {
		return int32(l.wide[i]) - 1
	}
	return int32(l.narrow[i]) - 1
}

// Set changes the i-th index.
func (l *Indexes) Set(i int, index int32) {
	if l.wide == nil && index >= math.MaxUint16 {
		l.wide = Make[uint32](l.arena, len(l.narrow))
		for k, x := range l.narrow {
			l.wide[k] = uint32(x)
		}
		Free(l.arena, l.narrow)
		l.narrow = nil
	}
	if l.wide != nil {
		l.wide[i] = uint32(index + 1)
	} else {
		l.narrow[i] = uint16(index + 1)
	}
}

// Free releases the list.
func (l *Indexes) Free() {
	Free(l.arena, l.narrow)
	Free(l.arena, l.wide)
	l.narrow, l.wide = nil, nil
}
