package change

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// Numbers of a simulated series.
const (
	year   = 365
	nights = 3 * year
	noise  = 0.01 // of a night, standard deviation of ln
)

// made is a series without a change of the commit, with what is known of its nights.
type made struct {
	y        []float64
	breaks   []int
	machines []int
}

// world makes series. Otava and Perfherder are false changes a year and the median night of +3 % as another study
// measured them on worlds like these.
type world struct {
	name   string
	make   func(r *rand.Rand) made
	falses float64 // a year, at most
	within int     // nights in which half of all +3 % are found, 0: not asked
	others string
}

// ar is a normal process in which each night resembles the one before by rho.
func ar(rng *rand.Rand, n int, rho, sd float64) []float64 {
	e := make([]float64, n)
	e[0] = rng.NormFloat64() * sd
	for i := 1; i < n; i++ {
		e[i] = rho*e[i-1] + math.Sqrt(1-rho*rho)*sd*rng.NormFloat64()
	}
	return e
}

// with adds something to each night of white noise of 1 %.
func with(add func(r *rand.Rand) func(i int) float64) func(r *rand.Rand) made {
	return func(r *rand.Rand) made {
		y, of := ar(r, nights, 0, noise), add(r)
		for i := range y {
			y[i] += of(i)
		}
		return made{y: y}
	}
}

func process(rho, sd float64) func(r *rand.Rand) made {
	return func(r *rand.Rand) made { return made{y: ar(r, nights, rho, sd)} }
}

// badHosts are stays of three nights, 12 a year.
func badHosts(level func(r *rand.Rand) float64) func(r *rand.Rand) made {
	return with(func(r *rand.Rand) func(i int) float64 {
		left, off := 0, 0.0
		return func(int) float64 {
			if left == 0 && r.Float64() < 12./year {
				left, off = 3, level(r)
			}
			if left == 0 {
				return 0
			}
			left--
			return off
		}
	})
}

// growing noise, each night's deviation by its place from 0 to 1.
func growing(sd func(at float64) float64) func(r *rand.Rand) made {
	return func(r *rand.Rand) made {
		y := ar(r, nights, 0, 1)
		for i := range y {
			y[i] *= sd(float64(i) / nights)
		}
		return made{y: y}
	}
}

var worlds = []world{
	{"white, 1 %", process(0, noise), 0.1, 3, "0.00, 2 | 0.00, 12"},
	{"white, 2 %", process(0, 2*noise), 0.1, 8, "0.06, 7 | 0.00, never"},
	{"AR 0.3", process(0.3, noise), 0.1, 3, "0.28, 2 | 0.00, 12"},
	{"AR 0.6", process(0.6, noise), 0.3, 5, "0.83, 2 | 0.06, 12"},
	{"AR 0.8", process(0.8, noise), 0.3, 5, "0.83, 2 | 0.64, 12"},
	{"tails of Student's t, 3 degrees of freedom", func(r *rand.Rand) made {
		y := ar(r, nights, 0, noise/math.Sqrt(3))
		for i := range y {
			chi := 0.0
			for _, g := range ar(r, 3, 0, 1) {
				chi += g * g
			}
			y[i] /= math.Sqrt(chi / 3)
		}
		return made{y: y}
	}, 0.3, 6, "0.69, 2 | 0.00, 12"},
	{"+10 % on 3 % of nights", with(func(r *rand.Rand) func(int) float64 {
		return func(int) float64 {
			if r.Float64() < 0.03 {
				return math.Log(1.1)
			}
			return 0
		}
	}), 0.3, 6, "2.06, 5 | 0.00, never"},
	{"bad host of +5 % for 3 nights, 12 a year", badHosts(func(*rand.Rand) float64 { return math.Log(1.05) }), 0.5, 8, "7.25, 4 | 0.00, never"},
	{"bad host of ± 5 % for 3 nights, 12 a year", badHosts(func(r *rand.Rand) float64 { return 0.05 * r.NormFloat64() }), 0.6, 8, "– | –"},
	{"noise grows from 0.5 to 2 %", growing(func(at float64) float64 { return 0.005 + 0.015*at }), 0.3, 8, "0.67, 3 | 0.00, 13"},
	{"noise of 0.5 %, then of 2 %", growing(func(at float64) float64 { return 0.005 + 0.015*math.Floor(2*at) }), 0.3, 8, "– | –"},
	{"level flips by 3 % about each 10 nights", with(func(r *rand.Rand) func(int) float64 {
		high := 0.0
		return func(int) float64 {
			if r.Float64() < 0.1 {
				high = math.Log(1.03) - high
			}
			return high
		}
	}), 1, 0, "7.80, 2 | 5.60, –"},
	{"creep of 8 % a year", with(func(*rand.Rand) func(int) float64 {
		return func(i int) float64 { return math.Log(1.08) * float64(i) / year }
	}), 1, 0, "1.94, 2 | 0.00, 12"},
	{"20 known GPUs, ± 1.5 %", func(r *rand.Rand) made {
		m := made{y: ar(r, nights, 0, noise), machines: make([]int, nights)}
		gpus := ar(r, 20, 0, 0.015)
		for i := range m.y {
			m.machines[i] = r.IntN(20)
			m.y[i] += gpus[m.machines[i]]
		}
		return m
	}, 0.1, 4, "0.19, 4 | 0.00, never"},
	{"another known driver each 90 nights, ± 3 %", func(r *rand.Rand) made {
		m := made{y: ar(r, nights, 0.3, noise)}
		level := 0.0
		for i := range m.y {
			if i > 0 && i%90 == 0 {
				level += 0.03 * r.NormFloat64()
				m.breaks = append(m.breaks, i)
			}
			m.y[i] += level
		}
		return m
	}, 0.1, 4, "2.78, 2 | 2.69, –"},
}

