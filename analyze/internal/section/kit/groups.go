package kit

import (
	"cmp"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Groups gathers numbers of events, durations mostly, by a small integer key.
type Groups struct {
	Offset []int32 // by key, into all; one more than keys
	all    stat.Sample
	narrow []uint32 // the numbers of all, if spill.Make made them
	Memory *spill.Arena
}

// Gather collects value(i) of the events lo <= i < hi by key(i), which is below keys; a negative key is left out. key
// is called once for each event, in order, value in the same order afterwards. The numbers live in the arena until
// Free.
func Gather(memory *spill.Arena, keys, lo, hi int, key func(i int) int32, value func(i int) int64) *Groups {
	of := spill.NewIndexes(memory, hi-lo)
	defer of.Free()
	counts := make([]int32, keys)
	for i := lo; i < hi; i++ {
		k := key(i)
		of.Set(i-lo, max(k, -1))
		if k < 0 {
			continue
		}
		for int(k) >= len(counts) {
			counts = append(counts, 0)
		}
		counts[k]++
	}
	return GatherCounted(memory, counts, lo, hi, func(i int) int32 { return of.At(i - lo) }, value)
}

// gatherTwice is Gather without the memory for the keys: it calls key twice for each event, which must return the same.
func gatherTwice(memory *spill.Arena, lo, hi int, key func(i int) int32, value func(i int) int64) *Groups {
	var counts []int32
	for i := lo; i < hi; i++ {
		k := key(i)
		for int(k) >= len(counts) {
			counts = append(counts, 0)
		}
		counts[k]++
	}
	return GatherCounted(memory, counts, lo, hi, key, value)
}

// GatherCounted is Gather if the number of values of each key is known.
func GatherCounted(memory *spill.Arena, counts []int32, lo, hi int, key func(i int) int32,
	value func(i int) int64) *Groups {
	g := &Groups{Memory: memory, Offset: make([]int32, len(counts)+1)}
	for k, n := range counts {
		g.Offset[k+1] = g.Offset[k] + n
	}
	n := int(g.Offset[len(counts)])
	at := slices.Clone(g.Offset)
	g.narrow = spill.Make[uint32](g.Memory, n)
	for i := lo; i < hi; i++ {
		k := key(i)
		if k < 0 {
			continue
		}
		v := value(i)
		if v < 0 || v > math.MaxUint32 {
			g.Free()
			g.fillWide(n, lo, hi, key, value)
			return g
		}
		g.narrow[at[k]] = uint32(v)
		at[k]++
	}
	g.all = stat.Narrow(g.narrow)
	return g
}

// fillWide is for numbers some of which need more than 32 bits.
func (g *Groups) fillWide(n, lo, hi int, key func(i int) int32, value func(i int) int64) {
	at, wide := slices.Clone(g.Offset), make([]int64, n)
	for i := lo; i < hi; i++ {
		if k := key(i); k >= 0 {
			wide[at[k]] = value(i)
			at[k]++
		}
	}
	g.all = stat.Wide(wide)
}

// Free returns the memory of the numbers to the arena.
func (g *Groups) Free() {
	spill.Free(g.Memory, g.narrow)
	g.narrow, g.all = nil, stat.Sample{}
}

// Of is the numbers of one key.
func (g *Groups) Of(key int) stat.Sample {
	return g.all.Slice(int(g.Offset[key]), int(g.Offset[key+1]))
}

// Keys is how many keys there are.
func (g *Groups) Keys() int { return len(g.Offset) - 1 }

// Sort sorts the numbers of each key.
func (g *Groups) Sort() *Groups {
	parallel.Each(g.Keys(), func(k int) { SortIn(g.Memory, g.Of(k)) })
	return g
}

// SortIn sorts a sample with room in the arena.
func SortIn(memory *spill.Arena, s stat.Sample) {
	room := spill.Make[uint32](memory, s.Len())
	s.Sort(room)
	spill.Free(memory, room)
}

// Together is the numbers of some keys, each sorted, as one sample.
func (g *Groups) Together(keys []int) stat.Merged {
	return lists.Map(keys, g.Of)
}

// Everything is the numbers of all keys, each sorted, as one sample.
func (g *Groups) Everything() stat.Merged { return g.Together(lists.Indexes[int](g.Keys())) }

// ShortDurations are the limits of kernel.under_ratio.
var ShortDurations = [...]struct {
	Label string
	ns    int64
}{{"5us", 5000}, {"10us", 10000}, {"20us", 20000}}

// Sums are the number of some events, and their durations added up and described.
type Sums struct {
	Count, Total int64
	Summary      *report.Summary // nil: there are none
}

// DurationStats are the statistics of the durations of events.
type DurationStats struct {
	Sums
	Under     [len(ShortDurations)]int64
	Tiny      int64 // at most tinyKernel
	tinyTotal int64
}

func statsOf(s stat.Merged) DurationStats {
	d := DurationStats{Sums: Sums{int64(s.Len()), s.Sum(), s.Summary()}}
	for i, x := range ShortDurations {
		d.Under[i] = int64(s.Under(x.ns))
	}
	d.Tiny = int64(s.Under(tinyKernel + 1))
	d.tinyTotal = s.SumUnder(tinyKernel + 1)
	return d
}

// stats are those of the numbers of some keys, each sorted.
func (g *Groups) stats(keys []int) DurationStats { return statsOf(g.Together(keys)) }

// Totals is one row of a ranked table: a key and its sums.
type Totals struct {
	Key int
	Sums
}

// Rank returns the keys that have events, by total time, then count, then the order less gives. The groups are sorted.
func (g *Groups) Rank(less func(a, b int) int) []Totals {
	list := make([]Totals, 0, g.Keys())
	for k := range g.Keys() {
		if d := g.Of(k); d.Len() > 0 {
			list = append(list, Totals{k, Sums{Count: int64(d.Len())}})
		}
	}
	parallel.Each(len(list), func(i int) {
		d := g.Of(list[i].Key)
		list[i].Total, list[i].Summary = d.Sum(), d.Summary()
	})
	rankTotals(list, less)
	return list
}

func rankTotals(list []Totals, less func(a, b int) int) {
	lists.Sort(list, func(a, b Totals) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(b.Count, a.Count), less(a.Key, b.Key))
	})
}

