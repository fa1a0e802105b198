package lists

import "testing"

// Of 1,000 steps with room for 300 two halvings leave about a quarter, whichever of them a kind of unit runs at: all, every
// second or every eighth, which are 125 and stay.
func TestSampledSteps(t *testing.T) {
	for every, want := range map[int64][2]int{1: {230, 270}, 2: {230, 270}, 8: {125, 125}} {
		n, kept := 1000, 0
		if every == 8 {
			n = 125
		}
		for i := range int64(n) {
			if Sampled(1+i*every, n, 300) {
				kept++
			}
		}
		if kept < want[0] || kept > want[1] {
			t.Errorf("every %d: %d of %d are kept, want %v", every, kept, n, want)
		}
	}
}
