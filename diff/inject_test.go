package diff_test

import (
	"math"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/diffdoc"
)

// within reports a number that is more than 1 % off.
func within(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > math.Abs(want)/100 {
		t.Errorf("%s is %.1f, want %.1f to within 1 %%", what, got, want)
	}
}

func engineReport(t *testing.T, e engine) *report.Report {
	t.Helper()
	if e.steps == 0 {
		e.steps = 24
	}
	return reportOf(t, e.build(), analyze.Options{})
}

// injected compares the engine with a changed one, and checks what holds of every comparison.
func injected(t *testing.T, base, head engine) *comparison.Comparison {
	t.Helper()
	c := diffOf(t, engineReport(t, base), engineReport(t, head), diff.Options{})
	t.Log(c.Cause)
	if !c.Comparable || c.Depth != comparison.DepthKernel {
		t.Fatalf("comparable %v, depth %s, reasons %v", c.Comparable, c.Depth, c.Reasons)
	}
	return c
}

func says(t *testing.T, c *comparison.Comparison, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(c.Cause, p) {
			t.Errorf("the cause does not say %q: %s", p, c.Cause)
		}
	}
}

// One family of kernels takes 8 % longer: 12 GEMMs a step, 6 of 30 µs and 6 of 40 µs, 420 µs before and 453.6 µs after.
func TestInjectedFamily(t *testing.T) {
	c := injected(t, engine{}, engine{scale: 1.08})
	k := kernelRow(c, engineGEMM)
	if k == nil || k.Class != comparison.Regressed || k.PairedBy != comparison.ByExact {
		t.Fatalf("row of the GEMM: %+v", k)
	}
	within(t, "change of the GEMM", k.Delta, 33_600)
	within(t, "ratio of the GEMM", *k.Ratio, 1.08)
	within(t, "effect per call", k.PerCallEffect, 33_600)
	if k.CountEffect != 0 {
		t.Errorf("count effect %v", k.CountEffect)
	}
	within(t, "change of the unit", c.Attribution.TotalDelta, 33_600)
	within(t, "change of gemm", attributed(c, comparison.KindCategory, "gemm"), 33_600)
	for i := range c.Kernels {
		if c.Kernels[i].Class == comparison.Regressed && *c.Kernels[i].BaseName != engineGEMM {
			t.Errorf("%s is blamed", *c.Kernels[i].BaseName)
		}
	}
	says(t, c, engineGEMM, "+8.0 %")
}

// Every kernel takes 4 % longer: 631 µs a step (6 layers of 103 µs, 6 + 7 µs), 25.24 µs more.
func TestInjectedCommonMode(t *testing.T) {
	c := injected(t, engine{}, engine{all: 1.04})
	within(t, "change of the unit", c.Attribution.TotalDelta, 25_240)
	says(t, c, "all kernels slower, by 4.0 %", "clocks")
	says(t, c, "3 captures a side would settle it: explain capture --pair --until-decided 'BASE COMMAND' 'HEAD COMMAND'")
	if text := diffdoc.Comment(c, diffdoc.CommentOptions{}, 60_000); !strings.Contains(text, "--until-decided") {
		t.Errorf("the comment does not say what would tell:\n%s", text)
	}
	if v := primaryRow(t, c, "unit.time.p50"); v.Class == comparison.Regressed || v.Class == comparison.Same {
		t.Errorf("+4 %% is %s under an assumed floor of 5 %%: %s", v.Class, v.Why)
	}
	if c.Verdict == comparison.Fail || c.Verdict == comparison.Pass {
		t.Errorf("verdict %s", c.Verdict)
	}
}

// The same where counters tell the clock: 4 % below the base's, it is the cause; as the base's, it is not.
func TestInjectedClocks(t *testing.T) {
	c := injected(t, engine{clock: 1_980_000_000}, engine{all: 1.04, clock: 1_903_846_154})
	says(t, c, "clocks: all kernels slower, by 4.0 %", "1980 → 1904 MHz")
	c = injected(t, engine{clock: 1_980_000_000}, engine{all: 1.04, clock: 1_980_000_000})
	says(t, c, "all kernels slower, by 4.0 %, at unchanged clocks")
	for _, u := range c.Unjudged {
		if u.ID == comparison.Clocks && (u.Base != 1_980_000_000 || u.Head != 1_980_000_000) {
			t.Errorf("clocks %+v", u)
		}
	}
}

