// Package order sorts lists that are short or sorted once: rows of tables, groups, findings.
//
// Why not slices.SortFunc: for each type of element it puts a dozen more functions into the program, 10 to 20 kB. Here all types
// share package sort's code. What sorts every kernel or call of a capture uses slices, which is faster.
package order

import "sort"

// By sorts the list by compare, which is less than, equal to or greater than 0 as a comes before, beside or after b. Like
// slices.SortFunc it leaves open where elements go that compare as equal.
func By[T any](list []T, compare func(a, b T) int) {
	sort.Slice(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}

// Stable is By, and elements that compare as equal stay in their order.
func Stable[T any](list []T, compare func(a, b T) int) {
	sort.SliceStable(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}
