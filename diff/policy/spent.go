package policy

import "github.com/nsys-llm/explain/analyze/report"

// Spent is what of a budget that counts from an anchor was used up before the change that is judged.
type Spent struct {
	Ratio float64  // of the base's level to that of the anchor; 0 where it is not known
	SE    float64  // standard error of its ln, from the noise between runs; 0 where that is not known
	By    []string // what used it up, the largest first: 3f2a91c +2.0 %
	Why   string   // why the ratio is not known
}

// SpentOnNothing is the key under which [Rule.Spent] says why nothing is known of any number.
const SpentOnNothing = "*"

// SpentOn is what was spent on the number with these labels, none for that of the main kind of unit. ok is false where
// no history was asked.
func (r *Rule) SpentOn(l report.Labels) (s Spent, ok bool) {
	if r.Spent == nil {
		return s, false
	}
	if s, ok = r.Spent[l.String()]; !ok {
		if s, ok = r.Spent[SpentOnNothing]; !ok {
			s.Why = "the history has no run of this kind of unit"
		}
	}
	return s, true
}
