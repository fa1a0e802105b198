// Package bisect finds the commit at which a number changed from captures that are noisy. It knows numbers alone:
// neither git nor captures.
//
// A search that believes every capture goes wrong at the first odd one, and one that repeats each wastes most of them.
// Here each capture moves the probability of every commit to be the culprit, and the next one is made where it tells
// most.
package bisect

import (
	"errors"
	"math"
	"slices"
)

// Options of a [Search].
type Options struct {
	Noise float64 // of a capture, standard deviation of ln, as far as it is known beforehand; 0 means 0.01
	Sure  float64 // probability that settles the search, above 0.5 and below 1; 0 means 0.97
}

// Search looks for the first of the commits 1 to N that is slow; commit 0 is known to be fast, commit N to be slow.
type Search struct {
	o       Options
	n       int
	at      []int     // commit of each capture
	y       []float64 // its ln
	skipped []bool
}

// What is believed beforehand.
const (
	priorNone  = 0.2 // that nothing changed
	priorSize  = 25  // variance of the change, in squares of the noise: about five times it
	priorCount = 4   // captures that the noise known beforehand is worth
)

// New begins a search among n commits behind the good one, the bad one the last of them.
func New(n int, o Options) (*Search, error) {
	if o.Noise == 0 {
		o.Noise = 0.01
	}
	if o.Sure == 0 {
		o.Sure = 0.97
	}
	if n < 1 || !(o.Noise > 0) || !(o.Sure > 0.5 && o.Sure < 1) {
		return nil, errors.New("a search needs at least one commit behind the good one, noise above 0, and to be sure by more than 0.5 and less than 1")
	}
	return &Search{o: o, n: n, skipped: make([]bool, n+1)}, nil
}

// Add takes a capture of a commit: its value is above 0.
func (s *Search) Add(commit int, value float64) error {
	if commit < 0 || commit > s.n || !(value > 0) || math.IsInf(value, 0) {
		return errors.New("a capture needs a commit of the search and a number above 0")
	}
	s.at, s.y = append(s.at, commit), append(s.y, math.Log(value))
	return nil
}

// Skip takes a commit that cannot be captured. The first and the last cannot be skipped.
func (s *Search) Skip(commit int) error {
	if commit <= 0 || commit >= s.n {
		return errors.New("neither the good nor the bad commit can be captured")
	}
	s.skipped[commit] = true
	return nil
}

// Captures so far.
func (s *Search) Captures() int { return len(s.y) }

// Posterior is the probability of each commit to be the culprit, by its number (that of 0 is 0), and the probability
// that nothing changed.
//
// A commit k splits the N captures into n₁ of commits before it and n₂ from it on. With a level that may be anything, a
// change normal with variance 25 σ² and σ² inverse gamma about what is known of the noise (worth 4 captures), the
// likelihood of k is
//
//	(1 + 25 z)^-1/2 (4 s² + S - 25 p²/(1 + 25 z))^-(N-1+4)/2,  z = n₁ n₂/N,  p = z (mean₂ - mean₁)
//
// with S the sum of squares of the captures about their mean; that of no change is the same with z = 0.
func (s *Search) Posterior() (culprit []float64, none float64) {
	count := float64(len(s.y))
	culprit = make([]float64, s.n+1)
	order := make([]int, len(s.y))
	sum, sq := 0.0, 0.0
	for i, y := range s.y {
		order[i] = i
		sum += y
	}
	for _, y := range s.y {
		sq += (y - sum/max(count, 1)) * (y - sum/max(count, 1))
	}
	slices.SortStableFunc(order, func(a, b int) int { return s.at[a] - s.at[b] })
	known := priorCount * s.o.Noise * s.o.Noise
	power := -(count - 1 + priorCount) / 2
	logs := make([]float64, s.n+1)
	next, before, left := 0, 0.0, 0.0
	for k := 1; k <= s.n; k++ {
		for next < len(order) && s.at[order[next]] < k {
			before += s.y[order[next]]
			left++
			next++
		}
		z, p := 0.0, 0.0
		if right := count - left; left > 0 && right > 0 {
			z = left * right / count
			p = z * ((sum-before)/right - before/left)
		}
		logs[k] = math.Log((1-priorNone)/float64(s.n)) - math.Log1p(priorSize*z)/2 +
			power*math.Log(known+max(0, sq-priorSize*p*p/(1+priorSize*z)))
	}
	logs[0] = math.Log(priorNone) + power*math.Log(known+sq) // in place of commit 0, that nothing changed
	most := slices.Max(logs)
	total := 0.0
	for k := range logs {
		culprit[k] = math.Exp(logs[k] - most)
		total += culprit[k]
	}
	for k := range culprit {
		culprit[k] /= total
	}
	none, culprit[0] = culprit[0], 0
	return culprit, none
}

// Next is the commit to capture, the one whose capture tells most: before it and from it on the culprit is about as
// likely.
func (s *Search) Next() int {
	switch len(s.y) {
	case 0:
		return 0
	case 1:
		return s.n
	}
	culprit, none := s.Posterior()
	if none > 0.3 { // is there a change at all?
		return []int{0, s.n}[len(s.y)%2]
	}
	best, off, sum := 0, math.Inf(1), 0.0
	for k := range culprit {
		sum += culprit[k]
		if d := math.Abs(sum - (1-none)/2); d < off && !s.skipped[k] {
			best, off = k, d
		}
	}
	// What a commit says again and again is told from two levels, which have to be known as well as it is.
	again, fast, slow := s.count(best, best), s.count(0, best-1), s.count(best+1, s.n)
	switch {
	case again > fast && fast <= slow:
		return 0
	case again > slow:
		return s.n
	}
	return best
}

// count is the number of captures of the commits from one to another.
func (s *Search) count(from, to int) int {
	n := 0
	for _, at := range s.at {
		if at >= from && at <= to {
			n++
		}
	}
	return n
}

// Result is what is known.
type Result struct {
	// First and Last are the numbers of the commits among which the culprit is, one and the same where it is found;
	// skipped ones cannot be told from what follows them.
	First, Last int
	Probability float64 // that it is among them
	None        float64 // probability that nothing changed
	Settled     bool    // as sure as asked for: of the culprit, or that there is none
}

// Result says what is known so far.
func (s *Search) Result() Result {
	culprit, none := s.Posterior()
	r := Result{None: none}
	for k := 1; k <= s.n; {
		end, p := k, culprit[k]
		for end < s.n && s.skipped[end] { // a skipped commit and what follows it are one answer
			end++
			p += culprit[end]
		}
		if p > r.Probability {
			r.First, r.Last, r.Probability = k, end, p
		}
		k = end + 1
	}
	r.Settled = len(s.y) >= 2 && (r.Probability >= s.o.Sure || none >= s.o.Sure)
	return r
}
