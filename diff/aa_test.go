package diff_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"text/tabwriter"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/noise"
)

// go test ./diff -run TestAA -v -aa 500
var aaRuns = flag.Int("aa", 0, "comparisons per world and source of TestAA, which then prints its rates")

const (
	aaSeed      = 20261120
	leastFamily = 0.05 // of a unit, for a family that is slowed down
)

// worlds are what captures of one commit may do. The real repeated captures at hand are steadier than the first: GPU time
// per pass differs by 0.03 % over three captures of one program (cs336zx), and by 0.2 to 0.5 % between two that differ on
// the host only (mfu). The goals are held in "usual", where two captures of one commit differ by 1.4 % of clock and by
// another 1.4 % in each kernel in one comparison of three; "rough" is a GPU that nobody locked the clocks of.
func worlds() []aaWorld {
	return []aaWorld{
		{"steady", world{clock: 0.003, kernel: 0.003, host: 0.02, comm: 0.02, drift: 0.002, wander: 0.001, rho: 0.3, block: 4}},
		{"usual", world{clock: 0.01, kernel: 0.01, host: 0.10, comm: 0.10, drift: 0.01, wander: 0.005, rho: 0.5, block: 4}},
		{"rough", world{clock: 0.02, kernel: 0.01, host: 0.20, comm: 0.20, drift: 0.02, wander: 0.01, rho: 0.7, block: 4}},
	}
}

type aaWorld struct {
	name string
	world
}

// rates are counts over comparisons of one way of comparing.
type rates struct {
	runs, fails, suspects  int // clean ones
	alarms                 int // clean ones that call a kernel slower or faster
	injected, found, extra int // +8 % of a family: the family called slower; another kernel called slower
}

func (r *rates) add(o rates) {
	r.runs += o.runs
	r.fails += o.fails
	r.suspects += o.suspects
	r.alarms += o.alarms
	r.injected += o.injected
	r.found += o.found
	r.extra += o.extra
}

func (r *rates) clean(c *comparison.Comparison) {
	r.runs++
	switch c.Verdict {
	case comparison.Fail, comparison.Error:
		r.fails++
	case comparison.Warn, comparison.Inconclusive:
		r.suspects++
	case comparison.Pass:
	}
	if slices.ContainsFunc(c.Kernels, func(k comparison.Kernel) bool {
		return k.Class == comparison.Regressed || k.Class == comparison.Improved
	}) {
		r.alarms++
	}
}

// changed counts a comparison in which the kernels of a family became slower: found if the largest of them is.
func (r *rates) changed(c *comparison.Comparison, family map[string]bool) {
	if len(c.Kernels) == 0 { // these reports have no steps, and kernels of another GPU than the compared one: all are left out
		return
	}
	r.injected++
	largest, extra := -1, false
	for i := range c.Kernels {
		k := &c.Kernels[i]
		switch {
		case k.BaseName == nil || k.Base == nil:
		case !family[*k.BaseName]:
			extra = extra || k.Class == comparison.Regressed
		case largest < 0 || *k.Base > *c.Kernels[largest].Base:
			largest = i
		}
	}
	if largest >= 0 && c.Kernels[largest].Class == comparison.Regressed {
		r.found++
	}
	if extra {
		r.extra++
	}
}

// side is k captures with as many units as the source has, from 12 to 64.
func (s *source) side(rng *rand.Rand, k int, w world, ch change) []*report.Report {
	list := make([]*report.Report, k)
	for i := range list {
		list[i] = s.capture(rng, min(max(len(s.units), 12), 64), w, ch)
	}
	return list
}

// family of kernels, and the share of the unit it takes.
type family struct {
	name  string
	share float64
}

// families that take at least so much of a unit, in the report's order. Communication waits and is none.
func (s *source) families(least float64) []family {
	t := table(s.report, "unit_kernels")
	var list []family
	for _, row := range t.Rows {
		name, _ := row[column(t, "family")].Str()
		share, _ := row[column(t, "share")].Num()
		if category, _ := row[column(t, "category")].Str(); category == "comm" || category == "graph" {
			continue
		}
		at := slices.IndexFunc(list, func(f family) bool { return f.name == name })
		if at < 0 {
			at = len(list)
			list = append(list, family{name: name})
		}
		list[at].share += share
	}
	return slices.DeleteFunc(list, func(f family) bool { return f.share < least })
}

// members are the kernels of a family.
func (s *source) members(family string) map[string]bool {
	t := table(s.report, "unit_kernels")
	m := map[string]bool{}
	for _, row := range t.Rows {
		if f, _ := row[column(t, "family")].Str(); f == family {
			name, _ := row[column(t, "kernel_name")].Str()
			m[name] = true
		}
	}
	return m
}

func compare(tb testing.TB, base, head []*report.Report, opt diff.Options) *comparison.Comparison {
	tb.Helper()
	c, err := diff.Compare(base, head, opt)
	if err != nil {
		tb.Fatal(err)
	}
	if !c.Comparable {
		tb.Fatalf("not comparable: %+v", c.Reasons)
	}
	return c
}

// aaRates are the rates of one source in one world, by way of comparing.
type aaRates struct{ one, bare, three rates }

