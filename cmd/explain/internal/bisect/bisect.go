// Package bisect finds the commit at which a number changed, from noisy captures. It works on numbers only and knows
// neither git nor captures.
//
// A search that trusts every capture goes wrong at the first outlier, and one that repeats each capture wastes most of
// them. Here each capture updates the probability of every commit to be the culprit, and the next capture is made where
// it is most informative. The search begins with the ends: if they do not differ, there is nothing to find.
package bisect

import (
	"errors"
	"math"
	"math/bits"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Search looks for the first slow commit among 1 to N; commit 0 is assumed to be fast, commit N to be slow.
type Search struct {
	noise    float64 // standard deviation of ln of a capture, as known beforehand
	n        int
	captures []taken
	machines lists.Numbering[string]
	skipped  []bool
}

type taken struct {
	commit, machine int
	y               float64 // ln of the value
}

// The prior.
const (
	priorNone    = 0.55  // probability that nothing changed
	priorSeveral = 0.02  // probability that many commits changed a little each
	priorSize    = 25    // variance of the change, in squares of the noise: about five times it
	priorLarge   = 0.7   // standard deviation of the few changes that are large, ln: a factor of two
	priorOften   = 0.005 // share of those
	priorCount   = 4     // weight of the noise known beforehand, in captures
	priorMachine = 0.05  // standard deviation between machines, ln
	freedom      = 4.2   // degrees of freedom of Student's t: one capture in a hundred is more than 4.6 deviations off
)

// Number of captures of the ends before the search begins.
const (
	FewestEnds = 6 // needed to conclude that nothing changed
	MostEnds   = 8
	different  = 0.3 // the ends differ if the probability that nothing changed is below this
)

// Expected returns how many captures a search among n commits takes at least, and as a rule, if one of them is slower by
// five times the noise: both ends and each halving once; as a rule the ends and doubtful captures again.
func Expected(n int) (least, usual int) {
	return 1 + bits.Len(uint(n)), 4 + bits.Len(uint(n))
}

// New begins a search among the n commits after the good one, at least one; the last of them is the bad one. noise is
// the standard deviation of ln of a capture, above 0.
func New(n int, noise float64) *Search {
	return &Search{noise: noise, n: n, skipped: make([]bool, n+1)}
}

// Add adds a capture of a commit; value must be above 0. Captures of one machine share a level; the empty name is a
// machine too.
func (s *Search) Add(commit int, value float64, machine string) error {
	if !(value > 0) || math.IsInf(value, 0) {
		return errors.New("a capture needs a number above 0")
	}
	s.captures = append(s.captures, taken{commit, int(s.machines.Of(machine)), math.Log(value)})
	return nil
}

// Skip marks a commit that cannot be captured, neither the first nor the last.
func (s *Search) Skip(commit int) { s.skipped[commit] = true }

// Captures returns the number of captures so far.
func (s *Search) Captures() int { return len(s.captures) }

// Belief is the posterior after the captures so far.
type Belief struct {
	Culprit []float64 // probability of each commit to be the culprit, by its number; 0 for commit 0
	None    float64   // probability that nothing changed
	Several float64   // probability that many commits changed a little each
}

// Belief weighs the hypotheses: a step at one of the commits, a slope over all of them, or no change. The likelihood of
// each is that of a linear model with a level, the change, and an offset for each machine but the first, with errors of
// Student's t. The prior of the change is normal with variance 25 σ², or in one of 200 as large as a factor of two, that
// of a machine offset with 5 %, and that of σ² is inverse gamma around the known noise. Laplace's approximation
// integrates over all of them.
func (s *Search) Belief() Belief {
	logs := make([]float64, s.n+2) // index 0: nothing changed; index n+1: many commits changed
	logs[0] = math.Log(priorNone) + s.fit(nil).log
	logs[s.n+1] = math.Log(priorSeveral) + s.fit(s.slope).log
	ordered := lists.Map(s.captures, func(c taken) int { return c.commit })
	slices.Sort(ordered)
	before, same := -1, 0.0
	for k := 1; k <= s.n; k++ {
		if left, _ := slices.BinarySearch(ordered, k); left != before { // else the split is that of the previous commit
			before = left
			same = s.fit(func(c int) float64 {
				if c >= k {
					return 1
				}
				return 0
			}).log
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

// Next returns the commit to capture: an end until it is known whether the ends differ, then the commit that splits the
// probability of the culprit in half.
func (s *Search) Next() int {
	b := s.Belief()
	if s.n == 1 || s.count(0, 0) == 0 || s.count(s.n, s.n) == 0 || b.None > different {
		if s.count(0, 0) <= s.count(s.n, s.n) { // the end with fewer captures
			return 0
		}
		return s.n
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
	// A commit is compared with the levels on both sides, which need at least as many captures as it has.
	again, fast, slow := s.count(best, best), s.count(0, best-1), s.count(best+1, s.n)
	switch {
	case again > fast && fast <= slow:
		return 0
	case again > slow:
		return s.n
	}
	return best
}

func (s *Search) count(from, to int) int {
	return lists.Count(s.captures, func(c taken) bool { return c.commit >= from && c.commit <= to })
}

// Result is the answer so far.
type Result struct {
	// First and Last bound the range of commits with the culprit; they are equal if it is one commit. Skipped commits are
	// in one range with what follows them.
	First       int     `json:"-"`
	Last        int     `json:"-"`
	Probability float64 `json:"probability"` // that the culprit is in the range
	None        float64 `json:"none"`        // probability that nothing changed
	Several     float64 `json:"several"`     // probability that many commits changed a little each
	Ends        float64 `json:"ends"`        // ratio of the bad commit to the good one, minus 1
	Within      float64 `json:"within"`      // two standard errors of Ends
	Settled     bool    `json:"-"`           // sure enough of the culprit, of several changes, or of none
}

// Nothing reports whether "nothing changed" has a probability of at least 0.5.
func (r *Result) Nothing() bool { return r.None >= 0.5 }

// Named reports whether one commit, or one range of skipped ones, has a probability of at least 0.5: it is likelier
// than everything else together.
func (r *Result) Named() bool { return r.Probability >= 0.5 }

// Creeps reports whether "many commits changed a little" has a probability of at least 0.5.
func (r *Result) Creeps() bool { return r.Several >= 0.5 }

// Result returns the answer so far.
func (s *Search) Result() Result {
	b := s.Belief()
	r := Result{None: b.None, Several: b.Several}
	for k := 1; k <= s.n; {
		end, p := k, b.Culprit[k]
		for end < s.n && s.skipped[end] { // merge skipped commits with what follows them
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
		ends := *s
		ends.captures = lists.Filter(s.captures, func(c taken) bool { return c.commit == 0 || c.commit == s.n })
		f := ends.fit(s.slope)
		r.Ends = math.Expm1(f.theta[1])
		r.Within = 2 * f.se * math.Exp(f.theta[1])
	}
	enough := good >= FewestEnds/2 && bad >= FewestEnds/2
	r.Settled = len(s.captures) >= 2 && max(r.Probability, r.Several) >= sure && good > 0 && bad > 0 ||
		enough && (r.None >= nothing || r.Nothing() && good+bad >= MostEnds)
	return r
}

const (
	sure    = 0.93 // the probability that settles the search
	nothing = 0.75 // the probability of no change at which FewestEnds captures of the ends suffice
)
