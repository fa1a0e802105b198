package bisect

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/diff/student"
)

// scene is what a search meets: how much slower a commit is, how a capture of a machine comes out.
type scene struct {
	name     string
	commits  int
	slower   func(commit, culprit int) float64 // ln
	noise    float64
	odd      float64 // share of captures that take 20 % longer
	machines float64 // two machines so far apart, ln
	skip     func(int) bool
	// at least so many right, at most so many a false culprit, shares; captures on average, and nothing said within
	right, falses, captures float64
}

func step(size float64) func(commit, culprit int) float64 {
	return func(commit, culprit int) float64 {
		if commit >= culprit {
			return math.Log1p(size)
		}
		return 0
	}
}

var none = step(0)

// run searches once.
func (x *scene) run(t *testing.T, seed uint64) (r Result, captures, culprit int) {
	t.Helper()
	x.each(t, seed, func(now Result, n, first int) { r, captures, culprit = now, n, first })
	return r, captures, culprit
}

// each searches once and tells visit the result after each capture.
func (x *scene) each(t *testing.T, seed uint64, visit func(r Result, captures, culprit int)) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, uint64(x.commits)))
	culprit := 1 + rng.IntN(x.commits)
	s := New(x.commits, 0.01)
	for s.Captures() < 36 && !s.Result().Settled {
		at := s.Next()
		if x.skip != nil && x.skip(at) {
			s.Skip(at)
			continue
		}
		y := x.slower(at, culprit) + x.noise*rng.NormFloat64()
		if rng.Float64() < x.odd {
			y += math.Log(1.2)
		}
		machine := 0
		if x.machines > 0 {
			machine = rng.IntN(2)
			y += x.machines * float64(machine)
		}
		if err := s.Add(at, math.Exp(y), fmt.Sprint(machine)); err != nil {
			t.Fatal(err)
		}
		visit(s.Result(), s.Captures(), culprit)
	}
}

var scenes = []scene{
	{name: "+5 %", commits: 64, slower: step(0.05), noise: 0.01, right: 0.99, falses: 0.01, captures: 11},
	{name: "+3 %", commits: 64, slower: step(0.03), noise: 0.01, right: 0.9, falses: 0.03, captures: 22},
	{name: "+5 %, 1000 commits", commits: 1000, slower: step(0.05), noise: 0.01, right: 0.98, falses: 0.01, captures: 16},
	{name: "+5 %, 5 % odd", commits: 64, slower: step(0.05), noise: 0.01, odd: 0.05, right: 0.95, falses: 0.01, captures: 20},
	{name: "twice as slow", commits: 64, slower: step(1), noise: 0.01, right: 0.99, falses: 0.01, captures: 11},
	{name: "five times, 1 of 1000", commits: 1000, slower: step(4), noise: 0.01, right: 0.98, falses: 0.01, captures: 16},
	{name: "+5 %, two machines", commits: 64, slower: step(0.05), noise: 0.01, machines: 0.04, right: 0.95, falses: 0.01, captures: 20},
	{name: "nothing", commits: 64, slower: none, noise: 0.01, right: 0.95, falses: 0.01, captures: 8},
	{name: "nothing, 5 % odd", commits: 64, slower: none, noise: 0.01, odd: 0.05, right: 0.9, falses: 0.02, captures: 9},
	{name: "eight of +1 %", commits: 64, slower: func(commit, _ int) float64 { return 0.01 * float64(commit/8) }, noise: 0.01, right: 0.7, falses: 0.05, captures: 36},
}

// TestSearches: how often searches are right and what they cost.
func TestSearches(t *testing.T) {
	searches := 60
	if longtest.On() {
		searches = 300
	}
	for i := range scenes {
		x := &scenes[i]
		right, falses, captures, quick := 0.0, 0.0, 0.0, 0.0
		for seed := range searches {
			r, n, culprit := x.run(t, uint64(seed))
			captures += float64(n)
			if n <= MostEnds {
				quick++
			}
			nothing, several := x.name[:3] == "not", x.name[:3] == "eig"
			switch {
			case !r.Settled:
			case r.Nothing():
				if nothing && n <= MostEnds {
					right++
				}
			case r.Creeps():
				if several {
					right++
				}
			case !nothing && !several && r.First == culprit && r.Last == culprit:
				right++
			default:
				falses++
			}
		}
		of := float64(searches)
		t.Logf("%-20s right %5.1f %%, false culprit %4.1f %%, %5.1f captures", x.name, 100*right/of, 100*falses/of, captures/of)
		chance := 0.0
		if !longtest.On() { // of few searches: as many as chance allows
			chance = 2.5 * math.Sqrt(0.05*0.95/of)
		}
		if right/of < x.right-chance || falses/of > x.falses+chance || captures/of > x.captures+chance*10 {
			t.Errorf("%s: right %.3f, false culprit %.3f, %.1f captures; want %.2f, %.2f, %.0f", x.name, right/of, falses/of, captures/of, x.right, x.falses, x.captures)
		}
	}
}