// measure makes runs comparisons of each way. Each calibration, of 5 captures, serves 10 comparisons: its own luck counts
// as well.
func (s *source) measure(tb testing.TB, w world, runs int) (a aaRates) {
	tb.Helper()
	seed := fnv.New64a()
	seed.Write([]byte(s.name)) // a stream of its own: sources that are missing change nothing for the others
	rng := rand.New(rand.NewPCG(aaSeed, seed.Sum64()))
	clean := func(k int) []*report.Report { return s.side(rng, k, w, change{}) }
	families := s.families(leastFamily)
	var noise *noise.Noise
	for i := range runs {
		if i%10 == 0 {
			c, err := diff.Calibrate(clean(5))
			if err != nil {
				tb.Fatal(err)
			}
			noise = &c.Noise
		}
		base, head := clean(1), clean(1)
		a.one.clean(compare(tb, base, head, diff.Options{Noise: noise}))
		a.bare.clean(compare(tb, base, head, diff.Options{}))
		a.three.clean(compare(tb, clean(3), clean(3), diff.Options{}))
		f := families[rng.IntN(len(families))]
		a.three.changed(compare(tb, clean(3), s.side(rng, 3, w, change{f.name, 1.08}), diff.Options{}), s.members(f.name))
	}
	return a
}

// realRuns compares all pairs of disjoint runs of n real units, one a side and not calibrated. The pairs overlap, so that
// their number says less than it seems to.
func (s *source) realRuns(tb testing.TB, n int) (r rates) {
	tb.Helper()
	as := func(units []aaUnit) []*report.Report {
		return []*report.Report{s.with(units, func(string, string) float64 { return 1 }, 1, uint64(len(units)))}
	}
	for a := 0; a+2*n <= len(s.units); a++ {
		for b := a + n; b+n <= len(s.units); b++ {
			base, head := as(s.units[a:a+n]), as(s.units[b:b+n])
			r.clean(compare(tb, base, head, diff.Options{}))
			r.clean(compare(tb, head, base, diff.Options{}))
		}
	}
	return r
}

// TestAA measures how often comparisons of captures of one commit fail, and how often a slowdown by 8 % of one family of
// kernels is found. Without -aa it holds a small sample in one world to bounds that only a defect breaks, with -long a
// larger one.
func TestAA(t *testing.T) {
	t.Parallel()
	list := sources(t)
	if *aaRuns == 0 {
		var sum aaRates
		runs := max(longtest.N(4, 6), longtest.N(12, 30)/len(list))
		share, named := 0.7, runs // of the slowdowns that are found, and the least number of pairs that name kernels
		if len(list) == 1 {       // testdata's server alone: kernels in every second pair, and 23 of 33 slowdowns found
			runs = longtest.N(40, 60)
			share, named = 0.5, runs/2
		}
		for _, s := range list {
			a := s.measure(t, worlds()[1].world, runs)
			sum.one.add(a.one)
			sum.three.add(a.three)
		}
		if sum.one.fails > 2 || sum.three.fails > 1 {
			t.Errorf("of %d clean comparisons, %d fail with one capture a side, and %d with three", sum.one.runs, sum.one.fails, sum.three.fails)
		}
		if float64(sum.three.found) < share*float64(sum.three.injected) || sum.three.injected < named {
			t.Errorf("of %d slowdowns, %d are found", sum.three.injected, sum.three.found)
		}
		return
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%d comparisons per cell, seed %d\tclean, 1 a side\tclean, 1 a side\t\tclean, 3 a side\tclean, 3 a side\t+8 %% of a family, 3 a side\t\t\n", *aaRuns, aaSeed)
	fmt.Fprintln(w, "world, source (units)\tfail, calibrated\tfail, not calibrated\tany kernel wrong\tfail\tany kernel wrong\tfamilies' shares\tfound\tother kernel wrong")
	for _, world := range worlds() {
		var sum aaRates
		line := func(name string, a *aaRates, share string) {
			fmt.Fprintf(w, "%s, %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", world.name, name, percent(a.one.fails, a.one.runs), percent(a.bare.fails, a.bare.runs), percent(a.bare.alarms, a.bare.runs), percent(a.three.fails, a.three.runs),
				percent(a.three.alarms, a.three.runs), share, percent(a.three.found, a.three.injected), percent(a.three.extra, a.three.injected))
		}
		for _, s := range list {
			a := s.measure(t, world.world, *aaRuns)
			text := ""
			for _, f := range s.families(leastFamily) {
				text += fmt.Sprintf(" %.0f", 100*f.share)
			}
			line(fmt.Sprintf("%s (%d)", s.name, len(s.units)), &a, text[1:]+" %")
			sum.one.add(a.one)
			sum.bare.add(a.bare)
			sum.three.add(a.three)
		}
		line("all", &sum, "")
	}
	w.Flush()
	fmt.Println("disjoint runs of n real units of one capture, one a side, not calibrated: comparisons that fail")
	for _, s := range list {
		fmt.Printf("  %s:", s.name)
		for n := 4; 2*n <= len(s.units); n++ {
			r := s.realRuns(t, n)
			fmt.Printf("  n=%d %d of %d", n, r.fails, r.runs)
		}
		fmt.Println()
	}
}

func percent(n, of int) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}
