package mutant

import (
	"errors"
	"slices"
)

// Coupled makes NCCL's kernels wait for each other: one ends as long after the last of its collective has joined as in the
// base.
func Coupled() Edit {
	return Edit{Name: "coupled", apply: func(d *draft) error { d.coupled, d.changed = true, 1; return nil }}
}

const (
	endTogether = 20_000 // ns at most between the ends of the kernels of one collective
	mostRounds  = 5_000
)

// couple replays until every collective ends when its last device lets it.
func (d *draft) couple() error {
	groups := d.collectives()
	for range mostRounds {
		changed := false
		for _, g := range groups {
			var was, is int64 // when the last one joined
			for _, w := range g {
				was, is = max(was, d.events[w].start), max(is, d.events[w].at)
			}
			for _, w := range g {
				e := &d.events[w]
				if ns := max(1, is-e.at+e.end-was); ns != e.dur {
					e.dur, changed = ns, true
				}
			}
		}
		if !changed {
			return nil
		}
		d.replay()
	}
	return errors.New("the collectives do not settle")
}

// collectives are NCCL's kernels that ran together on several devices: of one name, ending together, and running when the
// last of them began.
func (d *draft) collectives() (groups [][]int) {
	var list []int
	for _, dev := range d.devices() {
		for _, w := range d.onGPU[dev] {
			if e := &d.events[w]; d.isKernel(e) && !e.fresh && !e.dead && isCollective(e.name) {
				list = append(list, w)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return int(min(1, max(-1, d.events[a].end-d.events[b].end))) })
	used := map[int]bool{}
	for i, w := range list {
		if used[w] {
			continue
		}
		group, first := []int{w}, &d.events[w]
		for _, o := range list[i+1:] {
			e := &d.events[o]
			if e.end-first.end > endTogether {
				break
			}
			other := !slices.ContainsFunc(group, func(g int) bool { return d.events[g].lane == e.lane })
			if !used[o] && other && e.name == first.name && e.start < first.end {
				group = append(group, o)
			}
		}
		if len(group) > 1 {
			for _, o := range group {
				used[o] = true
			}
			groups = append(groups, group)
		}
	}
	return groups
}
