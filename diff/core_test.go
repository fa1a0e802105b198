package diff_test

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"pgregory.net/rapid"
)

// empty checks that nothing changed, in any number.
func empty(t *testing.T, c *comparison.Comparison) {
	t.Helper()
	for i := range c.Primary {
		if r := &c.Primary[i]; *r.Delta != 0 || r.Class != comparison.Same {
			t.Errorf("%s changes by %v, %s", r.Metric, *r.Delta, r.Class)
		}
	}
	for i := range c.Attribution.Rows {
		if r := &c.Attribution.Rows[i]; r.Delta != 0 {
			t.Errorf("%s changes by %v", r.ID, r.Delta)
		}
	}
	for i := range c.Kernels {
		if k := &c.Kernels[i]; k.Delta != 0 || k.Class != comparison.Same || k.PairedBy != comparison.ByExact {
			t.Errorf("kernel %d changes by %v, %s", i, k.Delta, k.Class)
		}
	}
	if len(c.Structure) > 0 || c.Attribution.TotalDelta != 0 || c.Attribution.Residual != 0 {
		t.Errorf("structure %v, total %v, residual %v", c.Structure, c.Attribution.TotalDelta, c.Attribution.Residual)
	}
}

var opposite = map[comparison.Class]comparison.Class{
	comparison.Improved: comparison.Regressed, comparison.Regressed: comparison.Improved, comparison.Added: comparison.Removed, comparison.Removed: comparison.Added, comparison.Same: comparison.Same, comparison.Unsettled: comparison.Unsettled,
}

func near(a, b, scale float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(scale)) }

// mirrored checks that a comparison with its sides swapped says the opposite.
func mirrored(t interface {
	Helper()
	Errorf(format string, args ...any)
}, there, back *comparison.Comparison) {
	t.Helper()
	findings := func(c *comparison.Comparison) (n int) { // but for a storm of launches, which only comes and never goes
		for i := range c.Structure {
			if c.Structure[i].ID != comparison.FoundStorm {
				n++
			}
		}
		return n
	}
	if there.Comparable != back.Comparable || there.Depth != back.Depth || len(there.Primary) != len(back.Primary) || len(there.Kernels) != len(back.Kernels) || findings(there) != findings(back) {
		t.Errorf("other shapes: %d and %d rows, %d and %d kernels, %d and %d findings", len(there.Primary), len(back.Primary), len(there.Kernels), len(back.Kernels), findings(there), findings(back))
		return
	}
	for i := range there.Primary {
		a, b := &there.Primary[i], &back.Primary[i]
		if a.Metric != b.Metric || *a.Base != *b.Head || !near(*a.Delta, -*b.Delta, *a.Base) || b.Class != opposite[a.Class] {
			t.Errorf("%s: %v %s, mirrored %v %s", a.Metric, *a.Delta, a.Class, *b.Delta, b.Class)
		}
		if a.Interval != nil && b.Interval != nil && (!near(a.Interval.Low, 1/b.Interval.High, 1) || !near(a.Interval.High, 1/b.Interval.Low, 1)) {
			t.Errorf("%s: interval %v, mirrored %v", a.Metric, a.Interval, b.Interval)
		}
	}
	if !near(there.Attribution.TotalDelta, -back.Attribution.TotalDelta, there.Attribution.Base) {
		t.Errorf("total %v, mirrored %v", there.Attribution.TotalDelta, back.Attribution.TotalDelta)
	}
	decided := func(c *comparison.Comparison) bool { return c.Verdict != comparison.Inconclusive }
	slower := func(c *comparison.Comparison) bool {
		return c.Verdict == comparison.Fail && c.Answer.Unit == report.Nanoseconds
	}
	if a, b := &there.Answer, &back.Answer; decided(there) && decided(back) && slower(there) != slower(back) {
		turned := map[comparison.Direction]comparison.Direction{comparison.Slower: comparison.Faster, comparison.Faster: comparison.Slower}
		// The base's work at the head's prices is not the head's at the base's where the mix differs: only its direction turns.
		if a.Metric != b.Metric || b.Direction != turned[a.Direction] || a.Change == nil || b.Change == nil ||
			a.Metric != comparison.MetricWork && !near(1+*a.Change, 1/(1+*b.Change), 1) {
			t.Errorf("headline %s %s %.4f, mirrored %s %s %.4f", a.Metric, a.Direction, comparison.Value(a.Change), b.Metric, b.Direction, comparison.Value(b.Change))
		}
	}
	sums := func(c *comparison.Comparison) (byClass map[comparison.Class]int, delta, count float64) {
		byClass = map[comparison.Class]int{}
		for i := range c.Kernels {
			byClass[c.Kernels[i].Class]++
			delta += c.Kernels[i].Delta
			count += c.Kernels[i].CountEffect
		}
		return byClass, delta, count
	}
	a, da, ca := sums(there)
	b, db, cb := sums(back)
	for class, n := range a {
		if b[opposite[class]] != n {
			t.Errorf("%d kernels %s, mirrored %d", n, class, b[opposite[class]])
		}
	}
	if !near(da, -db, there.Attribution.Base) || !near(ca, -cb, there.Attribution.Base) {
		t.Errorf("kernels change by %v (%v by counts), mirrored %v (%v)", da, ca, db, cb)
	}
	for i := range there.Structure {
		id := there.Structure[i].ID
		if f := finding(back, id); f == nil && id != comparison.FoundStorm || f != nil && f.Class != opposite[there.Structure[i].Class] {
			t.Errorf("finding %s: %s, mirrored %+v", id, there.Structure[i].Class, f)
		}
	}
}

