package diff

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// rankOf holds the numbers of one rank in a merged report.
type rankOf struct {
	label, role string
	step        *float64 // median time of a step, ns
	wait        float64  // in collectives, ns
	calls, last float64  // number of collectives, and of those in which it came last
	steps       []rankStep
}

type rankStep struct{ number, ns int64 }

// ranksIn returns the ranks of a merged report; none for any other report.
func ranksIn(c *side.Capture) []rankOf {
	t := c.Table("ranks", "ranks")
	steps := stepsOfRanks(c)
	var list []rankOf
	for i := range t.Len() {
		r := rankOf{label: t.Str(i, "rank"), role: t.Str(i, "role")}
		if v, ok := t.Num(i, "step_p50"); ok {
			r.step = &v
		}
		r.wait, _ = t.Num(i, "wait")
		r.calls, _ = t.Num(i, "collectives")
		r.last, _ = t.Num(i, "last")
		if d, ok := t.Cell(i, "device_id").Int(); ok {
			r.steps = steps[user{d, t.Whole(i, "pid")}]
		}
		list = append(list, r)
	}
	return list
}

type user struct{ device, process int64 }

// stepsOfRanks returns the kept units of each process on a device, of the kind that takes most of its time.
func stepsOfRanks(c *side.Capture) map[user][]rankStep {
	points := side.Points(&c.Report.Unit)
	type kind struct {
		user
		group int64
	}
	times, best := map[kind]int64{}, map[user]int64{}
	for i := range points {
		p := &points[i]
		if p.State != 0 || p.Group < 0 {
			continue
		}
		k := kind{user{p.Device, p.Process}, p.Group}
		times[k] += p.Duration
		if old, ok := best[k.user]; !ok || times[k] > times[kind{k.user, old}] {
			best[k.user] = p.Group
		}
	}
	list := map[user][]rankStep{}
	for i := range points {
		p := &points[i]
		k := user{p.Device, p.Process}
		if g, ok := best[k]; ok && p.State == 0 && p.Group == g {
			list[k] = append(list[k], rankStep{p.Number, p.Duration})
		}
	}
	return list
}

// compareRanks compares merged runs rank by rank if all of them have the same ranks in the same roles, else by role;
// nil if a capture is not a merged run.
func compareRanks(base, head *side.Side) *comparison.Ranks {
	var runs [2][][]rankOf
	for i, s := range []*side.Side{base, head} {
		for _, c := range s.Captures {
			list := ranksIn(c)
			if len(list) == 0 {
				return nil
			}
			runs[i] = append(runs[i], list)
		}
	}
	out := &comparison.Ranks{By: comparison.ByRank}
	key := func(r *rankOf) string { return r.label }
	if !sameTopology(slices.Concat(runs[0], runs[1])) {
		out.By, key = comparison.ByRole, func(r *rankOf) string { return r.role }
	}
	var ids lists.Numbering[string] // in the order of the base's ranks
	var of [2][][]*rankOf           // by side and number of the id
	for at := range runs {
		for _, run := range runs[at] {
			for i := range run {
				same := lists.At(&of[at], ids.Of(key(&run[i])))
				*same = append(*same, &run[i])
			}
		}
	}
	for i, id := range ids.Keys {
		b, h := lists.Nth(of[0], i, nil), lists.Nth(of[1], i, nil)
		out.Rows = append(out.Rows, rankRow(id, out.By, b, h, len(runs[0]), len(runs[1])))
	}
	if out.By == comparison.ByRank && len(runs[0]) == 1 && len(runs[1]) == 1 {
		stepByStep(out, runs[0][0], runs[1][0])
	} else {
		out.Rows = out.Rows[:min(len(out.Rows), comparison.MaxRankRows)]
	}
	out.Where = whereRanks(out)
	out.Held = heldUp(base, head, out)
	return out
}

// grownShare is the smallest increase of the share of time that ranks wait which is reported.
const grownShare = 0.01

// heldUp compares how long ranks wait for others, and which rank causes it. If the wait grew, it names the rank that
// waits longer and the rank that causes it; nil if the waits of a side are unknown.
func heldUp(base, head *side.Side, x *comparison.Ranks) *comparison.HeldUp {
	known := true
	share := func(s *side.Side, metric string) float64 {
		mean, ok := side.MeanOf(s.Captures, func(c *side.Capture) (float64, bool) { return c.Value(metric, nil) })
		known = known && ok
		return mean
	}
	const all, first = "ranks.held_up_ratio", "ranks.first_ratio"
	h := &comparison.HeldUp{Base: share(base, all), Head: share(head, all), BaseFirst: share(base, first), HeadFirst: share(head, first)}
	if !known {
		return nil
	}
	var waits string
	h.BaseRank, _, _ = firstOf(base)
	h.HeadRank, waits, h.Cause = firstOf(head)
	if h.Head-h.Base < grownShare || h.HeadRank == "" {
		return h
	}
	h.Slower = waits
	if x.By == comparison.ByRank {
		more := -1.0
		for i := range x.Rows {
			r := &x.Rows[i]
			if d := comparison.Value(r.HeadWait) - comparison.Value(r.BaseWait); r.HeadWait != nil && r.BaseWait != nil && d > more && r.ID != h.HeadRank {
				more, h.Slower = d, r.ID
			}
		}
	}
	h.Text = fmt.Sprintf("ranks wait for others in %s of their time, %s on the base: rank %s got slower, and the cause sits on rank %s",
		unit.Percent(h.Head), unit.Percent(h.Base), h.Slower, h.HeadRank)
	if h.Cause != "" {
		h.Text += " (" + h.Cause + ")"
	}
	return h
}

