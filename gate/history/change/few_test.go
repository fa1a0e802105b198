package change

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// quiet are nights without a change. alarms counts the false ones that the rule before [few] raised in 1000 such
// series of 40 nights, and was is what it found of +5 % after five of them: it learned the noise as if there were no step.
var quiet = []struct {
	name    string
	rho, sd float64
	alarms  int
	was     string
	within5 float64 // share of +5 % after five to twenty quiet nights that must be found by the fifth slow night
}{
	{"0.3 %", 0, 0.003, 0, "0, 0, 3 %", 0.99},
	{"0.5 %", 0, 0.005, 0, "0, 1, 30 %", 0.98},
	{"1 %", 0, 0.01, 1, "0, 0, 42 %", 0.7},
	{"2 %", 0, 0.02, 0, "0, 0, 2 %", 0},
	{"1 %, AR 0.3", 0.3, 0.01, 1, "0, 0, 43 %", 0.65},
	{"1 %, AR 0.6", 0.6, 0.01, 20, "0, 0, 41 %", 0.7},
	{"1 %, AR 0.8", 0.8, 0.01, 42, "0, 0, 33 %", 0.65},
	{"2 %, AR 0.6", 0.6, 0.02, 49, "0, 0, 9 %", 0},
}

// falseAlarms counts the series of 40 quiet nights in which a change is found.
func falseAlarms(number, series int) (n int) {
	q := quiet[number]
	for i := range series {
		if len(find(ar(rand.New(rand.NewPCG(uint64(i), uint64(1000+number))), 40, q.rho, q.sd), Options{})) > 0 {
			n++
		}
	}
	return n
}

// foundBy returns the share of series in which +5 % after some quiet nights is found by the 4th, 5th and 8th slow one.
func foundBy(number, before, series int) (share [3]float64) {
	q := quiet[number]
	for i := range series {
		y := ar(rand.New(rand.NewPCG(uint64(i), uint64(2000+number))), before+8, q.rho, q.sd)
		for k := before; k < len(y); k++ {
			y[k] += math.Log(1.05)
		}
		for _, c := range find(y, Options{}) {
			for k, by := range []int{4, 5, 8} {
				if c.Shift > 0 && c.Found >= before && c.Found < before+by {
					share[k] += 1 / float64(series)
				}
			}
		}
	}
	return share
}

// TestFewNights is the second table of the page.
func TestFewNights(t *testing.T) {
	series, many := longtest.N(60, 300), longtest.N(100, 1000)
	var b strings.Builder
	for number, q := range quiet {
		n := falseAlarms(number, many)
		fmt.Fprintf(&b, "| %s | %d, %d | %s |", q.name, n, q.alarms, q.was)
		for _, before := range []int{5, 10, 20} {
			f := foundBy(number, before, series)
			fmt.Fprintf(&b, " %.0f, %.0f, %.0f %% |", 100*f[0], 100*f[1], 100*f[2])
			if chance := 2 * math.Sqrt(q.within5*(1-q.within5)/float64(series)); f[1] < q.within5-chance {
				t.Errorf("%s: %.0f %% of +5 %% after %d nights found in five, %.0f %% are promised", q.name, 100*f[1], before, 100*q.within5)
			}
		}
		b.WriteString("\n")
		expected := float64(q.alarms*many) / 1000
		if float64(n) > expected+3*math.Sqrt(expected)+2 {
			t.Errorf("%s: %d false alarms in %d series, %.0f before", q.name, n, many, expected)
		}
	}
	t.Log("\n" + b.String())
	if longtest.On() && !strings.Contains(Page, b.String()) {
		t.Error("the table of change.md is another one")
	}
}

// TestSees: a change as small as a series of few nights is said to show is found in about four of five, not in all.
func TestSees(t *testing.T) {
	for number, q := range quiet[:6] {
		for _, n := range []int{5, 10, 20} {
			found, series := 0, longtest.N(60, 300)
			for i := range series {
				y := ar(rand.New(rand.NewPCG(uint64(i), uint64(3000+number))), n+SlowNights, q.rho, q.sd)
				least := Read(y[:n], Options{}).Sees
				for k := n; k < len(y); k++ {
					y[k] += least
				}
				for _, c := range find(y, Options{}) {
					if c.Shift > 0 && c.Found >= n {
						found++
						break
					}
				}
			}
			if share := float64(found) / float64(series); share < 0.65 {
				t.Errorf("%s, %d nights: %.0f %% found", q.name, n, 100*share)
			}
		}
	}
	if got := Read(make([]float64, fewNights), Options{}).Sees; got != 0 {
		t.Errorf("many nights: %v", got)
	}
}

