package lists

import (
	"cmp"
	"slices"
	"sort"
)

// Sort puts a list in order and leaves what is equal as it was. It is one sort for lists of every type, where
// slices.SortStableFunc is compiled anew for each; take that for lists as long as a trace, which it sorts faster.
func Sort[T any](list []T, compare func(a, b T) int) {
	sort.SliceStable(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}

// Falling puts a list in order, the largest first, and leaves what is equal as it was.
func Falling[T any](list []T, size func(T) float64) {
	Sort(list, func(a, b T) int { return cmp.Compare(size(b), size(a)) })
}

// InOrder sorts a list by the places of its keys in an order; what has none comes last.
func InOrder[T any, K comparable](list []T, order []K, key func(T) K) {
	place := func(item T) int {
		if at := slices.Index(order, key(item)); at >= 0 {
			return at
		}
		return len(order)
	}
	Sort(list, func(a, b T) int { return place(a) - place(b) })
}

// Lead puts the items of which is holds before the others, and leaves the order among them as it was.
func Lead[T any](list []T, is func(T) bool) {
	InOrder(list, []bool{true}, is)
}
