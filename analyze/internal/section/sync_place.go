package section

import (
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
)

// numbering gives each distinct key a small number, in order of first appearance.
type numbering[K comparable] struct {
	index map[K]int32
	keys  []K
	last  int32 // neighbouring events mostly have the same key
}

func newNumbering[K comparable]() *numbering[K] {
	return &numbering[K]{index: map[K]int32{}}
}

func (n *numbering[K]) of(k K) int32 {
	if len(n.keys) > 0 && n.keys[n.last] == k {
		return n.last
	}
	i, ok := n.index[k]
	if !ok {
		i = int32(len(n.keys))
		n.index[k] = i
		n.keys = append(n.keys, k)
	}
	n.last = i
	return i
}

// callPlace says where in the program an API call was made: the innermost NVTX range around it and the nearest phase
// outward. Each is empty where there is none.
func (in *Input) callPlace(call int32) (rng, phase string) {
	r := &in.Trace.Ranges
	found := false
	in.Stacks.Walk(call, func(i int32) bool {
		n := &r.Names[r.Name(int(i))]
		if !found {
			rng, found = n.Text, true
		}
		if p := PhaseOf(n.Tag); p >= 0 && p < len(in.Options.Phases) {
			phase = in.Options.Phases[p]
			return false
		}
		return true
	})
	return rng, phase
}

// outerRanges are how many ranges around the innermost one callPath names.
const outerRanges = 3

// callPath is callPlace and, from the inside out, the next ranges around the innermost: in PyTorch aten::copy_ says
// little, and aten::copy_ in aten::item much.
func (in *Input) callPath(call int32) (rng, within, phase string) {
	r := &in.Trace.Ranges
	rng, phase = in.callPlace(call)
	var outer []string
	first := true
	in.Stacks.Walk(call, func(i int32) bool {
		if !first {
			outer = append(outer, r.Names[r.Name(int(i))].Text)
		}
		first = false
		return len(outer) < outerRanges
	})
	return rng, strings.Join(outer, " < "), phase
}

// rangeCell is the cell of a range name that may be missing.
func rangeCell(name string) report.Cell {
	if name == "" {
		return report.S("(no range)")
	}
	return report.S(name)
}

// optionalCell is the cell of a name that may be missing.
func optionalCell(name string) report.Cell {
	if name == "" {
		return report.Null
	}
	return report.S(name)
}