// TestSidesByHand: 0 2 0 2 0 | 9 11 9 11: levels 0.8 and 10, squares of 4.8 and 4 about them.
func TestSidesByHand(t *testing.T) {
	f := &finder{o: &Options{Least: 1}, y: []float64{0, 2, 0, 2, 0, 9, 11, 9, 11}, at: []int{0, 1, 2, 3, 4, 5, 6, 7, 8}}
	c := sides(f, 5)
	// without correlation the variance is 8.8/7; neighbours differ, so that the correlation is that of the prior or less
	low, high := math.Sqrt(8.8/7*(1./5+1./4)), math.Sqrt(8.8/7*1.3/0.7*(1./5+1./4))
	if c.at != 5 || math.Abs(c.before-0.8) > 1e-12 || math.Abs(c.after-10) > 1e-12 || c.se < low || c.se > high {
		t.Errorf("%+v, want a standard error from %v to %v", c, low, high)
	}
}

// TestEqualNightsHaveNoCorrelation: 6 | 4 nights of one number each, of which rounding leaves nothing: the variance is
// the assumed one alone, 8 · 0.01² / (8 + 8), and so is the correlation: 2/10 for two fitted levels of 10 nights, with
// the prior (20 · 0.3 + 8 · 0.2) / 28 = 0.271429.
func TestEqualNightsHaveNoCorrelation(t *testing.T) {
	y := []float64{1, 1, 1, 1, 1, 1, 1.05, 1.05, 1.05, 1.05}
	f := &finder{o: &Options{Least: Least}, y: y, at: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}
	want := math.Sqrt(5e-5 * 1.271429 / 0.728571 * (1./6 + 1./4))
	if c := sides(f, 6); math.Abs(c.se/want-1) > 1e-5 {
		t.Errorf("standard error %v, want %v", c.se, want)
	}
	if got := find(y, Options{}); len(got) != 1 || got[0].At != 6 || got[0].Found != 9 {
		t.Errorf("%+v", got)
	}
}

// TestFirstNightsAreNoExcursion: five nights, then 3 % more for good. At first so few nights prove nothing. There was no
// level before the first ones, so they are no excursion, and the change is found once there are enough.
func TestFirstNightsAreNoExcursion(t *testing.T) {
	y := make([]float64, 60)
	for i := 5; i < len(y); i++ {
		y[i] = 0.03
	}
	if got := find(y, Options{}); len(got) != 1 || got[0].At != 5 || math.Abs(got[0].Shift-0.03) > 1e-12 {
		t.Errorf("%+v", got)
	}
}

// TestCleanByHand: one stray night in eight is none too many.
func TestCleanByHand(t *testing.T) {
	y := []float64{0, 0, 0, 0, 0, 0, 0, 0.6}
	if !clean(y, 0, 1) || clean(y[1:], 0, 1) {
		t.Error("one of eight may be off, one of seven may not")
	}
}

// TestBackOverTwoLevels: the level rises twice and comes back twice, and both changes are gone.
func TestBackOverTwoLevels(t *testing.T) {
	f := &finder{o: &Options{Least: 0.02}, raw: make([]float64, 40), skip: make([]bool, 40), out: make([]bool, 40)}
	f.begin(0, 39)
	for _, c := range []candidate{{at: 20, after: 0.1}, {at: 25, before: 0.1, after: 0.2}, {at: 28, before: 0.2, after: 0.1}, {at: 29, before: 0.1}} {
		f.step(c, 39)
	}
	if len(f.list) != 2 || !f.list[0].Gone || !f.list[1].Gone || len(f.starts) != 1 {
		t.Errorf("%+v, %v", f.list, f.starts)
	}
	f.tell()
}