// combos numbers combinations of two small numbers in order of first appearance. A table of those whose second number
// is below width saves a search for each event.
type combos struct {
	lists.Numbering[Pair]
	width  int
	direct []int32 // number plus one
}

// maxCombinations bounds the table of all combinations.
const maxCombinations = 1 << 18

func NewCombos(firsts, width int) *combos {
	c := &combos{width: width}
	if firsts*width <= maxCombinations {
		c.direct = make([]int32, firsts*width)
	}
	return c
}

func (c *combos) Of(a, b int32) int32 {
	if c.direct == nil || int(b) >= c.width {
		return c.Numbering.Of(Pair{a, b})
	}
	at := &c.direct[int(a)*c.width+int(b)]
	if *at == 0 {
		*at = c.Numbering.Of(Pair{a, b}) + 1
	}
	return *at - 1
}

// Pair is two small numbers as one key.
type Pair struct{ A, B int32 }

// tinyKernel is the duration in ns up to which a kernel counts as tiny.
const tinyKernel = 5_000

// Tally holds a value for each distinct key, in order of first appearance.
type Tally[K comparable, V any] struct {
	lists.Numbering[K]
	Values []*V // by number of the key
}

func NewTally[K comparable, V any]() *Tally[K, V] { return &Tally[K, V]{} }

// At is the value of a key; the first call makes one that is zero.
func (t *Tally[K, V]) At(k K) *V {
	n := t.Of(k)
	if int(n) == len(t.Values) {
		t.Values = append(t.Values, new(V))
	}
	return t.Values[n]
}

// Covered is the length of a union of intervals that are sorted by start.
type Covered struct{ Ns, Reached int64 }

// Add adds an interval, and returns how much longer the union is with it.
func (c *Covered) Add(start, end int64) (more int64) {
	if from := max(start, c.Reached); end > from {
		more = end - from
		c.Ns, c.Reached = c.Ns+more, end
	}
	return more
}
