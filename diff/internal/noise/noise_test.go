package noise

import (
	"bytes"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/significance"
	"github.com/nsys-llm/explain/diff/policy"
)

// capturesOf makes a report for each value of unit.time, with 20 kernels that take 1 % of a unit each.
func capturesOf(times ...float64) []*report.Report {
	var list []*report.Report
	name := "GPU"
	for i, v := range times {
		r := &report.Report{Unit: report.Unit{Kind: "kernel", Name: "anchor"}}
		r.Trace.Name = "capture" + strconv.Itoa(i+1)
		r.Environment.GPUs = []report.GPU{{Name: &name}}
		put := func(id string, l report.Labels, v float64, unit string, noise report.Noise) {
			m := report.Metric{ID: id, Labels: l, Value: &v, Unit: unit, Better: report.Lower, Assume: noise, Scale: report.PerUnit, N: 10}
			if id == "gpu.busy_time" {
				m.Scale = report.Total
			}
			m.Summary = &report.Summary{N: 10, Min: v, P50: v, P90: v, P99: v, Max: v, Mean: v * 1.01, Stddev: v * 0.0202}
			r.Metrics = append(r.Metrics, m)
		}
		put("unit.time", report.Labels{}, v, report.Nanoseconds, report.Noisy)
		put("unit.launches", report.Labels{}, float64(100+i%2), report.Count, report.Exact)
		put("unit.kernels", report.Labels{}, 100, report.Count, report.Exact)
		put("gpu.busy_time", report.Labels{}, v*float64(i+1), report.Nanoseconds, report.Noisy)
		put("unit.gpu_idle", report.Labels{}, float64(i)*v, report.Nanoseconds, report.Noisy)
		for k := range 20 {
			own := 1.0
			if k == 0 && i == 0 {
				own = 1.05
			}
			put("kernel.time_per_unit", report.Labels{"kernel": "k" + strconv.Itoa(k)}, 0.01*v*own, report.Nanoseconds, report.Noisy)
		}
		list = append(list, r)
	}
	return list
}

func approx(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9*max(1, math.Abs(want))) {
		t.Errorf("%s = %.12g, want %.12g", what, got, want)
	}
}

// Three captures with ln unit.time = a, a + 0.02, a - 0.01: mean a + 0.01/3, squares of the deviations
// (-0.01/3)² + (0.05/3)² + (-0.04/3)² = 42e-4/9, over 2: 7e-4/3. The median is a, the deviations from it 0, 0.02, 0.01, their
// median 0.01. t(0.99, 2) = 6.964556734283274, t(0.975, 2) = 4.302652729749464, t(0.975, 4) = 2.776445105197794,
// z(0.8) = 0.841621233572914.
func TestNoiseByHand(t *testing.T) {
	captures := capturesOf(1e6, 1e6*math.Exp(0.02), 1e6*math.Exp(-0.01))
	n := Measure(captures)
	if err := n.Validate(); err != nil {
		t.Fatal(err)
	}
	m := n.Find("unit.time", nil)
	sd := math.Sqrt(7e-4 / 3)
	threshold := math.Expm1(3 * 1.4826 * 0.01) // 4.55 %, above 3 %
	floor := math.Expm1(6.964556734283274 * sd * math.Sqrt2)
	approx(t, "noise", m.Noise, sd)
	approx(t, "df", m.DF, 2)
	approx(t, "MAD", m.MAD, 0.01)
	approx(t, "threshold", m.Threshold, threshold)
	approx(t, "floor", m.Floor, floor)
	approx(t, "within", *m.Within, 0.02) // 0.0202 / 1.01
	// Each is found with 80 % by the test that will run: with one capture a side beyond the floor too, with more by their
	// own 2k-2 degrees of freedom and the 2 of the calibration.
	for k, mde := range m.MDE {
		plan := significance.Plan{Captures: k + 1, SD: sd, DF: 2, Tau: math.Log1p(threshold), Alpha: 0.05}
		if k == 0 {
			plan.Floor = math.Log1p(floor)
		}
		if got := plan.Power(math.Log1p(mde)); math.Abs(got-0.8) > 1e-5 {
			t.Errorf("power = %v, want 0.8", got)
		}
	}
	if !(m.MDE[0] > floor && m.MDE[1] < m.MDE[0] && m.MDE[2] < m.MDE[1] && m.MDE[2] > threshold) {
		t.Errorf("more captures find smaller changes: %v, floor %v", m.MDE, floor)
	}

	for _, name := range []string{"unit.time", "unit.time.p50", "unit.time.mean"} {
		if m := n.Find(name, report.Labels{}); m == nil || m.DF != 2 {
			t.Errorf("%s: %+v", name, m)
		} else {
			approx(t, name, m.Floor, floor)
			approx(t, "variance of "+name, m.Noise*m.Noise, 7e-4/3)
		}
	}
	if m := n.Find("kernel.time_per_unit", report.Labels{"kernel": "k7"}); m == nil || m.Values[0] != 0.01*1e6*1.01 {
		t.Errorf("a kernel is known by its mean: %+v", m)
	}
	if n.Find("kernel.time_per_unit.p50", report.Labels{"kernel": "k7"}) != nil {
		t.Error("a kernel's median is not known")
	}
	// Nothing that grows with the length of a capture; no logarithm of zero; counts that should repeat.
	if n.Find("gpu.busy_time", nil) != nil || n.Find("unit.launches", nil) != nil {
		t.Error("totals and counts have no noise")
	}
	wantSkip := []Skip{{"unit.gpu_idle", report.Labels{}, "not above zero in capture 1"}}
	if d := cmp.Diff(wantSkip, n.Skipped[:1]); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]Unsteady{{"unit.launches", report.Labels{}, 100, 101}}, n.Unsteady); d != "" {
		t.Error(d)
	}
}

