package steps

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stepgraph"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/stacks"
)

// stackTable numbers the stacks of ranges around calls, as report.UnitSteps.Stacks has them.
type stackTable struct {
	in    *kit.Input
	names *nameTable
	index lists.Numbering[[2]int] // the range around it, and the name
	list  []int64
}

// around is the index of the ranges around a call, or -1. If very many are nested, the outermost count.
func (t *stackTable) around(call int32) int {
	var path []int32
	t.in.Contexts.Walk(call, func(name int32) bool {
		path = append(path, name)
		return len(path) < maxStack
	})
	slices.Reverse(path)
	at := -1
	for _, name := range path[:min(len(path), stacks.MaxDepth)] {
		n := t.names.of(t.in.Trace.Ranges.Names[name].Text, "range")
		around := at
		if at = int(t.index.Of([2]int{around, n})); 2*at == len(t.list) {
			t.list = append(t.list, int64(around), int64(n))
		}
	}
	return at
}

// maxStack bounds the ranges around a call that are visited.
const maxStack = 256

// shownPath is the part of a unit below which a stretch of its path is too short to be drawn: half a pixel of a
// thousand.
const shownPath = 2000

// pathOf is the critical path of a unit, as report.UnitShown.Path has it. It is nil if there is no graph, or if no unit
// follows with whose first work the path could end.
func pathOf(in *kit.Input, u int32) []int64 {
	g := in.UnitGraph()
	if g == nil {
		return nil
	}
	next := g.UnitsOf(in.Units).Next[u]
	if next == trace.None {
		return nil
	}
	unit := &in.Units.Units[u]
	r := newPathRun(in, nil)
	var path []int64 // backwards: ns, part by turns
	g.Walk(next, unit.Start, func(s *stepgraph.Step) {
		r.split(g, s, func(part int, _ string, ns int64) { path = append(path, ns, int64(part)) })
	})
	slices.Reverse(path)
	least := unit.Time() / shownPath
	var out []int64
	for i := 0; i < len(path); i += 2 {
		if n := len(out); n > 0 && (path[i+1] < least || out[n-2] == path[i]) {
			out[n-1] += path[i+1]
			continue
		}
		out = append(out, path[i], path[i+1])
	}
	return out
}
