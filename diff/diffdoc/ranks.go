package diffdoc

import (
	"cmp"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
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
func rankTable(c *comparison.Comparison, most int) (doc.Table, bool) {
	x := c.Ranks
	if x == nil || len(x.Rows) == 0 {
		return doc.Table{}, false
	}
	first := "Rank"
	if x.By == comparison.ByRole {
		first = "Role"
	}
	t := doc.Table{ID: "ranks", Caption: doc.Spans("Steps " + byWords(x) + " (median; mean wait in a collective)"),
		Columns: doc.Cols(first, "+Role", ">+Ranks", ">Base", ">Head", ">Change", ">", ">+Steps slower", ">Wait, base",
			">Wait, head", ">+Last, base", ">+Last, head")}
	order := make([]int, len(x.Rows))
	for i := range order {
		order[i] = i
	}
	if len(order) > most {
		slices.SortStableFunc(order, func(a, b int) int {
			return cmp.Compare(math.Abs(comparison.Value(x.Rows[b].Delta)), math.Abs(comparison.Value(x.Rows[a].Delta)))
		})
		order = order[:most]
		slices.Sort(order)
	}
	for _, i := range order {
		r := &x.Rows[i]
		change, ratio := comparison.NoValue, ""
		if r.Delta != nil {
			change = unit.Delta(comparison.Value(r.Delta), report.Nanoseconds)
			if comparison.Value(r.Base) > 0 {
				ratio = unit.Change(comparison.Value(r.Delta) / comparison.Value(r.Base))
			}
		}
		name, ranks, slower := cmp.Or(r.ID, "(none)"), unit.Int(r.BaseRanks), comparison.NoValue
		if r.HeadRanks != r.BaseRanks {
			ranks += " → " + unit.Int(r.HeadRanks)
		}
		if r.Steps > 0 {
			slower = unit.Int(r.Slower) + " of " + unit.Int(r.Steps)
		}
		t.Row(doc.Name(name), doc.Name(r.Role), ranks, format(r.Base, report.Nanoseconds), format(r.Head,
			report.Nanoseconds), change, ratio, slower, format(r.BaseWait, report.Nanoseconds), format(r.HeadWait,
			report.Nanoseconds), format(r.BaseLast, report.Ratio), format(r.HeadLast, report.Ratio))
	}
	if rest := len(x.Rows) - len(order); rest > 0 {
		t.Caption = append(t.Caption, doc.Text(", the "+unit.Int(int64(len(order)))+" that changed most of "+unit.Int(int64(len(x.Rows)))))
	}
	return t, true
}

func byWords(x *comparison.Ranks) string {
	if x.By == comparison.ByRole {
		return "by role"
	}
	return "rank by rank"
}

// rankSteps lists the steps whose slowest rank changed most.
func rankSteps(c *comparison.Comparison) (doc.Table, bool) {
	if c.Ranks == nil || len(c.Ranks.Steps) == 0 {
		return doc.Table{}, false
	}
	list := slices.Clone(c.Ranks.Steps)
	slices.SortStableFunc(list, func(a, b comparison.RankStep) int { return cmp.Compare(math.Abs(b.Delta), math.Abs(a.Delta)) })
	list = list[:min(len(list), pageSteps)]
	slices.SortStableFunc(list, func(a, b comparison.RankStep) int { return cmp.Compare(a.Step, b.Step) })
	t := doc.Table{ID: "rank-steps", Caption: doc.Spans("Slowest rank of the steps that changed most"),
		Columns: doc.Cols(">Step", "Slowest, base", ">Base", "Slowest, head", ">Head", ">Change")}
	for i := range list {
		s := &list[i]
		t.Row(unit.Int(s.Step), doc.Name(s.BaseRank), unit.Format(s.Base, report.Nanoseconds), doc.Name(s.HeadRank),
			unit.Format(s.Head, report.Nanoseconds), unit.Delta(s.Delta, report.Nanoseconds))
	}
	return t, true
}

// rankLine is the one line about ranks, if there is one.
func rankLine(c *comparison.Comparison) []doc.Block {
	if c.Ranks == nil {
		return nil
	}
	var blocks []doc.Block
	if c.Ranks.Held != nil && c.Ranks.Held.Text != "" {
		blocks = append(blocks, doc.P(doc.Strong("held up:"), " "+clip(c.Ranks.Held.Text)))
	}
	if c.Ranks.Where != "" {
		blocks = append(blocks, doc.P(doc.Strong("ranks:"), " "+clip(c.Ranks.Where)))
	}
	return blocks
}

// rankBlocks is what a page shows about ranks, with at most most rows.
func rankBlocks(c *comparison.Comparison, most int) []doc.Block {
	t, ok := rankTable(c, most)
	if !ok {
		return nil
	}
	list := append(rankLine(c), t)
	if s, ok := rankSteps(c); ok {
		list = append(list, s)
	}
	return list
}
