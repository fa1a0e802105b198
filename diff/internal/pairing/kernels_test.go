package pairing

import (
	"testing"

	"github.com/nsys-llm/explain/diff/internal/side"
)

func TestLaunchGeometry(t *testing.T) {
	for _, c := range []struct{ base, head, want string }{
		{"grid 1024×1024, block 4×4", "grid 256×256, block 16×16", "block 4×4 → 16×16, grid 1024×1024 → 256×256"},
		{"grid 8, block 512", "grid 8, block 512", ""},
		{"grid 8, block 512", "grid 8, block 512, shared 4096 B", "shared none → 4096 B"},
		{"grid 8, block 512, shared 4096 B", "grid 8, block 512", "shared 4096 B → none"},
		{"", "grid 8, block 512", ""}, // it varies in one capture
	} {
		base := &side.Work{Name: "k", Time: 10, Count: 1, Geometry: c.base}
		head := &side.Work{Name: "k", Time: 5, Count: 1, Geometry: c.head}
		k := KernelRow(Pair{Base: base, Head: head, By: "exact"}, 100)
		if k.Launch != c.want || k.Note != c.want || *k.Ratio != 0.5 {
			t.Errorf("%q → %q: %+v, want %q", c.base, c.head, k, c.want)
		}
	}
}
