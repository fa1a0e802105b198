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
	n       int64
	total   [2]uint64 // of 128 bits in two's complement, the lower ones first
	squares [3]uint64 // of 192 bits
}

func (m *sums) add(s Sample) {
	m.n += int64(s.Len())
	var total, low, high, carry uint64
	for _, v := range s.narrow { // fewer than 2^32
		total += uint64(v)
		low, carry = bits.Add64(low, uint64(v)*uint64(v), 0)
		high += carry
	}
	m.addTotal(total, 0)
	m.addSquares(low, high, 1)
	for _, v := range s.wide {
		m.addTotal(uint64(v), uint64(v>>63))
		u := uint64(max(v, -v)) // also of the least int64
		high, low := bits.Mul64(u, u)
		m.addSquares(low, high, 1)
	}
}

func (m *sums) addTotal(low, high uint64) {
	var carry uint64
	m.total[0], carry = bits.Add64(m.total[0], low, 0)
	m.total[1] += high + carry
}

// addSquares adds a square, or a sum of squares, n times.
func (m *sums) addSquares(low, high, n uint64) {
	h1, l1 := bits.Mul64(low, n)
	h2, l2 := bits.Mul64(high, n)
	middle, carry := bits.Add64(h1, l2, 0)
	var c uint64
	m.squares[0], c = bits.Add64(m.squares[0], l1, 0)
	m.squares[1], c = bits.Add64(m.squares[1], middle, c)
	m.squares[2] += h2 + carry + c
}

// moments are the mean, total over count, and the population standard deviation around it: the root of n times the sum
// of squares less the square of the sum, over n.
func (m *sums) moments() (mean, sd float64) {
	n := big.NewInt(m.n)
	total := big.NewInt(int64(m.total[1]))
	total.Add(total.Lsh(total, 64), whole(m.total[0]))
	squares := new(big.Int)
	for i := len(m.squares) - 1; i >= 0; i-- {
		squares.Add(squares.Lsh(squares, 64), whole(m.squares[i]))
	}
	spread := squares.Sub(squares.Mul(squares, n), new(big.Int).Mul(total, total))
	return float(total) / float64(m.n), math.Sqrt(float(spread)) / float64(m.n)
}

func whole(v uint64) *big.Int { return new(big.Int).SetUint64(v) }

// float is the nearest floating-point number.
func float(v *big.Int) float64 {
	f, _ := v.Float64()
	return f
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