// someEngine draws an engine.
func someEngine(t *rapid.T, name string) engine {
	return engine{
		steps: rapid.IntRange(8, 16).Draw(t, name+" steps"), seed: rapid.Int64Range(0, 5).Draw(t, name+" seed"), gap: rapid.Int64Range(0, 3).Draw(t, name+" gap") * 40_000,
		sync: rapid.Bool().Draw(t, name+" sync"), pageable: rapid.Bool().Draw(t, name+" pageable"), graph: rapid.Bool().Draw(t, name+" graph"),
		scale: 1 + float64(rapid.IntRange(-2, 5).Draw(t, name+" scale"))/25, extra: rapid.IntRange(0, 2).Draw(t, name+" extra"), layers: 4,
	}
}

func TestPropertiesOfAComparison(t *testing.T) {
	t.Parallel()
	longtest.Draws(t, 10)
	rapid.Check(t, func(rt *rapid.T) {
		a, b := someEngine(rt, "a"), someEngine(rt, "b")
		base, head := reportOf(t, a.build(), analyze.Options{}), reportOf(t, b.build(), analyze.Options{})
		empty(t, diffOf(t, base, base, diff.Options{}))
		there, back := diffOf(t, base, head, diff.Options{}), diffOf(t, head, base, diff.Options{})
		mirrored(rt, there, back)
		closes(rt, there)

		// Twice the time everywhere: the same ratios and classes, and times double. Powers of two are exact.
		doubled := diffOf(t, scaled(t, base, 2), scaled(t, head, 2), diff.Options{})
		if doubled.Verdict != there.Verdict && there.Verdict != comparison.Warn && doubled.Verdict != comparison.Warn { // rules have absolute parts
			rt.Errorf("verdict %s, doubled %s", there.Verdict, doubled.Verdict)
		}
		for i := range there.Primary {
			x, y := &there.Primary[i], &doubled.Primary[i]
			factor := 2.0
			if x.Unit == report.Count {
				factor = 1
			}
			if *y.Delta != factor**x.Delta || x.Class != y.Class || x.Ratio != nil && *x.Ratio != *y.Ratio {
				rt.Errorf("%s: %v %s, doubled %v %s", x.Metric, *x.Delta, x.Class, *y.Delta, y.Class)
			}
		}

		// JSON loses nothing.
		var first, second bytes.Buffer
		if err := comparison.Write(&first, there); err != nil {
			rt.Fatal(err)
		}
		read, err := comparison.Read(bytes.NewReader(first.Bytes()))
		if err != nil {
			rt.Fatal(err)
		}
		if err := comparison.Write(&second, read); err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(first.String(), second.String()); d != "" {
			rt.Errorf("read and written again:\n%s", d)
		}
		if strings.Contains(first.String(), ":null,\"") && strings.Contains(first.String(), `"rows":null`) {
			rt.Error("a list is null")
		}
	})
}

