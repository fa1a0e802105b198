package diffdoc

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
)

// Bounds of the tables about ranks.
const (
	termRanks = 8
	pageRanks = 256
	pageSteps = 20
)

// rankTable shows the change of a run by rank or by role: at most most rows, those that changed most.
func rankTable(c *comparison.Comparison, most int) doc.Table {
	x := c.Ranks
	if x == nil || len(x.Rows) == 0 {
		return doc.Table{}
	}
	first, how := "Rank", "rank by rank"
	if x.By == comparison.ByRole {
		first, how = "Role", "by role"
	}
	t := doc.Table{ID: "ranks", Caption: doc.Spans("Steps " + how + " (median; mean wait in a collective)"),
		Columns: doc.Cols(first, "+Role", ">+Ranks", ">Base", ">Head", ">Change", ">%", ">+Steps slower", ">Wait, base",
			">Wait, head", ">+Last, base", ">+Last, head")}
	changed := func(i int) float64 { return comparison.Value(x.Rows[i].Delta) }
	order := largestChanges(lists.Indexes[int](len(x.Rows)), most, changed)
	slices.Sort(order)
	for _, i := range order {
		r := &x.Rows[i]
		ratio, slower := "", comparison.NoValue
		if r.Delta != nil && comparison.Value(r.Base) > 0 {
			ratio = unit.Change(comparison.Value(r.Delta) / comparison.Value(r.Base))
		}
		if r.Steps > 0 {
			slower = unit.Int(r.Slower) + " of " + unit.Int(r.Steps)
		}
		t.Row(doc.Name(cmp.Or(r.ID, "(none)")), doc.Name(r.Role), arrow(unit.Int(r.BaseRanks), unit.Int(r.HeadRanks)),
			format(r.Base, report.Nanoseconds), format(r.Head, report.Nanoseconds),
			report.Of(r.Delta, delta, comparison.NoValue), ratio, slower, format(r.BaseWait, report.Nanoseconds),
			format(r.HeadWait, report.Nanoseconds), format(r.BaseLast, report.Ratio), format(r.HeadLast, report.Ratio))
	}
	if len(order) < len(x.Rows) {
		t.Caption = append(t.Caption,
			doc.Text(", the "+unit.Int(len(order))+" that changed most of "+unit.Int(len(x.Rows))))
	}
	return t
}

// rankSteps lists the steps whose slowest rank changed most.
func rankSteps(x *comparison.Ranks) doc.Table {
	list := largestChanges(x.Steps, pageSteps, func(s comparison.RankStep) float64 { return s.Delta })
	lists.Sort(list, func(a, b comparison.RankStep) int { return cmp.Compare(a.Step, b.Step) })
	t := doc.Table{ID: "rank-steps", Caption: doc.Spans("Slowest rank of the steps that changed most"),
		Columns: doc.Cols(">Step", "Slowest, base", ">Base", "Slowest, head", ">Head", ">Change")}
	for _, s := range list {
		t.Row(unit.Int(s.Step), doc.Name(s.BaseRank), unit.Format(s.Base, report.Nanoseconds), doc.Name(s.HeadRank),
			unit.Format(s.Head, report.Nanoseconds), delta(s.Delta))
	}
	return t
}

// rankBlocks is what an output shows about ranks, with at most most rows.
func rankBlocks(c *comparison.Comparison, most int) []doc.Block {
	t := rankTable(c, most)
	if len(t.Rows) == 0 {
		return nil
	}
	var list []doc.Block
	if held := c.Ranks.Held; held != nil && held.Text != "" {
		list = append(list, doc.P(doc.Strong("held up:"), " "+clip(held.Text)))
	}
	if c.Ranks.Where != "" {
		list = append(list, doc.P(doc.Strong("ranks:"), " "+clip(c.Ranks.Where)))
	}
	return append(list, t)
}
