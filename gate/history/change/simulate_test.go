package change

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// Numbers of a simulated series: a year of nights.
const (
	year   = 365
	series = 1000
	noise  = 0.01 // of a night, standard deviation of ln
)

// ar is a normal process in which each night resembles the one before by rho.
func ar(rng *rand.Rand, n int, rho, sd float64) []float64 {
	e := make([]float64, n)
	e[0] = rng.NormFloat64() * sd
	for i := 1; i < n; i++ {
		e[i] = rho*e[i-1] + math.Sqrt(1-rho*rho)*sd*rng.NormFloat64()
	}
	return e
}

// machines adds another level each 30 nights: of 1 %, standard deviation of ln.
func machines(rng *rand.Rand, y []float64) (breaks []int) {
	level := 0.0
	for i := range y {
		if i%30 == 0 {
			level = rng.NormFloat64() * 0.01
			if i > 0 {
				breaks = append(breaks, i)
			}
		}
		y[i] += level
	}
	return breaks
}

// scene makes a series without a change of the commit, with the places where the environment is known to change.
type scene struct {
	name string
	make func(rng *rand.Rand) (y []float64, breaks []int)
}

var scenes = []scene{
	{"white noise", func(rng *rand.Rand) ([]float64, []int) { return ar(rng, year, 0, noise), nil }},
	{"AR(1) 0.3", func(rng *rand.Rand) ([]float64, []int) { return ar(rng, year, 0.3, noise), nil }},
	{"AR(1) 0.3, machine shifts, ratio of 1 %", func(rng *rand.Rand) ([]float64, []int) {
		y, shift := ar(rng, year, 0.3, noise), make([]float64, year)
		machines(rng, shift)
		for i := range y {
			y[i] = (y[i] + shift[i]) - shift[i] // head less reference of the same night
		}
		return y, nil
	}},
	{"AR(1) 0.3, machine shifts, ratio of two nights of 1 %", func(rng *rand.Rand) ([]float64, []int) {
		y, ref, shift := ar(rng, year, 0.3, noise), ar(rng, year, 0.3, noise), make([]float64, year)
		machines(rng, shift)
		for i := range y {
			y[i] = (y[i] + shift[i]) - (ref[i] + shift[i])
		}
		return y, nil
	}},
	{"AR(1) 0.3, machine shifts, machines known", func(rng *rand.Rand) ([]float64, []int) {
		y := ar(rng, year, 0.3, noise)
		return y, machines(rng, y)
	}},
	{"AR(1) 0.3, machine shifts, machines not known", func(rng *rand.Rand) ([]float64, []int) {
		y := ar(rng, year, 0.3, noise)
		machines(rng, y)
		return y, nil
	}},
}

// rule raises alarms: the nights at which it does.
type rule struct {
	name   string
	alarms func(y []float64, breaks []int) []int
}

var rules = []rule{
	{"this page", func(y []float64, breaks []int) (list []int) {
		for _, c := range Find(y, Options{Breaks: breaks}) {
			list = append(list, c.Found)
		}
		return list
	}},
	{"5 % over the night before", func(y []float64, _ []int) (list []int) {
		for i := 1; i < len(y); i++ {
			if math.Abs(y[i]-y[i-1]) > math.Log(1.05) {
				list = append(list, i)
			}
		}
		return list
	}},
	{"t-test of the best split of 60 nights, p < 0.001 and 2 %", func(y []float64, _ []int) (list []int) {
		start := 0
		for t := range y {
			start = max(start, t-59)
			if splits(y[start : t+1]) {
				list = append(list, t)
				start = t
			}
		}
		return list
	}},
}

// splits reports whether a two-sample t-test finds a split, as E-divisive with a t-test does.
func splits(y []float64) bool {
	best, shift := 0.0, 0.0
	var sum, sq float64
	for _, v := range y {
		sum, sq = sum+v, sq+v*v
	}
	var left, leftSq float64
	n := float64(len(y))
	for k := 1; k < len(y); k++ {
		left, leftSq = left+y[k-1], leftSq+y[k-1]*y[k-1]
		if k < 3 || len(y)-k < 3 {
			continue
		}
		a, b := float64(k), n-float64(k)
		ss := leftSq - left*left/a + (sq - leftSq) - (sum-left)*(sum-left)/b
		d := (sum-left)/b - left/a
		if t := math.Abs(d) / math.Sqrt(ss/(n-2)*(1/a+1/b)); t > best {
			best, shift = t, d
		}
	}
	return best > 0 && math.Erfc(normal(best, n-2)/math.Sqrt2) < 0.001 && math.Abs(shift) > 0.02
}

// outcome of a rule on a scene.
type outcome struct{ falses, in3, in5, in10 float64 }

// simulate counts alarms in years without a change, and of what rises by 3 % at a random night how much is found.
func simulate(s scene, r rule, n int) (o outcome) {
	for i := range n {
		rng := rand.New(rand.NewPCG(uint64(i), 20261122))
		y, breaks := s.make(rng)
		o.falses += float64(len(r.alarms(y, breaks)))
		at := 60 + rng.IntN(year-60-10)
		y, breaks = s.make(rng)
		for k := at; k < len(y); k++ {
			y[k] += math.Log(1.03)
		}
		for _, found := range r.alarms(y[:at+10], breaks) {
			if found < at {
				continue
			}
			for _, limit := range []struct {
				nights int
				count  *float64
			}{{3, &o.in3}, {5, &o.in5}, {10, &o.in10}} {
				if found < at+limit.nights {
					*limit.count++
				}
			}
			break
		}
	}
	for _, v := range []*float64{&o.falses, &o.in3, &o.in5, &o.in10} {
		*v /= float64(n)
	}
	return o
}

// TestSimulation is the table of the page, and the rates that are promised.
func TestSimulation(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates 1,000 years of nights for each line")
	}
	var b strings.Builder
	b.WriteString("| rule | noise | false alarms a year | +3 % found within 3, 5, 10 nights |\n|---|---|---:|---:|\n")
	results := map[string]outcome{}
	for k, r := range rules {
		for _, s := range scenes {
			if k > 0 && strings.Contains(s.name, "ratio of two") || k > 0 && strings.HasSuffix(s.name, "machines known") {
				continue
			}
			o := simulate(s, r, series)
			results[r.name+s.name] = o
			fmt.Fprintf(&b, "| %s | %s | %.2f | %.0f, %.0f, %.0f %% |\n", r.name, s.name, o.falses, 100*o.in3, 100*o.in5, 100*o.in10)
		}
	}
	t.Log("\n" + b.String())
	if !strings.Contains(Page, b.String()) {
		t.Error("the table of change.md is another one")
	}
	own := results["this page"+"AR(1) 0.3, machine shifts, ratio of 1 %"]
	if own.falses > 0.1 {
		t.Errorf("%.3f false alarms a year, at most 0.1 are promised", own.falses)
	}
	if own.in5 < 0.9 {
		t.Errorf("%.1f %% found within five nights, at least 90 %% are promised", 100*own.in5)
	}
}
