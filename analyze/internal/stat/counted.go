package stat

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
)

// Counted is a sample as its distinct values, ascending, with how often each occurs. Samples of several captures merge
// by adding counts, and their percentiles stay exact.
type Counted struct {
	Values []int64
	Counts []int64 // above 0
}

// Count makes a counted sample of a sorted one.
func Count(sorted []int64) (c Counted) {
	for _, v := range sorted {
		c.put(v, 1)
	}
	return c
}

// put adds n observations of a value that is no less than those there.
func (c *Counted) put(v, n int64) {
	if last := len(c.Values) - 1; last >= 0 && c.Values[last] == v {
		c.Counts[last] += n
		return
	}
	c.Values, c.Counts = append(c.Values, v), append(c.Counts, n)
}

// Merge adds up counted samples.
func (c Counted) Merge(x Counted) (sum Counted) {
	n := len(c.Values) + len(x.Values)
	sum.Values, sum.Counts = make([]int64, 0, n), make([]int64, 0, n)
	for range n {
		if len(c.Values) == 0 || len(x.Values) > 0 && x.Values[0] < c.Values[0] {
			c, x = x, c
		}
		sum.put(c.Values[0], c.Counts[0])
		c.Values, c.Counts = c.Values[1:], c.Counts[1:]
	}
	return sum
}

// Summary describes the observations exactly as [Summarize] does for the whole sample; nil if there are none.
func (c Counted) Summary() *report.Summary {
	if len(c.Values) == 0 {
		return nil
	}
	var m sums
	for i, v := range c.Values {
		m.addTimes(v, c.Counts[i])
	}
	mean, sd := m.moments()
	var ends []int // rank after the last observation of each value
	at := 0
	for _, k := range c.Counts {
		at += int(k)
		ends = append(ends, at)
	}
	return summary(int(m.n), mean, sd, func(k int) float64 {
		i, _ := slices.BinarySearch(ends, k+1)
		return float64(c.Values[i])
	})
}

// Coarse puts the observations into log-spaced bins, each at the middle of its whole numbers: values, and with them
// percentiles, are then off by 1 % at most. The first and the last value stay exact. Bins are the same in every sample,
// so that merging coarse samples and making them coarse again loses no more.
func (c Counted) Coarse() (out Counted) {
	for i, v := range c.Values {
		if i > 0 && i < len(c.Values)-1 {
			v = middleOfBin(v)
		}
		if n := len(out.Values); n > 0 && out.Values[n-1] >= v { // one of the ends is in the bin
			out.Values[n-1], out.Counts[n-1] = max(v, c.Values[0]), out.Counts[n-1]+c.Counts[i]
			continue
		}
		out.Values, out.Counts = append(out.Values, v), append(out.Counts, c.Counts[i])
	}
	return out
}

func middleOfBin(v int64) int64 { return MiddleOf(BinOf(v)) }

// Bins of coarse samples: values below least stay as they are, and those below fine, an edge, have bins half as wide,
// since whole numbers are coarse there already.
const least, fine = 100, 4094

var firstFine, lastFine, firstBin = bin(least * least), bin((fine - 1) * (fine - 1)), bin(fine)

// BinOf is the number of the bin of coarse samples that a value falls into.
func BinOf(v int64) int64 {
	switch {
	case v < least:
		return v
	case v < fine:
		return least + bin(float64(v)*float64(v)) - firstFine
	}
	return least + lastFine - firstFine + 1 + bin(float64(v)) - firstBin
}

// MiddleOf is the value that stands for all of a bin.
func MiddleOf(number int64) int64 {
	if number < least {
		return number
	}
	k, power := float64(number-least+firstFine), 2.0
	if int64(k) > lastFine {
		k, power = float64(number-least-(lastFine-firstFine+1)+firstBin), 1
	}
	lo, hi := math.Ceil(math.Pow(Growth, k/power)), math.Ceil(math.Pow(Growth, (k+1)/power))-1
	return max(least, int64(math.Round(2*lo*hi/(lo+hi))))
}