func TestNoiseOfWhatWasNotCalibrated(t *testing.T) {
	var none *Noise
	for _, n := range []*Noise{none, Measure(capturesOf(1e6, 2e6))} {
		if n.Find("unit.time", report.Labels{"phase": "decode"}) != nil || n.Find("no.metric", nil) != nil {
			t.Error("the noise of nothing")
		}
	}
	for floor, want := range map[float64]float64{0: comparison.DefaultFloor, 0.02: 0.02} { // of the policy
		if k := (&Known{floor: floor}); k.UnitFloor() != want {
			t.Errorf("got %v, want %v", k.UnitFloor(), want)
		}
	}
	if ok, why := none.Applies(capturesOf(1)[0], policy.Environment{}); ok || why == "" {
		t.Error("nothing applies nowhere, and says why")
	}
}

func TestNoiseApplies(t *testing.T) {
	n := Measure(capturesOf(1e6, 2e6))
	r := capturesOf(1e6)[0]
	if ok, why := n.Applies(r, policy.Environment{}); !ok {
		t.Error(why)
	}
	other, mode := "another GPU", "node"
	for want, change := range map[string]func(r *report.Report){
		"GPUs":            func(r *report.Report) { r.Environment.GPUs = []report.GPU{{Name: &other}} },
		"unit of kind":    func(r *report.Report) { r.Unit.Kind = "nvtx" },
		"\"GPU\" \"GPU\"": func(r *report.Report) { r.Environment.GPUs = append(r.Environment.GPUs, r.Environment.GPUs[0]) },
	} {
		r := capturesOf(1e6)[0]
		change(r)
		if ok, why := n.Applies(r, policy.Environment{}); ok || !strings.Contains(why, want) {
			t.Errorf("%s: %v %q", want, ok, why)
		}
	}
	r.Environment.GraphTrace = &mode // known on one side only
	if ok, why := n.Applies(r, policy.Environment{}); !ok {
		t.Error(why)
	}
	n.Env.Fields["graph_trace"] = other
	if ok, why := n.Applies(r, policy.Environment{}); ok || !strings.Contains(why, "graph_trace") {
		t.Errorf("%v %q", ok, why)
	}
}

// Noise that was measured with fp8 and 256 sequences says nothing of a run without quantization and with 8, unless the policy
// moves these fields.
func TestNoiseIsHeldToEveryHardField(t *testing.T) {
	text := func(v string) *string { return &v }
	whole := func(v int64) *int64 { return &v }
	captures := capturesOf(1e6, 1.01e6)
	for _, r := range captures {
		r.Environment.Quantization, r.Environment.MaxNumSeqs, r.Environment.Driver = text("fp8"), whole(256), text("570")
	}
	n := Measure(captures)
	r := capturesOf(1e6)[0]
	r.Environment.Quantization, r.Environment.MaxNumSeqs, r.Environment.Driver = text("fp8"), whole(256), text("580")
	if ok, why := n.Applies(r, policy.Environment{}); !ok {
		t.Errorf("a soft field differs alone: %s", why)
	}
	if ok, why := n.Applies(r, policy.Environment{Hard: []string{"driver"}}); ok || !strings.Contains(why, `driver "570", captured with "580"`) {
		t.Errorf("a field that the policy made hard: %v %q", ok, why)
	}
	r.Environment.MaxNumSeqs = whole(8)
	if ok, why := n.Applies(r, policy.Environment{}); ok || !strings.Contains(why, `max_num_seqs "256", captured with "8"`) {
		t.Errorf("%v %q", ok, why)
	}
	r.Environment.Quantization = text("none")
	if ok, why := n.Applies(r, policy.Environment{}); ok || !strings.Contains(why, `quantization "fp8", captured with "none"`) {
		t.Errorf("%v %q", ok, why)
	}
	if ok, why := n.Applies(r, policy.Environment{Soft: []string{"quantization"}, Residue: []string{"max_num_seqs"}}); !ok {
		t.Errorf("fields that the policy moved: %s", why)
	}
}

