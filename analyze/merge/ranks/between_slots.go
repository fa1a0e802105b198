package ranks

import (
	"cmp"
	"slices"
)

// slot is the n-th call of one kind in every epoch: its root or peer is the same in all epochs.
type slot struct {
	kind string
	n    int
}

// slotted is a slot with the epochs that have it.
type slotted struct {
	slot
	epochs []epoch
}

// slots returns the slots of epochs, by kind and number.
func slots(epochs []epoch) []slotted {
	of := map[slot][]epoch{}
	for _, e := range epochs {
		most := map[string]int{}
		for _, kinds := range e {
			for kind, calls := range kinds {
				most[kind] = max(most[kind], len(calls))
			}
		}
		for kind, n := range most {
			for k := range n {
				of[slot{kind, k}] = append(of[slot{kind, k}], e)
			}
		}
	}
	var list []slotted
	for s, epochs := range of {
		list = append(list, slotted{s, epochs})
	}
	slices.SortFunc(list, func(a, b slotted) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.n, b.n)) })
	return list
}

// members returns the members of an epoch that have a call of the slot, in order.
func (e epoch) members(s slot) []int {
	var list []int
	for m := range e {
		if e.call(m, s.kind, s.n) >= 0 {
			list = append(list, m)
		}
	}
	slices.Sort(list)
	return list
}

// even reports whether the members of an epoch have equally many calls of a kind.
func (e epoch) even(kind string, members []int) bool {
	for _, m := range members {
		if len(e[m][kind]) != len(e[members[0]][kind]) {
			return false
		}
	}
	return true
}

// rootedSlot adds the waits of calls with a root.
func (x *chains) rootedSlot(s slot, epochs []epoch) {
	var whole []epoch
	for _, e := range epochs {
		if list := e.members(s); len(list) > 1 && e.even(s.kind, list) {
			whole = append(whole, e)
		}
	}
	root := x.root(s, whole)
	for _, e := range whole {
		list := e.members(s)
		last := -1
		for _, m := range list {
			x.op[m][e[m][s.kind][s.n]] = x.ops
			if m != root && (last < 0 || x.Start(m, e[m][s.kind][s.n]) > x.Start(last, e[last][s.kind][s.n])) {
				last = m
			}
		}
		x.ops++
		if root < 0 || !slices.Contains(list, root) {
			continue
		}
		if !rooted[s.kind] {
			x.add(root, e[root][s.kind][s.n], last, e[last][s.kind][s.n])
			continue
		}
		for _, m := range list {
			if m != root {
				x.add(m, e[m][s.kind][s.n], root, e[root][s.kind][s.n])
			}
		}
	}
}

// root returns the member that behaves as the root of a slot in at least 95 % of the calls; -1 if there is none. Of
// several, the root of a broadcast or scatter spends least in them, that of a reduce or gather most.
func (x *chains) root(s slot, epochs []epoch) int {
	fits, spent, n := map[int]int{}, map[int]int64{}, map[int]int{}
	for _, e := range epochs {
		list := e.members(s)
		// The two that end first, and the two that begin last: a broadcast's root must begin before anybody else leaves, and
		// everybody must begin before a reduce's root leaves.
		first, last := x.outer(list, func(m int) int64 { return -x.End(m, e[m][s.kind][s.n]) }),
			x.outer(list, func(m int) int64 { return x.Start(m, e[m][s.kind][s.n]) })
		for _, q := range list {
			c := e[q][s.kind][s.n]
			n[q]++
			spent[q] += x.End(q, c) - x.Start(q, c)
			other, before := first[0], false
			if rooted[s.kind] {
				if other == q {
					other = first[1]
				}
				before = x.End(other, e[other][s.kind][s.n]) < x.Start(q, c)-surest*x.off(other, q)
			} else {
				if other = last[0]; other == q {
					other = last[1]
				}
				before = x.End(q, c) < x.Start(other, e[other][s.kind][s.n])-surest*x.off(other, q)
			}
			if !before {
				fits[q]++
			}
		}
	}
	best := -1
	for q := range x.Members {
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