// TestExpected: no search for a change of five times the noise ends sooner than said, and half of them take about as many as said.
func TestExpected(t *testing.T) {
	for _, commits := range []int{1, 2, 3, 7, 8, 15, 31, 64, 255, 1000} {
		least, usual := Expected(commits)
		x := scene{commits: commits, slower: step(0.05), noise: 0.01}
		var took []int
		for seed := range 41 {
			_, n, _ := x.run(t, uint64(seed))
			took = append(took, n)
		}
		slices.Sort(took)
		if took[0] < least || took[20] < usual-1 || took[20] > usual+1 {
			t.Errorf("%d commits: %d at least and %d in the middle, said %d and %d", commits, took[0], took[20], least, usual)
		}
	}
}

func TestSkipsAreOneAnswer(t *testing.T) {
	broken := func(k int) bool { return k >= 30 && k <= 33 }
	for _, culprit := range []int{32, 12} {
		x := scene{commits: 64, slower: func(commit, _ int) float64 { return step(0.05)(commit, culprit) }, noise: 0.01, skip: broken}
		r, _, _ := x.run(t, 66)
		switch {
		case !r.Settled:
			t.Errorf("%d: %+v", culprit, r)
		// the culprit does not build, nor do its neighbours: it is among 30 to 34, the first that builds again
		case culprit == 32 && (r.First > 32 || r.Last < 32 || r.First < 30 || r.Last > 34):
			t.Errorf("%+v", r)
		case culprit == 12 && (r.First != 12 || r.Last != 12):
			t.Errorf("%+v", r)
		}
	}
}

// TestEndsByHand: three captures of each end without noise, 2 % apart: the change is drawn towards none by its prior of
// 5 σ. With weights of 5/4 the precision of the difference is 1.25·1.5/σ², that of the prior 1/25σ²; σ² goes to 4/10 of
// what was known, as all residuals are nearly none: the estimate is some 99 % of the difference.
func TestEndsByHand(t *testing.T) {
	s := New(8, 0.01)
	for range 3 {
		for at, y := range map[int]float64{0: 0, 8: 0.02} {
			if err := s.Add(at, math.Exp(y), ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r := s.Result(); math.Abs(r.Ends-0.02) > 0.0005 || r.Within < 0.004 || r.Within > 0.012 {
		t.Errorf("%+v", r)
	}
}

// TestSolveByHand: 4x + 2y = 8, 2x + 3y = 8: x = 1, y = 2; the determinant is 8, the inverse 3/8 -1/4; -1/4 1/2.
func TestSolveByHand(t *testing.T) {
	got, logDet := solve([][]float64{{4, 2, 8}, {2, 3, 8}})
	want := [][]float64{{1, 0, 1, 0.375, -0.25}, {0, 1, 2, -0.25, 0.5}}
	for i := range want {
		for j := range want[i] {
			if math.Abs(got[i][j]-want[i][j]) > 1e-12 {
				t.Errorf("%v, want %v", got, want)
			}
		}
	}
	if math.Abs(logDet-math.Log(8)) > 1e-12 {
		t.Errorf("%v", logDet)
	}
}

func TestBadInput(t *testing.T) {
	s := New(4, 0.01)
	for _, err := range []error{s.Add(0, 0, ""), s.Add(1, math.NaN(), ""), s.Add(1, math.Inf(1), "")} {
		if err == nil {
			t.Error("bad input was taken")
		}
	}
}

// TestHalvingByComparisons: what the search replaces. Three captures of the good end against three of the commit in the
// middle, judged by the t test of a comparison, and on into the half that it names: each of the six answers must be
// right, and each costs three captures.
func TestHalvingByComparisons(t *testing.T) {
	const searches, commits, side, noise = 1000, 64, 3, 0.01
	for _, x := range []struct{ size, right float64 }{{0.03, 0.51}, {0.05, 0.92}} {
		right, captures := 0, 0
		for seed := range searches {
			rng := rand.New(rand.NewPCG(uint64(seed), 3))
			culprit := 1 + rng.IntN(commits)
			take := func(commit int) (mean, squares float64) {
				captures += side
				for n := range side {
					y := step(x.size)(commit, culprit) + noise*rng.NormFloat64()
					off := y - mean
					mean += off / float64(n+1)
					squares += off * (y - mean)
				}
				return mean, squares
			}
			base, rest := take(0)
			good, bad := 0, commits
			for bad-good > 1 {
				middle := (good + bad) / 2
				mean, squares := take(middle)
				se := math.Sqrt((rest + squares) / (2*side - 2) * 2 / side)
				if student.Beyond(mean-base, 0, se, 2*side-2) < 0.05 && mean > base {
					bad = middle
				} else {
					good = middle
				}
			}
			if bad == culprit {
				right++
			}
		}
		got := float64(right) / searches
		t.Logf("%+g %%: %.1f %% right, %d captures", 100*x.size, 100*got, captures/searches)
		if math.Abs(got-x.right) > 0.02 {
			t.Errorf("%+g %%: %.3f are right; the page of statistics says %.2f", 100*x.size, got, x.right)
		}
	}
}
