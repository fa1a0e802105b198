package significance

// Capture is one number in one capture: its units, or what is known of them.
type Capture struct {
	Units []float64 // of each unit in the order in which they ran, plain; may be a sample of them, or missing
	Steps []int64   // numbers that the markers of Units carry, each one once; nil if they carry none
	Value float64   // what the row shows of the capture; 0: the statistic of Units
	N     int       // units behind Value; 0: len(Units)
	SD    float64   // over units, where Units is missing; for a quantile, of the normal distribution that is as wide there
	Lag1  float64   // autocorrelation of the units, where Units is missing
}

// Tie is the evidence that a unit of one capture is the same work as one of the other, mostly unit i as unit i.
type Tie int

const (
	// TieNone: nothing says so.
	TieNone Tie = iota
	// TieStart: both captures begin at the same point, by an equal prologue or because both hold the whole program.
	// What is decided has to survive shifts of 1 % and 2 % of the units either way.
	TieStart
	// TieNumber: the units carry marker numbers, Capture.Steps, and those of equal number are the same work; without
	// Steps, unit i of both is.
	TieNumber
)

// Number is one noisy number to be judged: what is compared, by which rule, and what is known of its noise. All
// values are plain, in one unit of the caller's choice.
type Number struct {
	Stat         Statistic
	Base, Head   []Capture
	Tolerance    float64 // of the rule: 0.05 allows 5 % more (less, if HigherBetter); 0: Options.Tau
	HigherBetter bool
	Count        bool // exact where it is the same in every unit of a side
	// Floor is what 99 % of changes between two captures of one commit stay below, a ratio. 0: from History, else
	// AssumedFloor.
	Floor float64
	// FloorStays says that the sides are from different runs, so that captures of one run do not contain what
	// differs.
	FloorStays bool
	History    *History // variance of ln between captures of one commit, of a calibration
	Timer      float64  // resolution of the values; with 0, values that do not vary prove nothing
	Tie        Tie
	// Whole says that it is the time of whole units, of which one capture of several may lie apart, see [Odd].
	Whole bool
	// Trimmed is the ratio of head to base, both without outliers, where the caller knows it of units that are not listed;
	// 0: not known.
	Trimmed float64
}

// Options of a family of numbers that are judged together.
type Options struct {
	Alpha  float64                   // 0: Alpha
	Tau    float64                   // classes are of changes beyond it, or beyond a smaller tolerance; 0: 0.03
	Adjust func([]float64) []float64 // Holm or BH; nil: every number by itself
	Seed   uint64
	whole  bool // no unit is an outlier
}

// Class is what became of a number, in the words of comparisons.
type Class string

const (
	Unsettled Class = "inconclusive"
	Same      Class = "same"
	Improved  Class = "improved"
	Regressed Class = "regressed"
)

// Outcome is what a rule makes of a number.
type Outcome int

const (
	// Undecided: beyond the rule by the estimate and not for certain, or too little to tell. Never a pass.
	Undecided Outcome = iota
	// Holds: no worse than the rule allows. The interval reaches no further than rule + floor on the bad side, or the
	// verdict says that it does (Loose).
	Holds
	// Warns: worse for certain and perhaps by more than the rule allows; or a mean that a few outliers carry.
	Warns
	// Fails: worse than the rule allows, for certain.
	Fails
)

// Code says why a number is undecided.
type Code string

const (
	WideInterval Code = "wide_interval"
	TooFewUnits  Code = "too_few_units"
	Drifting     Code = "trend"
)

// Verdict is one number judged. Ratios are head over base.
type Verdict struct {
	Class      Class
	Outcome    Outcome
	Code       Code    // of Undecided, else empty
	Ratio      float64 // of what was judged, which for pairs is not that of the values. 0: there is none
	Low, High  float64 // interval of Ratio; equal to it if there is none
	Level      float64 // of the interval: 1 - alpha over captures, 1 - 2 alpha over units, less for few units; 0: none
	Method     string  // of the interval
	P          float64 // that the change is beyond Tolerance by noise alone, in its direction
	PAdjusted  float64 // over the family
	Test       *Result // over captures, where the noise between them is known
	Floor      float64 // noise floor that was reckoned with, a ratio
	Resolution float64 // the smallest loss that would have failed, a ratio above 0; 0: no loss would have
	Need       int     // captures a side that would settle it; 0: none would, or it is settled
	Units      int     // units in each of two captures that would settle it; 0: none would, or there are enough
	Replicated bool    // several captures on both sides
	Loose      bool    // Holds: by the estimate alone, the interval reaches further
	Odd        *Odd    // a capture that lies apart from the others of its side
	Few        bool    // Warns: outliers alone carry it, see [Judge]
	Base, Head Trend   // of the first capture of each side
}

// classTau is the change up to which a number can be called the same.
const classTau = 0.03

// Judge judges the numbers of one family. It returns, in the order of the numbers, how each changed, and the outcome
// of its rule. Only here is noise separated from change:
//
//   - several captures on both sides: [TREAT] over captures at the rule's own tolerance, with a least standard error
//     from timer and units;
//   - else the change must exceed the floor, and be certain at the rule's own tolerance by the units inside the
//     captures: as pairs if they are tied, else as two samples; and by the noise between captures, if a calibration or
//     the captures of one side show it;
//   - with fewer than MinUnits units, from LeastUnits on, the sides must also not overlap, and differ by more than the
//     rule.
//
// A mean that one unit of head carries, or fewer than 2 % of them, warns: without them it holds.
//
// Of three captures a side or more, one that lies apart from the others is told ([Odd]). What fails without it fails;
// what is open with it and holds without it warns.
//
// p-values are adjusted over the family for classes and for rules alike. A number that fails is of class Regressed.
// The pages give the formulae. The same arguments give the same verdicts; swapping the sides mirrors classes and
// intervals.
func Judge(numbers []Number, o Options) []Verdict {
	if o.Alpha == 0 {
		o.Alpha = Alpha
	}
	if o.Tau == 0 {
		o.Tau = classTau
	}
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
		if !q.settled && q.v.Outcome == Undecided {
			q.need(o)
		}
		verdicts[i] = q.verdict()
	}
	return verdicts
}
