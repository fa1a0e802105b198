package noise

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/internal/significance"
)

// Family says how several numbers are judged together.
type Family struct {
	Alpha  float64
	Adjust func([]float64) []float64 // nil: each by itself
	Method string                    // name of Adjust
}

// Primary returns the family of the rows that show whether the head got slower, at a level.
func Primary(alpha float64) Family { return Family{alpha, significance.Holm, "Holm"} }

// Many returns the family for kernels, calls and ranges, of which there are dozens, with a share of false discoveries.
func Many(fdr float64) Family { return Family{fdr, significance.BH, "Benjamini-Hochberg"} }

// Judge judges numbers as one family, see [significance.Judge]. Every decision between noise and change is made here.
func (x *Decider) Judge(numbers []significance.Number, f Family) []significance.Verdict {
	return significance.Judge(numbers, significance.Options{Alpha: f.Alpha, Tau: Tau, Adjust: f.Adjust, Seed: x.seed})
}

// decide judges a number by itself and fills in the verdict of its row.
func (x *Decider) decide(row *comparison.Row, n significance.Number) {
	f := Family{Alpha: x.Policy.Stats.Alpha}
	v := x.Judge([]significance.Number{n}, f)[0]
	x.Judged[key(row)] = n
	if v.Odd != nil {
		x.sayOdd(oddText(v.Odd, x.Base, x.Head))
	}
	row.Class, row.Why, row.Code = v.Class, x.Why(&n, &v, f), ""
	if row.Class == comparison.Unsettled {
		row.Code = cmp.Or(v.Code, v.Open, comparison.WideInterval)
	}
	if n.Count && v.Level == 1 {
		return // exact
	}
	if v.Level > 0 {
		row.Interval = &comparison.Interval{Low: v.Low, High: v.High, Level: v.Level, Method: v.Method}
		if n.Samples != "" {
			row.Interval.Method = strings.Replace(v.Method, "units", n.Samples, 1)
		}
	}
	if !v.Replicated || n.FloorStays {
		row.NoiseFloor = &v.Floor
	}
	row.P, row.PAdjusted = &v.P, &v.PAdjusted
	row.Test = Tested(&n, &v)
	if v.Resolution > 0 && v.Resolution < mostRatio {
		row.Resolution = &v.Resolution
	}
	if k := int64(v.Need); row.Class == comparison.Unsettled && k > 0 {
		row.NeedCaptures = &k
	}
}

// Tested returns the test over captures behind a verdict; nil if there is none.
func Tested(n *significance.Number, v *significance.Verdict) *comparison.Test {
	if v.Test == nil || !v.Replicated {
		return nil
	}
	t := v.Test.Test
	t.Tau = tauOf(n)
	return &t
}

// tauOf returns the change that a number was tested against, ln.
func tauOf(n *significance.Number) float64 {
	if n.Tolerance > 0 {
		return math.Log1p(n.Tolerance)
	}
	return math.Log1p(Tau)
}

// Why explains a verdict, with the numbers to check it.
func (x *Decider) Why(n *significance.Number, v *significance.Verdict, f Family) string {
	if n.Count && v.Level == 1 {
		return "counts are exact"
	}
	if v.Ratio == 0 {
		return "a value of 0 has no ratio to compare with a noise floor"
	}
	if v.Ratio == 1 && v.Low == 1 && v.High == 1 && v.Class == comparison.Same {
		return "both sides are equal"
	}
	change := unit.Change(v.Ratio - 1)
	if v.Replicated {
		text := change + overCapturesText(n, v, f)
		if v.Odd != nil {
			text += "; " + oddText(v.Odd, x.Base, x.Head)
		}
		return text
	}
	return change + overUnitsText(n, v)
}

