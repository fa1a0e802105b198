package gate

import "testing"

func TestLegNames(t *testing.T) {
	for matrix, want := range map[string]string{"": "", "null": "", "[1]": "", `{"gpu": "h100"}`: "h100", `{"tp": 8, "gpu": "a100"}`: "a100, 8"} {
		if got := legName(matrix); got != want {
			t.Errorf("%s: %q, want %q", matrix, got, want)
		}
	}
}