// The host sleeps 300 µs before every step.
func TestInjectedHostGap(t *testing.T) {
	c := injected(t, engine{}, engine{gap: 300_000})
	within(t, "change of the unit", c.Attribution.TotalDelta, 300_000)
	within(t, "idle by the host", attributed(c, comparison.KindCause, "host"), 300_000)
	if d := attributed(c, comparison.KindClass, comparison.ClassCompute); math.Abs(d) > 100 {
		t.Errorf("compute changed by %v", d)
	}
	if v := primaryRow(t, c, "unit.time.p50"); v.Class != comparison.Regressed || !v.Unreplicated {
		t.Errorf("unit.time.p50: %s (%s)", v.Class, v.Why)
	}
	if c.Verdict != comparison.Fail {
		t.Errorf("verdict %s", c.Verdict)
	}
	for i := range c.Kernels {
		if c.Kernels[i].Class != comparison.Same {
			t.Errorf("%v is blamed: %s", c.Kernels[i].BaseName, c.Kernels[i].Why)
		}
	}
	says(t, c, "+43.1 % slower, 696.7 → 996.7 µs per step, mean: +300 µs GPU idle, host slower between calls before the next step; GPU compute unchanged")
}

// The host waits 300 µs longer before every step, in a call that the capture names, and 20 µs it runs. The change of host
// time splits the same way, and the causes sum to it.
func TestInjectedWait(t *testing.T) {
	c := injected(t, engine{gap: 40_000, waits: "pthread_cond_wait"}, engine{gap: 340_000, waits: "pthread_cond_wait"})
	within(t, "idle by the host", attributed(c, comparison.KindCause, "host"), 300_000)
	within(t, "in calls of the operating system", attributed(c, comparison.KindHost, "os_call"), 300_000)
	within(t, "in the call", attributed(c, comparison.KindCall, "pthread_cond_wait"), 300_000)
	sum := 0.0
	for _, cause := range []string{"api", "profiler", "os_call", "not_scheduled", "running", "unknown"} {
		sum += attributed(c, comparison.KindHost, cause)
	}
	if host := attributed(c, comparison.KindCause, "host"); math.Abs(sum-host) > 1e-3 {
		t.Errorf("causes of host time changed by %v, host by %v", sum, host)
	}
	says(t, c, "% slower, ", "+300 µs GPU idle, host slower before the next step: of it +300 µs in pthread_cond_wait; GPU compute unchanged")
}

// 40 elementwise kernels of 2 µs more in every step, each 1 µs after the one before: 120 µs, of which 80 are compute.
func TestInjectedLaunches(t *testing.T) {
	c := injected(t, engine{}, engine{extra: 40})
	within(t, "change of the unit", c.Attribution.TotalDelta, 120_000)
	within(t, "change of compute", attributed(c, comparison.KindClass, comparison.ClassCompute), 80_000)
	k := kernelRow(c, engineAdd)
	if k == nil || k.Class != comparison.Added || *k.HeadCount != 40 {
		t.Fatalf("row of the added kernel: %+v", k)
	}
	within(t, "count effect", k.CountEffect, 80_000)
	if v := primaryRow(t, c, "unit.launches"); *v.Delta != 40 || v.Class != comparison.Regressed {
		t.Errorf("launches: %+v", v)
	}
	if f := finding(c, comparison.FoundStorm); f == nil || *f.Head-*f.Base != 40 || f.Class != comparison.Regressed {
		t.Errorf("storm: %+v", f)
	}
	if c.Verdict != comparison.Fail {
		t.Errorf("verdict %s", c.Verdict)
	}
	says(t, c, "40 more launches per unit")
}

// The same 40 launches beside a run of 400 µs of a kernel of that name: what is more is short, whatever was there before.
func TestInjectedLaunchesOfKnownKernel(t *testing.T) {
	c := injected(t, engine{layers: 12, add: 400_000}, engine{layers: 12, add: 400_000, extra: 40})
	within(t, "change of the kernel", kernelRow(c, engineAdd).Delta, 80_000)
	if f := finding(c, comparison.FoundStorm); f == nil || *f.Head-*f.Base != 40 {
		t.Errorf("storm: %+v", f)
	}
	says(t, c, "40 more launches per unit, of kernels that take 2.00") // µs; what jitter adds depends on the units kept
}

