// Package lists has the loops that every package writes: sums, counts, sets and the like, as functions. It stands
// alone, like package slices of the standard library, and knows nothing of what the lists hold.
package lists

import (
	"slices"
	"sort"
)

// Number is what can be added up.
type Number interface {
	~int | ~int32 | ~int64 | ~float64
}

// Total adds up a list, from its first item on.
func Total[N Number](list []N) (sum N) {
	for _, v := range list {
		sum += v
	}
	return sum
}

// Sum adds up a number of each item, from the first on.
func Sum[T any, N Number](list []T, of func(T) N) (sum N) {
	for i := range list {
		sum += of(list[i])
	}
	return sum
}

// Most is the largest number of any item, and zero if none is larger.
func Most[T any, N Number](list []T, of func(T) N) (most N) {
	for i := range list {
		most = max(most, of(list[i]))
	}
	return most
}

// Count is how many items there are of which is holds.
func Count[T any](list []T, is func(T) bool) (n int) {
	for i := range list {
		if is(list[i]) {
			n++
		}
	}
	return n
}

// Filter is the items of which is holds, as a list of their own; nil if there are none.
func Filter[T any](list []T, is func(T) bool) (kept []T) {
	for i := range list {
		if is(list[i]) {
			kept = append(kept, list[i])
		}
	}
	return kept
}

// Find is the first item of which is holds; nil if there is none.
func Find[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// Where are the numbers from 0 up to n of which is holds.
func Where[N int | int32](n int, is func(N) bool) (list []N) {
	for i := N(0); i < N(n); i++ {
		if is(i) {
			list = append(list, i)
		}
	}
	return list
}

// Map makes one thing of each item; nil of none.
func Map[T, R any](list []T, of func(T) R) []R {
	if len(list) == 0 {
		return nil
	}
	out := make([]R, len(list))
	for i := range list {
		out[i] = of(list[i])
	}
	return out
}

// Set holds a key of each item.
func Set[T any, K comparable](list []T, key func(T) K) map[K]bool {
	set := make(map[K]bool, len(list))
	for i := range list {
		set[key(list[i])] = true
	}
	return set
}

// Groups are the items with the same key together, in the order of their first items.
func Groups[T any, K comparable](list []T, key func(T) K) (groups [][]T) {
	at := map[K]int{}
	for _, x := range list {
		k := key(x)
		i, ok := at[k]
		if !ok {
			i = len(groups)
			at[k], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], x)
	}
	return groups
}

// Entry is the item of which is holds; without one, added is put at the end.
func Entry[T any](list *[]T, is func(T) bool, added T) *T {
	at := slices.IndexFunc(*list, is)
	if at < 0 {
		at = len(*list)
		*list = append(*list, added)
	}
	return &(*list)[at]
}

// Place is the index of an item, which is put at the end if it is missing.
func Place[N int32 | uint32, T comparable](list *[]T, item T) N {
	at := slices.Index(*list, item)
	if at < 0 {
		at = len(*list)
		*list = append(*list, item)
	}
	return N(at)
}

// At is the n-th item of a list that may lack it: then the list grows up to it.
func At[T any, N int | int32](list *[]T, n N) *T {
	for len(*list) <= int(n) {
		var none T
		*list = append(*list, none)
	}
	return &(*list)[n]
}

// Nth is the n-th item of a list, or none if the list is shorter.
func Nth[T any](list []T, n int, none T) T {
	if n < len(list) {
		return list[n]
	}
	return none
}

// AddTo adds numbers by key to those of another map.
func AddTo[K comparable, N Number](sums, more map[K]N) {
	for k, n := range more {
		sums[k] += n
	}
}

// Sampled decides whether to keep an item of this number: about 1 in 2, 4, 8 … of n, so that about most are left.
// It is pseudo-random, but every list keeps the same numbers.
func Sampled(number int64, n, most int) bool {
	halvings := 0
	for ; n > most; n = (n + 1) / 2 {
		halvings++
	}
	return uint64(number)*0x9e3779b97f4a7c15>>(64-halvings) == 0 // Knuth, The Art of Computer Programming 3, 6.4
}

// Indexes are the numbers from 0 up to, but without, n.
func Indexes[N int | int32](n int) []N {
	list := make([]N, n)
	for i := range list {
		list[i] = N(i)
	}
	return list
}

// Near is the first of n numbers from which on something holds, or n. It looks around a number near it first, at
// distances that double.
func Near(n, near int, is func(i int) bool) int {
	lo, hi, step := 0, n, 1
	if near < n && !is(near) {
		for lo = near + 1; near+step < n && hi == n; step *= 2 {
			if is(near + step) {
				hi = near + step
			} else {
				lo = near + step + 1
			}
		}
	} else {
		for hi = near; near-step >= 0 && lo == 0; step *= 2 {
			if is(near - step) {
				hi = near - step
			} else {
				lo = near - step + 1
			}
		}
	}
	return lo + sort.Search(hi-lo, func(i int) bool { return is(lo + i) })
}
