package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/noise"
	"github.com/nsys-llm/explain/diff/internal/pairing"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/policy"
)

// NotComparable is the error for captures that cannot be calibrated because they differ by more than noise.
type NotComparable struct {
	Reasons []comparison.Reason // at least one
}

// Error names the first reason.
func (e *NotComparable) Error() string {
	return "the captures are not comparable: " + e.Reasons[0].Text
}

func notComparable(code comparison.Code, format string, args ...any) *NotComparable {
	return &NotComparable{[]comparison.Reason{{Code: code, Text: fmt.Sprintf(format, args...)}}}
}

// Calibrate measures how much metrics differ between captures of the same commit: at least 2, better 5. The error is a
// [NotComparable] if captures differ in environment, in their work or in the unit of work, if one occurs twice, or if
// two are windows of one session.
func Calibrate(captures []*report.Report) (*noise.Calibration, error) {
	if len(captures) < 2 {
		return nil, fmt.Errorf("a calibration needs at least 2 captures of one commit, got %d; 5 or more give useful floors", len(captures))
	}
	first, others, _ := unify(captures[:1], captures[1:])
	captures = slices.Concat(first, others)
	indexed := side.NewCaptures(captures)
	if err := alike(indexed); err != nil {
		return nil, err
	}
	c := &noise.Calibration{Noise: *noise.Measure(captures)}
	if !slices.ContainsFunc(c.Metrics, func(m noise.Metric) bool { return m.Metric == "unit.time" }) {
		return nil, notComparable(comparison.MissingMetric, "not every capture has a time per unit of work (unit.time)")
	}
	if err := leaveOneOut(c, captures, indexed); err != nil {
		return nil, err
	}
	return c, nil
}

// alike returns a [NotComparable] if captures cannot be calibrated together.
func alike(captures []*side.Capture) error {
	for i, x := range captures {
		r := x.Report
		if len(r.Environment.GPUs) == 0 {
			return notComparable(comparison.EmptySide, "capture %d has no GPU work", i+1)
		}
		if r.Unit.Kind == "none" || r.Unit.Kind == "" {
			return notComparable(comparison.NoUnit, "capture %d has no unit of work: %s", i+1, r.Unit.Why)
		}
		for k, other := range captures[:i] {
			switch {
			case copied(other, x):
				return notComparable(comparison.SameCapture,
					"captures %d and %d are the same capture, and copies do not show how much captures differ", k+1, i+1)
			case pairing.TwoRanks(other, x):
				return notComparable(comparison.OneRun, "captures %d and %d are of different ranks of a run, "+
					"which do not show how much runs differ: make one report of each run (explain doc ranks)", k+1, i+1)
			case pairing.OneSession(other, x):
				return notComparable(comparison.OneSession, "captures %d and %d are windows of one "+
					"session, which differ less than two sessions do: record each capture with a run of its own", k+1, i+1)
			}
		}
		if i == 0 {
			continue
		}
		first := &noise.Noise{Env: noise.EnvOf(captures[0].Report)}
		if ok, why := first.Applies(r, policy.Environment{}); !ok {
			why = strings.Replace(strings.Replace(why, "calibrated", "capture 1 is", 1), ", captured",
				fmt.Sprintf(", capture %d is", i+1), 1)
			return notComparable(comparison.EnvironmentMismatch, "%s", why)
		}
		c, err := compare(captures[:1], captures[i:i+1], Options{})
		if err != nil {
			return err
		}
		if !c.Comparable {
			return &NotComparable{lists.Map(c.Reasons, func(r comparison.Reason) comparison.Reason {
				return comparison.Reason{Code: r.Code, Text: fmt.Sprintf("captures 1 and %d: %s", i+1, r.Text)}
			})}
		}
	}
	return nil
}

// leaveOneOut compares each capture with the others.
func leaveOneOut(c *noise.Calibration, captures []*report.Report, indexed []*side.Capture) error {
	c.LeaveOneOut = []noise.LeftOut{}
	rules := c.Rules()
	for i, r := range captures {
		others := slices.Delete(slices.Clone(captures), i, i+1)
		opt := Options{Version: captures[0].Tool.Version, Rules: rules}
		if len(others) > 1 {
			opt.Noise = noise.MeasureFloors(others)
		}
		d, err := compare(slices.Delete(slices.Clone(indexed), i, i+1), indexed[i:i+1], opt)
		if err != nil {
			return err
		}
		kernels := func(class comparison.Class) int64 {
			return int64(lists.Count(d.Kernels, func(k comparison.Kernel) bool { return k.Class == class }))
		}
		out := noise.LeftOut{Name: r.Trace.Name, Verdict: d.Verdict, Alarms: []string{}, Kernels: d.Counts.KernelsCompared,
			RegressedKernels: kernels(comparison.Regressed), ImprovedKernels: kernels(comparison.Improved)}
		for k := range d.Gates {
			if g := &d.Gates[k]; g.Verdict == comparison.Fail {
				out.Alarms = append(out.Alarms, g.Metric+"{"+g.Labels.String()+"}")
			}
		}
		if d.Verdict == comparison.Fail {
			c.FalseAlarms++
		}
		c.LeaveOneOut = append(c.LeaveOneOut, out)
	}
	return nil
}