// closes checks that the attribution sums to the change, class by class and row by row.
func closes(t *rapid.T, c *comparison.Comparison) {
	t.Helper()
	sums := map[string]float64{}
	for i := range c.Attribution.Rows {
		r := &c.Attribution.Rows[i]
		sums[r.Kind] += r.Delta
		sums[r.Kind+"/"+r.ID] += r.Delta
		if r.CountEffect != nil && math.Abs(*r.CountEffect+*r.PerCallEffect-r.Delta) > 1e-6 {
			t.Errorf("%s: %v and %v do not sum to %v", r.ID, *r.CountEffect, *r.PerCallEffect, r.Delta)
		}
	}
	work := sums["class/"+comparison.ClassCompute] + sums["class/"+comparison.ClassComm]
	for what, pair := range map[string][2]float64{
		"classes":    {sums[comparison.KindClass], c.Attribution.TotalDelta},
		"causes":     {sums[comparison.KindCause], sums["class/"+comparison.ClassIdle]},
		"categories": {sums[comparison.KindCategory], work},
		"kernels":    {sums[comparison.KindKernel] + sums[comparison.KindOthers], work},
		"host":       {sums[comparison.KindHost], sums["idle_cause/host"]},
		"residual":   {c.Attribution.Residual, 0},
	} {
		if what == "categories" && c.Depth != comparison.DepthKernel || what == "host" && !slices.ContainsFunc(c.Attribution.Rows,
			func(r comparison.AttributionRow) bool { return r.Kind == comparison.KindHost }) {
			continue
		}
		if math.Abs(pair[0]-pair[1]) > 1e-3 {
			t.Errorf("%s sum to %v, want %v", what, pair[0], pair[1])
		}
	}
}

// scaled is a report in which everything takes k times as long.
func scaled(tb testing.TB, r *report.Report, k float64) *report.Report {
	tb.Helper()
	var b bytes.Buffer
	if err := report.Write(&b, r); err != nil {
		tb.Fatal(err)
	}
	s, err := report.Read(&b)
	if err != nil {
		tb.Fatal(err)
	}
	times := func(ns int64) int64 { return int64(float64(ns) * k) }
	w := &s.Window
	w.Start, w.End, w.Length = times(w.Start), times(w.End), times(w.Length)
	series := []**report.UnitSeries{&s.Unit.Series}
	for i := range s.Unit.Cuts {
		series = append(series, &s.Unit.Cuts[i].Series)
	}
	for _, u := range series {
		if *u == nil {
			continue
		}
		points, err := (*u).Decode()
		if err != nil {
			tb.Fatal(err)
		}
		for i := range points {
			p := &points[i]
			p.Start, p.Duration, p.Busy = times(p.Start), times(p.Duration), times(p.Busy)
			if p.Compute > 0 {
				p.Compute = times(p.Compute)
			}
		}
		every := (*u).Every
		*u = report.NewUnitSeries(points)
		(*u).Every *= every
	}
	for i := range s.Metrics {
		m := &s.Metrics[i]
		if m.Unit != report.Nanoseconds {
			continue
		}
		if m.Value != nil {
			*m.Value *= k
		}
		if m.Summary != nil {
			for _, v := range []*float64{&m.Summary.Min, &m.Summary.P50, &m.Summary.P90, &m.Summary.P99, &m.Summary.Max, &m.Summary.Mean, &m.Summary.Stddev} {
				*v *= k
			}
		}
	}
	for i := range s.Sections {
		for j := range s.Sections[i].Tables {
			t := &s.Sections[i].Tables[j]
			for c := range t.Columns {
				if t.Columns[c].Unit != report.Nanoseconds {
					continue
				}
				for _, row := range t.Rows {
					if v, ok := row[c].Int(); ok {
						row[c] = report.I(times(v))
					} else if v, ok := row[c].Num(); ok {
						row[c] = report.F(v * k)
					}
				}
			}
		}
	}
	return s
}

