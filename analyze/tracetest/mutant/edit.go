package mutant

import (
	"cmp"
	"errors"
	"fmt"
	"math"
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

// Resize launches the kernels of a family, "" for all but collectives, with size times the grid; they take factor times
// as long.
func Resize(on On, family string, size, factor float64) Edit {
	return Edit{
		Name: fmt.Sprintf("grid of %s × %.3g, time × %.3g", family, size, factor), names: []string{family}, on: on,
		apply: func(d *draft) error {
			d.each(on, func(e *event) bool { return d.inFamily(e, family) }, func(i int) {
				e := &d.events[i]
				blocks, _ := d.tables[e.table].num(e.row, "gridX")
				d.put(e, "gridX", max(1, int64(math.Round(float64(blocks)*size))))
				scaleDur(e, factor)
			})
			return nil
		},
	}
}

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

// OtherStream moves the kernels of a family to a stream of their own, at the same times.
func OtherStream(family string) Edit {
	return Edit{Name: family + " on another stream", apply: func(d *draft) error {
		match := func(e *event) bool { return d.inFamily(e, family) }
		d.each(On{}, match, func(i int) { d.put(&d.events[i], "streamId", int64(99)) })
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
					case last >= 0 && e.unit == d.events[last].unit && d.inFamily(e, second) &&
						d.takes(on, dev, e.unit):
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

// Remove takes every kernel of a family away, with the calls that launched nothing else. With such a call goes what the
// host usually takes before a launch.
func Remove(on On, family string) Edit {
	return Edit{Name: "without " + family, names: []string{family}, on: on, apply: func(d *draft) error {
		usual := d.usualGap()
		d.each(on, func(e *event) bool { return d.inFamily(e, family) }, func(i int) {
			d.kill(i)
			if by := d.events[i].call; by >= 0 && d.events[by].dead {
				d.events[by].goes = usual
			}
		})
		return nil
	}}
}

// usualGap is the median time between two launches of a thread, ns.
func (d *draft) usualGap() int64 {
	var gaps []float64
	last := map[int]*event{}
	for _, i := range d.callsByStart() {
		e := &d.events[i]
		before := last[e.lane]
		if before != nil && strings.Contains(e.name, "Launch") && strings.Contains(before.name, "Launch") {
			gaps = append(gaps, float64(e.start-before.end))
		}
		last[e.lane] = e
	}
	if len(gaps) == 0 {
		return 1
	}
	return max(1, int64(median(gaps)))
}

// callsByStart are the calls in order.
func (d *draft) callsByStart() (list []int) {
	for i := range d.events {
		if d.events[i].kind == call {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(d.events[a].start, d.events[b].start) })
	return list
}

// NoGap takes ns, at most, of the time on the host before the first launch of a unit away.
func NoGap(on On, ns float64) Edit {
	return Edit{Name: "no gap before a unit", names: []string{"host"}, on: on, apply: func(d *draft) error {
		for _, u := range d.units {
			if e := &d.events[u.first]; e.call >= 0 && d.takes(on, u.lane, e.unit) {
				d.events[e.call].goes = max(1, int64(ns))
				d.changed++
			}
		}
		return nil
	}}
}

// FreeHost is a host on which neither calls nor what is between them take time; calls still wait for the GPU.
func FreeHost() Edit {
	return Edit{Name: "free host", names: []string{"host"}, apply: func(d *draft) error {
		d.each(On{}, func(e *event) bool { return e.kind == call }, func(i int) {
			e := &d.events[i]
			e.free, e.dur, e.goes = true, 0, math.MaxInt64
		})
		return nil
	}}
}

// NoWait makes calls whose name contains a text wait for the GPU no longer.
func NoWait(text string) Edit {
	return Edit{Name: "no wait in " + text, names: []string{text}, apply: func(d *draft) error {
		d.each(On{}, func(e *event) bool { return e.kind == call && strings.Contains(e.name, text) && d.blocks(e) },
			func(i int) { d.events[i].loose = true })
		return nil
	}}
}

// Threads writes the calls of each process as of one thread, but those of threads that neither launch nor wait, which
// have a pace of their own; or, where text is not empty, only those whose names contain it as of another thread.
// Nothing moves in time.
func Threads(text string) Edit {
	return Edit{Name: "threads by " + text, apply: func(d *draft) error {
		first, works := map[int]int64{}, map[int]bool{}
		for _, i := range d.callsByStart() {
			e := &d.events[i]
			if strings.Contains(e.name, "Launch") || d.blocks(e) {
				works[e.lane] = true
				if _, ok := first[e.proc]; !ok {
					first[e.proc] = d.lanes[e.lane].id
				}
			}
		}
		for i := range d.events {
			e := &d.events[i]
			switch {
			case e.kind != call || !works[e.lane]:
				continue
			case text == "":
				d.put(e, "globalTid", first[e.proc])
			case strings.Contains(e.name, text):
				d.put(e, "globalTid", d.lanes[e.lane].id^1<<23)
			default:
				continue
			}
			d.changed++
		}
		return nil
	}}
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
