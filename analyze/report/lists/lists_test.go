package lists

import (
	"maps"
	"math/bits"
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
	long := func(s string) bool { return len(s) > 1 }
	if got := Filter(words, long); !slices.Equal(got, []string{"bcd", "ef"}) || words[0] != "a" {
		t.Errorf("filtered %q of %q", got, words)
	}
	if got := Filter(words, func(s string) bool { return s == "" }); got != nil {
		t.Errorf("filtered nothing: %q, want nil", got)
	}
	if got := Find(words, func(s *string) bool { return long(*s) }); got != &words[1] {
		t.Errorf("found %v, want the second word", got)
	}
	if got := Find(words, func(s *string) bool { return *s == "" }); got != nil {
		t.Errorf("found %q, want nil", *got)
	}
	led := []string{"a", "bcd", "b", "ef", "c"}
	if Lead(led, long); !slices.Equal(led, []string{"bcd", "ef", "a", "b", "c"}) {
		t.Errorf("led %q", led)
	}
	slices.Reverse(led)
	if Falling(led, func(s string) float64 { return float64(len(s)) }); !slices.Equal(led, []string{"bcd", "ef", "c", "b", "a"}) {
		t.Errorf("falling %q", led)
	}
	if got := Where(5, func(n int32) bool { return n%2 == 1 }); !slices.Equal(got, []int32{1, 3}) {
		t.Errorf("where %v", got)
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
	ordered := []string{"x", "b", "y", "a", "b2"}
	if InOrder(ordered, []string{"a", "b"}, func(s string) string { return s[:1] }); !slices.Equal(ordered, []string{"a", "b", "b2", "x", "y"}) {
		t.Errorf("in order %q", ordered)
	}
	groups := Groups([]string{"ef", "a", "bcd", "gh", "i"}, size)
	if got := Map(groups, func(g []string) string { return strings.Join(g, "+") }); !slices.Equal(got,
		[]string{"ef+gh", "a+i", "bcd"}) {
		t.Errorf("groups %q", got)
	}
	counts := []int{7}
	*Entry(&counts, func(n int) bool { return n == 7 }, 1) += 10
	*Entry(&counts, func(n int) bool { return n == 7 }, 1) += 20
	if !slices.Equal(counts, []int{17, 21}) {
		t.Errorf("entries %v", counts)
	}
	if a, b := Place[int32](&counts, 21), Place[int32](&counts, 5); a != 1 || b != 2 || counts[2] != 5 {
		t.Errorf("places %d and %d in %v", a, b, counts)
	}
	sums := []int{4}
	*At(&sums, 0) += 1
	*At(&sums, 2) += 7
	if !slices.Equal(sums, []int{5, 0, 7}) {
		t.Errorf("sums %v", sums)
	}
	byWord := map[string]int{"a": 1, "b": 2}
	AddTo(byWord, map[string]int{"b": 3, "c": 4})
	if !maps.Equal(byWord, map[string]int{"a": 1, "b": 5, "c": 4}) {
		t.Errorf("sums by key %v", byWord)
	}
	if got := Indexes[int32](3); !slices.Equal(got, []int32{0, 1, 2}) {
		t.Errorf("indexes %v", got)
	}
}

func TestRuns(t *testing.T) {
	var runs []int64
	for _, v := range []int64{7, 7, 7, -1, 7} {
		runs = AddRun(runs, v)
	}
	if want := []int64{7, 3, -1, 1, 7, 1}; !slices.Equal(runs, want) {
		t.Errorf("runs %v, want %v", runs, want)
	}
	if list, err := OfRuns(runs, 5, -1, 7); err != nil || !slices.Equal(list, []int64{7, 7, 7, -1, 7}) {
		t.Errorf("of runs %v, %v", list, err)
	}
	for what, c := range map[string]struct {
		runs []int64
		err  string
	}{
		"too large a value": {[]int64{8, 5}, "8 is out of range"},
		"too many":          {[]int64{7, 3, 7, 3}, "a run of 3 where 2 are left"},
		"no count":          {[]int64{7, 5, 7}, "a value without a count"},
		"none of a value":   {[]int64{7, 0}, "a run of 0 where 5 are left"},
		"too few":           {[]int64{7, 4}, "4 values where 5 belong"},
	} {
		if _, err := OfRuns(c.runs, 5, -1, 7); err == nil || err.Error() != c.err {
			t.Errorf("%s: %v, want %s", what, err, c.err)
		}
	}
}

func TestNumbering(t *testing.T) {
	var n Numbering[string]
	if n.Has("b") {
		t.Error("the empty one has a key")
	}
	for i, want := range []int32{0, 0, 1, 0, 2} {
		if got := n.Of([]string{"b", "b", "a", "b", "c"}[i]); got != want {
			t.Errorf("number %d is %d, want %d", i, got, want)
		}
	}
	if !slices.Equal(n.Keys, []string{"b", "a", "c"}) || !n.Has("a") || n.Has("d") {
		t.Errorf("keys %q", n.Keys)
	}
}

// Wherever it begins, Near finds what a search of all does, in steps that grow with the logarithm of the distance.
func TestNear(t *testing.T) {
	const n = 1000
	for want := 0; want <= n; want += 7 {
		for near := 0; near <= n; near += 9 {
			asked := 0
			got := Near(n, near, func(i int) bool {
				if asked++; i < 0 || i >= n {
					t.Fatalf("asked for %d of %d", i, n)
				}
				return i >= want
			})
			if away := max(want-near, near-want); got != want || asked > 2*bits.Len(uint(away))+3 {
				t.Fatalf("from %d: %d, want %d, found in %d steps", near, got, want, asked)
			}
		}
	}
	if got := Near(0, 0, func(int) bool { return false }); got != 0 {
		t.Errorf("%d of none", got)
	}
}
