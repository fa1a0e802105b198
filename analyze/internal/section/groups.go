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

// groups gathers numbers of events, durations mostly, by a small integer key.
type groups struct {
	offset []int32 // by key, into all; one more than keys
	all    stat.Sample
	narrow []uint32 // what all holds, where that was made by spill.Make
	memory *spill.Arena
}

// gather collects value(i) of the events lo <= i < hi by key(i); a negative key is left out. There are at least keys of
// them. key is called once for each event, in order, value in the same order afterwards. The numbers are in the arena until
// free.
func gather(memory *spill.Arena, keys, lo, hi int, key func(i int) int32, value func(i int) int64) *groups {
	g := &groups{memory: memory}
	of := spill.Make[int32](memory, hi-lo)
	defer spill.Free(memory, of)
	counts := make([]int32, keys)
	for i := lo; i < hi; i++ {
		k := key(i)
		of[i-lo] = k
		if k < 0 {
			continue
		}
		for int(k) >= len(counts) {
			counts = append(counts, 0)
		}
		counts[k]++
	}
	g.fill(counts, lo, hi, func(i int) int32 { return of[i-lo] }, value)
	return g
}

// gatherTwice is gather without the memory to remember the keys: it calls key twice for each event, which must say the same.
func gatherTwice(memory *spill.Arena, lo, hi int, key func(i int) int32, value func(i int) int64) *groups {
	var counts []int32
	for i := lo; i < hi; i++ {
		k := key(i)
		for int(k) >= len(counts) {
			counts = append(counts, 0)
		}
		counts[k]++
	}
	return gatherCounted(memory, counts, lo, hi, key, value)
}

// gatherCounted is gather where it is known how many numbers each key has.
func gatherCounted(memory *spill.Arena, counts []int32, lo, hi int, key func(i int) int32, value func(i int) int64) *groups {
	g := &groups{memory: memory}
	g.fill(counts, lo, hi, key, value)
	return g
}

func (g *groups) fill(counts []int32, lo, hi int, key func(i int) int32, value func(i int) int64) {
	g.offset = make([]int32, len(counts)+1)
	for k, n := range counts {
		g.offset[k+1] = g.offset[k] + n
	}
	n := int(g.offset[len(counts)])
	at := slices.Clone(g.offset)
	g.narrow = spill.Make[uint32](g.memory, n)
	for i := lo; i < hi; i++ {
		k := key(i)
		if k < 0 {
			continue
		}
		v := value(i)
		if v < 0 || v > math.MaxUint32 {
			g.free()
			g.fillWide(n, lo, hi, key, value)
			return
		}
		g.narrow[at[k]] = uint32(v)
		at[k]++
	}
	g.all = stat.Narrow(g.narrow)
}

// fillWide is for numbers of which some need more than 32 bits.
func (g *groups) fillWide(n, lo, hi int, key func(i int) int32, value func(i int) int64) {
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
	parallel.Each(g.keys(), func(k int) { sortIn(g.memory, g.of(k)) })
	return g
}

// sortIn sorts a sample with room in the arena.
func sortIn(memory *spill.Arena, s stat.Sample) {
	room := spill.Make[uint32](memory, s.Len())
	s.Sort(room)
	spill.Free(memory, room)
}

// together is the numbers of some keys, each sorted, as one sample.
func (g *groups) together(keys []int) stat.Together {
	t := make(stat.Together, len(keys))
	for i, k := range keys {
		t[i] = g.of(k)
	}
	return t
}

// everything is the numbers of all keys, each sorted, as one sample.
func (g *groups) everything() stat.Together {
	t := make(stat.Together, 0, g.keys())
	for k := range g.keys() {
		t = append(t, g.of(k))
	}
	return t
}

// shortDurations are the limits of kernel.under_ratio.
var shortDurations = [...]struct {
	label string
	ns    int64
}{{"5us", 5000}, {"10us", 10000}, {"20us", 20000}}

// durationStats is what sections say of the durations of events.
type durationStats struct {
	count, total int64
	summary      *report.Summary // nil: there are none
	under        [len(shortDurations)]int64
	tiny         int64 // at most tinyKernel
	tinyTotal    int64
}

// statsOf describes durations.
func statsOf(s stat.Together) durationStats {
	d := durationStats{count: int64(s.Len()), total: s.Sum(), summary: s.Summary()}
	for i, x := range shortDurations {
		d.under[i] = int64(s.Under(x.ns))
	}
	d.tiny = int64(s.Under(tinyKernel + 1))
	d.tinyTotal = s.SumUnder(tinyKernel + 1)
	return d
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

// combos numbers combinations of two small numbers, of which the second is below width, in order of first appearance. A
// small table of all of them saves a search for each event.
type combos struct {
	*pairs
	width  int
	direct []int32 // number plus one
}

// maxCombinations bounds the table of all combinations.
const maxCombinations = 1 << 18

func newCombos(firsts, width int) *combos {
	c := &combos{pairs: newPairs(), width: width}
	if firsts*width <= maxCombinations {
		c.direct = make([]int32, firsts*width)
	}
	return c
}

func (c *combos) of(a, b int32) int32 {
	if c.direct == nil {
		return c.pairs.of(a, b)
	}
	at := &c.direct[int(a)*c.width+int(b)]
	if *at == 0 {
		*at = c.pairs.of(a, b) + 1
	}
	return *at - 1
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
