package mutant

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Truth is what an edit did to the work, from the edited rows. Ratios are head over base: 1.1 is 10 % slower.
type Truth struct {
	Edit   string
	Kind   string   // of unit that Mean and Median are of
	Mean   float64  // of the kind's mean time
	Median float64  // of its median time
	Work   float64  // of the time of all of the base's units at the head's prices, on the slowest device
	Names  []string // a text about the cause says one of these; empty: there is no cause to name
}

// Mutant is an edited copy of a capture.
type Mutant struct {
	Truth Truth
	*draft
}

// draft is a copy of a capture while it is edited.
type draft struct {
	Capture
	base     *Capture
	on       string             // kind of unit the edit is about
	kinds    map[int][]string   // kinds of units by device and ordinal
	nth      map[int][]int      // and which of its kind it is
	many     map[string]int     // units of a kind on a device
	devs     map[int]int        // first device with units, by process
	steps    map[string]float64 // how many units it takes for the work of one, by kind
	more     map[string][]map[string]any
	shift    int64
	shuffle  uint64
	session  int64 // ns by which the session began later: another recording
	renumber bool
	changed  int
	coupled  bool // collectives end when the last device has joined
}

// Edit is one change of a capture.
type Edit struct {
	Name  string
	names []string
	on    On
	apply func(d *draft) error
}

// On says which units an edit changes.
type On struct {
	Kind  string // empty: every kind
	Every int    // the last of so many units of the kind; 0 and 1: all
	Once  bool   // only the middle one of the kind
	First int    // only so many of the kind from the start; 0: all
}

// Mutate makes a mutant by edits, made in order. It is an error if an edit finds nothing to change. Without edits the
// mutant is the capture itself, as it is read.
func (c *Capture) Mutate(edits ...Edit) (*Mutant, error) {
	d := &draft{Capture: *c, base: c, more: map[string][]map[string]any{}, steps: map[string]float64{}}
	d.events, d.units = slices.Clone(c.events), slices.Clone(c.units)
	d.index()
	m := &Mutant{draft: d}
	var names []string
	for _, e := range edits {
		d.changed = 0
		if err := e.apply(d); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name, err)
		}
		if d.changed == 0 {
			return nil, fmt.Errorf("%s: nothing to change", e.Name)
		}
		names = append(names, e.Name)
		m.Truth.Names = append(m.Truth.Names, e.names...)
		d.on = cmp.Or(d.on, e.on.Kind)
	}
	d.sortWork()
	d.replay()
	if d.coupled {
		if err := d.couple(); err != nil {
			return nil, err
		}
	}
	m.Truth.Edit = strings.Join(names, ", ")
	d.measure(&m.Truth)
	return m, nil
}

// Sized finds the strength at which an edit makes Truth.Work target, to within 2 % of the change, and returns the
// edit and its truth. none is the strength that changes nothing, first one to begin with. It is an error if none
// does it.
func (c *Capture) Sized(target, none, first float64, edit func(x float64) Edit) (Edit, Truth, error) {
	lastX, lastY := none, 1.0
	x := first
	for range 12 {
		m, err := c.Mutate(edit(x))
		if err != nil {
			return Edit{}, Truth{}, err
		}
		y := m.Truth.Work
		if math.Abs(y-target) < 0.02*math.Abs(target-1) {
			return edit(x), m.Truth, nil
		}
		next := none + 2*(x-none)
		if slope := (y - lastY) / (x - lastX); math.Abs(y-1) > 1e-4 && slope*(x-none) > 0 {
			next = x + (target-y)/slope
			next = none + min(max((next-none)/(x-none), 0.1), 20)*(x-none)
		}
		lastX, lastY, x = x, y, next
	}
	return Edit{}, Truth{}, fmt.Errorf("%s: no strength makes the work %.3f times as long", edit(first).Name, target)
}

