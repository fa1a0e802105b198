package significance_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/diff/internal/significance"
)

var powerStat = flag.Float64("power-stat", 0, "quantile that TestPower looks at; 0: the mean")

// shapes are the work of unit i of n over one capture; i may lie beyond n where a capture starts later.
var shapes = []struct {
	name string
	work func(i, n int) float64
}{
	{"flat", func(_, _ int) float64 { return 1 }},
	{"grows to 1.3x", func(i, n int) float64 { return 1 + 0.3*float64(i)/float64(n) }},
	{"grows to 2x", func(i, n int) float64 { return 1 + float64(i)/float64(n) }},
	{"decays 10x", func(i, n int) float64 { return math.Pow(10, -float64(i)/float64(n)) }},
	{"step to 1.5x", func(i, n int) float64 {
		if i < n/2 {
			return 1
		}
		return 1.5
	}},
	{"irregular", func(i, n int) float64 {
		rng := rand.New(rand.NewPCG(uint64(i), uint64(n)))
		return math.Exp(0.3 * rng.NormFloat64())
	}},
}

// world draws captures of units: 2 % of noise per unit with lag-1 autocorrelation rho, and 1 % between captures, both
// standard deviations of ln.
type world struct {
	rng *rand.Rand
	rho float64
}

func (w *world) capture(work func(i, n int) float64, n, start int, factor float64) []float64 {
	const noise, between = 0.02, 0.01
	units := make([]float64, n)
	scale := 1e6 * factor * math.Exp(between*w.rng.NormFloat64())
	e := w.rng.NormFloat64()
	for i := range units {
		e = w.rho*e + math.Sqrt(1-w.rho*w.rho)*w.rng.NormFloat64()
		units[i] = scale * work(i+start, n) * math.Exp(noise*e)
	}
	return units
}

// cell is the share of comparisons that failed a rule of +3 %.
type cell struct {
	n        int
	work     func(i, n int) float64
	factor   float64 // of the head
	late     float64 // start of the head, share of n
	rho      float64
	stat     significance.Statistic
	tie      significance.Tie
	outcomes [4]int
}

func (c *cell) run(trials int, seed uint64) {
	w := world{rand.New(rand.NewPCG(seed, uint64(c.n))), c.rho}
	for k := range trials {
		n := significance.Number{Stat: c.stat, Tolerance: 0.03, Timer: 1, Tie: c.tie,
			Base: []significance.Capture{{Units: w.capture(c.work, c.n, 0, 1)}},
			Head: []significance.Capture{{Units: w.capture(c.work, c.n, int(math.Round(c.late*float64(c.n))), c.factor)}}}
		c.outcomes[significance.Judge([]significance.Number{n}, significance.Options{Seed: uint64(k)})[0].Outcome]++
	}
}

func (c *cell) share(o significance.Outcome) float64 {
	var sum int
	for _, v := range c.outcomes {
		sum += v
	}
	return float64(c.outcomes[o]) / float64(sum)
}

// most is the share that is exceeded by chance in 1 of 1000 cells of so many trials if the truth is p.
func most(p float64, trials int) float64 {
	return p + 3.1*math.Sqrt(p*(1-p)/float64(trials)) + 0.5/float64(trials)
}

// Power at +8 %, and false fails, of captures whose units drift, with one capture a side and the assumed floor of 5 %. The
// full run prints the table of the page statistics:
//
//	go test ./diff/internal/significance -run TestPower -v -timeout 2h -args -long
func TestPower(t *testing.T) {
	sizes, trials, stats := []int{16}, 16, []significance.Statistic{significance.Statistic(*powerStat)}
	lates := []float64{0.05}
	if longtest.On() {
		sizes, trials, lates = []int{8, 16, 64, 256, 1024}, 100, []float64{0.02, 0.05, 0.1}
	}
	for _, stat := range stats {
		for _, shape := range shapes {
			for _, n := range sizes {
				count := trials
				if n > 256 {
					count = max(trials*256/n, 16)
				}
				run := func(factor, late, rho float64, tie significance.Tie) *cell {
					c := &cell{n: n, work: shape.work, factor: factor, late: late, rho: rho, stat: stat, tie: tie}
					c.run(count, 5)
					return c
				}
				percent := func(c *cell, o significance.Outcome) string { return fmt.Sprintf("%.3g", 100*c.share(o)) }
				check := func(c *cell, what string, limit float64) {
					if p := c.share(significance.Fails); p > most(limit, count) {
						t.Errorf("%s, n = %d, rho %v, %s: %.1f %% false fails", shape.name, n, c.rho, what, 100*p)
					}
				}
				var row strings.Builder
				for _, rho := range []float64{0, 0.5} {
					found, null := run(1.08, 0, rho, significance.TieNumber), run(1, 0, rho, significance.TieNumber)
					fmt.Fprintf(&row, " | %s / %s (%s)", percent(found, significance.Fails), percent(null, significance.Fails), percent(null, significance.Undecided))
					const least = 0.85
					if p := found.share(significance.Fails); n >= 16 && p < 2*least-most(least, count) {
						t.Errorf("%s, n = %d, rho %v: +8 %% is found in %.1f %%", shape.name, n, rho, 100*p)
					}
					check(null, "tied", 0.015)
				}
				fmt.Fprintf(&row, " | %s", percent(run(1.08, 0, 0, significance.TieStart), significance.Fails))
				found, null := run(1.08, 0, 0, significance.TieNone), run(1, 0, 0, significance.TieNone)
				fmt.Fprintf(&row, " | %s / %s (%s)", percent(found, significance.Fails), percent(null, significance.Fails), percent(null, significance.Undecided))
				check(null, "not tied", 0.015)
				for _, late := range lates {
					none, start := run(1, late, 0, significance.TieNone), run(1, late, 0, significance.TieStart)
					fmt.Fprintf(&row, " | %s / %s", percent(none, significance.Fails), percent(start, significance.Fails))
					check(none, "starts late", 0.02)
				}
				t.Logf("| %v | %s | %d%s |", stat, shape.name, n, row.String())
			}
		}
	}
}
