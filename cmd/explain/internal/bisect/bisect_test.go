package bisect

import (
	"math"
	"math/rand/v2"
	"testing"
)

// search runs one: culprit is slower by step, captures have noise, skip says which commits do not build.
func search(t *testing.T, rng *rand.Rand, n, culprit int, step, noise float64, skip func(int) bool, most int) (Result, int) {
	t.Helper()
	s, err := New(n, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for s.Captures() < most {
		if r := s.Result(); r.Settled {
			return r, s.Captures()
		}
		at := s.Next()
		if skip(at) {
			if err := s.Skip(at); err != nil {
				t.Fatal(err)
			}
			continue
		}
		value := math.Exp(noise * rng.NormFloat64())
		if at >= culprit {
			value *= 1 + step
		}
		if err := s.Add(at, value); err != nil {
			t.Fatal(err)
		}
	}
	return s.Result(), s.Captures()
}

func none(int) bool { return false }

// TestFindsTheCulprit: 64 commits, noise of 1 %, a culprit of +5 %: right in 95 % of 200 searches or more, with 2·log2 64 =
// 12 captures on average or fewer, those of the good and the bad commit among them.
func TestFindsTheCulprit(t *testing.T) {
	for _, x := range []struct {
		step    float64
		average float64
	}{{0.05, 12}, {0.03, 22}} {
		right, captures, largest := 0, 0, 0
		for i := range 200 {
			rng := rand.New(rand.NewPCG(uint64(i), 64))
			culprit := 1 + rng.IntN(64)
			r, n := search(t, rng, 64, culprit, x.step, 0.01, none, 60)
			captures, largest = captures+n, max(largest, n)
			if r.Settled && r.First == culprit && r.Last == culprit {
				right++
			}
		}
		average := float64(captures) / 200
		t.Logf("+%g %%: %d of 200 right, %.1f captures on average, at most %d", 100*x.step, right, average, largest)
		if right < 190 || average > x.average {
			t.Errorf("+%g %%: %d of 200 right, %.1f captures on average", 100*x.step, right, average)
		}
	}
}

func TestNothingChanged(t *testing.T) {
	found := 0
	for i := range 100 {
		rng := rand.New(rand.NewPCG(uint64(i), 65))
		if r, _ := search(t, rng, 64, 99, 0, 0.01, none, 40); r.Settled && r.None < 0.9 {
			found++
		}
	}
	if found > 5 {
		t.Errorf("a culprit was found in %d of 100 searches where there is none", found)
	}
}

func TestSkipsAreOneAnswer(t *testing.T) {
	broken := func(k int) bool { return k >= 30 && k <= 33 }
	rng := rand.New(rand.NewPCG(1, 66))
	// the culprit does not build, nor do its neighbours: it is among 30 to 34, the first that builds again
	r, _ := search(t, rng, 64, 32, 0.05, 0.01, broken, 60)
	if !r.Settled || r.First > 32 || r.Last < 32 || r.First < 30 || r.Last > 34 {
		t.Errorf("%+v", r)
	}
	r, _ = search(t, rng, 64, 12, 0.05, 0.01, broken, 60)
	if !r.Settled || r.First != 12 || r.Last != 12 {
		t.Errorf("%+v", r)
	}
}

// TestPosteriorByHand: two commits behind the good one, captures 1 of commit 0 and e^0.1 of commit 2. Both are as likely,
// since no capture lies between them: z = 1/2, p = 0.05, S = 0.005; likelihood (1+12.5)^-½ (0.0004 + 0.005 - 25·0.0025/13.5)^-2.5.
// No change: (0.0054)^-2.5, with a fifth of the belief beforehand.
func TestPosteriorByHand(t *testing.T) {
	s, err := New(2, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at int
		v  float64
	}{{0, 1}, {2, math.Exp(0.1)}} {
		if err := s.Add(c.at, c.v); err != nil {
			t.Fatal(err)
		}
	}
	culprit, no := s.Posterior()
	change := 0.8 / 2 * math.Pow(13.5, -0.5) * math.Pow(0.0054-0.0625/13.5, -2.5)
	same := 0.2 * math.Pow(0.0054, -2.5)
	want := change / (2*change + same)
	if math.Abs(culprit[1]-want) > 1e-9 || math.Abs(culprit[2]-want) > 1e-9 || math.Abs(no-same/(2*change+same)) > 1e-9 {
		t.Errorf("%v %v, want %v", culprit, no, want)
	}
	if next := s.Next(); next != 1 {
		t.Errorf("next is %d", next)
	}
}

func TestBadInput(t *testing.T) {
	for _, n := range []int{0, -1} {
		if _, err := New(n, Options{}); err == nil {
			t.Errorf("%d commits were taken", n)
		}
	}
	s, _ := New(4, Options{})
	for _, err := range []error{s.Add(5, 1), s.Add(0, 0), s.Add(1, math.NaN()), s.Skip(0), s.Skip(4)} {
		if err == nil {
			t.Error("bad input was taken")
		}
	}
}
