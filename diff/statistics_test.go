package diff_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/difftest"
	"github.com/nsys-llm/explain/diff/policy"
)

// Ten ways in which noise was taken for change or change for noise, each by what a comparison says.

// sample is one capture: the times of its units in ns, and what differs from the usual kernels.
type sample struct {
	times    []float64
	launches []float64          // of each unit; nil: 12
	kernels  map[string]float64 // runs in a unit, of equal time; nil: some
	factors  map[string]float64 // of a kernel's time
	content  string             // identity; empty: the report does not say
}

// report of a sample.
func (s sample) report() *report.Report {
	kernels := s.kernels
	if kernels == nil {
		kernels = map[string]float64{"gemm": 10, "flash": 2}
	}
	whole := summarize(s.times)
	r := difftest.Kinds(difftest.Kind{Phase: "decode", Batch: 32, Units: int64(len(s.times)), Time: whole.Mean, Signature: "decode", Kernels: kernels})
	units := table(r, "units")
	units.Columns = append(units.Columns, report.Column{ID: "launches"})
	launches := s.launches
	if launches == nil {
		launches = slices.Repeat([]float64{12}, len(s.times))
	}
	for i := range units.Rows {
		units.Rows[i][column(units, "duration")] = report.F(s.times[i])
		units.Rows[i] = append(units.Rows[i], report.F(launches[i]))
	}
	calls := difftest.Metric("unit.launches", report.Count, 12)
	calls.Group, calls.Assume = "0", report.Exact
	r.Metrics = append(r.Metrics, calls)
	for i := range r.Metrics {
		m := &r.Metrics[i]
		m.Scale = report.PerUnit
		switch m.ID {
		case "unit.time", "unit.gpu_busy", "unit.compute_time":
			m.Summary = whole
		case "unit.launches":
			m.Summary = summarize(launches)
		default:
			if f, ok := s.factors[m.Labels["kernel"]]; ok && strings.Contains(m.ID, "time") {
				scale(m, f)
			}
			continue
		}
		m.Value, m.N = &m.Summary.P50, m.Summary.N
	}
	if s.content != "" {
		return identified(r, s.content, s.content)
	}
	return r
}

// noisy are n units of mean ns, with a spread of sd.
func noisy(rng *rand.Rand, n int, mean, sd float64) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = math.Round(mean * math.Exp(sd*rng.NormFloat64()))
	}
	return list
}

// ruled compares by one rule, as `explain diff --fail-on` does, and gives its gate.
func ruled(t *testing.T, base, head []*report.Report, rule string, opt diff.Options) (*comparison.Comparison, comparison.Gate) {
	t.Helper()
	r, err := policy.ParseFailOn(rule)
	if err != nil {
		t.Fatal(err)
	}
	opt.Rules = []policy.Rule{r}
	c := compare(t, base, head, opt)
	if len(c.Gates) == 0 {
		t.Fatalf("%s selects nothing: %+v", rule, c.Primary)
	}
	return c, c.Gates[0]
}

// each is captures of times that differ from capture to capture by these factors.
func each(n int, mean float64, seed uint64, factors ...float64) (list []*report.Report) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, f := range factors {
		list = append(list, sample{times: noisy(rng, n, mean*f, 0.001)}.report())
	}
	return list
}

