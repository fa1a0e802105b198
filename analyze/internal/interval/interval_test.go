package interval_test

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nsys-llm/explain/analyze/internal/interval"
)

func set(pairs ...int64) interval.Set {
	s := interval.Set{}
	for i := 0; i < len(pairs); i += 2 {
		s = append(s, interval.Interval{Start: pairs[i], End: pairs[i+1]})
	}
	return s
}

func equal(a, b interval.Set) bool {
	return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b))
}

func TestAddMergesWhatOverlapsOrTouches(t *testing.T) {
	for _, c := range []struct {
		name      string
		add, want interval.Set
	}{
		{"nothing", set(), set()},
		{"apart", set(0, 10, 20, 30), set(0, 10, 20, 30)},
		{"touching", set(0, 10, 10, 20), set(0, 20)},
		{"overlapping", set(0, 10, 5, 15), set(0, 15)},
		{"inside", set(0, 30, 5, 10, 20, 40), set(0, 40)},
		{"same start", set(0, 10, 0, 5, 0, 20), set(0, 20)},
		{"empty and reversed ones are nothing", set(5, 5, 7, 6), set()},
		{"an empty one inside changes nothing", set(0, 10, 5, 5, 20, 30), set(0, 10, 20, 30)},
		{"negative times", set(-20, -10, -10, -5, 0, 5), set(-20, -5, 0, 5)},
	} {
		var got interval.Set
		for _, i := range c.add {
			got.Add(i.Start, i.End)
		}
		if !equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestAlgebra(t *testing.T) {
	a, b := set(0, 10, 20, 30, 40, 50), set(5, 25, 45, 47, 60, 70)
	for _, c := range []struct {
		name      string
		got, want interval.Set
	}{
		{"intersection", interval.Intersect(a, b), set(5, 10, 20, 25, 45, 47)},
		{"clip", a.Clip(5, 45), set(5, 10, 20, 30, 40, 45)},
		{"clip to nothing", a.Clip(10, 20), set()},
		{"of in any order", interval.Of([]interval.Interval{{Start: 20, End: 30}, {Start: 0, End: 5}, {Start: 5, End: 10}, {Start: 8, End: 8}}), set(0, 10, 20, 30)},
	} {
		if !equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	if a.Len() != 30 {
		t.Errorf("length %d", a.Len())
	}
	for _, c := range [][3]int64{{0, 50, 30}, {5, 25, 10}, {10, 20, 0}, {-10, 1, 1}, {49, 90, 1}, {60, 70, 0}, {22, 24, 2}, {30, 20, 0}} {
		if got := a.Within(c[0], c[1]); got != c[2] {
			t.Errorf("within %d-%d: %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

// An event without length at the very end belongs to the interval.
func TestHolds(t *testing.T) {
	i := interval.Interval{Start: 10, End: 20}
	for at, want := range map[int64]bool{9: false, 10: true, 19: true, 20: true, 21: false} {
		if i.Holds(at) != want {
			t.Errorf("Holds(%d) = %v", at, !want)
		}
	}
}

// universe is where the sets of the properties below lie: small enough to look at every point.
const universe = 60

var sets = rapid.Custom(func(t *rapid.T) interval.Set {
	list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) interval.Interval {
		start := rapid.Int64Range(0, universe).Draw(t, "start")
		return interval.Interval{Start: start, End: rapid.Int64Range(start, min(universe, start+12)).Draw(t, "end")}
	}), 0, 10).Draw(t, "intervals")
	return interval.Of(list)
})

// sound says whether a set keeps its promise: sorted, disjoint, not empty, not touching.
func sound(s interval.Set) bool {
	for i, x := range s {
		if x.End <= x.Start || i > 0 && x.Start <= s[i-1].End {
			return false
		}
	}
	return true
}

func holds(s interval.Set, at int64) bool {
	return slices.ContainsFunc(s, func(i interval.Interval) bool { return i.Start <= at && at < i.End })
}

// Every operation is what it means at every point.
func TestAlgebraAtEveryPoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := sets.Draw(t, "a"), sets.Draw(t, "b")
		lo := rapid.Int64Range(-5, universe+5).Draw(t, "lo")
		hi := rapid.Int64Range(lo, universe+5).Draw(t, "hi")
		within := int64(0)
		for at := int64(-6); at < universe+6; at++ {
			inA, inB, in := holds(a, at), holds(b, at), lo <= at && at < hi
			if inA && in {
				within++
			}
			for _, c := range []struct {
				name string
				got  interval.Set
				want bool
			}{
				{"intersection", interval.Intersect(a, b), inA && inB},
				{"clip", a.Clip(lo, hi), inA && in},
			} {
				if holds(c.got, at) != c.want {
					t.Fatalf("%s at %d: want %v in %v", c.name, at, c.want, c.got)
				}
				if !sound(c.got) {
					t.Fatalf("%s is not a set: %v", c.name, c.got)
				}
			}
		}
		if got := a.Within(lo, hi); got != within {
			t.Fatalf("within %d-%d: %d, want %d", lo, hi, got, within)
		}
	})
}

// Operations leave their arguments alone.
func TestArgumentsStayAsTheyAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := sets.Draw(t, "a"), sets.Draw(t, "b")
		wasA, wasB := slices.Clone(a), slices.Clone(b)
		interval.Intersect(a, b)
		a.Clip(0, universe)
		if !equal(a, wasA) || !equal(b, wasB) {
			t.Fatal("an argument changed")
		}
	})
}

// A cursor gives each interval, with its place, the part of a stretch in it, also where intervals overlap.
func TestCursor(t *testing.T) {
	c := interval.Cursor{Left: set(0, 100, 10, 20, 120, 130, 140, 150)}
	for _, step := range []struct {
		start, end int64
		overlaps   bool
		want       [][3]int64
	}{
		{5, 15, true, [][3]int64{{0, 5, 15}, {1, 10, 15}}},
		{50, 60, true, [][3]int64{{0, 50, 60}}},
		{100, 120, false, nil},
		{125, 145, true, [][3]int64{{2, 125, 130}, {3, 140, 145}}},
		{200, 210, false, nil},
	} {
		if got := c.Advance(step.start, step.end); got != step.overlaps {
			t.Errorf("%d-%d overlaps: %v", step.start, step.end, got)
		}
		var got [][3]int64
		c.Each(step.start, step.end, func(i int, start, end int64) { got = append(got, [3]int64{int64(i), start, end}) })
		if !slices.Equal(got, step.want) {
			t.Errorf("%d-%d: %v, want %v", step.start, step.end, got, step.want)
		}
	}
}
