package session

import (
	"cmp"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
)

// How many values of a sample are kept for its percentiles: for a whole session, and for one layer.
const (
	maxSample      = 1 << 20
	maxLayerSample = 1 << 14
)

// Sample is a distribution of values in the order of the file. Count, sum, extremes and deviation are exact.
// Percentiles are exact up to maxSample values; beyond, they use every second, fourth, … value.
type Sample struct {
	limit    int // even; 0: maxSample
	n        int64
	sum      float64
	min, max float64
	mean, m2 float64 // Welford's running mean and sum of squared deviations
	values   []float64
	stride   int64
}

func (s *Sample) add(v float64) {
	if s.n == 0 {
		s.min, s.max, s.stride = v, v, 1
		s.limit = cmp.Or(s.limit, maxSample)
	}
	if s.n%s.stride == 0 {
		if len(s.values) == s.limit {
			half := s.limit / 2
			for i := range half {
				s.values[i] = s.values[2*i]
			}
			s.values, s.stride = s.values[:half], s.stride*2
		}
		if s.n%s.stride == 0 {
			s.values = append(s.values, v)
		}
	}
	s.n++
	s.sum += v
	s.min, s.max = min(s.min, v), max(s.max, v)
	d := v - s.mean
	s.mean += d / float64(s.n)
	s.m2 += d * (v - s.mean)
}

// N is the number of values.
func (s *Sample) N() int64 { return s.n }

// Sum of all values.
func (s *Sample) Sum() float64 { return s.sum }

// Stated reports whether only the number and the sum of the values are known, as a summary states them.
func (s *Sample) Stated() bool { return s.n > 0 && len(s.values) == 0 }

// state adds values of which only the number and the sum are known.
func (s *Sample) state(n int64, sum float64) { s.n, s.sum = s.n+n, s.sum+sum }

// Mean of all values, nil if there is none.
func (s *Sample) Mean() *float64 {
	if s.n == 0 {
		return nil
	}
	return new(s.sum / float64(s.n))
}

// Thinned reports whether the percentiles use only a part of the values.
func (s *Sample) Thinned() bool { return s.stride > 1 }

// Summary describes the values, nil if there is none or if they are only stated.
func (s *Sample) Summary() *report.Summary {
	d := stat.Summarize(slices.Clone(s.values))
	if d == nil || !s.Thinned() {
		return d
	}
	d.N, d.Min, d.Max, d.Mean, d.Stddev = s.n, s.min, s.max, s.sum/float64(s.n), math.Sqrt(s.m2/float64(s.n))
	return d
}

// maxBins bounds the number of points of a series; it is even.
const maxBins = 200

// Series is a quantity over time, as a ratio of two sums in bins of equal width, which doubles whenever the time
// outgrows the bins.
type Series struct {
	start    float64 // seconds: where the first bin begins
	width    float64 // of a bin, seconds
	num, den [maxBins]float64
}

// minBin is the narrowest bin in seconds: the files have three decimals.
const minBin = 1.0 / 64

// epoch is the time in seconds beyond which a clock counts from 1970, and not from the start of the session.
const epoch = 1e8

// add puts num over den at a time in seconds; a mean of values has den 1 for each.
func (s *Series) add(at, num, den float64) {
	if s.width == 0 {
		s.width = minBin
		if at > epoch {
			s.start = math.Floor(at)
		}
	}
	at = max(at-s.start, 0)
	for ; at >= s.width*maxBins; s.width *= 2 {
		for i := range maxBins / 2 {
			s.num[i], s.den[i] = s.num[2*i]+s.num[2*i+1], s.den[2*i]+s.den[2*i+1]
		}
		clear(s.num[maxBins/2:])
		clear(s.den[maxBins/2:])
	}
	i := int(at / s.width)
	s.num[i] += num
	s.den[i] += den
}

// Points are the bins that hold anything: the middle of each in seconds, and the ratio there.
func (s *Series) Points() (at, value []float64) {
	for i := range s.num {
		if s.den[i] > 0 {
			at, value = append(at, (float64(i)+0.5)*s.width), append(value, s.num[i]/s.den[i])
		}
	}
	return at, value
}

// Gauge is a quantity, and its mean over time.
type Gauge struct {
	Sample
	OverTime Series
}

func (g *Gauge) at(seconds, v float64) {
	g.add(v)
	g.OverTime.add(seconds, v, 1)
}