// A1: a calibration rules percentiles too. Five captures of one commit of which one unit in fifty is slow, by a factor that
// differs between captures: compared with each other, no p99 fails, though without the calibration some would. And where a
// calibration shows that p90 hardly differs, +4 % of it fails, which the assumed floor of 5 % does not let it.
func TestA1CalibrationRulesEveryNumber(t *testing.T) {
	t.Parallel()
	var captures []*report.Report
	for i, slow := range longtest.Some([]float64{1.2, 1.5, 1.35, 1.9, 1.7}, 3) {
		rng := rand.New(rand.NewPCG(uint64(i), 7))
		times := noisy(rng, 600, 10e6, 0.005)
		for k := 25; k < len(times); k += 50 {
			times[k] *= slow
		}
		captures = append(captures, sample{times: times}.report())
	}
	calibration, err := diff.Calibrate(captures)
	if err != nil {
		t.Fatal(err)
	}
	if m := calibration.Noise.Find("unit.time.p99", report.Labels{}); m == nil || m.Floor < 0.3 {
		t.Errorf("the floor of p99 is %v", m)
	}
	bare := 0
	for i := range captures {
		for k := range captures {
			if i == k {
				continue
			}
			if _, g := ruled(t, captures[i:i+1], captures[k:k+1], "unit.time.p99:+5%", diff.Options{Noise: &calibration.Noise}); g.Verdict == comparison.Fail {
				t.Errorf("%d against %d: %s", k, i, g.Reason)
			}
			if _, g := ruled(t, captures[i:i+1], captures[k:k+1], "unit.time.p99:+5%", diff.Options{}); g.Verdict == comparison.Fail {
				bare++
			}
		}
	}
	if bare == 0 {
		t.Error("without the calibration nothing fails either: this shows nothing")
	}
	steady, err := diff.Calibrate(each(60, 10e6, 3, 1, 1.001, 0.999, 1.0005, 0.9995))
	if err != nil {
		t.Fatal(err)
	}
	pair := each(60, 10e6, 4, 1, 1.04)
	if _, g := ruled(t, pair[:1], pair[1:], "unit.time.p90:+3%", diff.Options{Noise: &steady.Noise}); g.Verdict != comparison.Fail {
		t.Errorf("a sure +4 %% with a floor below it: %s, %s", g.Verdict, g.Reason)
	}
	if _, g := ruled(t, pair[:1], pair[1:], "unit.time.p90:+3%", diff.Options{}); g.Verdict == comparison.Fail {
		t.Errorf("+4 %% with an assumed floor of 5 %%: %s", g.Reason)
	}
}

// A2: one capture named twice is one, whether it says who it is or not, and proves no more than it did; on both sides it
// proves nothing.
func TestA2CopiesProveNothing(t *testing.T) {
	for _, content := range []string{"", "x"} {
		rng := rand.New(rand.NewPCG(5, 5))
		other := content
		if content != "" {
			other = "y"
		}
		base := sample{times: noisy(rng, 32, 10e6, 0.002), content: content}.report()
		head := sample{times: noisy(rng, 32, 10.43e6, 0.002), content: other}.report()
		twice := func(r *report.Report) []*report.Report { return []*report.Report{r, r} }
		alone, _ := ruled(t, one(base), one(head), "unit.time.p50:+3%", diff.Options{})
		copied, g := ruled(t, twice(base), twice(head), "unit.time.p50:+3%", diff.Options{})
		if alone.Verdict == comparison.Fail || copied.Verdict != alone.Verdict {
			t.Errorf("identity %q: %s alone, %s twice: %s", content, alone.Verdict, copied.Verdict, g.Reason)
		}
		if c := compare(t, one(base), one(base), diff.Options{}); content != "" && (c.Verdict != comparison.Inconclusive || !c.Has(comparison.SameCapture)) {
			t.Errorf("identity %q, on both sides: %s %v", content, c.Verdict, c.Reasons)
		}
	}
}

// family of 27 kernels of which the first takes half of the time.
func manyKernels() map[string]float64 {
	list := map[string]float64{"flash": 26}
	for i := range 26 {
		list[fmt.Sprintf("nvjet_%02d", i)] = 1
	}
	return list
}

// A3: 17 of 27 kernels 12 % slower and attention, half of the time, as it was, three captures a side: that is no clock. The 17
// are slower, attention is not faster, and the cause names kernels.
func TestA3AChangeOfMostKernelsIsNoClock(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	side := func(slower float64) (list []*report.Report) {
		for range 3 {
			s := sample{kernels: manyKernels(), factors: map[string]float64{}}
			mean := 0.0
			kernels := manyKernels()
			for _, name := range slices.Sorted(maps.Keys(kernels)) {
				runs, f := kernels[name], math.Exp(0.003*rng.NormFloat64())
				if name > "nvjet_" && name < "nvjet_17" {
					f *= slower
				}
				s.factors[name] = f
				mean += 10e6 * runs / 52 * f
			}
			s.times = noisy(rng, 32, mean, 0.001)
			for name := range s.factors { // of the usual 10 ms, not of this mean
				s.factors[name] *= 10e6 / summarize(s.times).Mean
			}
			list = append(list, s.report())
		}
		return list
	}
	c := compare(t, side(1), side(1.12), diff.Options{})
	slower := 0
	for i := range c.Kernels {
		k := &c.Kernels[i]
		switch name := *k.BaseName; {
		case k.Class == comparison.Regressed && name < "nvjet_17" && name != "flash":
			slower++
		case k.Class == comparison.Regressed || k.Class == comparison.Improved:
			t.Errorf("%s is %s: %s", name, k.Class, k.Why)
		}
	}
	if slower != 17 {
		t.Errorf("%d kernels are slower, 17 became so", slower)
	}
	if strings.Contains(c.Cause, "all kernels") || !strings.Contains(c.Cause, "nvjet") {
		t.Errorf("cause: %s", c.Cause)
	}
	if _, g := ruled(t, side(1), side(1.12), "kernel.time_per_unit{kernel=nvjet*}:+5%", diff.Options{}); g.Verdict != comparison.Fail {
		t.Errorf("the rule on them: %s, %s", g.Verdict, g.Reason)
	}
}