// What does not matter: when it ran, under which pid, and for how long it was recorded.
func TestWhatDoesNotMatter(t *testing.T) {
	t.Parallel()
	e := engine{steps: 30, seed: 2}
	path := e.build().WriteTB(t)
	base := reportOfFile(t, path, analyze.Options{})
	for what, edit := range map[string]tracetest.Edit{"shift": tracetest.ShiftTime(1_234_567), "pid": tracetest.RenamePID(102, 4711)} {
		c := diffOf(t, base, rewritten(t, path, edit), diff.Options{})
		empty(t, c)
		if !c.Identical || c.Verdict != comparison.Inconclusive || !c.Has(comparison.SameCapture) {
			t.Errorf("%s: identical %v, verdict %s: %s", what, c.Identical, c.Verdict, c.Cause)
		}
	}
	slow := engine{steps: 30, gap: 100_000}
	slowPath := slow.build().WriteTB(t)
	long := diffOf(t, base, reportOfFile(t, slowPath, analyze.Options{}), diff.Options{})
	// 30 steps of some 0.7 ms: keep the first two thirds of one side and half of the other.
	short := diffOf(t, rewritten(t, path, tracetest.Cut(0, 15_000_000)), rewritten(t, slowPath, tracetest.Cut(0, 12_000_000)), diff.Options{})
	if long.Verdict != comparison.Fail || short.Verdict != long.Verdict {
		t.Errorf("verdict %s, cut shorter %s: %s", long.Verdict, short.Verdict, short.Cause)
	}
	same := diffOf(t, base, rewritten(t, path, tracetest.Cut(0, 12_000_000)), diff.Options{})
	if same.Verdict != comparison.Pass {
		t.Errorf("one side cut shorter: verdict %s: %s", same.Verdict, same.Cause)
	}
}

// Steps of 8 requests take half as long as those of 32. The base has mostly large ones, the head mostly small ones, whose
// GEMMs are 20 % slower: the mean step gets faster, and every kind of step slower (Simpson's paradox).
func TestAChangeOfTheMixIsNoChangeOfCost(t *testing.T) {
	base := engineReport(t, engine{steps: 60, batches: []int64{8, 32, 32, 32}})
	head := engineReport(t, engine{steps: 60, batches: []int64{8, 8, 8, 8, 32}, scale: 1.2})
	plain := engineReport(t, engine{steps: 60, batches: []int64{8, 8, 8, 8, 32}})
	c := diffOf(t, base, head, diff.Options{})
	t.Log(c.Cause)
	if !c.Comparable || c.Depth != comparison.DepthKernel || primaryRow(t, c, "unit.time.p50").Class != comparison.Regressed {
		t.Errorf("comparable %v (%v), depth %s: %+v", c.Comparable, c.Reasons, c.Depth, primaryRow(t, c, "unit.time.p50"))
	}
	if k := kernelRow(c, engineGEMM); k == nil || k.Class != comparison.Regressed || math.Abs(*k.Ratio-1.2) > 0.01 {
		t.Errorf("GEMM: %+v", k)
	}
	says(t, c, "% slower, ", engineGEMM, "a change of the mix and not of the cost")
	var baseTime, headTime, baseCount, headCount float64
	for _, m := range c.Mix {
		if *m.Ratio < 1.08 {
			t.Errorf("%d: changes by %v", *m.Batch, *m.Ratio)
		}
		baseTime, headTime = baseTime+*m.BaseTime*float64(m.BaseCount), headTime+*m.HeadTime*float64(m.HeadCount)
		baseCount, headCount = baseCount+float64(m.BaseCount), headCount+float64(m.HeadCount)
	}
	if headTime/headCount >= baseTime/baseCount {
		t.Errorf("the mean over all steps goes from %v to %v: this tests nothing", baseTime/baseCount, headTime/headCount)
	}
	if c := diffOf(t, base, plain, diff.Options{}); c.Verdict != comparison.Pass || primaryRow(t, c, "unit.time.p50").Class != comparison.Same {
		t.Errorf("another mix alone: verdict %s: %s", c.Verdict, c.Cause)
	}
}

