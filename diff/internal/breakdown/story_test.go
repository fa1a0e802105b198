package breakdown

import (
	"fmt"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/side"
)

// Of 124 units 92 are of five kinds that the base does not run. Three kinds are named, those with most time; the other
// two are counted.
func TestKindsThatOnlyTheHeadRuns(t *testing.T) {
	kind := func(phase string, batch, n int64, share float64) newKind {
		return newKind{side.Kind{Phase: phase, Batch: batch, Tokens: -1}, n, share}
	}
	units := func(n int64) string { return fmt.Sprint(n, " of 124 units") }
	few, many, prefill := kind("decode", 8, 36, 0.2), kind("decode", 32, 32, 0.25), kind("prefill", 1, 8, 0.3)
	small, mixed := kind("prefill", 2, 8, 0.01), kind("mixed", 4, 8, 0.1)
	for _, c := range []struct {
		kinds []newKind
		want  string
	}{
		{nil, ""},
		{[]newKind{small}, ""},
		{[]newKind{few}, "36 of 124 units are of another kind (decode 8), which base does not run"},
		{[]newKind{few, small}, "44 of 124 units are of kinds that base does not run: 36 of decode 8, 8 more in 1 kind"},
		{[]newKind{few, many, prefill, small, mixed}, "92 of 124 units are of kinds that base does not run: " +
			"8 of prefill 1, 32 of decode 32, 36 of decode 8, 16 more in 2 kinds"},
	} {
		if got := onlyHead(c.kinds, units); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
