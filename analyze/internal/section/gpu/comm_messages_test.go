package gpu

import "testing"

// By the definitions of nccl-tests: 8 ranks with messages of 1,000 bytes. An all-gather has a size of 8,000, of which each
// link carries 7,000; an all-reduce has one of 1,000 and sends it nearly twice, 1,750.
func TestMessageVolume(t *testing.T) {
	for _, c := range []struct {
		collective     string
		ranks          int64
		moved, carried float64
		known, linked  bool
	}{
		{"AllReduce", 8, 1000, 1750, true, true},
		{"AllReduce", 2, 1000, 1000, true, true},
		{"AllGather", 8, 8000, 7000, true, true},
		{"ReduceScatter", 4, 4000, 3000, true, true},
		{"Broadcast", 8, 1000, 1000, true, true},
		{"SendRecv", 8, 1000, 1000, true, true},
		{"AllToAll", 8, 1000, 0, true, false},
	} {
		moved, carried, known, linked := messageVolume(c.collective, 1000, c.ranks)
		if moved != c.moved || carried != c.carried || known != c.known || linked != c.linked {
			t.Errorf("%s of %d ranks: %v, %v (%v, %v)", c.collective, c.ranks, moved, carried, known, linked)
		}
	}
	if _, _, known, linked := messageVolume("AllGather", 1000, -1); known || linked {
		t.Error("an all-gather of an unknown number of ranks has a known size")
	}
	if moved, _, known, linked := messageVolume("AllReduce", 1000, -1); moved != 1000 || !known || linked {
		t.Error("an all-reduce of an unknown number of ranks has a known size, and an unknown share of a link")
	}
}
