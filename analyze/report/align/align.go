// Package align lays two sequences beside each other: which element of the one stands for which of the other. It is the
// algorithm of E. Myers, "An O(ND) Difference Algorithm and Its Variations" (1986), and stands alone.
package align

import "slices"

// MaxEdits bounds insertions and removals together, and with them the memory: some 4·MaxEdits² bytes at worst.
const MaxEdits = 3_000

// Pairs gives, for each element of b, the index of its partner in a, or -1: the longest common subsequence, so that
// partners come in the same order on both sides. ok is false, and all beyond the common ends is alone, where the sides
// differ by more than maxEdits insertions and removals. Time is len(a)+len(b) times the number of edits at most.
func Pairs[T comparable](a, b []T, maxEdits int) (of []int32, ok bool) {
	of = slices.Repeat([]int32{-1}, len(b))
	lead := 0
	for lead < len(a) && lead < len(b) && a[lead] == b[lead] {
		of[lead] = int32(lead)
		lead++
	}
	a, b = a[lead:], b[lead:]
	for n, m := len(a), len(b); n > 0 && m > 0 && a[n-1] == b[m-1]; n, m = n-1, m-1 {
		of[lead+m-1] = int32(lead + n - 1)
		a, b = a[:n-1], b[:m-1]
	}
	if len(a) == 0 || len(b) == 0 {
		return of, true
	}
	return of, search(a, b, of[lead:], int32(lead), min(maxEdits, len(a)+len(b)))
}

// search fills in the pairs of what lies between the common ends.
func search[T comparable](a, b []T, of []int32, lead int32, maxEdits int) bool {
	var trace [][]int32             // by number of edits: how far along a each diagonal -d, -d+2, … d has come
	reach := func(d, k int) int32 { // of the diagonal k after d edits
		if d < 0 || k < -d || k > d {
			return -1
		}
		return trace[d][(k+d)/2]
	}
	for d := 0; d <= maxEdits; d++ {
		row := make([]int32, d+1)
		trace = append(trace, row)
		for k := -d; k <= d; k += 2 {
			x, _ := step(d, k, reach)
			for int(x) < len(a) && int(x)-k < len(b) && int(x)-k >= 0 && a[x] == b[int(x)-k] {
				x++
			}
			row[(k+d)/2] = x
			if int(x) >= len(a) && int(x)-k >= len(b) {
				back(d, k, reach, of, lead)
				return true
			}
		}
	}
	return false
}

// step is where the diagonal k starts after d edits: below the diagonal above (a removal), or beside the one below (an
// insertion), whichever is further. from is the diagonal that it comes from.
func step(d, k int, reach func(d, k int) int32) (x int32, from int) {
	if d == 0 {
		return 0, 0
	}
	down, right := reach(d-1, k+1), reach(d-1, k-1) // insertion of b's element, removal of a's
	if k == -d || k != d && right < down {
		return down, k + 1
	}
	return right + 1, k - 1
}

// back goes the way back and notes the pairs.
func back(d, k int, reach func(d, k int) int32, of []int32, lead int32) {
	for ; d >= 0; d-- {
		start, from := step(d, k, reach)
		for x := reach(d, k) - 1; x >= start; x-- {
			of[int(x)-k] = lead + x
		}
		k = from
	}
}
