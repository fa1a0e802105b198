package ranks

import "github.com/nsys-llm/explain/analyze/report/lists"

const (
	// equally is by how much of the longer one the times of two members in calls of a kind, and the ends of two calls,
	// may differ to be called equal.
	equally = 0.05
	// mostly is the share of the calls that must end together.
	mostly = 0.9
)

// Together returns the only other member that spends equally long in calls of a kind as a member does and whose calls
// end when the member's do, as those of two that exchange data do; ok is false if there is none or there are several.
func (a *Aligned) Together(m int, kind string) (with int, ok bool) {
	with = -1
	mine := ofKind(a, m, kind)
	for o := range a.Members {
		if o == m || !endTogether(a, m, o, mine, ofKind(a, o, kind)) {
			continue
		}
		if with >= 0 {
			return -1, false
		}
		with = o
	}
	return with, with >= 0
}

// ofKind lists the calls of a kind of a member with a known clock; nil for a sample.
func ofKind(a *Aligned, m int, kind string) []int32 {
	if !a.Clock(m).Known || a.Members[m].Total != nil {
		return nil
	}
	return lists.Where(len(a.Members[m].Calls), func(call int32) bool { return a.Members[m].kind(call) == kind })
}

// endTogether reports whether calls of two members take equally long and end together.
func endTogether(a *Aligned, m, o int, mine, theirs []int32) bool {
	if len(mine) < leastWaits || len(mine) != len(theirs) {
		return false
	}
	var all, others int64
	n := 0
	for i := range mine {
		start, end := a.Start(m, mine[i]), a.End(m, mine[i])
		from, to := a.Start(o, theirs[i]), a.End(o, theirs[i])
		all, others = all+end-start, others+to-from
		if float64(abs(to-end)) <= equally*float64(max(end-start, to-from)) {
			n++
		}
	}
	return float64(abs(all-others)) <= equally*float64(max(all, others)) && float64(n) >= mostly*float64(len(mine))
}