// A4: launches that vary from unit to unit are noise like times: of 100 to 139 in each of 32 units, medians differ by several from
// capture to capture, and nothing fails, with one and with three captures a side. Where a calibration saw a count differ
// between captures that is the same inside each, it does not fail either. A count that never varies is exact.
func TestA4CountsThatVaryAreNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	varying := func() []*report.Report {
		launches := make([]float64, 32)
		for i := range launches {
			launches[i] = float64(100 + rng.IntN(40))
		}
		return one(sample{times: noisy(rng, 32, 10e6, 0.001), launches: launches}.report())
	}
	const rule = "unit.launches:+2"
	moved := 0
	for range 10 {
		base, head := varying(), varying()
		c, g := ruled(t, base, head, rule, diff.Options{})
		if g.Verdict == comparison.Fail {
			t.Errorf("one a side: %s", g.Reason)
		}
		if row := c.Row("unit.launches"); *row.Head > *row.Base+2 {
			moved++
		}
		base, head = slices.Concat(varying(), varying(), varying()), slices.Concat(varying(), varying(), varying())
		if _, g := ruled(t, base, head, rule, diff.Options{}); g.Verdict == comparison.Fail {
			t.Errorf("three a side: %s", g.Reason)
		}
	}
	if moved == 0 {
		t.Error("no median moved by more than 2: this shows nothing")
	}
	constant := func(n float64) []*report.Report {
		return one(sample{times: noisy(rng, 32, 10e6, 0.001), launches: slices.Repeat([]float64{n}, 32)}.report())
	}
	calibration, err := diff.Calibrate(slices.Concat(constant(117), constant(123), constant(120)))
	if err != nil {
		t.Fatal(err)
	}
	if len(calibration.Noise.Unsteady) == 0 {
		t.Fatal("the calibration knows of no count that differs")
	}
	if _, g := ruled(t, constant(117), constant(122), rule, diff.Options{Noise: &calibration.Noise}); g.Verdict == comparison.Fail {
		t.Errorf("within what the calibration saw: %s", g.Reason)
	}
	if _, g := ruled(t, constant(117), constant(122), rule, diff.Options{}); g.Verdict != comparison.Fail {
		t.Errorf("exact counts: %s, %s", g.Verdict, g.Reason)
	}
}

// A5: a kernel that is known from one, two or seven units fails nothing, whatever its spread; from eight on, it does.
func TestA5KernelsOfFewUnits(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	side := func(n int, factor float64) []*report.Report {
		r := sample{times: noisy(rng, 32, 10e6, 0.0001)}.report()
		for i := range r.Metrics {
			if m := &r.Metrics[i]; m.ID == kernelTimePerUnit && m.Labels["kernel"] == "gemm" {
				scale(m, factor)
				m.N, m.Summary.N, m.Summary.Stddev = int64(n), int64(n), 0.001*m.Summary.Mean
			}
		}
		return one(r)
	}
	for n, want := range map[int]bool{1: false, 2: false, 7: false, 8: true, 32: true} {
		if _, g := ruled(t, side(n, 1), side(n, 1.08), "kernel.time_per_unit{kernel=gemm}:+5%,+5us", diff.Options{}); (g.Verdict == comparison.Fail) != want {
			t.Errorf("%d units: %s, %s", n, g.Verdict, g.Reason)
		}
	}
}

// A6: one capture against two of 320 and 32 units that took 10 and 13 ms: the row is the mean of the captures, +15 %, and so is what
// the interval is of. Pooled units would say 0 %.
func TestA6TheIntervalIsOfTheRow(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	capture := func(n int, ms float64) *report.Report {
		return sample{times: noisy(rng, n, ms*1e6, 0.005)}.report()
	}
	c := compare(t, one(capture(64, 10)), []*report.Report{capture(320, 10), capture(32, 13)}, diff.Options{})
	for _, metric := range []string{"unit.time.p50", "unit.time.mean"} {
		r := c.Row(metric)
		if math.Abs(*r.Ratio-1.15) > 0.005 {
			t.Errorf("%s: ratio %v", metric, *r.Ratio)
		}
		if r.Interval == nil || r.Interval.Low > *r.Ratio || r.Interval.High < *r.Ratio || r.Interval.Low < 1.1 {
			t.Errorf("%s: %v, interval %+v", metric, *r.Ratio, r.Interval)
		}
	}
}

