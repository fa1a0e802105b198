package significance_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/diff/internal/significance"
)

// wave is n values of a first-order autoregressive series with mean 0 and standard deviation 1.
func wave(rng *rand.Rand, n int, rho float64) []float64 {
	v := make([]float64, n)
	e := rng.NormFloat64()
	for i := range v {
		e = rho*e + math.Sqrt(1-rho*rho)*rng.NormFloat64()
		v[i] = e
	}
	return v
}

// 90 % intervals over 8 to 256 units hold the truth in 90 % of all cases, to within 3 points, and where the units depend on
// each other, with a lag-1 autocorrelation of up to 0.5, in 75 % at least: a dozen units do not show how much they do, and
// the noise floor has to keep the level: of two samples and of pairs along work that doubles. The full run prints the table of the page
// statistics.
func TestIntervalsHoldTheirLevel(t *testing.T) {
	trials, sizes, rhos := 60, []int{8, 16}, []float64{0, 0.5}
	if longtest.On() {
		trials, sizes, rhos = 500, []int{8, 16, 64, 256}, []float64{0, 0.3, 0.5, 0.9}
	}
	for _, how := range []string{"two samples", "pairs"} {
		for _, stat := range []significance.Statistic{significance.Mean, significance.Median} {
			for _, n := range sizes {
				var row strings.Builder
				for _, rho := range rhos {
					rng := rand.New(rand.NewPCG(21, uint64(n)))
					var held, above, given int
					for k := range trials {
						number := significance.Number{Stat: stat, Tolerance: 0.03, Timer: 1}
						b, h := significance.Capture{}, significance.Capture{}
						eb, eh := wave(rng, n, rho), wave(rng, n, rho)
						for i := range n {
							work := 1e6
							if how == "pairs" {
								work *= 1 + float64(i)/float64(n)
								number.Tie = significance.TieNumber
							}
							b.Units = append(b.Units, work*math.Exp(0.02*eb[i]))
							h.Units = append(h.Units, work*math.Exp(0.02*eh[i]))
						}
						number.Base, number.Head = []significance.Capture{b}, []significance.Capture{h}
						v := significance.Judge([]significance.Number{number}, significance.Options{Seed: uint64(k)})[0]
						if strings.HasPrefix(v.Method, "ratios") || v.Level != 0.9 {
							continue
						}
						given++
						switch {
						case v.Low > 1:
							above++
						case v.High >= 1:
							held++
						}
					}
					share := func(k int) float64 { return 100 * float64(k) / float64(max(given, 1)) }
					fmt.Fprintf(&row, " | %.0f %% (%.0f %%), given %.0f %%", share(held), share(above), 100*float64(given)/float64(trials))
					least := 0.87
					if rho > 0 {
						least = 0.75
					}
					if p := share(held) / 100; rho <= 0.5 && p < least-3.1*math.Sqrt(least*(1-least)/float64(trials)) {
						t.Errorf("%s, statistic %v, n = %d, rho %v: %.1f %% hold the truth", how, stat, n, rho, 100*p)
					}
				}
				t.Logf("| %s, %v | %d%s |", how, stat, n, row.String())
			}
		}
	}
}
