package workunit

import (
	"slices"
)

// gram is one to three names in a row that occur several times.
type gram struct {
	width  int
	lo, hi int32 // of the positions of its width
	score  float64
	idle   float64 // share of the idle time that lies just before the unit
	skip   int32   // at which of the names the unit starts, from 0: not at the first where the GPU waits inside
}

func (g *gram) count() int { return int(g.hi - g.lo) }

// grams are all of a sequence, with where they occur.
type grams struct {
	list []gram
	pos  [maxWidth + 1][]int32 // by width: positions, those of one gram together
}

// at are the places where units start.
func (g *grams) at(x *gram) []int32 { return later(g.pos[x.width][x.lo:x.hi], x.skip) }

// later are places some kernels further on.
func later(pos []int32, skip int32) []int32 {
	if skip == 0 {
		return pos
	}
	moved := make([]int32, len(pos))
	for i, p := range pos {
		moved[i] = p + skip
	}
	return moved
}

// newGrams lists the grams of a line that occur at least minRepeats times.
func newGrams(l *line) *grams {
	g := &grams{}
	ids, kinds := l.seq, len(l.cost)
	for width := 1; width <= min(maxWidth, len(l.seq)); width++ {
		if width > 1 {
			ids, kinds = longer(ids, l.seq[width-1:])
		}
		offset := make([]int32, kinds+1)
		for _, id := range ids {
			offset[id+1]++
		}
		for id := range kinds {
			offset[id+1] += offset[id]
			if offset[id+1]-offset[id] >= minRepeats {
				g.list = append(g.list, gram{width: width, lo: offset[id], hi: offset[id+1]})
			}
		}
		at, pos := slices.Clone(offset[:kinds]), make([]int32, len(ids))
		for i, id := range ids {
			pos[at[id]] = int32(i)
			at[id]++
		}
		g.pos[width] = pos
	}
	return g
}

// longer numbers the pairs of a gram and the name after it.
func longer(ids, next []int32) (pairs []int32, kinds int) {
	number := make(map[uint64]int32)
	pairs = make([]int32, len(next))
	for i, s := range next {
		key := uint64(uint32(ids[i]))<<32 | uint64(uint32(s))
		id, ok := number[key]
		if !ok {
			id = int32(len(number))
			number[key] = id
		}
		pairs[i] = id
	}
	return pairs, len(number)
}
