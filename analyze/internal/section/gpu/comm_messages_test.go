package gpu

import (
	"math"
	"testing"
)

// By the definitions of nccl-tests: 8 ranks with messages of 1,000 bytes. An all-gather has a size of 8,000, of which each
// link carries 7,000; an all-reduce has one of 1,000 and sends it nearly twice, 1,750.
func TestMessageVolume(t *testing.T) {
	for _, c := range []struct {
		collective     string
		ranks          int64
		moved, carried float64
	}{
		{"AllReduce", 8, 1000, 1750},
		{"AllReduce", 2, 1000, 1000},
		{"AllGather", 8, 8000, 7000},
		{"ReduceScatter", 4, 4000, 3000},
		{"Broadcast", 8, 1000, 1000},
		{"SendRecv", 8, 1000, 1000},
		{"AllToAll", 8, 1000, math.NaN()},
	} {
		moved, carried := messageVolume(c.collective, 1000, c.ranks)
		if moved != c.moved || carried != c.carried && !(math.IsNaN(carried) && math.IsNaN(c.carried)) {
			t.Errorf("%s of %d ranks: %v, %v", c.collective, c.ranks, moved, carried)
		}
	}
	if moved, carried := messageVolume("AllGather", 1000, -1); !math.IsNaN(moved) || !math.IsNaN(carried) {
		t.Error("an all-gather of an unknown number of ranks has a known size")
	}
	if moved, carried := messageVolume("AllReduce", 1000, -1); moved != 1000 || !math.IsNaN(carried) {
		t.Error("an all-reduce of an unknown number of ranks has a known size, and an unknown share of a link")
	}
}