// firstOf returns, for the first capture of a side, the rank that others wait for longest, who waits, and why.
func firstOf(s *side.Side) (rank, waits, because string) {
	if t := s.Captures[0].Table("ranks", "rank_chains"); t.Len() > 0 {
		return t.Str(0, "rank"), t.Str(0, "waits"), t.Str(0, "because")
	}
	return "", "", ""
}

// sameTopology reports whether all runs have the same ranks in the same roles, each rank once.
func sameTopology(runs [][]rankOf) bool {
	first := map[string]string{} // role by rank
	for i := range runs[0] {
		first[runs[0][i].label] = runs[0][i].role
	}
	return !slices.ContainsFunc(runs, func(run []rankOf) bool {
		same := lists.Set(run, func(r rankOf) string { return r.label })
		return len(run) != len(first) || len(same) != len(first) ||
			slices.ContainsFunc(run, func(r rankOf) bool {
				role, ok := first[r.label]
				return !ok || role != r.role
			})
	})
}

func rankRow(id, by string, base, head []*rankOf, baseRuns, headRuns int) comparison.RankRow {
	row := comparison.RankRow{ID: id, BaseRanks: int64(len(base) / baseRuns), HeadRanks: int64(len(head) / headRuns)}
	if by == comparison.ByRank {
		row.Role = base[0].role
	}
	row.Base, row.BaseWait, row.BaseLast = together(base)
	row.Head, row.HeadWait, row.HeadLast = together(head)
	if row.Base != nil && row.Head != nil {
		row.Delta = new(comparison.Value(row.Head) - comparison.Value(row.Base))
	}
	return row
}

// together returns the numbers of several ranks: the mean of the steps, and of collectives.
func together(list []*rankOf) (step, wait, last *float64) {
	var sum, waits, lasts, calls float64
	n := 0
	for _, r := range list {
		if r.step != nil {
			sum += *r.step
			n++
		}
		waits, lasts, calls = waits+r.wait, lasts+r.last, calls+r.calls
	}
	if n > 0 && n == len(list) {
		sum /= float64(n)
		step = &sum
	}
	if calls > 0 {
		waits, lasts = waits/calls, lasts/calls
		wait, last = &waits, &lasts
	}
	return step, wait, last
}

// stepByStep compares the steps of each rank, in order, if both sides have equally many, and the slowest rank of each
// step.
func stepByStep(out *comparison.Ranks, base, head []rankOf) {
	place := map[string]int{}
	for i := range head {
		place[head[i].label] = i
	}
	n := len(base[0].steps)
	all := n > 0
	for i := range base {
		b, h := base[i].steps, head[place[base[i].label]].steps
		all = all && len(b) == n && len(h) == n
		if len(b) != len(h) {
			continue
		}
		row := &out.Rows[i]
		for k := range b {
			row.Steps++
			if h[k].ns > b[k].ns {
				row.Slower++
			}
		}
	}
	if !all {
		return
	}
	for k := range min(n, comparison.MaxRankSteps) {
		b, h := slowest(base, k), slowest(head, k)
		out.Steps = append(out.Steps, comparison.RankStep{Step: b.steps[k].number, BaseRank: b.label,
			Base: float64(b.steps[k].ns), HeadRank: h.label, Head: float64(h.steps[k].ns),
			Delta: float64(h.steps[k].ns - b.steps[k].ns)})
	}
}

func slowest(list []rankOf, k int) rankOf {
	return slices.MaxFunc(list, func(a, b rankOf) int { return cmp.Compare(a.steps[k].ns, b.steps[k].ns) })
}

// apartShare, of the base's step, is the least difference of a rank's change from the median one to be reported.
const apartShare = 0.01

// whereRanks names the rank or role whose steps changed most differently from the median one.
func whereRanks(x *comparison.Ranks) string {
	rows := lists.Filter(x.Rows, func(r comparison.RankRow) bool { return r.Delta != nil })
	if len(rows) < 2 {
		return ""
	}
	deltas := lists.Map(rows, func(r comparison.RankRow) float64 { return comparison.Value(r.Delta) })
	slices.Sort(deltas)
	middle := deltas[(len(deltas)-1)/2]
	apart := func(r comparison.RankRow) float64 { return math.Abs(comparison.Value(r.Delta) - middle) }
	worst := slices.MaxFunc(rows, func(a, b comparison.RankRow) int { return cmp.Compare(apart(a), apart(b)) })
	if apart(worst) < apartShare*comparison.Value(worst.Base) {
		return ""
	}
	return fmt.Sprintf("%s %s: %s a step; the middle one changes by %s", x.By, cmp.Or(worst.ID, "(none)"),
		unit.Delta(comparison.Value(worst.Delta), report.Nanoseconds), unit.Delta(middle, report.Nanoseconds))
}
