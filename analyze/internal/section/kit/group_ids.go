package kit

import (
	"cmp"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/evidence/serverlog"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
)

// OtherGroups is the id, and the phase, of the kinds of unit that a report counts together.
const OtherGroups = "(others)"

// GroupIDs are the ids of the kinds of unit of a trace, by index: see groupIDs.
func GroupIDs(x *workunit.Result) []string {
	return groupIDs(len(x.Groups), func(i int) (string, int64, int64) {
		g := &x.Groups[i]
		return g.Phase, g.Batch, g.Tokens
	})
}

// LogGroupIDs are the ids of the kinds of iteration of a log, by index: see groupIDs. The first is the main one.
func LogGroupIDs(groups []serverlog.UnitGroup) []string {
	return groupIDs(len(groups), func(i int) (string, int64, int64) {
		g := &groups[i]
		return serverlog.TypeNames[g.Type], g.Batch, g.Tokens
	})
}

// groupIDs names n kinds of unit by phase, batch and tokens, unique in the report: decode/16, prefill/1/512,
// context/-/512 if only the tokens are known, step if nothing is. Kinds that differ otherwise are numbered, as in
// step#2.
func groupIDs(n int, kind func(i int) (phase string, batch, tokens int64)) []string {
	ids, seen := make([]string, n), map[string]bool{OtherGroups: true}
	last := map[string]int{} // the last number given, by id without number
	for i := range ids {
		id, batch, tokens := kind(i)
		id = cmp.Or(id, "step")
		switch {
		case batch >= 0:
			id += "/" + strconv.FormatInt(batch, 10)
		case tokens >= 0:
			id += "/-"
		}
		if tokens >= 0 {
			id += "/" + strconv.FormatInt(tokens, 10)
		}
		ids[i] = id
		for seen[ids[i]] {
			last[id] = max(last[id]+1, 2)
			ids[i] = id + "#" + strconv.Itoa(last[id])
		}
		seen[ids[i]] = true
	}
	return ids
}

// MaxGroupMetrics bounds the kinds of unit with metrics of their own; the groups table has more.
const MaxGroupMetrics = 24
