package section

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
)

// groups gathers the durations of events by a small integer key, in two passes and one allocation.
type groups struct {
	offset []int32 // by key, into durs; one more than keys
	durs   []int64
}

// gather collects dur(i) of the events lo <= i < hi by key(i), which is in [0, keys); a negative key is left out.
func gather(keys, lo, hi int, key func(i int) int32, dur func(i int) int64) *groups {
	g := &groups{offset: make([]int32, keys+1)}
	for i := lo; i < hi; i++ {
		if k := key(i); k >= 0 {
			g.offset[k+1]++
		}
	}
	for k := range keys {
		g.offset[k+1] += g.offset[k]
	}
	g.durs = make([]int64, g.offset[keys])
	at := slices.Clone(g.offset[:keys])
	for i := lo; i < hi; i++ {
		if k := key(i); k >= 0 {
			g.durs[at[k]] = dur(i)
			at[k]++
		}
	}
	return g
}

// of is the durations of one key.
func (g *groups) of(key int) []int64 { return g.durs[g.offset[key]:g.offset[key+1]] }

// totals is what a ranked table shows of one key.
type totals struct {
	key     int
	count   int64
	total   int64
	summary *report.Summary
}

// rank returns the keys that have events, by total time, then count, then the order less gives; summaries sort the
// group's durations.
func (g *groups) rank(keys int, less func(a, b int) int) []totals {
	var list []totals
	for k := range keys {
		d := g.of(k)
		if len(d) == 0 {
			continue
		}
		list = append(list, totals{key: k, count: int64(len(d)), total: sum(d), summary: stat.Summarize(d)})
	}
	slices.SortFunc(list, func(a, b totals) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(b.count, a.count), less(a.key, b.key))
	})
	return list
}

func sum(list []int64) int64 {
	var s int64
	for _, v := range list {
		s += v
	}
	return s
}
