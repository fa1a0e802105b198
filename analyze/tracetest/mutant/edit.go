package mutant

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// inFamily reports whether an event is a kernel with this short name; "" stands for all but collectives.
func (d *draft) inFamily(e *event, family string) bool {
	if !d.isKernel(e) || e.dead {
		return false
	}
	if family == "" {
		return !isCollective(e.name)
	}
	return Short(e.name) == family
}

func isCollective(name string) bool { return strings.Contains(strings.ToLower(name), "nccl") }

// each calls fn for the events that an edit changes.
func (d *draft) each(on On, match func(e *event) bool, fn func(i int)) {
	for i := range d.events {
		if e := &d.events[i]; !e.dead && match(e) && d.takes(on, d.deviceOf(e), e.unit) {
			fn(i)
			d.changed++
		}
	}
}

// ScaleKernels makes the kernels of a family factor times as long; the empty family is every kernel but
// collectives, as another clock would have it.
func ScaleKernels(on On, family string, factor float64) Edit {
	e := Edit{Name: fmt.Sprintf("kernel %s × %.3g", family, factor), names: []string{family}, on: on}
	if family == "" {
		e.Name, e.names = fmt.Sprintf("all kernels × %.3g", factor), []string{"all kernels", "clock"}
	}
	e.apply = func(d *draft) error {
		d.each(on, func(e *event) bool { return d.inFamily(e, family) }, func(i int) { scaleDur(&d.events[i], factor) })
		return nil
	}
	return e
}

func scaleDur(e *event, factor float64) { e.dur = max(1, int64(float64(e.dur)*factor+0.5)) }

// drifting makes every kernel but collectives factor(position) times as long, the position in the capture being 0
// to 1.
func drifting(name string, factor func(x float64) float64) Edit {
	return Edit{Name: name, apply: func(d *draft) error {
		lo, hi := int64(0), int64(1)
		for i := range d.events {
			if e := &d.events[i]; e.kind == work {
				if d.changed == 0 || e.start < lo {
					lo = e.start
				}
				hi = max(hi, e.end)
				d.changed = 1
			}
		}
		d.each(On{}, func(e *event) bool { return d.inFamily(e, "") }, func(i int) {
			e := &d.events[i]
			scaleDur(e, factor(float64(e.start-lo)/float64(hi-lo)))
		})
		return nil
	}}
}

// Drift makes every kernel longer, from nothing at the start of the capture to factor times as long at its end.
func Drift(factor float64) Edit {
	e := drifting(fmt.Sprintf("drift to × %.3g", factor), func(x float64) float64 { return 1 + x*(factor-1) })
	e.names = []string{"all kernels", "clock"}
	return e
}

// Launches makes launch calls factor times as long.
func Launches(on On, factor float64) Edit {
	return Edit{
		Name:  fmt.Sprintf("launch calls × %.3g", factor),
		names: []string{"aunch", "host"},
		on:    on,
		apply: func(d *draft) error {
			launches := func(e *event) bool { return e.kind == call && strings.Contains(e.name, "Launch") }
			d.each(on, launches, func(i int) { scaleDur(&d.events[i], factor) })
			return nil
		},
	}
}

// Stall lets ns pass on the host before the first launch of a unit.
func Stall(on On, ns float64) Edit {
	return Edit{
		Name:  fmt.Sprintf("host stalls %.3g µs", ns/1000),
		names: []string{"host", "stall", "units took", "steps took"},
		on:    on,
		apply: func(d *draft) error {
			for _, u := range d.units {
				if e := &d.events[u.first]; e.call >= 0 && d.takes(on, u.lane, e.unit) {
					d.events[e.call].stall += int64(ns)
					d.changed++
				}
			}
			return nil
		},
	}
}

// Collectives makes NCCL's kernels on one device, by ordinal, factor times as long.
func Collectives(device int64, factor float64) Edit {
	return Edit{
		Name:  fmt.Sprintf("NCCL on device %d × %.3g", device, factor),
		names: []string{"nccl", "communication", "NCCL"},
		apply: func(d *draft) error {
			d.each(On{}, func(e *event) bool {
				return d.isKernel(e) && d.lanes[e.lane].id == device && isCollective(e.name)
			}, func(i int) { scaleDur(&d.events[i], factor) })
			return nil
		},
	}
}

// Noise makes every piece of GPU work longer or shorter by a factor of its own, of standard deviation sd, and the
// host's calls by four times that.
func Noise(sd float64, seed uint64) Edit {
	return Edit{Name: fmt.Sprintf("noise %.1f %%", 100*sd), apply: func(d *draft) error {
		rng := rand.New(rand.NewPCG(seed, 0))
		d.session += int64(seed) + 1
		d.each(On{}, func(e *event) bool { return e.kind != other }, func(i int) {
			e := &d.events[i]
			by := sd
			if e.kind == call {
				by = min(4*sd, 0.2)
			}
			scaleDur(e, max(0.5, 1+by*rng.NormFloat64()))
		})
		return nil
	}}
}