// outcome of a world: false changes a year, the nights until each +3 % was found, the share of series that are told to
// flip and to creep, and of borders told.
type outcome struct {
	falses, flips, creeps, borders float64
	took                           []int
}

func (w *world) simulate(number, series int) (o outcome) {
	borders := 0
	for i := range series {
		m := w.make(rand.New(rand.NewPCG(uint64(i), uint64(number))))
		opt := Options{Breaks: m.breaks, Machines: m.machines}
		told := Read(m.y, opt)
		o.falses += float64(len(told.Changes)) / float64(series) / nights * year
		if len(told.Flips) > 0 {
			o.flips += 1 / float64(series)
		}
		if told.Creep != nil {
			o.creeps += 1 / float64(series)
		}
		borders += len(m.breaks)
		o.borders += float64(len(told.Borders))
		at := 60 + rand.New(rand.NewPCG(uint64(i), 99)).IntN(nights-120)
		for k := at; k < nights; k++ {
			m.y[k] += math.Log(1.03)
		}
		took := nights
		for _, c := range find(m.y, opt) {
			if c.Found >= at && c.Shift > 0 {
				took = c.Found - at + 1
				break
			}
		}
		o.took = append(o.took, took)
	}
	slices.Sort(o.took)
	o.borders /= float64(max(borders, 1))
	return o
}

// within is the share of changes that were found in so many nights.
func (o *outcome) within(n int) float64 {
	found, _ := slices.BinarySearch(o.took, n+1)
	return float64(found) / float64(len(o.took))
}

// TestWorlds is the table of the page, and what is promised of each world.
func TestWorlds(t *testing.T) {
	series := 4
	if longtest.On() {
		series = 100
	}
	var b strings.Builder
	b.WriteString("| noise | false a year | +3 %: median night, found in 5, in 10 nights | reported as flip, as creep | Otava | Perfherder |\n|---|---:|---:|---:|---:|---:|\n")
	for number := range worlds {
		w := &worlds[number]
		o := w.simulate(number, series)
		median := o.took[(series-1)/2]
		fmt.Fprintf(&b, "| %s | %.2f | %d, %.0f, %.0f %% | %.0f, %.0f %% | %s |\n", w.name, o.falses, median, 100*o.within(5), 100*o.within(10), 100*o.flips, 100*o.creeps, w.others)
		years := float64(series) * nights / year
		most := w.falses
		if !longtest.On() { // of few years: as many as chance allows
			most += (2*math.Sqrt(w.falses*years) + 1) / years
		}
		if o.falses > most {
			t.Errorf("%s: %.2f false changes a year, at most %.2f are promised", w.name, o.falses, w.falses)
		}
		if longtest.On() && w.within > 0 && median > w.within {
			t.Errorf("%s: +3 %% is found in %d nights, %d are promised", w.name, median, w.within)
		}
		if strings.Contains(w.name, "driver") && o.borders != 1 {
			t.Errorf("%s: %.0f %% of borders are told", w.name, 100*o.borders)
		}
		if strings.Contains(w.name, "flips") && o.flips < 0.75 || strings.Contains(w.name, "creep") && o.creeps < 0.75 {
			t.Errorf("%s: told to flip of %.0f %% of the series, to creep of %.0f %%", w.name, 100*o.flips, 100*o.creeps)
		}
	}
	t.Log("\n" + b.String())
	if longtest.On() && !strings.Contains(Page, b.String()) {
		t.Error("the table of change.md is another one")
	}
}
