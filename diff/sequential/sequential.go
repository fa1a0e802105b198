// Package sequential decides, pair by pair, whether the head of a pair is slower than its base: captures go on until
// the answer is known, and however often one looks, the error rate stays within the limit. It knows only numbers.
package sequential

import (
	"errors"
	"math"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Answer of a test so far.
type Answer string

// Answers.
const (
	Undecided Answer = "undecided"
	// The head is certainly slower, and the mean of the pairs is above the tolerance. Of heads that are slower by about
	// the tolerance, most get this answer.
	Slower Answer = "slower"
	Within Answer = "within" // the head is certainly not slower by more than the tolerance
)

// Options of a [Test].
type Options struct {
	Tolerance float64 // ln, above 0: a smaller rise counts as within
	// Highest share of tests that ever answer slower for a head that is no slower at all, and within for one that is
	// slower by the tolerance; above 0, below 0.5
	Alpha float64
}

// Test takes pairs one after another.
//
// For the differences d = ln(head/base) of n pairs, normal with mean and variance unknown, the statistic is the Bayes
// factor of a mean of m + g σ, with g normal of variance 10, against the mean m. With t the t statistic of the mean for
// m, and ν = n - 1,
//
//	B = (1 + 10 n)^-1/2 ((1 + t²/ν) / (1 + t²/(ν (1 + 10 n))))^((ν+1)/2)
//
// It is a martingale if the mean is m, for any σ (Lai 1976; Wang and Ramdas, Anytime-valid t-tests, 2024). By Ville's
// inequality it ever reaches 1/(2α) with a probability of at most 2α, half of it upwards.
type Test struct {
	o     Options
	diffs []float64
	Log   []Step
}

// Step is the state of a test after a pair.
type Step struct {
	Pair        int     `json:"pair"`
	Base        float64 `json:"base"`
	Head        float64 `json:"head"`
	Ratio       float64 `json:"ratio"`        // of the pair, head over base
	Mean        float64 `json:"mean"`         // geometric, of the ratios so far
	AgainstSame float64 `json:"against_same"` // Bayes factor against no change, upwards; 0 if the mean is not a rise
	AgainstMore float64 `json:"against_more"` // against a rise of the tolerance, downwards; 0 if the mean is above that
	Needed      float64 `json:"needed"`       // the Bayes factor that decides
	Answer      Answer  `json:"answer"`
}

// New begins a test.
func New(o Options) (*Test, error) {
	if !(o.Tolerance > 0) || !(o.Alpha > 0 && o.Alpha < 0.5) {
		return nil, errors.New("a sequential test needs a tolerance above 0 and an alpha above 0 and below 0.5")
	}
	return &Test{o: o}, nil
}

// Add adds the next pair, and returns the state after it. Values must be finite and above 0. Pairs after an answer
// count, but do not change the answer.
func (t *Test) Add(base, head float64) (Step, error) {
	if !(base > 0 && head > 0) || math.IsInf(base, 0) || math.IsInf(head, 0) {
		return Step{}, errors.New("a pair needs two numbers above 0")
	}
	t.diffs = append(t.diffs, math.Log(head/base))
	s := Step{Pair: len(t.diffs), Base: base, Head: head, Ratio: head / base,
		Needed: 1 / (2 * t.o.Alpha), Answer: Undecided}
	mean := lists.Sum(t.diffs, func(d float64) float64 { return d / float64(len(t.diffs)) })
	s.Mean = math.Exp(mean)
	if mean > 0 {
		s.AgainstSame = t.factor(mean, 0)
	}
	if mean < t.o.Tolerance {
		s.AgainstMore = t.factor(mean, t.o.Tolerance)
	}
	switch {
	case len(t.Log) > 0 && t.Log[len(t.Log)-1].Answer != Undecided:
		s.Answer = t.Log[len(t.Log)-1].Answer
	case s.AgainstSame >= s.Needed && mean > t.o.Tolerance:
		s.Answer = Slower
	case s.AgainstMore >= s.Needed:
		s.Answer = Within
	}
	t.Log = append(t.Log, s)
	return s, nil
}

// spread is the expected variance of the size of a change, in units of the noise variance of a pair.
const spread = 10

// most bounds a factor: equal pairs have no noise to divide by.
const most = 1e9

// factor returns the Bayes factor against a mean of m.
func (t *Test) factor(mean, m float64) float64 {
	n := float64(len(t.diffs))
	if n < 2 {
		return 0
	}
	ss := lists.Sum(t.diffs, func(d float64) float64 { return (d - mean) * (d - mean) })
	// with t² = n (mean-m)² ν / ss, t²/ν = n (mean-m)² / ss
	off := n * (mean - m) * (mean - m)
	if off == 0 {
		return 0
	}
	wide := 1 + spread*n
	return min(most, math.Pow((ss+off)/(ss+off/wide), n/2)/math.Sqrt(wide))
}
