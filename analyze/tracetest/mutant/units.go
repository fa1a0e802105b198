package mutant

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// unit is one step on one device.
type unit struct {
	lane  int
	kind  string
	first int   // index of its first work
	host  int64 // ns, when its marker began; 0: it has none
}

// sortWork lists the work by device, in order of start.
func (c *Capture) sortWork() {
	c.onGPU = map[int][]int{}
	for i := range c.events {
		if e := &c.events[i]; e.kind == work {
			c.onGPU[e.lane] = append(c.onGPU[e.lane], i)
		}
	}
	for _, l := range c.onGPU {
		slices.SortStableFunc(l, func(a, b int) int { return cmp.Compare(c.events[a].start, c.events[b].start) })
	}
}

// devices are the lanes of devices, in order.
func (c *Capture) devices() []int { return slices.Sorted(maps.Keys(c.onGPU)) }

// Mark takes the NVTX ranges whose text matches for units: one starts with the first work launched inside a range, and
// lasts until the next one. Units of one text are of one kind.
func (c *Capture) Mark(pattern string) error {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	c.units = nil
	ranges := map[int][]int{} // by thread, in order of start
	for i := range c.events {
		if e := &c.events[i]; e.kind == other && c.tables[e.table].name == nvtxTable && re.MatchString(e.name) {
			ranges[e.lane] = append(ranges[e.lane], i)
		}
	}
	for _, l := range ranges {
		slices.SortStableFunc(l, func(a, b int) int { return cmp.Compare(c.events[a].start, c.events[b].start) })
	}
	for _, dev := range c.devices() {
		seen := map[int]bool{}
		for _, w := range c.onGPU[dev] {
			e := &c.events[w]
			if e.call < 0 {
				continue
			}
			by := &c.events[e.call]
			l := ranges[by.lane]
			begun := func(r int, t int64) int { return cmp.Compare(c.events[r].start, t) }
			at, _ := slices.BinarySearchFunc(l, by.start+1, begun)
			if at == 0 || by.start > c.events[l[at-1]].end || seen[l[at-1]] {
				continue
			}
			seen[l[at-1]] = true
			c.units = append(c.units, unit{dev, c.events[l[at-1]].name, w, c.events[l[at-1]].start})
		}
	}
	return c.settle()
}

// Cut takes kernels whose short names are, one after the other, these for the start of a unit. Kinds are told by the
// number of kernels.
func (c *Capture) Cut(names ...string) error {
	c.units = nil
	for _, dev := range c.devices() {
		var list []int
		for _, w := range c.onGPU[dev] {
			if c.isKernel(&c.events[w]) {
				list = append(list, w)
			}
		}
		for i := 0; i+len(names) <= len(list); i++ {
			same := true
			for j, n := range names {
				same = same && Short(c.events[list[i+j]].name) == n
			}
			if same {
				c.units = append(c.units, unit{dev, "", list[i], 0})
			}
		}
	}
	return c.settle()
}

// FindUnits looks for the run of one to four kernel names that recurs most regularly on the device with most
// kernels, and takes it for the start of a unit everywhere: the one whose equal distances cover most of the
// kernels, of several the one that occurs first. It is an error if they cover less than half.
func (c *Capture) FindUnits() error {
	var longest []int
	for _, dev := range c.devices() {
		var list []int
		for _, w := range c.onGPU[dev] {
			if c.isKernel(&c.events[w]) && !isCollective(c.events[w].name) {
				list = append(list, w)
			}
		}
		if len(list) > len(longest) {
			longest = list
		}
	}
	var best []string
	covered := 0
	for width := 1; width <= 4; width++ {
		at := map[string][]int{}
		var order []string
		for i := 0; i+width <= len(longest); i++ {
			key := ""
			for j := range width {
				key += Short(c.events[longest[i+j]].name) + "\x00"
			}
			if at[key] == nil {
				order = append(order, key)
			}
			at[key] = append(at[key], i)
		}
		for _, key := range order {
			places := at[key]
			if len(places) < 3 {
				continue
			}
			counts := map[int]int{}
			for i := 1; i < len(places); i++ {
				counts[places[i]-places[i-1]]++
			}
			for distance, n := range counts {
				if distance*(n+1) > covered && 10*n >= 8*(len(places)-1) {
					covered, best = distance*(n+1), strings.Split(strings.TrimSuffix(key, "\x00"), "\x00")
				}
			}
		}
	}
	if best == nil || 2*covered < len(longest) {
		return errors.New("no run of kernels recurs")
	}
	return c.Cut(best...)
}

