// Package order holds the one median of all packages that judge numbers.
package order

import (
	"math"
	"slices"
)

// Median of a list, which it sorts: the middle value, or the mean of the two in the middle. The median of nothing is 0.
func Median[T int64 | float64](list []T) T {
	slices.Sort(list)
	n := len(list)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return list[n/2]
	}
	return (list[n/2-1] + list[n/2]) / 2
}

// Spread is the standard deviation of a normal distribution about 0 whose values are as far from it, by their median.
// It changes the list.
func Spread(list []float64) float64 {
	for i, v := range list {
		list[i] = math.Abs(v)
	}
	return 1.4826 * Median(list)
}