// Moved is when the work that starts on a device, by id, at a moment of the capture starts in the mutant; false where none
// does.
func (m *Mutant) Moved(device, start int64) (at int64, ok bool) {
	for _, dev := range m.devices() {
		if m.lanes[dev].id != device {
			continue
		}
		list := m.onGPU[dev]
		i, found := slices.BinarySearchFunc(list, start, func(w int, t int64) int { return cmp.Compare(m.events[w].start, t) })
		if found {
			return m.events[list[i]].at, true
		}
	}
	return 0, false
}

// index tells which units there are.
func (d *draft) index() {
	d.kinds, d.nth, d.many, d.devs = map[int][]string{}, map[int][]int{}, map[string]int{}, map[int]int{}
	for _, u := range d.units {
		key := fmt.Sprint(u.lane, u.kind)
		d.kinds[u.lane] = append(d.kinds[u.lane], u.kind)
		d.nth[u.lane] = append(d.nth[u.lane], d.many[key])
		d.many[key]++
		if _, ok := d.devs[d.lanes[u.lane].proc]; !ok {
			d.devs[d.lanes[u.lane].proc] = u.lane
		}
	}
}

// takes reports whether an edit changes the unit of this number on the device.
func (d *draft) takes(on On, lane, unit int) bool {
	if on == (On{}) {
		return true
	}
	if unit < 0 || unit >= len(d.kinds[lane]) || on.Kind != "" && d.kinds[lane][unit] != on.Kind {
		return false
	}
	n := d.nth[lane][unit]
	if on.First > 0 && n >= on.First {
		return false
	}
	if on.Once {
		return n == d.many[fmt.Sprint(lane, d.kinds[lane][unit])]/2
	}
	return on.Every <= 1 || n%on.Every == on.Every-1
}

// deviceOf is the device whose units a call counts in: the first of its process.
func (d *draft) deviceOf(e *event) int {
	if e.kind == work {
		return e.lane
	}
	if dev, ok := d.devs[e.proc]; ok {
		return dev
	}
	return -1
}

// price is the time of one kind of unit on one device.
type price struct {
	n    float64
	ns   float64
	each []float64
}

func (p *price) mean() float64 { return p.ns / p.n }

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if len(v) == 0 {
		return math.NaN()
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// prices of the kinds, by device. The units before the first that is within 1.5 times its kind's median are warm-up.
func prices(spans []span) map[int]map[string]*price {
	each := map[string][]float64{}
	for _, s := range spans {
		each[s.kind] = append(each[s.kind], s.ns)
	}
	usual := map[string]float64{}
	for k, v := range each {
		usual[k] = median(v)
	}
	list := map[int]map[string]*price{}
	for _, s := range spans {
		if list[s.lane] == nil {
			if s.ns > 1.5*usual[s.kind] {
				continue
			}
			list[s.lane] = map[string]*price{}
		}
		p := list[s.lane][s.kind]
		if p == nil {
			p = &price{}
			list[s.lane][s.kind] = p
		}
		p.n++
		p.ns += s.ns
		p.each = append(p.each, s.ns)
	}
	return list
}

// measure computes the truth.
func (d *draft) measure(t *Truth) {
	base := prices(d.base.spans(func(e *event) int64 { return e.start }))
	head := prices(d.spans(func(e *event) int64 { return e.at }))
	for name, n := range d.steps {
		for _, kinds := range head {
			if p := kinds[name]; p != nil {
				p.ns *= n
			}
		}
	}
	t.Kind = d.on
	if kinds := d.base.Kinds(); t.Kind == "" && len(kinds) > 0 {
		t.Kind = kinds[0].Name
	}
	var was, is float64 // of the slowest device
	for lane, kinds := range base {
		var b, h float64
		for name, p := range kinds {
			b += p.ns
			if q := head[lane][name]; q != nil {
				h += p.n * q.mean()
			} else {
				h += p.ns
			}
		}
		was, is = max(was, b), max(is, h)
		if p, q := kinds[t.Kind], head[lane][t.Kind]; p != nil && q != nil {
			if mean := q.mean() / p.mean(); math.Abs(mean-1) >= math.Abs(t.Mean-1) || t.Mean == 0 {
				t.Mean, t.Median = mean, median(q.each)/median(p.each)
			}
		}
	}
	t.Work = is / was
}
