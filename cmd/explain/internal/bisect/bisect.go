// Package bisect finds the commit at which a number changed from captures that are noisy. It knows numbers alone:
// neither git nor captures.
//
// A search that believes every capture goes wrong at the first odd one, and one that repeats each wastes most of them.
// Here each capture moves the probability of every commit to be the culprit, and the next one is made where it tells
// most. It begins with the ends: where they do not differ, there is nothing to search for.
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

// Search looks for the first of the commits 1 to N that is slow; commit 0 is believed to be fast, commit N to be slow.
type Search struct {
	o        Options
	n        int
	captures []taken
	machines []string
	skipped  []bool
}

// taken is one capture.
type taken struct {
	commit, machine int
	y               float64 // ln
}

// What is believed beforehand.
const (
	priorNone    = 0.55 // that nothing changed
	priorSeveral = 0.02 // that many commits changed a little each
	priorSize    = 25   // variance of the change, in squares of the noise: about five times it
	priorCount   = 4    // captures that the noise known beforehand is worth
	priorMachine = 0.05 // standard deviation between machines, ln
	freedom      = 4.2  // degrees of freedom of Student's t: one capture in a hundred is more than 4.6 deviations off
)

// Bounds of the captures of the ends that come first.
const (
	FewestEnds = 6 // before it can be said that nothing changed
	MostEnds   = 8
	different  = 0.3 // probability that nothing changed, below which the ends differ and the search begins
)

// New begins a search among n commits behind the good one, the bad one the last of them.
func New(n int, o Options) (*Search, error) {
	if o.Noise == 0 {
		o.Noise = 0.01
	}
	if o.Sure == 0 {
		o.Sure = 0.93
	}
	if n < 1 || !(o.Noise > 0) || !(o.Sure > 0.5 && o.Sure < 1) {
		return nil, errors.New("a search needs at least one commit behind the good one, noise above 0, and to be sure by more than 0.5 and less than 1")
	}
	return &Search{o: o, n: n, skipped: make([]bool, n+1)}, nil
}

// Add takes a capture of a commit: its value is above 0. Captures of one machine share a level; empty is one as well.
func (s *Search) Add(commit int, value float64, machine string) error {
	if commit < 0 || commit > s.n || !(value > 0) || math.IsInf(value, 0) {
		return errors.New("a capture needs a commit of the search and a number above 0")
	}
	m := slices.Index(s.machines, machine)
	if m < 0 {
		m = len(s.machines)
		s.machines = append(s.machines, machine)
	}
	s.captures = append(s.captures, taken{commit, m, math.Log(value)})
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
func (s *Search) Captures() int { return len(s.captures) }

// Belief is what the captures say.
type Belief struct {
	Culprit []float64 // probability of each commit to be the culprit, by its number; that of 0 is 0
	None    float64   // probability that nothing changed
	Several float64   // probability that many commits changed a little each
}

// Belief weighs what can have happened: a step at one of the commits, a slope over all of them, or nothing. Of each the
// captures have the likelihood of a linear model: a level, the change, and the level of each machine but the first,
// with errors of Student's t. The change is normal beforehand with variance 25 σ², a machine with 5 %, and σ² is inverse
// gamma about what is known of the noise. Its integral is Laplace's approximation.
func (s *Search) Belief() Belief {
	logs := make([]float64, s.n+2) // in place of commit 0 that nothing changed, of the last that several did
	logs[0] = math.Log(priorNone) + s.evidence(nil)
	logs[s.n+1] = math.Log(priorSeveral) + s.evidence(func(c int) float64 { return float64(c) / float64(s.n) })
	ordered := make([]int, 0, len(s.captures))
	for _, c := range s.captures {
		ordered = append(ordered, c.commit)
	}
	slices.Sort(ordered)
	before, same := -1, 0.0
	for k := 1; k <= s.n; k++ {
		if left, _ := slices.BinarySearch(ordered, k); left != before { // else the captures are split as for the commit before
			before = left
			same = s.evidence(func(c int) float64 {
				if c >= k {
					return 1
				}
				return 0
			})
		}
		logs[k] = math.Log((1-priorNone-priorSeveral)/float64(s.n)) + same
	}
	most, total := slices.Max(logs), 0.0
	for k := range logs {
		logs[k] = math.Exp(logs[k] - most)
		total += logs[k]
	}
	for k := range logs {
		logs[k] /= total
	}
	b := Belief{None: logs[0], Several: logs[s.n+1], Culprit: logs[:s.n+1]}
	b.Culprit[0] = 0
	return b
}

// Next is the commit to capture: the ends until it is known whether they differ, then the one whose capture tells most:
// before it and from it on the culprit is about as likely.
func (s *Search) Next() int {
	ends := s.count(0, 0) + s.count(s.n, s.n)
	b := s.Belief()
	if s.count(0, 0) == 0 || s.count(s.n, s.n) == 0 || b.None > different && ends < MostEnds || b.None > 0.3 {
		return s.end()
	}
	sum, half := 0.0, 0.0
	for _, p := range b.Culprit {
		half += p / 2
	}
	best, off := 0, math.Inf(1)
	for k, p := range b.Culprit {
		sum += p
		if d := math.Abs(sum - half); d < off && !s.skipped[k] {
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

// end is the one of the ends that was captured less.
func (s *Search) end() int {
	if s.count(0, 0) <= s.count(s.n, s.n) {
		return 0
	}
	return s.n
}

// count is the number of captures of the commits from one to another.
func (s *Search) count(from, to int) int {
	n := 0
	for _, c := range s.captures {
		if c.commit >= from && c.commit <= to {
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
	Several     float64 // probability that many commits changed a little each
	Ends        float64 // ratio of the bad commit to the good one, less 1
	Within      float64 // how far Ends may be off, two standard errors
	Settled     bool    // as sure as asked for: of the culprit, of several, or that the ends do not differ
}

// Nothing reports whether the answer is that nothing changed.
func (r *Result) Nothing() bool { return r.None >= 0.5 }

// Creeps reports whether the answer is that several commits changed something.
func (r *Result) Creeps() bool { return r.Several >= 0.5 }

// Result says what is known so far.
func (s *Search) Result() Result {
	b := s.Belief()
	r := Result{None: b.None, Several: b.Several}
	for k := 1; k <= s.n; {
		end, p := k, b.Culprit[k]
		for end < s.n && s.skipped[end] { // a skipped commit and what follows it are one answer
			end++
			p += b.Culprit[end]
		}
		if p > r.Probability {
			r.First, r.Last, r.Probability = k, end, p
		}
		k = end + 1
	}
	good, bad := s.count(0, 0), s.count(s.n, s.n)
	if good > 0 && bad > 0 {
		f := s.fit(func(c int) float64 { return float64(c) / float64(s.n) }, func(c int) bool { return c == 0 || c == s.n })
		r.Ends = math.Expm1(f.theta[1])
		r.Within = 2 * f.se
	}
	enough := good >= FewestEnds/2 && bad >= FewestEnds/2
	r.Settled = len(s.captures) >= 2 && max(r.Probability, r.Several) >= s.o.Sure && good > 0 && bad > 0 ||
		enough && (r.None >= nothing || r.Nothing() && good+bad >= MostEnds)
	return r
}

// nothing is the probability from which FewestEnds captures of the ends suffice.
const nothing = 0.75
