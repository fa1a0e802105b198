package serverlog

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/stat"
)

// UnitRule says which iterations are units of work. It is the same for every log.
const UnitRule = "Each iteration that works on requests is a unit. Kinds are told apart by type: decode by the number of its requests, prefill and mixed by the number of their tokens, rounded up to a power of two. " +
	"Idle iterations are left out, and kinds that occur once. Warm-up: the first units of a kind, as long as they take longer than the median of those after the first by 2 % and by three standard deviations " +
	"(estimated by the median absolute deviation), at most two units or one in ten: more are a trend and stay, as do more than two behind which times fall on."

// UnitGroup is one kind of iteration.
type UnitGroup struct {
	Type          Type
	Batch, Tokens int64   // requests, and tokens rounded up to a power of two; -1 where they do not tell the kind
	Kept          []int32 // iterations, in their order
	Warmup        int64   // iterations that were left out as such
	Total         int64   // ns, of the kept ones
}

// Units sorts the iterations into kinds, those with most time first. other counts those of kinds that occur once.
func (d *Data) Units() (groups []UnitGroup, other int64) {
	type key struct {
		t             Type
		batch, tokens int64
	}
	index := map[key]int{}
	for i := range d.Iterations.Len() {
		it := d.Iterations.At(i)
		k := key{it.Type(), -1, -1}
		switch k.t {
		case Decode:
			k.batch = int64(it.Generation)
		case Prefill, Mixed:
			k.tokens = powerOfTwo(int64(it.ContextTokens) + int64(it.Tokens))
		default:
			continue
		}
		g, ok := index[k]
		if !ok {
			g = len(groups)
			index[k] = g
			groups = append(groups, UnitGroup{Type: k.t, Batch: k.batch, Tokens: k.tokens})
		}
		groups[g].Kept = append(groups[g].Kept, int32(i))
	}
	kept := groups[:0]
	for _, g := range groups {
		if len(g.Kept) < 2 {
			other++
			continue
		}
		times := make([]float64, len(g.Kept))
		for k, i := range g.Kept {
			times[k] = float64(d.Iterations.At(int(i)).Elapsed())
		}
		n := stat.Warmup(times)
		g.Warmup, g.Kept = int64(n), g.Kept[n:]
		for _, v := range times[n:] {
			g.Total += int64(v)
		}
		kept = append(kept, g)
	}
	slices.SortStableFunc(kept, func(a, b UnitGroup) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Batch, b.Batch),
			cmp.Compare(a.Tokens, b.Tokens))
	})
	return kept, other
}

// powerOfTwo is the least power of two that is not below v.
func powerOfTwo(v int64) int64 {
	if v <= 1 {
		return max(v, 0)
	}
	return 1 << bits.Len64(uint64(v-1))
}
