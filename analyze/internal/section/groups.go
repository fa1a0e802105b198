package section

import (
	"cmp"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
)

// groups gathers numbers of events, durations mostly, by a small integer key, in two passes and one allocation.
type groups struct {
	offset []int32 // by key, into all; one more than keys
	all    stat.Sample
	narrow []uint32 // what all holds, where that was made by spill.Make
	memory *spill.Arena
}

// gather collects value(i) of the events lo <= i < hi by key(i), which is in [0, keys); a negative key is left out.
func gather(keys, lo, hi int, key func(i int) int32, value func(i int) int64) *groups {
	return gatherIn(nil, keys, lo, hi, key, value)
}

// gatherIn is gather with its numbers in an arena, until free.
func gatherIn(memory *spill.Arena, keys, lo, hi int, key func(i int) int32, value func(i int) int64) *groups {
	g := &groups{offset: make([]int32, keys+1), memory: memory}
	for i := lo; i < hi; i++ {
		if k := key(i); k >= 0 {
			g.offset[k+1]++
		}
	}
	for k := range keys {
		g.offset[k+1] += g.offset[k]
	}
	n := int(g.offset[keys])
	at := slices.Clone(g.offset[:keys])
	g.narrow = spill.Make[uint32](memory, n)
	for i := lo; i < hi; i++ {
		k := key(i)
		if k < 0 {
			continue
		}
		v := value(i)
		if v < 0 || v > math.MaxUint32 {
			g.free()
			g.gatherWide(lo, hi, n, key, value)
			return g
		}
		g.narrow[at[k]] = uint32(v)
		at[k]++
	}
	g.all = stat.Narrow(g.narrow)
	return g
}

// gatherWide is for numbers of which some need more than 32 bits.
func (g *groups) gatherWide(lo, hi, n int, key func(i int) int32, value func(i int) int64) {
	at, wide := slices.Clone(g.offset), make([]int64, n)
	for i := lo; i < hi; i++ {
		if k := key(i); k >= 0 {
			wide[at[k]] = value(i)
			at[k]++
		}
	}
	g.all = stat.Wide(wide)
}

// free gives the numbers back.
func (g *groups) free() {
	spill.Free(g.memory, g.narrow)
	g.narrow, g.all = nil, stat.Sample{}
}

// of is the numbers of one key.
func (g *groups) of(key int) stat.Sample {
	return g.all.Slice(int(g.offset[key]), int(g.offset[key+1]))
}

// keys is how many keys there are.
func (g *groups) keys() int { return len(g.offset) - 1 }

// sort sorts the numbers of each key.
func (g *groups) sort() *groups {
	parallel.Each(g.keys(), func(k int) { g.of(k).Sort() })
	return g
}

// totals is what a ranked table shows of one key.
type totals struct {
	key     int
	count   int64
	total   int64
	summary *report.Summary
}

// rank returns the keys that have events, by total time, then count, then the order less gives. The groups are sorted.
func (g *groups) rank(less func(a, b int) int) []totals {
	list := make([]totals, 0, g.keys())
	for k := range g.keys() {
		if d := g.of(k); d.Len() > 0 {
			list = append(list, totals{key: k, count: int64(d.Len())})
		}
	}
	parallel.Each(len(list), func(i int) {
		d := g.of(list[i].key)
		list[i].total, list[i].summary = d.Sum(), d.Summary()
	})
	slices.SortFunc(list, func(a, b totals) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(b.count, a.count), less(a.key, b.key))
	})
	return list
}

// some are those of ranked totals whose key is chosen.
func some(list []totals, chosen func(key int) bool) []totals {
	var picked []totals
	for _, e := range list {
		if chosen(e.key) {
			picked = append(picked, e)
		}
	}
	return picked
}

func sum(list []int64) int64 {
	var s int64
	for _, v := range list {
		s += v
	}
	return s
}

// pairs numbers pairs of small numbers in order of first appearance, in a table with open addressing.
type pairs struct {
	slots []int32 // number plus one, or 0
	list  []pair
}

type pair struct{ a, b int32 }

func newPairs() *pairs { return &pairs{slots: make([]int32, 1<<8)} }

func (p *pairs) slot(x pair) int {
	h := (uint64(uint32(x.a))<<32 | uint64(uint32(x.b))) * 0x9E3779B97F4A7C15
	return int(h>>32) & (len(p.slots) - 1)
}

func (p *pairs) of(a, b int32) int32 {
	x := pair{a, b}
	at := p.slot(x)
	for ; p.slots[at] != 0; at = (at + 1) & (len(p.slots) - 1) {
		if n := p.slots[at] - 1; p.list[n] == x {
			return n
		}
	}
	n := int32(len(p.list))
	p.list = append(p.list, x)
	p.slots[at] = n + 1
	if 2*len(p.list) > len(p.slots) {
		p.slots = make([]int32, 2*len(p.slots))
		for i, x := range p.list {
			at := p.slot(x)
			for p.slots[at] != 0 {
				at = (at + 1) & (len(p.slots) - 1)
			}
			p.slots[at] = int32(i) + 1
		}
	}
	return n
}