// oddText names the capture that differs from the others of its side.
func oddText(o *significance.Odd, base, head *side.Side) string {
	s, name := base, "base"
	if o.Head {
		s, name = head, "head"
	}
	return fmt.Sprintf("%s: %s lies %s from the other %d", name, s.Captures[o.At].Report.Trace.Name, unit.Change(o.Ratio-1),
		len(s.Captures)-1)
}

// sayOdd keeps one warning about a capture that differs from its side, of the first row that shows it.
func (x *Decider) sayOdd(text string) {
	if x.Odd == nil {
		text += ": judged with it and without it; record one more"
		x.Odd = []comparison.Reason{{Code: comparison.OddCapture, Text: text}}
	}
}

// overCapturesText explains a verdict over several captures a side.
func overCapturesText(n *significance.Number, v *significance.Verdict, f Family) string {
	tau := unit.Percent(math.Expm1(tauOf(n)))
	if v.Code == comparison.TooFewUnits {
		return "; " + few(n, v)
	}
	if v.Level == 0 {
		return "; nothing is known of the noise between captures"
	}
	name := "p"
	if f.Adjust != nil {
		name = "adjusted p (" + f.Method + ")"
	}
	text := fmt.Sprintf(" (interval %s to %s), %s against ±%s is %s", unit.Change(v.Low-1), unit.Change(v.High-1), name,
		tau, strconv.FormatFloat(v.PAdjusted, 'g', 3, 64))
	switch {
	case v.Class == comparison.Same:
		text += ": within ±" + tau
	case v.Class == comparison.Unsettled:
		text += ": neither beyond it nor surely within it"
	}
	return text
}

// overUnitsText explains a verdict over the units of one capture a side.
func overUnitsText(n *significance.Number, v *significance.Verdict) string {
	floor := "noise floor of " + unit.Percent(v.Floor)
	switch {
	case n.History != nil:
		floor = "calibrated " + floor
	case n.Floor == 0:
		floor += " (assumed: nothing was calibrated)"
	}
	text, samples := "", cmp.Or(n.Samples, "units")
	low, high := unit.Change(v.Low-1), unit.Change(v.High-1)
	switch {
	case v.Level == 0 || low == high: // an interval narrower than its rounding says nothing
	case strings.HasPrefix(v.Method, "noise floor"):
		text = fmt.Sprintf(", interval %s to %s", low, high)
	default:
		text = fmt.Sprintf(", interval over %s %s to %s", samples, low, high)
	}
	beyond := math.Abs(math.Log(v.Ratio)) > math.Log1p(v.Floor)
	switch {
	case (v.Class == comparison.Regressed || v.Class == comparison.Improved) && (v.Low-1)*(v.High-1) > 0 && text != "":
		return text + ": the estimate exceeds the " + floor + ", and the interval excludes 0"
	case v.Class == comparison.Regressed || v.Class == comparison.Improved:
		return text + ", beyond the " + floor
	case v.Class == comparison.Same:
		return text + ": within the " + floor
	case cmp.Or(v.Code, v.Open) == comparison.TooFewUnits:
		return text + "; " + few(n, v)
	case v.Open == comparison.Trend:
		return fmt.Sprintf("%s: the work drifts by %.2g and %.2g times inside the captures, and nothing ties unit to unit",
			text, v.Base.Range, v.Head.Range)
	case beyond:
		return text + ": beyond the " + floor + ", but the " + samples + " inside the captures vary as much"
	}
	return text + ": neither beyond the " + floor + " nor surely within it"
}

// few says that there are too few units, and how many would be enough.
func few(n *significance.Number, v *significance.Verdict) string {
	count := func(side []significance.Capture) int {
		return lists.Sum(side, func(c significance.Capture) int { return max(c.N, len(c.Units)) })
	}
	samples := cmp.Or(n.Samples, "units")
	text := fmt.Sprintf("%d and %d %s are too few to tell", count(n.Base), count(n.Head), samples)
	if v.Units > 0 {
		text += fmt.Sprintf("; captures of %d %s each would tell, if they vary as these", v.Units, samples)
	}
	return text
}