// Rename gives every kernel of a family another name.
func Rename(family, to string) Edit {
	return Edit{Name: "renamed " + family, names: []string{family, Short(to)}, apply: func(d *draft) error {
		d.each(On{}, func(e *event) bool { return d.inFamily(e, family) }, func(i int) { d.named(&d.events[i], to) })
		return nil
	}}
}

func (d *draft) named(e *event, name string) {
	e.name = name
	d.put(e, "demangledName", textRef(name))
	d.put(e, "shortName", textRef(Short(name)))
	d.put(e, "mangledName", textRef(name))
}

// put sets a column of an event's row, where the table has it.
func (d *draft) put(e *event, column string, v any) {
	if !d.tables[e.table].has(column) {
		return
	}
	set := make(map[string]any, len(e.set)+1)
	for k, v := range e.set {
		set[k] = v
	}
	set[column] = v
	e.set = set
}

// Fuse makes one kernel of every kernel of the first family that one of the second follows in its unit: as long as
// both, times factor.
func Fuse(on On, first, second string, factor float64) Edit {
	name := "fused_" + first
	return Edit{
		Name:  fmt.Sprintf("%s and %s fused × %.3g", first, second, factor),
		names: []string{name, first, second},
		on:    on,
		apply: func(d *draft) error {
			for _, dev := range d.devices() {
				last := -1
				for _, w := range d.onGPU[dev] {
					e := &d.events[w]
					switch {
					case !d.isKernel(e):
					case d.inFamily(e, first):
						last = w
					case last >= 0 && e.unit == d.events[last].unit && d.inFamily(e, second) && d.takes(on, dev, e.unit):
						one := &d.events[last]
						one.dur += e.dur
						scaleDur(one, factor)
						d.named(one, name)
						d.kill(w)
						d.changed++
						last = -1
					default:
						last = -1
					}
				}
			}
			return nil
		},
	}
}

// kill removes work and the call that launched nothing else.
func (d *draft) kill(w int) {
	e := &d.events[w]
	e.dead = true
	if e.call >= 0 && !strings.Contains(d.events[e.call].name, "Graph") {
		d.events[e.call].dead = true
	}
}

// Halve takes the second half of its work from a unit.
func Halve(on On) Edit {
	return Edit{
		Name:  "second half lost",
		names: []string{"kind", "half"},
		on:    on,
		apply: func(d *draft) error {
			for _, dev := range d.devices() {
				parts := map[int][]int{}
				for _, w := range d.onGPU[dev] {
					if e := &d.events[w]; e.unit >= 0 && e.unit < len(d.kinds[dev])-1 && d.takes(on, dev, e.unit) {
						parts[e.unit] = append(parts[e.unit], w)
					}
				}
				for _, list := range parts {
					for _, w := range list[(len(list)+1)/2:] {
						d.kill(w)
						d.changed++
					}
				}
			}
			return nil
		},
	}
}

// Drop removes whole units.
func Drop(on On) Edit {
	return Edit{Name: "units dropped", on: on, apply: func(d *draft) error {
		complete := func(e *event) bool { return e.unit >= 0 && e.unit < len(d.kinds[d.deviceOf(e)])-1 }
		d.each(on, complete, func(i int) { d.events[i].dead = true })
		return nil
	}}
}

// Lose takes one kernel in so many from the capture, as a full buffer does: their time passed, their rows are missing.
// said adds the row in which nsys tells so.
func Lose(oneIn int, seed uint64, said bool) Edit {
	return Edit{Name: fmt.Sprintf("one kernel in %d lost", oneIn), apply: func(d *draft) error {
		rng := rand.New(rand.NewPCG(seed, 0))
		d.each(On{}, d.isKernel, func(i int) { d.events[i].lost = rng.IntN(oneIn) == 0 })
		if at := d.table("DIAGNOSTIC_EVENT"); said {
			if at < 0 {
				return errors.New("the schema has no messages of the profiler")
			}
			d.more["DIAGNOSTIC_EVENT"] = append(d.more["DIAGNOSTIC_EVENT"], map[string]any{
				"timestamp": int64(0), "timestampType": int64(1), "source": int64(2), "severity": int64(2),
				"text": "Not all CUDA events might have been collected.",
			})
		}
		return nil
	}}
}

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

