package significance

import (
	"cmp"

	"github.com/nsys-llm/explain/diff/comparison"
)

// Capture is one number in one capture: its units, or a summary of them.
type Capture struct {
	Units []float64 // by unit in run order, plain; may be a sample, or missing
	Steps []int64   // marker numbers of Units, each once; nil if there are none
	Value float64   // value that the row shows for the capture; 0: the statistic of Units
	N     int       // units behind Value; 0: len(Units)
	SD    float64   // over units, if Units is missing; for a quantile, of the normal distribution of equal width there
	Lag1  float64   // autocorrelation of the units, if Units is missing
}

// Tie is the evidence that units of two captures are the same work, mostly unit i and unit i.
type Tie int

const (
	// TieNone: there is no evidence.
	TieNone Tie = iota
	// TieStart: both captures begin at the same point, by an equal prologue or because both hold the whole program. A
	// decision must survive shifts of 1 % and 2 % of the units either way.
	TieStart
	// TieNumber: the units carry marker numbers (Capture.Steps), and units of equal number are the same work; without
	// Steps, units of equal index.
	TieNumber
)

// Number is one noisy number to be judged: what is compared, by which rule, and what is known of its noise. All values
// are plain (not ln), in one unit of the caller's choice.
type Number struct {
	Stat         Statistic
	Base, Head   []Capture
	Tolerance    float64 // of the rule: 0.05 allows 5 % more (less if HigherBetter); 0: Options.Tau
	HigherBetter bool
	Count        bool // exact if it is the same in every unit of a side
	// Floor is the ratio that 99 % of changes between two captures of one commit stay below. 0: from History, else
	// [comparison.DefaultFloor].
	Floor float64
	// FloorStays says that the sides come from different runs, so that captures of one run do not show the noise between
	// runs.
	FloorStays bool
	History    *History // variance of ln between captures of one commit, from a calibration
	Timer      float64  // resolution of the values; if 0, constant values prove nothing
	Tie        Tie
	// Whole says that the number is the time of whole units; one capture of several may be an outlier, see [Odd].
	Whole   bool
	Samples string // what its units are called if they are no units of work: log lines; else ""
	// Trimmed is the ratio of head to base without outliers, if the caller knows it for units that are not listed; else 0.
	Trimmed float64
}

// Options apply to a family of numbers that are judged together.
type Options struct {
	Alpha  float64                   // 0: Alpha
	Tau    float64                   // classes need changes beyond it, or beyond a smaller tolerance; 0: 0.03
	Adjust func([]float64) []float64 // Holm or BH; nil: no adjustment
	Seed   uint64
	whole  bool // treat no unit as an outlier
}

// Outcome is a rule's result for a number.
type Outcome int

const (
	// Undecided: the estimate exceeds the rule but not for certain, or there is too little evidence. Never a pass.
	Undecided Outcome = iota
	// Holds: no worse than the rule allows. The interval reaches at most rule + floor on the bad side; if it reaches
	// further, Loose is set.
	Holds
	// Warns: worse for certain and perhaps by more than the rule allows; or a mean that only a few outliers raise.
	Warns
	// Fails: worse than the rule allows, for certain.
	Fails
)

// Verdict is the judgement of one number. Ratios are head over base.
type Verdict struct {
	Class      comparison.Class
	Outcome    Outcome
	Code       comparison.Code // why it is Undecided, else empty
	Ratio      float64         // judged ratio, for pairs not that of the values; 0: none
	Low, High  float64         // interval of Ratio; equal to it if there is none
	Level      float64         // of the interval: 1 - alpha over captures, 1 - 2 alpha over units, less for few units; 0: none
	Method     string          // of the interval
	P          float64         // probability that noise alone moves it beyond Tolerance in its direction
	PAdjusted  float64         // adjusted over the family
	Test       *Result         // over captures, if the noise between them is known
	Floor      float64         // noise floor that was used, a ratio
	Resolution float64         // the smallest loss that would have failed, a ratio above 0; 0: no loss would have
	Need       int             // captures a side that would settle it; 0: none would, or it is settled
	Units      int             // units in each of two captures that would settle it; 0: none would, or there are enough
	Replicated bool            // several captures on both sides
	Loose      bool            // Holds by the estimate alone: the interval reaches further
	Odd        *Odd            // a capture that differs from the others of its side
	Few        bool            // Warns because of outliers alone, see [Judge]
	Open       comparison.Code // why a change beyond the rule, either way, is not certain; else empty
	Base, Head Trend           // of the first capture of each side
}

// classTau is the default change up to which a number can be called the same.
const classTau = 0.03

// Judge judges the numbers of one family. It returns, in the order of the numbers, how each changed and the outcome of
// its rule. Only Judge separates noise from change:
//
//   - with several captures on both sides, it tests the effect of [TREAT] over captures against the rule's own
//     tolerance, with a least standard error from timer and units;
//   - otherwise the change must exceed the floor, and be certain at the rule's own tolerance by the units inside the
//     captures, as pairs if they are tied, else as two samples; and also by the noise between captures, if a
//     calibration or the captures of one side show it;
//   - with LeastUnits up to MinUnits-1 units, the sides must also not overlap, and differ by more than the rule.
//
// A mean that holds only without the slower side's slowest units (one, or fewer than 2 %) warns, unless a further unit is
// slow by a quarter as much or more.
//
// With three or more captures a side, the verdict names one that differs from the others ([Odd]). A number that fails
// without it fails; one that is undecided with it and holds without it warns.
//
// p-values are adjusted over the family, for classes and for rules. A number that fails is of class Regressed. The
// pages give the formulae. The same arguments give the same verdicts; swapping the sides mirrors classes and
// intervals.
func Judge(numbers []Number, o Options) []Verdict {
	o.Alpha = cmp.Or(o.Alpha, Alpha)
	o.Tau = cmp.Or(o.Tau, classTau)
	if o.Adjust == nil {
		o.Adjust = func(p []float64) []float64 { return p }
	}
	list := make([]question, len(numbers))
	for i := range numbers {
		list[i] = ask(&numbers[i], o)
	}
	test(list, o)
	var open []int
	var pClass, pRule []float64
	for i := range list {
		if q := &list[i]; !q.settled {
			q.measure(o)
			open = append(open, i)
			pClass, pRule = append(pClass, q.p(q.tauClass)), append(pRule, q.p(q.tau))
		}
	}
	adjustedClass, adjustedRule := o.Adjust(pClass), o.Adjust(pRule)
	for k, i := range open {
		list[i].decide(pRule[k], adjustedRule[k], adjustedClass[k], o)
	}
	verdicts := make([]Verdict, len(list))
	for i := range list {
		q := &list[i]
		if !q.settled && !o.whole && q.n.Stat == Mean && (q.v.Outcome == Fails || q.v.Outcome == Undecided) {
			q.forgive(o)
		}
		if !q.settled && !o.whole && q.n.Whole && q.several() {
			q.apartFromSiblings(o)
		}
		if !q.settled && (q.v.Outcome == Undecided || q.v.Class == comparison.Unsettled) {
			q.need(o)
		}
		verdicts[i] = q.verdict()
	}
	return verdicts
}