// A7: what a calibration says can be found with a power of 80 % is found so often by the comparison that will run, and more
// captures never find less.
func TestA7SmallestDetectableChanges(t *testing.T) {
	t.Parallel()
	const sd, runs = 0.0047, 120
	rng := rand.New(rand.NewPCG(8, 8))
	captures := func(k int, factor float64) (list []*report.Report) {
		for range k {
			list = append(list, sample{times: noisy(rng, 12, 10e6*factor*math.Exp(sd*rng.NormFloat64()), 0.0005)}.report())
		}
		return list
	}
	// Noise of exactly sd, so that the luck of one calibration does not count.
	u := []float64{-1.5, -0.5, 0, 0.5, 1.5}
	for i := range u {
		u[i] = math.Exp(u[i] * sd / math.Sqrt(5.0/4)) // their squares sum to 5
	}
	calibration, err := diff.Calibrate(each(12, 10e6, 1, u...))
	if err != nil {
		t.Fatal(err)
	}
	m := calibration.Noise.Find("unit.time.p50", report.Labels{})
	if m == nil || len(m.MDE) != 3 || !(m.MDE[0] >= m.MDE[1] && m.MDE[1] >= m.MDE[2]) {
		t.Fatalf("%+v", m)
	}
	if math.Abs(m.Noise/sd-1) > 0.05 {
		t.Fatalf("noise %v, want %v", m.Noise, sd)
	}
	for k := 2; k <= 3; k++ {
		found := 0
		for range runs {
			if _, g := ruled(t, captures(k, 1), captures(k, 1+m.MDE[k-1]), "unit.time.p50:+3%", diff.Options{Noise: &calibration.Noise}); g.Verdict == comparison.Fail {
				found++
			}
		}
		t.Logf("%d a side: +%.1f %% found in %d of %d", k, 100*m.MDE[k-1], found, runs)
		if found < runs*67/100 || found > runs*93/100 { // 80 % to within 3.5 standard errors
			t.Errorf("%d a side: +%.1f %% is found in %d of %d", k, 100*m.MDE[k-1], found, runs)
		}
	}
}

// A8: rules stricter than 3 % are tested at their own tolerance: with +2 % and a standard deviation of 0.1 % between three
// captures a side, +1 % fails for units and kernels, and nothing says that the change is within 3 %.
func TestA8ARulesOwnTolerance(t *testing.T) {
	factors := []float64{0.999, 1, 1.001}
	base, head := each(32, 10e6, 1, factors...), each(32, 10.2e6, 2, factors...)
	for _, rule := range []string{"unit.time.p50:+1%", "kernel.time_per_unit{kernel=gemm}:+1%"} {
		c, g := ruled(t, base, head, rule, diff.Options{})
		if g.Verdict != comparison.Fail || c.Verdict != comparison.Fail {
			t.Errorf("%s: %s, %s", rule, g.Verdict, g.Reason)
		}
		if strings.Contains(g.Reason, "within ±3") || !strings.Contains(g.Reason, "±1.0 %") {
			t.Errorf("%s: %s", rule, g.Reason)
		}
	}
	if _, g := ruled(t, base, head, "unit.time.p50:+3%", diff.Options{}); g.Verdict == comparison.Fail {
		t.Errorf("+2 %% against +3 %%: %s", g.Reason)
	}
}

// A9: what is not the median is held to the rule as the median is. Of a true change that is as large as the rule, one in
// twenty fails at most, of p90 as of p50; tested against no change at all, half would.
func TestA9EveryNumberAtTheRulesTolerance(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 1))
	const runs = 60
	for _, metric := range []string{"unit.time.p50", "unit.time.p90", "unit.gpu_busy.p90"} {
		failed := 0
		for range runs {
			side := func(mean float64) (list []*report.Report) {
				for range 3 {
					list = append(list, sample{times: noisy(rng, 50, mean*math.Exp(0.004*rng.NormFloat64()), 0.001)}.report())
				}
				return list
			}
			if _, g := ruled(t, side(10e6), side(10.3e6), metric+":+3%", diff.Options{}); g.Verdict == comparison.Fail {
				failed++
			}
		}
		if failed > 9 { // of 60, 5 % is 3; 10 and more come up in 1 of 1,000
			t.Errorf("%s: %d of %d fail", metric, failed, runs)
		}
	}
}