// callName is the name of the call that launched w.
func (d *draft) callName(w int) string {
	if c := d.events[w].call; c >= 0 && !strings.Contains(d.events[c].name, "Graph") {
		return d.events[c].name
	}
	return "cudaLaunchKernel_v7000"
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

// Reexport writes the capture as another export would: rows in another order, texts under other ids, another origin of
// time.
func Reexport(seed uint64) Edit {
	return Edit{Name: "re-export", apply: func(d *draft) error {
		d.shuffle, d.renumber, d.shift, d.changed = seed, true, 987_654_321, 1
		return nil
	}}
}

// Shuffle writes the rows of each table in another order.
func Shuffle(seed uint64) Edit {
	return Edit{Name: "shuffled rows", apply: func(d *draft) error { d.shuffle, d.changed = seed, 1; return nil }}
}

// Repeat runs units once more, each after itself, as a longer recording or another mix has it.
func Repeat(on On) Edit {
	return Edit{Name: "units repeated", on: on, apply: func(d *draft) error {
		for proc := range d.procs {
			d.repeat(on, proc)
		}
		d.index()
		return nil
	}}
}

// Smaller runs each unit of a kind twice, and calls both by another name: the batch was halved, for as long a step.
func Smaller(kind, to string) Edit {
	on := On{Kind: kind}
	e := Repeat(on)
	repeat := e.apply
	e.Name, e.names = "batch halved", []string{to, kind, "batch"}
	e.apply = func(d *draft) error {
		if err := repeat(d); err != nil {
			return err
		}
		for i := range d.events {
			if e := &d.events[i]; e.kind == other && e.name == kind && d.tables[e.table].name == nvtxTable {
				e.name = to
				column := "text"
				if d.tables[e.table].cell(e.row, "text") == nil {
					column = "textId"
				}
				d.put(e, column, textRef(to))
				d.changed++
			}
		}
		d.steps[kind] = 2
		return nil
	}
	return e
}

// repeat doubles units of one process: their events come again a unit's length later, and all later ones move.
func (d *draft) repeat(on On, proc int) {
	hosts := d.hosts(proc)
	dev := -1
	starts := map[int][]int64{}
	for _, u := range d.units {
		if d.lanes[u.lane].proc == proc {
			starts[u.lane] = append(starts[u.lane], d.events[u.first].start)
			if dev < 0 {
				dev = u.lane
			}
		}
	}
	if dev < 0 || len(hosts) == 0 {
		return
	}
	length := make([]int64, len(hosts)) // of what is inserted after each unit
	moved := make([]int64, len(hosts)+1)
	for u := range hosts {
		if u+1 < len(hosts) && d.takes(on, dev, u) {
			length[u] = hosts[u+1] - hosts[u]
			for _, s := range starts {
				if u+1 < len(s) {
					length[u] = max(length[u], s[u+1]-s[u])
				}
			}
		}
		moved[u+1] = moved[u] + length[u]
	}
	unitAt := func(t int64) int {
		at, found := slices.BinarySearch(hosts, t)
		if !found {
			at--
		}
		return at
	}
	clones := map[int]int{} // of events
	corrs := map[int64]int64{}
	n := len(d.events)
	for i := range n {
		e := &d.events[i]
		if e.proc != proc {
			continue
		}
		at, end := e.unit, e.unit
		if e.kind != work {
			at, end = unitAt(e.start), unitAt(e.end)
		}
		at, end = min(at, len(hosts)-1), min(end, len(hosts)-1)
		was := *e
		if at >= 0 {
			e.start += moved[at]
		}
		if end >= 0 {
			e.end += moved[end]
		}
		e.dur += e.end - e.start - (was.end - was.start)
		if at < 0 || length[at] == 0 || end != at {
			continue
		}
		if _, ok := corrs[e.corr]; !ok {
			d.corr++
			corrs[e.corr] = d.corr
		}
		x := *e
		x.start, x.end = x.start+length[at], x.end+length[at]
		if x.corr != 0 {
			x.corr = corrs[e.corr]
			d.put(&x, "correlationId", x.corr)
		}
		clones[i] = len(d.events)
		d.events = append(d.events, x)
		d.changed++
	}
	for i := n; i < len(d.events); i++ {
		e := &d.events[i]
		if e.call >= 0 {
			j, ok := clones[e.call]
			if !ok || d.events[j].start > e.start {
				j = -1
			}
			e.call = j
		}
	}
	var units []unit
	for _, u := range d.units {
		units = append(units, u)
		if j, ok := clones[u.first]; ok && d.lanes[u.lane].proc == proc {
			units = append(units, unit{u.lane, u.kind, j, 0})
		}
	}
	d.units = units
}

// Both makes two edits one.
func Both(a, b Edit) Edit {
	return Edit{
		Name:  a.Name + ", " + b.Name,
		names: append(slices.Clone(a.names), b.names...),
		on:    a.on,
		apply: func(d *draft) error {
			return errors.Join(a.apply(d), b.apply(d))
		},
	}
}
