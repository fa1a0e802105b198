package stat

import "slices"

const (
	warmupRatio  = 0.02
	warmupSpread = 3 * 1.4826 // median absolute deviations
	minForWarmup = 3          // units of a kind
	maxWarmup    = 2          // units: at most so many, one in ten, or one in three up to longWarmup; more are a trend
	longWarmup   = 10
)

// Warmup is how many of the first units of a kind are warm-up; times are of its units in the order in which they ran.
// They are the first ones, as long as they take longer than the median of those after the first third (at most ten) by
// 2 % and by three standard deviations, estimated by the median absolute deviation; at most two units, one in ten, or
// that third, since more are a trend.
func Warmup(units []float64) int {
	n := len(units)
	if n < minForWarmup {
		return 0
	}
	third := max(1, min(n/3, longWarmup))
	times := slices.Clone(units[third:])
	slices.Sort(times)
	m := Percentile(times, 0.5)
	for i := range times {
		times[i] = max(times[i]-m, m-times[i])
	}
	slices.Sort(times)
	limit := m + max(warmupRatio*m, warmupSpread*Percentile(times, 0.5))
	slow := 0
	for slow < n && units[slow] > limit {
		slow++
	}
	if slow > max(maxWarmup, n/10, third) || slow*2 > n {
		return 0
	}
	if slow > maxWarmup {
		next := slices.Clone(units[slow:min(n, 2*slow)])
		slices.Sort(next)
		if Percentile(next, 0.5) > (m+limit)/2 {
			return 0
		}
	}
	return slow
}
