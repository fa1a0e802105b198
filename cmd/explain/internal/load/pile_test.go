package load

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A pile holds what a list would, whatever the pieces in which it came.
func TestPile(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, pieces := range []int{0, 1, 7, 200} {
		var p pile[int]
		var want []int
		for range pieces {
			n := []int{0, 1, 15, pileChunk - 1, pileChunk, pileChunk + 1, 2*pileChunk + 5}[random.IntN(7)]
			piece := make([]int, n)
			for i := range piece {
				piece[i] = random.Int()
			}
			p.add(piece...)
			want = append(want, piece...)
		}
		if got := p.take(); !slices.Equal(got, want) || len(p.take()) > 0 {
			t.Errorf("%d pieces: %d values, want %d", pieces, len(got), len(want))
		}
	}
}
