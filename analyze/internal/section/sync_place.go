package section

import (
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

// rangeCell is the cell of a range name that may be missing.
func rangeCell(name string) report.Cell {
	if name == "" {
		return report.S("(no range)")
	}
	return report.S(name)
}

// phaseCell is the cell of a phase that may be missing.
func phaseCell(name string) report.Cell {
	if name == "" {
		return report.Null
	}
	return report.S(name)
}
