package sequential

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/diff/student"
)

func newTest(t *testing.T) *Test {
	t.Helper()
	s, err := New(Options{Tolerance: math.Log(1.03), Alpha: 0.05})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFactorByHand: differences 0.04 and 0.06. Mean 0.05, squares about it 0.0002; n mean² = 0.005; 1 + 10·2 = 21.
// (0.0052 / (0.0002 + 0.005/21))^1 / √21 = 0.0052/0.000438095/4.582576 = 2.59016.
func TestFactorByHand(t *testing.T) {
	s := newTest(t)
	for _, d := range []float64{0.04, 0.06} {
		if _, err := s.Add(100, 100*math.Exp(d)); err != nil {
			t.Fatal(err)
		}
	}
	got := s.Log[1]
	if math.Abs(got.AgainstSame-2.59016) > 1e-4 || math.Abs(got.Mean-math.Exp(0.05)) > 1e-12 || got.Needed != 10 || got.AgainstMore != 0 || got.Answer != Undecided {
		t.Errorf("%+v", got)
	}
}

func TestTwoPairsDecideNothing(t *testing.T) {
	s := newTest(t)
	for range 2 { // without any noise; (21)^1/√21 = 4.58 is the most that two pairs can say
		if got, err := s.Add(100, 200); err != nil || got.Answer != Undecided || got.AgainstSame > 4.59 {
			t.Errorf("%+v %v", got, err)
		}
	}
	if got, _ := s.Add(100, 200); got.Answer != Slower {
		t.Errorf("three pairs: %+v", got)
	}
	if got, _ := s.Add(200, 100); got.Answer != Slower {
		t.Errorf("what is decided stays decided: %+v", got)
	}
}

func TestBadPairs(t *testing.T) {
	s := newTest(t)
	for _, v := range [][2]float64{{0, 1}, {1, 0}, {-1, 1}, {math.NaN(), 1}, {1, math.Inf(1)}} {
		if _, err := s.Add(v[0], v[1]); err == nil {
			t.Errorf("%v was taken", v)
		}
	}
	for _, o := range []Options{{}, {Tolerance: 0.03}, {Tolerance: 0.03, Alpha: 0.5}, {Tolerance: -1, Alpha: 0.05}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

// simulate runs tests with noise of 1 % on each capture, at most 30 pairs each.
func simulate(t *testing.T, n int, step, noise float64) (slower, within int, pairs []int) {
	for i := range n {
		rng := rand.New(rand.NewPCG(uint64(i), math.Float64bits(step)))
		s := newTest(t)
		for pair := 1; pair <= 30; pair++ {
			got, err := s.Add(math.Exp(noise*rng.NormFloat64()), (1+step)*math.Exp(noise*rng.NormFloat64()))
			if err != nil {
				t.Fatal(err)
			}
			if got.Answer == Undecided {
				continue
			}
			if got.Answer == Slower {
				slower++
			} else {
				within++
			}
			pairs = append(pairs, pair)
			break
		}
	}
	slices.Sort(pairs)
	return slower, within, pairs
}

// TestNullsRarelyFail: of 2,000 heads that are no slower at most 5 % ever fail; of those that are 5 % slower half are
// decided after four pairs.
func TestNullsRarelyFail(t *testing.T) {
	const n = 2000
	for _, noise := range []float64{0.01, 0.05} {
		slower, within, pairs := simulate(t, n, 0, noise)
		t.Logf("no slower, noise %g: %d of %d ever fail, %d pass, median of %d pairs", noise, slower, n, within, pairs[len(pairs)/2])
		if slower > n/20 {
			t.Errorf("noise %g: %d of %d fail", noise, slower, n)
		}
	}
	slower, within, pairs := simulate(t, n, 0.05, 0.01)
	t.Logf("5 %% slower: %d of %d fail, %d pass, median of %d pairs", slower, n, within, pairs[len(pairs)/2])
	if pairs[len(pairs)/2] > 4 || slower < n*95/100 {
		t.Errorf("%d of %d found, median of %d pairs", slower, n, pairs[len(pairs)/2])
	}
}

// TestBetweenNoneAndTheTolerance are the shares that the page of statistics states: heads that are a little slower are
// not certainly within, and those at the tolerance are not certainly above it.
func TestBetweenNoneAndTheTolerance(t *testing.T) {
	const n = 2000
	for step, want := range map[float64]float64{0.02: 0.12, 0.03: 0.82} {
		slower, within, _ := simulate(t, n, step, 0.01)
		if share := float64(slower) / n; math.Abs(share-want) > 0.005 {
			t.Errorf("%g slower: %.3f are called slower, the page says %g", step, share, want)
		}
		if step == 0.03 && within > n/20 {
			t.Errorf("slower by the tolerance: %d of %d are called within", within, n)
		}
	}
}

// TestLookingAgainAndAgain: the t test of a comparison, repeated after each of up to 30 pairs without a difference, says
// "slower" in a quarter of 2,000 series: it is made for one look.
func TestLookingAgainAndAgain(t *testing.T) {
	const n = 2000
	wrong := 0
	for i := range n {
		rng := rand.New(rand.NewPCG(uint64(i), 7))
		var pairs, mean, squares float64
		for pairs < 30 {
			d := 0.01 * (rng.NormFloat64() - rng.NormFloat64())
			pairs++
			off := d - mean
			mean += off / pairs
			squares += off * (d - mean)
			if pairs >= 3 && student.Tail(mean/math.Sqrt(squares/(pairs-1)/pairs), pairs-1) < 0.05 {
				wrong++
				break
			}
		}
	}
	t.Logf("%d of %d", wrong, n)
	if wrong < n/5 || wrong > n*3/10 {
		t.Errorf("%d of %d: the page of statistics says 24 %%", wrong, n)
	}
}