func TestNoiseRoundTrip(t *testing.T) {
	n := Measure(capturesOf(1e6, 1.01e6, 0.99e6))
	var first, second bytes.Buffer
	if err := writeNoise(&first, n); err != nil {
		t.Fatal(err)
	}
	back, err := Read(bytes.NewReader(first.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(n, back); d != "" {
		t.Error(d)
	}
	if err := writeNoise(&second, back); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("the second writing differs (%v)", err)
	}
	if got, want := strings.Count(first.String(), "\n"), 14+len(n.Metrics)+len(n.Unsteady)+len(n.Skipped); got < want-4 || got > want+4 {
		t.Errorf("%d lines, want about %d: one per metric", got, want)
	}
	// A calibration is a noise block with more in it.
	var whole bytes.Buffer
	if err := WriteCalibration(&whole, &Calibration{Noise: *n, LeaveOneOut: []LeftOut{}}); err != nil {
		t.Fatal(err)
	}
	if back, err = Read(&whole); err != nil || !cmp.Equal(n, back) {
		t.Errorf("noise of a calibration: %v", err)
	}
}

func TestReadNoiseRefuses(t *testing.T) {
	var good bytes.Buffer
	if err := writeNoise(&good, Measure(capturesOf(1e6, 1.01e6))); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"another schema":   {"explain.noise/1", "explain.noise/2", "explain.noise/1"},
		"a second schema":  {`"captures": 2`, `"schema": "explain.noise/2", "captures": 2`, `schema is "explain.noise/2"`},
		"one capture":      {`"captures": 2`, `"captures": 1`, "1 captures"},
		"a lost value":     {`"captures": 2`, `"captures": 3`, "one value of each of the 3 captures"},
		"a negative floor": {`"floor":`, `"floor":-`, "not finite"},
		"order":            {`"metric":"unit.time"`, `"metric":"a"`, "out of order"},
		"degrees":          {`"df":1`, `"df":7`, "degrees of freedom"},
		"a level":          {`"level": 0.99`, `"level": 99`, "level"},
		"not JSON":         {`{`, `[`, "not a noise block"},
		"types":            {`"mad":`, `"mad":true,"x":`, "cannot be read"},
	} {
		text := strings.Replace(good.String(), c.old, c.new, 1)
		if text == good.String() {
			t.Errorf("%s: nothing to replace", name)
		}
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Read(strings.NewReader(strings.Repeat(" ", maxNoiseBytes+1))); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("huge: %v", err)
	}
}

func FuzzReadNoise(f *testing.F) {
	var good bytes.Buffer
	if err := writeNoise(&good, Measure(capturesOf(1e6, 1.01e6))); err != nil {
		f.Fatal(err)
	}
	f.Add(good.Bytes())
	f.Add([]byte(`{"schema":"explain.noise/1","captures":2,"level":0.5,"power":0.5}`))
	f.Add([]byte(`{"schema":"explain.noise/1","captures":2,"level":0.5,"power":0.5,"metrics":[{"metric":"a","values":[1,2],"df":1,"mde":[1,2,3]}]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		var first bytes.Buffer
		if err := writeNoise(&first, n); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		back, err := Read(bytes.NewReader(first.Bytes()))
		if err != nil || !cmp.Equal(n, back) {
			t.Fatalf("what was written reads otherwise: %v", err)
		}
		for i := range n.Metrics {
			m := &n.Metrics[i]
			if found := n.Find(m.Metric, m.Labels); found != m || !(m.Floor >= 0) || math.IsInf(m.Floor, 0) {
				t.Fatalf("%+v, found %+v", m, found)
			}
		}
		n.Rules()
	})
}

// writeNoise writes a noise block alone, as it stands in a calibration.
func writeNoise(w io.Writer, n *Noise) error {
	if err := n.Validate(); err != nil {
		return err
	}
	return report.WriteLines(w, n)
}

// A graph replaces launches, by hand: of 100 ms a step waits 30 for the host and 7 in launches, and then 39 behind the graph's
// launch. The 7 are not certain, and without them idle time would be 9 ms longer; it is 2 ms longer.
func TestIdleTimeThatOnlyChangesItsCause(t *testing.T) {
	idle := func(name string, base, head float64, class comparison.Class) comparison.Part {
		return comparison.Part{Kind: report.PartIdle, Name: name, Base: base, Head: head, Delta: head - base, Share: (head - base) / 100, Class: class}
	}
	j := judgedParts{total: 100, drifts: make([]bool, 3), list: []comparison.Part{idle("host", 30, 0, comparison.Improved),
		idle("launch", 7, 0, comparison.Unsettled), idle("dependency", 0, 39, comparison.Regressed)}}
	if share, _ := j.net(false); math.Abs(share-0.02) > 1e-9 {
		t.Errorf("net %+.3f, want +0.02", share)
	}
	j.list[2].Head, j.list[2].Delta, j.list[2].Share = 33, 33, 0.33 // all idle time: 4 ms less
	if share, _ := j.net(false); share != 0 {
		t.Errorf("net %+.3f, want 0", share)
	}
	j.list[0].Class = comparison.Unsettled // one cause alone
	if share, _ := j.net(false); math.Abs(share-0.33) > 1e-9 {
		t.Errorf("net %+.3f, want +0.33", share)
	}
}
