package stat

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
)

// sums are the exact sums from which the mean and the standard deviation of whole numbers follow, independent of their
// order.
type sums struct {
	n              int64
	total, squares big.Int
}

func (m *sums) add(s Sample) {
	addAll(m, s.narrow)
	addAll(m, s.wide)
}

// addAll adds fewer than 2^32 numbers.
func addAll[T uint32 | int64](m *sums, list []T) {
	m.n += int64(len(list))
	var total, low, high, carry uint64
	for _, v := range list {
		if int64(v) < 0 || int64(v) > math.MaxUint32 {
			m.n--
			m.addTimes(int64(v), 1)
			continue
		}
		total += uint64(v)
		low, carry = bits.Add64(low, uint64(v)*uint64(v), 0)
		high += carry
	}
	m.total.Add(&m.total, new(big.Int).SetUint64(total))
	squares := new(big.Int).SetUint64(high)
	m.squares.Add(&m.squares, squares.Lsh(squares, 64).Add(squares, new(big.Int).SetUint64(low)))
}

// addTimes adds a number n times.
func (m *sums) addTimes(v, n int64) {
	value, times := big.NewInt(v), big.NewInt(n)
	m.n += n
	m.total.Add(&m.total, new(big.Int).Mul(value, times))
	m.squares.Add(&m.squares, times.Mul(times, value).Mul(times, value))
}

// moments are the mean, total over count, and the population standard deviation around it: the root of n times the sum
// of squares less the square of the sum, over n.
func (m *sums) moments() (mean, sd float64) {
	spread := big.NewInt(m.n)
	spread.Mul(spread, &m.squares).Sub(spread, new(big.Int).Mul(&m.total, &m.total))
	total, _ := m.total.Float64()
	square, _ := spread.Float64()
	return total / float64(m.n), math.Sqrt(square) / float64(m.n)
}

// Bounds of sorting by digits.
const (
	digitBits = 11
	digits    = 1 << digitBits
	maxDigits = (64 + digitBits - 1) / digitBits
	minRadix  = 2 << digitBits // fewer are sorted faster by comparison
)

// Sort orders a list of whole numbers. A long one is sorted by digits of 11 bits, the last digit first, as many as the
// range of the numbers has: two of them for durations below 4.2 ms, three below 8.5 s. A list has fewer than 2^31
// numbers.
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
	used := 0                          // digits
	for used*digitBits < 64 && span>>(used*digitBits) > 0 {
		used++
	}
	// By digit and its value: how many numbers have it, then where the next of them goes
	var ends [maxDigits][digits]int32
	for _, v := range list {
		u := uint64(v) - uint64(low)
		for d := range ends[:used] {
			ends[d][u&(digits-1)]++
			u >>= digitBits
		}
	}
	for d := range ends[:used] {
		at, shift := &ends[d], d*digitBits
		sum := int32(0)
		for x, n := range at {
			at[x] = sum
			sum += n
		}
		for _, v := range from {
			x := (uint64(v) - uint64(low)) >> shift & (digits - 1)
			to[at[x]] = v
			at[x]++
		}
		from, to = to, from
	}
	if &from[0] != &list[0] {
		copy(list, from)
	}
}
