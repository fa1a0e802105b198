package prom

import (
	"crypto/md5"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Histogram holds the observations of all series of one family.
type Histogram struct {
	Family string    // the name, of several possible ones, that was found
	Bounds []float64 // upper, ascending; the last is +Inf
	Counts []float64 // cumulative
	Sum    float64   // NaN if not stated
	Count  float64
}

// mostEdges is how many edges a text lists; servers have up to 40.
const mostEdges = 100

// Edges are the upper bounds of the buckets, as text.
func (h *Histogram) Edges() string {
	text := []byte("le")
	for _, b := range h.Bounds {
		text = strconv.AppendFloat(append(text, ' '), b, 'g', -1, 64)
	}
	if len(h.Bounds) > mostEdges {
		return fmt.Sprintf("le %d edges %x", len(h.Bounds), md5.Sum(text))
	}
	return string(text)
}

// Quantile estimates the value below which the share q (0..1) of the observations lie, as Prometheus does: linear
// within its bucket, whose lower bound is that of the one before, or 0. ok is false without observations, and if the
// quantile lies in the last bucket, which has no upper bound: then the true value is above the one returned.
func (h *Histogram) Quantile(q float64) (v float64, ok bool) {
	if !(h.Count > 0) || len(h.Bounds) == 0 {
		return 0, false
	}
	rank := q * h.Count
	i, _ := slices.BinarySearch(h.Counts, rank)
	i = min(i, len(h.Bounds)-1)
	for i > 0 && h.Counts[i] <= h.Counts[i-1] { // an empty bucket holds no quantile
		i--
	}
	lower, below := h.lower(i)
	if math.IsInf(h.Bounds[i], 1) {
		return lower, false
	}
	in := h.Counts[i] - below
	if in <= 0 {
		return h.Bounds[i], true
	}
	return lower + (h.Bounds[i]-lower)*(rank-below)/in, true
}

// lower is the lower bound of bucket i and the observations below it.
func (h *Histogram) lower(i int) (bound, below float64) {
	switch {
	case i > 0:
		return h.Bounds[i-1], h.Counts[i-1]
	case h.Bounds[0] <= 0:
		return h.Bounds[0], 0
	}
	return 0, 0
}

// Range is the lowest and highest value that an observation can have: the edges of the first and the last bucket that
// is not empty. ok is false if the last has no upper edge.
func (h *Histogram) Range() (low, high float64, ok bool) {
	first, last := -1, -1
	for i := range h.Counts {
		if _, below := h.lower(i); h.Counts[i] > below {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first < 0 {
		return 0, 0, false
	}
	low, _ = h.lower(first)
	return low, h.Bounds[last], !math.IsInf(h.Bounds[last], 1)
}

// Spread is the standard deviation if observations lie evenly within their buckets: between the middles of the buckets,
// plus a twelfth of the squared width within each. Observations above the last edge are left out.
func (h *Histogram) Spread() float64 {
	var n, sum, squares float64
	for i := range h.Bounds {
		lower, below := h.lower(i)
		in := h.Counts[i] - below
		if in <= 0 || math.IsInf(h.Bounds[i], 0) {
			continue
		}
		mid, width := (lower+h.Bounds[i])/2, h.Bounds[i]-lower
		n, sum, squares = n+in, sum+in*mid, squares+in*(mid*mid+width*width/12)
	}
	if n == 0 {
		return 0
	}
	return math.Sqrt(max(0, squares/n-(sum/n)*(sum/n)))
}

// add adds the observations of another series; false if its buckets differ.
func (h *Histogram) add(o *Histogram) bool {
	if !slices.Equal(h.Bounds, o.Bounds) {
		return false
	}
	for i := range h.Counts {
		h.Counts[i] += o.Counts[i]
	}
	h.Sum += o.Sum
	h.Count += o.Count
	return true
}

// minus is h less an earlier o; nil if a count went down, or if the buckets differ.
func (h *Histogram) minus(o *Histogram) *Histogram {
	if h.Family != o.Family || !slices.Equal(h.Bounds, o.Bounds) || h.Count < o.Count || h.Sum < o.Sum {
		return nil
	}
	d := &Histogram{Family: h.Family, Bounds: h.Bounds, Counts: make([]float64, len(h.Counts)), Sum: h.Sum - o.Sum,
		Count: h.Count - o.Count}
	last := 0.0
	for i := range h.Counts {
		d.Counts[i] = h.Counts[i] - o.Counts[i]
		if d.Counts[i] < last {
			return nil
		}
		last = d.Counts[i]
	}
	return d
}