func TestInjectedSync(t *testing.T) {
	c := injected(t, engine{}, engine{sync: true})
	f := finding(c, comparison.FoundBlocking+"/cudaDeviceSynchronize")
	if f == nil || *f.Base != 0 || *f.Head != 1 || f.Class != comparison.Added {
		t.Fatalf("findings: %+v", c.Structure)
	}
	// The device idles from the end of its work to the next launch's kernel: 6 µs for the host to come back, 3 µs to start.
	// The next kernel would have followed after 1 µs.
	within(t, "change of the unit", c.Attribution.TotalDelta, 8_000)
	says(t, c, "new blocking call cudaDeviceSynchronize, 0 → 1 per unit")
}

func TestInjectedRename(t *testing.T) {
	c := injected(t, engine{}, engine{gemm: engineGEMM2})
	k := kernelRow(c, engineGEMM)
	if k == nil || k.HeadName == nil || *k.HeadName != engineGEMM2 || k.PairedBy == comparison.ByExact || k.Delta != 0 || k.Class != comparison.Same || k.Note == "" {
		t.Fatalf("row of the renamed kernel: %+v", k)
	}
	if c.Verdict != comparison.Pass || c.Attribution.TotalDelta != 0 {
		t.Errorf("verdict %s, change %v", c.Verdict, c.Attribution.TotalDelta)
	}
	if c.Identical {
		t.Error("another kernel is not the same numbers")
	}
	says(t, c, engineGEMM+" → "+engineGEMM2)
}

// Attention becomes two kernels, of 15 and 10 µs instead of 20, with 1 µs between: 6 times 6 µs more, 30 of it compute.
func TestInjectedSplit(t *testing.T) {
	c := injected(t, engine{}, engine{two: true})
	within(t, "change of the unit", c.Attribution.TotalDelta, 36_000)
	within(t, "change of compute", attributed(c, comparison.KindClass, comparison.ClassCompute), 30_000)
	old, first, second := kernelRow(c, engineFlash), kernelRow(c, engineQK), kernelRow(c, engineMerge)
	if old == nil || first == nil || second == nil {
		t.Fatal("a kernel has no row")
	}
	within(t, "sum of the rows", old.Delta+second.Delta+map[bool]float64{true: 0, false: first.Delta}[old == first], 30_000)
	says(t, c, "+30.01 µs kernel flash_fwd_kernel replaced by 2 kernels")
	if old != first || !strings.Contains(old.Note, "replaced by 2 kernels") || second.Class != comparison.Added || second.Note == "" {
		t.Errorf("attention: %+v\nand %+v", old, second)
	}
}

func TestInjectedPageable(t *testing.T) {
	c := injected(t, engine{}, engine{pageable: true})
	for _, d := range []string{"HtoD", "DtoH"} {
		if f := finding(c, comparison.FoundPageable+"/"+d); f == nil || *f.Base != 0 || *f.Head != 1 || f.Class != comparison.Added {
			t.Errorf("%s: %+v", d, f)
		}
	}
	if finding(c, comparison.FoundCopies+"/HtoD") != nil {
		t.Error("the number of copies did not change")
	}
	says(t, c, "pageable HtoD copies 0 → 1 per unit")
}

// An old export does not say what memory its copies use: the head's pageable ones may be the same.
func TestUnknownMemoryIsNotPinned(t *testing.T) {
	base, known := engineReport(t, engine{}), 0
	for i := range base.Metrics {
		if kind, ok := base.Metrics[i].Labels["kind"]; ok && kind == "pinned" && strings.HasPrefix(base.Metrics[i].ID, "memcpy.") {
			base.Metrics[i].Labels["kind"] = "unknown"
			known++
		}
	}
	c := diffOf(t, base, engineReport(t, engine{pageable: true}), diff.Options{})
	if f := finding(c, comparison.FoundPageable+"/HtoD"); f != nil || known == 0 || !c.Comparable {
		t.Errorf("%+v of %d kinds, comparable %v", f, known, c.Comparable)
	}
}