func TestAKindOfUnitCanBeChosen(t *testing.T) {
	path := servingTrace
	base := reportOfFile(t, path, analyze.Options{})
	c := diffOf(t, base, base, diff.Options{})
	if c.Unit.Batch == nil || c.Unit.Phase == "" || len(c.Mix) < 5 {
		t.Fatalf("unit %+v, %d kinds", c.Unit, len(c.Mix))
	}
	compared := 0
	for _, m := range c.Mix {
		if m.Compared {
			compared++
			if m.BaseCount != m.HeadCount || m.Batch == nil || *m.Batch != *c.Unit.Batch {
				t.Errorf("mix %+v", m)
			}
		}
	}
	if compared != 1 {
		t.Errorf("%d kinds are compared", compared)
	}
	batch := int64(16)
	c = diffOf(t, base, base, diff.Options{Phase: "decode", Batch: &batch})
	if c.Unit.Batch == nil || *c.Unit.Batch != 16 || !c.Comparable {
		t.Errorf("unit %+v, %v", c.Unit, c.Reasons)
	}
	// The host side is there for every kind: a decode step launches its graph and 5 kernels, a prefill 67 kernels.
	for phase, want := range map[string]float64{"decode": 5, "prefill": 67} {
		c = diffOf(t, base, base, diff.Options{Phase: phase})
		launches := 0.0
		for i := range c.API {
			if c.API[i].Name == "cudaLaunchKernel" {
				launches = *c.API[i].BaseCount
			}
		}
		if launches != want {
			t.Errorf("%s: %v calls of cudaLaunchKernel per unit, want %v", phase, launches, want)
		}
	}
	c = diffOf(t, base, base, diff.Options{Phase: "encode"})
	if len(c.Reasons) == 0 || c.Reasons[0].Code != comparison.DifferentWork {
		t.Errorf("a phase that is not there: %v", c.Reasons)
	}
}

func TestReadRefuses(t *testing.T) {
	var b bytes.Buffer
	if err := comparison.Write(&b, diffOf(t, engineReport(t, engine{}), engineReport(t, engine{gap: 50_000}), diff.Options{})); err != nil {
		t.Fatal(err)
	}
	good := b.String()
	if !json.Valid(b.Bytes()) {
		t.Fatal("not JSON")
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":       {"", "not a comparison"},
		"other":       {`{"a":1}`, `field "schema" is ""`},
		"other major": {strings.Replace(good, "explain.comparison/1", "explain.comparison/2", 1), `has format "explain.comparison/2"`},
		"verdict":     {strings.Replace(good, `"verdict": "fail"`, `"verdict": "bad"`, 1), `verdict is "bad"`},
		"class":       {strings.Replace(good, `"class":"regressed"`, `"class":"worse"`, 1), `class is "worse"`},
		"sum":         {strings.Replace(good, `"residual": `, `"residual": 5`, 1), "does not close"},
		"depth":       {strings.Replace(good, `"depth": "kernel"`, `"depth": "deep"`, 1), `depth is "deep"`},
	} {
		if c.text == good {
			t.Errorf("%s: the text was not changed", name)
		}
		if _, err := comparison.Read(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	if _, err := diff.Compare(nil, nil, diff.Options{}); err == nil {
		t.Error("no reports are no error")
	}
}

// BenchmarkCompare compares two reports of some 500 kB; it must stay far under 200 ms.
func BenchmarkCompare(b *testing.B) {
	base := reportOfFile(b, sharedTrace(b, "nsysai_mfu_2gpu_before"), analyze.Options{})
	head := reportOfFile(b, sharedTrace(b, "nsysai_mfu_2gpu_after"), analyze.Options{})
	b.ResetTimer()
	for range b.N {
		diffOf(b, base, head, diff.Options{})
	}
}
