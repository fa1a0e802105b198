package spill

import (
	"slices"
	"testing"
)

// 65,534 is the last index that 16 bits hold beside -1; what was set before the list widens stays.
func TestIndexesWiden(t *testing.T) {
	for _, memory := range []*Arena{nil, New()} {
		l := NewIndexes(memory, 1<<18) // so long that the arena gives it
		want := []int32{-1, 0, 65_534, 7, -1, 65_535, 1<<31 - 2, 3, -1}
		for i, index := range want[:8] {
			if wide := l.wide != nil; wide != (i > 5) {
				t.Errorf("before %d the list is wide: %v", index, wide)
			}
			l.Set(i, index)
		}
		var got []int32
		for i := range want {
			got = append(got, l.At(i))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		l.Free()
		if err := memory.Close(); err != nil {
			t.Error(err)
		}
	}
}