// A graph of 30 kernels becomes 30 launches: 1 + 2 launches a step become 32.
func TestInjectedEager(t *testing.T) {
	c := injected(t, engine{graph: true}, engine{})
	f := finding(c, comparison.FoundGraphs)
	if f == nil || *f.Base != 1 || *f.Head != 0 || f.Class != comparison.Regressed {
		t.Fatalf("findings: %+v", c.Structure)
	}
	if v := primaryRow(t, c, "unit.launches"); *v.Base != 3 || *v.Head != 32 || v.Class != comparison.Regressed {
		t.Errorf("launches: %+v", v)
	}
	if v := primaryRow(t, c, "unit.kernels"); *v.Delta != 0 {
		t.Errorf("kernels: %+v", v)
	}
	says(t, c, "CUDA graph launches 1 → 0 per unit", "launches 3 → 32 per unit")
	back := injected(t, engine{}, engine{graph: true})
	if f := finding(back, comparison.FoundGraphs); f == nil || f.Class != comparison.Improved {
		t.Errorf("findings: %+v", back.Structure)
	}
}

// Six graphs per step become one: fewer graph launches, and fewer launches.
func TestInjectedGraphPieces(t *testing.T) {
	pieces, whole := engine{graph: true, pieces: 6, batches: []int64{16}}, engine{graph: true, batches: []int64{16}}
	c := injected(t, pieces, whole)
	if f := finding(c, comparison.FoundGraphs); f == nil || *f.Base != 6 || *f.Head != 1 || f.Class != comparison.Improved {
		t.Fatalf("findings: %+v", c.Structure)
	}
	says(t, c, "CUDA graph launches 6 → 1 per unit, launches 8 → 3 per unit: the work is in fewer graphs")
	back := injected(t, whole, pieces)
	if f := finding(back, comparison.FoundGraphs); f == nil || f.Class != comparison.Regressed {
		t.Errorf("findings: %+v", back.Structure)
	}
	says(t, back, "the work is in more graphs")
}

// Twice the layers is other work, not a regression.
func TestOtherWorkIsNotComparable(t *testing.T) {
	c := diffOf(t, engineReport(t, engine{}), engineReport(t, engine{layers: 12}), diff.Options{})
	if c.Comparable || c.Reasons[0].Code != comparison.DifferentWork || c.Verdict == comparison.Pass || c.Verdict == comparison.Fail || len(c.Kernels) > 0 {
		t.Errorf("comparable %v, reasons %v, verdict %s", c.Comparable, c.Reasons, c.Verdict)
	}
}

// Three captures a side: GEMMs 8 % longer are found, and the unit's +5.1 % (33.6 of 660 µs) is more than 3 %.
func TestSeveralCaptures(t *testing.T) {
	t.Parallel()
	var base, same, slow []*report.Report
	for i := range int64(3) {
		base = append(base, engineReport(t, engine{seed: 1 + i}))
		same = append(same, engineReport(t, engine{seed: 4 + i, all: 1 + 0.001*float64(i)}))
		slow = append(slow, engineReport(t, engine{seed: 4 + i, scale: 1.08, all: 1 + 0.001*float64(i)}))
	}
	c, err := diff.Compare(base, same, diff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Verdict != comparison.Pass || primaryRow(t, c, "unit.time.p50").Class != comparison.Same || primaryRow(t, c, "unit.time.p50").Unreplicated {
		t.Errorf("same: verdict %s, %+v", c.Verdict, primaryRow(t, c, "unit.time.p50"))
	}
	c, err = diff.Compare(base, slow, diff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, metric := range []string{"unit.time.p50", "unit.time.mean"} {
		if r := primaryRow(t, c, metric); r.Class != comparison.Regressed || r.PAdjusted == nil || *r.PAdjusted > 0.05 || r.Test == nil || len(r.BaseValues) != 3 {
			t.Errorf("slow: %+v", r)
		}
	}
	if k := kernelRow(c, engineGEMM); k == nil || k.Class != comparison.Regressed || k.PAdjusted == nil {
		t.Errorf("GEMM: %+v", k)
	}
	if c.Verdict != comparison.Fail {
		t.Errorf("verdict %s", c.Verdict)
	}
	says(t, c, "% slower, ", engineGEMM)
}
