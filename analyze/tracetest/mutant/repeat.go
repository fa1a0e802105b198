package mutant

import (
	"slices"
)

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
