package attrib

import (
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// 65,534 is the last node that 16 bits hold beside trace.None; what was set before the list widens stays.
func TestNodeListWidens(t *testing.T) {
	for _, memory := range []*spill.Arena{nil, spill.New()} {
		l := newNodeList(memory, 1<<18) // so long that the arena gives it
		want := []int32{trace.None, 0, 65_534, 7, trace.None, 65_535, 1<<31 - 2, 3, trace.None}
		for i, node := range want[:8] {
			if wide := l.wide != nil; wide != (i > 5) {
				t.Errorf("before %d the list is wide: %v", node, wide)
			}
			l.set(i, node)
		}
		var got []int32
		for i := range want {
			got = append(got, l.at(int32(i)))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		l.free()
		if err := memory.Close(); err != nil {
			t.Error(err)
		}
	}
}
