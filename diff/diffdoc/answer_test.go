package diffdoc

import "testing"

// Up to three notes are one sentence, more are one each.
func TestParagraph(t *testing.T) {
	notes := []string{"launches 5 → 6", "8 units are new", "ncclKernel is new", "time per token -1 µs"}
	for n, want := range map[int]string{0: "", 2: "Launches 5 → 6; 8 units are new.",
		4: "Launches 5 → 6. 8 units are new. ncclKernel is new. Time per token -1 µs."} {
		if got := paragraph(notes[:n]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
