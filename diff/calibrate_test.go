package diff_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/noise"
)

// fixed makes captures of the synthetic server whose GPU time is scaled by factors, and nothing else.
func fixed(s *source, factors ...float64) []*report.Report {
	var list []*report.Report
	for i, f := range factors {
		units := slices.Clone(s.units)
		for k := range units {
			units[k].compute *= f
			units[k].comm *= f
			units[k].copied *= f
			units[k].idle *= f
		}
		list = append(list, s.with(units, func(string, string) float64 { return 1 }, 1, uint64(i)))
	}
	return list
}

func server(t *testing.T) *source {
	return newSource(t, "synthetic server", servingTrace)
}

// Three captures at 1, 1.002 and 1.30: the median absolute deviation of ln is 0.002, so 3 % is suggested. The noise of the
// first two has a floor of exp(31.82·0.001413·√2)-1 = 6.6 %, so that the third is an alarm; the noise of any two with the
// third in it is so large that the others are none.
func TestLeaveOneOutFindsTheOddCapture(t *testing.T) {
	t.Parallel()
	c, err := diff.Calibrate(fixed(server(t), 1, 1.002, 1.30))
	if err != nil {
		t.Fatal(err)
	}
	var verdicts []comparison.Verdict
	for _, o := range c.LeaveOneOut {
		verdicts = append(verdicts, o.Verdict)
	}
	if c.FalseAlarms != 1 || len(verdicts) != 3 || verdicts[2] != comparison.Fail || verdicts[0] == comparison.Fail || verdicts[1] == comparison.Fail {
		t.Errorf("%d false alarms, verdicts %v", c.FalseAlarms, verdicts)
	}
	if !slices.ContainsFunc(c.LeaveOneOut[2].Alarms, func(a string) bool { return strings.HasPrefix(a, "unit.time") }) {
		t.Errorf("alarms of the third capture: %q", c.LeaveOneOut[2].Alarms)
	}
	for _, r := range c.Rules() {
		if r.ID == "step" && *r.Rel != 0.03 {
			t.Errorf("a threshold of %v is suggested", *r.Rel)
		}
	}
}

// Copies of one capture and windows of one session do not show how much captures differ.
func TestCalibrationNeedsSessionsOfTheirOwn(t *testing.T) {
	t.Parallel()
	list := fixed(server(t), 1, 1.002)
	for session, want := range map[string]comparison.Code{"s": comparison.OneSession, "t": ""} {
		_, err := diff.Calibrate([]*report.Report{identified(list[0], "a", "s"), identified(list[1], "b", session)})
		var differ *diff.NotComparable
		if want == "" {
			if err != nil {
				t.Errorf("two sessions: %v", err)
			}
			continue
		}
		if !errors.As(err, &differ) || differ.Reasons[0].Code != want {
			t.Errorf("windows of one session: %v", err)
		}
	}
	var differ *diff.NotComparable
	_, err := diff.Calibrate([]*report.Report{identified(list[0], "a", "s"), identified(list[1], "a", "s")})
	if !errors.As(err, &differ) || differ.Reasons[0].Code != comparison.SameCapture {
		t.Errorf("copies: %v", err)
	}
}

// What a calibration says is what a comparison goes by: the floor of unit.time, from the five values by hand.
func TestCompareGoesByTheCalibration(t *testing.T) {
	t.Parallel()
	s := server(t)
	factors := []float64{1, 1.01, 0.99, 1.02, 0.995}
	c, err := diff.Calibrate(fixed(s, factors...))
	if err != nil {
		t.Fatal(err)
	}
	var sum, squares float64
	for _, f := range factors {
		sum += math.Log(f) / 5
	}
	for _, f := range factors {
		squares += (math.Log(f) - sum) * (math.Log(f) - sum)
	}
	want := math.Expm1(3.746947387979197 * math.Sqrt(squares/4) * math.Sqrt2) // t(0.99, 4)
	pair := fixed(s, 1, 1.04)
	d := compare(t, pair[:1], pair[1:], diff.Options{Noise: &c.Noise})
	row := d.Row("unit.time.p50")
	if row == nil || row.NoiseFloor == nil || math.Abs(*row.NoiseFloor-want) > 1e-9 {
		t.Errorf("%s goes by a floor of %v, want %v", row.Metric, row.NoiseFloor, want)
	}
	if c.FalseAlarms != 0 || len(c.LeaveOneOut) != 5 {
		t.Errorf("%d false alarms of %d", c.FalseAlarms, len(c.LeaveOneOut))
	}
}

func TestCalibrationIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	s := server(t)
	var first []byte
	for range 2 {
		c, err := diff.Calibrate(s.side(rand.New(rand.NewPCG(1, 1)), 3, worlds()[1].world, change{}))
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := noise.WriteCalibration(&b, c); err != nil {
			t.Fatal(err)
		}
		n, err := noise.Read(bytes.NewReader(b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(&c.Noise, n); d != "" {
			t.Error(d)
		}
		if first != nil && !bytes.Equal(first, b.Bytes()) {
			t.Error("the same captures give other bytes")
		}
		first = b.Bytes()
	}
}

func TestCalibrateRefuses(t *testing.T) {
	t.Parallel()
	s := server(t)
	two := fixed(s, 1, 1.01)
	with := func(change func(r *report.Report)) []*report.Report {
		r := *two[1]
		change(&r)
		return []*report.Report{two[0], &r}
	}
	other := newSource(t, "other", tracetest.Serving(tracetest.Schema("3.16.1")).WriteTB(t)) // the same work
	if _, err := diff.Calibrate(append(fixed(other, 1.02), two...)); err != nil {
		t.Errorf("another schema is no other work: %v", err)
	}
	for name, c := range map[string]struct {
		captures []*report.Report
		code     comparison.Code
		text     string
	}{
		"the same twice": {append(fixed(s, 1.02), two[0], two[0]), comparison.SameCapture, "captures 2 and 3"},
		"another GPU": {with(func(r *report.Report) {
			name := "another"
			r.Environment.GPUs = slices.Clone(r.Environment.GPUs)
			r.Environment.GPUs[0].Name = &name
		}), comparison.EnvironmentMismatch, "capture 2 is on"},
		"no unit": {with(func(r *report.Report) { r.Unit.Kind, r.Unit.Why = "none", "too few kernels" }), comparison.NoUnit, "too few kernels"},
		"no GPU":  {with(func(r *report.Report) { r.Environment.GPUs = []report.GPU{} }), comparison.EmptySide, "capture 2"},
	} {
		_, err := diff.Calibrate(c.captures)
		var refused *diff.NotComparable
		if !errors.As(err, &refused) || refused.Reasons[0].Code != c.code || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := diff.Calibrate(two[:1]); err == nil || !strings.Contains(err.Error(), "at least 2") {
		t.Errorf("one capture: %v", err)
	}
}