// A10: captures that would settle a change are reckoned from the noise that a calibration measured, not from its floor, which two
// captures make wide: with 0.44 % between captures and +6 %, few more settle it, not 70.
func TestA10NeedIsFromTheNoise(t *testing.T) {
	d := 0.0044 / math.Sqrt2
	calibration, err := diff.Calibrate(each(32, 10e6, 1, math.Exp(d), math.Exp(-d)))
	if err != nil {
		t.Fatal(err)
	}
	pair := each(32, 10e6, 2, 1, 1.06)
	c, g := ruled(t, pair[:1], pair[1:], "unit.time.p50:+3%", diff.Options{Noise: &calibration.Noise})
	r := c.Row("unit.time.p50")
	if r.NoiseFloor == nil || *r.NoiseFloor < 0.15 || g.Verdict == comparison.Fail {
		t.Fatalf("floor %v, %s", r.NoiseFloor, g.Reason)
	}
	if r.NeedCaptures == nil || *r.NeedCaptures < 2 || *r.NeedCaptures > 4 {
		t.Errorf("captures that would settle it: %v", r.NeedCaptures)
	}
}

// numbered is a capture of steps from first on, whose work doubles over steps 100 to 164; counted says whether its markers carry
// the steps' numbers.
func numbered(rng *rand.Rand, first, n int64, factor float64, counted bool) *report.Report {
	var times []float64
	var points []report.UnitPoint
	at := int64(1e9)
	for i := range n {
		ns := math.Round(10e6 * factor * (1 + float64(first+i-100)/64) * math.Exp(0.005*rng.NormFloat64()))
		p := report.UnitPoint{Number: i, Start: at, Duration: int64(ns), Busy: int64(ns), Compute: int64(ns), Launches: 12, Kernels: 12, Signature: "a"}
		if counted {
			p.Step = first + i
		}
		times, points, at = append(times, ns), append(points, p), at+int64(ns)
	}
	r := sample{times: times}.report()
	r.Unit.Series = report.NewUnitSeries(points)
	for i := range r.Metrics {
		if r.Metrics[i].ID == "kernel.count" { // no whole programs
			kernels := 12 * float64(n+first)
			r.Metrics[i].Value = &kernels
		}
	}
	return r
}

// Captures that start six steps apart, of work that doubles over 64: by the steps' numbers they are the same work, +8 % of it
// fails, and the ratio by position is that of the pairs. Means differ by 9 % for the start alone, so that without numbers nothing
// is said, either way round.
func TestStepNumbersTieTheSeries(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 12))
	for _, c := range []struct {
		first   int64
		factor  float64
		counted bool
		want    comparison.Verdict
	}{
		{106, 1, true, comparison.Pass},
		{106, 1.08, true, comparison.Fail},
		{100, 1.08, true, comparison.Fail},
		{106, 0.92, true, comparison.Pass},
		{106, 1, false, comparison.Inconclusive},
		{106, 1.08, false, comparison.Inconclusive},
		{150, 1, true, comparison.Inconclusive}, // 14 steps of 64 on both sides
	} {
		base, head := numbered(rng, 100, 64, 1, c.counted), numbered(rng, c.first, 64, c.factor, c.counted)
		got, g := ruled(t, one(base), one(head), "unit.time.mean:+3%", diff.Options{})
		if g.Verdict != c.want && !(c.want == comparison.Inconclusive && g.Verdict == comparison.Warn && g.Code == comparison.Trend) {
			t.Errorf("from step %d, %+.0f %%, numbers %v: %s %s, %s", c.first, 100*(c.factor-1), c.counted, g.Verdict, g.Code, g.Reason)
		}
		if c.want == comparison.Inconclusive {
			if g.Code != comparison.Trend {
				t.Errorf("from step %d, numbers %v: %s", c.first, c.counted, g.Code)
			}
			continue
		}
		r := got.Row("unit.time.mean")
		if r.Interval == nil || r.Interval.Low > c.factor || r.Interval.High < c.factor {
			t.Errorf("from step %d: %v is not in %+v", c.first, c.factor, r.Interval)
		}
	}
}