// settle gives every event its unit, and every unit without a name its kind.
func (c *Capture) settle() error {
	if len(c.units) < 3 {
		return fmt.Errorf("%d units", len(c.units))
	}
	for i := range c.events {
		c.events[i].unit = -1
	}
	for _, dev := range c.devices() {
		var starts []int
		for i, u := range c.units {
			if u.lane == dev {
				starts = append(starts, i)
			}
		}
		at := -1
		for _, w := range c.onGPU[dev] {
			for at+1 < len(starts) && c.events[w].start >= c.events[c.units[starts[at+1]].first].start {
				at++
			}
			e := &c.events[w]
			e.unit = at
			if e.call >= 0 && (c.events[e.call].unit < 0 || at < c.events[e.call].unit) {
				c.events[e.call].unit = at
			}
		}
		c.name(c.onGPU[dev], starts)
	}
	// Calls and ranges without work are of the unit whose first call came before.
	for proc := range c.procs {
		hosts := c.hosts(proc)
		for i := range c.events {
			e := &c.events[i]
			if e.proc == proc && e.kind != work && e.unit < 0 {
				at, found := slices.BinarySearch(hosts, e.start)
				if !found {
					at--
				}
				e.unit = at
			}
		}
	}
	return nil
}

// name tells the kinds of one device's units by their number of kernels.
func (c *Capture) name(works []int, starts []int) {
	counts := make([]int, len(starts))
	for _, w := range works {
		if e := &c.events[w]; c.isKernel(e) && e.unit >= 0 {
			counts[e.unit]++
		}
	}
	for i, u := range starts {
		if c.units[u].kind == "" && i+1 < len(starts) {
			c.units[u].kind = fmt.Sprintf("%d kernels", counts[i])
		}
	}
}

// hosts are the times at which a process began its units, ns, ascending: the starts of their markers, or a µs
// before their first launch, so that a range around the launches begins with the unit.
func (c *Capture) hosts(proc int) []int64 {
	var list []int64
	dev := -1
	for _, u := range c.units {
		if c.lanes[u.lane].proc != proc || dev >= 0 && dev != u.lane {
			continue
		}
		dev = u.lane
		e := &c.events[u.first]
		at := e.start
		switch {
		case u.host != 0:
			at = u.host
		case e.call >= 0:
			at = c.events[e.call].start - 1_000
		}
		if n := len(list); n > 0 {
			at = max(at, list[n-1])
		}
		list = append(list, at)
	}
	return list
}

// Kind is a kind of unit: how many of them there are on the first device, and their share of the time of all.
type Kind struct {
	Name  string
	Units int
	Share float64
}

// Kinds are the kinds of unit, that with most time first.
func (c *Capture) Kinds() []Kind {
	var list []Kind
	total := 0.0
	spans := c.spans(func(e *event) int64 { return e.start })
	for _, s := range spans {
		k := lists.Entry(&list, func(k Kind) bool { return k.Name == s.kind }, Kind{Name: s.kind})
		if s.lane == spans[0].lane {
			k.Units++
		}
		k.Share += s.ns
		total += s.ns
	}
	for i := range list {
		list[i].Share /= total
	}
	slices.SortStableFunc(list, func(a, b Kind) int { return -cmp.Compare(a.Share, b.Share) })
	return list
}

// span is what a unit takes: from its start to that of the next one on its device.
type span struct {
	lane int
	kind string
	ns   float64
}

// spans are the complete units that are left, in order.
func (c *Capture) spans(when func(e *event) int64) []span {
	units := slices.DeleteFunc(slices.Clone(c.units), func(u unit) bool { return c.events[u.first].dead })
	slices.SortStableFunc(units, func(a, b unit) int {
		return cmp.Or(cmp.Compare(a.lane, b.lane), cmp.Compare(when(&c.events[a.first]), when(&c.events[b.first])))
	})
	var list []span
	for i := 0; i+1 < len(units); i++ {
		if u, next := units[i], units[i+1]; u.lane == next.lane {
			list = append(list, span{u.lane, u.kind, float64(when(&c.events[next.first]) - when(&c.events[u.first]))})
		}
	}
	return list
}

// Pair are the short names of the two different kernels that follow each other most often inside units of the capture.
func (c *Capture) Pair() (best [2]string) {
	counts := map[[2]string]int{}
	for _, dev := range c.devices() {
		last := ""
		for _, w := range c.onGPU[dev] {
			e := &c.events[w]
			if !c.isKernel(e) || isCollective(e.name) {
				last = ""
				continue
			}
			name := Short(e.name)
			if last != "" && last != name {
				pair := [2]string{last, name}
				counts[pair]++
				if counts[pair] > counts[best] {
					best = pair
				}
			}
			last = name
		}
	}
	return best
}
