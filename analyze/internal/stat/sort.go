package stat

import "slices"

// Bounds of sorting by digits.
const (
	digitBits = 11
	digits    = 1 << digitBits
	minRadix  = 2 << digitBits // fewer are sorted faster by comparison
)

// Sort orders a list of whole numbers. A long one is sorted by digits of 11 bits, the last digit first, as many as the
// range of the numbers has: three passes for durations below 8.5 s.
func Sort[T uint32 | int64](list []T) { SortIn(list, nil) }

// SortIn is Sort with room for as many numbers as the list has, which a long list needs; nil makes some.
func SortIn[T uint32 | int64](list, room []T) {
	if len(list) < minRadix {
		slices.Sort(list)
		return
	}
	low, high, sorted := list[0], list[0], true
	for i, v := range list {
		low, high = min(low, v), max(high, v)
		sorted = sorted && (i == 0 || list[i-1] <= v)
	}
	if sorted {
		return
	}
	if len(room) < len(list) {
		room = make([]T, len(list))
	}
	from, to := list, room[:len(list)]
	span := uint64(high) - uint64(low) // also where the difference of two int64 overflows
	for shift := 0; shift < 64 && span>>shift > 0; shift += digitBits {
		var at [digits]int
		for _, v := range from {
			at[(uint64(v)-uint64(low))>>shift&(digits-1)]++
		}
		sum := 0
		for d, n := range at {
			at[d] = sum
			sum += n
		}
		for _, v := range from {
			d := (uint64(v) - uint64(low)) >> shift & (digits - 1)
			to[at[d]] = v
			at[d]++
		}
		from, to = to, from
	}
	if &from[0] != &list[0] {
		copy(list, from)
	}
}
