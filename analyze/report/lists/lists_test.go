package lists

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestLists(t *testing.T) {
	words := []string{"a", "bcd", "ef"}
	size := func(s string) int { return len(s) }
	if got := Total([]float64{0.5, 2, -1}); got != 1.5 {
		t.Errorf("total %g, want 1.5", got)
	}
	if got := Sum(words, size); got != 6 {
		t.Errorf("sum %d, want 6", got)
	}
	if got := Most(words, size); got != 3 {
		t.Errorf("most %d, want 3", got)
	}
	if got := Most([]int{-2, -1}, func(n int) int { return n }); got != 0 {
		t.Errorf("most of negative numbers %d, want 0", got)
	}
	if got := Count(words, func(s string) bool { return len(s) > 1 }); got != 2 {
		t.Errorf("count %d, want 2", got)
	}
	if got := Map(words, strings.ToUpper); !slices.Equal(got, []string{"A", "BCD", "EF"}) {
		t.Errorf("map %q", got)
	}
	if got := Map(nil, strings.ToUpper); got != nil {
		t.Errorf("map of nothing %q, want nil", got)
	}
	if got := Set(words, size); !maps.Equal(got, map[int]bool{1: true, 2: true, 3: true}) {
		t.Errorf("set %v", got)
	}
	if got := Indexes[int32](3); !slices.Equal(got, []int32{0, 1, 2}) {
		t.Errorf("indexes %v", got)
	}
}
