package present

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// servingKinds bounds the kinds of step on the first screen: those with the most time.
const servingKinds = 3

// servingSteps lists the steps of a server by phase and batch: how long, how many tokens, and, if known, what share of
// the GPU's peaks. It returns nothing if no step has a phase and a batch.
func servingSteps(v *View) []doc.Block {
	t := v.Table("unit", "unit_groups")
	rows := lists.Where(t.Entries(), func(i int) bool {
		_, ok := t.Int(i, "batch")
		return ok && t.Str(i, "phase") != "" && t.Str(i, "phase") != "step"
	})
	if len(rows) == 0 {
		return nil
	}
	hidden := max(len(rows)-servingKinds, 0)
	rows = rows[:len(rows)-hidden]
	lists.Sort(rows, func(a, b int) int {
		return cmp.Or(cmp.Compare(t.Str(a, "phase"), t.Str(b, "phase")),
			cmp.Compare(t.Whole(a, "batch"), t.Whole(b, "batch")))
	})
	out := doc.Table{ID: "serving", Columns: doc.Cols("Step", ">Batch", ">Steps", ">p50", ">p90", ">Prompt tokens",
		">Tokens/s/GPU", ">Of bandwidth", ">Of peak FLOPs")}
	out.Rows = lists.Map(rows, func(i int) []doc.Cell { return servingRow(v, t, i) })
	for c := len(out.Columns) - 1; c >= 5; c-- { // columns that are unknown for every kind
		if !slices.ContainsFunc(out.Rows, func(r []doc.Cell) bool { return r[c][0].Text != Unknown }) {
			out.Columns = slices.Delete(out.Columns, c, c+1)
			for i := range out.Rows {
				out.Rows[i] = slices.Delete(out.Rows[i], c, c+1)
			}
		}
	}
	if hidden > 0 {
		out.Last("and " + unit.Int(hidden) + " more")
	}
	return []doc.Block{out, doc.P(serverState(v))}
}

// servingRow returns the row of one kind of step.
func servingRow(v *View, t *report.Table, i int) []doc.Cell {
	phase := t.Str(i, "phase")
	batch, _ := t.Int(i, "batch")
	number := func(column, u string) string {
		if x, ok := t.Num(i, column); ok {
			return unit.Format(x, u)
		}
		return Unknown
	}
	kind := []string{"phase", phase, "batch", strconv.FormatInt(batch, 10)}
	share := func(id string) string { return cmp.Or(v.value(id, kind...), Unknown) }
	one := kind
	if tokens, ok := t.Int(i, "tokens"); ok {
		one = append(slices.Clone(kind), "tokens", strconv.FormatInt(tokens, 10))
	}
	return doc.Row(v.names.word(phase), unit.Int(batch), cmp.Or(v.value("unit.count", one...), Unknown),
		number("p50", report.Nanoseconds), number("p90", report.Nanoseconds), number("tokens", report.Count),
		number("token_rate", report.Count), share("model.bandwidth_utilization"), share("model.flops_utilization"))
}

// serverNow lists the numbers of a server's state, in the order of the line.
var serverNow = []struct{ id, text string }{
	{"serve.kv_cache_usage", "KV cache "}, {"serve.requests_running", "requests running "}, {"serve.requests_waiting", "waiting "},
	{"serve.generation_throughput", "generated tokens "}, {"serve.prompt_throughput", "prompt tokens "},
}

// serverState returns a line of medians about the server whose files were given besides the trace; empty if none are
// known.
func serverState(v *View) string {
	var parts []string
	for _, n := range serverNow {
		m := v.Metric(n.id)
		value := ValueOf(m)
		if value != "" && m.Summary != nil {
			value = unit.Format(m.Summary.P50, m.Unit)
		}
		if value != "" {
			parts = append(parts, n.text+value)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Server, medians: " + strings.Join(parts, ", ") + "."
}
