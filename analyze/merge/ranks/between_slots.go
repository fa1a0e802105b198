package ranks

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// slot is the n-th call of one kind in every epoch: its root or peer is the same in all epochs.
type slot struct {
	kind string
	n    int
}

// slots returns the epochs of each slot, and the slots by kind and number.
func slots(epochs []epoch) (of map[slot][]epoch, order []slot) {
	of = map[slot][]epoch{}
	for _, e := range epochs {
		most := map[string]int{}
		for l, calls := range e {
			most[l.kind] = max(most[l.kind], len(calls))
		}
		for kind, n := range most {
			for k := range n {
				of[slot{kind, k}] = append(of[slot{kind, k}], e)
			}
		}
	}
	return of, slices.SortedFunc(maps.Keys(of), func(a, b slot) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.n, b.n))
	})
}

// members returns the members of an epoch that have a call of the slot, in order.
func (e epoch) members(s slot) []int {
	var list []int
	for l := range e {
		if l.kind == s.kind && e.call(l.member, s) >= 0 {
			list = append(list, l.member)
		}
	}
	slices.Sort(list)
	return list
}

// rootedSlot adds the waits of calls with a root, in the epochs in which its members have equally many of them.
func (x *epochs) rootedSlot(s slot, epochs []epoch) {
	whole := lists.Filter(epochs, func(e epoch) bool {
		list := e.members(s)
		return len(list) > 1 && !slices.ContainsFunc(list, func(m int) bool {
			return len(e[lane{m, s.kind}]) != len(e[lane{list[0], s.kind}])
		})
	})
	root := x.root(s, whole)
	for _, e := range whole {
		list := e.members(s)
		last := -1
		for _, m := range list {
			x.m.op[m][e.call(m, s)] = x.m.ops
			if m != root && (last < 0 || x.m.Start(m, e.call(m, s)) > x.m.Start(last, e.call(last, s))) {
				last = m
			}
		}
		x.m.ops++
		if !slices.Contains(list, root) {
			continue
		}
		if !rooted[s.kind] {
			x.m.add(root, e.call(root, s), last, e.call(last, s))
			continue
		}
		for _, m := range list {
			if m != root {
				x.m.add(m, e.call(m, s), root, e.call(root, s))
			}
		}
	}
}

// root returns the member that behaves as the root of a slot in at least 95 % of the calls; -1 if there is none. Of
// several, the root of a broadcast or scatter spends least in them, that of a reduce or gather most.
func (x *epochs) root(s slot, epochs []epoch) int {
	fits, spent, n := map[int]int{}, map[int]int64{}, map[int]int{}
	for _, e := range epochs {
		start := func(m int) int64 { return x.m.Start(m, e.call(m, s)) }
		end := func(m int) int64 { return x.m.End(m, e.call(m, s)) }
		list := e.members(s)
		// Who begins last first, or who ends first: everybody must begin before a reduce's root leaves, and a broadcast's
		// root must begin before anybody else leaves.
		lists.Sort(list, func(a, b int) int {
			if rooted[s.kind] {
				return cmp.Compare(end(a), end(b))
			}
			return cmp.Compare(start(b), start(a))
		})
		for _, q := range list {
			n[q]++
			spent[q] += end(q) - start(q)
			other := list[0]
			if other == q {
				other = list[1]
			}
			leaves, begins := q, other
			if rooted[s.kind] {
				leaves, begins = other, q
			}
			if end(leaves) >= start(begins)-surest*x.m.off(other, q) {
				fits[q]++
			}
		}
	}
	best := -1
	for q := range x.m.Members {
		if n[q] == 0 || float64(fits[q]) < overlapping*float64(n[q]) {
			continue
		}
		less := best >= 0 && float64(spent[q])/float64(n[q]) < float64(spent[best])/float64(n[best])
		if best < 0 || less == rooted[s.kind] { // the root of a reduce spends most
			best = q
		}
	}
	return best
}
