package mutant

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// add appends an event.
func (d *draft) add(e event) int {
	e.fresh, e.dead, e.lost = true, false, false
	d.events = append(d.events, e)
	d.changed++
	return len(d.events) - 1
}

// middle are the kernels in the middle of the units, one a unit and device.
func (d *draft) middle(on On) []int {
	var list []int
	for _, dev := range d.devices() {
		parts := make([][]int, len(d.kinds[dev]))
		for _, w := range d.onGPU[dev] {
			if e := &d.events[w]; d.isKernel(e) && !e.dead && e.unit >= 0 && d.takes(on, dev, e.unit) {
				parts[e.unit] = append(parts[e.unit], w)
			}
		}
		for _, p := range parts {
			if len(p) > 0 {
				list = append(list, d.afterGraph(p, len(p)/2))
			}
		}
	}
	return list
}

// afterGraph is the kernel at place at, or, in a CUDA graph, the last one of the graph.
func (d *draft) afterGraph(kernels []int, at int) int {
	by := d.events[kernels[at]].call
	if by < 0 || !strings.Contains(d.events[by].name, "Graph") {
		return kernels[at]
	}
	for at+1 < len(kernels) && d.events[kernels[at+1]].call == by {
		at++
	}
	return kernels[at]
}

// callAfter adds an API call after the one that launched w, or does nothing where that is unknown.
func (d *draft) callAfter(w int, name string, ns int64) int {
	if d.events[w].call < 0 {
		return -1
	}
	e := d.events[d.events[w].call]
	e.start, e.dur, e.stall, e.name, e.call = e.end, ns, 0, name, -1
	e.end = e.start
	d.corr++
	e.corr = d.corr
	d.put(&e, "nameId", textRef(name))
	d.put(&e, "correlationId", e.corr)
	return d.add(e)
}

// workAfter is work that follows w, and by is its call.
func (d *draft) workAfter(w, by int, ns int64) event {
	e := d.events[w]
	e.start = e.end
	if by >= 0 {
		e.start = max(e.start, d.events[by].start)
		e.corr = d.events[by].corr
	} else {
		d.corr++
		e.corr = d.corr
	}
	e.end, e.dur, e.call, e.set = e.start, ns, by, nil
	d.put(&e, "correlationId", e.corr)
	return e
}

// callName is the name of the call that launched w.
func (d *draft) callName(w int) string {
	if c := d.events[w].call; c >= 0 && !strings.Contains(d.events[c].name, "Graph") {
		return d.events[c].name
	}
	return "cudaLaunchKernel_v7000"
}

// Extra adds n kernels of ns each in the middle of a unit.
func Extra(on On, n int, name string, ns float64) Edit {
	return Edit{
		Name:  fmt.Sprintf("%d kernels more", n),
		names: []string{Short(name), "more launches"},
		on:    on,
		apply: func(d *draft) error {
			for _, w := range d.middle(on) {
				for range n {
					e := d.workAfter(w, d.callAfter(w, d.callName(w), 3_000), int64(ns))
					d.named(&e, name)
					if e.call >= 0 {
						d.put(&e, "graphNodeId", nil)
					}
					d.add(e)
				}
			}
			return nil
		},
	}
}

// Sync adds a blocking call of the host in the middle of a unit, which takes ns where it waits for nothing.
func Sync(on On, ns float64) Edit {
	const name = "cudaDeviceSynchronize"
	return Edit{Name: "new " + name, names: []string{name}, on: on, apply: func(d *draft) error {
		for _, w := range d.middle(on) {
			if i := d.callAfter(w, name+"_v3020", int64(ns)); i >= 0 {
				d.events[i].wait = true
			}
		}
		return nil
	}}
}

// Copy adds a copy to the device of ns in the middle of a unit, from pageable memory or from pinned.
func Copy(on On, pageable bool, ns float64) Edit {
	kind, name := int64(1), "pinned"
	if pageable {
		kind, name = 0, "pageable"
	}
	return Edit{
		Name:  "new copy, " + name,
		names: []string{"HtoD", "copies", "copy", "Memcpy"},
		on:    on,
		apply: func(d *draft) error {
			table := d.table(memcpyTable)
			if table < 0 || len(d.tables[table].rows) == 0 {
				return errors.New("no copies to make one like")
			}
			for _, w := range d.middle(on) {
				by := d.callAfter(w, "cudaMemcpyAsync_v3020", 4_000)
				if pageable && by >= 0 { // the host copies the bytes
					d.events[by].dur = int64(ns)
				}
				like := d.workAfter(w, by, int64(ns))
				from := d.tables[like.table]
				e := like
				e.table, e.row, e.set, e.name = table, 0, nil, "[copy]"
				for _, column := range []string{"deviceId", "contextId", "streamId", "globalPid", "greenContextId"} {
					d.put(&e, column, from.cell(like.row, column))
				}
				for column, v := range map[string]int64{
					"copyKind": 1, "srcKind": kind, "dstKind": 2, "bytes": int64(ns) * 20, "correlationId": e.corr,
				} {
					d.put(&e, column, v)
				}
				d.put(&e, "graphNodeId", nil)
				d.add(e)
			}
			return nil
		},
	}
}

// Again launches the first kernel of a unit once more, right after itself or in the middle of the unit: the place where
// a unit starts occurs twice.
func Again(on On, middle bool) Edit {
	return Edit{Name: "first kernel twice", names: []string{"runs 1"}, on: on, apply: func(d *draft) error {
		after := map[[2]int]int{} // by lane and unit
		for _, w := range d.middle(on) {
			after[[2]int{d.events[w].lane, d.events[w].unit}] = w
		}
		for _, u := range slices.Clone(d.units) {
			first := d.events[u.first]
			w, ok := after[[2]int{u.lane, first.unit}]
			if !ok || !d.isKernel(&first) || strings.Contains(d.callName(u.first), "Graph") {
				continue
			}
			if !middle {
				w = u.first
			}
			e := d.workAfter(w, d.callAfter(w, d.callName(w), 3_000), first.dur)
			e.name, e.table, e.row = first.name, first.table, first.row
			d.add(e)
		}
		return nil
	}}
}
