package order_test

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nsys-llm/explain/analyze/report/order"
)

type item struct{ key, at int }

// items are numbered in their order, so that a list shows what became of it; few keys make many of them equal.
func items(t *rapid.T) []item {
	list := make([]item, rapid.IntRange(0, 200).Draw(t, "length"))
	for i := range list {
		list[i] = item{rapid.IntRange(0, 9).Draw(t, "key"), i}
	}
	return list
}

func byKey(a, b item) int { return cmp.Compare(a.key, b.key) }

func TestStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := items(t)
		want := slices.Clone(list)
		slices.SortStableFunc(want, byKey)
		order.Stable(list, byKey)
		if !slices.Equal(list, want) {
			t.Errorf("got %v, want %v", list, want)
		}
	})
}

// TestBy holds By to an order that leaves nothing open, which is what it is for.
func TestBy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := items(t)
		total := func(a, b item) int { return cmp.Or(byKey(b, a), cmp.Compare(a.at, b.at)) }
		want := slices.Clone(list)
		slices.SortStableFunc(want, total)
		order.By(list, total)
		if !slices.Equal(list, want) {
			t.Errorf("got %v, want %v", list, want)
		}
	})
}
