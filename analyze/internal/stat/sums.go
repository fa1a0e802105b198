package stat

import (
	"math"
	"math/big"
	"math/bits"
)

// sums are the exact sums that the mean and the standard deviation of whole numbers follow from, in whatever order they
// come.
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
	m.addSquares(low, high)
	for _, v := range s.wide {
		m.addTotal(uint64(v), uint64(v>>63))
		u := uint64(max(v, -v)) // also of the least int64
		high, low := bits.Mul64(u, u)
		m.addSquares(low, high)
	}
}

func (m *sums) addTotal(low, high uint64) {
	var carry uint64
	m.total[0], carry = bits.Add64(m.total[0], low, 0)
	m.total[1] += high + carry
}

func (m *sums) addSquares(low, high uint64) {
	var carry uint64
	m.squares[0], carry = bits.Add64(m.squares[0], low, 0)
	m.squares[1], carry = bits.Add64(m.squares[1], high, carry)
	m.squares[2] += carry
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
